//! [`Ring`]: a ring to the kernel, for operations on files. Operations go in by the batch and
//! outcomes come out by the batch, with one system call for both. The loop's [disk
//! queue](crate::fs) uses it.
//!
//! One ring belongs to one OS thread. [`Ring::new`] finds out when it makes the ring what the
//! kernel offers, flag by flag and operation by operation; the build of the program decides nothing
//! of this. Where the kernel offers no ring at all, [`Ring::new`] fails and the [blocking
//! pool](crate::pool) does the work.
//!
//! The ring does not know the waiters. The caller names an operation by the bits of a number, and
//! the ring reports the operation's outcome with the same bits. The contract of [`Ring::push`] says
//! that the memory to which an operation refers stays where it is until the ring has reported the
//! operation's outcome.

use crate::fs::operation::{Operation, RawOutcome, STAT_MASK};
use crate::fs::region::DiskRegion;
use crate::sys::{self, Call};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Bits that no operation has: the outcome of a cancellation, which the ring ignores.
const CANCEL: u64 = u64::MAX;
/// Bits that no operation has: the watched descriptor has become readable.
const WATCH: u64 = u64::MAX - 1;

/// A ring that the calling OS thread and the kernel share.
pub(crate) struct Ring {
    ring: IoUring,
    /// Memory that is registered with the kernel. The field comes after `ring`, so that the memory
    /// is freed after the ring.
    region: Option<DiskRegion>,
    supported: Supported,
    /// A watch is in the kernel: the watched descriptor ends a wait when it is readable.
    watching: bool,
    /// The number of operations that still wait for their outcome.
    pending: usize,
    /// The kernel can wait for a batch for a short time before it returns the outcomes that have
    /// come.
    batches: bool,
}

/// The operations that the kernel performs through rings.
#[derive(Debug, Clone, Copy)]
struct Supported {
    transfer: bool,
    sync: bool,
    open: bool,
    stat: bool,
    close: bool,
    cancel: bool,
}

/// A function that makes a ring with the given number of entries and these flags.
type Setup<'a> = &'a dyn Fn(u32, u32) -> io::Result<IoUring>;

/// The sets of flags to ask for. The ring takes the first set that the kernel grants.
const WISHES: [u32; 4] = [
    // The kernel completes operations when the loop asks for outcomes, and never interrupts a
    // thread's step.
    DEFER_TASKRUN | SINGLE_ISSUER | TASKRUN_FLAG | SUBMIT_ALL,
    COOP_TASKRUN | TASKRUN_FLAG | SUBMIT_ALL,
    COOP_TASKRUN,
    0,
];
// As in <linux/io_uring.h>.
const SUBMIT_ALL: u32 = 1 << 7;
const COOP_TASKRUN: u32 = 1 << 8;
const TASKRUN_FLAG: u32 = 1 << 9;
const SINGLE_ISSUER: u32 = 1 << 12;
const DEFER_TASKRUN: u32 = 1 << 13;

fn setup(entries: u32, flags: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if flags & SUBMIT_ALL != 0 {
        builder.setup_submit_all();
    }
    if flags & COOP_TASKRUN != 0 {
        builder.setup_coop_taskrun();
    }
    if flags & TASKRUN_FLAG != 0 {
        builder.setup_taskrun_flag();
    }
    if flags & SINGLE_ISSUER != 0 {
        builder.setup_single_issuer();
    }
    if flags & DEFER_TASKRUN != 0 {
        builder.setup_defer_taskrun();
    }
    builder.build(entries)
}

impl Ring {
    /// A ring with room for `entries` operations between two calls of the kernel.
    ///
    /// # Errors
    /// If the kernel has no rings, or none for this process: it is too old, it forbids them, or no
    /// descriptors or memory are left. Also if its rings are too old to be of use.
    pub(crate) fn new(entries: u32) -> io::Result<Ring> {
        Ring::with(entries, &setup)
    }

    fn with(entries: u32, setup: Setup<'_>) -> io::Result<Ring> {
        let mut made = Err(io::ErrorKind::Unsupported.into());
        for flags in WISHES {
            made = sys::on_ring(Call::RingSetup, false, || setup(entries, flags));
            // Another attempt can help only if the kernel does not know a flag.
            if !matches!(&made, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
                break;
            }
        }
        let ring = made?;
        let features = ring.params();
        // Without the first feature a wait has no limit. Without the second, outcomes get lost.
        if !features.is_feature_ext_arg() || !features.is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let batches = features.is_feature_min_timeout();
        let mut probe = Probe::new();
        sys::on_ring(Call::RingRegister, false, || ring.submitter().register_probe(&mut probe))?;
        let supported = Supported {
            transfer: [
                opcode::Read::CODE,
                opcode::Write::CODE,
                opcode::ReadFixed::CODE,
                opcode::WriteFixed::CODE,
            ]
            .iter()
            .all(|&code| probe.is_supported(code)),
            sync: probe.is_supported(opcode::Fsync::CODE),
            open: probe.is_supported(opcode::OpenAt::CODE),
            stat: probe.is_supported(opcode::Statx::CODE),
            close: probe.is_supported(opcode::Close::CODE),
            cancel: probe.is_supported(opcode::AsyncCancel::CODE),
        };
        let region = DiskRegion::new().filter(|region| {
            let (start, length) = region.memory();
            let memory = libc::iovec { iov_base: start.cast(), iov_len: length };
            // SAFETY: the region is freed after the ring, because `Ring` declares `region` after
            // `ring`.
            let register = || unsafe { ring.submitter().register_buffers(&[memory]) };
            sys::on_ring(Call::RingRegister, false, register).is_ok()
        });
        Ok(Ring { ring, region, supported, watching: false, pending: 0, batches })
    }

