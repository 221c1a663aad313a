//! The event loop of a scheduler: readiness and time. Schedulers drive [`EventLoop`]; the
//! descriptors of this crate use [`LoopId`], [`Fresh`] and [`found_drained`] to tell the loop what
//! their calls have seen.
//!
//! # The recipe
//!
//! 1. **System call and node.** `selvedge-core` has `wait` and `sleep`. Their nodes are
//!    [`Trace::Wait`] and [`Trace::Sleep`]. Each holds its thread. A thread that waits for several
//!    things at once gives [`Trace::Any`] instead.
//! 2. **Interpret and register.** A scheduler passes the nodes that it does not serve itself to
//!    [`EventLoop::submit`], which puts the thread into the table of its descriptor or into the
//!    timer wheel.
//! 3. **Event loop.** [`EventLoop::poll`] waits for the kernel and the clock and gives the threads
//!    back to the scheduler.
//!
//! See [`crate`] for how a program adds a source of its own.

use crate::epoll::{BATCH, Driver, UNPARK};
use crate::fs::disk::{self, Disk};
use crate::linger::{Linger, MOMENT};
use crate::readiness::{Drained, Wakes};
use crate::sys;
use crate::unpark::Caller;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use selvedge_core::observe::Lengths;
use selvedge_core::{
    Cpu, Detached, Events, Guest, Interest, Owner, Readiness, Relief, Request, Thread, Time, Trace, Unpark,
    VirtualClock, Wait, biased,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

/// An epoll set, a timer wheel and the threads that wait in them: the event source of a scheduler.
///
/// There is at most one event loop on an OS thread.
///
/// # Examples
///
/// ```
/// use selvedge::{Events, round_robin_with};
/// use selvedge::{EventLoop, time::sleep};
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
/// 2. The loop has no OS thread of its own. The scheduler drives the loop between steps, so a
///    thread goes from the kernel's event to its next step without a queue between OS threads.
#[derive(Debug)]
pub struct EventLoop {
    table: RefCell<Owner<Table>>,
    relief: Arc<Visitor>,
    disk: Disk,
    caller: Arc<Caller>,
    batch: Box<[MaybeUninit<epoll::Event>; BATCH]>,
    linger: Linger,
    /// Makes the loop `!Send`, because it must be dropped on the OS thread that made it: `HERE` is
    /// a thread-local.
    _local: PhantomData<*const ()>,
}

/// The longest single wait in the kernel. A longer wait is made of several.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A waiter in a scheduler's event loop.
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

/// What waits in an event loop for descriptors and points in time.
///
/// The loop works on it within its own operations. In between another OS thread may be a guest,
/// which takes the events that there are and wakes the wakers ([`Relief`]).
#[derive(Debug)]
struct Table {
    driver: Driver<Waiter>,
    /// Threads that a guest would resume, but that stay on the OS thread of the loop.
    homebound: Vec<Thread>,
    /// A guest has taken events since the loop was told what calls have found drained.
    visited: bool,
}

// SAFETY: a guest, which is on another OS thread, moves threads from `driver` to `homebound`, and
// does nothing else with them (see `relieve`). `EventLoop::drop` leaves none of them behind.
unsafe impl Send for Table {}

impl Table {
    /// Takes over what calls of this OS thread have found drained.
    ///
    /// An event that a guest has taken may be younger than such a call. Then all of that is
    /// forgotten, which costs a call that fails, at most (see [`found_drained`]).
    #[inline]
    fn take_drained(&mut self) {
        let visited = mem::take(&mut self.visited);
        drained(|fd, interest, by| {
            if !visited {
                self.driver.drained(fd, interest, by);
            }
        });
    }

    /// Drops all that wait.
    fn clear(&mut self) {
        self.driver.clear();
        self.homebound.clear();
    }
}

/// How many events a guest takes at most: it is to be short.
const VISIT_BATCH: usize = 64;

/// Another OS thread's end of the table.
#[derive(Debug)]
struct Visitor(Guest<Table>);

impl Relief for Visitor {
    fn relieve(&self, cpu: &mut Cpu) -> io::Result<usize> {
        let Some(mut table) = self.0.visit() else { return Ok(0) };
        let Table { driver, homebound, visited } = &mut *table;
        let mut batch = [MaybeUninit::uninit(); VISIT_BATCH];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match sys::epoll_wait(driver.epoll(), &mut batch, Some(&now)) {
            Err(Errno::INTR) => &[],
            events => events?,
        };
        *visited = true;
        let mut woken = Vec::new();
        let mut resume = |waiter| match waiter {
            Waiter::Waker(waker) => woken.push(waker),
            Waiter::Thread(thread) => homebound.push(thread),
        };
        // A call of the loop may be taken as well: the loop does not sleep, and knows it by the
        // caller's state.
        for &event in events.iter().filter(|event| event.data.u64() != UNPARK) {
            driver.event(event, &mut resume);
        }
        driver.expire(Time::now(), resume);
        // A foreign waker may do anything, and the loop must not wait for that.
        drop(table);
        let count = woken.len();
        woken.into_iter().for_each(|waker| cpu.wake(waker));
        Ok(count)
    }
}

thread_local! {
    /// The number of this OS thread's event loop, if it has one.
    static HERE: Cell<Option<LoopId>> = const { Cell::new(None) };
    /// The number of fresh waits that the loops of this OS thread have served, modulo 2³², by the
    /// descriptor's [`sys::index`].
    static FRESH: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    /// The descriptors that calls of this OS thread have found drained since its event loop was
    /// last told or polled: the last few of them.
    static DRAINED: [Cell<Option<(RawFd, Interest, Drained)>>; 4] = const { [const { Cell::new(None) }; 4] };
}

/// A call has just found a descriptor drained: the call failed because the descriptor was not
/// ready, or it came back short.
///
/// Every edge that this OS thread's event loop has kept for the descriptor is older than the call,
/// and so is used up: the loop collects edges in `epoll_wait`, and the OS thread makes no other
/// call meanwhile. The loop is told of the note before its next `epoll_wait` and before a thread
/// waits. (`DRAINED` has few places. If a note is lost, a later wait goes on at once because of an
/// old edge, and makes one call that fails.)
/// An edge that a guest has collected may be younger: see `Table::take_drained`.
#[inline]
pub(crate) fn found_drained(fd: RawFd, interest: Interest, by: Drained) {
    DRAINED.with(|drained| {
        let news = Some((fd, interest, by));
        if drained[0].get() != news {
            for i in (1..drained.len()).rev() {
                drained[i].set(drained[i - 1].get());
            }
            drained[0].set(news);
        }
    });
}

/// Passes the noted descriptors to `tell`, and removes the notes.
#[inline]
fn drained(mut tell: impl FnMut(RawFd, Interest, Drained)) {
    DRAINED.with(|drained| {
        for place in drained {
            let Some((fd, interest, by)) = place.take() else { break };
            tell(fd, interest, by);
        }
    });
}

/// The loop of this OS thread serves a fresh wait for `fd`.
#[cold]
fn note_fresh(fd: RawFd) {
    let Some(index) = sys::index(fd) else { return };
    FRESH.with_borrow_mut(|fresh| {
        if index >= fresh.len() {
            fresh.resize((index + 1).next_power_of_two().max(64), 0);
        }
        fresh[index] = fresh[index].wrapping_add(1);
    });
}

fn fresh_waits(fd: RawFd) -> u32 {
    FRESH.with_borrow(|fresh| sys::index(fd).and_then(|index| fresh.get(index)).copied().unwrap_or(0))
}

/// A wait that began fresh in a loop: see [`Places`](crate::places::Places).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    at: LoopId,
    fd: RawFd,
    /// The number of fresh waits for `fd` that the loop had served when this wait began.
    before: u32,
}

