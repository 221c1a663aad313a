//! [`JobSegment`]: the memory that the processes of a job share.
//!
//! The process that starts the others makes it (`local_job.rs`), and each rank finds it by the
//! number of its descriptor. It is a file without a name, so it goes away with the last process.
//!
//! | what | for |
//! |---|---|
//! | [`SegmentHead`], one page | what the segment is, and a count of the processes that have ended |
//! | [`RankCell`] | each rank: its bell, its loan, its process, whether that has ended |
//! | [`RingControl`] | each pair of ranks: the counts of the ring from one to the other |
//! | bytes | each pair of ranks: the bytes of that ring |
//!
//! All of it is zero at first, which is an empty ring, a bell that is not armed, and a rank that no
//! process has taken. Pages that no process touches take no memory.

use super::bell::Bell;
use super::loan::LoanCell;
use super::primitives::{AtomicU32, ByteCell, Ordering};
use super::ring::{RingControl, RingMemory};
#[cfg_attr(miri, allow(unused_imports, reason = "under Miri a segment is no file"))]
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// The first bytes of a segment.
const MAGIC: u32 = 0x5e1d_ed01;

/// The build to which a segment belongs: a hash of the version, and of the files that say what lies
/// in a segment. So a change of them gives another number without a hand, and a process of another
/// build is refused before it reads what it would not understand.
const BUILD: u32 = {
    let hash = hashed(0x811c_9dc5, env!("CARGO_PKG_VERSION").as_bytes());
    let hash = hashed(hash, include_bytes!("segment.rs"));
    let hash = hashed(hash, include_bytes!("bell.rs"));
    let hash = hashed(hash, include_bytes!("loan.rs"));
    let hash = hashed(hash, include_bytes!("ring.rs"));
    let hash = hashed(hash, include_bytes!("rings.rs"));
    hashed(hash, include_bytes!("../job.rs"))
};

/// Goes on with a hash of Fowler, Noll and Vo.
const fn hashed(mut hash: u32, mut bytes: &[u8]) -> u32 {
    while let [first, rest @ ..] = bytes {
        hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
        bytes = rest;
    }
    hash
}

const PAGE: usize = 4096;

/// What keeps the length of the file, so that no process takes mapped pages from another.
const LENGTH_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// The most ranks of one job. The number of rings is its square.
pub(crate) const RANKS_MAX: usize = 512;

/// The bytes of all rings together, where a ring does not become too small by that.
const RINGS_TOTAL: usize = 256 << 20;

const RING_MIN: usize = 16 << 10;
const RING_MAX: usize = 256 << 10;

/// What a segment begins with.
#[repr(C)]
struct SegmentHead {
    magic: AtomicU32,
    /// The [`BUILD`] that has made it. It stays at this place, so that each build finds it.
    build: AtomicU32,
    size: AtomicU32,
    ring_bytes: AtomicU32,
    /// The process that watches the others.
    starter: AtomicU32,
    /// How many processes have ended.
    departures: AtomicU32,
}

/// What the others see of a rank.
#[repr(C, align(64))]
struct RankCell {
    bell: Bell,
    loan: LoanCell,
    /// The process that is this rank, or 0.
    process: AtomicU32,
    has_departed: AtomicU32,
}

/// Shared memory, mapped.
pub(crate) struct JobSegment {
    base: NonNull<u8>,
    layout: SegmentLayout,
    file: File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SegmentLayout {
    size: usize,
    ring_bytes: usize,
}

impl SegmentLayout {
    /// # Errors
    /// If the numbers are those of no segment.
    fn new(size: usize, ring_bytes: usize) -> io::Result<SegmentLayout> {
        let is_right = (1..=RANKS_MAX).contains(&size)
            && (RING_MIN..=RING_MAX).contains(&ring_bytes)
            && ring_bytes.is_power_of_two();
        match is_right {
            true => Ok(SegmentLayout { size, ring_bytes }),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, not_a_job(size))),
        }
    }

    fn of_size(size: usize) -> io::Result<SegmentLayout> {
        let share = RINGS_TOTAL / (size * size).max(1);
        let ring_bytes = (share / 2 + 1).next_power_of_two().clamp(RING_MIN, RING_MAX);
        SegmentLayout::new(size, ring_bytes)
    }

    fn ranks(self) -> usize {
        PAGE
    }

    fn controls(self) -> usize {
        self.ranks() + self.size * size_of::<RankCell>()
    }

    fn bytes(self) -> usize {
        (self.controls() + self.size * self.size * size_of::<RingControl>()).next_multiple_of(PAGE)
    }

    fn length(self) -> usize {
        self.bytes() + self.size * self.size * self.ring_bytes
    }
}

