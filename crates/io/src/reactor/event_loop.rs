//! [`EventLoop`]: the event loop that a scheduler drives, and its `Table`, which a guest may visit.
//!
//! A scheduler calls it through the trait `Events` of `core`: `submit` takes the nodes
//! `Trace::Wait`, `Sleep` and `Detached`, and `poll` gives the threads back to the CPU. One `look`
//! is one turn: it takes the drained notes, waits in the ring (`DiskSide`) or in the epoll set, and
//! expires timers. While the OS thread of the loop is in a long step or sleeps, another OS thread
//! may take events over through `Visitor`. The visitor touches the table alone, and only while the
//! loop is kept out (`core`'s `biased.rs`). The head of the module `reactor` has the argument that
//! no edge is lost.

use super::busy_poll::{BusyPoll, MOMENT};
use super::drained;
use super::epoll::{BATCH, Reactor, UNPARK};
use super::loop_id::{HERE, LoopId, note_fresh};
use super::readiness::{TaskId, Wakes};
use super::unparker::Unparker;
use crate::fs::disk::{self, DiskSide};
use crate::sys::{self, Fd};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use selvedge_core::observe::Lengths;
use selvedge_core::{
    Cpu, Detached, Events, Guest, Owner, Readiness, Relief, Request, Thread, Time, Trace, Unpark,
    VirtualClock, Wait, biased,
};
use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

/// An epoll set, a timer wheel and the threads that wait in them: the event source of a scheduler.
///
/// There is at most one event loop on an OS thread.
///
/// # Examples
///
/// ```
/// use selvedge::{Events, round_robin_over};
/// use selvedge::{EventLoop, time::sleep};
/// use std::time::Duration;
///
/// let mut events = EventLoop::new()?;
/// round_robin_over(&mut events, sleep(Duration::from_millis(2)))?;
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
    disk: DiskSide,
    unparker: Arc<Unparker>,
    /// The set of the table's reactor.
    epoll: Arc<Fd>,
    batch: Box<[MaybeUninit<epoll::Event>; BATCH]>,
    busy_poll: BusyPoll,
    /// Makes the loop `!Send`, because it must be dropped on the OS thread that made it: `HERE` is
    /// a thread-local.
    _local: PhantomData<*const ()>,
}

/// The longest single wait in the kernel. A longer wait is made of several.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A waiter in a scheduler's event loop.
#[derive(Debug)]
pub(crate) enum LoopWaiter {
    Thread(Thread),
    Waker(Waker),
}

impl Wakes for LoopWaiter {
    fn task(&self) -> Option<TaskId> {
        match self {
            LoopWaiter::Thread(_) => None,
            LoopWaiter::Waker(waker) => waker.task(),
        }
    }
}

impl LoopWaiter {
    #[inline]
    fn resume(self, cpu: &mut Cpu) {
        match self {
            LoopWaiter::Thread(thread) => cpu.make_ready(thread),
            LoopWaiter::Waker(waker) => cpu.wake(waker),
        }
    }
}

/// What waits in an event loop for descriptors and points in time.
///
/// The loop works on it within its own operations. In between another OS thread may be a guest,
/// which takes the events that there are and wakes the wakers ([`Relief`]).
#[derive(Debug)]
struct Table {
    reactor: Reactor<LoopWaiter>,
    /// Threads that a guest would resume, but that stay on the OS thread of the loop.
    homebound: Vec<Thread>,
    /// A guest has taken events since the loop took the notes of [`drained`].
    visited: bool,
}

// SAFETY: a guest, which is on another OS thread, moves threads from `reactor` to `homebound`, and
// does nothing else with them (see `relieve`). `EventLoop::drop` leaves none of them behind.
unsafe impl Send for Table {}

impl Table {
    /// Takes the notes of the calls that have found descriptors drained on this OS thread.
    ///
    /// An event that a guest has taken may be younger than such a call. Then all notes are
    /// forgotten, which costs a call that fails, at most.
    #[inline]
    fn take_drained(&mut self) {
        let visited = mem::take(&mut self.visited);
        drained::take(|fd, interest, by| {
            if !visited {
                self.reactor.drained(fd, interest, by);
            }
        });
    }

    /// Drops all that wait.
    fn clear(&mut self) {
        self.reactor.clear();
        self.homebound.clear();
    }
}

