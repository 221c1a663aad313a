//! Depfiles: the headers that a compiler has read, in the syntax of make.
//!
//! `project/deps.rs` calls [`parse`] before a command, for edges with a `depfile` and without
//! `deps`. `build/records.rs` calls it after a command with `deps = gcc`.
//!
//! The format is that of `gcc -MD`: rules of make without commands. In doubtful cases ninja's
//! reader decides, because a build must find the same inputs with either program.

use std::error::Error;
use std::fmt;

/// Why a depfile is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepfileError {
    /// It has paths and no colon.
    NoColon,
    /// A path that is an input has inputs of its own.
    InputsOfInput,
}

impl fmt::Display for DepfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DepfileError::NoColon => "expected ':' in depfile",
            DepfileError::InputsOfInput => "inputs may not also have inputs",
        })
    }
}

impl Error for DepfileError {}

/// The outputs and inputs that a depfile names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depfile {
    /// What stands before a colon.
    pub outputs: Vec<Vec<u8>>,
    /// What stands behind a colon, each path once.
    pub inputs: Vec<Vec<u8>>,
}

/// Reads a depfile.
///
/// Paths are as in the file: [`canonicalize`](crate::canonical::canonicalize) is not applied. A
/// backslash before a space, a `#` or another backslash before those is an escape; `$$` is `$`; a
/// backslash at the end of a line goes on with the next line. O(length).
///
/// # Errors
/// If there are paths and no colon, or an input has inputs of its own.
///
/// # Examples
/// ```
/// let depfile = selvedge_make::depfile::parse(b"main.o: main.c \\\n  has\\ space.h\n").unwrap();
/// assert_eq!(depfile.outputs, [b"main.o"]);
/// assert_eq!(depfile.inputs, [b"main.c".to_vec(), b"has space.h".to_vec()]);
/// ```
pub fn parse(text: &[u8]) -> Result<Depfile, DepfileError> {
    let mut depfile = Depfile::default();
    let mut reader = Reader { text, at: 0 };
    let mut known = std::collections::HashSet::new();
    // Whether the rule has had its colon, and whether one of its targets is an input of another.
    let (mut behind, mut poisoned) = (false, false);
    // Whether there is a path at all, and whether some rule has had its colon.
    let (mut any, mut any_rule) = (false, false);
    while let Some(word) = reader.word() {
        let Part { mut path, end_of_rule } = word;
        let colon = !behind && path.last() == Some(&b':');
        if colon {
            path.pop();
        }
        if !path.is_empty() {
            any = true;
            if behind {
                if known.insert(path.clone()) {
                    if poisoned {
                        return Err(DepfileError::InputsOfInput);
                    }
                    depfile.inputs.push(path);
                }
            } else if known.contains(&path) {
                // The compiler's option `-MP` adds a rule without inputs for each header, so that
                // make goes on when the header is gone.
                poisoned = true;
            } else if !depfile.outputs.contains(&path) {
                depfile.outputs.push(path);
            }
        }
        behind |= colon;
        any_rule |= colon;
        if end_of_rule {
            (behind, poisoned) = (false, false);
        }
    }
    if any && !any_rule {
        return Err(DepfileError::NoColon);
    }
    Ok(depfile)
}

struct Part {
    path: Vec<u8>,
    /// Whether the line of the rule ends behind the word.
    end_of_rule: bool,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// The length of an end of line at this distance.
    fn newline(&self, ahead: usize) -> Option<usize> {
        match (self.byte(ahead)?, self.byte(ahead + 1)) {
            (b'\n', _) => Some(1),
            (b'\r', Some(b'\n')) => Some(2),
            _ => None,
        }
    }

    /// Passes over blanks and continued lines.
    fn skip_blanks(&mut self) {
        loop {
            match (self.byte(0), self.newline(1)) {
                (Some(b' ' | b'\t'), _) => self.at += 1,
                (Some(b'\\'), Some(end)) => self.at += 1 + end,
                _ => return,
            }
        }
    }

    /// The next word, or `None` at the end. The word is empty if a line ends here.
    fn word(&mut self) -> Option<Part> {
        self.skip_blanks();
        if matches!(self.byte(0), None | Some(0)) {
            return None;
        }
        let mut path = Vec::new();
        loop {
            if let Some(end) = self.newline(0) {
                self.at += end;
                return Some(Part { path, end_of_rule: true });
            }
            match self.byte(0) {
                None | Some(0) => return Some(Part { path, end_of_rule: true }),
                Some(b' ' | b'\t') => break,
                Some(b'\\') => {
                    if self.newline(1).is_some() {
                        break;
                    }
                    self.backslashes(&mut path);
                }
                Some(b'$') if self.byte(1) == Some(b'$') => {
                    path.push(b'$');
                    self.at += 2;
                }
                Some(byte) => {
                    path.push(byte);
                    self.at += 1;
                }
            }
        }
        self.skip_blanks();
        let end = self.newline(0);
        self.at += end.unwrap_or(0);
        Some(Part { path, end_of_rule: end.is_some() })
    }

    /// Takes a run of backslashes, with the character that the last of them escapes. Before a
    /// space, `2N + 1` of them are `N` and the space; before a `#`, the last one goes; elsewhere
    /// all stay.
    fn backslashes(&mut self, path: &mut Vec<u8>) {
        let rest = &self.text[self.at..];
        let mut run = rest.iter().position(|byte| *byte != b'\\').unwrap_or(rest.len());
        let next = rest.get(run).copied();
        let ends_line = self.newline(run).is_some();
        match next {
            Some(b' ') if run % 2 == 1 => {
                path.extend(std::iter::repeat_n(b'\\', run / 2));
                path.push(b' ');
                self.at += run + 1;
            }
            Some(b'#') => {
                path.extend(std::iter::repeat_n(b'\\', run - 1));
                path.push(b'#');
                self.at += run + 1;
            }
            Some(b':') if run == 1 && !matches!(self.byte(2), None | Some(b' ' | b'\t' | b'\r' | b'\n')) => {
                path.push(b':');
                self.at += 2;
            }
            _ => {
                // The last one continues the line.
                run -= usize::from(ends_line);
                path.extend(std::iter::repeat_n(b'\\', run));
                self.at += run;
            }
        }
    }
}
