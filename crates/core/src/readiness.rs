//! The system calls that wait for the world: a descriptor, a point in time.

use crate::arena::{Key, NOBODY};
use crate::cpu::{Ask, current, direct, retract};
use crate::time::{Deadline, Time};
use crate::trace::{Interest, Readiness, Request};
use crate::yield_now::Asking;
use std::future::Future;
use std::marker::PhantomPinned;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Who serves requests that are made outside of any CPU: under a foreign executor.
static FALLBACK: OnceLock<fn(Request, Waker)> = OnceLock::new();

/// Installs the event loop that serves [`WaitFd`] and [`SleepUntil`] when they are polled outside of any CPU: under
/// a foreign executor. Only the first one counts.
pub fn set_fallback(serve: fn(Request, Waker)) {
    let _ = FALLBACK.set(serve);
}

/// A request as a leaf future makes it: in the slot, detached, or of the fallback. Whether it will surely be served through
/// a waker, rather than perhaps with the thread itself.
fn request<T>(leaf: *const T, cx: &mut Context<'_>, ask: Ask, request: Request) -> bool {
    match (direct(cx), current()) {
        (Some(cpu), _) => {
            if cpu.ask(leaf, ask) {
                return cpu.will_detach();
            }
            cpu.spill(request, cpu.shared_waker());
        }
        (None, Some(cpu)) => cpu.spill(request, cx.waker().clone()),
        (None, None) => match FALLBACK.get() {
            Some(serve) => serve(request, cx.waker().clone()),
            None => {
                panic!("{request:?} was asked outside of a Selvedge thread, where no event loop serves it")
            }
        },
    }
    true
}

/// Waits until a descriptor is ready. The answer is a hint: try, and wait again if it was too early.
///
/// This is the bare system call, for descriptors that are waited for now and then. Who waits for one many times keeps a
/// [`WaitFd`] protocol of its own, as `selvedge-io` does.
///
/// # Paper
/// [LZ07 Figure 10] `sys_epoll_wait`.
#[doc(alias = "sys_epoll_wait")]
pub async fn wait(fd: BorrowedFd<'_>, interest: Interest) {
    WaitFd::new(Readiness { fd: fd.as_raw_fd(), deadline: Deadline::NEVER, interest, fresh: true }).await;
}

/// The system call [`wait`], with everything that can be said to the event loop.
///
/// It ends when the loop has resumed it: because the descriptor is ready, the deadline has passed, or for no reason.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct WaitFd {
    readiness: Readiness,
    state: Asking,
}

impl WaitFd {
    /// A wait for `readiness`.
    #[inline(always)]
    pub fn new(readiness: Readiness) -> WaitFd {
        WaitFd { readiness, state: Asking::Idle }
    }
}

impl Future for WaitFd {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.state != Asking::Idle {
            self.state = Asking::Done;
            return Poll::Ready(());
        }
        self.state = Asking::Asked;
        request(&raw const *self, cx, Ask::Wait(self.readiness), Request::Wait(self.readiness));
        Poll::Pending
    }
}

impl Drop for WaitFd {
    #[inline(always)]
    fn drop(&mut self) {
        if self.state == Asking::Asked {
            retract(&raw const *self);
        }
    }
}

/// Lets at least `duration` pass.
pub fn sleep(duration: Duration) -> SleepUntil {
    sleep_until(Time::now() + duration)
}

/// Waits for a point in time. It never ends before it; how long after is up to the event source.
pub fn sleep_until(until: Time) -> SleepUntil {
    SleepUntil { until, asker: None, _pinned: PhantomPinned }
}

/// The system call [`sleep`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct SleepUntil {
    until: Time,
    /// The thread whose request stands: as long as the same one polls, it need not ask again. Or [`ONCE`].
    asker: Option<(u32, Key)>,
    /// It is known by its address to the slot it has asked in.
    _pinned: PhantomPinned,
}

/// A request was made that may have gone with the thread itself: if a scheduler runs the thread before its time, it no longer stands.
const ONCE: (u32, Key) = (NOBODY, Key::MIN);

impl Future for SleepUntil {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let until = this.until;
        if Time::now() >= until {
            this.asker = None;
            return Poll::Ready(());
        }
        let asker = direct(cx).and_then(|cpu| cpu.running());
        if asker.is_none() || asker != this.asker {
            let stands = request(&raw const *this, cx, Ask::Sleep(until), Request::Sleep(until));
            this.asker = if stands { asker } else { Some(ONCE) };
        }
        Poll::Pending
    }
}

impl Drop for SleepUntil {
    fn drop(&mut self) {
        if self.asker.is_some() {
            retract(&raw const *self);
        }
    }
}

/// Whether the caller runs in a step of a thread of ours, so that [`spawn`](crate::spawn) and system calls are served here.
pub fn in_thread() -> bool {
    current().is_some()
}

/// The number of the thread in whose step the caller runs; outside of a step, `None`. A later thread may have it again.
#[inline]
pub fn this_thread() -> Option<u32> {
    Some(current()?.running()?.1.get())
}

/// The coarse time of the running CPU's last turn, without a system call; outside of a CPU, the clock.
pub fn now() -> Time {
    current().map_or_else(Time::now, |cpu| cpu.now())
}
