//! `cargo xtask publish FILE..`: puts measured figures into the README and the site, the same in both.

use std::fmt::Write;

use serde_json::Value;

use crate::workspace;

/// The tables stand between these lines.
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

const README: &str = "README.md";
const PAGE: &str = "site/figures/index.html";

/// Systems whose name starts so are ours.
const OURS: &str = "selvedge";

/// All rows of one case of one figure.
#[derive(Debug, Default, PartialEq, Eq)]
struct Case {
    figure: String,
    case: String,
    ours: Vec<String>,
    peers: Vec<String>,
}

/// Reads what `figures --json` wrote and rewrites both tables.
///
/// # Errors
/// When a file is none of those, or a page has lost its two marks.
pub(crate) fn run(files: &[&str]) -> Result<(), String> {
    let mut cases = Vec::new();
    let mut machines: Vec<String> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        let json: Value = serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))?;
        for figure in json.as_array().ok_or(format!("{file}: no array of figures"))? {
            let read = read(figure).ok_or(format!("{file}: a figure without name, machine or rows"))?;
            cases.extend(read.1);
            if !machines.contains(&read.0) {
                machines.push(read.0);
            }
        }
    }
    let root = workspace::root();
    for (file, table) in [(README, markdown(&cases, &machines)), (PAGE, html(&cases, &machines))] {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        let text = between_marks(&text, &table).ok_or(format!("{file}: no {BEGIN} .. {END}"))?;
        std::fs::write(&path, text).map_err(|e| format!("{file}: {e}"))?;
        println!("publish: wrote {} cases to {file}", cases.len());
    }
    Ok(())
}

/// The machine, and the cases in their order.
fn read(figure: &Value) -> Option<(String, Vec<Case>)> {
    let name = figure.get("figure")?.as_str()?;
    let machine = figure.get("machine")?.as_str()?;
    let mut cases: Vec<Case> = Vec::new();
    for row in figure.get("rows")?.as_array()? {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let (case, system) = (text("case")?, text("system")?);
        if cases.last().is_none_or(|last| last.case != case) {
            cases.push(Case { figure: name.to_string(), case: case.to_string(), ..Case::default() });
        }
        let cell = cell(row, system, text("unit").unwrap_or(""), text("absent"))?;
        let last = cases.last_mut()?;
        let side = if system.starts_with(OURS) { &mut last.ours } else { &mut last.peers };
        side.push(cell);
    }
    Some((machine.to_string(), cases))
}

/// `tokio 58.1 ns (12.6×)`, and what was asked for where it was not reached.
fn cell(row: &Value, system: &str, unit: &str, absent: Option<&str>) -> Option<String> {
    let number_at = |key: &str| row.get(key).and_then(Value::as_f64);
    let Some(value) = number_at("value") else { return Some(format!("{system}: {}", absent?)) };
    // In our own column only a variant of ours needs a name.
    let label = if system == OURS { "" } else { system.strip_prefix(&format!("{OURS} ")).unwrap_or(system) };
    let mut cell = format!("{label} {} {unit}", number(value)).trim_start().to_string();
    if let Some(ratio) = number_at("ratio").filter(|_| !system.starts_with(OURS)) {
        let _ = write!(cell, " ({}×)", number(ratio));
    }
    if row.get("reached") == Some(&Value::Bool(false)) {
        match (number_at("required_ratio"), number_at("required_at_most")) {
            (Some(ratio), _) => drop(write!(cell, ", short of {}×", number(ratio))),
            (_, Some(most)) => drop(write!(cell, ", above the {} {unit} aimed at", number(most))),
            _ => {
                if let Some(least) = number_at("required_at_least") {
                    let _ = write!(cell, ", below the {} {unit} aimed at", number(least));
                }
            }
        }
    }
    Some(cell)
}

/// Three significant digits, or whole numbers above that.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    // 1.50 is 1.5, and 100 stays 100.
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

