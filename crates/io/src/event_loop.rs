//! The event loop of a scheduler: readiness and time.
//!
//! # The recipe
//!
//! 1. **System call and node.** `selvedge-core` has `wait` and `sleep`, whose nodes are
//!    [`Trace::Wait`] and [`Trace::Sleep`], with the thread in them ([`Trace::Any`] when the thread waits for several things
//!    at once).
//! 2. **Interpret and register.** A scheduler passes the nodes it does not serve itself to [`EventLoop::submit`], which puts
//!    the thread into the table of its descriptor or into the timer wheel.
//! 3. **Event loop.** [`EventLoop::poll`] waits for the kernel and the clock and gives the threads back to the scheduler.
//!
//! See [`crate`] for how to add a source of one's own.

use crate::epoll::{BATCH, Driver, UNPARK};
use crate::fs::disk::{self, Disk};
use crate::readiness::Wakes;
use crate::sys::{self, Fd};
use crate::unpark::Caller;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use selvedge_core::observe::Lengths;
use selvedge_core::{Cpu, Detached, Events, Request, Thread, Time, Trace, Unpark, Wait};
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

/// An epoll set, a timer wheel and the threads that wait in them: the event source of a scheduler.
///
/// There is at most one on an OS thread.
///
/// # Examples
///
/// ```
/// use selvedge_core::{Events, round_robin_with};
/// use selvedge_io::{EventLoop, time::sleep};
/// use std::time::Duration;
///
/// let mut events = EventLoop::new()?;
/// round_robin_with(&mut events, sleep(Duration::from_millis(2)))?;
/// assert_eq!(events.armed(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Paper
/// [LZ07 §4.2, Figure 17]: `worker_epoll`.
///
/// # Differences
/// 1. A descriptor is registered once, edge-triggered, not for each wait.
/// 2. The loop is no OS thread of its own: the scheduler drives it between steps, and so a thread goes from the kernel's
///    event to its next step without a queue between OS threads.
#[derive(Debug)]
pub struct EventLoop {
    driver: Driver<Waiter>,
    disk: Disk,
    caller: Arc<Caller>,
    batch: Box<[MaybeUninit<epoll::Event>; BATCH]>,
    /// It must be dropped where it was made.
    _local: PhantomData<*const ()>,
}

/// The longest single wait in the kernel; a longer one is several.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What waits in a scheduler's event loop.
#[derive(Debug)]
pub(crate) enum Waiter {
    Thread(Thread),
    Waker(Waker),
}

impl Wakes for Waiter {
    fn is_replaced_by(&self, newer: &Waiter) -> bool {
        matches!((self, newer), (Waiter::Waker(old), Waiter::Waker(new)) if old.will_wake(new))
    }
}

impl Waiter {
    #[inline]
    fn resume(self, cpu: &mut Cpu) {
        match self {
            Waiter::Thread(thread) => cpu.make_ready(thread),
            Waiter::Waker(waker) => cpu.wake(waker),
        }
    }
}

thread_local! {
    /// The number of this OS thread's event loop, or that of the loop for foreign executors.
    static HERE: Cell<LoopId> = const { Cell::new(LoopId::GLOBAL) };
}

/// Numbers the event loops of the process, so that a descriptor knows in which of them it is registered. A number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopId(NonZeroU32);

impl LoopId {
    /// The one loop that serves futures outside any scheduler of ours.
    pub(crate) const GLOBAL: LoopId = LoopId(NonZeroU32::MIN);

    /// The loop that serves the waits begun now: that of this OS thread in a thread of ours, and otherwise the one for the rest.
    #[inline]
    pub(crate) fn here() -> LoopId {
        if selvedge_core::in_thread() { HERE.get() } else { LoopId::GLOBAL }
    }

    fn new() -> LoopId {
        static NEXT: AtomicU32 = AtomicU32::new(2);
        LoopId(
            NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed))
                .expect("no program makes so many event loops"),
        )
    }

    pub(crate) const fn to_bits(self) -> u32 {
        self.0.get()
    }
}

/// The epoll sets of all event loops. A set in here is open.
static SETS: RwLock<Vec<(LoopId, Arc<Fd>)>> = RwLock::new(Vec::new());

/// A loop begins.
pub(crate) fn enter(id: LoopId, epoll: &Arc<Fd>) {
    SETS.write().unwrap_or_else(PoisonError::into_inner).push((id, epoll.clone()));
}

/// A loop ends.
fn leave(id: LoopId) {
    SETS.write().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != id);
}

/// Takes a descriptor out of the epoll set of a loop, from any OS thread, if there is such a loop still. See
/// [`Places`](crate::places::Places) for when that is right.
pub(crate) fn take_out(id: LoopId, fd: BorrowedFd<'_>) {
    let sets = SETS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, epoll)) = sets.iter().find(|(other, _)| *other == id) {
        // It may not be there: its wait was given up before it was registered.
        let _ = sys::epoll_delete(epoll, fd);
    }
}

