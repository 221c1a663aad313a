//! The address space in which all threads live, and the blocks cut from it.
//!
//! The process reserves one region of at most 32 GiB at its first use. A 32-bit [`Key`] addresses
//! it in granules of 8 bytes, so a link between threads takes 4 bytes. The region is cut into
//! chunks. A chunk has blocks of one size for the life of the process, and belongs to one CPU at a
//! time. For its first threads of a size a CPU takes one chunk. After that it takes several chunks
//! in a row: twice as many as the time before, and 16 at most.
//!
//! # Two invariants
//! - **A key that was handed out is the address of a block header for ever.** The arena never
//!   unmaps memory, and a chunk never changes its block size. So a stale key leads to a header: the
//!   header of a free block, or of another thread.
//! - **Only the owner of a chunk cuts blocks from it, and only the owner has its free list.** An
//!   OS thread that frees a block elsewhere pushes it onto the chunk's own lock-free list
//!   (`freed.rs`). The owner takes that list over when its free list is empty. When the owner is
//!   dropped, some blocks of the chunk may still be held. The chunk gets its next owner when all of
//!   them have been freed.
//!
//! Fresh memory reads as zeros, and a head word of zero means "free". So a walk over a chunk finds
//! the live threads. A header is two atomic words, so a stale key can be read on any OS thread. The
//! rules by which the words are written are at [`Header`].

use crate::freed::FreedList;
use crate::header::{FREE, Header};
use crate::huge_pages::{HUGE_PAGE, advise_huge_pages};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Bytes per granule: the unit of keys and of block sizes.
pub(crate) const GRANULE: usize = 8;
/// The largest block, in granules; a larger future goes to the heap and its block holds the
/// pointer.
pub(crate) const GRANULES_MAX: usize = if cfg!(miri) { 63 } else { 511 };

/// log2 of the chunk size in granules: 64 KiB. Under Miri chunks are small, so that short tests
/// fill several of them.
const CHUNK_SHIFT: u32 = if cfg!(miri) { 11 } else { 13 };
const CHUNK_GRANULES: u32 = 1 << CHUNK_SHIFT;
const CHUNK_BYTES: usize = CHUNK_GRANULES as usize * GRANULE;
/// 32 GiB less one chunk, because the end of the arena must be a 32-bit key too.
const CHUNKS_MAX: usize = if cfg!(miri) { 256 } else { (1 << (32 - CHUNK_SHIFT)) - 1 };
/// The largest number of chunks that a CPU takes at once: 1 MiB.
const RUN_MAX: u32 = if cfg!(miri) { 4 } else { 16 };
/// A CPU with this number of runs of one size (4 GiB) asks for huge pages under further runs. They
/// cause fewer page faults. A huge page that stays mostly unused is small compared with 4 GiB.
const RUNS_BEFORE_HUGE_PAGES: usize = 4096;
/// Chunks reserved behind the last one (4 MiB), because [`advise_huge_pages_under`] may reach
/// beyond it.
const SPARE_CHUNKS: usize = (4 << 20) / CHUNK_BYTES;
/// The smallest reservation worth starting with: 16 MiB.
const CHUNKS_MIN: usize = if cfg!(miri) { 256 } else { (16 << 20) / CHUNK_BYTES };

const _: () = assert!((GRANULES_MAX + 1).is_power_of_two(), "used as a mask");

/// The number that [`owner`] gives for a chunk without an owner.
#[cfg(test)]
const NO_OWNER: u32 = u32::MAX;

/// The address of a thread's block: its offset from the arena's base in granules. Never 0.
pub(crate) type Key = NonZeroU32;

/// The owner of each chunk. The lower half of a word is the complement of the CPU's number. So 0
/// stands for no owner, and the table takes no room in the program's file. The upper half is the
/// CPU's group, or 0. The table has one entry more than there are chunks, so any 32-bit key is
/// within its bounds.
static OWNERS: [AtomicU64; CHUNKS_MAX + 1] = [const { AtomicU64::new(0) }; CHUNKS_MAX + 1];
/// For each chunk, the list of blocks that other OS threads than the owner's have freed. The lists
/// do not lie beside the owners, because each wake-up reads an owner, and a push onto a list would
/// take that cache line away.
static FREED_ELSEWHERE: [FreedList; CHUNKS_MAX + 1] = [const { FreedList::new() }; CHUNKS_MAX + 1];
static BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static CENTRAL: OnceLock<Result<Mutex<Central>, CpuError>> = OnceLock::new();

