//! The picture of a graph of steps as SVG: [`graph_svg`]. `layout.rs` says where everything is.

use super::layout::{GAP, Layout, Vertex};
use selvedge_cnc::{ArrowKind, CollectionId, Picture, PictureArrow, PictureNode};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The height of a node, and the distance of layers.
const HEIGHT: f64 = 40.0;
const LAYER: f64 = 90.0;
/// The width of a character.
const CHARACTER: f64 = 7.5;

/// A picture of a graph as SVG: steps are ovals, item collections boxes, tag collections triangles.
/// It shows the same as [`graph_dot`](crate::graph_dot), and needs no other program.
///
/// The picture of a [`Monitor`](selvedge_cnc::Monitor) has numbers, which stand below the names:
/// how many of the known instances of a step have ended, how many wait, and how many items or tags
/// were put.
///
/// # Complexity
/// That of the layout of the collections and their uses. The number of instances does not matter.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::OneByOne};
/// use selvedge::see::graph_svg;
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let picture = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("numbers < 9");
///     let squares = graph.items("squares");
///     graph.prescribe(tags, "square", move |n, step| step.put(squares, n, n * n));
///     let monitor = graph.monitor();
///     graph.initialize(|env| env.put_tag(tags, 3))?;
///     graph.run(&OneByOne)?;
///     Ok::<_, cnc::GraphError>(graph_svg(&monitor.picture()))
/// })?;
/// assert!(picture.starts_with("<svg") && picture.contains("numbers &lt; 9"));
/// assert!(picture.contains("1 of 1") && picture.contains("1 put"));
/// # Ok(())
/// # }
/// ```
pub fn graph_svg(picture: &Picture) -> String {
    let notes: Vec<String> = picture.nodes.iter().map(note).collect();
    let nodes = || picture.nodes.iter().zip(&notes);
    let numbers: HashMap<CollectionId, usize> =
        picture.nodes.iter().enumerate().map(|(number, node)| (node.collection, number)).collect();
    let ends = |arrow: &PictureArrow| Some((*numbers.get(&arrow.from)?, *numbers.get(&arrow.to)?));
    let (arrows, kinds): (Vec<(usize, usize)>, Vec<ArrowKind>) =
        picture.arrows.iter().filter_map(|arrow| Some((ends(arrow)?, arrow.kind))).unzip();
    let widths: Vec<f64> = nodes().map(|(node, note)| width(node, note)).collect();
    let layout = Layout::new(&widths, &arrows);
    let mut text = head(&layout);
    for (way, kind) in layout.ways.iter().zip(kinds) {
        let dash = match kind {
            ArrowKind::Prescribes => r#" stroke-dasharray="2 3""#,
            ArrowKind::Declared => r#" stroke-dasharray="6 3""#,
            ArrowKind::Used => "",
        };
        let path = path(&layout, way);
        line(
            &mut text,
            format_args!(r#"<path d="{path}" fill="none" stroke="black"{dash} marker-end="url(#tip)"/>"#),
        );
    }
    for ((node, note), vertex) in nodes().zip(&layout.vertices) {
        draw(node, note, vertex, &mut text);
    }
    text.push_str("</svg>\n");
    text
}

fn line(text: &mut String, parts: std::fmt::Arguments<'_>) {
    writeln!(text, "{parts}").expect("a string takes all");
}

/// A text between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The numbers of a node, which stand below its name.
fn note(node: &PictureNode) -> String {
    match &node.progress {
        Some(of) if of.waiting > 0 => format!("{} of {}, {} wait", of.ended, of.known, of.waiting),
        Some(of) => format!("{} of {}", of.ended, of.known),
        None if node.put > 0 => format!("{} put", node.put),
        None => String::new(),
    }
}

/// The width of a node.
fn width(node: &PictureNode, note: &str) -> f64 {
    let room = match node.collection {
        CollectionId::Items(_) => 20.0,
        CollectionId::Step(_) => 50.0,
        CollectionId::Tags(_) => 80.0,
    };
    let width = |text: &str| text.chars().count() as f64 * CHARACTER;
    width(&node.name).max(width(note)) + room
}

/// Where the middle of a layer is, from the top.
fn middle(layer: usize) -> f64 {
    (layer as f64 + 0.5) * LAYER
}

/// The begin of the text, with the size of the drawing and the tip of the arrows.
fn head(layout: &Layout) -> String {
    let edge = |side: f64| {
        layout.vertices.iter().map(move |at| (at.x + side * at.width / 2.0) * side).fold(0.0, f64::max)
    };
    let (left, right) = (edge(-1.0) + GAP, edge(1.0) + GAP);
    let height = layout.layers.len() as f64 * LAYER;
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="{:.0} 0 {:.0} {height:.0}" width="{1:.0}" height="{height:.0}" font-family="sans-serif" font-size="13">"#,
            -left,
            left + right
        ),
    );
    line(
        &mut text,
        format_args!(
            r#"<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>"#
        ),
    );
    text
}

/// Draws a node with its name and its note.
fn draw(node: &PictureNode, note: &str, vertex: &Vertex, text: &mut String) {
    let (x, y, half) = (vertex.x, middle(vertex.layer), vertex.width / 2.0);
    let up = HEIGHT / 2.0;
    let style = if node.is_environment { r#" stroke-dasharray="5 3""# } else { "" };
    let style = format!(r#" fill="white" stroke="black"{style}"#);
    match node.collection {
        CollectionId::Step(_) => {
            line(text, format_args!(r#"<ellipse cx="{x:.1}" cy="{y:.1}" rx="{half:.1}" ry="{up}"{style}/>"#));
        }
        CollectionId::Items(_) => line(
            text,
            format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{HEIGHT}"{style}/>"#,
                x - half,
                y - up,
                2.0 * half
            ),
        ),
        CollectionId::Tags(_) => line(
            text,
            format_args!(
                r#"<path d="M{:.1} {:.1}H{:.1}L{x:.1} {:.1}z"{style}/>"#,
                x - half,
                y - up,
                x + half,
                y + up
            ),
        ),
    }
    // A triangle is wide at its top.
    let is_triangle = matches!(node.collection, CollectionId::Tags(_));
    let first = if is_triangle {
        y - 7.0
    } else if note.is_empty() {
        y + 4.5
    } else {
        y - 2.0
    };
    let name = escaped(&node.name);
    line(text, format_args!(r#"<text x="{x:.1}" y="{first:.1}" text-anchor="middle">{name}</text>"#));
    if !note.is_empty() {
        let (second, note) = (first + 14.0, escaped(note));
        line(
            text,
            format_args!(
                r#"<text x="{x:.1}" y="{second:.1}" text-anchor="middle" fill="gray">{note}</text>"#
            ),
        );
    }
}

/// The curve of an arrow.
fn path(layout: &Layout, way: &[usize]) -> String {
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
