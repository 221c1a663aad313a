//! All measurements as Markdown: `docs/FIGURES.md`, from which the site's page is made. It has a
//! summary, every row in which a peer is better, and the plots and tables of each figure.
//! `publish.rs` calls `markdown`.
//!
//! The page is made of `figures/published.json` alone. A change of words in it is a change here,
//! because `tidy` refuses a page that differs from its source.

use super::aims::{Aims, Bound};
use super::measured::{Figure, Loss, Row, number};
use super::overview;
use super::plot::Plot;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Figures

Each figure is one command, `cargo run --release -p figures -- NAME`. It measures Selvedge and each
installed peer in the same run, checks the answers before it prints a time, and reports a peer that
is not installed as missing. `cargo xtask peers` installs the peers on Debian, as root.

A factor such as 12.7× says how many times better Selvedge is. A factor below 1 says that the peer is
better. \"Short of\" names a ratio that we aimed at and have not reached; no value is rounded before it is
compared. The aims are in `figures/aims.toml`, and a peer that fails makes its figure fail. The machine is shared: the same
program is a third slower at one time than at another, so only values of one run can be compared.
Instructions are the same at every hour: the figure `instructions` counts them for one operation, and
a proof of `cargo xtask prove` checks ours against `figures/instructions.json`.
";

/// The page, with the plots of each figure.
pub(super) fn markdown(figures: &[(Figure, Vec<Plot>)], aims: &Aims) -> String {
    let all = || figures.iter().map(|(figure, _)| figure);
    let mut text = INTRODUCTION.to_string();
    let _ = write!(text, "\n![{}](../{})\n", overview::ALT, overview::PATH);
    text.push_str("\n## Which code, on which machine\n\n| Commit | Machine | Figures |\n|---|---|---|\n");
    for (commit, machine, names) in origins(all()) {
        let _ = writeln!(text, "| `{commit}` | {machine} | {names} |");
    }
    text.push_str(
        "\n## Summary\n\nThe median of a figure's cases, and in brackets the worst and the best. Of a peer with \
         several variants, each case\ncounts with the fastest.\n\n\
         | Figure | What | How many times better than | Aims reached |\n|---|---|---|---|\n",
    );
    for figure in all() {
        let (name, title, against, reached) = (&figure.name, &figure.title, against(figure), reached(figure));
        let _ = writeln!(text, "| [`{name}`](#{name}) | {title} | {against} | {reached} |");
    }
    text.push_str(
        "\n## Where we lose\n\nEvery row in which a peer is better than one of ours, and how many times better Selvedge \
         is there. A variant\nof ours that is not the first of its case has its name before the peer.\n\n",
    );
    for figure in all() {
        losses(&mut text, figure);
    }
    text.push_str(
        "\n## Aims that changed\n\nAll aims, and where each was asked, are in `figures/aims.toml`. These were other \
         ones before.\n\n",
    );
    for entry in &aims.entries {
        for was in &entry.was {
            let (now, before) = (bound(entry.aim.map(|aim| aim.bound)), bound(was.bound));
            let (name, rows) = (&entry.figure, entry.rows());
            let line = format!("- `{name}`: {rows}: {now}, before {before}, because {}\n", was.why);
            text.push_str(&in_markdown(&line).replace('*', "\\*"));
        }
    }
    text.push_str("\n## Aims without a published row\n\nThese were not measured for this page yet.\n\n");
    for entry in aims.entries.iter().filter(|entry| entry.aim.is_some()) {
        let name = &entry.figure;
        let is_of = |row: &Row| entry.is_of(name, &row.case, &row.system, &row.unit);
        if !all().any(|figure| figure.name == *name && figure.rows.iter().any(is_of)) {
            let line = format!("- `{name}`: {}: {}\n", entry.rows(), bound(entry.aim.map(|aim| aim.bound)));
            text.push_str(&in_markdown(&line).replace('*', "\\*"));
        }
    }
    for (figure, plots) in figures {
        section(&mut text, figure, plots);
    }
    text
}

/// `at least 4×`, or that there is no aim.
fn bound(bound: Option<Bound>) -> String {
    match bound {
        Some(Bound::Times(times)) => format!("at least {}×", number(times)),
        Some(Bound::AtMost(most)) => format!("at most {}", number(most)),
        Some(Bound::AtLeast(least)) => format!("at least {}", number(least)),
        None => "no aim".to_string(),
    }
}

/// The losses of a figure, a line for each case.
fn losses(text: &mut String, figure: &Figure) {
    let losses = figure.losses();
    if losses.is_empty() {
        return;
    }
    let _ = writeln!(text, "- `{}`", figure.name);
    for losses in losses.chunk_by(|a, b| a.peer.case == b.peer.case) {
        let one = |loss: &Loss<'_>| {
            let Loss { ours, peer, ratio, is_first } = loss;
            let variant = if *is_first { String::new() } else { format!("{} beside ", ours.label()) };
            format!("{variant}{} {}×", peer.system, number(*ratio))
        };
        let all: Vec<String> = losses.iter().map(one).collect();
        let line = format!("  - {}: {}\n", losses[0].peer.case, all.join("; "));
        text.push_str(&in_markdown(&line));
    }
}

