//! `cargo xtask publish FILE..`: puts measured figures into the README and the site, the same in
//! both: a summary with one line for each figure, every row in which a peer is better, and all that
//! was measured.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::workspace;

/// What stands in a page between two lines of its own.
struct Marks {
    begin: &'static str,
    end: &'static str,
}

const SUMMARY: Marks = Marks { begin: "<!-- summary: begin -->", end: "<!-- summary: end -->" };
const LOSSES: Marks = Marks { begin: "<!-- losses: begin -->", end: "<!-- losses: end -->" };
const FIGURES: Marks = Marks { begin: "<!-- figures: begin -->", end: "<!-- figures: end -->" };

const README: &str = "README.md";
const PAGE: &str = "site/figures/index.html";

/// Systems with a name that starts so are ours.
const OURS: &str = "selvedge";

/// Peers that are one system in the summary, whatever they were made to do.
const FAMILIES: [&str; 8] = ["tokio", "Go", "GHC", "C", "C++20", "nginx", "fio", "Rust"];
/// What is measured beside us without being a peer: a bound, or a number of another machine.
const NO_PEERS: [&str; 3] = ["limit", "paper", "the machine"];

/// One figure: what it is about, and how it went.
#[derive(Debug)]
struct Figure {
    name: String,
    title: String,
    machine: String,
    cases: Vec<Case>,
    /// Each peer, and how many times better we were than its fastest variant in each case, by the
    /// number of the case.
    against: Vec<(String, BTreeMap<usize, f64>)>,
    /// Every row in which a peer is better: the case, the system, how many times better we were.
    losses: Vec<(String, String, f64)>,
    /// How many of the ratios and limits aimed at were reached, and how many there are.
    aims: (usize, usize),
}

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
    let mut figures = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        let json: Value = serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))?;
        for figure in json.as_array().ok_or(format!("{file}: no array of figures"))? {
            figures
                .push(read(figure).ok_or(format!("{file}: a figure without name, title, machine or rows"))?);
        }
    }
    let root = workspace::root();
    for (file, summary, losses, table) in [
        (README, markdown_summary(&figures), markdown_losses(&figures), markdown(&figures)),
        (PAGE, html_summary(&figures), html_losses(&figures), html(&figures)),
    ] {
        let path = root.join(file);
        let mut text = std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        for (marks, new) in [(SUMMARY, summary), (LOSSES, losses), (FIGURES, table)] {
            text =
                between(&marks, &text, &new).ok_or(format!("{file}: no {} .. {}", marks.begin, marks.end))?;
        }
        std::fs::write(&path, text).map_err(|e| format!("{file}: {e}"))?;
        println!("publish: wrote {} figures to {file}", figures.len());
    }
    Ok(())
}

/// The figure with its cases in their order.
fn read(figure: &Value) -> Option<Figure> {
    let text = |key: &str| Some(figure.get(key)?.as_str()?.to_string());
    let mut read = Figure {
        name: text("figure")?,
        title: text("title")?,
        machine: text("machine")?,
        cases: Vec::new(),
        against: Vec::new(),
        losses: Vec::new(),
        aims: (0, 0),
    };
    for row in figure.get("rows")?.as_array()? {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let (case, system) = (text("case")?, text("system")?);
        if read.cases.last().is_none_or(|last| last.case != case) {
            read.cases.push(Case { figure: read.name.clone(), case: case.to_string(), ..Case::default() });
        }
        let cell = cell(row, system, text("unit").unwrap_or(""), text("absent"))?;
        let last = read.cases.last_mut()?;
        let ours = system.starts_with(OURS);
        let side = if ours { &mut last.ours } else { &mut last.peers };
        side.push(cell);
        if let Some(reached) = row.get("reached").and_then(Value::as_bool) {
            read.aims.0 += usize::from(reached);
            read.aims.1 += 1;
        }
        let ratio = row.get("ratio").and_then(Value::as_f64);
        if let (Some(ratio), Some(family)) = (ratio.filter(|_| !ours), family(system)) {
            if ratio < 1.0 {
                read.losses.push((case.to_string(), system.to_string(), ratio));
            }
            let case = read.cases.len();
            let known = read.against.iter().position(|(name, _)| name == family).unwrap_or_else(|| {
                read.against.push((family.to_string(), BTreeMap::new()));
                read.against.len() - 1
            });
            let fastest = read.against[known].1.entry(case).or_insert(ratio);
            *fastest = fastest.min(ratio);
        }
    }
    Some(read)
}

/// The peer that a system is, in short.
fn family(system: &str) -> Option<&str> {
    if NO_PEERS.iter().any(|no_peer| system.starts_with(no_peer)) {
        return None;
    }
    let first = system.split([' ', ',']).next()?;
    Some(if FAMILIES.contains(&first) { first } else { system })
}