/// The state that all CPUs share: the next unused chunk, and by block size the chunks that their
/// owners have left.
struct Central {
    next: usize,
    end: usize,
    abandoned: BTreeMap<usize, Vec<Abandoned>>,
}

/// A span that a CPU has left. It gets a new owner when all its blocks are free.
#[derive(Debug)]
struct Abandoned {
    span: Span,
    /// The number of its blocks that were held when it was last checked.
    held: usize,
}

impl Abandoned {
    /// Counts the blocks that have been freed since the last call. Tells whether none is held any
    /// more.
    fn is_free(&mut self) -> bool {
        for list in self.span.freed_elsewhere() {
            let mut freed = list.take();
            while let Some(key) = Key::new(freed) {
                self.held -= 1;
                freed = header(key).link();
            }
        }
        self.held == 0
    }
}

/// Chunks in a row with blocks of one size. The keys from `first` to `next` have been handed out at
/// least once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    chunk: u32,
    chunks: u32,
    /// The first key.
    first: u32,
    /// The next key never used.
    next: u32,
    /// Keys below this one can start a block.
    limit: u32,
}

impl Span {
    fn chunks(&self) -> Range<usize> {
        self.chunk as usize..(self.chunk + self.chunks) as usize
    }

    /// Stores the owner of its chunks, as a word of [`OWNERS`].
    fn set_owner(&self, owner: u64) {
        OWNERS[self.chunks()].iter().for_each(|chunk| chunk.store(owner, Ordering::Relaxed));
    }

    /// The lists of its blocks that other OS threads than the owner's have freed.
    fn freed_elsewhere(&self) -> &'static [FreedList] {
        &FREED_ELSEWHERE[self.chunks()]
    }
}

/// The process can have no further CPU, because it has no address space for threads or too many
/// CPUs.
#[derive(Debug, Clone)]
pub struct CpuError(String);

impl CpuError {
    pub(crate) fn too_many_cpus(limit: usize) -> CpuError {
        CpuError(format!("the process has {limit} CPUs already"))
    }
}

impl std::fmt::Display for CpuError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CpuError {}

/// The arena holds as many threads as its address space allows; the new thread was not created.
#[doc(alias = "slab")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArenaFullError {
    /// Bytes reserved for all threads of the process.
    pub reserved_bytes: usize,
}

impl std::fmt::Display for ArenaFullError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no room for another thread: all {} MiB of the thread arena are in use",
            self.reserved_bytes >> 20
        )
    }
}

impl std::error::Error for ArenaFullError {}

/// The address at which the arena starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base(*mut u8);

impl Base {
    #[inline(always)]
    pub(crate) fn get() -> Base {
        Base(BASE.load(Ordering::Relaxed))
    }

    /// The address `bytes` behind the start of the block at `key`.
    #[inline(always)]
    fn at(self, key: Key, bytes: usize) -> *mut u8 {
        // SAFETY: only `Slab` makes keys, and only of blocks within the reservation that starts at
        // BASE. `reserve` has set BASE before the first chunk was handed out, and it never changes.
        // The callers stay within one block. So the offset stays within one mapping.
        unsafe { self.0.add(key.get() as usize * GRANULE + bytes) }
    }

    /// The header at `key`.
    #[inline(always)]
    pub(crate) fn header(self, key: Key) -> &'static Header {
        // SAFETY: a key is the address of a header for ever, because the arena never unmaps memory
        // and `take_chunks` gives a chunk one block size for ever. Nothing but the two atomic words
        // of a header lies there.
        unsafe { &*self.at(key, 0).cast() }
    }

    /// The address behind the header at `key`. Each block is at least as long as a header.
    #[inline(always)]
    pub(crate) fn body(self, key: Key) -> *mut u8 {
        self.at(key, size_of::<Header>())
    }
}

/// The header at `key`.
#[inline(always)]
pub(crate) fn header(key: Key) -> &'static Header {
    Base::get().header(key)
}

/// The address behind the header at `key`.
#[inline(always)]
pub(crate) fn body(key: Key) -> *mut u8 {
    Base::get().body(key)
}

/// Fetches the memory some way behind a block into the cache. Threads mostly queue in the order in
/// which they were created. So a scheduler pops a thread there about a hundred steps later, and a
/// switch among a hundred million threads is as fast as among a thousand.
#[inline(always)]
pub(crate) fn prefetch_behind(base: Base, key: Key) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const BEHIND: usize = 2048;
        let ahead = base.at(key, 0).cast::<i8>().wrapping_add(BEHIND);
        // SAFETY: a prefetch reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead) };
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = (base, key);
}

