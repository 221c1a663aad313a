//! `Aims`: the aims of the figures, as `figures/aims.toml` has them. The head of that file says
//! what its entries mean.
//!
//! `main.rs` gives each row of a table its aim, and `xtask` (`publish/aims.rs`) each published row:
//! this file is a module of both programs. So both judge by [`Aim::reached`], which rounds nothing.

use serde_json::{Map, Value};

/// The bound of an aim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// Ours is at least this number of times better than the row.
    Times(f64),
    /// The row's own value must not exceed this.
    AtMost(f64),
    /// The row's own value must not fall below this.
    AtLeast(f64),
}

/// The aim of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Aim {
    /// The bound.
    pub(crate) bound: Bound,
    /// By how much a value may exceed a bound of the kind [`Bound::AtMost`]: the error of the
    /// measurement itself.
    pub(crate) tolerance: f64,
}

impl Aim {
    /// Whether a row with this value and this ratio reaches the aim. `None` without the number that
    /// the aim speaks of.
    pub(crate) fn reached(self, value: Option<f64>, ratio: Option<f64>) -> Option<bool> {
        match self.bound {
            Bound::Times(times) => ratio.map(|ratio| ratio >= times),
            Bound::AtMost(most) => value.map(|value| value <= most + self.tolerance),
            Bound::AtLeast(least) => value.map(|value| value >= least),
        }
    }
}

/// A bound that an entry had before, and the reason of the change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Was {
    /// The bound; `None` if the rows had no aim.
    pub(crate) bound: Option<Bound>,
    /// Why it was changed.
    pub(crate) why: String,
}

/// The aim of some rows of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The name of the figure.
    pub(crate) figure: String,
    /// Patterns of cases. A `*` stands for any text.
    pub(crate) cases: Vec<String>,
    /// Patterns of systems.
    pub(crate) systems: Vec<String>,
    /// The unit of the rows, where a case has several.
    pub(crate) unit: Option<String>,
    /// The aim; `None` if the rows have no aim any more, and then `was` says why.
    pub(crate) aim: Option<Aim>,
    /// The place where the aim was asked for.
    pub(crate) asked: String,
    /// Why the aim is missed, where that is known.
    pub(crate) missed: Option<String>,
    /// The bounds of before, newest first.
    pub(crate) was: Vec<Was>,
}

impl Entry {
    /// Whether the entry speaks of a row.
    pub(crate) fn is_of(&self, figure: &str, case: &str, system: &str, unit: &str) -> bool {
        let one_of = |patterns: &[String], text| patterns.iter().any(|pattern| fits(pattern, text));
        self.figure == figure
            && one_of(&self.cases, case)
            && one_of(&self.systems, system)
            && self.unit.as_ref().is_none_or(|of| of == unit)
    }

    /// The rows in words.
    pub(crate) fn rows(&self) -> String {
        let unit = self.unit.as_ref().map_or(String::new(), |unit| format!(", in {unit}"));
        format!("{}: {}{unit}", self.cases.join("; "), self.systems.join(", "))
    }
}

/// Cases of a figure for which no aim was asked.
#[derive(Clone, Debug, PartialEq)]
struct Without {
    figure: String,
    cases: Vec<String>,
}

/// The content of `figures/aims.toml`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aims {
    /// The entries with the name `aim`, in their order.
    pub(crate) entries: Vec<Entry>,
    without: Vec<Without>,
}

impl Aims {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// What is wrong with it, and in which entry.
    pub(crate) fn read(text: &str) -> Result<Aims, String> {
        let toml: Value = basic_toml::from_str(text).map_err(|error| format!("aims.toml: {error}"))?;
        let toml = Fields::of(&toml, "aims.toml", &["aim", "without"])?;
        let entries = toml.tables("aim")?.iter().map(entry).collect::<Result<_, _>>()?;
        let without = |table: &Value| {
            let fields = Fields::of(table, "[[without]]", &["figure", "cases", "why"])?;
            fields.text("why")?;
            Ok(Without { figure: fields.text("figure")?, cases: fields.texts("cases")? })
        };
        Ok(Aims {
            entries,
            without: toml.tables("without")?.iter().map(without).collect::<Result<_, String>>()?,
        })
    }

