//! The measurements that are published: `figures/published.json`, read into rows, and the
//! comparison of the rows with each peer. Every page and plot of [`super`] is made from these
//! types.

use super::aims::{Aim, Aims, Bound};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The file with the measurements, from the root.
pub(crate) const FILE: &str = "figures/published.json";

/// The names of our systems begin with one of these.
const OURS: [&str; 2] = ["selvedge", "one session"];

/// Peers that are one system in the summary, in all their variants.
const FAMILIES: [&str; 8] = ["tokio", "Go", "GHC", "C", "C++20", "nginx", "fio", "Rust"];
/// Rows that stand beside ours without being a peer: a bound, or a number of another machine.
const NO_PEERS: [&str; 3] = ["limit", "paper", "the machine"];

/// The fields of a row that are published. The command is not, because it names directories of
/// the machine that ran it.
const ROW: [&str; 13] = [
    "case",
    "system",
    "value",
    "low",
    "high",
    "unit",
    "ratio",
    "required_ratio",
    "required_at_most",
    "required_at_least",
    "reached",
    "absent",
    "reason",
];

/// One measured figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) name: String,
    /// The measured thing, in a sentence.
    pub(super) title: String,
    /// Processor, cores, memory and kernel.
    pub(super) machine: String,
    /// The commit that was measured.
    pub(super) commit: String,
    pub(super) notes: Vec<String>,
    /// The rows of one case stand side by side.
    pub(super) rows: Vec<Row>,
}

/// One system's result in one case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) case: String,
    pub(super) system: String,
    /// The median, or the reason why there is none.
    pub(super) value: Result<f64, String>,
    pub(super) unit: String,
    /// How many times better our first system of the case is.
    pub(super) ratio: Option<f64>,
    pub(super) aim: Option<Bound>,
    pub(super) reached: Option<bool>,
    /// Why the aim is missed, where that is known.
    pub(super) reason: Option<String>,
}

/// A row in which a peer is better than one of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss<'a> {
    pub(super) ours: &'a Row,
    pub(super) peer: &'a Row,
    /// How many times better ours is: less than 1.
    pub(super) ratio: f64,
    /// Whether ours is the first row of the case, and no variant.
    pub(super) is_first: bool,
}

/// Reads an array of figures. The error names the parts that may be missing.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Value>, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("{file}: {e}"))?;
    let Value::Array(figures) = json else { return Err(format!("{file}: no array of figures")) };
    if figures.iter().any(|figure| Figure::of(figure).is_none()) {
        return Err(format!("{file}: a figure without name, title, machine, commit or rows"));
    }
    Ok(figures)
}

/// The figures of a text that [`read`] accepts.
pub(super) fn figures(file: &str, text: &str) -> Result<Vec<Figure>, String> {
    Ok(read(file, text)?.iter().filter_map(Figure::of).collect())
}

/// Puts `new` figures in the place of those of the same name; those without a predecessor come
/// last.
pub(super) fn merge(published: &mut Vec<Value>, new: Vec<Value>) {
    for figure in new {
        match published.iter_mut().find(|known| known.get("figure") == figure.get("figure")) {
            Some(known) => *known = figure,
            None => published.push(figure),
        }
    }
}