fn section(text: &mut String, figure: &Figure, plots: &[Plot]) {
    let Figure { name, title, commit, .. } = figure;
    let _ = writeln!(text, "\n## {name}\n\nMeasured: {title}. Commit `{commit}`.");
    let images: Vec<String> =
        plots.iter().map(|plot| format!("![{}](../{})", plot.alt, plot.path())).collect();
    if !images.is_empty() {
        let _ = write!(text, "\n{}\n", images.join("\n"));
    }
    text.push_str("\n| Case | Selvedge | Peers (how many times better Selvedge is) |\n|---|---|---|\n");
    for (case, rows) in figure.cases() {
        let side = |ours: bool| {
            let rows = rows.iter().filter(|row| row.is_ours() == ours);
            rows.map(cell).collect::<Vec<_>>().join("<br>")
        };
        let _ = writeln!(text, "| {case} | {} | {} |", side(true), side(false));
    }
    if !figure.notes.is_empty() {
        text.push('\n');
    }
    for note in &figure.notes {
        let _ = writeln!(text, "- {note}");
    }
}

/// Each commit and machine with the figures that were measured there.
fn origins<'a>(figures: impl Iterator<Item = &'a Figure>) -> Vec<(&'a str, &'a str, String)> {
    let mut origins: Vec<(&str, &str, String)> = Vec::new();
    for Figure { name, commit, machine, .. } in figures {
        match origins.iter_mut().find(|origin| (origin.0, origin.1) == (commit.as_str(), machine.as_str())) {
            Some((_, _, names)) => drop(write!(names, ", `{name}`")),
            None => origins.push((commit, machine, format!("`{name}`"))),
        }
    }
    origins
}

/// `tokio 6.8× (2.5–19×)`: the median of the cases (the lower of two), the worst and the best.
fn against(figure: &Figure) -> String {
    let one = |(name, ratios): (&str, Vec<f64>)| {
        let (worst, best) = (*ratios.first()?, *ratios.last()?);
        let median = number(ratios[(ratios.len() - 1) / 2]);
        Some(match ratios.len() {
            1 => format!("{name} {median}×"),
            _ => format!("{name} {median}× ({}–{}×)", number(worst), number(best)),
        })
    };
    figure.against().into_iter().filter_map(one).collect::<Vec<_>>().join("<br>")
}

/// `13 of 15`, or nothing for a figure without an aim.
fn reached(figure: &Figure) -> String {
    match figure.aims() {
        (_, 0) => String::new(),
        (reached, all) => format!("{reached} of {all}"),
    }
}

/// `tokio 58.1 ns (12.6×)`, and the aim where it was not reached.
fn cell(row: &Row) -> String {
    // In our own column only a variant of ours needs a name.
    let label = if row.label() == "selvedge" { "" } else { row.label() };
    let value = match &row.value {
        Ok(value) => format!("{label} {} {}", number(*value), row.unit),
        Err(why) => return in_markdown(&format!("{}: {why}", row.system)),
    };
    let mut cell = value.trim().to_string();
    if let Some(ratio) = row.ratio.filter(|_| !row.is_ours()) {
        let _ = write!(cell, " ({}×)", number(ratio));
    }
    if row.reached == Some(false) {
        let short = match row.aim {
            Some(Bound::Times(ratio)) => format!("short of {}×", number(ratio)),
            Some(Bound::AtMost(most)) => format!("above the {} {} aimed at", number(most), row.unit),
            Some(Bound::AtLeast(least)) => format!("below the {} {} aimed at", number(least), row.unit),
            None => "short of its aim".to_string(),
        };
        let _ = write!(cell, ", {short}");
        if let Some(reason) = &row.reason {
            let _ = write!(cell, ": {reason}");
        }
    }
    in_markdown(&cell)
}

/// A text in Markdown, which takes `<` for the start of a tag.
fn in_markdown(text: &str) -> String {
    text.replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::plot::plots;
    use super::super::samples;
    use super::*;

    fn page() -> String {
        let figure = samples::figure();
        let plots = plots(&figure);
        markdown(&[(figure, plots)], &Aims::read("").expect("no aims are aims"))
    }

    #[test]
    fn rows_of_one_case_share_a_line() {
        let page = page();
        let line = "| 1 | 4.57 ns | tokio 58.1 ns (12.7×), short of 15×<br>tokio, in its own way 100 ns (21.9×)<br>\
            limit 1 ns (0.2×)<br>C++20 &lt;queue> 2 ns (0.44×)<br>GHC: missing &lt;ghc> |\n";
        assert!(page.contains(line), "{page}");
        assert!(
            page.contains("| 2 | 16 B<br>MVar 24 B, above the 16 B aimed at: it is larger |  |\n"),
            "{page}"
        );
    }

    #[test]
    fn the_summary_has_a_line_for_each_figure() {
        // tokio's other variant is slower, and is left out.
        let line =
            "| [`threads-switch`](#threads-switch) | a yield | tokio 12.7×<br>C++20 0.44× | 1 of 3 |\n";
        assert!(page().contains(line), "{}", page());
    }

    #[test]
    fn losses_origins_notes_and_plots_are_named() {
        let page = page();
        for text in [
            "- `threads-switch`\n  - 1: C++20 &lt;queue> 0.44×\n",
            "| `0a1b2c3` | 2 cores | `threads-switch` |\n",
            "- a note\n",
            "![threads-switch: 1, in ns](../site/figures/threads-switch-1.svg)\n",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
}
