//! The plan of a script, for `--explain`: a line for each stage.
//!
//! `main.rs` calls [`plan`], and `fuzz.rs` calls it for each script that passes the check. The
//! function `note` repeats the choices of `stage.rs` and `stream.rs` in words. A change there needs
//! a change here, because no type ties them together.

use crate::condition::of_lines;
use crate::kinds::{Before, first_word, name, waiting_within, yields};
use crate::language::print;
use crate::language::tree::*;
use crate::parts::runs_in_parts;
use selvedge_pipeline::ItemKind;
use std::fmt::Write;

/// The plan of a script that is checked: what each stage takes, yields and keeps, and which stages
/// run in this number of threads.
///
/// # Examples
/// ```
/// use selvedge_pipe::{explain::plan, run::prepare};
///
/// let script = prepare("file log | lines | having substring \"500\" | count").unwrap();
/// assert_eq!(plan(&script, 2), "\
/// file \"log\"               nothing -> bytes    in blocks; 2 threads up to `count` if it is large
/// lines                    bytes -> lines      finds line ends only where a stage needs them
/// having substring \"500\"   lines -> lines      searches whole blocks
/// count                    lines -> numbers    keeps one number
/// write to standard output numbers -> nothing  as text
/// ");
/// ```
pub fn plan(script: &[Pipeline], threads: usize) -> String {
    let mut out = String::new();
    for (index, stages) in script.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let mut rows = Vec::new();
        rows_of(stages, Before::Start, "", &mut rows);
        if let (Some(parts), true) = (runs_in_parts(stages), threads > 1) {
            let last = first_word(&stages[parts.count]);
            rows[0].note = format!("in blocks; {threads} threads up to `{last}` if it is large");
        }
        let width = rows.iter().map(|row| row.stage.chars().count()).max().unwrap_or(0);
        let flows = rows.iter().map(|row| row.flow.chars().count()).max().unwrap_or(0);
        for row in rows {
            let line = format!("{:width$} {:flows$}  {}", row.stage, row.flow, row.note);
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

struct Row {
    stage: String,
    flow: String,
    note: String,
}

fn rows_of(stages: &[Stage], start: Before<'_>, indent: &str, rows: &mut Vec<Row>) {
    let mut row = |stage: String, flow: String, note: &str| {
        rows.push(Row { stage: format!("{indent}{stage}"), flow, note: note.to_string() });
    };
    let reads =
        |stage: &Stage| matches!(stage.kind, StageKind::Shell(_) | StageKind::Stdin) || is_source(stage);
    if start == Before::Start && stages.first().is_some_and(|first| !reads(first)) {
        row("read standard input".to_string(), "nothing -> bytes".to_string(), "in blocks");
    }
    let mut before = start;
    let mut written = false;
    for (index, stage) in stages.iter().enumerate() {
        let fed = before.kind();
        let Ok(made) = yields(stage, before) else { return };
        let first = index == 0 && start == Before::Start && reads(stage);
        written = stage.target().is_some();
        let from = if first { "nothing" } else { name(fed) };
        let to = if written { "nothing" } else { name(made) };
        let head = match &stage.kind {
            StageKind::Branch(of) => {
                format!("{} {}", if of.foreach { "foreach" } else { "if" }, of.condition)
            }
            StageKind::While(condition, _) => format!("while {condition}"),
            StageKind::Join2(kind, _) => print::word(&JOINS, kind).to_string(),
            kind => kind.to_string(),
        };
        rows.push(Row {
            stage: format!("{indent}{head}"),
            flow: format!("{from} -> {to}"),
            note: note(stage, fed),
        });
        let deeper = format!("{indent}    ");
        match &stage.kind {
            StageKind::Branch(of) => {
                for (word, branch) in [("then", &of.then), ("else", &of.otherwise)] {
                    let note = if branch.is_empty() { "passes on unchanged" } else { "" };
                    let stage = format!("{indent}  {word}");
                    rows.push(Row { stage, flow: String::new(), note: note.to_string() });
                    rows_of(branch, Before::Branch(fed), &deeper, rows);
                }
            }
            StageKind::While(_, body) => {
                let stage = format!("{indent}  then");
                rows.push(Row { stage, flow: String::new(), note: String::new() });
                rows_of(body, Before::Branch(fed), &deeper, rows);
            }
            StageKind::Join2(_, inner) => rows_of(inner, Before::Start, &deeper, rows),
            _ => {}
        }
        before = Before::Stage(made, stage);
    }
    if start == Before::Start && indent.is_empty() && !written {
        let flow = format!("{} -> nothing", name(before.kind()));
        rows.push(Row { stage: "write to standard output".to_string(), flow, note: "as text".to_string() });
    }
}

fn is_source(stage: &Stage) -> bool {
    matches!(stage.kind, StageKind::File(_) | StageKind::Text(_) | StageKind::Range(..))
}

/// How a stage runs.
fn note(stage: &Stage, fed: ItemKind) -> String {
    let searches = |condition: &Condition| {
        let mut condition = condition;
        while let ConditionKind::Not(inner) = &condition.kind {
            condition = inner;
        }
        matches!(condition.kind, ConditionKind::Test(Test::Substring(_) | Test::Regex(_)))
    };
    let text = match &stage.kind {
        StageKind::File(_) => "reads the files in blocks",
        StageKind::Shell(_) => "a process, beside the stages before it",
        StageKind::Lines => "finds line ends only where a stage needs them",
        StageKind::Having(Condition { kind: ConditionKind::Place(place, _), .. }, _)
        | StageKind::Each(Condition { kind: ConditionKind::Place(place, _), .. })
            if let Some(note) = kept_for(*place) =>
        {
            note
        }
        StageKind::Having(condition, _) => match (fed, of_lines(condition)) {
            (ItemKind::Lists, _) if searches(condition) => "searches whole blocks",
            (ItemKind::Bytes, Some(inner)) if searches(inner) => "searches whole blocks",
            (ItemKind::Bytes, None) => "cuts blocks at sections",
            _ => "asks each item",
        },
        StageKind::Each(_) => "cuts blocks at sections",
        StageKind::Count | StageKind::Fold(_) => "keeps one number",
        StageKind::Unique => "keeps all different lines",
        StageKind::Tally => "keeps all different lines, with a count of each",
        StageKind::Sort(_) => "keeps all, and sorts at the end",
        StageKind::Last(count) => return format!("keeps {count} at least"),
        StageKind::First(_) => "stops what is before it when it has enough",
        StageKind::Skip(_) => "drops the first ones",
        StageKind::While(..) => "again and again, until nothing is true; merges in order",
        StageKind::Branch(_) if waiting_within(stage).is_some() => {
            "keeps a section, and runs its branch; merges in order"
        }
        StageKind::Branch(of) => match (of.foreach, fed, of_lines(&of.condition)) {
            (_, ItemKind::Bytes, Some(inner)) if searches(inner) => "searches whole blocks; merges in order",
            (true, ..) => "begins anew for each section; merges in order",
            (false, ..) => "merges in order",
        },
        StageKind::Join2(..) => "each side in a thread of its own",
        StageKind::To(_) => "makes the file, or makes it empty",
        StageKind::AppendTo(_) => "at the end of the file",
        _ => "",
    };
    text.to_string()
}

/// What a condition keeps of the stream until it knows which sections are true.
fn kept_for(place: Place) -> Option<&'static str> {
    match place {
        Place::UptoFirst => Some("keeps all up to the first section"),
        Place::Last | Place::LastAndAfter => Some("keeps what comes from each section to the next one"),
        Place::Suffix => Some("keeps each section until something comes behind it"),
        Place::First | Place::Even | Place::Prefix | Place::StartOf | Place::EndOf => None,
    }
}
