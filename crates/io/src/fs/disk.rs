//! An event loop's part in disk operations: it carries them between the [queue](super::queue) and
//! the [ring](crate::uring).

use super::operation::Operation;
use super::queue::{OperationQueue, Performer, Ticket};
use crate::sys;
use crate::uring::Ring;
use rustix::io::Errno;
use selvedge_core::{Cpu, Unpark};
use std::cell::RefCell;
use std::env;
use std::io;
use std::mem;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// How the disk operations of an event loop reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// Through a ring of the event loop's own (io_uring). Where the kernel has none for this
    /// process, as `Pool`.
    Ring,
    /// By the [blocking pool](crate::blocking), but for reads of what is in memory, which are done
    /// at once.
    Pool,
}

impl Default for Driver {
    /// `Ring`, unless the environment says `SELVEDGE_IO=epoll`.
    fn default() -> Driver {
        if env::var_os("SELVEDGE_IO").is_some_and(|io| io == "epoll") { Driver::Pool } else { Driver::Ring }
    }
}

/// The most operations of one event loop that the kernel has at once; the others wait in the queue.
/// A disk has its full throughput at 128 or before; the others are those that are just being taken
/// in. What goes beyond the block layer's own queue, often 256, is passed on to OS threads of the
/// kernel, which costs several times as much.
const DEPTH: usize = 144;

/// With more operations than this done and not yet looked after, a busy event loop begins no new
/// ones.
const UNSEEN_MAX: usize = 1024;

/// So many operations go to the kernel as soon as they are asked for, and do not wait until all
/// threads of the turn have had their step: the disk has work again while threads still look at
/// what it has brought. It costs a system call for each so many; with as much under way as there
/// may be, nothing.
const EARLY: usize = 2;

/// What carries operations to the kernel and their outcomes back.
#[derive(Debug)]
struct Carrier {
    queue: Arc<OperationQueue>,
    ring: Option<Ring>,
    depth: usize,
    /// Of the ring, for what is handed over at once.
    entries: u32,
    /// What has been told and not yet been taken in. Kept for its memory.
    told: Vec<(Ticket, i32)>,
}

thread_local! {
    /// That of this OS thread's event loop.
    static HERE: RefCell<Option<Rc<RefCell<Carrier>>>> = const { RefCell::new(None) };
}

/// A thread has asked for an operation of this OS thread's event loop, and with it so many wait to
/// begin.
pub(super) fn asked(listed: usize) {
    if listed < EARLY {
        return;
    }
    // When the OS thread's variables go, the turn hands it over.
    let _ = HERE.try_with(|here| {
        // If the carrier is in use, the event loop's own turn has woken the asking thread, and
        // another turn follows.
        if let Some(carrier) = &*here.borrow()
            && let Ok(mut carrier) = carrier.try_borrow_mut()
        {
            carrier.push_early();
        }
    });
}

/// The disk side of an event loop.
#[derive(Debug)]
pub(crate) struct DiskSide {
    queue: Arc<OperationQueue>,
    carrier: Rc<RefCell<Carrier>>,
    /// Kept for its memory.
    woken: Vec<Waker>,
}

/// What is left of an event loop's wait once its disk side has had its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitLeft {
    /// All of it: nothing is going on with the disk.
    Whole,
    /// Nothing of it, and the epoll set has nothing to tell either.
    Over,
    /// Nothing of it, but the epoll set is to be looked at.
    Look,
}

impl DiskSide {
    /// The disk side of the event loop of the calling OS thread.
    pub(crate) fn new(driver: Driver, unparker: Arc<dyn Unpark>) -> DiskSide {
        // Besides operations the ring takes cancellations and the watch.
        DiskSide::with(driver, unparker, DEPTH, 2 * DEPTH as u32)
    }