impl EventLoop {
    /// A new event loop for the calling OS thread.
    ///
    /// # Errors
    /// If the process has no descriptors left (it takes two), or if the OS thread has an event loop already.
    pub fn new() -> io::Result<EventLoop> {
        EventLoop::with_driver(disk::Driver::default())
    }

    /// A new event loop for the calling OS thread, whose disk operations take this way to the kernel.
    ///
    /// # Errors
    /// As for [`new`](Self::new). It is none that the kernel has no rings.
    pub fn with_driver(disk: disk::Driver) -> io::Result<EventLoop> {
        if HERE.get() != LoopId::GLOBAL {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "this OS thread has an event loop already",
            ));
        }
        let driver = Driver::new()?;
        let caller = Arc::new(Caller::new()?);
        driver.add_unpark(&*caller)?;
        let id = LoopId::new();
        enter(id, driver.epoll());
        HERE.set(id);
        let disk = Disk::new(disk, caller.clone());
        let batch = Box::new([MaybeUninit::uninit(); BATCH]);
        Ok(EventLoop { driver, disk, caller, batch, _local: PhantomData })
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        leave(HERE.replace(LoopId::GLOBAL));
    }
}

impl Events for EventLoop {
    /// Takes [`Trace::Wait`], [`Trace::Sleep`] and [`Trace::Any`].
    ///
    /// # Errors
    /// Gives every other node back. A call of the program's own among the requests of a [`Trace::Any`] comes back as a
    /// [`Trace::Call`] that wakes its waker itself; requests behind it are still to be taken, by submitting `Any` again.
    #[inline]
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Wait(Wait { thread, readiness, .. }) => {
                let waiter = match thread.is_cancellable() {
                    true => match cpu.keep(thread) {
                        Ok(waker) => Waiter::Waker(waker),
                        // It was woken since its step, and may try.
                        Err(thread) => {
                            cpu.make_ready(thread);
                            return Ok(());
                        }
                    },
                    false => Waiter::Thread(thread),
                };
                self.driver.wait(waiter, readiness, cpu.now(), |w| w.resume(cpu));
            }
            Trace::Sleep(sleep) => {
                let until = sleep.until();
                self.driver.sleep(Waiter::Thread(sleep.into_thread()), until);
            }
            Trace::Any => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    let waiter = Waiter::Waker(waker);
                    match request {
                        Request::Wait(readiness) => {
                            self.driver.wait(waiter, readiness, cpu.now(), |w| w.resume(cpu));
                        }
                        Request::Sleep(alarm) => self.driver.set(waiter, alarm),
                        Request::Call(call) => return Err(Trace::Call(call)),
                        _ => {}
                    }
                }
            }
            other => return Err(other),
        }
        Ok(())
    }

    /// Waits for the kernel, the clock or a call of the [`unparker`](Self::unparker), and gives the threads that
    /// are ready back to `cpu`, in the order of the events, those whose time has come last.
    ///
    /// # Errors
    /// None in practice: `epoll_wait` fails only on misuse.
    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        self.driver.tidy();
        let mut wait = timeout.map(|t| t.min(WAIT_MAX));
        if self.driver.resolve() {
            wait = Some(Duration::ZERO); // there seemed to be something to wait for
        }
        if wait != Some(Duration::ZERO)
            && let Some(next) = self.driver.next()
        {
            let left = next.since(Time::now()).min(WAIT_MAX);
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
        }
        let asleep = wait != Some(Duration::ZERO) && self.caller.fall_asleep();
        if !asleep {
            wait = Some(Duration::ZERO);
        }
        let others = self.driver.waiting() > 0;
        let disk_wait = wait.unwrap_or(WAIT_MAX);
        let look = match self.disk.turn(cpu, disk_wait, self.driver.epoll().as_fd(), others)? {
            disk::Wait::Whole => true,
            look => {
                wait = Some(Duration::ZERO);
                look == disk::Wait::Look
            }
        };
        let timespec = wait
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        let taken = match look {
            true => sys::epoll_wait(self.driver.epoll(), &mut self.batch[..], timespec.as_ref()),
            false => Ok(&[][..]),
        };
        if asleep {
            self.caller.wake_up();
        }
        cpu.tick();
        let events = match taken {
            Ok(events) => events,
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        for &event in events {
            if event.data.u64() != UNPARK {
                self.driver.event(event, |w| w.resume(cpu));
            }
        }
        self.driver.expire(cpu.now(), |w| w.resume(cpu));
        self.driver.left().clear();
        Ok(())
    }

    fn cancel_all(&mut self, _: &mut Cpu) {
        self.driver.clear();
        self.disk.cancel_all();
    }

    fn armed(&self) -> usize {
        self.driver.armed() + self.disk.awaited()
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.caller.clone()
    }

    fn lengths(&self, say: &mut Lengths<'_>) {
        self.driver.lengths(say);
        let (queued, begun) = self.disk.lengths();
        say("disk_queued", queued);
        say("disk_begun", begun);
    }
}
