//! An event loop's part in disk operations: [`DiskSide`] carries them between the
//! [queue](super::queue) and the [ring](crate::uring).
//!
//! The event loop owns a `DiskSide` and calls `turn` once in each of its turns.
//! `operation_future.rs` calls `asked` when a thread asks for an operation, so that `Carrier` can
//! hand operations over before the turn. `Driver`, which is public, chooses between ring and
//! blocking pool. An operation that the ring cannot perform goes to the pool (`pass_on`), and a
//! loop that gets no ring leaves its whole queue to the pool.
//!
//! The kernel writes into the memory of an operation that has begun. So a `DiskSide` that is
//! dropped waits until the ring has reported every operation, and aborts the process if it cannot.

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
    /// Through a ring of the event loop (io_uring). Where the kernel has no ring for this process,
    /// like `Pool`.
    Ring,
    /// By the [blocking pool](crate::blocking). Reads of bytes that are in memory are done at once.
    Pool,
}

impl Default for Driver {
    /// `Ring`, unless the environment says `SELVEDGE_IO=epoll`.
    fn default() -> Driver {
        if env::var_os("SELVEDGE_IO").is_some_and(|io| io == "epoll") { Driver::Pool } else { Driver::Ring }
    }
}

/// The most operations of one event loop that the kernel has at once; further operations wait in
/// the queue. A disk has its full throughput at 128 operations or fewer. The rest covers the
/// operations that are done and that the loop is taking in now. The kernel passes operations beyond
/// the queue of its block layer, often 256, to OS threads of its own, which costs several times as
/// much.
const DEPTH: usize = 144;

/// If more operations than this are done, and their threads have not taken them yet, a busy event
/// loop keeps at most one operation in the kernel.
const UNSEEN_MAX: usize = 1024;

/// This many operations go to the kernel as soon as threads have asked for them, before all threads
/// of the turn have had their step. So the disk has work again while threads still handle its last
/// answers. This costs one system call for each such group, and nothing while the kernel has
/// [`DEPTH`] operations.
const EARLY: usize = 2;

/// Carries operations to the kernel and their outcomes back.
#[derive(Debug)]
struct Carrier {
    queue: Arc<OperationQueue>,
    ring: Option<Ring>,
    depth: usize,
    /// The number of entries of the ring, for the operations that are handed over at once.
    entries: u32,
    /// The outcomes that the ring has reported and that are not yet taken in. The vector is kept
    /// for its memory.
    reported: Vec<(Ticket, i32)>,
}

thread_local! {
    /// The carrier of this OS thread's event loop.
    static HERE: RefCell<Option<Rc<RefCell<Carrier>>>> = const { RefCell::new(None) };
}

/// A thread has asked for an operation of this OS thread's event loop. Now `listed` operations wait
/// to begin.
pub(super) fn asked(listed: usize) {
    if listed < EARLY {
        return;
    }
    // While the OS thread's variables are being dropped, the turn hands the operation over.
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
    /// The vector is kept for its memory.
    woken: Vec<Waker>,
}

/// The part of an event loop's wait that is left after its disk side has had its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitLeft {
    /// The whole wait, because the disk does nothing.
    Whole,
    /// Nothing, and the epoll set has no event either.
    Over,
    /// Nothing, but the loop must look at the epoll set.
    Look,
}

impl DiskSide {
    /// The disk side of the event loop of the calling OS thread.
    pub(crate) fn new(driver: Driver, unparker: Arc<dyn Unpark>) -> DiskSide {
        // The ring takes cancellations and the watch beside the operations.
        DiskSide::with(driver, unparker, DEPTH, 2 * DEPTH as u32)
    }

    fn with(driver: Driver, unparker: Arc<dyn Unpark>, depth: usize, entries: u32) -> DiskSide {
        let performer = match driver {
            Driver::Ring => Performer::Loop,
            Driver::Pool => Performer::Pool,
        };
        let queue = Arc::new(OperationQueue::new(performer, Some(unparker)));
        OperationQueue::set_here(Some(queue.clone()));
        let carrier = Carrier { queue: queue.clone(), ring: None, depth, entries, reported: Vec::new() };
        let carrier = Rc::new(RefCell::new(carrier));
        // While the OS thread's variables are being dropped, nothing is handed over early.
        drop(HERE.try_with(|here| here.replace(Some(carrier.clone()))));
        DiskSide { queue, carrier, woken: Vec::new() }
    }

    /// The number of operations that a thread or task waits for.
    pub(crate) fn awaited(&self) -> usize {
        self.queue.awaited()
    }

