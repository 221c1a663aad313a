//! `Table` and `Row`: the result of a figure, as the text that a reader sees and the JSON that a
//! program reads. Every figure returns a `Table`, and `main.rs` prints it.
//!
//! The JSON is the format of `figures/published.json`, which `xtask/src/publish/measured.rs` reads.
//! A field that is renamed here is renamed there. A row without a value says why, in the place of
//! the value.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::Machine;

/// The aim of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// Our value must be at least this many times better than the row's.
    Times(f64),
    /// The row's own value must not exceed this.
    AtMost(f64),
    /// The row's own value must not fall below this.
    AtLeast(f64),
}

/// One system's result in one case.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The case, for instance `1000 live threads`.
    pub(crate) case: String,
    /// The system that did it.
    pub(crate) system: String,
    /// The median of the rounds, or why there is none.
    pub(crate) value: Result<f64, String>,
    /// The lowest and the highest of the rounds.
    pub(crate) range: Option<(f64, f64)>,
    /// The unit of `value`.
    pub(crate) unit: &'static str,
    /// How many times better ours is than this row (above 1: ours is better).
    pub(crate) ratio: Option<f64>,
    /// The aim of the row, if it has one.
    pub(crate) need: Option<Need>,
    /// Why the row misses its aim, where that is known.
    pub(crate) reason: Option<&'static str>,
    /// How the row was obtained.
    pub(crate) command: Option<String>,
}

impl Row {
    /// A number that a paper gives, on its own machine.
    pub(crate) fn paper(case: &str, place: &str, value: f64, unit: &'static str) -> Row {
        Row { value: Ok(value), unit, ..Row::plain(case, &format!("paper [{place}]")) }
    }

    /// A row without a number yet. The number is computed from other rows.
    pub(crate) fn plain(case: &str, system: &str) -> Row {
        Row {
            case: case.to_owned(),
            system: system.to_owned(),
            value: Err("not computed".to_owned()),
            range: None,
            unit: "",
            ratio: None,
            need: None,
            reason: None,
            command: None,
        }
    }

    /// Whether the requirement is met; `None` without a requirement or without the number it needs.
    pub(crate) fn reached(&self) -> Option<bool> {
        match self.need? {
            Need::Times(times) => self.ratio.map(|ratio| (ratio * 100.0).round() >= (times * 100.0).round()),
            // To two decimals: resident memory comes in pages, a few of which are not the threads'.
            Need::AtMost(limit) => {
                self.value.as_ref().ok().map(|value| (value * 100.0).round() <= limit * 100.0)
            }
            Need::AtLeast(limit) => {
                self.value.as_ref().ok().map(|value| (value * 100.0).round() >= limit * 100.0)
            }
        }
    }
}

/// A measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The name it is asked for by.
    pub(crate) name: &'static str,
    /// The measured thing and the method, in a sentence or two.
    pub(crate) title: String,
    /// The machine it was measured on.
    pub(crate) machine: Machine,
    /// The results, grouped by case.
    pub(crate) rows: Vec<Row>,
    /// Facts that a reader needs to judge the rows.
    pub(crate) notes: Vec<String>,
}