    fn with(driver: Driver, unparker: Arc<dyn Unpark>, depth: usize, entries: u32) -> DiskSide {
        let performer = match driver {
            Driver::Ring => Performer::Loop,
            Driver::Pool => Performer::Pool,
        };
        let queue = Arc::new(OperationQueue::new(performer, Some(unparker)));
        OperationQueue::set_here(Some(queue.clone()));
        let carrier = Carrier { queue: queue.clone(), ring: None, depth, entries, told: Vec::new() };
        let carrier = Rc::new(RefCell::new(carrier));
        // When the OS thread's variables go, nothing is handed over early.
        drop(HERE.try_with(|here| here.replace(Some(carrier.clone()))));
        DiskSide { queue, carrier, woken: Vec::new() }
    }

    /// How many operations a thread or task waits for.
    pub(crate) fn awaited(&self) -> usize {
        self.queue.awaited()
    }

    /// How many operations wait to be begun, and how many the kernel has.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.queue.lock().listed(), self.carrier.borrow().ring.as_ref().map_or(0, Ring::pending))
    }

    /// One turn: what threads have asked for goes to the kernel, what it has done comes back, and
    /// if `wait` is not zero this waits so long, or without limit, for something to come, from the
    /// disk or the epoll set. `others` says whether a thread waits for the epoll set, so that the
    /// look at it must not be late.
    ///
    /// # Errors
    /// If the ring is misused.
    pub(crate) fn turn(
        &mut self,
        cpu: &mut Cpu,
        wait: Option<Duration>,
        epoll: BorrowedFd<'_>,
        others: bool,
    ) -> io::Result<WaitLeft> {
        let look = self.carrier.borrow_mut().turn(wait, epoll, others, &mut self.woken)?;
        for waker in self.woken.drain(..) {
            cpu.wake(waker);
        }
        Ok(look)
    }

    /// From now on the disk side wakes no thread.
    pub(crate) fn cancel_all(&mut self) {
        self.queue.cancel_all();
    }
}

impl Carrier {
    /// As [`DiskSide::turn`], but puts the wakers to be called into `woken`.
    fn turn(
        &mut self,
        wait: Option<Duration>,
        epoll: BorrowedFd<'_>,
        others: bool,
        woken: &mut Vec<Waker>,
    ) -> io::Result<WaitLeft> {
        if self.ring.is_none() && !self.open() {
            return Ok(WaitLeft::Whole);
        }
        self.push(wait == Some(Duration::ZERO));
        let Some(ring) = &mut self.ring else { return Ok(WaitLeft::Whole) };
        if ring.pending() == 0 && self.told.is_empty() {
            // With nothing under way this hands over cancellations that came too late, at most.
            ring.enter()?;
            return Ok(WaitLeft::Whole);
        }
        if wait == Some(Duration::ZERO) || !self.told.is_empty() || !ring.has_room() {
            ring.enter()?;
        } else {
            ring.watch(epoll);
            let batch = if others { 1 } else { (ring.pending() / BATCHES).max(1) };
            ring.wait(batch, wait)?;
        }
        let readable = self.take_in(woken);
        Ok(if readable || others { WaitLeft::Look } else { WaitLeft::Over })
    }

    /// Makes the ring, if there is something to do for it. If there is none to be had, the pool
    /// does it.
    #[cold]
    fn open(&mut self) -> bool {
        {
            let state = self.queue.lock();
            if state.listed() == 0 || state.performer() == Performer::Pool {
                return false;
            }
        }
        match Ring::new(self.entries) {
            Ok(ring) => self.ring = Some(ring),
            Err(_) => self.queue.leave_to_pool(),
        }
        self.ring.is_some()
    }

    /// Moves what is to be done from the queue into the ring.
    ///
    /// While the scheduler is `busy`, threads may be ready sooner than they come to run, each with
    /// a buffer. Then the disk may as well wait for them: but never quite, for it is not said that
    /// they look after what is done.
    fn push(&mut self, busy: bool) {
        let Some(ring) = &mut self.ring else { return };
        Carrier::push_cancelled(&self.queue, ring);
        let mut passed_on = Vec::new();
        let mut state = self.queue.lock();
        let depth = if busy && state.unseen() > UNSEEN_MAX { 1 } else { self.depth };
        while ring.pending() < depth
            && ring.has_room()
            && let Some(ticket) = state.begin()
        {
            let operation = state.operation(ticket);
            if !ring.supports(operation) {
                passed_on.push(ticket);
                continue;
            }
            match operation.call().map_or(Ok(usize::MAX), sys::through_ring) {
                // SAFETY: the queue keeps what has begun until it is completed, which `take_in`
                // does when the outcome is told; what the operation owns lies on the heap, where it
                // does not move with the slot.
                Ok(limit) => unsafe { ring.push(operation, limit, ticket.to_bits()) },
                Err(errno) => self.told.push((ticket, -errno.raw_os_error())),
            }
        }
        drop(state);
        for ticket in passed_on {
            self.queue.pass_on(ticket);
        }
    }