/// The owner of the chunk that `key` lies in.
#[inline(always)]
pub(crate) fn owner(key: Key) -> u32 {
    !(OWNERS[(key.get() >> CHUNK_SHIFT) as usize].load(Ordering::Relaxed) as u32)
}

/// The word of [`OWNERS`] for the chunks of a CPU.
pub(crate) fn owner_word(cpu: u32, group: u32) -> u64 {
    u64::from(group) << 32 | u64::from(!cpu)
}

/// Whether the chunk that `key` lies in belongs to the CPU with this [word](owner_word).
#[inline(always)]
pub(crate) fn belongs_to(key: Key, owner: u64) -> bool {
    OWNERS[(key.get() >> CHUNK_SHIFT) as usize].load(Ordering::Relaxed) == owner
}

/// The group of the CPU that owns the chunk that `key` lies in. 0 if that CPU is in no group, or if
/// the chunk has no owner.
#[inline(always)]
pub(crate) fn group(key: Key) -> u32 {
    (OWNERS[(key.get() >> CHUNK_SHIFT) as usize].load(Ordering::Relaxed) >> 32) as u32
}

fn central() -> Result<&'static Mutex<Central>, CpuError> {
    CENTRAL.get_or_init(|| reserve().map(Mutex::new)).as_ref().map_err(CpuError::clone)
}

/// Reserves the address space. If the system refuses, it tries half of it, and so on.
fn reserve() -> Result<Central, CpuError> {
    let mut chunks = CHUNKS_MAX;
    loop {
        match map((chunks + SPARE_CHUNKS) * CHUNK_BYTES) {
            Ok(base) => {
                BASE.store(base, Ordering::Relaxed);
                return Ok(Central { next: 0, end: chunks, abandoned: BTreeMap::new() });
            }
            Err(e) if chunks / 2 < CHUNKS_MIN => {
                return Err(CpuError(format!("cannot reserve address space for threads: {e}")));
            }
            Err(_) => chunks /= 2,
        }
    }
}

#[cfg(not(miri))]
fn map(bytes: usize) -> Result<*mut u8, String> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the address of a new private mapping, so the mapping replaces no
    // other one.
    unsafe {
        mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }
    .map(|p| p.cast())
    .map_err(|e| format!("mmap of {} MiB: {e}", bytes >> 20))
}

/// Asks for huge pages under a chunk and the memory behind it. The range lies within the
/// reservation, because `reserve` has added SPARE_CHUNKS behind the last chunk.
fn advise_huge_pages_under(chunk: u32) {
    let base = BASE.load(Ordering::Relaxed);
    let start = (base.addr() + chunk as usize * CHUNK_BYTES).next_multiple_of(HUGE_PAGE) - base.addr();
    advise_huge_pages(base.wrapping_add(start), HUGE_PAGE);
}

#[cfg(miri)]
fn map(bytes: usize) -> Result<*mut u8, String> {
    let layout = std::alloc::Layout::from_size_align(bytes, 4096).map_err(|e| e.to_string())?;
    // SAFETY: the layout's size is not zero.
    Ok(unsafe { std::alloc::alloc_zeroed(layout) })
}

/// Frees a block of a chunk that belongs to another CPU, or to none.
///
/// # Safety
/// The caller has the block at `key` alone, and gives it up. Nothing in the block needs to be
/// dropped.
#[cold]
pub(crate) unsafe fn free_elsewhere(key: Key) {
    header(key).set_head(FREE);
    FREED_ELSEWHERE[(key.get() >> CHUNK_SHIFT) as usize].push(key, |next| header(key).set_link(next));
}

/// The blocks of one CPU: for each size a free list, and the chunks that the CPU owns.
#[derive(Debug)]
pub(crate) struct Slab {
    /// The word of this CPU's chunks in [`OWNERS`].
    owner: u64,
    /// By block size, the first key of the free list, or 0.
    free: [u32; GRANULES_MAX + 1],
    /// By block size, the span from which blocks are cut, and the spans that are full.
    spans: Vec<(Option<Span>, Vec<Span>)>,
}