impl Fresh {
    /// A wait for a descriptor begins in the loop `here`.
    #[inline]
    pub(crate) fn at(here: LoopId, fd: RawFd) -> Fresh {
        Fresh { at: here, fd, before: fresh_waits(fd) }
    }

    /// The loop, if it has surely served a fresh wait for this file since this wait began: this
    /// wait or another one. The loop need not have served this wait, because a request may be given
    /// up with its thread, or may be left where the step has put it. The OS thread of another loop
    /// cannot tell and gets `None`. The next wait in that loop is then fresh once more.
    pub(crate) fn served(self) -> Option<LoopId> {
        let served = match HERE.get() == Some(self.at) {
            true => fresh_waits(self.fd) != self.before,
            // The loop for foreign executors serves a wait at the moment of the request.
            false => self.at == LoopId::GLOBAL,
        };
        served.then_some(self.at)
    }
}

/// The number of an event loop among the event loops that the process has at a time. A descriptor's
/// [`Places`](crate::places::Places) hold the numbers of the loops that know the descriptor. The
/// number of a loop that has ended is given to another loop; see [`Places`](crate::places::Places)
/// for why that does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopId(NonZeroU16);

/// The numbers in use.
static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

impl LoopId {
    /// The number of the one loop that serves futures outside the schedulers of this project.
    pub(crate) const GLOBAL: LoopId = LoopId(NonZeroU16::MIN);