    /// The number of operations that wait to begin, and the number that the kernel has.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.queue.lock().listed(), self.carrier.borrow().ring.as_ref().map_or(0, Ring::pending))
    }

    /// One turn: hands the operations that threads have asked for to the kernel, and takes in the
    /// operations that are done. If `wait` is not zero, this waits at most that time, or without
    /// limit, for an answer of the disk or an event of the epoll set. `others` says whether a
    /// thread waits for the epoll set, so that the loop must not look at it late.
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
    /// Like [`DiskSide::turn`], but puts the wakers that the caller must wake into `woken`.
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
        if ring.pending() == 0 && self.reported.is_empty() {
            // The kernel has no operation. So this hands over at most cancellations that came too
            // late.
            ring.enter()?;
            return Ok(WaitLeft::Whole);
        }
        if wait == Some(Duration::ZERO) || !self.reported.is_empty() || !ring.has_room() {
            ring.enter()?;
        } else {
            ring.watch(epoll);
            let batch = if others { 1 } else { (ring.pending() / BATCHES).max(1) };
            ring.wait(batch, wait)?;
        }
        let readable = self.take_in(woken);
        Ok(if readable || others { WaitLeft::Look } else { WaitLeft::Over })
    }

    /// Makes the ring, if an operation waits for it. If the kernel gives no ring, the pool performs
    /// the operations.
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

    /// Moves operations from the queue into the ring.
    ///
    /// While the scheduler is `busy`, the disk may answer threads faster than they get to run, and
    /// each answer holds a buffer. Then the disk waits for the threads. One operation stays in the
    /// kernel, because it is not certain that the threads with answers run.
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
                // SAFETY: the queue keeps an operation that has begun until `take_in` completes it,
                // which happens when the ring reports the outcome. The memory that the operation
                // owns lies on the heap, so it does not move with the slot.
                Ok(limit) => unsafe { ring.push(operation, limit, ticket.to_bits()) },
                Err(errno) => self.reported.push((ticket, -errno.raw_os_error())),
            }
        }
        drop(state);
        for ticket in passed_on {
            self.queue.pass_on(ticket);
        }
    }

    /// Hands over the operations that threads have asked for within a turn of the scheduler, if the
    /// disk has room for them.
    fn push_early(&mut self) {
        let room = |ring: &Ring, depth| ring.pending() + EARLY <= depth;
        if !self.ring.as_ref().is_some_and(|ring| room(ring, self.depth)) {
            return;
        }
        self.push(true);
        if let Some(ring) = &mut self.ring {
            // If the call fails, the event loop gets the same error in its turn.
            let _ = ring.enter();
        }
    }

    /// Passes to the ring the operations that are not wanted any more.
    fn push_cancelled(queue: &OperationQueue, ring: &mut Ring) {
        let mut state = queue.lock();
        while ring.has_room()
            && let Some(ticket) = state.take_cancelled()
        {
            ring.push_cancel(ticket.to_bits());
        }
    }

    /// Takes in the finished operations, and puts the wakers of their waiters into `woken`. True if
    /// the epoll set has an event.
    fn take_in(&mut self, woken: &mut Vec<Waker>) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        let reported = &mut self.reported;
        let readable = ring.outcomes(|bits, outcome| reported.push((Ticket::from_bits(bits), outcome)));
        let mut passed_on = Vec::new();
        let mut unwanted = Vec::new();
        let mut state = self.queue.lock();
        for (ticket, mut outcome) in reported.drain(..) {
            let operation = state.operation(ticket);
            match operation {
                Operation::Open(_) if outcome >= 0 => {
                    // SAFETY: `outcome` is the descriptor that the kernel has just opened for this
                    // operation, and nothing else has the number.
                    *operation = Operation::Opened(unsafe { OwnedFd::from_raw_fd(outcome) }.into());
                    outcome = 0;
                }
                // The kernel has closed the descriptor, even if it reports an error, unless the
                // operation was cancelled before it began.
                Operation::Close(fd) if outcome != -Errno::CANCELED.raw_os_error() => mem::forget(fd.take()),
                // The operation was interrupted, or the file system has only calls that block.
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

/// One wait takes in this part of the operations that the kernel has, if they are done quickly. So
/// the disk always has work, and a thousand reads take fewer than a thousand system calls.
const BATCHES: usize = 16;

/// How many times in a row the wait of an ending event loop may fail before the loop takes the
/// failure as final.
const FAILURES_MAX: u32 = 10;

impl Drop for DiskSide {
    /// Waits until the kernel has done with the buffers, because it may still be writing into them.
    /// Threads of other loops that wait for an operation get their answers; the pool performs the
    /// operations that had not begun.
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
                    // The loop cannot know when the buffers are free, so no continuation is safe.
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
    use super::super::operation_future::OperationFuture;
    use super::*;
    use rustix::event::epoll;
    use rustix::fs::OFlags;
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
        let file = Arc::new(Opened::new(OwnedFd::from(file).into(), "blocks".into(), OFlags::empty()));
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
        let file = Arc::new(Opened::new(
            OwnedFd::from(tempfile::tempfile().unwrap()).into(),
            "empty".into(),
            OFlags::empty(),
        ));
        let mut cpu = Cpu::new().unwrap();
        // From the fourth operation on there is no room for a group. These wait for the turn.
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
        // Two operations go in at once, and four come out at once. The kernel keeps the others.
        let mut disk = DiskSide::with(Driver::Ring, unparker(), 64, 2);
        read_all(&mut disk, 200);
        assert!(disk.carrier.borrow().ring.is_some());
    }

    #[test]
    fn without_a_ring_the_pool_does_it() {
        // No ring has `u32::MAX` entries, so the kernel gives none.
        let mut disk = DiskSide::with(Driver::Ring, unparker(), 64, u32::MAX);
        read_all(&mut disk, 200);
        assert!(disk.carrier.borrow().ring.is_none());
        read_all(&mut disk, 5);
    }
}
