//! [`grouped`]: the lines of a list of threads, in which many threads that wait at the same place
//! are one line.
//!
//! The report of a deadlock (`deadlock.rs`) and the dump (`see`) are made of these lines. A program
//! with thousands of threads mostly has a few places at which they wait.

use std::collections::HashMap;
use std::fmt;

/// The number of threads of a group that have a line of their own.
const SHOWN: usize = 2;

/// A line of a list of threads.
#[derive(Debug)]
pub enum Line<'a, T> {
    /// A thread.
    One(&'a T),
    /// This number of further threads that all do this: "waits at src/main.rs:12:5".
    More(usize, String),
}

/// The lines for a list of threads, in their order. Of a group of threads that do the same, the
/// first two have a line each, and a third line counts the others. `doing` says what a thread does,
/// with a verb first.
pub fn grouped<T>(threads: &[T], doing: impl Fn(&T) -> String) -> Vec<Line<'_, T>> {
    let doing: Vec<String> = threads.iter().map(doing).collect();
    // The size of each group, and how many of its threads have been listed.
    let mut groups: HashMap<&str, (usize, usize)> = HashMap::new();
    doing.iter().for_each(|doing| groups.entry(doing).or_default().0 += 1);
    let mut lines = Vec::new();
    for (thread, doing) in threads.iter().zip(&doing) {
        let (size, listed) = groups.get_mut(&**doing).expect("counted above");
        *listed += 1;
        if *size <= SHOWN + 1 || *listed <= SHOWN {
            lines.push(Line::One(thread));
        } else if *listed == SHOWN + 1 {
            lines.push(Line::More(*size - SHOWN, doing.clone()));
        }
    }
    lines
}

impl<T> Line<'_, T> {
    /// The number of threads that the line stands for.
    pub fn threads(&self) -> usize {
        match self {
            Line::One(_) => 1,
            Line::More(count, _) => *count,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Line<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::One(thread) => thread.fmt(f),
            Line::More(count, doing) => {
                let (verb, rest) = doing.split_once(' ').unwrap_or((doing, ""));
                let verb = match verb {
                    "has" => "have",
                    "is" => "are",
                    "was" => "were",
                    other => other.strip_suffix('s').unwrap_or(other),
                };
                write!(f, "{} more threads {verb}", Thousands(*count))?;
                if rest.is_empty() { Ok(()) } else { write!(f, " {rest}") }
            }
        }
    }
}

/// A number with a comma before each three digits.
struct Thousands(usize);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small @ 0..1000 => write!(f, "{small}"),
            large => write!(f, "{},{:03}", Thousands(large / 1000), large % 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_do_the_same_are_one_line() {
        let threads: Vec<usize> = (0..2_347).collect();
        let doing = |&thread: &usize| match thread {
            1 => "is ready".to_string(),
            2..=4 => "sleeps".to_string(),
            _ => "waits at src/x.rs:12:5".to_string(),
        };
        let lines: Vec<String> = grouped(&threads, doing).iter().map(|line| line.to_string()).collect();
        let more = "2,341 more threads wait at src/x.rs:12:5";
        assert_eq!(lines, ["0", "1", "2", "3", "4", "5", more]);
        assert_eq!(Thousands(1_002_003).to_string(), "1,002,003");
        assert_eq!(grouped(&threads, doing).iter().map(Line::threads).sum::<usize>(), threads.len());
        assert_eq!(
            Line::<usize>::More(3, "has not run yet".into()).to_string(),
            "3 more threads have not run yet"
        );
    }
}
