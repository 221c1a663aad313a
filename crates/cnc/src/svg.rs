//! A picture of a graph as SVG: `Graph::svg`, and [`Monitor::svg`] with numbers. `picture.rs` has
//! the nodes and arrows; this file has the layout and the drawing.
//!
//! The layout has layers, as Sugiyama's has: arrows that close a circle are turned round, each
//! vertex is below all vertices with arrows to it, an arrow over several layers has a bend in each
//! layer between, and each layer is sorted by where its neighbours are. The same graph has the same
//! picture.
//!
//! [`Monitor::svg`]: crate::Monitor::svg

use crate::picture::{ArrowKind, Picture, Place};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The height of a node, the distance of layers, and the least distance of neighbours.
const HEIGHT: f64 = 40.0;
const LAYER: f64 = 90.0;
const GAP: f64 = 24.0;
/// The width of a bend, and of a character.
const BEND: f64 = 8.0;
const CHARACTER: f64 = 7.5;
/// How often the layers are sorted, and how often vertices are moved to their neighbours.
const SWEEPS: usize = 12;

/// A node, or a bend of an arrow.
struct Vertex {
    layer: usize,
    width: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// The places of all vertices. The first ones are the nodes.
struct Layout {
    vertices: Vec<Vertex>,
    /// The vertices of each arrow, from its begin to its end.
    ways: Vec<Vec<usize>>,
    layers: Vec<Vec<usize>>,
}

/// The arrows that close a circle, in a search from the first vertex on.
fn backward(count: usize, arrows: &[(usize, usize)]) -> Vec<bool> {
    let mut from = vec![Vec::new(); count];
    for (number, arrow) in arrows.iter().enumerate() {
        from[arrow.0].push(number);
    }
    // 0: not met, 1: on the way, 2: done.
    let (mut state, mut back) = (vec![0_u8; count], vec![false; arrows.len()]);
    for begin in 0..count {
        if state[begin] != 0 {
            continue;
        }
        state[begin] = 1;
        let mut way = vec![(begin, 0)];
        while let Some((at, next)) = way.last_mut() {
            let Some(&arrow) = from[*at].get(*next) else {
                state[*at] = 2;
                way.pop();
                continue;
            };
            *next += 1;
            let to = arrows[arrow].1;
            match state[to] {
                0 => {
                    state[to] = 1;
                    way.push((to, 0));
                }
                1 => back[arrow] = true,
                _ => {}
            }
        }
    }
    back
}

/// The layer of each vertex: the length of the longest way to it. There is no circle.
fn layers_of(count: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let (mut layer, mut open) = (vec![0; count], vec![0; count]);
    arrows.iter().for_each(|arrow| open[arrow.1] += 1);
    let mut ready: Vec<usize> = (0..count).filter(|&vertex| open[vertex] == 0).collect();
    while let Some(vertex) = ready.pop() {
        for &(from, to) in arrows.iter().filter(|arrow| arrow.0 == vertex) {
            layer[to] = layer[to].max(layer[from] + 1);
            open[to] -= 1;
            if open[to] == 0 {
                ready.push(to);
            }
        }
    }
    layer
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

impl Layout {
    fn new(widths: &[f64], arrows: &[(usize, usize)]) -> Layout {
        let back = backward(widths.len(), arrows);
        let turned =
            |(&(from, to), back): (&(usize, usize), &bool)| if *back { (to, from) } else { (from, to) };
        let down: Vec<(usize, usize)> = arrows.iter().zip(&back).map(turned).collect();
        let inner: Vec<(usize, usize)> = down.iter().copied().filter(|(from, to)| from != to).collect();
        let layer = layers_of(widths.len(), &inner);
        let vertex = |layer, width| Vertex { layer, width, x: 0.0, above: Vec::new(), below: Vec::new() };
        let mut vertices: Vec<Vertex> =
            widths.iter().zip(&layer).map(|(&width, &layer)| vertex(layer, width)).collect();
        let mut ways = Vec::new();
        for (&(from, to), &back) in down.iter().zip(&back) {
            let bends = vertices.len()..vertices.len() + layer[to].saturating_sub(layer[from] + 1);
            vertices.extend((layer[from] + 1..layer[to]).map(|layer| vertex(layer, BEND)));
            let mut way: Vec<usize> = [from].into_iter().chain(bends).chain([to]).collect();
            if from != to {
                for pair in way.windows(2) {
                    vertices[pair[0]].below.push(pair[1]);
                    vertices[pair[1]].above.push(pair[0]);
                }
            }
            if back {
                way.reverse();
            }
            ways.push(way);
        }
        let mut layers = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
        for (number, vertex) in vertices.iter().enumerate() {
            layers[vertex.layer].push(number);
        }
        let mut layout = Layout { vertices, ways, layers };
        (0..layout.layers.len()).for_each(|layer| layout.spread(layer));
        for sweep in 0..SWEEPS {
            let (count, down) = (layout.layers.len(), sweep % 2 == 0);
            for step in 0..count {
                layout.arrange(if down { step } else { count - 1 - step }, down, sweep < SWEEPS - 4);
            }
        }
        layout
    }

    /// Puts the vertices of a layer side by side, in the middle.
    fn spread(&mut self, layer: usize) {
        let mut x = 0.0;
        for &number in &self.layers[layer] {
            let vertex = &mut self.vertices[number];
            vertex.x = x + vertex.width / 2.0;
            x += vertex.width + GAP;
        }
        self.layers[layer].iter().for_each(|&number| self.vertices[number].x -= x / 2.0);
    }

    /// Moves the vertices of a layer to where their neighbours are. `sorts` may change their order.
    fn arrange(&mut self, layer: usize, down: bool, sorts: bool) {
        let wish = |number: usize| {
            let vertex = &self.vertices[number];
            let near = if down { &vertex.above } else { &vertex.below };
            mean(near.iter().map(|&near| self.vertices[near].x)).unwrap_or(vertex.x)
        };
        let mut wishes: Vec<(f64, usize)> =
            self.layers[layer].iter().map(|&number| (wish(number), number)).collect();
        if sorts {
            wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        // Each one not nearer to the one before than it may be; then all to the middle of the
        // wishes.
        let (mut end, mut moved) = (f64::NEG_INFINITY, 0.0);
        for &(wish, number) in &wishes {
            let vertex = &mut self.vertices[number];
            vertex.x = wish.max(end + GAP + vertex.width / 2.0);
            end = vertex.x + vertex.width / 2.0;
            moved += vertex.x - wish;
        }
        let back = moved / wishes.len().max(1) as f64;
        wishes.iter().for_each(|&(_, number)| self.vertices[number].x -= back);
        self.layers[layer] = wishes.into_iter().map(|(_, number)| number).collect();
    }
}

/// A text between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Draws a picture. Below its name, each node has the note of its place.
pub(crate) fn svg<'n>(picture: &Picture, note: impl Fn(Place) -> &'n str) -> String {
    let number: HashMap<Place, usize> =
        picture.nodes.iter().enumerate().map(|(number, node)| (node.place, number)).collect();
    let ends = |arrow: &crate::picture::Arrow| Some((*number.get(&arrow.from)?, *number.get(&arrow.to)?));
    let arrows: Vec<((usize, usize), ArrowKind)> =
        picture.arrows.iter().filter_map(|arrow| Some((ends(arrow)?, arrow.kind))).collect();
    let width = |text: &str| text.chars().count() as f64 * CHARACTER;
    let widths: Vec<f64> = picture
        .nodes
        .iter()
        .map(|node| {
            let room = match node.place {
                Place::Items(_) => 20.0,
                Place::Step(_) => 50.0,
                Place::Tags(_) => 80.0,
            };
            width(&node.name).max(width(note(node.place))) + room
        })
        .collect();
    let layout = Layout::new(&widths, &arrows.iter().map(|arrow| arrow.0).collect::<Vec<_>>());
    let edge = |side: f64| {
        layout.vertices.iter().map(move |at| (at.x + side * at.width / 2.0) * side).fold(0.0, f64::max)
    };
    let (left, right) = (edge(-1.0) + GAP, edge(1.0) + GAP);
    let height = layout.layers.len() as f64 * LAYER;
    let mut text = String::new();
    let mut line = |parts: std::fmt::Arguments<'_>| writeln!(text, "{parts}").expect("a string takes all");
    line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="{:.0} 0 {:.0} {height:.0}" width="{1:.0}" height="{height:.0}" font-family="sans-serif" font-size="13">"#,
        -left,
        left + right
    ));
    line(format_args!(
        r#"<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>"#
    ));
    let middle = |layer: usize| (layer as f64 + 0.5) * LAYER;
    for (way, (_, kind)) in layout.ways.iter().zip(&arrows) {
        let dash = match kind {
            ArrowKind::Prescribes => r#" stroke-dasharray="2 3""#,
            ArrowKind::Declared => r#" stroke-dasharray="6 3""#,
            ArrowKind::Used => "",
        };
        let path = path(&layout, way, middle);
        line(format_args!(r#"<path d="{path}" fill="none" stroke="black"{dash} marker-end="url(#tip)"/>"#));
    }
    for (node, vertex) in picture.nodes.iter().zip(&layout.vertices) {
        let (x, y, half) = (vertex.x, middle(vertex.layer), vertex.width / 2.0);
        let up = HEIGHT / 2.0;
        let style = if node.is_environment { r#" stroke-dasharray="5 3""# } else { "" };
        let style = format!(r#" fill="white" stroke="black"{style}"#);
        match node.place {
            Place::Step(_) => {
                line(format_args!(r#"<ellipse cx="{x:.1}" cy="{y:.1}" rx="{half:.1}" ry="{up}"{style}/>"#));
            }
            Place::Items(_) => line(format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{HEIGHT}"{style}/>"#,
                x - half,
                y - up,
                2.0 * half
            )),
            Place::Tags(_) => line(format_args!(
                r#"<path d="M{:.1} {:.1}H{:.1}L{x:.1} {:.1}z"{style}/>"#,
                x - half,
                y - up,
                x + half,
                y + up
            )),
        }
        let note = note(node.place);
        // A triangle is wide at its top.
        let is_triangle = matches!(node.place, Place::Tags(_));
        let first = if is_triangle {
            y - 7.0
        } else if note.is_empty() {
            y + 4.5
        } else {
            y - 2.0
        };
        let name = escaped(&node.name);
        line(format_args!(r#"<text x="{x:.1}" y="{first:.1}" text-anchor="middle">{name}</text>"#));
        if !note.is_empty() {
            let (second, note) = (first + 14.0, escaped(note));
            line(format_args!(
                r#"<text x="{x:.1}" y="{second:.1}" text-anchor="middle" fill="gray">{note}</text>"#
            ));
        }
    }
    text.push_str("</svg>\n");
    text
}

/// The curve of an arrow.
fn path(layout: &Layout, way: &[usize], middle: impl Fn(usize) -> f64) -> String {
    let at = |number: usize| (layout.vertices[number].x, middle(layout.vertices[number].layer));
    let (first, last) = (way[0], way[way.len() - 1]);
    let (x, y) = at(first);
    if first == last {
        let right = x + layout.vertices[first].width / 2.0;
        let (top, bottom, far) = (y - 8.0, y + 8.0, right + GAP);
        return format!("M{right:.1} {top:.1}C{far:.1} {top:.1} {far:.1} {bottom:.1} {right:.1} {bottom:.1}");
    }
    let down = if at(last).1 > y { 1.0 } else { -1.0 };
    let mut text = format!("M{x:.1} {:.1}", y + down * HEIGHT / 2.0);
    let mut before = (x, y + down * HEIGHT / 2.0);
    for &number in &way[1..] {
        let (x, mut y) = at(number);
        if number == last {
            y -= down * HEIGHT / 2.0;
        }
        let half = f64::midpoint(before.1, y);
        write!(text, "C{:.1} {half:.1} {x:.1} {half:.1} {x:.1} {y:.1}", before.0)
            .expect("a string takes all");
        before = (x, y);
    }
    text
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{GAP, Layout};
    use crate::random::random;

    #[test]
    fn no_two_vertices_of_a_layer_overlap_and_each_arrow_goes_by_single_layers() {
        for seed in 0..50 {
            let mut seed = seed;
            let mut below = |limit: u64| (random(&mut seed) % limit) as usize;
            let count = 1 + below(12);
            let widths: Vec<f64> = (0..count).map(|_| 20.0 + below(80) as f64).collect();
            let arrows: Vec<(usize, usize)> =
                (0..below(30)).map(|_| (below(count as u64), below(count as u64))).collect();
            let layout = Layout::new(&widths, &arrows);
            for layer in &layout.layers {
                for pair in layer.windows(2) {
                    let [a, b] = [&layout.vertices[pair[0]], &layout.vertices[pair[1]]];
                    assert!(b.x - a.x >= (a.width + b.width) / 2.0 + GAP - 1e-6, "{arrows:?}");
                }
            }
            for (way, &(from, to)) in layout.ways.iter().zip(&arrows) {
                assert_eq!((way[0], way[way.len() - 1]), (from, to));
                let layers = way.iter().map(|&number| layout.vertices[number].layer);
                let layers: Vec<usize> = layers.collect();
                assert!(from == to || layers.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1));
            }
        }
    }
}