    /// The entry of a row, if there is one.
    ///
    /// # Errors
    /// When two entries speak of the row.
    pub(crate) fn of_row(
        &self,
        figure: &str,
        case: &str,
        system: &str,
        unit: &str,
    ) -> Result<Option<&Entry>, String> {
        let mut entries = self.entries.iter().filter(|entry| entry.is_of(figure, case, system, unit));
        let entry = entries.next();
        match entries.next() {
            Some(_) => Err(format!("aims.toml: two aims of {figure}: {case}: {system}")),
            None => Ok(entry),
        }
    }

    /// Whether the file says nothing of a case with these systems and units: neither an aim of one
    /// of them, nor that the case has none.
    pub(crate) fn is_silent<'a>(
        &self,
        figure: &str,
        case: &str,
        mut rows: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> bool {
        let has_entry = |(system, unit)| self.entries.iter().any(|one| one.is_of(figure, case, system, unit));
        !self.leaves_out(figure, case) && !rows.any(has_entry)
    }

    /// Whether the file says that a case has no aim.
    fn leaves_out(&self, figure: &str, case: &str) -> bool {
        let of_case = |without: &Without| without.cases.iter().any(|pattern| fits(pattern, case));
        self.without.iter().any(|without| without.figure == figure && of_case(without))
    }
}

/// Reads an entry with an aim.
fn entry(table: &Value) -> Result<Entry, String> {
    const KEYS: [&str; 13] = [
        "figure",
        "cases",
        "systems",
        "unit",
        "times",
        "within",
        "at_most",
        "at_least",
        "tolerance",
        "asked",
        "missed",
        "was",
        "why_tolerance",
    ];
    let name = table.get("figure").and_then(Value::as_str).unwrap_or("an aim without a figure");
    let fields = Fields::of(table, name, &KEYS)?;
    let was = |table: &Value| {
        let fields = Fields::of(table, name, &["times", "within", "at_most", "at_least", "none", "why"])?;
        Ok(Was { bound: fields.bound()?, why: fields.text("why")? })
    };
    let was: Vec<Was> = fields.tables("was")?.iter().map(was).collect::<Result<_, String>>()?;
    let bound = fields.bound()?;
    if bound.is_none() && was.is_empty() {
        return Err(fields.wrong("neither a bound nor a `was`"));
    }
    let tolerance = fields.number("tolerance")?;
    if tolerance.is_some() {
        fields.text("why_tolerance")?;
    }
    Ok(Entry {
        figure: fields.text("figure")?,
        cases: fields.texts("cases")?,
        systems: fields.texts("systems")?,
        unit: fields.optional("unit"),
        aim: bound.map(|bound| Aim { bound, tolerance: tolerance.unwrap_or(0.0) }),
        asked: fields.text("asked")?,
        missed: fields.optional("missed"),
        was,
    })
}

/// The fields of a table, with its name for errors.
struct Fields<'a> {
    name: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// # Errors
    /// When a field has a name that is none of `keys`.
    fn of(table: &'a Value, name: &'a str, keys: &[&str]) -> Result<Fields<'a>, String> {
        let fields = table.as_object().ok_or_else(|| format!("aims.toml: {name}: no table"))?;
        let fields = Fields { name, fields };
        match fields.fields.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(fields.wrong(&format!("unknown field `{key}`"))),
            None => Ok(fields),
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("aims.toml: {}: {what}", self.name)
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.fields.get(key)?.as_str().map(str::to_owned)
    }

    fn text(&self, key: &str) -> Result<String, String> {
        self.optional(key).ok_or_else(|| self.wrong(&format!("no text `{key}`")))
    }

    /// A text, or an array of texts.
    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let texts = match self.fields.get(key) {
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(texts)) => {
                texts.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        texts.filter(|texts| !texts.is_empty()).ok_or_else(|| self.wrong(&format!("no texts `{key}`")))
    }

    fn tables(&self, key: &str) -> Result<&'a [Value], String> {
        match self.fields.get(key) {
            None => Ok(&[]),
            Some(Value::Array(tables)) => Ok(tables),
            Some(_) => Err(self.wrong(&format!("`{key}` is no array"))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        let number =
            |value: &Value| value.as_f64().ok_or_else(|| self.wrong(&format!("`{key}` is no number")));
        self.fields.get(key).map(number).transpose()
    }

    /// The one bound among the fields.
    fn bound(&self) -> Result<Option<Bound>, String> {
        let bounds = [
            self.number("times")?.map(Bound::Times),
            self.number("within")?.map(|times| Bound::Times(1.0 / times)),
            self.number("at_most")?.map(Bound::AtMost),
            self.number("at_least")?.map(Bound::AtLeast),
        ];
        let mut bounds = bounds.into_iter().flatten();
        let bound = bounds.next();
        if bounds.next().is_some() { Err(self.wrong("two bounds")) } else { Ok(bound) }
    }
}

