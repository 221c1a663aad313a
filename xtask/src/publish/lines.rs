//! A plot over sizes: a line for each system, a logarithmic axis of sizes, and the aims as a dashed
//! line. `plot.rs` calls `draw` for the cases that differ in a size alone.
//!
//! All rows have one unit. The legend says why a size has no value. Ours come first in the legend
//! and are drawn last, so that their lines lie over the others. Where there are many lines, a
//! legend would be a search, so each has its name at its end, and a pattern and a sign that differ
//! without colours too.

use super::axis::{Scale, short};
use super::measured::Row;
use super::plot::{Better, aim};
use super::svg::{AXIS, Anchor, BORDER, Canvas, NAME, WIDTH, width_of, wrapped};

const LEFT: f64 = 46.0;
const HEIGHT: f64 = 180.0;
/// Colours and dashes by the number of the line: first ours, then the others.
const OURS: [&str; 2] = ["stroke:var(--ours)", "stroke:var(--ours2);stroke-dasharray:6 3"];
const OTHERS: [&str; 5] = [
    "stroke:var(--p0)",
    "stroke:var(--p1)",
    "stroke:var(--p2)",
    "stroke:var(--p3)",
    "stroke:var(--p4);stroke-dasharray:2 3",
];
/// The values of one plot lie on a logarithmic axis if the greatest is this number of times the
/// least.
const LOGARITHMIC: f64 = 25.0;

/// This number of lines have their names at their ends, and no legend.
const MANY: usize = 12;
/// The patterns of many lines, beside the colours.
const DASHES: [&str; 4] = ["", ";stroke-dasharray:7 3", ";stroke-dasharray:2 2", ";stroke-dasharray:8 2 2 2"];
/// The height of a name at the end of a line.
const STEP: f64 = AXIS + 2.5;

/// One system over all sizes.
#[derive(Debug)]
struct Line<'a> {
    row: &'a Row,
    points: Vec<(f64, f64)>,
}

/// Where the lines of a plot lie.
struct Frame<'a> {
    lines: Vec<Line<'a>>,
    across: Scale,
    scale: Scale,
    top: f64,
    width: f64,
    height: f64,
    /// The width of the names at the ends, with the room for what leads there; 0 if the plot has a
    /// legend.
    names: f64,
}

