//! `finally`: a stage that passes items on and calls a function once when the pipeline has no more
//! use for the stage. Users call it to close files and to note the order of ends.
//!
//! Only the destructor makes the call, and `end` does not. So the end, a break, a failure, a panic
//! and a pipeline that is dropped are one case. `f` is an `Option` because `drop` has only a
//! reference and must move the function out.

use crate::item::{Flow, GO_ON, Item};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use std::fmt;

/// The stage of [`finally`].
pub struct Finally<F: FnOnce()> {
    f: Option<F>,
}

/// Yields each item as it is, and calls `f` once when the pipeline is done with the stage: at the
/// end, after a break or a failure, in a panic, and when the pipeline is dropped.
///
/// The finalisers of a pipeline run in the order of the stream, the one next to the source first,
/// after the source is closed. All have run before the pipeline gives its result.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{finally, naturals, take};
/// use std::cell::RefCell;
///
/// let log = RefCell::new(vec![]);
/// let say = |what| { let log = &log; move || log.borrow_mut().push(what) };
/// let two = (naturals() >> finally(say("first")) >> take(2) >> finally(say("second"))).collect();
/// assert_eq!((two, log.into_inner()), (vec![0, 1], vec!["first", "second"]));
/// ```
#[doc(alias = "bracket")]
pub fn finally<A: Item + ?Sized, F: FnOnce()>(f: F) -> Transducer<A, A, Finally<F>> {
    Transducer::new(Finally { f: Some(f) })
}

impl<F: FnOnce()> Drop for Finally<F> {
    fn drop(&mut self) {
        if let Some(f) = self.f.take() {
            f();
        }
    }
}

impl<F: FnOnce()> fmt::Debug for Finally<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finally").finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized, F: FnOnce()> Transduce<A, A> for Finally<F> {
    #[inline(always)]
    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        out.put(item)
    }

    #[inline(always)]
    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        out.put_chunk(chunk)
    }

    fn end<S: Sink<A>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}
