//! A stage over bytes, for the text of lines.
//!
//! `branching_by_lines` in `stage.rs` calls [`over_text`] for the branches of an `if` or a
//! `foreach` over bytes with a condition about whole lines. The lines are items there, and the
//! stages of a branch take bytes.

use selvedge_pipeline::{Flow, Sink, Transduce, Transducer};
use std::ops::ControlFlow;

/// The stage of [`over_text`].
#[derive(Debug, Clone)]
pub struct OverText<T> {
    recipe: T,
    running: Option<T>,
    /// Whether the stage begins anew for each item.
    anew: bool,
}

/// Feeds the text of each item to `stage`, and yields the chunks of its output as items of any
/// length.
///
/// With `anew` the stage begins anew for each item.
pub fn over_text<T: Transduce<u8, u8> + Clone>(
    stage: Transducer<u8, u8, T>,
    anew: bool,
) -> Transducer<[u8], [u8], OverText<T>> {
    Transducer::new(OverText { recipe: stage.into_stage(), running: None, anew })
}

/// Bytes become an item for each chunk.
struct Pieces<'a, S> {
    out: &'a mut S,
    /// Whether `out` has broken.
    finished: bool,
}

impl<'a, S> Pieces<'a, S> {
    fn new(out: &'a mut S) -> Self {
        Pieces { out, finished: false }
    }
}

impl<S: Sink<[u8]>> Sink<u8> for Pieces<'_, S> {
    const CHUNKS: bool = true;

    fn put(&mut self, item: &u8) -> Flow {
        self.put_chunk(std::slice::from_ref(item))
    }

    fn put_chunk(&mut self, chunk: &[u8]) -> Flow {
        if chunk.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = self.out.put(chunk);
        self.finished |= flow.is_break();
        flow
    }
}

impl<T: Transduce<u8, u8> + Clone> Transduce<[u8], [u8]> for OverText<T> {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        let stage = self.running.get_or_insert_with(|| self.recipe.clone());
        let mut pieces = Pieces::new(out);
        let flow = stage.put_chunk(item, &mut pieces);
        if !self.anew {
            return flow;
        }
        // A stage that has broken by itself is finished, and has given all of its output.
        let flow = if flow.is_continue() { stage.end(&mut pieces) } else { flow };
        if pieces.finished || (flow.is_break() && stage.failure().is_some()) {
            // The stage is kept, because the caller asks it for the failure.
            return ControlFlow::Break(());
        }
        self.running = None;
        ControlFlow::Continue(())
    }

    fn end<S: Sink<[u8]>>(&mut self, out: &mut S) -> Flow {
        if self.anew {
            return ControlFlow::Continue(());
        }
        let stage = self.running.get_or_insert_with(|| self.recipe.clone());
        stage.end(&mut Pieces::new(out))
    }

    fn failure(&self) -> Option<&selvedge_pipeline::StageError> {
        self.running.as_ref().and_then(|stage| stage.failure())
    }
}