impl Slab {
    pub(crate) fn new(cpu: u32, group: u32) -> Result<Slab, CpuError> {
        central()?;
        let owner = owner_word(cpu, group);
        let spans = (0..=GRANULES_MAX).map(|_| (None, Vec::new())).collect();
        Ok(Slab { owner, free: [0; GRANULES_MAX + 1], spans })
    }

    /// A block of `granules` granules. Its head word is 0.
    #[inline(always)]
    pub(crate) fn alloc(&mut self, granules: usize) -> Result<Key, ArenaFullError> {
        self.alloc_by(Base::get(), granules)
    }

    /// As [`alloc`](Slab::alloc), for a caller that has the base address of the arena.
    #[inline(always)]
    pub(crate) fn alloc_by(&mut self, base: Base, granules: usize) -> Result<Key, ArenaFullError> {
        match Key::new(self.free[granules]) {
            Some(key) => {
                self.free[granules] = base.header(key).link();
                Ok(key)
            }
            None => self.alloc_fresh(granules),
        }
    }

    #[inline(never)]
    fn alloc_fresh(&mut self, granules: usize) -> Result<Key, ArenaFullError> {
        loop {
            let (current, full) = &mut self.spans[granules];
            if let Some(span) = current {
                if span.next < span.limit {
                    let key = span.next;
                    span.next += granules as u32;
                    return Ok(Key::new(key).expect("the first key of the arena is skipped"));
                }
                full.push(*span);
                *current = None;
            }
            if self.take_freed_elsewhere(granules) {
                return self.alloc(granules);
            }
            self.take_chunks(granules)?;
        }
    }

    /// Takes over a list of blocks of this size that other OS threads have freed. False if all such
    /// lists are empty.
    fn take_freed_elsewhere(&mut self, granules: usize) -> bool {
        let (current, full) = &self.spans[granules];
        for list in full.iter().chain(current).flat_map(Span::freed_elsewhere) {
            if !list.is_empty() {
                self.free[granules] = list.take();
                return true;
            }
        }
        false
    }

    /// Takes over a span of this size that a dropped CPU has left, or the next unused chunks.
    fn take_chunks(&mut self, granules: usize) -> Result<(), ArenaFullError> {
        let mut central = central().expect("checked in new").lock().expect("no panic under this lock");
        let left = central.abandoned.entry(granules).or_default();
        if let Some(at) = left.iter_mut().position(Abandoned::is_free) {
            let span = left.swap_remove(at).span;
            span.set_owner(self.owner);
            self.spans[granules].0 = Some(Span { next: span.first, ..span });
            return Ok(());
        }
        if central.next == central.end {
            return Err(ArenaFullError { reserved_bytes: central.end * CHUNK_BYTES });
        }
        let full = &self.spans[granules].1;
        let chunk = central.next as u32;
        let chunks =
            full.last().map_or(1, |last| RUN_MAX.min(2 * last.chunks)).min(central.end as u32 - chunk);
        central.next += chunks as usize;
        if full.len() >= RUNS_BEFORE_HUGE_PAGES {
            advise_huge_pages_under(chunk);
        }
        let start = chunk << CHUNK_SHIFT;
        let first = if start == 0 { granules as u32 } else { start };
        let blocks = (start + chunks * CHUNK_GRANULES - first) / granules as u32;
        let span = Span { chunk, chunks, first, next: first, limit: first + blocks * granules as u32 };
        span.set_owner(self.owner);
        self.spans[granules].0 = Some(span);
        Ok(())
    }

    /// Frees a block of a chunk of this CPU.
    ///
    /// # Safety
    /// `key` came from an [`alloc`](Self::alloc) with the same `granules`, and lies in a chunk of
    /// this CPU. The caller has the block alone, and gives it up. Nothing in the block needs to be
    /// dropped.
    #[inline(always)]
    pub(crate) unsafe fn free(&mut self, base: Base, key: Key, granules: usize) {
        // The mask changes no size. With it the compiler need not check the bound.
        let free = &mut self.free[granules & GRANULES_MAX];
        let header = base.header(key);
        header.set_head(FREE);
        header.set_link(*free);
        *free = key.get();
    }

    /// The keys of all blocks that were handed out at least once, as ranges `(first, end, step)`.
    /// Some of the blocks may be free.
    pub(crate) fn ranges(&self) -> Vec<(u32, u32, usize)> {
        let spans = self.spans.iter().enumerate();
        spans
            .flat_map(|(granules, (current, full))| {
                full.iter().chain(current).map(move |s| (s.first, s.next, granules.max(1)))
            })
            .collect()
    }
}