/// How many events a guest takes at most: it is to be short.
const VISIT_BATCH: usize = 64;

/// Another OS thread's end of the table.
#[derive(Debug)]
struct Visitor {
    table: Guest<Table>,
    /// Ends the wait of a loop that sleeps.
    unparker: Arc<Unparker>,
}

impl Relief for Visitor {
    fn relieve(&self, cpu: &mut Cpu) -> io::Result<usize> {
        let Some(mut table) = self.table.visit() else { return Ok(0) };
        let armed = table.reactor.armed();
        let Table { reactor, homebound, visited } = &mut *table;
        let mut batch = [MaybeUninit::uninit(); VISIT_BATCH];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match sys::epoll_wait(reactor.epoll(), &mut batch, Some(&now)) {
            Err(Errno::INTR) => &[],
            events => events?,
        };
        *visited = true;
        let mut woken = Vec::new();
        let mut resume = |waiter| match waiter {
            LoopWaiter::Waker(waker) => woken.push(waker),
            LoopWaiter::Thread(thread) => homebound.push(thread),
        };
        let mut is_called = false;
        for &event in events {
            match event.data.u64() {
                UNPARK => is_called = true,
                _ => reactor.event(event, &mut resume),
            }
        }
        reactor.expire(Time::now(), resume);
        // The loop may sleep. The kernel does not wake it for a call if the guest has taken the
        // call's event. Nor does it wake the loop for threads that must go on there. A loop in
        // which no thread is left waits for no event, and its scheduler must notice that.
        let is_to_wake = is_called || !homebound.is_empty() || armed > 0 && reactor.armed() == 0;
        // A foreign waker may do anything, and the loop must not wait for that.
        drop(table);
        if is_to_wake {
            self.unparker.end_wait();
        }
        let count = woken.len();
        woken.into_iter().for_each(|waker| cpu.wake(waker));
        Ok(count)
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
        let reactor = Reactor::new()?;
        let unparker = Arc::new(Unparker::new()?);
        reactor.add_unpark(&*unparker)?;
        let epoll = reactor.epoll().clone();
        let (table, relief) = biased(Table { reactor, homebound: Vec::new(), visited: false });
        let relief = Arc::new(Visitor { table: relief, unparker: unparker.clone() });
        let table = RefCell::new(table);
        let disk = DiskSide::new(disk, unparker.clone());
        let batch = Box::new([MaybeUninit::uninit(); BATCH]);
        let id = LoopId::take().ok_or_else(|| io::Error::other("there are 65,535 event loops already"))?;
        HERE.set(Some(id));
        Ok(EventLoop {
            table,
            relief,
            disk,
            unparker,
            epoll,
            batch,
            busy_poll: BusyPoll::default(),
            _local: PhantomData,
        })
    }
}

impl EventLoop {
    #[inline]
    fn wait(&mut self, cpu: &mut Cpu, waiter: LoopWaiter, readiness: Readiness) {
        let mut table = self.table.get_mut().enter();
        table.take_drained();
        if readiness.fresh {
            note_fresh(readiness.fd);
        }
        table.reactor.wait(waiter, readiness, cpu.now(), |w| w.resume(cpu));
    }

    /// Looks for events for a moment, if [`BusyPoll`] expects to find some. True if there was one.
    fn busy_poll(&mut self, cpu: &mut Cpu) -> io::Result<bool> {
        let waiting = self.table.get_mut().enter().reactor.waiting();
        let waits_for_peers = waiting > 0 && self.disk.awaited() == 0;
        // The comparison with `until` needs a clock that moves on its own. With a virtual clock the
        // moment would never end.
        if !waits_for_peers || VirtualClock::now().is_some() || !self.busy_poll.is_due() {
            return Ok(false);
        }
        let until = Time::now() + MOMENT;
        let found = loop {
            if self.look(cpu, Some(Duration::ZERO))? {
                break true;
            }
            if self.unparker.is_called() {
                return Ok(false); // the next wait ends at once
            }
            if Time::now() > until {
                break false;
            }
        };
        self.busy_poll.looked(found);
        Ok(found)
    }

