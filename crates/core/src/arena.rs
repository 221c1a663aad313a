//! The address space in which all threads live, and the blocks cut from it.
//!
//! One region of at most 32 GiB is reserved at the first use. It is addressed in granules of 8
//! bytes by 32-bit [`Key`]s, so that a link between threads is 4 bytes. The region is cut into
//! chunks; a chunk holds blocks of one size for the life of the process, and belongs to one CPU at
//! a time. A CPU takes one chunk for its first threads of a size, and then twice as many in a row
//! as it has of that size, 16 at most:
//!
//! - **A key, once handed out, is for ever the address of a block header.** Memory is never
//!   unmapped and a chunk never changes its block size, so a stale key finds a header: of a free
//!   block, or of another thread.
//! - **Only a chunk's owner cuts blocks from it and has its free list.** A block freed elsewhere
//!   goes onto the chunk's own lock-free list, which the owner takes over when it runs dry. When
//!   the owner goes, the chunk waits until all blocks that were held then are freed too, and only
//!   then finds another.
//!
//! Fresh memory reads as zeros, and a zero head word means "free": walking a chunk finds the live
//! threads. A header is two atomic words, so that a stale key, on whatever OS thread, reads
//! something and no more; who may write them is said in [`header`](crate::header).

use crate::freed::FreedList;
use crate::header::{FREE, Header};
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

/// log2 of the chunk size in granules: 64 KiB; small under Miri, so that chunk changes happen in
/// tests.
const CHUNK_SHIFT: u32 = if cfg!(miri) { 11 } else { 13 };
const CHUNK_GRANULES: u32 = 1 << CHUNK_SHIFT;
const CHUNK_BYTES: usize = CHUNK_GRANULES as usize * GRANULE;
/// 32 GiB in all, less one chunk, so that the end of the arena still is a 32-bit key.
const CHUNKS_MAX: usize = if cfg!(miri) { 256 } else { (1 << (32 - CHUNK_SHIFT)) - 1 };
/// The most chunks that are taken at once: 1 MiB.
const RUN_MAX: u32 = if cfg!(miri) { 4 } else { 16 };
/// From so many runs of one size on (4 GiB), further ones ask for huge pages: fewer page faults,
/// and what may be touched in vain no longer counts.
const RUNS_BEFORE_HUGE_PAGES: usize = 4096;
/// Reserved behind the last chunk, for the advice on huge pages: 4 MiB.
const SPARE_CHUNKS: usize = (4 << 20) / CHUNK_BYTES;
/// The smallest reservation worth starting with: 16 MiB.
const CHUNKS_MIN: usize = if cfg!(miri) { 256 } else { (16 << 20) / CHUNK_BYTES };

const _: () = assert!((GRANULES_MAX + 1).is_power_of_two(), "used as a mask");

/// The owner of a chunk that no CPU owns.
#[cfg(test)]
const NOBODY: u32 = u32::MAX;

/// The address of a thread's block: its offset from the arena's base in granules. Never 0.
pub(crate) type Key = NonZeroU32;

/// Who owns each chunk: the complement of its CPU's number, so that 0 stands for `NOBODY` and the
/// table takes no room in the program's file; and in the upper half that CPU's group (0 for none).
/// One more than are handed out, so that whatever the key no bound need be checked.
static OWNERS: [AtomicU64; CHUNKS_MAX + 1] = [const { AtomicU64::new(0) }; CHUNKS_MAX + 1];
/// Heads of each chunk's list of blocks freed by others than the owner, linked through the headers.
/// Apart from the owners, which every wake-up reads.
static FREED_ELSEWHERE: [FreedList; CHUNKS_MAX + 1] = [const { FreedList::new() }; CHUNKS_MAX + 1];
static BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static CENTRAL: OnceLock<Result<Mutex<Central>, Unavailable>> = OnceLock::new();

/// What all CPUs share: the next unused chunk, and chunks whose owner is gone, by block size.
struct Central {
    next: usize,
    end: usize,
    abandoned: BTreeMap<usize, Vec<Abandoned>>,
}

