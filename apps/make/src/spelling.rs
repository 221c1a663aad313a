//! Names that the user may have meant: [`unknown`] tells a target that is not there, and
//! [`did_you_mean`] finds the name that is nearest. `targets.rs` and the tools call them.

use crate::error::MakeError;
use crate::graph::{Files, Graph};
use strsim::generic_levenshtein;

/// The error about a target that the graph does not have.
pub(crate) fn unknown(graph: &Graph, name: &[u8]) -> MakeError {
    let hint = match name {
        b"clean" => ", did you mean 'selvedge-make -t clean'?".to_string(),
        b"help" => ", did you mean 'selvedge-make -h'?".to_string(),
        _ => {
            let known = graph.edge_ids().flat_map(|edge| graph.files_of(edge, Files::Outputs));
            did_you_mean(known.map(|node| graph.path(*node)), name)
        }
    };
    MakeError::UnknownTarget { name: String::from_utf8_lossy(name).into_owned(), hint }
}

/// The hint at that one of the known names which is nearest to `name`; empty if all are far away.
pub(crate) fn did_you_mean<'a>(known: impl Iterator<Item = &'a [u8]>, name: &[u8]) -> String {
    let name = name.to_vec();
    match known.map(|known| (generic_levenshtein(&known.to_vec(), &name), known)).min() {
        Some((distance, near)) if distance <= 3 => {
            format!(", did you mean '{}'?", String::from_utf8_lossy(near))
        }
        _ => String::new(),
    }
}