impl Drop for Slab {
    /// Leaves the chunks to the next CPU that needs blocks of their sizes.
    fn drop(&mut self) {
        let Ok(central) = central() else { return };
        let mut central = central.lock().expect("no panic under this lock");
        for (granules, (current, full)) in self.spans.drain(..).enumerate() {
            let mut free_here: Vec<u32> = Vec::new();
            let mut next = self.free[granules];
            while let Some(key) = Key::new(next) {
                free_here.push(key.get());
                next = header(key).link();
            }
            free_here.sort_unstable();
            for span in full.into_iter().chain(current) {
                let used = (span.next - span.first) as usize / granules;
                let below = |key: u32| free_here.partition_point(|&free| free < key);
                // Blocks that other OS threads have freed count as held here. `Abandoned::is_free`
                // finds them in the lists, and subtracts them.
                let held = used - (below(span.limit) - below(span.first));
                span.set_owner(0);
                central.abandoned.entry(granules).or_default().push(Abandoned { span, held });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_distinct_and_come_back() {
        let mut slab = Slab::new(7_000, 0).unwrap();
        let keys: Vec<Key> =
            (0..if cfg!(miri) { 500 } else { 5_000 }).map(|_| slab.alloc(2).unwrap()).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), keys.len());
        assert!(sorted.windows(2).all(|w| w[1].get() - w[0].get() >= 2));
        for &k in &keys {
            assert_eq!(owner(k), 7_000);
            // SAFETY: `alloc` has given the block of this size above, and nothing uses it.
            unsafe { slab.free(Base::get(), k, 2) };
        }
        assert_eq!(slab.alloc(2).unwrap(), *keys.last().unwrap());
    }

    #[test]
    fn a_block_freed_elsewhere_is_found_before_a_new_chunk_is_taken() {
        let mut slab = Slab::new(7_001, 0).unwrap();
        let first = slab.alloc(50).unwrap();
        // SAFETY: `alloc` has given the block above, and nothing uses it.
        unsafe { free_elsewhere(first) };
        let blocks = CHUNK_GRANULES / 50;
        let again = (0..blocks + 1).map(|_| slab.alloc(50).unwrap()).any(|k| k == first);
        assert!(again, "the freed block was not reused before a second chunk was opened");
    }

    /// The bytes of all chunks that a CPU has of one block size.
    fn taken(slab: &Slab, granules: usize) -> usize {
        let (current, full) = &slab.spans[granules];
        full.iter().chain(current).map(|span| span.chunks as usize * CHUNK_BYTES).sum()
    }

    #[test]
    fn the_first_thread_of_a_size_takes_little_and_many_take_large_runs() {
        let mut slab = Slab::new(7_004, 0).unwrap();
        slab.alloc(7).unwrap();
        assert!(taken(&slab, 7) <= 64 << 10);
        let blocks = (RUN_MAX * CHUNK_GRANULES * 2) / 7;
        let keys: Vec<Key> = (1..blocks).map(|_| slab.alloc(7).unwrap()).collect();
        let used = blocks as usize * 7 * GRANULE;
        assert!(taken(&slab, 7) < 2 * used, "{} for {used}", taken(&slab, 7));
        assert_eq!(slab.spans[7].0.unwrap().chunks, RUN_MAX);
        assert!(keys.iter().all(|&key| owner(key) == 7_004));
        // A block that is freed elsewhere is found in each chunk of a run.
        let last = *keys.last().unwrap();
        // SAFETY: `alloc` has given the block above, and nothing uses it.
        unsafe { free_elsewhere(last) };
        assert!(slab.take_freed_elsewhere(7));
        assert_eq!(slab.alloc(7).unwrap(), last);
        drop(slab);
        assert!(keys.iter().all(|&key| owner(key) == NO_OWNER));
    }

    #[test]
    fn chunks_of_a_dropped_cpu_serve_the_next() {
        let mut slab = Slab::new(7_002, 0).unwrap();
        let key = slab.alloc(61).unwrap();
        // SAFETY: `alloc` has given the block of this size above, and nothing uses it.
        unsafe { slab.free(Base::get(), key, 61) };
        drop(slab);
        assert_eq!(owner(key), NO_OWNER);
        let mut slab = Slab::new(7_003, 0).unwrap();
        assert_eq!(slab.alloc(61).unwrap(), key);
    }
}
