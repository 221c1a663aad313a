//! The system calls that wait for the world: a descriptor, a point in time.

use crate::alarm::{self, Alarm, Asker};
use crate::budget;
use crate::cpu::{Ask, current, direct, retract};
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

/// Who serves requests that are made outside of any CPU: under a foreign executor.
static FALLBACK: OnceLock<fn(Request, Waker)> = OnceLock::new();

/// Installs the event loop that serves [`WaitFd`] and [`SleepUntil`] when they are polled outside of any CPU: under
/// a foreign executor. Only the first one counts.
pub fn set_fallback(serve: fn(Request, Waker)) {
    let _ = FALLBACK.set(serve);
}

/// Has a request served that is made outside of any CPU.
fn fall_back(request: Request, waker: Waker) {
    match FALLBACK.get() {
        Some(serve) => serve(request, waker::tame(waker)),
        None => panic!("{request:?} was asked outside of a Selvedge thread, where no event loop serves it"),
    }
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
        // One that is not in the slot has nothing to take back there.
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

/// Lets at least `duration` pass; none at all if that is zero.
pub fn sleep(duration: Duration) -> SleepUntil {
    match duration {
        Duration::ZERO => sleep_until(Time::default()),
        duration => sleep_until(Time::now() + duration),
    }
}

/// Waits for a point in time. It never ends before it; how long after is up to the event source.
pub fn sleep_until(until: Time) -> SleepUntil {
    SleepUntil { until, asked: Asked::Idle, _pinned: PhantomPinned }
}

/// The system call [`sleep`].
///
/// Dropping it takes its timer back, in constant time; on any OS thread.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct SleepUntil {
    until: Time,
    asked: Asked,
    /// It is known by its address to the slot it has asked in.
    _pinned: PhantomPinned,
}

/// What has become of a sleep's request.
#[derive(Debug)]
enum Asked {
    Idle,
    /// It stands until its alarm is over: as long as the same thread or task polls, it need not ask again. The alarm of a request that goes
    /// with the thread itself is over at once: if a scheduler runs the thread before its time, it asks again.
    Stands(Whom, Asker),
}

/// A waker, to be recognised: no clone of it, which might cost an atomic operation. As long as the request stands, the event source has
/// the waker, so that no other has the same address.
#[derive(Debug, PartialEq)]
struct Whom {
    data: usize,
    vtable: usize,
}

impl Whom {
    #[inline(always)]
    fn of(waker: &Waker) -> Whom {
        Whom { data: waker.data().addr(), vtable: (&raw const *waker.vtable()).addr() }
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
        matches!(&self.asked, Asked::Stands(asked, asker) if !asker.is_over() && *asked == Whom::of(waker))
    }
}

impl Future for SleepUntil {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let until = this.until;
        let cpu = current();
        // The coarse time is never ahead. Before the first request it will do: one that is late by then is served at once.
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
                    let (alarm, asker) = Alarm::new(until, cpu.given_up());
                    this.asked = Asked::Stands(Whom::of(&cpu.keyed_waker()), asker);
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
                let (alarm, asker) = Alarm::new(until, cpu.given_up());
                this.asked = Asked::Stands(Whom::of(&waker), asker);
                cpu.spill(Request::Sleep(alarm), waker);
            }
            None => {
                let (alarm, asker) = Alarm::new(until, &alarm::ELSEWHERE);
                this.asked = Asked::Stands(Whom::of(cx.waker()), asker);
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

/// Whether the caller runs in a step of a thread of ours, so that [`spawn`](crate::spawn) and system calls are served here.
#[inline]
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
