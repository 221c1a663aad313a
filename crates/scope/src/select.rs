//! [`select`] and [`race`]: several futures in one thread, until the first of them is ready.
//!
//! Programs call them. The others of the futures are dropped at the end, as a cancellation does.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until one of two to eight futures is ready, given as a tuple; says which, and drops the
/// others. [`select!`](crate::select!) names its branches, and is fair to them.
///
/// They are polled in the order of the tuple, so that of several that are ready the first in it
/// wins: put what must not be starved in front.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, yield_now};
/// use selvedge::scope::{Selected, select};
///
/// let first = round_robin(select((async { yield_now().await; "slow" }, async { 7 })))?;
/// assert_eq!(first, Selected::Second(7));
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline(always)]
pub fn select<T: Select>(futures: T) -> Selecting<T> {
    Selecting { futures }
}

/// As [`select`], for futures with one type of output, which it returns.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::scope::race;
///
/// assert_eq!(round_robin(race((std::future::pending(), async { "first" })))?, "first");
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline(always)]
pub fn race<T: Race>(futures: T) -> Racing<T> {
    Racing { futures }
}

/// Which future was ready first, with its output. What a shorter tuple does not have cannot be, and
/// need not be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected<
    A,
    B,
    C = Infallible,
    D = Infallible,
    E = Infallible,
    F = Infallible,
    G = Infallible,
    H = Infallible,
> {
    /// The first of the tuple.
    First(A),
    /// The second.
    Second(B),
    /// The third.
    Third(C),
    /// The fourth.
    Fourth(D),
    /// The fifth.
    Fifth(E),
    /// The sixth.
    Sixth(F),
    /// The seventh.
    Seventh(G),
    /// The eighth.
    Eighth(H),
}

/// A tuple of futures for [`select`].
pub trait Select {
    /// The [`Selected`] of their outputs.
    type Output;
    #[doc(hidden)]
    fn poll(futures: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output>;
}

/// A tuple of futures for [`race`], all with the same output.
pub trait Race {
    /// Their output.
    type Output;
    #[doc(hidden)]
    fn poll(futures: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output>;
}

/// The future of [`select`].
#[must_use = "nothing happens until it is awaited"]
pub struct Selecting<T> {
    futures: T,
}

/// The future of [`race`].
#[must_use = "nothing happens until it is awaited"]
pub struct Racing<T> {
    futures: T,
}

impl<T: Select> Future for Selecting<T> {
    type Output = T::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        // SAFETY: the only field, pinned with us.
        T::poll(unsafe { self.map_unchecked_mut(|this| &mut this.futures) }, cx)
    }
}

impl<T: Race> Future for Racing<T> {
    type Output = T::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        // SAFETY: the only field, pinned with us.
        T::poll(unsafe { self.map_unchecked_mut(|this| &mut this.futures) }, cx)
    }
}

impl<T> fmt::Debug for Selecting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selecting").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Racing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Racing").finish_non_exhaustive()
    }
}

macro_rules! tuple {
    ($(($future:ident $variant:ident $i:tt)),+) => {
        impl<$($future: Future),+> Select for ($($future,)+) {
            type Output = Selected<$($future::Output),+>;

            #[inline(always)]
            fn poll(futures: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                // SAFETY: its parts are pinned with it, and none is moved.
                let futures = unsafe { futures.get_unchecked_mut() };
                $(
                    // SAFETY: as above.
                    if let Poll::Ready(output) = unsafe { Pin::new_unchecked(&mut futures.$i) }.poll(cx) {
                        return Poll::Ready(Selected::$variant(output));
                    }
                )+
                Poll::Pending
            }
        }

        impl<Output, $($future: Future<Output = Output>),+> Race for ($($future,)+) {
            type Output = Output;

            #[inline(always)]
            fn poll(futures: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
                // SAFETY: its parts are pinned with it, and none is moved.
                let futures = unsafe { futures.get_unchecked_mut() };
                $(
                    // SAFETY: as above.
                    if let Poll::Ready(output) = unsafe { Pin::new_unchecked(&mut futures.$i) }.poll(cx) {
                        return Poll::Ready(output);
                    }
                )+
                Poll::Pending
            }
        }
    };
}

tuple!((A First 0), (B Second 1));
tuple!((A First 0), (B Second 1), (C Third 2));
tuple!((A First 0), (B Second 1), (C Third 2), (D Fourth 3));
tuple!((A First 0), (B Second 1), (C Third 2), (D Fourth 3), (E Fifth 4));
tuple!((A First 0), (B Second 1), (C Third 2), (D Fourth 3), (E Fifth 4), (F Sixth 5));
tuple!((A First 0), (B Second 1), (C Third 2), (D Fourth 3), (E Fifth 4), (F Sixth 5), (G Seventh 6));
tuple!((A First 0), (B Second 1), (C Third 2), (D Fourth 3), (E Fifth 4), (F Sixth 5), (G Seventh 6), (H Eighth 7));
