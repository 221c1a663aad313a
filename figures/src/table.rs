//! `Table` and `Row`: the result of a figure, as the text that a reader sees and the JSON that a
//! program reads. Every figure returns a `Table`, and `main.rs` prints it.
//!
//! The JSON is the format of `figures/published.json`, which `xtask/src/publish/measured.rs` reads.
//! A field that is renamed here is renamed there. A row without a value says why, in the place of
//! the value.

use crate::aims::{Aim, Aims, Bound, Entry};
use crate::effort::Purpose;
use crate::machine::Machine;
use serde_json::{Value, json};
use std::fmt::Write as _;

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
    pub(crate) aim: Option<Aim>,
    /// Why the row misses its aim, where that is known.
    pub(crate) missed: Option<String>,
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
            aim: None,
            missed: None,
            command: None,
        }
    }

    /// Whether the requirement is met; `None` without a requirement or without the number it needs.
    pub(crate) fn reached(&self) -> Option<bool> {
        self.aim?.reached(self.value.as_ref().ok().copied(), self.ratio)
    }
}

/// What stands above the columns of a table.
const HEADER: [&str; COLUMNS] =
    ["case", "system", "median", "lowest .. highest", "unit", "ratio", "required", ""];
const COLUMNS: usize = 8;

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
    /// The table with the aim of each row. What changed in an aim is a note.
    ///
    /// # Errors
    /// The aims that no row has, and the cases without an aim of which the file does not say so.
    /// Programs that run with faults give no rows that are made of others, so both are right then.
    pub(crate) fn aimed(mut self, aims: &Aims, purpose: Purpose) -> Result<Table, String> {
        let name = self.name;
        let mut open: Vec<&str> = Vec::new();
        for row in &mut self.rows {
            let entry = aims.of_row(name, &row.case, &row.system, row.unit)?;
            row.aim = entry.and_then(|entry| entry.aim);
            row.missed = entry.and_then(|entry| entry.missed.clone());
        }
        let of_figure = || aims.entries.iter().filter(|entry| entry.figure == name);
        for rows in self.rows.chunk_by(|a, b| a.case == b.case) {
            let case = rows[0].case.as_str();
            if aims.is_silent(name, case, rows.iter().map(|row| (row.system.as_str(), row.unit))) {
                open.push(case);
            }
        }
        let has_row =
            |entry: &&Entry| self.rows.iter().any(|row| entry.is_of(name, &row.case, &row.system, row.unit));
        let idle: Vec<String> = of_figure()
            .filter(|entry| entry.aim.is_some() && !has_row(entry))
            .map(|entry| format!("no row has the aim of {}", entry.rows()))
            .collect();
        if purpose != Purpose::Faults && !(open.is_empty() && idle.is_empty()) {
            let open = open.iter().map(|case| format!("aims.toml says nothing of {case}"));
            return Err(open.chain(idle).collect::<Vec<_>>().join("; "));
        }
        for entry in of_figure() {
            for was in &entry.was {
                let before = was.bound.map_or("no aim".to_owned(), |bound| bound_text(bound, ""));
                self.notes.push(format!("aim of {}: before {before}, because {}", entry.rows(), was.why));
            }
        }
        Ok(self)
    }

    /// The table as text.
    pub(crate) fn text(&self) -> String {
        let lines = self.cells();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
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

    /// The words of the table: its header, and a line for each row.
    fn cells(&self) -> Vec<[String; COLUMNS]> {
        let mut lines = vec![HEADER.map(str::to_owned)];
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
                row.ratio.map(|ratio| format!("{}x", number(ratio))).unwrap_or_default(),
                row.aim.map_or_else(String::new, |aim| bound_text(aim.bound, row.unit)),
                match (&row.value, row.reached()) {
                    (Err(why), _) => why.clone(),
                    (_, Some(true)) => "reached".to_owned(),
                    (_, Some(false)) => {
                        let known = row.missed.as_ref();
                        known.map_or_else(|| "MISSED".to_owned(), |reason| format!("MISSED: {reason}"))
                    }
                    (_, None) if row.aim.is_some() => "unknown".to_owned(),
                    _ => String::new(),
                },
            ]);
        }
        lines
    }

    /// The table for a program.
    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let bound = row.aim.map(|aim| aim.bound);
                json!({
                    "case": row.case,
                    "system": row.system,
                    "value": row.value.as_ref().ok(),
                    "absent": row.value.as_ref().err(),
                    "low": row.range.map(|range| range.0),
                    "high": row.range.map(|range| range.1),
                    "unit": row.unit,
                    "ratio": row.ratio,
                    "required_ratio": match bound { Some(Bound::Times(times)) => Some(times), _ => None },
                    "required_at_most": match bound { Some(Bound::AtMost(limit)) => Some(limit), _ => None },
                    "required_at_least": match bound { Some(Bound::AtLeast(limit)) => Some(limit), _ => None },
                    "reached": row.reached(),
                    "reason": row.missed.as_ref().filter(|_| row.reached() == Some(false)),
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

/// `>= 12.0x`, `<= 16.0 bytes`.
fn bound_text(bound: Bound, unit: &str) -> String {
    let text = match bound {
        Bound::Times(times) => format!(">= {}x", number(times)),
        Bound::AtMost(most) => format!("<= {} {unit}", number(most)),
        Bound::AtLeast(least) => format!(">= {} {unit}", number(least)),
    };
    text.trim_end().to_owned()
}

/// Three significant digits, or whole numbers above that; below a thousandth with a power of ten.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        v if v >= 1e-3 => {
            // The logarithm of such a value is between -3 and 0.
            let digits = 2 - v.log10().floor() as i32;
            format!("{value:.*}", digits as usize)
        }
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Result<f64, String>, bound: Bound) -> Row {
        let aim = Some(Aim { bound, tolerance: 0.0 });
        Row { value, unit: "ns", aim, ..Row::plain("c", "s") }
    }

    #[test]
    fn small_numbers_keep_three_digits() {
        let numbers = [8.878_8e-5, 0.996, 0.012_34, 0.5, 0.0, 4.567, 58.14, 328.2].map(number);
        assert_eq!(numbers, ["8.88e-5", "0.996", "0.0123", "0.500", "0.00", "4.57", "58.1", "328"]);
    }

    #[test]
    fn why_an_aim_is_missed_stands_beside_it() {
        let missed = Some("it is larger".to_owned());
        let of = |value| Row { missed: missed.clone(), ..row(Ok(value), Bound::AtMost(16.0)) };
        let machine = Machine { description: "m".into(), load: "0.1".into(), commit: "c".into() };
        let (name, title) = ("f", "t".to_owned());
        let table = Table { name, title, machine, rows: vec![of(24.0), of(16.0)], notes: vec![] };
        assert_eq!(table.text().matches("MISSED: it is larger").count(), 1);
        assert_eq!(table.json()["commit"], "c");
        assert_eq!(table.json()["rows"][0]["reason"], "it is larger");
        assert_eq!(table.json()["rows"][1]["reason"], Value::Null);
    }

    const AIMS: &str = "[[aim]]\nfigure = \"f\"\ncases = \"c\"\nsystems = \"s\"\nasked = \"X\"\nat_most = 16.0\n\
        was = [{ at_most = 20.0, why = \"it was larger\" }]\n\
        [[without]]\nfigure = \"f\"\ncases = \"free\"\nwhy = \"w\"\n";

    fn aimed(rows: Vec<Row>, purpose: Purpose) -> Result<Table, String> {
        let machine = Machine { description: "m".into(), load: "0.1".into(), commit: "c".into() };
        Table { name: "f", title: "t".to_owned(), machine, rows, notes: vec![] }
            .aimed(&Aims::read(AIMS).unwrap(), purpose)
    }

    #[test]
    fn rows_take_their_aims_from_the_file() {
        let rows = vec![Row { value: Ok(17.0), ..Row::plain("c", "s") }, Row::plain("free", "s")];
        let table = aimed(rows, Purpose::Times).unwrap();
        assert_eq!([0, 1].map(|row: usize| table.rows[row].reached()), [Some(false), None]);
        assert_eq!(table.notes, ["aim of c: s: before <= 20.0, because it was larger"]);
    }

    #[test]
    fn an_aim_without_a_row_and_a_case_without_an_aim_are_errors() {
        let error = |case| aimed(vec![Row::plain(case, "s")], Purpose::Answers).unwrap_err();
        assert_eq!(error("free"), "no row has the aim of c: s");
        assert_eq!(error("d"), "aims.toml says nothing of d; no row has the aim of c: s");
        assert!(aimed(vec![Row::plain("d", "s")], Purpose::Faults).is_ok());
    }

    #[test]
    fn the_committed_file_can_be_read() {
        let aims = Aims::read(crate::AIMS).unwrap();
        let names: Vec<&str> = crate::all_figures().map(|figure| figure.name).collect();
        for entry in &aims.entries {
            assert!(names.contains(&entry.figure.as_str()), "{}", entry.figure);
        }
    }

    #[test]
    fn a_missing_peer_is_shown_and_not_skipped() {
        let table = Table {
            name: "f",
            title: "t".into(),
            machine: Machine { description: "m".into(), load: "0.1".into(), commit: "c".into() },
            rows: vec![row(Err("missing (apt-get install ghc)".into()), Bound::Times(2.0))],
            notes: vec![],
        };
        let text = table.text();
        assert!(text.contains("missing (apt-get install ghc)"), "{text}");
        assert!(text.contains(">= 2.00x"), "{text}");
        assert_eq!(table.json()["rows"][0]["absent"], "missing (apt-get install ghc)");
    }
}
