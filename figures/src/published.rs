//! The instructions that were published last, in `figures/instructions.json`, and the difference
//! from those of now.
//!
//! A value that rose by more than [`TOLERANCE`] fails the check. So does a value that fell by as
//! much: it is to be published, because otherwise a later rise up to the old value would go
//! unnoticed. Another compiler generates other code, and so under another one than the file names
//! [`TOLERANCE_OF_OTHERS`] holds for a rise, and a fall is only shown.

use crate::instructions::{Counting, count};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// By how many per cent a value may differ under the same compiler.
const TOLERANCE: f64 = 2.0;
/// How often a value is counted that differs by more. A server counts a little more or less by
/// the number of requests that it finds at each look, so by what else the machine does.
const COUNTS: u32 = 3;
/// By how many per cent a value may rise under another compiler.
const TOLERANCE_OF_OTHERS: f64 = 15.0;

/// Instructions by operation, and the compiler that made the code.
#[derive(Clone, Debug, PartialEq)]
struct Published {
    toolchain: String,
    instructions: BTreeMap<String, f64>,
}

impl Published {
    /// Keeps of each operation the value that is nearer to the published one.
    fn keep_nearest(&mut self, other: Published, published: &Published) {
        for (operation, value) in &mut self.instructions {
            if let (Some(other), Some(before)) =
                (other.instructions.get(operation), published.instructions.get(operation))
                && (other - before).abs() < (*value - before).abs()
            {
                *value = *other;
            }
        }
    }
}

/// The compiler, as it calls itself.
pub(crate) fn toolchain() -> String {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let said = Command::new(compiler).arg("--version").output();
    let said = said.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    if said.trim().is_empty() { "an unknown compiler".to_owned() } else { said.trim().to_owned() }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// Counts ours.
fn now() -> Result<Published, String> {
    let mut instructions = BTreeMap::new();
    for row in count(Counting::Ours)? {
        // To a tenth: more is not the same from run to run.
        instructions.insert(row.case, (row.value? * 10.0).round() / 10.0);
    }
    Ok(Published { toolchain: toolchain(), instructions })
}

/// Counts ours and writes them to the file.
///
/// # Errors
///
/// When an operation cannot be counted, and when the file cannot be written.
pub(crate) fn write() -> Result<(), String> {
    let now = now()?;
    let text = format!("{:#}\n", json!({ "toolchain": now.toolchain, "instructions": now.instructions }));
    fs::write(path(), text).map_err(|error| format!("{}: {error}", path().display()))?;
    for (operation, value) in now.instructions {
        println!("{operation}: {value}");
    }
    Ok(())
}

/// Counts ours and compares them with the file.
///
/// # Errors
///
/// Every value that differs by more than is tolerated, and an operation that cannot be counted.
pub(crate) fn check() -> Result<(), String> {
    let text = fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    let published = read(&text).ok_or_else(|| format!("{}: not as it was written", path().display()))?;
    let mut counted = now()?;
    for _ in 1..COUNTS {
        if differences(&published, &counted).1.is_empty() {
            break;
        }
        counted.keep_nearest(now()?, &published);
    }
    let (lines, wrong) = differences(&published, &counted);
    for line in lines {
        println!("{line}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("instructions: {}", wrong.join("; "))) }
}

fn read(text: &str) -> Option<Published> {
    let json: Value = serde_json::from_str(text).ok()?;
    let instructions = json["instructions"].as_object()?.iter();
    Some(Published {
        toolchain: json["toolchain"].as_str()?.to_owned(),
        instructions: instructions
            .map(|(operation, value)| Some((operation.clone(), value.as_f64()?)))
            .collect::<Option<_>>()?,
    })
}

/// A line for each operation, and those lines that are not tolerated.
fn differences(published: &Published, now: &Published) -> (Vec<String>, Vec<String>) {
    const PUBLISH: &str = "`figures write-instructions` publishes it";
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    let same = published.toolchain == now.toolchain;
    if !same {
        lines.push(format!(
            "published with {}, counted with {}: a rise of {TOLERANCE_OF_OTHERS} % is tolerated",
            published.toolchain, now.toolchain
        ));
    }
    for (operation, value) in &now.instructions {
        let Some(before) = published.instructions.get(operation) else {
            wrong.push(format!("{operation}: {value}, never published; {PUBLISH}"));
            continue;
        };
        let percent = 100.0 * (value / before - 1.0);
        let line = format!("{operation}: {value}, published {before} ({percent:+.1} %)");
        if percent > if same { TOLERANCE } else { TOLERANCE_OF_OTHERS } {
            wrong.push(format!("{line} has risen"));
        } else if same && percent < -TOLERANCE {
            wrong.push(format!("{line} has fallen; {PUBLISH}"));
        }
        lines.push(line);
    }
    for operation in published.instructions.keys().filter(|name| !now.instructions.contains_key(*name)) {
        wrong.push(format!("{operation}: published, and no longer counted; {PUBLISH}"));
    }
    (lines, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(toolchain: &str, values: &[(&str, f64)]) -> Published {
        let instructions = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Published { toolchain: toolchain.to_owned(), instructions }
    }

    fn wrong(now: &Published) -> Vec<String> {
        differences(&published("rustc 1", &[("yield", 100.0), ("hop", 400.0)]), now).1
    }

    #[test]
    fn a_value_that_rose_or_fell_is_not_tolerated() {
        assert_eq!(wrong(&published("rustc 1", &[("yield", 101.9), ("hop", 392.1)])), [""; 0]);
        let risen = wrong(&published("rustc 1", &[("yield", 102.1), ("hop", 400.0)]));
        assert_eq!(risen, ["yield: 102.1, published 100 (+2.1 %) has risen"]);
        let fallen = wrong(&published("rustc 1", &[("yield", 100.0), ("hop", 391.0)]));
        assert!(fallen[0].starts_with("hop: 391, published 400 (-2.2 %) has fallen"), "{fallen:?}");
    }

    #[test]
    fn another_compiler_may_differ_by_more() {
        assert_eq!(wrong(&published("rustc 2", &[("yield", 114.9), ("hop", 200.0)])), [""; 0]);
        assert_eq!(wrong(&published("rustc 2", &[("yield", 116.0), ("hop", 200.0)])).len(), 1);
    }

    #[test]
    fn an_operation_is_neither_new_nor_gone_unnoticed() {
        let both = wrong(&published("rustc 1", &[("yield", 100.0), ("fork", 10.0)]));
        assert_eq!(both.len(), 2, "{both:?}");
    }

    #[test]
    fn of_two_counts_the_nearer_one_of_each_operation_is_kept() {
        let before = published("rustc 1", &[("yield", 100.0), ("hop", 400.0)]);
        let mut counted = published("rustc 1", &[("yield", 104.0), ("hop", 399.0)]);
        counted.keep_nearest(published("rustc 1", &[("yield", 99.0), ("hop", 390.0)]), &before);
        assert_eq!(counted, published("rustc 1", &[("yield", 99.0), ("hop", 399.0)]));
    }

    #[test]
    fn the_file_can_be_read() {
        let text = fs::read_to_string(path()).unwrap();
        assert!(read(&text).is_some_and(|published| !published.instructions.is_empty()));
        assert_eq!(read("{}"), None);
    }
}