/// A chunk that a CPU left behind. It finds a new owner when all its blocks are free.
#[derive(Debug)]
struct Abandoned {
    span: Span,
    /// How many of its blocks were still held when it was last looked at.
    held: usize,
}

impl Abandoned {
    /// Notes what has been freed meanwhile; whether nothing is held any more.
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

/// Chunks in a row with blocks of one size: the part that has been handed out at least once, and
/// how far they reach.
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

    /// Has the owner of its chunks be this CPU, with its group in the upper half; 0 is none.
    fn set_owner(&self, owner: u64) {
        OWNERS[self.chunks()].iter().for_each(|chunk| chunk.store(owner, Ordering::Relaxed));
    }

    /// The lists of its blocks that were freed by others than the owner.
    fn freed_elsewhere(&self) -> &'static [FreedList] {
        &FREED_ELSEWHERE[self.chunks()]
    }
}

/// There can be no (further) CPU in this process: no address space for threads, or too many CPUs.
#[derive(Debug, Clone)]
pub struct Unavailable(String);

impl Unavailable {
    pub(crate) fn too_many_cpus(limit: usize) -> Unavailable {
        Unavailable(format!("the process has {limit} CPUs already"))
    }
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// The arena holds as many threads as its address space allows; the new thread was not created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArenaFull {
    /// Bytes reserved for all threads of the process.
    pub reserved_bytes: usize,
}

impl std::fmt::Display for ArenaFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no room for another thread: all {} MiB of the thread arena are in use",
            self.reserved_bytes >> 20
        )
    }
}

impl std::error::Error for ArenaFull {}

/// Where the arena starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base(*mut u8);

impl Base {
    #[inline(always)]
    pub(crate) fn get() -> Base {
        Base(BASE.load(Ordering::Relaxed))
    }

    /// So many bytes behind the start of the block at `key`. The result points into the arena
    /// whatever the key, unless it is beyond the end of the last block.
    #[inline(always)]
    fn at(self, key: Key, bytes: usize) -> *mut u8 {
        // SAFETY: keys are made only in `Slab`, from chunks inside the reservation that starts at
        // BASE (which is set before the first chunk is handed out and never changes), so the offset
        // stays inside one mapping.
        unsafe { self.0.add(key.get() as usize * GRANULE + bytes) }
    }

    /// The header at `key`.
    #[inline(always)]
    pub(crate) fn header(self, key: Key) -> &'static Header {
        // SAFETY: a key is the address of a header for ever; the memory is never unmapped, and
        // nothing but the atomic words of a header ever lies there.
        unsafe { &*self.at(key, 0).cast() }
    }

    /// What lies behind the header at `key`: every block is at least a header long.
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

/// What lies behind the header at `key`.
#[inline(always)]
pub(crate) fn body(key: Key) -> *mut u8 {
    Base::get().body(key)
}

/// Fetches what lies some way behind a block into the cache. Threads mostly queue in the order in
/// which they were created, so that this is what will be popped about a hundred turns later: with a
/// hundred million threads a switch stays as fast as with a thousand.
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

/// What [`OWNERS`] says of the chunks of a CPU.
pub(crate) fn owner_word(cpu: u32, group: u32) -> u64 {
    u64::from(group) << 32 | u64::from(!cpu)
}

/// Whether the chunk that `key` lies in is that of the CPU with this [word](owner_word).
#[inline(always)]
pub(crate) fn belongs_to(key: Key, owner: u64) -> bool {
    OWNERS[(key.get() >> CHUNK_SHIFT) as usize].load(Ordering::Relaxed) == owner
}

/// The group of the CPU that owns the chunk; 0 if it is in none, or nobody owns it.
#[inline(always)]
pub(crate) fn group(key: Key) -> u32 {
    (OWNERS[(key.get() >> CHUNK_SHIFT) as usize].load(Ordering::Relaxed) >> 32) as u32
}

fn central() -> Result<&'static Mutex<Central>, Unavailable> {
    CENTRAL.get_or_init(|| reserve().map(Mutex::new)).as_ref().map_err(Unavailable::clone)
}

