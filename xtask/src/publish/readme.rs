//! The six rows of figures in the README. `publish.rs` calls `table`, and puts the result between
//! the marks in `README.md`.
//!
//! One of the rows is a row in which a peer is better, as long as there is such a row. `table`
//! refuses six rows that hide it. A row that is not measured is an error, so a figure that gets a
//! new name changes the list here.

use super::measured::{Figure, Row, number};
use std::fmt::Write;

/// One row: the words a reader sees, and where its two values stand.
#[derive(Debug)]
struct Shown {
    words: &'static str,
    figure: &'static str,
    case: &'static str,
    ours: &'static str,
    peer: &'static str,
}

const SHOWN: [Shown; 6] = [
    Shown {
        words: "memory of a thread",
        figure: "threads-memory",
        case: "100000 threads",
        ours: "selvedge",
        peer: "tokio",
    },
    Shown {
        words: "switch between 1000 threads",
        figure: "threads-switch",
        case: "1000 threads",
        ours: "selvedge",
        peer: "tokio, waking itself",
    },
    Shown {
        words: "the same, beside bare C++20 coroutines in a queue",
        figure: "threads-switch",
        case: "1000 threads",
        ours: "selvedge",
        peer: "C++20 coroutine queue",
    },
    Shown {
        words: "start a thread, and join it",
        figure: "threads-spawn",
        case: "with a handle, joined",
        ours: "selvedge JoinHandle",
        peer: "tokio JoinHandle",
    },
    Shown {
        words: "set a timer, of a million",
        figure: "timers",
        case: "set, with up to 1 million pending",
        ours: "selvedge",
        peer: "tokio",
    },
    Shown {
        words: "serve a file of 612 bytes",
        figure: "web-small",
        case: "request rate",
        ours: "selvedge-httpd",
        peer: "nginx, sendfile off",
    },
];

/// The table as Markdown.
///
/// # Errors
/// When a row is not measured, and when the six rows hide that a peer is better somewhere.
pub(super) fn table(figures: &[Figure]) -> Result<String, String> {
    let mut text = "| | Selvedge | Beside it | Times better |\n|---|---|---|---|\n".to_string();
    let mut loses = false;
    for Shown { words, figure, case, ours, peer } in &SHOWN {
        let row = |system: &str| {
            let found = figures.iter().find(|found| found.name == *figure);
            found
                .and_then(|found| found.row(case, system))
                .ok_or_else(|| format!("{figure}: {case}: no row of {system}, which the README shows"))
        };
        let (ours, theirs) = (row(ours)?, row(peer)?);
        let value = |row: &Row| match &row.value {
            Ok(value) => format!("{} {}", number(*value), row.unit),
            Err(why) => why.clone(),
        };
        let (ours, value) = (value(ours), value(theirs));
        let times = theirs.ratio.map_or(String::new(), |ratio| format!("{}×", number(ratio)));
        loses |= theirs.ratio.is_some_and(|ratio| ratio < 1.0);
        let _ = writeln!(text, "| {words} | {ours} | {peer}: {value} | {times} |");
    }
    if !loses && let Some(lost) = figures.iter().flat_map(Figure::losses).map(|loss| loss.peer).next() {
        return Err(format!(
            "the README's rows show no peer that is better, and {} is in {}: change a row in {}",
            lost.system,
            lost.case,
            file!()
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::measured::figures;
    use super::*;

    /// The six rows, in all of which ours is `ratio` times better, and one lost row elsewhere.
    fn measured(ratio: f64) -> Vec<Figure> {
        let mut all: Vec<serde_json::Value> = SHOWN
            .iter()
            .map(|Shown { figure, case, ours, peer, .. }| {
                serde_json::json!({"figure": figure, "title": "t", "machine": "m", "commit": "c", "rows": [
                    {"case": case, "system": ours, "unit": "ns", "value": 10.0},
                    {"case": case, "system": peer, "unit": "ns", "value": 10.0 * ratio, "ratio": ratio},
                ]})
            })
            .collect();
        // Two rows are of one figure, which is found by its name.
        let other = all.remove(2)["rows"].as_array().unwrap().clone();
        all[1]["rows"].as_array_mut().unwrap().extend(other);
        all.push(serde_json::json!({"figure": "x", "title": "t", "machine": "m", "commit": "c", "rows": [
            {"case": "a", "system": "selvedge", "unit": "ns", "value": 2.0},
            {"case": "a", "system": "tokio", "unit": "ns", "value": 1.0, "ratio": 0.5},
        ]}));
        figures("f", &serde_json::Value::Array(all).to_string()).unwrap()
    }

    #[test]
    fn six_rows_with_their_peers() {
        let text = table(&measured(0.5)).unwrap();
        assert_eq!(text.lines().count(), 8);
        assert!(text.contains("| memory of a thread | 10 ns | tokio: 5 ns | 0.5× |\n"), "{text}");
    }

    #[test]
    fn a_row_that_is_lost_is_among_them() {
        assert!(table(&measured(2.0)).unwrap_err().contains("tokio"));
    }

    #[test]
    fn a_row_that_was_not_measured_is_named() {
        assert!(table(&measured(0.5)[1..]).unwrap_err().starts_with("threads-memory: 100000 threads"));
    }
}
