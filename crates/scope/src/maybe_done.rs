//! [`MaybeDone`]: a future, or its output when it is ready.
//!
//! `join.rs` has one for each of its futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[derive(Debug)]
#[expect(unnameable_types, reason = "only the traits of tuples need it, in their signatures")]
pub enum MaybeDone<F: Future> {
    Running(F),
    Done(F::Output),
    Taken,
}

impl<F: Future> MaybeDone<F> {
    /// Lets the future run if it has not ended; whether it has now. It is dropped as it ends.
    #[inline(always)]
    pub(crate) fn run(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        // SAFETY: nothing is moved out: the future stays where it is until `set` drops it.
        let MaybeDone::Running(future) = (unsafe { self.as_mut().get_unchecked_mut() }) else { return true };
        // SAFETY: pinned with us.
        let Poll::Ready(output) = unsafe { Pin::new_unchecked(future) }.poll(cx) else { return false };
        self.set(MaybeDone::Done(output));
        true
    }

    /// What the future returned.
    ///
    /// # Panics
    /// If it has not ended, or this was asked before.
    #[inline(always)]
    pub(crate) fn take(self: Pin<&mut Self>) -> F::Output {
        // SAFETY: a future that has ended is moved from here no more; of what is moved nothing was
        // pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if !matches!(this, MaybeDone::Done(_)) {
            not_there();
        }
        match std::mem::replace(this, MaybeDone::Taken) {
            MaybeDone::Done(output) => output,
            _ => unreachable!("just looked"),
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> MaybeDone<F> {
    /// What the future failed with, if it has.
    #[inline(always)]
    pub(crate) fn take_error(self: Pin<&mut Self>) -> Option<E> {
        if !matches!(&*self, MaybeDone::Done(Err(_))) {
            return None;
        }
        self.take().err()
    }

    /// What the future succeeded with.
    ///
    /// # Panics
    /// As [`take`](MaybeDone::take), and if it has failed.
    #[inline(always)]
    pub(crate) fn take_value(self: Pin<&mut Self>) -> T {
        match self.take() {
            Ok(value) => value,
            Err(_) => not_there(),
        }
    }
}

#[cold]
fn not_there() -> ! {
    panic!("a future is not polled after it has ended")
}