    /// The number of operations that the kernel has.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Whether the kernel performs such an operation through a ring. In a ring an offset of all
    /// ones stands for the file's position, so a transfer at that offset is not supported.
    pub(crate) fn supports(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Read(transfer) | Operation::Write(transfer) => {
                self.supported.transfer && transfer.offset() != u64::MAX
            }
            Operation::Sync { .. } => self.supported.sync,
            Operation::Open(_) => self.supported.open,
            Operation::Stat(_) => self.supported.stat,
            Operation::Close(_) => self.supported.close,
            Operation::Opened(_) => false,
        }
    }

    /// Whether the ring has room for one more operation.
    pub(crate) fn has_room(&mut self) -> bool {
        !self.ring.submission().is_full()
    }

    /// Puts an operation into the ring; the kernel sees it at the next [`enter`](Self::enter). The
    /// operation transfers at most `limit` bytes. The ring will report its outcome with `bits`.
    ///
    /// # Panics
    /// If the ring has no room, or the operation is not [supported](Self::supports).
    ///
    /// # Safety
    /// Until the ring has reported the outcome, the operation is not dropped, and everything that
    /// it owns (buffers, paths, descriptors) stays where it is and is not touched. The operation
    /// itself may move.
    pub(crate) unsafe fn push(&mut self, operation: &mut Operation, limit: usize, bits: u64) {
        let fd = |fd: BorrowedFd<'_>| Fd(fd.as_raw_fd());
        let entry = match operation {
            Operation::Read(transfer) => {
                if let Some(region) = &self.region {
                    transfer.come_from(region);
                }
                let part = transfer.part();
                let (start, length) = (part.as_mut_ptr(), part.len().min(limit) as u32);
                let (file, offset) = (fd(transfer.file()), transfer.offset());
                match self.region.as_ref().is_some_and(|region| region.contains(start)) {
                    true => opcode::ReadFixed::new(file, start, length, 0).offset(offset).build(),
                    false => opcode::Read::new(file, start, length).offset(offset).build(),
                }
            }
            Operation::Write(transfer) => {
                let part = transfer.part();
                let (start, length) = (part.as_ptr(), part.len().min(limit) as u32);
                let (file, offset) = (fd(transfer.file()), transfer.offset());
                match self.region.as_ref().is_some_and(|region| region.contains(start)) {
                    true => opcode::WriteFixed::new(file, start, length, 0).offset(offset).build(),
                    false => opcode::Write::new(file, start, length).offset(offset).build(),
                }
            }
            Operation::Sync { file, data } => {
                let flags = if *data {
                    io_uring::types::FsyncFlags::DATASYNC
                } else {
                    io_uring::types::FsyncFlags::empty()
                };
                opcode::Fsync::new(fd((**file).as_fd())).flags(flags).build()
            }
            Operation::Open(open) => opcode::OpenAt::new(fd(rustix::fs::CWD), open.path.as_ptr())
                .flags(open.flags.bits() as i32)
                .mode(open.mode.bits())
                .build(),
            Operation::Stat(stat) => {
                let (directory, flags) = (fd(stat.directory()), stat.flags().bits());
                let result = (&raw mut stat.result).cast();
                opcode::Statx::new(directory, stat.path.as_ptr(), result)
                    .flags(flags as i32)
                    .mask(STAT_MASK.bits())
                    .build()
            }
            Operation::Close(Some(file)) => {
                // An OS thread of the kernel closes the file, because closing may wait for long.
                opcode::Close::new(Fd(file.as_fd().as_raw_fd())).build().flags(squeue::Flags::ASYNC)
            }
            Operation::Close(None) | Operation::Opened(_) => panic!("{operation:?} is done"),
        };
        self.pending += 1;
        // SAFETY: the entry points only to memory that the operation owns, and the caller promises
        // by the contract of `push` that this memory stays.
        unsafe { self.push_entry(entry.user_data(bits)) };
    }

    /// Asks the kernel to cancel the operation that was pushed with `bits`. The ring reports its
    /// outcome all the same.
    ///
    /// # Panics
    /// If the ring has no room.
    pub(crate) fn push_cancel(&mut self, bits: u64) {
        if self.supported.cancel {
            // SAFETY: the entry points to no memory.
            unsafe { self.push_entry(opcode::AsyncCancel::new(bits).build().user_data(CANCEL)) };
        }
    }

    /// From now on `fd` ends a wait once, as soon as it is readable.
    ///
    /// # Panics
    /// If the ring has no room.
    pub(crate) fn watch(&mut self, fd: BorrowedFd<'_>) {
        if !self.watching {
            self.watching = true;
            let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLIN as u32).build();
            // SAFETY: the entry points to no memory. If the descriptor were closed, the kernel
            // would report that as the outcome.
            unsafe { self.push_entry(entry.user_data(WATCH)) };
        }
    }

    /// # Safety
    /// As for [`push`](Self::push).
    unsafe fn push_entry(&mut self, entry: squeue::Entry) {
        // SAFETY: the caller keeps this function's contract, which is that of `push`.
        unsafe { self.ring.submission().push(&entry) }.expect("the caller has seen that there is room");
    }

    /// Hands the pushed operations to the kernel and takes in the outcomes that have come, without
    /// waiting. Makes no system call if there is neither.
    ///
    /// # Errors
    /// On misuse only.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        let submission = self.ring.submission();
        let nothing = submission.is_empty() && !submission.taskrun() && !submission.cq_overflow();
        drop(submission);
        if nothing {
            return Ok(());
        }
        self.entered(false, |ring| ring.submitter().submit())
    }

    /// Like [`enter`](Self::enter), but waits for outcomes: for the first outcome, or for `batch`
    /// outcomes if they come at most `BATCH_WAIT` later. The wait lasts at most `limit`; without a
    /// limit the kernel sets no timer.
    ///
    /// # Errors
    /// On misuse only.
    pub(crate) fn wait(&mut self, batch: usize, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        if let Some(limit) = &limit {
            arguments = arguments.timespec(limit);
        }
        let mut wanted = 1;
        if self.batches && batch > 1 {
            arguments = arguments.min_wait_usec(BATCH_WAIT.as_micros() as u32);
            wanted = batch;
        }
        self.entered(true, |ring| ring.submitter().submit_with_args(wanted, &arguments))
    }

    fn entered(&mut self, waits: bool, enter: impl FnOnce(&IoUring) -> io::Result<usize>) -> io::Result<()> {
        match sys::on_ring(Call::RingEnter, waits, || enter(&self.ring)) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The wait was interrupted or timed out; or the kernel wants outcomes taken out
                // first. Operations that were not handed over stay in the ring.
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Passes the outcomes that have come in to `report`. True if the watched descriptor has become
    /// readable.
    pub(crate) fn outcomes(&mut self, mut report: impl FnMut(u64, RawOutcome)) -> bool {
        let mut readable = false;
        for entry in self.ring.completion() {
            match entry.user_data() {
                CANCEL => {}
                WATCH => {
                    self.watching = false;
                    readable = true;
                }
                bits => {
                    self.pending -= 1;
                    report(bits, entry.result());
                }
            }
        }
        readable
    }
}

