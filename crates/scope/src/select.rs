//! [`select`] and [`race`]: several futures in one thread, until the first of them is ready.
//!
//! Programs call them. The others of the futures are dropped at the end, as a cancellation does.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until one of two to eight futures is ready, given as a tuple; says which, and drops the
/// others. [`select!`](crate::select!) gives each a name.
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

/// Waits until one of any number of futures is ready, drops the others, and goes on with what is
/// written behind its name.
///
/// A branch is `pattern = future => expression`, with a comma behind it also after a block. The
/// futures are polled in their order, so that of several that are ready the first wins. The
/// expression runs when the others have been dropped; it may await, return, break and use `?`, and
/// what the futures borrow is free again. The pattern must match whatever the future gives: a
/// `match` in the expression tells cases apart.
///
/// # Examples
/// ```
/// use selvedge::scope::select;
/// use selvedge::sync::Fifo;
/// use selvedge::sleep;
/// use std::time::Duration;
///
/// let said = selvedge::run_local(async {
///     let (words, numbers, stop) = (Fifo::new_local(), Fifo::new_local(), Fifo::new_local());
///     words.put("warp");
///     numbers.put(7);
///     let mut said = Vec::new();
///     loop {
///         select! {
///             () = stop.take() => break,
///             word = words.take() => said.push(word.to_string()),
///             number = numbers.take() => said.push(number.to_string()),
///             () = sleep(Duration::from_millis(5)) => stop.put(()),
///         }
///     }
///     said
/// })?;
/// assert_eq!(said, ["warp", "7"]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[macro_export]
macro_rules! select {
    (@future $only:expr,) => { $only };
    (@future $first:expr, $($rest:expr,)+) => {
        $crate::select(($first, $crate::select!(@future $($rest,)+)))
    };
    (@match $ready:expr, $pattern:pat => $body:expr,) => {
        match $ready { $pattern => $body }
    };
    (@match $ready:expr, $pattern:pat => $body:expr, $($rest:tt)+) => {
        match $ready {
            $crate::Selected::First($pattern) => $body,
            $crate::Selected::Second(other) => $crate::select!(@match other, $($rest)+),
        }
    };
    ($($pattern:pat = $future:expr => $body:expr),+ $(,)?) => {
        $crate::select!(@match $crate::select!(@future $($future,)+).await, $($pattern => $body,)+)
    };
}