    /// Hands over what has been asked for within a turn of the scheduler, if the disk has room for
    /// it.
    fn push_early(&mut self) {
        let room = |ring: &Ring, depth| ring.pending() + EARLY <= depth;
        if !self.ring.as_ref().is_some_and(|ring| room(ring, self.depth)) {
            return;
        }
        self.push(true);
        if let Some(ring) = &mut self.ring {
            // Were something wrong with it, the event loop would be told in its turn.
            let _ = ring.enter();
        }
    }

    /// Passes to the ring which operations are wanted no more.
    fn push_cancelled(queue: &OperationQueue, ring: &mut Ring) {
        let mut state = queue.lock();
        while ring.has_room()
            && let Some(ticket) = state.take_cancelled()
        {
            ring.push_cancel(ticket.to_bits());
        }
    }

    /// Takes in the finished operations, and puts the wakers of their waiters into `woken`. Returns
    /// whether the epoll set has an event to tell.
    fn take_in(&mut self, woken: &mut Vec<Waker>) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        let told = &mut self.told;
        let readable = ring.outcomes(|bits, outcome| told.push((Ticket::from_bits(bits), outcome)));
        let mut passed_on = Vec::new();
        let mut unwanted = Vec::new();
        let mut state = self.queue.lock();
        for (ticket, mut outcome) in told.drain(..) {
            let operation = state.operation(ticket);
            match operation {
                Operation::Open(_) if outcome >= 0 => {
                    // SAFETY: the kernel has just opened it for us.
                    *operation = Operation::Opened(unsafe { OwnedFd::from_raw_fd(outcome) }.into());
                    outcome = 0;
                }
                // The kernel has taken the descriptor back, whatever it says; unless it never came
                // to it.
                Operation::Close(fd) if outcome != -Errno::CANCELED.raw_os_error() => mem::forget(fd.take()),
                // It has been interrupted; or the file cannot be waited for, of a file system that
                // only knows calls that block.
                _ if [Errno::AGAIN, Errno::INTR].map(|e| -e.raw_os_error()).contains(&outcome) => {
                    passed_on.push(ticket);
                    continue;
                }
                _ => {}
            }
            let completed = state.complete(ticket, outcome);
            woken.extend(completed.waker);
            unwanted.extend(completed.unwanted);
        }
        drop(state);
        drop(unwanted);
        for ticket in passed_on {
            self.queue.pass_on(ticket);
        }
        readable
    }
}

/// One wait takes in this part of what is under way, if that comes quickly: so that the disk never
/// runs dry, and a thousand reads are not a thousand system calls.
const BATCHES: usize = 16;

/// How often in a row the kernel may refuse to be waited for, before an event loop that ends takes
/// it for final.
const FAILURES_MAX: u32 = 10;

