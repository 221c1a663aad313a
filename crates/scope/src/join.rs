//! [`join`], [`try_join`] and [`join_all`]: several futures in one thread, until all of them are ready.
//!
//! Programs call them. `maybe_done.rs` keeps the output of a future that is ready before the
//! others.

use crate::maybe_done::MaybeDone;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until all of two, three or four futures are ready, given as a tuple; returns their outputs
/// as one.
///
/// The futures run in the thread that awaits them: whenever it is woken, it polls the futures that
/// are not ready yet, in the order of the tuple. Each future is dropped as it becomes ready; a
/// panic of one drops the others.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, yield_now};
/// use selvedge::scope::join;
///
/// let (warp, weft) = round_robin(join((async { yield_now().await; "warp" }, async { "weft" })))?;
/// assert_eq!((warp, weft), ("warp", "weft"));
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline(always)]
pub fn join<T: Join>(futures: T) -> Joining<T> {
    Joining { futures: futures.begin() }
}

/// As [`join`], for results: the first `Err` is returned at once, and drops the other futures.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::scope::try_join;
///
/// let both = try_join((async { "20".parse::<u32>() }, async { "22".parse::<u32>() }));
/// assert_eq!(round_robin(both)?, Ok((20, 22)));
/// let endless = std::future::pending::<Result<(), _>>();
/// let failed = try_join((endless, async { "two".parse::<u32>() }));
/// assert!(round_robin(failed)?.is_err());
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline(always)]
pub fn try_join<T: TryJoin>(futures: T) -> TryJoining<T> {
    TryJoining { futures: futures.try_begin() }
}

/// A tuple of futures for [`join`].
pub trait Join: Sized {
    /// The tuple of their outputs.
    type Outputs;
    #[doc(hidden)]
    type Running;
    #[doc(hidden)]
    fn begin(self) -> Self::Running;
    #[doc(hidden)]
    fn poll(running: Pin<&mut Self::Running>, cx: &mut Context<'_>) -> Poll<Self::Outputs>;
}

/// A tuple of futures for [`try_join`], all with the same type of error.
pub trait TryJoin: Sized {
    /// The tuple of what they return.
    type Outputs;
    /// Their error.
    type Error;
    #[doc(hidden)]
    type Running;
    #[doc(hidden)]
    fn try_begin(self) -> Self::Running;
    #[doc(hidden)]
    fn try_poll(
        running: Pin<&mut Self::Running>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Outputs, Self::Error>>;
}

/// The future of [`join`].
#[must_use = "nothing happens until it is awaited"]
pub struct Joining<T: Join> {
    futures: T::Running,
}

/// The future of [`try_join`].
#[must_use = "nothing happens until it is awaited"]
pub struct TryJoining<T: TryJoin> {
    futures: T::Running,
}

impl<T: Join> Future for Joining<T> {
    type Output = T::Outputs;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Outputs> {
        // SAFETY: the only field, pinned with us.
        T::poll(unsafe { self.map_unchecked_mut(|this| &mut this.futures) }, cx)
    }
}

impl<T: TryJoin> Future for TryJoining<T> {
    type Output = Result<T::Outputs, T::Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the only field, pinned with us.
        T::try_poll(unsafe { self.map_unchecked_mut(|this| &mut this.futures) }, cx)
    }
}

impl<T: Join> fmt::Debug for Joining<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joining").finish_non_exhaustive()
    }
}

impl<T: TryJoin> fmt::Debug for TryJoining<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryJoining").finish_non_exhaustive()
    }
}

macro_rules! tuple {
    ($(($future:ident $value:ident $i:tt)),+) => {
        impl<$($future: Future),+> Join for ($($future,)+) {
            type Outputs = ($($future::Output,)+);
            type Running = ($(MaybeDone<$future>,)+);

            #[inline(always)]
            fn begin(self) -> Self::Running {
                ($(MaybeDone::Running(self.$i),)+)
            }

            #[inline(always)]
            fn poll(running: Pin<&mut Self::Running>, cx: &mut Context<'_>) -> Poll<Self::Outputs> {
                // SAFETY: its parts are pinned with it, and none is moved.
                let running = unsafe { running.get_unchecked_mut() };
                let mut ready = true;
                // SAFETY: as above.
                $(ready &= unsafe { Pin::new_unchecked(&mut running.$i) }.run(cx);)+
                if ready {
                    // SAFETY: as above.
                    Poll::Ready(($(unsafe { Pin::new_unchecked(&mut running.$i) }.take(),)+))
                } else {
                    Poll::Pending
                }
            }
        }

        impl<Error, $($value,)+ $($future: Future<Output = Result<$value, Error>>),+> TryJoin for ($($future,)+) {
            type Outputs = ($($value,)+);
            type Error = Error;
            type Running = ($(MaybeDone<$future>,)+);

            #[inline(always)]
            fn try_begin(self) -> Self::Running {
                ($(MaybeDone::Running(self.$i),)+)
            }

            #[inline(always)]
            fn try_poll(
                running: Pin<&mut Self::Running>,
                cx: &mut Context<'_>,
            ) -> Poll<Result<Self::Outputs, Error>> {
                // SAFETY: its parts are pinned with it, and none is moved.
                let running = unsafe { running.get_unchecked_mut() };
                let mut ready = true;
                $(
                    // SAFETY: as above.
                    let mut future = unsafe { Pin::new_unchecked(&mut running.$i) };
                    if !future.as_mut().run(cx) {
                        ready = false;
                    } else if let Some(error) = future.take_error() {
                        return Poll::Ready(Err(error));
                    }
                )+
                if ready {
                    // SAFETY: as above.
                    Poll::Ready(Ok(($(unsafe { Pin::new_unchecked(&mut running.$i) }.take_value(),)+)))
                } else {
                    Poll::Pending
                }
            }
        }
    };
}

tuple!((A V 0), (B W 1));
tuple!((A V 0), (B W 1), (C X 2));
tuple!((A V 0), (B W 1), (C X 2), (D Y 3));

/// Waits until all futures are ready; returns their outputs in the same order.
///
/// # Complexity
/// Whenever the thread is woken, all futures that are not ready are polled. For more than a few
/// dozen, spawn them in a [`scope()`](crate::scope()): threads are woken one by one.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::scope::join_all;
///
/// let squares = round_robin(join_all((1..=3).map(|n| async move { n * n })))?;
/// assert_eq!(squares, [1, 4, 9]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> JoinAll<F> {
    JoinAll { futures: futures.into_iter().map(MaybeDone::Running).collect() }
}

/// The future of [`join_all`].
#[must_use = "nothing happens until it is awaited"]
pub struct JoinAll<F: Future> {
    /// Pinned.
    futures: Box<[MaybeDone<F>]>,
}

// The futures are on the heap.
impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut ready = true;
        for future in &mut self.futures {
            // SAFETY: it stays in the box, which is not given away, until it is dropped there.
            ready &= unsafe { Pin::new_unchecked(future) }.run(cx);
        }
        if !ready {
            return Poll::Pending;
        }
        // SAFETY: as above.
        Poll::Ready(
            self.futures.iter_mut().map(|future| unsafe { Pin::new_unchecked(future) }.take()).collect(),
        )
    }
}

impl<F: Future> fmt::Debug for JoinAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAll").field("futures", &self.futures.len()).finish_non_exhaustive()
    }
}