/// Whether a text is as the pattern says, in which each `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim(bound: Bound) -> Aim {
        Aim { bound, tolerance: 0.0 }
    }

    #[test]
    fn an_aim_is_judged_by_what_it_speaks_of() {
        assert_eq!(aim(Bound::Times(12.0)).reached(Some(60.0), Some(12.5)), Some(true));
        assert_eq!(aim(Bound::Times(12.0)).reached(Some(60.0), Some(11.9)), Some(false));
        assert_eq!(aim(Bound::AtLeast(1.95)).reached(Some(1.95), None), Some(true));
        assert_eq!(aim(Bound::Times(2.0)).reached(None, None), None);
        assert_eq!(aim(Bound::AtMost(2.0)).reached(None, Some(3.0)), None);
    }

    #[test]
    fn nothing_is_rounded() {
        assert_eq!(aim(Bound::Times(1.0)).reached(None, Some(0.996)), Some(false));
        assert_eq!(aim(Bound::AtMost(1e-5)).reached(Some(8.9e-5), None), Some(false));
        assert_eq!(aim(Bound::AtMost(1e-5)).reached(Some(1e-5), None), Some(true));
        assert_eq!(aim(Bound::AtLeast(1.95)).reached(Some(1.949), None), Some(false));
        let tolerant = Aim { bound: Bound::AtMost(16.0), tolerance: 0.01 };
        assert_eq!(tolerant.reached(Some(16.0004), None), Some(true));
        assert_eq!(tolerant.reached(Some(16.02), None), Some(false));
        assert_eq!(aim(Bound::AtMost(16.0)).reached(Some(16.0004), None), Some(false));
    }

    const ENTRY: &str =
        "[[aim]]\nfigure = \"f\"\ncases = \"* pairs\"\nsystems = [\"a\", \"b\"]\nasked = \"X\"\n";

    #[test]
    fn a_row_finds_its_entry() {
        let aims = Aims::read(&format!("{ENTRY}within = 2.0\n")).unwrap();
        let found = |case, system| aims.of_row("f", case, system, "ns").unwrap().map(|entry| entry.aim);
        assert_eq!(found("4 pairs", "b"), Some(Some(aim(Bound::Times(0.5)))));
        assert_eq!(found("4 pairs, more", "b"), None);
        assert_eq!(found("4 pairs", "c"), None);
        assert_eq!(aims.of_row("g", "4 pairs", "b", "ns").unwrap(), None);
        let twice = Aims::read(&format!("{ENTRY}times = 2.0\n{ENTRY}times = 2.0\n")).unwrap();
        assert!(twice.of_row("f", "4 pairs", "b", "ns").unwrap_err().contains("two aims"));
    }

    #[test]
    fn a_file_with_a_fault_is_refused() {
        for (more, complaint) in [
            ("", "neither a bound nor a `was`"),
            ("times = 1.0\nat_most = 2.0\n", "two bounds"),
            ("tims = 1.0\n", "unknown field `tims`"),
            ("times = 1.0\ntolerance = 0.1\n", "why_tolerance"),
            ("times = 1.0\nwas = [{ times = 2.0 }]\n", "no text `why`"),
        ] {
            let found = Aims::read(&format!("{ENTRY}{more}")).unwrap_err();
            assert!(found.contains(complaint), "{more}: {found}");
        }
    }

    #[test]
    fn a_case_without_an_aim_is_named() {
        let aims = Aims::read("[[without]]\nfigure = \"f\"\ncases = \"a*\"\nwhy = \"w\"\n").unwrap();
        assert!(aims.leaves_out("f", "abc"));
        assert!(!aims.leaves_out("f", "b") && !aims.leaves_out("g", "abc"));
    }
}