impl Drop for DiskSide {
    /// The kernel may still be writing into buffers: this waits until it has done with them.
    /// Threads elsewhere that wait for an operation get their answers, those that had not begun
    /// from the pool.
    fn drop(&mut self) {
        OperationQueue::set_here(None);
        drop(HERE.try_with(RefCell::take));
        self.queue.leave_to_pool();
        let mut carrier = self.carrier.borrow_mut();
        let mut failures = 0;
        while let Some(ring) = &mut carrier.ring
            && ring.pending() > 0
        {
            Carrier::push_cancelled(&self.queue, ring);
            match ring.wait(1, Some(Duration::from_secs(1))) {
                Ok(()) => failures = 0,
                Err(_) if failures < FAILURES_MAX => failures += 1,
                Err(error) => {
                    // It cannot be told when the buffers are free, nor whether it is safe to go on.
                    eprintln!("io_uring_enter: {error}");
                    std::process::abort();
                }
            }
            carrier.take_in(&mut self.woken);
            self.woken.drain(..).for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Bytes;
    use super::super::operation::{Opened, Transfer};
    use super::super::queue::OperationFuture;
    use super::*;
    use rustix::event::epoll;
    use selvedge_core::Events;
    use selvedge_core::{NoEvents, Trace};
    use std::cell::Cell;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::rc::Rc;

    /// Runs threads that read each block of a file with its number in every byte, until all have.
    fn read_all(disk: &mut DiskSide, threads: u8) {
        let mut file = tempfile::tempfile().unwrap();
        (0..threads).for_each(|i| file.write_all(&[i; 4096]).unwrap());
        let file = Arc::new(Opened::new(OwnedFd::from(file).into(), "blocks".into(), false));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let mut cpu = Cpu::new().unwrap();
        let done = Rc::new(Cell::new(0));
        for i in 0..threads {
            let (file, done) = (file.clone(), done.clone());
            let thread = cpu.thread(async move {
                let bytes = Bytes::ToCome(4096);
                let read = Operation::Read(Transfer { file, bytes, offset: u64::from(i) * 4096, start: 0 });
                let (outcome, operation) = OperationFuture::new(read).await;
                let Operation::Read(mut read) = operation else { panic!("{operation:?}") };
                assert_eq!((outcome, &*read.part()), (4096, &[i; 4096][..]));
                done.set(done.get() + 1);
            });
            cpu.make_ready(thread.unwrap());
        }
        while done.get() < usize::from(threads) {
            while let Some(thread) = cpu.woken() {
                assert!(matches!(thread.step(&mut cpu), Trace::Blocked | Trace::Ret));
            }
            disk.turn(&mut cpu, Some(Duration::from_millis(10)), epoll.as_fd(), false).unwrap();
        }
        assert_eq!(disk.awaited(), 0);
    }

    fn unparker() -> Arc<dyn Unpark> {
        NoEvents::new().unparker()
    }

    #[test]
    fn what_several_threads_ask_for_goes_to_the_kernel_before_the_turn_is_over() {
        let mut disk = DiskSide::with(Driver::Ring, unparker(), 4, 8);
        read_all(&mut disk, 1); // makes the ring
        let under_way = |disk: &DiskSide| disk.carrier.borrow().ring.as_ref().unwrap().pending();
        let file =
            Arc::new(Opened::new(OwnedFd::from(tempfile::tempfile().unwrap()).into(), "empty".into(), false));
        let mut cpu = Cpu::new().unwrap();
        // From the fourth on there is no room for so many at once: those wait for the turn.
        for expected in [0, 2, 2, 4, 4, 4] {
            let file = file.clone();
            let thread = cpu.thread(async move {
                let read = Transfer { file, bytes: Bytes::ToCome(4096), offset: 0, start: 0 };
                assert_eq!(OperationFuture::new(Operation::Read(read)).await.0, 0, "the file is empty");
            });
            assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Blocked));
            assert_eq!(under_way(&disk), expected);
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        while disk.awaited() > 0 {
            disk.turn(&mut cpu, Some(Duration::from_millis(10)), epoll.as_fd(), false).unwrap();
        }
        while let Some(thread) = cpu.woken() {
            assert!(matches!(thread.step(&mut cpu), Trace::Ret));
        }
    }

    #[test]
    fn a_ring_that_is_much_too_small_only_takes_longer() {
        // Two go in at once, four come out at once; the kernel keeps the others.
        let mut disk = DiskSide::with(Driver::Ring, unparker(), 64, 2);
        read_all(&mut disk, 200);
        assert!(disk.carrier.borrow().ring.is_some());
    }

    #[test]
    fn without_a_ring_the_pool_does_it() {
        // No ring has so many entries: this kernel has none for us.
        let mut disk = DiskSide::with(Driver::Ring, unparker(), 64, u32::MAX);
        read_all(&mut disk, 200);
        assert!(disk.carrier.borrow().ring.is_none());
        read_all(&mut disk, 5);
    }
}