/// The text of [`FILE`]: a row a line, without the fields that are not published.
pub(super) fn text(figures: &[Value]) -> String {
    let one = |figure: &Value| {
        let kept = |value: &Value, keys: &[&str]| {
            let object = value.as_object().into_iter().flatten();
            let kept = object.filter(|(key, value)| keys.contains(&key.as_str()) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
        };
        let head = kept(figure, &["figure", "title", "machine", "commit", "load_average", "notes"]);
        let rows = figure.get("rows").and_then(Value::as_array).into_iter().flatten();
        let rows: Vec<String> = rows.map(|row| kept(row, &ROW).to_string()).collect();
        // The head without its closing brace, and then the rows.
        let head = head.to_string();
        format!("{},\"rows\":[\n{}\n]}}", head.trim_end_matches('}'), rows.join(",\n"))
    };
    format!("[\n{}\n]\n", figures.iter().map(one).collect::<Vec<_>>().join(",\n"))
}

impl Figure {
    fn of(figure: &Value) -> Option<Figure> {
        let text = |key: &str| Some(figure.get(key)?.as_str()?.to_string());
        let notes = figure.get("notes").and_then(Value::as_array).into_iter().flatten();
        Some(Figure {
            name: text("figure")?,
            title: text("title")?,
            machine: text("machine")?,
            commit: text("commit")?,
            notes: notes.filter_map(|note| Some(note.as_str()?.to_string())).collect(),
            rows: figure.get("rows")?.as_array()?.iter().map(Row::of).collect::<Option<_>>()?,
        })
    }

    /// Each case with its rows, in their order.
    pub(super) fn cases(&self) -> impl Iterator<Item = (&str, &[Row])> {
        self.rows.chunk_by(|a, b| a.case == b.case).map(|rows| (rows[0].case.as_str(), rows))
    }

    /// Each family of peers, and how many times better ours is than the family's fastest variant
    /// in each case, in rising order.
    pub(super) fn against(&self) -> Vec<(&str, Vec<f64>)> {
        let mut families: Vec<(&str, BTreeMap<&str, f64>)> = Vec::new();
        for row in self.rows.iter().filter(|row| !row.is_ours()) {
            let (Some(ratio), Some(family)) = (row.ratio, row.family()) else { continue };
            let known = families.iter().position(|(name, _)| *name == family).unwrap_or_else(|| {
                families.push((family, BTreeMap::new()));
                families.len() - 1
            });
            let fastest = families[known].1.entry(&row.case).or_insert(ratio);
            *fastest = fastest.min(ratio);
        }
        let sorted = |ratios: BTreeMap<&str, f64>| {
            let mut sorted: Vec<f64> = ratios.into_values().collect();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        families.into_iter().map(|(name, ratios)| (name, sorted(ratios))).collect()
    }

    /// Every row in which a peer is better than one of ours, for each variant of ours.
    pub(super) fn losses(&self) -> Vec<Loss<'_>> {
        self.cases().flat_map(|(_, rows)| losses(rows)).collect()
    }

    /// How many aims are reached, and how many there are.
    pub(super) fn aims(&self) -> (usize, usize) {
        let known = || self.rows.iter().filter_map(|row| row.reached);
        (known().filter(|reached| *reached).count(), known().count())
    }

    /// The row of one system in one case.
    pub(super) fn row(&self, case: &str, system: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == case && row.system == system)
    }
}

impl Row {
    fn of(row: &Value) -> Option<Row> {
        let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_string);
        let number = |key: &str| row.get(key).and_then(Value::as_f64);
        let value = match number("value") {
            Some(value) => Ok(value),
            None => Err(text("absent")?),
        };
        let aim = number("required_ratio")
            .map(Bound::Times)
            .or(number("required_at_most").map(Bound::AtMost))
            .or(number("required_at_least").map(Bound::AtLeast));
        let row = Row {
            case: text("case")?,
            system: text("system")?,
            value,
            unit: text("unit").unwrap_or_default(),
            ratio: number("ratio"),
            aim,
            reached: None,
            reason: text("reason"),
        };
        Some(row.judged(aim.map(|bound| Aim { bound, tolerance: 0.0 })))
    }

    /// The row with an aim. Whether it is reached comes from the numbers, and not from the file,
    /// because older programs rounded them before.
    fn judged(mut self, aim: Option<Aim>) -> Row {
        self.aim = aim.map(|aim| aim.bound);
        self.reached = aim.and_then(|aim| aim.reached(self.value.as_ref().ok().copied(), self.ratio));
        self
    }

    pub(super) fn is_ours(&self) -> bool {
        OURS.iter().any(|ours| self.system.starts_with(ours))
    }

    /// Whether the row is of a peer, and not of ours or of a bound such as a plain loop.
    pub(super) fn is_peer(&self) -> bool {
        !self.is_ours() && self.family().is_some()
    }

    /// The system as a column or a plot of its own names it: our variants without our name.
    pub(super) fn label(&self) -> &str {
        match self.system.strip_prefix(OURS[0]) {
            Some(variant) if variant.starts_with(' ') => variant.trim_start(),
            _ => &self.system,
        }
    }

    /// The peer that a system is, in short. `None` for a system that is no peer.
    pub(super) fn family(&self) -> Option<&str> {
        if NO_PEERS.iter().any(|no_peer| self.system.starts_with(no_peer)) {
            return None;
        }
        let first = self.system.split([' ', ',']).next()?;
        Some(if FAMILIES.contains(&first) { first } else { &self.system })
    }
}

