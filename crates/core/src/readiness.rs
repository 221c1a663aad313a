//! The system calls that wait for the world: [`wait`] for a descriptor, and [`sleep`] for a point
//! in time.
//!
//! `io` calls them: `NonBlocking` waits by [`WaitFd`], and all time-outs are a [`SleepUntil`]. In a
//! thread the request becomes a node for the scheduler's event source; outside any CPU it goes to
//! the fallback, which `io`'s `reactor/fallback.rs` installs. A sleep that is dropped gives up its
//! alarm (`alarm.rs`), so its event source may still have it.

use crate::alarm::{self, Alarm, SleepHandle};
use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::current;
use crate::cpu::slot::Ask;
use crate::time::{Deadline, Time};
use crate::trace::{Interest, Readiness, Request};
use crate::waker;
use crate::yield_now::Asking;
use std::future::Future;
use std::marker::PhantomPinned;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// The event loop for requests that are made outside of any CPU, under a foreign executor.
static FALLBACK: OnceLock<fn(Request, Waker)> = OnceLock::new();

/// Installs the event loop that serves [`WaitFd`] and [`SleepUntil`] when they are polled outside
/// of any CPU, under a foreign executor. Only the first call counts.
pub fn set_fallback(serve: fn(Request, Waker)) {
    let _ = FALLBACK.set(serve);
}

/// Gives a request that is made outside of any CPU to the fallback, which serves it.
fn fall_back(request: Request, waker: Waker) {
    match FALLBACK.get() {
        Some(serve) => serve(request, waker::tame(waker)),
        None => panic!("{request:?} was asked outside of a Selvedge thread, where no event loop serves it"),
    }
}

/// Waits until a descriptor is ready. The answer is a hint: try the operation, and wait again if it
/// was too early.
///
/// This is the bare system call, for descriptors with rare waits. Code that waits for one
/// descriptor many times keeps a protocol of its own with [`WaitFd`], as `selvedge-io` does.
///
/// # Paper
/// [LZ07 Figure 10] `sys_epoll_wait`.
#[doc(alias = "sys_epoll_wait")]
pub async fn wait(fd: BorrowedFd<'_>, interest: Interest) {
    WaitFd::new(Readiness { fd: fd.as_raw_fd(), deadline: Deadline::NEVER, interest, fresh: true }).await;
}

/// The system call [`wait`], with all its parameters.
///
/// It ends when the event loop resumes it: because the descriptor is ready, because the deadline
/// has passed, or for no reason.
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
        // The state becomes `Asked` only if the request gets the slot, because only then the drop
        // has a request to take back.
        self.state = Asking::Done;
        let request = Request::Wait(self.readiness);
        match (direct(cx), current()) {
            (Some(cpu), _) => {
                if cpu.ask(&raw const *self, Ask::Wait(self.readiness)) {
                    self.state = Asking::Asked;
                } else {
                    cpu.spill(request, cpu.shared_waker());
                }
            }
            (None, Some(cpu)) => cpu.spill(request, cx.waker().clone()),
            (None, None) => fall_back(request, cx.waker().clone()),
        }
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

/// Waits for at least `duration`. If that is zero, it does not wait.
pub fn sleep(duration: Duration) -> SleepUntil {
    match duration {
        Duration::ZERO => sleep_until(Time::default()),
        duration => sleep_until(Time::now() + duration),
    }
}

/// Waits for a point in time. It never ends before that point. The event source determines how long
/// after.
pub fn sleep_until(until: Time) -> SleepUntil {
    SleepUntil { until, asked: Asked::Idle, _pinned: PhantomPinned }
}

/// The system call [`sleep`].
///
/// Dropping it cancels its timer, in constant time, on any OS thread.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct SleepUntil {
    until: Time,
    asked: Asked,
    /// The slot knows the asking future by its address.
    _pinned: PhantomPinned,
}

/// The state of a sleep's request.
#[derive(Debug)]
enum Asked {
    Idle,
    /// The request stands until its alarm is done. While it stands and the same thread or task
    /// polls, the sleep need not ask again. If the request travels with the thread itself, its
    /// alarm is done at once. Then, if a scheduler runs the thread too early, the sleep asks again.
    Stands(WakerId, SleepHandle),
}

/// The identity of a waker. It is not a clone, because a clone might cost an atomic operation.
/// While the request stands, the event source holds the waker, so no other waker has the same
/// address.
#[derive(Debug, PartialEq)]
struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    #[inline(always)]
    fn of(waker: &Waker) -> WakerId {
        WakerId { data: waker.data().addr(), vtable: (&raw const *waker.vtable()).addr() }
    }
}

impl SleepUntil {
    fn give_up(&mut self) {
        if !matches!(self.asked, Asked::Idle) {
            retract(&raw const *self);
        }
        self.asked = Asked::Idle;
    }

    fn stands_for(&self, waker: &Waker) -> bool {
        matches!(&self.asked, Asked::Stands(asked, handle) if !handle.is_done() && *asked == WakerId::of(waker))
    }
}

impl Future for SleepUntil {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: no field is moved out of `this`.
        let this = unsafe { self.get_unchecked_mut() };
        let until = this.until;
        let cpu = current();
        // The coarse time is never ahead of the clock. It is exact enough before the first request,
        // because the event source serves a late request at once.
        let over = cpu.is_some_and(|cpu| cpu.now() >= until)
            || (cpu.is_none() || !matches!(this.asked, Asked::Idle)) && Time::now() >= until;
        if over {
            ready!(budget::spend(cx, 1));
            this.give_up();
            return Poll::Ready(());
        }
        let spill = match (direct(cx), cpu) {
            (Some(cpu), _) => {
                if this.stands_for(&cpu.keyed_waker()) {
                    return Poll::Pending;
                }
                this.give_up();
                if cpu.ask(&raw const *this, Ask::Sleep(until)) {
                    let (alarm, handle) = Alarm::new(until, cpu.cancel_count());
                    this.asked = Asked::Stands(WakerId::of(&cpu.keyed_waker()), handle);
                    cpu.put_alarm(alarm);
                    return Poll::Pending;
                }
                Some((cpu, cpu.shared_waker()))
            }
            (None, _) if this.stands_for(cx.waker()) => return Poll::Pending,
            (None, Some(cpu)) => Some((cpu, cx.waker().clone())),
            (None, None) => None,
        };
        match spill {
            Some((cpu, waker)) => {
                let (alarm, handle) = Alarm::new(until, cpu.cancel_count());
                this.asked = Asked::Stands(WakerId::of(&waker), handle);
                cpu.spill(Request::Sleep(alarm), waker);
            }
            None => {
                let (alarm, handle) = Alarm::new(until, &alarm::ELSEWHERE);
                this.asked = Asked::Stands(WakerId::of(cx.waker()), handle);
                fall_back(Request::Sleep(alarm), cx.waker().clone());
            }
        }
        Poll::Pending
    }
}

impl Drop for SleepUntil {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Whether the caller runs in a step of a Selvedge thread, so that [`spawn`](crate::spawn) and
/// system calls are served here.
#[inline]
pub fn in_thread() -> bool {
    current().is_some()
}

/// The number of the thread that makes the step in which the caller runs. `None` outside of a step.
/// A later thread may have the same number.
#[inline]
pub fn this_thread() -> Option<u32> {
    Some(current()?.running()?.1.get())
}

/// The coarse time of the running CPU's last turn, without a system call. Outside of a CPU, the
/// clock.
pub fn now() -> Time {
    current().map_or_else(Time::now, |cpu| cpu.now())
}
