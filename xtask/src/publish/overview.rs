//! The picture at the head of `docs/FIGURES.md`: a mark for each published ratio, by system.
//! `publish.rs` calls `draw`.
//!
//! A ratio is that of a peer's row to our first row of its case, as everywhere on the page. The
//! marks of one place stand above each other, so that each can be seen.

use super::axis::Scale;
use super::measured::Figure;
use super::svg::{AXIS, Anchor, BORDER, Canvas, NAME, WIDTH};

/// The file, from the root, and its words for a screen reader.
pub(super) const PATH: &str = "site/figures/all.svg";
pub(super) const ALT: &str = "all ratios at a glance: how many times better Selvedge is";

/// The systems, and how the names of their figures begin.
const SYSTEMS: [(&str, &[&str]); 10] = [
    (
        "threads",
        &[
            "threads-",
            "mvar-",
            "foreign-",
            "cost-",
            "timers",
            "mp-",
            "skynet",
            "instructions",
            "simulation",
            "blocking-",
            "runner-",
            "lwc",
        ],
    ),
    ("input and output", &["fifo-", "disk-", "server-", "job-"]),
    ("the web server", &["web-", "log-"]),
    ("transactions", &["stm-", "stamp"]),
    ("lazy values", &["lazy-", "black-", "spark"]),
    ("graphs of steps", &["cnc-"]),
    ("DNS, FTP, own TCP", &["dns", "ftp", "stack-"]),
    ("pipelines", &["pipe-"]),
    ("builds", &["make-"]),
    ("message passing", &["mpi-"]),
];

/// The distance of two marks.
const STEP: f64 = 4.6;

/// The ratios of a system, in rising order.
fn ratios(figures: &[&Figure], begins: &[&str]) -> Vec<f64> {
    let of_system = figures.iter().filter(|figure| begins.iter().any(|begin| figure.name.starts_with(begin)));
    let rows = of_system.flat_map(|figure| &figure.rows);
    let peers = rows.filter(|row| row.is_peer() && row.value.is_ok());
    let mut ratios: Vec<f64> = peers.filter_map(|row| row.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Draws the ratios of all figures.
pub(super) fn draw(figures: &[&Figure]) -> String {
    let systems: Vec<(&str, Vec<f64>)> =
        SYSTEMS.iter().map(|(name, begins)| (*name, ratios(figures, begins))).collect();
    let all = || systems.iter().flat_map(|(_, ratios)| ratios.iter().copied());
    let least = all().fold(0.1, f64::min);
    let scale = Scale::decades(least, all().fold(10.0, f64::max));
    let x = |ratio: f64| BORDER + 4.0 + (WIDTH - 2.0 * BORDER - 8.0) * scale.position(ratio);
    let mut canvas = Canvas::default();
    let mut y = canvas.title("How many times better Selvedge is, beside each peer of each case");
    for (name, ratios) in systems.iter().filter(|(_, ratios)| !ratios.is_empty()) {
        y += NAME + 6.0;
        let worse = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let text = format!("{name}: {} better, {worse} worse", ratios.len() - worse);
        canvas.text("name", Anchor::Start, BORDER, y, &text);
        // The marks of a place, from the bottom up. No place has marks of both sides of the line.
        let place = |ratio: f64| ((x(ratio) - x(1.0)) / STEP).floor();
        let highest = ratios.chunk_by(|a, b| place(*a) == place(*b)).map(<[f64]>::len).max().unwrap_or(0);
        let above = y + 3.0;
        y += 4.0 + highest as f64 * STEP;
        for marks in ratios.chunk_by(|a, b| place(*a) == place(*b)) {
            for (index, ratio) in marks.iter().enumerate() {
                let at = (x(1.0) + (place(*ratio) + 0.5) * STEP, y - index as f64 * STEP);
                canvas.mark(*ratio < 1.0, at);
            }
        }
        y += 5.0;
        canvas.line("aim", "", &[(x(1.0), above), (x(1.0), y)]);
        canvas.line("grid", "", &[(BORDER, y), (WIDTH - BORDER, y)]);
    }
    for tick in scale.ticks() {
        canvas.line("grid", "", &[(x(tick), y), (x(tick), y + 4.0)]);
        let anchor = match scale.position(tick) {
            0.0 => Anchor::Start,
            at if at > 0.98 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("axis", anchor, x(tick), y + AXIS + 6.0, &format!("{tick}×"));
    }
    y += AXIS + 6.0;
    for (is_worse, words) in [(false, "ours is better"), (true, "the peer is better")] {
        y += AXIS + 6.0;
        canvas.mark(is_worse, (BORDER + 4.0, y - 4.0));
        canvas.text("axis", Anchor::Start, BORDER + 14.0, y, words);
    }
    canvas.finish(ALT, y + BORDER)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn each_ratio_of_a_peer_is_a_mark() {
        let figure = samples::figure();
        let svg = draw(&[&figure]);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let marks = |class: &str| {
            let of_class = document.descendants().filter(|node| node.attribute("class") == Some(class));
            of_class.count()
        };
        // tokio in two variants, and the queue. The limit is no peer. The legend has both marks.
        assert_eq!((marks("better"), marks("worse")), (2 + 1, 1 + 1));
        assert!(svg.contains(">threads: 2 better, 1 worse<"), "{svg}");
    }

    #[test]
    fn every_figure_with_a_ratio_is_of_one_system() {
        let text = include_str!("../../../figures/published.json");
        for figure in super::super::measured::figures("f", text).unwrap() {
            let systems = SYSTEMS.iter().filter(|(_, begins)| !ratios(&[&figure], begins).is_empty()).count();
            let named = SYSTEMS.iter().flat_map(|(_, begins)| *begins);
            let named = named.filter(|begin| figure.name.starts_with(**begin)).count();
            assert!(systems <= 1 && named == 1, "{}", figure.name);
        }
    }
}
