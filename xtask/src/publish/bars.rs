//! A plot of one case: a bar for each system, its name and value over it, and the aim as a line.
//! `plot.rs` calls `draw` for a case that is no size among others.
//!
//! All rows have one unit. A row without a value says why, in the place of its bar. The result must
//! depend on the rows alone, because `tidy` compares it with the file in the tree.

use super::axis::{Scale, short};
use super::measured::{Row, number};
use super::plot::{Better, aim};
use super::svg::{AXIS, Anchor, BORDER, Canvas, NAME, WIDTH, width_of, wrapped};

const BAR: f64 = 9.0;
const LINE: f64 = 16.0;
const GAP: f64 = 9.0;

/// Draws `rows`, which are of one case and one unit; those without a value say why.
pub(super) fn draw(title: &str, alt: &str, rows: &[&Row]) -> String {
    let mut canvas = Canvas::default();
    let mut y = canvas.title(title);
    let better = Better::of(rows);
    let aim = aim(rows, better);
    let values = rows.iter().filter_map(|row| row.value.as_ref().ok().copied());
    let scale = Scale::linear(values.chain(aim).fold(0.0, f64::max));
    let width = WIDTH - 2.0 * BORDER;
    let x = |value: f64| BORDER + width * scale.position(value);
    let unit = rows.iter().find_map(|row| row.value.is_ok().then_some(row.unit.as_str())).unwrap_or("");
    let mut bars = Vec::new();
    for row in rows {
        let ratio = row.ratio.filter(|_| !row.is_ours());
        let said = match &row.value {
            Ok(value) => format!("{} {unit}", number(*value)),
            Err(why) => why.clone(),
        };
        let said = ratio.map_or(said.clone(), |ratio| format!("{said} · {}×", number(ratio)));
        let class = if row.is_ours() { "name strong" } else { "name" };
        let room = width - width_of(&said, NAME) - 10.0;
        let lines = wrapped(&row.system, NAME, room.max(120.0));
        canvas.text("value", Anchor::End, WIDTH - BORDER, y + LINE - 3.0, &said);
        for line in lines {
            y += LINE;
            canvas.text(class, Anchor::Start, BORDER, y - 3.0, &line);
        }
        if let Ok(value) = row.value {
            let class = match (row.is_ours(), row.family()) {
                (true, _) => "bar ours",
                (_, Some(_)) => "bar",
                (_, None) => "bar hollow",
            };
            bars.push((class, [BORDER, y + 1.0, (x(value) - BORDER).max(1.0), BAR]));
            y += BAR;
        }
        y += GAP;
    }
    for tick in scale.ticks() {
        canvas.line("grid", "", &[(x(tick), y - 3.0), (x(tick), y + 1.0)]);
        let anchor = match scale.position(tick) {
            0.0 => Anchor::Start,
            at if at > 0.98 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("axis", anchor, x(tick), y + AXIS + 2.0, &short(tick));
    }
    canvas.line("grid", "", &[(BORDER, y - 3.0), (WIDTH - BORDER, y - 3.0)]);
    for (class, rectangle) in bars {
        canvas.bar(class, rectangle);
        if let Some(aim) = aim {
            // The line crosses the bars alone, because the texts stand between them.
            let [_, top, _, height] = rectangle;
            canvas.line("aim", "", &[(x(aim), top - 2.0), (x(aim), top + height + 2.0)]);
        }
    }
    y += 2.0 * AXIS + 6.0;
    canvas.text("axis", Anchor::Start, BORDER, y, &format!("{unit}, {}", better.words()));
    if let Some(aim) = aim {
        y += AXIS + 6.0;
        canvas.line("aim", "", &[(BORDER, y - 4.0), (BORDER + 26.0, y - 4.0)]);
        let text = format!("aim of Selvedge: {} {} {unit}", better.bound(), number(aim));
        canvas.text("axis", Anchor::Start, BORDER + 34.0, y, &text);
    }
    canvas.finish(alt, y + BORDER)
}