/// `tokio 6.8× (2.5–19×)`: the median of the cases (the lower of two), the worst and the best. A
/// peer with several variants is in each case its fastest.
fn against(figure: &Figure) -> Vec<String> {
    let one = |(name, ratios): &(String, BTreeMap<usize, f64>)| {
        let mut sorted: Vec<f64> = ratios.values().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let (worst, median, best) = (sorted.first()?, sorted.get((sorted.len() - 1) / 2)?, sorted.last()?);
        Some(match sorted.len() {
            1 => format!("{name} {}×", number(*median)),
            _ => format!("{name} {}× ({}–{}×)", number(*median), number(*worst), number(*best)),
        })
    };
    figure.against.iter().filter_map(one).collect()
}

/// `13 of 15`, or nothing if nothing was aimed at.
fn aims(figure: &Figure) -> String {
    match figure.aims {
        (_, 0) => String::new(),
        (reached, all) => format!("{reached} of {all}"),
    }
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
        if let Some(reason) = row.get("reason").and_then(Value::as_str) {
            let _ = write!(cell, ": {reason}");
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

fn machines(figures: &[Figure]) -> String {
    let mut machines: Vec<&str> = figures.iter().map(|figure| figure.machine.as_str()).collect();
    machines.dedup();
    machines.join("; ")
}

fn markdown_summary(figures: &[Figure]) -> String {
    let mut text =
        "| Figure | What | How many times better than | Aims reached |\n|---|---|---|---|\n".to_string();
    for figure in figures {
        let (name, title) = (&figure.name, &figure.title);
        let _ =
            writeln!(text, "| `{name}` | {title} | {} | {} |", against(figure).join("<br>"), aims(figure));
    }
    text
}

/// `1000 threads: C++20 coroutine queue 0.4×; ..`: the rows of one figure in which a peer is
/// better.
fn losses(figure: &Figure) -> Option<String> {
    let one = |(case, system, ratio): &(String, String, f64)| format!("{case}: {system} {}×", number(*ratio));
    let all: Vec<String> = figure.losses.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn markdown_losses(figures: &[Figure]) -> String {
    let one = |figure: &Figure| Some(format!("- `{}`: {}\n", figure.name, losses(figure)?));
    figures.iter().filter_map(one).collect()
}

fn html_losses(figures: &[Figure]) -> String {
    let one = |figure: &Figure| {
        let (name, losses) = (escaped(&figure.name), escaped(&losses(figure)?));
        Some(format!("<li><code>{name}</code>: {losses}</li>\n"))
    };
    let items: String = figures.iter().filter_map(one).collect();
    format!("<ul>\n{items}</ul>\n")
}

fn markdown(figures: &[Figure]) -> String {
    let mut text =
        "| Figure | Case | Selvedge | Peers (how many times better Selvedge is) |\n|---|---|---|---|\n"
            .to_string();
    let mut previous = "";
    for Case { figure, case, ours, peers } in figures.iter().flat_map(|figure| &figure.cases) {
        let name = if figure == previous { String::new() } else { format!("`{figure}`") };
        previous = figure;
        let _ = writeln!(text, "| {name} | {case} | {} | {} |", ours.join("<br>"), peers.join("<br>"));
    }
    let _ = writeln!(text, "\nMeasured on {}.", machines(figures));
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn lines(cells: &[String]) -> String {
    cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join("<br>")
}

fn html_summary(figures: &[Figure]) -> String {
    let mut text = "<div class=\"scroll\">\n<table>\n<thead><tr><th>Figure</th><th>What</th><th>How many times better than</th>\
        <th>Aims reached</th></tr></thead>\n<tbody>\n"
        .to_string();
    for figure in figures {
        let (name, title) = (escaped(&figure.name), escaped(&figure.title));
        let (against, aims) = (lines(&against(figure)), aims(figure));
        let _ = writeln!(
            text,
            "<tr><td><code>{name}</code></td><td>{title}</td><td>{against}</td><td>{aims}</td></tr>"
        );
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

fn html(figures: &[Figure]) -> String {
    let mut text = format!(
        "<div class=\"scroll\">\n<table>\n<caption>In brackets: how many times better \
        Selvedge is. Measured on {}.</caption>\n<thead><tr><th>Figure</th><th>Case</th><th>Selvedge</th><th>Peers</th></tr></thead>\n<tbody>\n",
        escaped(&machines(figures))
    );
    let mut previous = "";
    for Case { figure, case, ours, peers } in figures.iter().flat_map(|figure| &figure.cases) {
        let name =
            if figure == previous { String::new() } else { format!("<code>{}</code>", escaped(figure)) };
        previous = figure;
        let (case, ours, peers) = (escaped(case), lines(ours), lines(peers));
        let _ = writeln!(text, "<tr><td>{name}</td><td>{case}</td><td>{ours}</td><td>{peers}</td></tr>");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

/// The page with what stands between its marks replaced.
fn between(marks: &Marks, page: &str, new: &str) -> Option<String> {
    let Marks { begin, end } = marks;
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{new}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Value {
        serde_json::json!({"figure": "threads-switch", "title": "a yield", "machine": "2 cores", "rows": [
            {"case": "1", "system": "selvedge", "unit": "ns", "value": 4.567, "ratio": 1.0},
            {"case": "1", "system": "tokio", "unit": "ns", "value": 58.1, "ratio": 12.72, "required_ratio": 15.0, "reached": false},
            {"case": "1", "system": "tokio, in its own way", "unit": "ns", "value": 100.0, "ratio": 21.9},
            {"case": "1", "system": "limit", "unit": "ns", "value": 1.0, "ratio": 0.2},
            {"case": "1", "system": "C++20 <queue>", "unit": "ns", "value": 2.0, "ratio": 0.44},
            {"case": "1", "system": "GHC", "unit": "ns", "absent": "missing <ghc>"},
            {"case": "2", "system": "selvedge", "unit": "B", "value": 16.0, "required_at_most": 16.0, "reached": true},
            {"case": "2", "system": "selvedge MVar", "unit": "B", "value": 24.0, "required_at_most": 16.0, "reached": false, "reason": "it is larger"},
        ]})
    }

    #[test]
    fn rows_of_one_case_share_a_line() {
        let figure = read(&figure()).unwrap();
        let cases = &figure.cases;
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].ours, ["4.57 ns"]);
        assert_eq!(cases[0].peers[0], "tokio 58.1 ns (12.7×), short of 15×");
        assert_eq!(cases[0].peers[4], "GHC: missing <ghc>");
        assert_eq!(cases[1].ours, ["16 B", "MVar 24 B, above the 16 B aimed at: it is larger"]);
        let table = markdown(std::slice::from_ref(&figure));
        assert!(table.contains("|  | 2 | 16 B<br>MVar 24 B, above"), "{table}");
        assert!(table.ends_with("Measured on 2 cores.\n"));
        assert!(html(&[figure]).contains("GHC: missing &lt;ghc&gt;"));
    }

    #[test]
    fn the_summary_has_a_line_for_each_figure() {
        let figures = [read(&figure()).unwrap()];
        // tokio's other variant is slower, and is left out.
        let line = "| `threads-switch` | a yield | tokio 12.7×<br>C++20 0.44× | 1 of 3 |\n";
        assert!(markdown_summary(&figures).ends_with(line), "{}", markdown_summary(&figures));
        assert!(html_summary(&figures).contains("<td>tokio 12.7×<br>C++20 0.44×</td><td>1 of 3</td>"));
    }

    #[test]
    fn every_row_in_which_a_peer_is_better_is_listed() {
        let figures = [read(&figure()).unwrap()];
        assert_eq!(markdown_losses(&figures), "- `threads-switch`: 1: C++20 <queue> 0.44×\n");
        let item = "<li><code>threads-switch</code>: 1: C++20 &lt;queue&gt; 0.44×</li>\n";
        assert_eq!(html_losses(&figures), format!("<ul>\n{item}</ul>\n"));
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let Marks { begin, end } = FIGURES;
        let page = format!("a\n{begin}\nold\n{end}\nb\n");
        assert_eq!(between(&FIGURES, &page, "new\n").unwrap(), format!("a\n{begin}\nnew\n{end}\nb\n"));
        assert!(between(&SUMMARY, &page, "new").is_none());
    }

    #[test]
    fn both_pages_have_their_marks() {
        for file in [README, PAGE] {
            let text = std::fs::read_to_string(workspace::root().join(file)).unwrap();
            for marks in [SUMMARY, LOSSES, FIGURES] {
                assert!(between(&marks, &text, "").is_some(), "{file}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_measurement_is_refused() {
        assert!(read(&serde_json::json!({"figure": "x", "title": "t", "rows": []})).is_none());
        assert!(
            read(&serde_json::json!({"figure": "x", "title": "t", "machine": "m", "rows": [{"case": "1"}]}))
                .is_none()
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [4.567, 16.0, 58.14, 328.2, 1.5, 100.0].map(number),
            ["4.57", "16", "58.1", "328", "1.5", "100"]
        );
    }
}