/// The losses of one case. Each ratio is published as that to the first row.
fn losses(rows: &[Row]) -> Vec<Loss<'_>> {
    let mut losses = Vec::new();
    for peer in rows.iter().filter(|row| row.is_peer()) {
        let (Ok(theirs), Some(ratio)) = (&peer.value, peer.ratio) else { continue };
        let mut alike = rows.iter().filter(|row| row.unit == peer.unit);
        // The ratio is that to the first row. Which way is better follows from the three numbers.
        let Some(Ok(first)) = alike.next().map(|row| &row.value) else { continue };
        let less_is_better = (theirs / first - ratio).abs() <= (first / theirs - ratio).abs();
        let variants = rows.iter().filter(|row| row.is_ours() && row.unit == peer.unit);
        let mut is_first = true;
        for ours in variants {
            let Ok(value) = &ours.value else { continue };
            let of_variant = if less_is_better { first / value } else { value / first };
            let ratio = ratio * of_variant;
            if ratio < 1.0 {
                losses.push(Loss { ours, peer, ratio, is_first });
            }
            is_first = false;
        }
    }
    losses
}

/// Gives the rows the aims of `aims`.
///
/// # Errors
/// The rows with another published aim that no `was` explains, and the cases without an aim of
/// which the file does not say so.
pub(super) fn judged(figures: Vec<Figure>, aims: &Aims) -> Result<Vec<Figure>, String> {
    let mut wrong = Vec::new();
    let mut judged = Vec::new();
    for mut figure in figures {
        let name = figure.name.clone();
        for row in &mut figure.rows {
            let entry = aims.of_row(&name, &row.case, &row.system, &row.unit)?;
            let explained = |published: Bound| {
                let entry = entry.into_iter();
                let bounds = entry.flat_map(|entry| {
                    let was = entry.was.iter().filter_map(|was| was.bound);
                    entry.aim.map(|aim| aim.bound).into_iter().chain(was)
                });
                bounds.into_iter().any(|bound| is_same(bound, published))
            };
            if row.aim.is_some_and(|published| !explained(published)) {
                wrong.push(format!("{name}: {}: {}: its aim changed without a `was`", row.case, row.system));
            }
            row.reason = entry.and_then(|entry| entry.missed.clone());
            *row = row.clone().judged(entry.and_then(|entry| entry.aim));
        }
        for (case, rows) in figure.cases() {
            if aims.is_silent(&name, case, rows.iter().map(|row| (row.system.as_str(), row.unit.as_str()))) {
                wrong.push(format!("{name}: {case}: neither an aim nor a word why not"));
            }
        }
        judged.push(figure);
    }
    if wrong.is_empty() { Ok(judged) } else { Err(format!("figures/aims.toml: {}", wrong.join("; "))) }
}

/// Whether two bounds are the same, but for what the conversion to text loses.
fn is_same(a: Bound, b: Bound) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    match (a, b) {
        (Bound::Times(a), Bound::Times(b))
        | (Bound::AtMost(a), Bound::AtMost(b))
        | (Bound::AtLeast(a), Bound::AtLeast(b)) => near(a, b),
        _ => false,
    }
}