/// How long outcomes that have come may wait for further outcomes.
const BATCH_WAIT: Duration = Duration::from_micros(100);

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl Drop for Ring {
    /// The owner of the ring has waited for every outcome before.
    fn drop(&mut self) {
        debug_assert!(self.pending == 0 || std::thread::panicking(), "{} operations left", self.pending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn an_older_kernel_is_asked_for_less_and_less() {
        let asked = RefCell::new(Vec::new());
        let old = |known: u32| {
            let asked = &asked;
            move |entries: u32, flags: u32| {
                asked.borrow_mut().push(flags);
                if flags & !known != 0 {
                    return Err(io::Error::from_raw_os_error(libc::EINVAL));
                }
                setup(entries, flags)
            }
        };
        Ring::with(4, &old(u32::MAX)).unwrap();
        assert_eq!(asked.take(), WISHES[..1]);
        Ring::with(4, &old(COOP_TASKRUN)).unwrap();
        assert_eq!(asked.take(), WISHES[..3]);
        Ring::with(4, &old(0)).unwrap();
        assert_eq!(asked.take(), WISHES);
    }

    #[test]
    fn where_rings_are_forbidden_there_is_none_and_one_asks_once() {
        for errno in [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EMFILE] {
            let asked = RefCell::new(0);
            let error = Ring::with(4, &|_, _| {
                *asked.borrow_mut() += 1;
                Err(io::Error::from_raw_os_error(errno))
            })
            .unwrap_err();
            assert_eq!((error.raw_os_error(), asked.take()), (Some(errno), 1));
        }
    }

    #[test]
    fn a_watched_descriptor_ends_a_wait_once() {
        let mut ring = Ring::new(4).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let reader = std::os::fd::AsFd::as_fd(&reader);
        for _ in 0..3 {
            ring.watch(reader);
            ring.watch(reader);
            ring.wait(1, Some(Duration::from_millis(1))).unwrap();
            assert!(!ring.outcomes(|_, _| panic!("nothing was asked")), "nothing to read yet");
            rustix::io::write(&writer, b"x").unwrap();
            ring.wait(1, None).unwrap();
            assert!(ring.outcomes(|_, _| panic!("nothing was asked")));
            rustix::io::read(reader, &mut [0]).unwrap();
        }
    }
}