fn markdown(cases: &[Case], machines: &[String]) -> String {
    let mut text =
        "| Figure | Case | Selvedge | Peers (how many times better Selvedge is) |\n|---|---|---|---|\n"
            .to_string();
    let mut previous = "";
    for Case { figure, case, ours, peers } in cases {
        let name = if figure == previous { String::new() } else { format!("`{figure}`") };
        previous = figure;
        let _ = writeln!(text, "| {name} | {case} | {} | {} |", ours.join("<br>"), peers.join("<br>"));
    }
    let _ = writeln!(text, "\nMeasured on {}.", machines.join("; "));
    text
}

fn html(cases: &[Case], machines: &[String]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let joined = |cells: &[String]| cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join("<br>");
    let mut text = format!(
        "<h2 id=\"measured\">Measured</h2>\n<div class=\"scroll\">\n<table>\n<caption>In brackets: how many times better \
        Selvedge is. Measured on {}.</caption>\n<thead><tr><th>Figure</th><th>Case</th><th>Selvedge</th><th>Peers</th></tr></thead>\n<tbody>\n",
        escaped(&machines.join("; "))
    );
    let mut previous = "";
    for Case { figure, case, ours, peers } in cases {
        let name =
            if figure == previous { String::new() } else { format!("<code>{}</code>", escaped(figure)) };
        previous = figure;
        let (case, ours, peers) = (escaped(case), joined(ours), joined(peers));
        let _ = writeln!(text, "<tr><td>{name}</td><td>{case}</td><td>{ours}</td><td>{peers}</td></tr>");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

/// The page with what stands between its marks replaced.
fn between_marks(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Value {
        serde_json::json!({"figure": "threads-switch", "machine": "2 cores", "rows": [
            {"case": "1", "system": "selvedge", "unit": "ns", "value": 4.567, "ratio": 1.0},
            {"case": "1", "system": "tokio", "unit": "ns", "value": 58.1, "ratio": 12.72, "required_ratio": 15.0, "reached": false},
            {"case": "1", "system": "GHC", "unit": "ns", "absent": "missing <ghc>"},
            {"case": "2", "system": "selvedge", "unit": "B", "value": 16.0, "required_at_most": 16.0, "reached": true},
            {"case": "2", "system": "selvedge MVar", "unit": "B", "value": 24.0},
        ]})
    }

    #[test]
    fn rows_of_one_case_share_a_line() {
        let (machine, cases) = read(&figure()).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].ours, ["4.57 ns"]);
        assert_eq!(cases[0].peers, ["tokio 58.1 ns (12.7×), short of 15×", "GHC: missing <ghc>"]);
        assert_eq!(cases[1].ours, ["16 B", "MVar 24 B"]);
        let table = markdown(&cases, std::slice::from_ref(&machine));
        assert!(table.contains("|  | 2 | 16 B<br>MVar 24 B |  |\n"), "{table}");
        assert!(table.ends_with("Measured on 2 cores.\n"));
        assert!(html(&cases, &[machine]).contains("GHC: missing &lt;ghc&gt;"));
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(between_marks(&page, "new\n").unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert!(between_marks("a", "new").is_none());
    }

    #[test]
    fn both_pages_have_their_marks() {
        for file in [README, PAGE] {
            let text = std::fs::read_to_string(workspace::root().join(file)).unwrap();
            assert!(between_marks(&text, "").is_some(), "{file}");
        }
    }

    #[test]
    fn a_file_that_is_no_measurement_is_refused() {
        assert!(read(&serde_json::json!({"figure": "x", "rows": []})).is_none());
        assert!(read(&serde_json::json!({"figure": "x", "machine": "m", "rows": [{"case": "1"}]})).is_none());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [4.567, 16.0, 58.14, 328.2, 1.5, 100.0].map(number),
            ["4.57", "16", "58.1", "328", "1.5", "100"]
        );
    }
}
