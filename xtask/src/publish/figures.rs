//! All measurements as Markdown: `docs/FIGURES.md`, from which the site's page is made. It has a
//! summary, every row in which a peer is better, and the plots and tables of each figure.
//! `publish.rs` calls `markdown`.
//!
//! The page is made of `figures/published.json` alone. A change of words in it is a change here,
//! because `tidy` refuses a page that differs from its source.

use std::fmt::Write;

use super::measured::{Aim, Figure, Row, number};
use super::plot::Plot;

const INTRODUCTION: &str = "\
# Figures

Each figure is one command, `cargo run --release -p figures -- NAME`. It measures Selvedge and each
installed peer in the same run, checks the answers before it prints a time, and reports a peer that
is not installed as missing. `cargo xtask peers` installs the peers on Debian, as root.

A factor such as 12.7× says how many times better Selvedge is. A factor below 1 says that the peer is
better. \"Short of\" names a ratio that we aimed at and have not reached. The machine is shared: the same
program is a third slower at one time than at another, so only values of one run can be compared.
Instructions are the same at every hour: the figure `instructions` counts them for one operation, and
`cargo xtask ci` checks ours against `figures/instructions.json`.
";

/// The page. `plots` has those of each figure.
pub(super) fn markdown(figures: &[(Figure, Vec<Plot>)]) -> String {
    let all = || figures.iter().map(|(figure, _)| figure);
    let mut text = INTRODUCTION.to_string();
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
        let (name, title, against, aims) = (&figure.name, &figure.title, against(figure), aims(figure));
        let _ = writeln!(text, "| [`{name}`](#{name}) | {title} | {against} | {aims} |");
    }
    text.push_str(
        "\n## Where we lose\n\nEvery row in which a peer is better, and how many times better Selvedge is there.\n\n",
    );
    for figure in all() {
        let one = |row: &Row| {
            let ratio = row.ratio.map_or(String::new(), number);
            format!("{}: {} {ratio}×", row.case, row.system)
        };
        let losses: Vec<String> = figure.losses().map(one).collect();
        if !losses.is_empty() {
            let _ = writeln!(text, "- `{}`: {}", figure.name, losses.join("; "));
        }
    }
    for (figure, plots) in figures {
        section(&mut text, figure, plots);
    }
    text
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
fn aims(figure: &Figure) -> String {
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
        Err(why) => return format!("{}: {why}", row.system).replace('<', "&lt;"),
    };
    let mut cell = value.trim().to_string();
    if let Some(ratio) = row.ratio.filter(|_| !row.is_ours()) {
        let _ = write!(cell, " ({}×)", number(ratio));
    }
    if row.reached == Some(false) {
        let short = match row.aim {
            Some(Aim::Times(ratio)) => format!("short of {}×", number(ratio)),
            Some(Aim::AtMost(most)) => format!("above the {} {} aimed at", number(most), row.unit),
            Some(Aim::AtLeast(least)) => format!("below the {} {} aimed at", number(least), row.unit),
            None => "short of its aim".to_string(),
        };
        let _ = write!(cell, ", {short}");
        if let Some(reason) = &row.reason {
            let _ = write!(cell, ": {reason}");
        }
    }
    cell.replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::plot::plots;
    use super::super::samples;
    use super::*;

    fn page() -> String {
        let figure = samples::figure();
        let plots = plots(&figure);
        markdown(&[(figure, plots)])
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
            "- `threads-switch`: 1: C++20 <queue> 0.44×\n",
            "| `0a1b2c3` | 2 cores | `threads-switch` |\n",
            "- a note\n",
            "![threads-switch: 1, in ns](../site/figures/threads-switch-1.svg)\n",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
}