impl Table {
    /// The table as text.
    pub(crate) fn text(&self) -> String {
        let header = ["case", "system", "median", "lowest .. highest", "unit", "ratio", "required", ""];
        let mut lines = vec![header.map(str::to_owned)];
        let mut previous = "";
        for row in &self.rows {
            let case = if row.case == previous { String::new() } else { row.case.clone() };
            previous = &row.case;
            lines.push([
                case,
                row.system.clone(),
                row.value.as_ref().map_or_else(|_| "-".to_owned(), |value| number(*value)),
                row.range
                    .map(|(low, high)| format!("{} .. {}", number(low), number(high)))
                    .unwrap_or_default(),
                row.value.as_ref().map_or_else(|_| String::new(), |_| row.unit.to_owned()),
                row.ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
                match row.need {
                    Some(Need::Times(times)) => format!(">= {}x", (times * 100.0).round() / 100.0),
                    Some(Need::AtMost(limit)) => format!("<= {} {}", number(limit), row.unit),
                    Some(Need::AtLeast(limit)) => format!(">= {} {}", number(limit), row.unit),
                    None => String::new(),
                },
                match (&row.value, row.reached()) {
                    (Err(why), _) => why.clone(),
                    (_, Some(true)) => "reached".to_owned(),
                    (_, Some(false)) => {
                        row.reason.map_or_else(|| "MISSED".to_owned(), |reason| format!("MISSED: {reason}"))
                    }
                    (_, None) if row.need.is_some() => "unknown".to_owned(),
                    _ => String::new(),
                },
            ]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..header.len()).map(width).collect();
        let mut text = format!(
            "{}: {}\nmachine: {}; load average {} at the start\n\n",
            self.name, self.title, self.machine.description, self.machine.load
        );
        for (index, line) in lines.iter().enumerate() {
            if index > 1 && !line[0].is_empty() {
                text.push('\n');
            }
            let mut padded = String::new();
            for (column, cell) in line.iter().enumerate() {
                // Numbers are aligned on the right, words on the left.
                let right = matches!(column, 2 | 3 | 5);
                let width = widths[column];
                let _ = if right {
                    write!(padded, "{cell:>width$}  ")
                } else {
                    write!(padded, "{cell:<width$}  ")
                };
            }
            text.push_str(padded.trim_end());
            text.push('\n');
        }
        if !self.notes.is_empty() {
            text.push('\n');
            for note in &self.notes {
                let _ = writeln!(text, "note: {note}");
            }
        }
        text.push_str("\nratio: how many times better the first row of a case is than this one\n");
        text.push_str("commands (each system's first; --json has that of every row):\n");
        let mut seen = Vec::new();
        for row in &self.rows {
            if let Some(command) = &row.command
                && !seen.contains(&&row.system)
            {
                let _ = writeln!(text, "  {}: {command}", row.system);
                seen.push(&row.system);
            }
        }
        text
    }

    /// The table for a program.
    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "case": row.case,
                    "system": row.system,
                    "value": row.value.as_ref().ok(),
                    "absent": row.value.as_ref().err(),
                    "low": row.range.map(|range| range.0),
                    "high": row.range.map(|range| range.1),
                    "unit": row.unit,
                    "ratio": row.ratio,
                    "required_ratio": match row.need { Some(Need::Times(times)) => Some(times), _ => None },
                    "required_at_most": match row.need { Some(Need::AtMost(limit)) => Some(limit), _ => None },
                    "required_at_least": match row.need { Some(Need::AtLeast(limit)) => Some(limit), _ => None },
                    "reached": row.reached(),
                    "reason": row.reason.filter(|_| row.reached() == Some(false)),
                    "command": row.command,
                })
            })
            .collect();
        json!({
            "figure": self.name,
            "title": self.title,
            "machine": self.machine.description,
            "commit": self.machine.commit,
            "load_average": self.machine.load,
            "notes": self.notes,
            "rows": rows,
        })
    }
}

/// Three significant digits, or whole numbers above that.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Result<f64, String>, ratio: Option<f64>, need: Option<Need>) -> Row {
        Row {
            case: "c".into(),
            system: "s".into(),
            value,
            range: None,
            unit: "ns",
            ratio,
            need,
            reason: None,
            command: None,
        }
    }

    #[test]
    fn a_requirement_is_judged_by_what_it_speaks_of() {
        assert_eq!(row(Ok(60.0), Some(12.5), Some(Need::Times(12.0))).reached(), Some(true));
        assert_eq!(row(Ok(60.0), Some(11.9), Some(Need::Times(12.0))).reached(), Some(false));
        assert_eq!(row(Ok(16.01), None, Some(Need::AtMost(16.0))).reached(), Some(false));
        assert_eq!(row(Ok(16.0004), None, Some(Need::AtMost(16.0))).reached(), Some(true));
        assert_eq!(row(Ok(1.949), None, Some(Need::AtLeast(1.95))).reached(), Some(true));
        assert_eq!(row(Ok(1.94), None, Some(Need::AtLeast(1.95))).reached(), Some(false));
        assert_eq!(row(Err("missing".into()), None, Some(Need::Times(2.0))).reached(), None);
        assert_eq!(row(Ok(1.0), Some(1.0), None).reached(), None);
    }

    #[test]
    fn why_an_aim_is_missed_stands_beside_it() {
        let reason = Some("it is larger");
        let of = |value| Row { reason, ..row(Ok(value), None, Some(Need::AtMost(16.0))) };
        let machine = Machine { description: "m".into(), load: "0.1".into(), commit: "c".into() };
        let (name, title) = ("f", "t".to_owned());
        let table = Table { name, title, machine, rows: vec![of(24.0), of(16.0)], notes: vec![] };
        assert_eq!(table.text().matches("MISSED: it is larger").count(), 1);
        assert_eq!(table.json()["commit"], "c");
        assert_eq!(table.json()["rows"][0]["reason"], "it is larger");
        assert_eq!(table.json()["rows"][1]["reason"], Value::Null);
    }

    #[test]
    fn a_missing_peer_is_shown_and_not_skipped() {
        let table = Table {
            name: "f",
            title: "t".into(),
            machine: Machine { description: "m".into(), load: "0.1".into(), commit: "c".into() },
            rows: vec![row(Err("missing (apt-get install ghc)".into()), None, Some(Need::Times(2.0)))],
            notes: vec![],
        };
        let text = table.text();
        assert!(text.contains("missing (apt-get install ghc)"), "{text}");
        assert!(text.contains(">= 2x"), "{text}");
        assert_eq!(table.json()["rows"][0]["absent"], "missing (apt-get install ghc)");
    }
}
