//! What several processes answer to one command, put together: `prefork.rs` asks them.

use std::fmt::Write;

/// The answer of one process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessAnswer {
    /// The number by which the parent knows it, from 0.
    pub(crate) number: usize,
    /// Its number in the system.
    pub(crate) process: i32,
    /// What it said, or why it says nothing.
    pub(crate) text: Result<String, String>,
}

/// The lines that all processes say, and then, apart, the other lines of each.
pub(crate) fn alike(answers: &[ProcessAnswer]) -> String {
    let said: Vec<&str> = answers.iter().filter_map(|answer| answer.text.as_deref().ok()).collect();
    let is_alike = |line: &str| said.iter().all(|text| text.lines().any(|other| other == line));
    let first = said.first().copied().unwrap_or_default();
    let mut text: String =
        first.lines().filter(|line| is_alike(line)).map(|line| format!("{line}\n")).collect();
    for answer in answers {
        let own: String = match &answer.text {
            Ok(said) => said.lines().filter(|line| !is_alike(line)).map(|line| format!("{line}\n")).collect(),
            Err(why) => format!("process {}: {why}\n", answer.process),
        };
        if !own.is_empty() {
            text += "\n";
            text += &own;
        }
    }
    text
}

/// What each process says, under a line with its number.
pub(crate) fn apart(answers: &[ProcessAnswer]) -> String {
    let mut text = String::new();
    for ProcessAnswer { process, text: said, .. } in answers {
        let said = said.as_ref().unwrap_or_else(|why| why);
        let _ = writeln!(text, "process {process}\n{}\n", said.trim_end());
    }
    text
}

/// The counters of all processes in the text format of Prometheus. Each has a label `process` with
/// the number by which the parent knows the process, so that a process that takes the place of
/// another goes on with its series.
pub(crate) fn labelled(answers: &[ProcessAnswer]) -> String {
    // Each metric with its comments and its samples, in the order of the first process.
    let mut metrics: Vec<(&str, String)> = Vec::new();
    let mut silent = String::new();
    for ProcessAnswer { number, process, text } in answers {
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                let _ = writeln!(silent, "# process {process}: {why}");
                continue;
            }
        };
        let mut at = 0;
        let mut is_new = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()) {
                let known = metrics.iter().position(|(other, _)| *other == name);
                is_new = known.is_none();
                at = known.unwrap_or(metrics.len());
                if is_new {
                    metrics.push((name, String::new()));
                }
            }
            let Some((_, lines)) = metrics.get_mut(at) else { continue };
            if !line.starts_with('#') {
                put_sample(line, *number, lines);
            } else if is_new {
                let _ = writeln!(lines, "{line}");
            }
        }
    }
    metrics.into_iter().map(|(_, lines)| lines).collect::<String>() + &silent
}

/// Appends a sample with the label of a process.
fn put_sample(sample: &str, number: usize, lines: &mut String) {
    let name = sample.find(['{', ' ']).unwrap_or(sample.len());
    let (name, rest) = sample.split_at(name);
    let _ = match rest.strip_prefix('{') {
        Some(labels) => writeln!(lines, "{name}{{process=\"{number}\",{labels}"),
        None => writeln!(lines, "{name}{{process=\"{number}\"}}{rest}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(texts: &[Result<&str, &str>]) -> Vec<ProcessAnswer> {
        let of = |(number, text): (usize, &Result<&str, &str>)| ProcessAnswer {
            number,
            process: 70 + number as i32,
            text: text.map(str::to_owned).map_err(str::to_owned),
        };
        texts.iter().enumerate().map(of).collect()
    }

    #[test]
    fn what_all_say_is_said_once() {
        assert_eq!(alike(&answers(&[Ok("1 routes\n"), Ok("1 routes\n")])), "1 routes\n");
        let status = answers(&[Ok("process 70\nroute /\n"), Ok("process 71\nroute /\n"), Err("no answer")]);
        assert_eq!(alike(&status), "route /\n\nprocess 70\n\nprocess 71\n\nprocess 72: no answer\n");
        assert_eq!(apart(&answers(&[Ok("a\n"), Err("b")])), "process 70\na\n\nprocess 71\nb\n\n");
    }

    #[test]
    fn counters_have_the_number_of_their_process() {
        let [first, second] = [1, 2].map(|n| {
            format!("# HELP up Time.\n# TYPE up gauge\nup {n}\n# HELP all B.\n# TYPE all counter\nall{{a=\"b\"}} {n}\n")
        });
        assert_eq!(
            labelled(&answers(&[Ok(&first), Err("no answer"), Ok(&second)])),
            "# HELP up Time.\n# TYPE up gauge\nup{process=\"0\"} 1\nup{process=\"2\"} 2\n\
             # HELP all B.\n# TYPE all counter\nall{process=\"0\",a=\"b\"} 1\nall{process=\"2\",a=\"b\"} 2\n\
             # process 71: no answer\n"
        );
    }
}
