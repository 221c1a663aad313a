//! What is drawn of graphs of steps (`selvedge-cnc`). Each function here takes plain data of a
//! graph, and returns text.
//!
//! `timeline.rs` draws a `Recording`: which worker ran which step when. `dot.rs` and `svg.rs` draw
//! a `Picture`: the collections, and their uses. `layout.rs` says where `svg.rs` draws them.

mod dot;
mod layout;
mod svg;
mod timeline;

pub use dot::graph_dot;
pub use svg::graph_svg;
pub use timeline::graph_timeline_json;
