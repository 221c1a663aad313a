//! Which plots a figure has. Cases that differ in a size alone are lines over that size, if there
//! are three sizes; each other case is a plot of bars. A case with a single value and no aim is no
//! plot, and so is one without a value of ours: the table has them.
//!
//! `publish.rs` calls `plots` for each figure; `bars.rs` and `lines.rs` draw.

use super::aims::Bound;
use super::measured::{Figure, Row};
use super::{bars, lines};

/// A plot: the name of its file, its words for a screen reader, and the file's text.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) file: String,
    pub(super) alt: String,
    pub(super) svg: String,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

impl Better {
    /// A peer's value and its ratio say which. Without a peer the unit does: a rate, or a factor.
    pub(super) fn of(rows: &[&Row]) -> Better {
        let peers = rows.iter().filter(|row| !row.is_ours());
        let said = peers.filter_map(|peer| {
            let ours = rows.iter().find(|row| row.is_ours() && row.case == peer.case)?;
            let (ours, theirs) = (ours.value.as_ref().ok()?, peer.value.as_ref().ok()?);
            let ratio = peer.ratio.filter(|ratio| *ratio != 1.0 && ours != theirs)?;
            Some(if (theirs > ours) == (ratio > 1.0) { Better::Less } else { Better::More })
        });
        let by_unit = |row: &&&Row| row.unit.ends_with("/s") || row.unit == "x";
        let unit = if rows.iter().any(|row| by_unit(&row)) { Better::More } else { Better::Less };
        said.into_iter().next().unwrap_or(unit)
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Better::Less => "less is better",
            Better::More => "more is better",
        }
    }

    /// An aim of ours is a bound on this side.
    pub(super) fn bound(self) -> &'static str {
        match self {
            Better::Less => "at most",
            Better::More => "at least",
        }
    }
}

/// The strictest of the aims of one case, as a value of ours.
pub(super) fn aim(rows: &[&Row], better: Better) -> Option<f64> {
    let bounds = rows.iter().filter_map(|row| match (row.aim?, &row.value, better) {
        (Bound::Times(times), Ok(value), Better::Less) => Some(value / times),
        (Bound::Times(times), Ok(value), Better::More) => Some(value * times),
        (Bound::Times(_), Err(_), _) => None,
        (Bound::AtMost(bound) | Bound::AtLeast(bound), _, _) => Some(bound),
    });
    bounds.reduce(match better {
        Better::Less => f64::min,
        Better::More => f64::max,
    })
}

/// A case that begins with a size: `1 million threads, 2 workers` is the size, the name of the
/// things that it counts, and the rest.
fn sized(case: &str) -> Option<(f64, String, &str)> {
    let (digits, mut rest) = case.split_once(' ')?;
    let mut size: f64 = digits.parse().ok()?;
    for (word, factor) in [("million ", 1e6), ("billion ", 1e9)] {
        if let Some(after) = rest.strip_prefix(word) {
            (size, rest) = (size * factor, after);
        }
    }
    let (noun, rest) = rest.split_once(", ").unwrap_or((rest, ""));
    let plural = if size == 1.0 && !noun.contains(' ') && !noun.ends_with('s') { "s" } else { "" };
    Some((size, format!("{noun}{plural}"), rest))
}

/// The words that the cases of one line plot have in common, and its rows by size.
#[derive(Debug)]
struct Group<'a> {
    noun: String,
    rest: &'a str,
    unit: &'a str,
    /// The first case, and the last.
    cases: (&'a str, &'a str),
    sizes: Vec<(f64, Vec<&'a Row>)>,
}

/// The rows of one case by their unit. Rows without a value go with the first unit.
fn by_unit(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut units: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        let unit =
            if row.value.is_ok() { row.unit.as_str() } else { units.first().map_or("", |(unit, _)| unit) };
        match units.iter_mut().find(|(known, _)| *known == unit) {
            Some((_, rows)) => rows.push(row),
            None => units.push((unit, vec![row])),
        }
    }
    units
}

/// The plots of a figure, in the order of its cases.
pub(super) fn plots(figure: &Figure) -> Vec<Plot> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (case, rows) in figure.cases() {
        for (unit, rows) in by_unit(rows) {
            let (size, noun, rest) = sized(case).unwrap_or((0.0, String::new(), case));
            let known = groups.iter_mut().find(|group| {
                !noun.is_empty() && (&group.noun, group.rest, group.unit) == (&noun, rest, unit)
            });
            match known {
                Some(group) => {
                    group.cases.1 = case;
                    group.sizes.push((size, rows));
                }
                None => {
                    groups.push(Group { noun, rest, unit, cases: (case, case), sizes: vec![(size, rows)] })
                }
            }
        }
    }
    let mut plots = Vec::new();
    for group in &groups {
        if group.sizes.len() >= 3 {
            let (first, last) = group.cases;
            let from = first.split(' ').next().unwrap_or(first);
            let to = last.split(", ").next().unwrap_or(last);
            let sizes = format!("{from} to {to}");
            let title = if group.rest.is_empty() { sizes } else { format!("{}, {sizes}", group.rest) };
            let alt = alt(figure, &title, group.unit);
            plots.push((lines::draw(&title, &alt, &group.noun, &group.sizes), alt));
            continue;
        }
        for (_, rows) in &group.sizes {
            let values = rows.iter().filter(|row| row.value.is_ok()).count();
            let ours = rows.iter().any(|row| row.is_ours() && row.value.is_ok());
            if !ours {
                continue;
            }
            if values >= 2 || values == 1 && aim(rows, Better::of(rows)).is_some() {
                let title = &rows[0].case;
                let alt = alt(figure, title, group.unit);
                plots.push((bars::draw(title, &alt, rows), alt));
            }
        }
    }
    let name = |(index, (svg, alt))| Plot { file: format!("{}-{}.svg", figure.name, index + 1), alt, svg };
    plots.into_iter().enumerate().map(name).collect()
}