    /// The loop that serves the waits that begin now: in a `Thread` the loop of this OS thread,
    /// otherwise the loop for foreign executors. `None` if the scheduler has an event source of
    /// another kind.
    #[inline]
    pub(crate) fn here() -> Option<LoopId> {
        if selvedge_core::in_thread() { HERE.get() } else { Some(LoopId::GLOBAL) }
    }

    /// The smallest number that no loop has; `None` if all 65,535 numbers are taken.
    pub(crate) fn take() -> Option<LoopId> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (LoopId::GLOBAL.to_bits() + 1..=u16::MAX).find(|number| !taken.contains(number))?;
        taken.insert(free);
        NonZeroU16::new(free).map(LoopId)
    }

    /// The number is free again, because its loop has ended.
    pub(crate) fn give_back(self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.to_bits());
    }

    pub(crate) const fn to_bits(self) -> u16 {
        self.0.get()
    }
}

impl EventLoop {
    /// A new event loop for the calling OS thread.
    ///
    /// # Errors
    /// If the process has no descriptors left (the loop takes two), or if the OS thread has an
    /// event loop already.
    pub fn new() -> io::Result<EventLoop> {
        EventLoop::with_driver(disk::Driver::default())
    }

    /// A new event loop for the calling OS thread. Its disk operations take the way `disk` to the
    /// kernel.
    ///
    /// # Errors
    /// As for [`new`](Self::new). A kernel without rings is no error.
    pub fn with_driver(disk: disk::Driver) -> io::Result<EventLoop> {
        if HERE.get().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "this OS thread has an event loop already",
            ));
        }
        let driver = Driver::new()?;
        let caller = Arc::new(Caller::new()?);
        driver.add_unpark(&*caller)?;
        let (table, relief) = biased(Table { driver, homebound: Vec::new(), visited: false });
        let (table, relief) = (RefCell::new(table), Arc::new(Visitor(relief)));
        let disk = Disk::new(disk, caller.clone());
        let batch = Box::new([MaybeUninit::uninit(); BATCH]);
        let id = LoopId::take().ok_or_else(|| io::Error::other("there are 65,535 event loops already"))?;
        HERE.set(Some(id));
        Ok(EventLoop { table, relief, disk, caller, batch, linger: Linger::default(), _local: PhantomData })
    }
}

impl EventLoop {
    #[inline]
    fn wait(&mut self, cpu: &mut Cpu, waiter: Waiter, readiness: Readiness) {
        let mut table = self.table.get_mut().enter();
        table.take_drained();
        if readiness.fresh {
            note_fresh(readiness.fd);
        }
        table.driver.wait(waiter, readiness, cpu.now(), |w| w.resume(cpu));
    }

    /// Looks for events for a moment, if [`Linger`] expects to find some. True if there was one.
    fn linger(&mut self, cpu: &mut Cpu) -> io::Result<bool> {
        let waiting = self.table.get_mut().enter().driver.waiting();
        let waits_for_peers = waiting > 0 && self.disk.awaited() == 0;
        // The comparison with `until` needs a clock that moves on its own. With a virtual clock the
        // moment would never end.
        if !waits_for_peers || VirtualClock::now().is_some() || !self.linger.is_due() {
            return Ok(false);
        }
        let until = Time::now() + MOMENT;
        let found = loop {
            if self.look(cpu, Some(Duration::ZERO))? {
                break true;
            }
            if self.caller.is_called() {
                return Ok(false); // the next wait ends at once
            }
            if Time::now() > until {
                break false;
            }
        };
        self.linger.looked(found);
        Ok(found)
    }