/// The path of a segment that a process has under this descriptor.
pub(crate) fn segment_path(process: u32, descriptor: i32) -> String {
    format!("/proc/{process}/fd/{descriptor}")
}

fn not_a_job(size: usize) -> String {
    format!("a job on one machine has 1 to {RANKS_MAX} ranks, and this would have {size}")
}

// SAFETY: the memory is atomics, and bytes that `ByteCell`'s functions guard.
unsafe impl Send for JobSegment {}
// SAFETY: as above.
unsafe impl Sync for JobSegment {}

impl JobSegment {
    /// A segment for this number of ranks, which other processes [open](JobSegment::open).
    ///
    /// # Errors
    /// With no ranks or too many, or if the kernel has no memory.
    pub(crate) fn create(size: usize) -> io::Result<JobSegment> {
        JobSegment::create_with(size, MemfdFlags::CLOEXEC)
    }

    /// A segment for this number of ranks. The processes that this one starts
    /// [inherit](Self::inherited) its descriptor, also through a shell that starts the rank.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_inherited(size: usize) -> io::Result<JobSegment> {
        JobSegment::create_with(size, MemfdFlags::empty())
    }

    fn create_with(size: usize, flags: MemfdFlags) -> io::Result<JobSegment> {
        let segment = JobSegment::new(SegmentLayout::of_size(size)?, flags)?;
        let layout = segment.layout;
        let head = segment.head();
        head.build.store(BUILD, Ordering::Relaxed);
        head.size.store(layout.size as u32, Ordering::Relaxed);
        head.ring_bytes.store(layout.ring_bytes as u32, Ordering::Relaxed);
        head.starter.store(std::process::id(), Ordering::Relaxed);
        head.magic.store(MAGIC, Ordering::Release);
        Ok(segment)
    }

    /// New memory, of zeros.
    #[cfg(not(miri))]
    fn new(layout: SegmentLayout, flags: MemfdFlags) -> io::Result<JobSegment> {
        let file = memfd_create("selvedge-mpi", flags | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, layout.length() as u64)?;
        fcntl_add_seals(&file, LENGTH_SEALS | SealFlags::SEAL)?;
        JobSegment::map(File::from(file), layout)
    }

    /// New memory, of zeros, which no other process can have: Miri knows no memory of files.
    #[cfg(miri)]
    fn new(layout: SegmentLayout, _: MemfdFlags) -> io::Result<JobSegment> {
        let (flags, prot) = (MapFlags::PRIVATE, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so no other mapping is replaced.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), layout.length(), prot, flags)? };
        let base = NonNull::new(base.cast()).expect("mmap gives no null");
        Ok(JobSegment { base, layout, file: File::open("/dev/null")? })
    }

    /// The segment with this descriptor, which the process has inherited.
    ///
    /// # Errors
    /// If there is no such descriptor, or it is no segment of this build.
    pub(crate) fn inherited(descriptor: u32) -> io::Result<JobSegment> {
        JobSegment::open(format!("/proc/self/fd/{descriptor}"))
    }

    /// The segment of another process of the same user, by its [path](segment_path).
    ///
    /// # Errors
    /// If this process may not open it, or it is no segment of this build.
    pub(crate) fn open(path: String) -> io::Result<JobSegment> {
        let file = File::options().read(true).write(true).open(path)?;
        let refused = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let other = || refused("the descriptor is of no job".to_string());
        // A file of another kind has no seals.
        if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(LENGTH_SEALS)) {
            return Err(other());
        }
        // The seals keep this length.
        let length = file.metadata()?.len();
        if length < PAGE as u64 {
            return Err(other());
        }
        // Its head says how long it is.
        let head = JobSegment::map(file.try_clone()?, SegmentLayout { size: 0, ring_bytes: 0 })?;
        if head.head().magic.load(Ordering::Acquire) != MAGIC {
            return Err(other());
        }
        let build = head.head().build.load(Ordering::Relaxed);
        if build != BUILD {
            return Err(refused(format!(
                "another build of selvedge-mpi has made the job ({build:08x}, and this one is {BUILD:08x}): \
                 build the program and what starts it from the same sources"
            )));
        }
        let number = |word: &AtomicU32| word.load(Ordering::Relaxed) as usize;
        let layout = SegmentLayout::new(number(&head.head().size), number(&head.head().ring_bytes))?;
        if length != layout.length() as u64 {
            return Err(other());
        }
        JobSegment::map(file, layout)
    }

    fn map(file: File, layout: SegmentLayout) -> io::Result<JobSegment> {
        let (flags, prot) = (MapFlags::SHARED, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so no other mapping is replaced.
        let base = unsafe { mmap(std::ptr::null_mut(), layout.length(), prot, flags, &file, 0)? };
        let base = NonNull::new(base.cast()).expect("mmap gives no null");
        Ok(JobSegment { base, layout, file })
    }

    /// The number of the descriptor that processes inherit.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    pub(crate) fn size(&self) -> usize {
        self.layout.size
    }

    /// The object at this offset.
    ///
    /// # Safety
    /// A `T` is at this offset of the layout, and made of atomics.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        debug_assert!(offset + size_of::<T>() <= self.layout.length());
        // SAFETY: the caller says so. The mapping lives as long as `self`. The file has this
        // length: `create_with` has set it, or `open` has compared it. Seals keep it, which
        // `create_with` has set, or `open` has found. All bits are valid for atomics.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    fn head(&self) -> &SegmentHead {
        // SAFETY: the head is at the beginning, which is aligned to a page.
        unsafe { self.at(0) }
    }

    fn rank(&self, rank: usize) -> &RankCell {
        assert!(rank < self.layout.size, "the job has this rank");
        // SAFETY: the cells of all ranks stand there, and the page is aligned for them.
        unsafe { self.at(self.layout.ranks() + rank * size_of::<RankCell>()) }
    }

    /// The bell of a rank.
    pub(crate) fn bell(&self, rank: usize) -> &Bell {
        &self.rank(rank).bell
    }

    /// The loan of a rank.
    pub(super) fn loan(&self, rank: usize) -> &LoanCell {
        &self.rank(rank).loan
    }

    /// The process that watches the ranks' processes.
    pub(crate) fn starter(&self) -> u32 {
        self.head().starter.load(Ordering::Relaxed)
    }

    /// This process is a rank from now on.
    ///
    /// # Errors
    /// The process that is this rank already.
    pub(crate) fn take_rank(&self, rank: usize) -> Result<(), u32> {
        let process = std::process::id();
        let taken = &self.rank(rank).process;
        taken.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    /// The process that is a rank, if one is.
    pub(super) fn process(&self, rank: usize) -> Option<u32> {
        Some(self.rank(rank).process.load(Ordering::Relaxed)).filter(|&process| process != 0)
    }

    /// The path by which another process opens it, as long as this one has it.
    pub(crate) fn path(&self) -> String {
        segment_path(std::process::id(), self.descriptor())
    }

    /// The process of a rank has ended.
    pub(crate) fn departed(&self, rank: usize) {
        self.rank(rank).has_departed.store(1, Ordering::Release);
        self.head().departures.fetch_add(1, Ordering::Release);
    }

    /// How many processes have ended.
    pub(crate) fn departures(&self) -> u32 {
        self.head().departures.load(Ordering::Acquire)
    }

    /// Whether the process of a rank has ended.
    pub(crate) fn has_departed(&self, rank: usize) -> bool {
        self.rank(rank).has_departed.load(Ordering::Acquire) != 0
    }
}