/// Three significant digits, or whole numbers above that; below a thousandth with a power of ten.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        // The logarithm of such a value is between -3 and 0.
        v if v >= 1e-3 => (2.0 - v.log10().floor()) as usize,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.digits$}");
    // 1.50 is 1.5, and 100 stays 100.
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_peer_counts_with_its_fastest_variant() {
        let figure = samples::figure();
        assert_eq!(figure.against(), [("tokio", vec![12.72]), ("C++20", vec![0.44])]);
        assert_eq!(figure.aims(), (1, 3));
    }

    #[test]
    fn every_row_in_which_a_peer_is_better_is_a_loss() {
        let figure = samples::figure();
        let losses: Vec<&str> = figure.losses().iter().map(|loss| loss.peer.system.as_str()).collect();
        // The limit is no peer.
        assert_eq!(losses, ["C++20 <queue>"]);
    }

    #[test]
    fn a_loss_of_a_variant_of_ours_is_a_loss() {
        for (unit, values) in [("ns", [10.0, 40.0, 20.0]), ("MB/s", [40.0, 10.0, 20.0])] {
            let row = |system: &str, value, ratio| {
                let row = serde_json::json!({"case": "c", "system": system, "unit": unit, "value": value,
                    "ratio": ratio});
                Row::of(&row).unwrap()
            };
            let rows = [
                row("selvedge", values[0], None),
                row("selvedge, other", values[1], None),
                row("Go", values[2], Some(2.0)),
            ];
            let losses = losses(&rows);
            let [loss] = losses[..] else { panic!("{losses:?}") };
            assert_eq!((loss.ours, loss.ratio, loss.is_first), (&rows[1], 0.5, false), "{unit}");
        }
    }

    fn one(published: f64, toml: &str) -> Result<Option<bool>, String> {
        let figure = serde_json::json!([{"figure": "f", "title": "t", "machine": "m", "commit": "c", "rows": [
            {"case": "c", "system": "tokio", "unit": "ns", "value": 5.0, "ratio": 0.996,
             "required_ratio": published, "reached": true},
        ]}]);
        let aims = Aims::read(&format!(
            "[[aim]]\nfigure = \"f\"\ncases = \"*\"\nsystems = \"tokio\"\nasked = \"X\"\n{toml}"
        ));
        let figures = figures("f", &figure.to_string())?;
        Ok(judged(figures, &aims?)?[0].rows[0].reached)
    }

    #[test]
    fn an_aim_that_changed_needs_its_reason() {
        let was = "was = [{ times = 2.0, why = \"w\" }]\n";
        assert_eq!(one(1.0, "times = 1.0\n"), Ok(Some(false)), "0.996 is less than 1");
        assert!(one(2.0, "times = 1.0\n").unwrap_err().contains("changed without a `was`"));
        assert_eq!(one(2.0, &format!("times = 0.5\n{was}")), Ok(Some(true)));
        // An aim that was taken away.
        assert_eq!(one(2.0, was), Ok(None));
        assert!(one(3.0, was).is_err());
    }

    #[test]
    fn a_case_without_an_aim_is_refused() {
        let figure = serde_json::json!([{"figure": "f", "title": "t", "machine": "m", "commit": "c", "rows": [
            {"case": "c", "system": "tokio", "unit": "ns", "value": 5.0},
        ]}]);
        let figures = || figures("f", &figure.to_string()).unwrap();
        assert!(judged(figures(), &Aims::read("").unwrap()).unwrap_err().contains("neither an aim"));
        let without = Aims::read("[[without]]\nfigure = \"f\"\ncases = \"c\"\nwhy = \"w\"\n").unwrap();
        assert!(judged(figures(), &without).is_ok());
    }

    #[test]
    fn a_file_that_is_no_measurement_is_refused() {
        let figure = serde_json::json!([{"figure": "x", "title": "t", "machine": "m", "rows": []}]);
        assert!(read("f", &figure.to_string()).unwrap_err().contains("commit"));
        assert!(read("f", "{}").unwrap_err().contains("array"));
        assert!(read("f", "[").is_err());
    }

    #[test]
    fn what_is_written_is_read_again_without_commands() {
        let json = Value::Array(vec![samples::json()]).to_string();
        let written = text(&read("f", &json).unwrap());
        assert!(!written.contains("command") && !written.contains("null"), "{written}");
        assert_eq!(figures("f", &written), figures("f", &json));
        assert_eq!(text(&read("f", &written).unwrap()), written);
    }

    #[test]
    fn a_figure_that_is_measured_again_keeps_its_place() {
        let named = |name: &str, title: &str| serde_json::json!({"figure": name, "title": title});
        let mut published = vec![named("a", "1"), named("b", "1")];
        merge(&mut published, vec![named("a", "2"), named("c", "2")]);
        assert_eq!(published, [named("a", "2"), named("b", "1"), named("c", "2")]);
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [4.567, 16.0, 58.14, 328.2, 1.5, 100.0, 0.996, 0.0123, 8.878_8e-5, 0.0].map(number);
        let texts = ["4.57", "16", "58.1", "328", "1.5", "100", "0.996", "0.0123", "8.88e-5", "0"];
        assert_eq!(numbers, texts);
    }
}