/// Reserves the address space, or as large a part of it as the system grants.
fn reserve() -> Result<Central, Unavailable> {
    let mut chunks = CHUNKS_MAX;
    loop {
        match map((chunks + SPARE_CHUNKS) * CHUNK_BYTES) {
            Ok(base) => {
                BASE.store(base, Ordering::Relaxed);
                return Ok(Central { next: 0, end: chunks, abandoned: BTreeMap::new() });
            }
            Err(e) if chunks / 2 < CHUNKS_MIN => {
                return Err(Unavailable(format!("cannot reserve address space for threads: {e}")));
            }
            Err(_) => chunks /= 2,
        }
    }
}

#[cfg(not(miri))]
fn map(bytes: usize) -> Result<*mut u8, String> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choice touches no memory of
    // ours.
    unsafe {
        mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }
    .map(|p| p.cast())
    .map_err(|e| format!("mmap of {} MiB: {e}", bytes >> 20))
}

/// Asks for huge pages under a chunk and its neighbour. They are a matter of speed: a refusal is
/// none of ours.
#[cfg(not(miri))]
fn advise_huge_pages(chunk: u32) {
    const HUGE: usize = 2 << 20;
    let base = BASE.load(Ordering::Relaxed);
    let start = (base.addr() + chunk as usize * CHUNK_BYTES).next_multiple_of(HUGE) - base.addr();
    // SAFETY: the range lies in our reservation, which has spare chunks behind the last; advice
    // changes no content.
    let _ = unsafe { rustix::mm::madvise(base.add(start).cast(), HUGE, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(miri)]
fn advise_huge_pages(_: u32) {}

#[cfg(miri)]
fn map(bytes: usize) -> Result<*mut u8, String> {
    let layout = std::alloc::Layout::from_size_align(bytes, 4096).map_err(|e| e.to_string())?;
    // SAFETY: the layout's size is not zero.
    Ok(unsafe { std::alloc::alloc_zeroed(layout) })
}

/// Gives back a block whose chunk belongs to another CPU, or to none.
///
/// # Safety
/// The block at `key` holds nothing that still needs dropping, and the caller gives up its right to
/// it.
#[cold]
pub(crate) unsafe fn free_elsewhere(key: Key) {
    header(key).set_head(FREE);
    FREED_ELSEWHERE[(key.get() >> CHUNK_SHIFT) as usize].push(key, |next| header(key).set_link(next));
}

/// One CPU's stock of blocks: a free list per size, and the chunks it owns.
#[derive(Debug)]
pub(crate) struct Slab {
    /// What says in [`OWNERS`] that a chunk is this CPU's.
    owner: u64,
    free: [u32; GRANULES_MAX + 1],
    /// The chunks each size is being cut from; the full ones before them.
    spans: Vec<(Option<Span>, Vec<Span>)>,
}

impl Slab {
    pub(crate) fn new(cpu: u32, group: u32) -> Result<Slab, Unavailable> {
        central()?;
        let owner = owner_word(cpu, group);
        let spans = (0..=GRANULES_MAX).map(|_| (None, Vec::new())).collect();
        Ok(Slab { owner, free: [0; GRANULES_MAX + 1], spans })
    }

    /// A block of `granules` granules, its head word 0.
    #[inline(always)]
    pub(crate) fn alloc(&mut self, granules: usize) -> Result<Key, ArenaFull> {
        self.alloc_by(Base::get(), granules)
    }

    /// As [`alloc`](Slab::alloc), for a caller that knows where the arena is.
    #[inline(always)]
    pub(crate) fn alloc_by(&mut self, base: Base, granules: usize) -> Result<Key, ArenaFull> {
        match Key::new(self.free[granules]) {
            Some(key) => {
                self.free[granules] = base.header(key).link();
                Ok(key)
            }
            None => self.alloc_fresh(granules),
        }
    }

    #[inline(never)]
    fn alloc_fresh(&mut self, granules: usize) -> Result<Key, ArenaFull> {
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

    /// Collects what others freed of this size; false if there was nothing.
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

    /// Takes over chunks that a dead CPU left of this size, or the next unused ones.
    fn take_chunks(&mut self, granules: usize) -> Result<(), ArenaFull> {
        let mut central = central().expect("checked in new").lock().expect("no panic under this lock");
        let left = central.abandoned.entry(granules).or_default();
        if let Some(at) = left.iter_mut().position(Abandoned::is_free) {
            let span = left.swap_remove(at).span;
            span.set_owner(self.owner);
            self.spans[granules].0 = Some(Span { next: span.first, ..span });
            return Ok(());
        }
        if central.next == central.end {
            return Err(ArenaFull { reserved_bytes: central.end * CHUNK_BYTES });
        }
        let full = &self.spans[granules].1;
        let chunk = central.next as u32;
        let chunks =
            full.last().map_or(1, |last| RUN_MAX.min(2 * last.chunks)).min(central.end as u32 - chunk);
        central.next += chunks as usize;
        if full.len() >= RUNS_BEFORE_HUGE_PAGES {
            advise_huge_pages(chunk);
        }
        let start = chunk << CHUNK_SHIFT;
        let first = if start == 0 { granules as u32 } else { start };
        let blocks = (start + chunks * CHUNK_GRANULES - first) / granules as u32;
        let span = Span { chunk, chunks, first, next: first, limit: first + blocks * granules as u32 };
        span.set_owner(self.owner);
        self.spans[granules].0 = Some(span);
        Ok(())
    }

    /// Takes back a block of this CPU.
    ///
    /// # Safety
    /// `key` came from [`alloc`](Self::alloc) with the same `granules`, lies in a chunk of this
    /// CPU, holds nothing that still needs dropping, and is not used again by the caller.
    #[inline(always)]
    pub(crate) unsafe fn free(&mut self, base: Base, key: Key, granules: usize) {
        // The mask, which changes nothing, spares the check of the bound.
        let free = &mut self.free[granules & GRANULES_MAX];
        let header = base.header(key);
        header.set_head(FREE);
        header.set_link(*free);
        *free = key.get();
    }

    /// Keys of all blocks that were ever handed out, free or not, as `(first, end, step)` ranges.
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
    /// Hands the chunks on to the next CPU that needs the size.
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
                // What others have freed meanwhile, or do so now, is counted by the next OS thread
                // that looks into the lists.
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
        let keys: Vec<Key> = (0..5_000).map(|_| slab.alloc(2).unwrap()).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), keys.len());
        assert!(sorted.windows(2).all(|w| w[1].get() - w[0].get() >= 2));
        for &k in &keys {
            assert_eq!(owner(k), 7_000);
            // SAFETY: just allocated with this size and unused.
            unsafe { slab.free(Base::get(), k, 2) };
        }
        assert_eq!(slab.alloc(2).unwrap(), *keys.last().unwrap());
    }

    #[test]
    fn a_block_freed_elsewhere_is_found_before_a_new_chunk_is_taken() {
        let mut slab = Slab::new(7_001, 0).unwrap();
        let first = slab.alloc(50).unwrap();
        // SAFETY: just allocated and unused.
        unsafe { free_elsewhere(first) };
        let blocks = CHUNK_GRANULES / 50;
        let again = (0..blocks + 1).map(|_| slab.alloc(50).unwrap()).any(|k| k == first);
        assert!(again, "the freed block was not reused before a second chunk was opened");
    }

    /// Bytes of the chunks that a CPU has of one size.
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
        // What is freed elsewhere is found in whichever chunk of a run it lies.
        let last = *keys.last().unwrap();
        // SAFETY: just allocated and unused.
        unsafe { free_elsewhere(last) };
        assert!(slab.take_freed_elsewhere(7));
        assert_eq!(slab.alloc(7).unwrap(), last);
        drop(slab);
        assert!(keys.iter().all(|&key| owner(key) == NOBODY));
    }

    #[test]
    fn chunks_of_a_dead_cpu_serve_the_next() {
        let mut slab = Slab::new(7_002, 0).unwrap();
        let key = slab.alloc(61).unwrap();
        // SAFETY: just allocated and unused.
        unsafe { slab.free(Base::get(), key, 61) };
        drop(slab);
        assert_eq!(owner(key), NOBODY);
        let mut slab = Slab::new(7_003, 0).unwrap();
        assert_eq!(slab.alloc(61).unwrap(), key);
    }
}