    /// Looks for events once, and waits for an event at most `timeout`. True if there was an event,
    /// or if a deadline or a sleep was due.
    fn look(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<bool> {
        let mut table = self.table.get_mut().enter();
        let mut found = !table.homebound.is_empty();
        table.homebound.drain(..).for_each(|thread| cpu.make_ready(thread));
        table.driver.tidy();
        let mut wait = timeout.map(|t| t.min(WAIT_MAX));
        if found || table.driver.resolve() {
            // A thread is ready already; or perhaps all sleepers have given up, and nothing is left
            // to wait for.
            wait = Some(Duration::ZERO);
        }
        if wait != Some(Duration::ZERO)
            && let Some(next) = table.driver.next()
        {
            let left = next.since(Time::now()).min(WAIT_MAX);
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
        }
        let asleep = wait != Some(Duration::ZERO) && self.caller.fall_asleep();
        if !asleep {
            wait = Some(Duration::ZERO);
        }
        let others = table.driver.waiting() > 0;
        let look = match self.disk.turn(cpu, wait, table.driver.epoll().as_fd(), others)? {
            disk::Wait::Whole => true,
            look => {
                wait = Some(Duration::ZERO);
                look == disk::Wait::Look
            }
        };
        let timespec = wait
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        // The notes are told only here, after the disk's turn, because that turn may wake a foreign
        // waker, and the waker's code may make calls that add notes.
        table.take_drained();
        let taken = match look {
            true => sys::epoll_wait(table.driver.epoll(), &mut self.batch[..], timespec.as_ref()),
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
        found |= !events.is_empty();
        for &event in events {
            if event.data.u64() != UNPARK {
                table.driver.event(event, |w| w.resume(cpu));
            }
        }
        table.driver.expire(cpu.now(), |w| {
            found = true;
            w.resume(cpu);
        });
        table.driver.left().clear();
        Ok(found)
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.table.get_mut().enter().clear();
        if let Some(id) = HERE.take() {
            id.give_back();
        }
    }
}

impl Events for EventLoop {
    /// Takes [`Trace::Wait`], [`Trace::Sleep`] and [`Trace::Any`].
    ///
    /// # Errors
    /// Gives every other node back. A call of the program's own among the requests of a
    /// [`Trace::Any`] comes back as a [`Trace::Call`] that wakes its waker itself. The requests
    /// behind that call are still to be taken: the scheduler submits `Any` again for them.
    #[inline]
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Wait(Wait { thread, readiness, .. }) => {
                let waiter = match thread.is_cancellable() {
                    true => match cpu.keep(thread) {
                        Ok(waker) => Waiter::Waker(waker),
                        // The thread was woken since its step, so it runs again and tries its call.
                        Err(thread) => {
                            cpu.make_ready(thread);
                            return Ok(());
                        }
                    },
                    false => Waiter::Thread(thread),
                };
                self.wait(cpu, waiter, readiness);
            }
            Trace::Sleep(sleep) => {
                let until = sleep.until();
                let mut table = self.table.get_mut().enter();
                table.driver.sleep(Waiter::Thread(sleep.into_thread()), until);
            }
            Trace::Any => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    let waiter = Waiter::Waker(waker);
                    match request {
                        Request::Wait(readiness) => self.wait(cpu, waiter, readiness),
                        Request::Sleep(alarm) => self.table.get_mut().enter().driver.set(waiter, alarm),
                        Request::Call(call) => return Err(Trace::Call(call)),
                        _ => {}
                    }
                }
            }
            other => return Err(other),
        }
        Ok(())
    }

    /// Waits for the kernel, the clock or a call of the [`unparker`](Self::unparker), and gives the
    /// ready threads back to `cpu`: first those of the events, in the events' order, then the
    /// threads with a deadline or a sleep that is due.
    ///
    /// # Errors
    /// None in practice: `epoll_wait` fails only on misuse.
    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        if timeout != Some(Duration::ZERO) && self.linger(cpu)? {
            return Ok(());
        }
        self.look(cpu, timeout).map(drop)
    }

    fn cancel_all(&mut self, _: &mut Cpu) {
        self.table.get_mut().enter().clear();
        self.disk.cancel_all();
    }

    fn armed(&self) -> usize {
        let mut table = self.table.borrow_mut();
        let table = table.enter();
        table.driver.armed() + table.homebound.len() + self.disk.awaited()
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.caller.clone()
    }

    fn relief(&self) -> Option<Weak<dyn Relief>> {
        let relief: Arc<dyn Relief> = self.relief.clone();
        Some(Arc::downgrade(&relief))
    }

    fn lengths(&self, say: &mut Lengths<'_>) {
        self.table.borrow_mut().enter().driver.lengths(say);
        let (queued, begun) = self.disk.lengths();
        say("disk_queued", queued);
        say("disk_begun", begun);
    }
}
