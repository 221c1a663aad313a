//! Where the nodes and arrows of a drawing are: [`Layout`], for `svg.rs`.
//!
//! The layout has layers, as Sugiyama's has: arrows that close a circle are turned round, each
//! vertex is below all vertices with arrows to it, an arrow over several layers has a bend in each
//! layer between, and each layer is sorted by where its neighbours are. The same graph has the same
//! layout.

/// The least distance of neighbours.
pub(super) const GAP: f64 = 24.0;
/// The width of a bend.
const BEND: f64 = 8.0;
/// How often the layers are sorted, and how often vertices are moved to their neighbours.
const SWEEPS: usize = 12;

/// A node, or a bend of an arrow.
pub(super) struct Vertex {
    pub(super) layer: usize,
    pub(super) width: f64,
    /// Where its middle is, from left to right.
    pub(super) x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// The places of all vertices. The first ones are the nodes.
pub(super) struct Layout {
    pub(super) vertices: Vec<Vertex>,
    /// The vertices of each arrow, from its begin to its end.
    pub(super) ways: Vec<Vec<usize>>,
    /// The vertices of each layer, from left to right. The first layer is at the top.
    pub(super) layers: Vec<Vec<usize>>,
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
    /// Lays out a vertex for each width. An arrow is the numbers of its two vertices.
    pub(super) fn new(widths: &[f64], arrows: &[(usize, usize)]) -> Layout {
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

#[cfg(test)]
mod tests {
    use super::{GAP, Layout};
    use selvedge_sim::Random;

    #[test]
    fn no_two_vertices_of_a_layer_overlap_and_each_arrow_goes_by_single_layers() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut below = |limit: u64| random.below(limit) as usize;
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
