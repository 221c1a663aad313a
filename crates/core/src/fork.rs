//! The system call that creates a thread ([`fork`]), and the function that creates one without a
//! system call ([`detach`]); each has a `_local` form for futures that stay on their OS thread.
//!
//! Programs and the web server's accept loop (`http`'s `site.rs`) call them. Threads with a join
//! handle come from `join.rs` (`spawn`). The request slot owns the new thread until the end of the
//! step; then the node `Trace::Fork` does, so a scheduler that drops the node cancels the new
//! thread.

use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::cpu::slot::Ask;
use crate::thread::Thread;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Creates a thread. The scheduler gets the new thread and the rest of the caller in one
/// [`Trace::Fork`](crate::Trace::Fork) node, and decides which of them runs first.
///
/// The new thread cannot be joined, and its memory holds only its future: see
/// [`spawn`](crate::spawn) for a thread with a result. The thread is created when the call is
/// awaited. A call that is dropped before creates no thread.
///
/// # Panics
/// When it is called outside of a Selvedge thread, or if the arena is full.
///
/// # Paper
/// [LZ07 Figure 10] `sys_fork`.
///
/// # Examples
/// ```
/// use selvedge::{fork, round_robin};
///
/// round_robin(async {
///     fork(async { println!("the child") }).await;
///     println!("the parent");
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "sys_fork")]
#[inline(always)]
pub fn fork<F: Future<Output = ()> + Send + 'static>(future: F) -> Fork<F> {
    Fork { state: ForkState::Idle(future), mobile: true }
}

/// As [`fork`], for a future that must stay on its OS thread.
///
/// # Panics
/// As [`fork`].
#[inline(always)]
pub fn fork_local<F: Future<Output = ()> + 'static>(future: F) -> Fork<F> {
    Fork { state: ForkState::Idle(future), mobile: false }
}

/// Creates a thread that cannot be joined, makes it ready, and lets the caller go on: [`fork`]
/// without the system call.
///
/// It is for a thread that creates many threads in a row and must not queue behind each of them:
/// one that accepts connections, for example.
///
/// # Examples
/// ```
/// use selvedge::{detach, round_robin, yield_now};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static SERVED: AtomicU32 = AtomicU32::new(0);
/// round_robin(async {
///     for _ in 0..10 {
///         detach(async { _ = SERVED.fetch_add(1, Ordering::Relaxed) });
///     }
///     assert_eq!(SERVED.load(Ordering::Relaxed), 0);
///     yield_now().await;
///     assert_eq!(SERVED.load(Ordering::Relaxed), 10);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// # Panics
/// As [`fork`].
#[inline]
pub fn detach<F: Future<Output = ()> + Send + 'static>(future: F) {
    let cpu = here();
    let key = created(cpu, future, cpu.mobility()).into_key();
    // SAFETY: created above, and ours, with the tags of a mobile thread.
    unsafe { cpu.push_mobile(key) };
}

/// As [`detach`], for a future that must stay on its OS thread.
///
/// # Panics
/// As [`fork`].
#[inline]
pub fn detach_local<F: Future<Output = ()> + 'static>(future: F) {
    let cpu = here();
    cpu.push_woken(created(cpu, future, 0));
}

#[inline(always)]
fn here<'a>() -> &'a CpuInner {
    current().expect("a thread is created by a thread of ours: here is none")
}

#[inline(always)]
fn created<F: Future<Output = ()> + 'static>(cpu: &CpuInner, future: F, tags: u32) -> Thread {
    cpu.forked(future, tags).unwrap_or_else(|full| panic!("{full}"))
}

/// The system call [`fork`].
#[must_use = "nothing happens until it is awaited"]
pub struct Fork<F> {
    state: ForkState<F>,
    mobile: bool,
}

enum ForkState<F> {
    Idle(F),
    Asked,
    Done,
}

// The child's future is moved into its thread, and never polled here.
impl<F> Unpin for Fork<F> {}

impl<F: Future<Output = ()> + 'static> Future for Fork<F> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let ForkState::Idle(future) = std::mem::replace(&mut self.state, ForkState::Done) else {
            return Poll::Ready(());
        };
        match CpuInner::of(cx) {
            Some(cpu) if cpu.asks_nothing() => {
                let child = created(cpu, future, if self.mobile { cpu.mobility() } else { 0 });
                cpu.ask(&raw const *self, Ask::Fork(child.into_key()));
                self.state = ForkState::Asked;
                Poll::Pending
            }
            _ => self.poll_otherwise(cx, future),
        }
    }
}

impl<F: Future<Output = ()> + 'static> Fork<F> {
    /// Polled with a copy of the running thread's waker or with another one, or when the slot is
    /// filled already.
    #[cold]
    #[inline(never)]
    fn poll_otherwise(&mut self, cx: &mut Context<'_>, future: F) -> Poll<()> {
        let cpu = here();
        let child = created(cpu, future, if self.mobile { cpu.mobility() } else { 0 });
        if direct(cx).is_some_and(|cpu| cpu.ask(&raw const *self, Ask::Fork(child.key()))) {
            child.into_key();
            self.state = ForkState::Asked;
            return Poll::Pending;
        }
        cpu.push_woken(child);
        budget::spend(cx, 1)
    }
}

impl<F> Drop for Fork<F> {
    #[inline(always)]
    fn drop(&mut self) {
        if matches!(self.state, ForkState::Asked) {
            retract(&raw const *self);
        }
    }
}

impl<F> fmt::Debug for Fork<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork").field("asked", &matches!(self.state, ForkState::Asked)).finish_non_exhaustive()
    }
}