impl<'a> Frame<'a> {
    fn new(top: f64, sizes: &[(f64, Vec<&'a Row>)], aims: &[(f64, f64)]) -> Frame<'a> {
        let lines = lines(sizes);
        let values = lines.iter().flat_map(|line| &line.points).chain(aims).map(|(_, value)| *value);
        let (least, most) = values.fold((f64::MAX, 0.0), |(a, b), value| (value.min(a), value.max(b)));
        let scale = if most / least > LOGARITHMIC && least > 0.0 {
            Scale::decades(least, most)
        } else {
            Scale::linear(most)
        };
        let is_many = lines.len() >= MANY;
        let names = if is_many {
            lines.iter().map(|line| width_of(&line.row.system, AXIS)).fold(0.0, f64::max) + 22.0
        } else {
            0.0
        };
        let height = if is_many { HEIGHT.max(STEP * lines.len() as f64) } else { HEIGHT };
        let width = WIDTH - LEFT - 2.0 * BORDER - names;
        Frame { lines, across: across(sizes), scale, top, width, height, names }
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn x(&self, size: f64) -> f64 {
        LEFT + self.width * self.across.position(size)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.scale.position(value))
    }

    fn at(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        points.iter().map(|(size, value)| (self.x(*size), self.y(*value))).collect()
    }

    /// Draws the ticks of both axes, and what the sizes count.
    fn draw_axes(&self, canvas: &mut Canvas, noun: &str, sizes: &[(f64, Vec<&Row>)]) {
        for tick in self.scale.ticks() {
            let y = self.y(tick);
            canvas.line("grid", "", &[(LEFT, y), (WIDTH - BORDER - self.names, y)]);
            canvas.text("axis", Anchor::End, LEFT - 5.0, y + 4.0, &short(tick));
        }
        let bottom = self.bottom();
        let mut free = 0.0;
        for (size, _) in sizes {
            let x = self.x(*size);
            canvas.line("grid", "", &[(x, bottom), (x, bottom + 4.0)]);
            let half = width_of(&short(*size), AXIS) / 2.0;
            // A label that would stand on the one before it is left out; its tick stays.
            let middle = x.min(WIDTH - self.names - half - 2.0);
            if middle - half >= free {
                canvas.text("axis", Anchor::Middle, middle, bottom + AXIS + 6.0, &short(*size));
                free = middle + half + 3.0;
            }
        }
        canvas.text("axis", Anchor::Middle, LEFT + self.width / 2.0, bottom + 2.0 * AXIS + 10.0, noun);
    }

    fn draw_aims(&self, canvas: &mut Canvas, aims: &[(f64, f64)]) {
        // One aim alone is a short line.
        let mut points = self.at(aims);
        if let [(x, y)] = points[..] {
            points = vec![(x - 14.0, y), (x + 14.0, y)];
        }
        canvas.line("aim", "", &points);
    }

    /// Draws the lines, each with its name at its end.
    fn draw_named_lines(&self, canvas: &mut Canvas) {
        let ends: Vec<_> =
            self.lines.iter().map(|line| self.at(&line.points)[line.points.len() - 1]).collect();
        let places = spread(&ends.iter().map(|(_, y)| *y).collect::<Vec<_>>(), self.top, self.bottom());
        let label = WIDTH - BORDER - self.names + 18.0;
        // Ours lies over the others.
        for (index, line) in self.lines.iter().enumerate().rev() {
            let style = patterned(index, line.row.is_ours());
            let place = places[index];
            canvas.line("grid", "", &[ends[index], (label - 14.0, place), (label - 3.0, place)]);
            canvas.line("series", &style, &self.at(&line.points));
            for point in self.at(&line.points) {
                canvas.marker(index, &fill(&style), point);
            }
            canvas.marker(index, &fill(&style), (label - 6.0, place));
            canvas.text("axis", Anchor::Start, label, place + 4.0, &line.row.system);
        }
    }

    /// Draws the lines, and their legend below `y`. Returns the y of its last line.
    fn draw_lines(&self, canvas: &mut Canvas, mut y: f64) -> f64 {
        let (mut ours, mut others) = (0, 0);
        let mut drawn = Vec::new();
        for line in &self.lines {
            let (style, shape) = if line.row.is_ours() {
                ours += 1;
                (OURS[(ours - 1) % OURS.len()], 0)
            } else {
                others += 1;
                (OTHERS[(others - 1) % OTHERS.len()], others)
            };
            drawn.push((line, style, shape));
            y = entry(canvas, y, line, style, shape);
        }
        // Ours lies over the others.
        for (line, style, shape) in drawn.into_iter().rev() {
            let points = self.at(&line.points);
            canvas.line("series", style, &points);
            for point in points {
                canvas.marker(shape, &fill(style), point);
            }
        }
        y
    }
}

/// Draws `sizes`, each with its rows, which have one unit. `noun` names the things that the sizes
/// count.
pub(super) fn draw(title: &str, alt: &str, noun: &str, sizes: &[(f64, Vec<&Row>)]) -> String {
    let mut canvas = Canvas::default();
    let top = canvas.title(title) + AXIS + 12.0;
    let all: Vec<&Row> = sizes.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
    let better = Better::of(&all);
    let aims: Vec<(f64, f64)> =
        sizes.iter().filter_map(|(size, rows)| Some((*size, aim(rows, better)?))).collect();
    let frame = Frame::new(top, sizes, &aims);
    let unit = all.iter().find_map(|row| row.value.is_ok().then_some(row.unit.as_str())).unwrap_or("");
    canvas.text("axis", Anchor::Start, BORDER, top - 12.0, &format!("{unit}, {}", better.words()));
    frame.draw_axes(&mut canvas, noun, sizes);
    if !aims.is_empty() {
        frame.draw_aims(&mut canvas, &aims);
    }
    let mut y = frame.bottom() + 2.0 * AXIS + 18.0;
    let is_named = frame.names > 0.0;
    if is_named {
        frame.draw_named_lines(&mut canvas);
    } else {
        y = frame.draw_lines(&mut canvas, y);
    }
    if !aims.is_empty() {
        y = aim_entry(&mut canvas, y, better);
    }
    canvas.finish(alt, y + BORDER + if is_named { 0.0 } else { 4.0 })
}

/// The line of the legend for the aims. Returns its y.
fn aim_entry(canvas: &mut Canvas, y: f64, better: Better) -> f64 {
    let y = y + 18.0;
    canvas.line("aim", "", &[(BORDER, y - 4.0), (BORDER + 26.0, y - 4.0)]);
    let text = format!("aim of Selvedge: {}", better.bound());
    canvas.text("name", Anchor::Start, BORDER + 34.0, y, &text);
    y
}

/// The style of one of many lines.
fn patterned(index: usize, is_ours: bool) -> String {
    let colour =
        if is_ours { OURS[0] } else { OTHERS[index % OTHERS.len()].split(';').next().unwrap_or_default() };
    format!("{colour}{}", DASHES[index / OTHERS.len() % DASHES.len()])
}

/// Places for names beside these ones, which do not overlap, in the same order.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = wanted.to_vec();
    let mut free = top;
    for index in &order {
        places[*index] = places[*index].max(free);
        free = places[*index] + STEP;
    }
    // What has come too low is pushed up again.
    let mut free = bottom;
    for index in order.iter().rev() {
        places[*index] = places[*index].min(free);
        free = places[*index] - STEP;
    }
    places
}

/// A line of the legend: the sign, and the name; then why a size has no value. Returns the y of
/// its last line.
fn entry(canvas: &mut Canvas, mut y: f64, line: &Line<'_>, style: &str, shape: usize) -> f64 {
    let class = if line.row.is_ours() { "name strong" } else { "name" };
    for (index, text) in wrapped(&line.row.system, NAME, WIDTH - 42.0 - BORDER).iter().enumerate() {
        y += 18.0;
        if index == 0 {
            canvas.line("series", style, &[(BORDER, y - 4.0), (BORDER + 26.0, y - 4.0)]);
            canvas.marker(shape, &fill(style), (BORDER + 13.0, y - 4.0));
        }
        canvas.text(class, Anchor::Start, BORDER + 34.0, y, text);
    }
    y
}

/// A marker is filled with the colour of its line.
fn fill(stroke: &str) -> String {
    let colour = stroke.split(';').next().unwrap_or("");
    colour.replacen("stroke", "fill", 1)
}

/// The scale of sizes, from the least to the greatest. No size stands a decade below the least
/// that is above zero.
fn across(sizes: &[(f64, Vec<&Row>)]) -> Scale {
    let above = sizes.iter().map(|(size, _)| *size).filter(|size| *size > 0.0);
    let (min, max) = above.fold((f64::MAX, 1.0), |(a, b), size| (size.min(a), size.max(b)));
    let zero = sizes.iter().any(|(size, _)| *size == 0.0);
    Scale::Log { min: if zero { min / 10.0 } else { min }, max }
}

/// Ours first, and each in the order of its first row.
fn lines<'a>(sizes: &[(f64, Vec<&'a Row>)]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (size, rows) in sizes {
        for row in rows {
            let Ok(value) = row.value else { continue };
            match lines.iter_mut().find(|line| line.row.system == row.system) {
                Some(line) => line.points.push((*size, value)),
                None => lines.push(Line { row, points: vec![(*size, value)] }),
            }
        }
    }
    lines.sort_by_key(|line| !line.row.is_ours());
    lines
}