fn alt(figure: &Figure, title: &str, unit: &str) -> String {
    format!("{}: {title}, in {unit}", figure.name)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    /// Every text of a plot, in order.
    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| Some(node.text()?.to_string())).collect()
    }

    fn count(svg: &str, tag: &str, class: &str) -> usize {
        let document = roxmltree::Document::parse(svg).unwrap();
        let named = document.descendants().filter(|node| node.has_tag_name(tag));
        named.filter(|node| node.attribute("class").is_some_and(|found| found.starts_with(class))).count()
    }

    #[test]
    fn bars_have_every_system_its_value_and_the_strictest_aim() {
        let figure = samples::figure();
        let plots = plots(&figure);
        assert_eq!(
            plots.iter().map(|plot| plot.file.as_str()).collect::<Vec<_>>(),
            ["threads-switch-1.svg", "threads-switch-2.svg"]
        );
        let first = texts(&plots[0].svg);
        for row in figure.rows.iter().filter(|row| row.case == "1") {
            assert!(first.iter().any(|text| text == &row.system), "{}: {first:?}", row.system);
        }
        for text in ["4.57 ns", "58.1 ns · 12.7×", "missing <ghc>", "ns, less is better"] {
            assert!(first.iter().any(|found| found == text), "{text}: {first:?}");
        }
        assert!(first.contains(&"aim of Selvedge: at most 3.87 ns".to_string()), "{first:?}");
        assert_eq!(count(&plots[0].svg, "rect", "bar"), 5);
        // One piece of the line on each bar, and its sign below.
        assert_eq!(count(&plots[0].svg, "polyline", "aim"), 6);
    }

    #[test]
    fn three_sizes_are_lines_and_two_are_bars() {
        let case = |size: u64| match size {
            1 => "1 thread, on one CPU".to_string(),
            1_000_000 => "1 million threads, on one CPU".to_string(),
            _ => format!("{size} threads, on one CPU"),
        };
        let figure = samples::sizes(&[1, 1000, 1_000_000], case);
        let [plot] = &plots(&figure)[..] else { panic!("one plot") };
        assert_eq!(plot.alt, "sizes: on one CPU, 1 to 1 million threads, in ns");
        let found = texts(&plot.svg);
        for text in ["selvedge", "tokio", "1", "1000", "1M", "threads", "aim of Selvedge: at most"] {
            assert!(found.iter().any(|found| found == text), "{text}: {found:?}");
        }
        // Two lines in the plot, and their signs in the legend.
        assert_eq!(count(&plot.svg, "polyline", "series"), 4);
        assert_eq!(plots(&samples::sizes(&[1, 1000], case)).len(), 2);
    }

    #[test]
    fn labels_of_one_line_do_not_overlap() {
        let figure = samples::sizes(&[1000, 1001, 2000, 64_000], |size| format!("{size} pairs"));
        let plot = &plots(&figure)[0];
        let found = texts(&plot.svg);
        assert!(found.contains(&"1000".to_string()) && !found.contains(&"1001".to_string()), "{found:?}");
    }

    #[test]
    fn many_lines_have_their_names_at_their_ends() {
        let mut figure = samples::sizes(&[100, 1000, 10_000], |size| format!("{size} numbers, sieve"));
        let pairs = figure.rows.clone();
        for name in 0..12 {
            figure.rows.extend(pairs.iter().filter(|row| !row.is_ours()).cloned().map(|mut row| {
                row.system = format!("other {name}");
                row
            }));
        }
        figure.rows.sort_by(|a, b| a.case.cmp(&b.case));
        let [plot] = &plots(&figure)[..] else { panic!("one plot") };
        let document = roxmltree::Document::parse(&plot.svg).unwrap();
        let styles: Vec<_> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("series"))
            .filter_map(|node| node.attribute("style"))
            .collect();
        assert_eq!(styles.len(), 14);
        let names = document.descendants().filter(|node| node.has_tag_name("text"));
        let names = names.filter(|node| node.text().is_some_and(|text| text.starts_with("other")));
        let mut heights: Vec<f64> = names.map(|node| node.attribute("y").unwrap().parse().unwrap()).collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 12);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] > super::super::svg::AXIS), "{heights:?}");
    }

    #[test]
    fn a_rate_is_better_when_it_is_higher() {
        let mut figure = samples::figure();
        for row in &mut figure.rows {
            row.unit = "reads/s".to_string();
            row.ratio = None;
        }
        let rows: Vec<&Row> = figure.rows.iter().collect();
        assert_eq!(Better::of(&rows), Better::More);
        assert_eq!(aim(&rows[..2], Better::More), Some(58.1 * 15.0));
    }

    #[test]
    fn a_size_is_read_from_the_beginning_of_a_case() {
        assert_eq!(sized("1 thread, CPU per read"), Some((1.0, "threads".to_string(), "CPU per read")));
        assert_eq!(sized("10 million threads"), Some((1e7, "threads".to_string(), "")));
        assert_eq!(sized("0 idle on pipes, 1 CPU"), Some((0.0, "idle on pipes".to_string(), "1 CPU")));
        assert_eq!(sized("ring of 2 threads"), None);
    }
}