    /// Looks for events once, and waits for an event at most `timeout`. True if there was an event,
    /// or if a deadline or a sleep was due.
    fn look(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<bool> {
        let mut table = self.table.get_mut().enter();
        let mut found = !table.homebound.is_empty();
        table.homebound.drain(..).for_each(|thread| cpu.make_ready(thread));
        table.reactor.tidy();
        let mut wait = timeout.map(|t| t.min(WAIT_MAX));
        let beside = sys::has_events_beside(&self.epoll);
        if found || beside || table.reactor.resolve() {
            // A thread is ready already, or a kernel beside the real one has made it so; or perhaps
            // all sleepers have given up, and nothing is left to wait for.
            wait = Some(Duration::ZERO);
        }
        if wait != Some(Duration::ZERO)
            && let Some(next) = table.reactor.next()
        {
            let left = next.since(Time::now()).min(WAIT_MAX);
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
        }
        let asleep = wait != Some(Duration::ZERO) && self.unparker.fall_asleep();
        if !asleep {
            wait = Some(Duration::ZERO);
        }
        let others = table.reactor.waiting() > 0;
        // While the loop sleeps, guests may visit the table. The kernel may have woken the loop's
        // OS thread, which then waits for a CPU, and the events wait with it.
        let outside = asleep.then(|| table.leave());
        let turn = self.disk.turn(cpu, wait, self.epoll.as_fd(), others);
        drop(outside);
        let look = match turn? {
            disk::WaitLeft::Whole => true,
            look => {
                wait = Some(Duration::ZERO);
                look == disk::WaitLeft::Look
            }
        };
        let timespec = wait
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        // The loop takes the notes only here, after the disk's turn, because that turn may wake a
        // foreign waker, and the waker's code may make calls that add notes.
        table.take_drained();
        let outside = asleep.then(|| table.leave());
        let taken = match look || beside {
            true => sys::epoll_wait(&self.epoll, &mut self.batch[..], timespec.as_ref()),
            false => Ok(&[][..]),
        };
        drop(outside);
        if asleep {
            self.unparker.wake_up();
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
                table.reactor.event(event, |w| w.resume(cpu));
            }
        }
        table.reactor.expire(cpu.now(), |w| {
            found = true;
            w.resume(cpu);
        });
        table.reactor.left().clear();
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
    /// Takes [`Trace::Wait`], [`Trace::Sleep`] and [`Trace::Detached`].
    ///
    /// # Errors
    /// Gives every other node back. A call of the program's own among the requests of a
    /// [`Trace::Detached`] comes back as a [`Trace::Call`] that wakes its waker itself. The
    /// requests behind that call are still to be taken: the scheduler submits `Detached` again for
    /// them.
    #[inline]
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Wait(Wait { thread, readiness, .. }) => {
                let waiter = match thread.is_cancellable() {
                    true => match cpu.keep(thread) {
                        Ok(waker) => LoopWaiter::Waker(waker),
                        // The thread was woken since its step, so it runs again and tries its call.
                        Err(thread) => {
                            cpu.make_ready(thread);
                            return Ok(());
                        }
                    },
                    false => LoopWaiter::Thread(thread),
                };
                self.wait(cpu, waiter, readiness);
            }
            Trace::Sleep(sleep) => {
                let until = sleep.until();
                let mut table = self.table.get_mut().enter();
                table.reactor.sleep(LoopWaiter::Thread(sleep.into_thread()), until);
            }
            Trace::Detached => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    let waiter = LoopWaiter::Waker(waker);
                    match request {
                        Request::Wait(readiness) => self.wait(cpu, waiter, readiness),
                        Request::Sleep(alarm) => self.table.get_mut().enter().reactor.set(waiter, alarm),
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
        if timeout != Some(Duration::ZERO) && self.busy_poll(cpu)? {
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
        table.reactor.armed() + table.homebound.len() + self.disk.awaited()
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.unparker.clone()
    }

    fn relief(&self) -> Option<Weak<dyn Relief>> {
        let relief: Arc<dyn Relief> = self.relief.clone();
        Some(Arc::downgrade(&relief))
    }

    fn lengths(&self, say: &mut Lengths<'_>) {
        self.table.borrow_mut().enter().reactor.lengths(say);
        let (queued, begun) = self.disk.lengths();
        say("disk_queued", queued);
        say("disk_begun", begun);
    }
}
