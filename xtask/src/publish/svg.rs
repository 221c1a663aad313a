//! The drawing surface of the plots: SVG elements, text that fits, and the colours of both
//! schemes.
//!
//! A plot is 400 units wide, so that its text is readable on a telephone, where a unit is a little
//! less than a pixel of the page. `bars` and `lines` draw on it. The widths of texts are estimated,
//! because the font is the reader's: [`EM`] is more than the mean of the usual sans-serif fonts.

use std::fmt::Write;

/// The width of every plot, in units.
pub(super) const WIDTH: f64 = 400.0;
/// The free border on each side.
pub(super) const BORDER: f64 = 8.0;
/// The mean width of a letter, in font sizes.
const EM: f64 = 0.62;

/// The sizes of the fonts: of titles, of names and values, of axes.
pub(super) const TITLE: f64 = 14.0;
pub(super) const NAME: f64 = 12.5;
pub(super) const AXIS: f64 = 11.0;

/// The colours are those of `site/style.css`.
const STYLE: &str = "\
svg{--paper:#fbf8f1;--ink:#1c2340;--soft:#565c78;--line:#ddd4c0;--ours:#a62c26;--ours2:#d07a45;\
--p0:#3b4ea8;--p1:#1d7a6b;--p2:#8a6400;--p3:#7b3f96;--p4:#5f6470;\
font-family:system-ui,-apple-system,'Segoe UI','Noto Sans',sans-serif}
@media(prefers-color-scheme:dark){svg{--paper:#10152b;--ink:#ece6d8;--soft:#a9b0cc;--line:#2c3560;\
--ours:#f08a7c;--ours2:#e8b184;--p0:#8fa3f2;--p1:#58c7b2;--p2:#e0b34a;--p3:#cc92e2;--p4:#b3b8c4}}
.paper{fill:var(--paper)}
.title{font-size:14px;font-weight:600;fill:var(--ink)}
.name{font-size:12.5px;fill:var(--ink)}
.value{font-size:12.5px;fill:var(--soft)}
.axis{font-size:11px;fill:var(--soft)}
.strong{font-weight:650}
.grid{stroke:var(--line);stroke-width:1}
.aim{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3;fill:none}
.bar{fill:var(--p0)}
.bar.ours{fill:var(--ours)}
.bar.hollow{fill:none;stroke:var(--p4);stroke-width:1.2}
.series{fill:none;stroke-width:2}
.better{fill:var(--p0)}
.worse{fill:var(--ours)}
";

/// Where a text stands against its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The elements so far.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    elements: String,
}

impl Canvas {
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, x: f64, y: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (unit(x), unit(y), escaped(text));
        let _ = writeln!(self.elements, "<text class=\"{class}\"{anchor} x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    pub(super) fn bar(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let [x, y, width, height] = [x, y, width, height].map(unit);
        let _ = writeln!(
            self.elements,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"1.5\"/>"
        );
    }

    /// A line through all points.
    pub(super) fn line(&mut self, class: &str, style: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", unit(*x), unit(*y))).collect();
        let style = if style.is_empty() { String::new() } else { format!(" style=\"{style}\"") };
        let points = points.join(" ");
        let _ = writeln!(self.elements, "<polyline class=\"{class}\"{style} points=\"{points}\"/>");
    }

    /// The sign of a measured point: one of five shapes.
    pub(super) fn marker(&mut self, shape: usize, style: &str, (x, y): (f64, f64)) {
        let r = 3.6;
        let corners: &[(f64, f64)] = match shape % 5 {
            0 => {
                let (x, y) = (unit(x), unit(y));
                let _ =
                    writeln!(self.elements, "<circle style=\"{style}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>");
                return;
            }
            1 => &[(-r, -r), (r, -r), (r, r), (-r, r)],
            2 => &[(0.0, -1.3 * r), (1.2 * r, r), (-1.2 * r, r)],
            3 => &[(0.0, -1.4 * r), (1.4 * r, 0.0), (0.0, 1.4 * r), (-1.4 * r, 0.0)],
            _ => &[(-1.2 * r, -r), (1.2 * r, -r), (0.0, 1.3 * r)],
        };
        let points: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{},{}", unit(x + dx), unit(y + dy))).collect();
        let points = points.join(" ");
        let _ = writeln!(self.elements, "<polygon style=\"{style}\" points=\"{points}\"/>");
    }

    /// The mark of a ratio: of one in which ours is better, or worse.
    pub(super) fn mark(&mut self, is_worse: bool, (x, y): (f64, f64)) {
        let _ = match is_worse {
            false => {
                let (x, y) = (unit(x), unit(y));
                writeln!(self.elements, "<circle class=\"better\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>")
            }
            true => {
                let (left, top, right, bottom) = (unit(x - 2.6), unit(y - 2.6), unit(x + 2.6), unit(y + 2.6));
                let (x, y) = (unit(x), unit(y));
                writeln!(
                    self.elements,
                    "<polygon class=\"worse\" points=\"{x},{top} {right},{y} {x},{bottom} {left},{y}\"/>"
                )
            }
        };
    }

    /// The title over the whole width, in as many lines as it takes. Returns the y below it.
    pub(super) fn title(&mut self, title: &str) -> f64 {
        let mut y = BORDER;
        for line in wrapped(title, TITLE, WIDTH - 2.0 * BORDER) {
            y += TITLE + 3.0;
            self.text("title", Anchor::Start, BORDER, y, &line);
        }
        y + 6.0
    }

    /// The whole file. A screen reader says `title`.
    pub(super) fn finish(self, title: &str, height: f64) -> String {
        let (width, height, title) = (WIDTH, height.ceil(), escaped(title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
            self.elements
        )
    }
}

/// The estimated width of a text.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * EM * size
}

/// The text in lines that fit; a word is never cut.
pub(super) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, size) + width_of(word, size) + EM * size <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// A coordinate to a tenth of a unit.
fn unit(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_lose_no_word() {
        let text = "futures::channel::oneshot, answered by another thread";
        let lines = wrapped(text, NAME, 220.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width_of(line, NAME) <= 220.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn a_file_is_xml_with_its_texts_escaped() {
        let mut canvas = Canvas::default();
        canvas.text("name", Anchor::End, 1.0, 2.04, "a < b & \"c\"");
        (0..5).for_each(|shape| canvas.marker(shape, "fill:red", (5.0, 5.0)));
        let text = canvas.finish("<title>", 20.0);
        let document = roxmltree::Document::parse(&text).unwrap();
        let found = document.descendants().find(|node| node.has_tag_name("text")).unwrap();
        assert_eq!((found.text(), found.attribute("y")), (Some("a < b & \"c\""), Some("2")));
        assert_eq!(document.root_element().attribute("aria-label"), Some("<title>"));
    }
}