impl Drop for JobSegment {
    fn drop(&mut self) {
        let base: *mut c_void = self.base.as_ptr().cast();
        // SAFETY: `map` has mapped it, and no reference into it outlives `self`.
        let _ = unsafe { munmap(base, self.layout.length()) };
    }
}

impl fmt::Debug for JobSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobSegment({} ranks)", self.layout.size)
    }
}

/// The ring from one rank to another, in a segment.
pub(super) struct SegmentRing {
    segment: Arc<JobSegment>,
    number: usize,
}

impl SegmentRing {
    pub(super) fn new(segment: Arc<JobSegment>, from: usize, to: usize) -> SegmentRing {
        let size = segment.size();
        assert!(from < size && to < size, "the job has both ranks");
        SegmentRing { number: from * size + to, segment }
    }
}

impl RingMemory for SegmentRing {
    fn control(&self) -> &RingControl {
        let layout = self.segment.layout;
        // SAFETY: the counts of `size * size` rings stand there, and `new` has checked the number.
        unsafe { self.segment.at(layout.controls() + self.number * size_of::<RingControl>()) }
    }

    fn cells(&self) -> &[ByteCell] {
        let layout = self.segment.layout;
        let offset = layout.bytes() + self.number * layout.ring_bytes;
        // SAFETY: the bytes of `size * size` rings stand there, and `new` has checked the number.
        // The mapping lives as long as the segment, and `ByteCell` allows other processes to write.
        unsafe {
            let first = self.segment.base.add(offset).cast::<ByteCell>();
            NonNull::slice_from_raw_parts(first, layout.ring_bytes).as_ref()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_parts_of_a_segment_do_not_overlap() {
        for size in [1, 2, 3, 64, 200, RANKS_MAX] {
            let layout = SegmentLayout::of_size(size).unwrap();
            assert!(layout.controls().is_multiple_of(align_of::<RingControl>()));
            assert!(size_of::<SegmentHead>() <= layout.ranks());
            assert!(layout.bytes() >= layout.controls() + size * size * size_of::<RingControl>());
            assert_eq!(layout.length(), layout.bytes() + size * size * layout.ring_bytes);
        }
        assert_eq!(SegmentLayout::of_size(4).unwrap().ring_bytes, RING_MAX);
        assert_eq!(SegmentLayout::of_size(100).unwrap().ring_bytes, 16 << 10);
        assert!(SegmentLayout::of_size(0).is_err());
        assert!(SegmentLayout::of_size(RANKS_MAX + 1).is_err());
    }

    #[test]
    fn another_process_finds_the_segment_by_its_descriptor() {
        let segment = JobSegment::create_inherited(3).unwrap();
        let again = JobSegment::inherited(segment.descriptor() as u32).unwrap();
        assert_eq!((again.size(), again.starter()), (3, std::process::id()));
        again.take_rank(2).unwrap();
        assert_eq!(segment.take_rank(2), Err(std::process::id()));
        segment.departed(1);
        assert!(again.has_departed(1) && !again.has_departed(0));
        assert_eq!(again.departures(), 1);
    }

    #[test]
    fn what_is_no_segment_is_refused() {
        assert!(JobSegment::inherited(u32::MAX).is_err());
        let wrong = "the descriptor is of no job";
        assert_eq!(refusal(&file_with(&[], LENGTH_SEALS)), wrong);
        assert_eq!(refusal(&File::open("/dev/null").unwrap()), wrong);
    }

    #[test]
    fn a_file_that_can_become_shorter_is_no_segment() {
        let words = [MAGIC, BUILD, 1, RING_MAX as u32];
        JobSegment::inherited(file_with(&words, LENGTH_SEALS).as_raw_fd() as u32).unwrap();
        for seals in [SealFlags::empty(), SealFlags::SHRINK, SealFlags::GROW] {
            assert_eq!(refusal(&file_with(&words, seals)), "the descriptor is of no job");
        }
    }

    #[test]
    fn a_segment_of_another_build_is_refused() {
        let error = refusal(&file_with(&[MAGIC, BUILD ^ 1, 1, RING_MAX as u32], LENGTH_SEALS));
        assert!(error.starts_with("another build of selvedge-mpi has made the job ("), "{error}");
    }

    #[test]
    fn a_descriptor_is_inherited_only_where_that_is_asked_for() {
        let is_inherited = |segment: JobSegment| {
            let flags = rustix::io::fcntl_getfd(&segment.file).unwrap();
            !flags.contains(rustix::io::FdFlags::CLOEXEC)
        };
        assert!(is_inherited(JobSegment::create_inherited(2).unwrap()));
        assert!(!is_inherited(JobSegment::create(2).unwrap()));
    }

    fn refusal(file: &File) -> String {
        JobSegment::inherited(file.as_raw_fd() as u32).unwrap_err().to_string()
    }

    /// A file that is as long as a segment of one rank, and begins with these words.
    fn file_with(words: &[u32], seals: SealFlags) -> File {
        let file = File::from(memfd_create("not-a-job", MemfdFlags::ALLOW_SEALING).unwrap());
        file.set_len(SegmentLayout::of_size(1).unwrap().length() as u64).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        (&file).write_all(&bytes).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }
}
