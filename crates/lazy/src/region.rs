//! [`Region`]: an arena of thunks, which are entered without a lock.
//!
//! Each file names files above it in this table, and none below:
//!
//! | | |
//! |---|---|
//! | `word.rs` | the values that fit into a result word |
//! | `engine.rs` | the engines: what entry and update do |
//! | `chunk.rs` | the memory, in pieces that grow |
//! | `hole.rs` | GREY and BLACK, and the looks at a hole of another OS thread |
//! | `waits.rs` | how an OS thread is parked until a hole is filled, and the search for a circle |
//! | `cell.rs` | a thunk in memory |
//! | `frames.rs` | the evaluations of one OS thread |
//! | `region.rs` | the memory and the counts of all threads |
//! | `nursery.rs` | a thread's part of a region: memory and counts |
//! | `claim.rs` | the claim at the end of a quantum |
//! | `thunk.rs` | a thunk as the program sees it: force and update |
//! | `code.rs` | what the entry of a thunk does |
//! | `make.rs` | the thunks that a nursery makes |
//!
//! `Region` owns the memory and the counts. The program makes a region, and calls `Region::nursery`
//! on each OS thread; all other work goes through the nursery. Results are references with the
//! lifetime of the region, so memory is freed with the region alone.
//!
//! Paper: [HMP05 §3, §4].

mod cell;
mod chunk;
mod claim;
mod code;
mod engine;
mod frames;
mod hole;
mod make;
mod nursery;
mod thunk;
mod waits;
mod word;

pub use engine::{
    ClaimAtYield, Grey, GreyClaimAtYield, LockFree, OneCas, ThunkEntry, TwoCas, Unsynchronised,
};
pub use nursery::Nursery;
pub use thunk::Thunk;
pub use word::ThunkWord;

use self::chunk::RegionChunk;
use crate::primitives::{Mutex, lock};
use std::fmt;
use std::marker::PhantomData;

/// What happened in a region, from the nurseries that are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// The thunks that were evaluated, duplicates included.
    pub evaluated: u64,
    /// The evaluations that found, at their update, that the thunk had its result already, or that
    /// were left for the evaluation of another thread.
    pub duplicates: u64,
    /// The entries that found a hole of another thread.
    pub holes_met: u64,
    /// The most entries of thunks within one duplicate, its own included. It is counted under
    /// [`ClaimAtYield`] and [`GreyClaimAtYield`] only.
    pub longest_duplicate: u64,
}

/// An arena of thunks: lazy values of a word, without an allocation or a count of handles for each.
///
/// All memory of a region goes at once, with the region. A thread makes and forces thunks through a
/// [`Nursery`] of its own. The type parameter says how a thunk is entered; [`Grey`] is the
/// default, and the others are there to compare with.
///
/// # Pure, may run twice
/// Two threads that force a thunk at the same moment may both evaluate it. So the closure of a
/// thunk must give the same result each time, and is [`Fn`]. [`just_once`](Nursery::just_once)
/// makes a thunk that is evaluated once, for an atomic exchange.
///
/// What a closure has captured stays until the region goes. It must need no destructor: thunks,
/// references, numbers.
///
/// # Paper
/// [HMP05 §3, §4.4, §4.5]: the thunk with a result word, grey-holing, and the look at the header at
/// the update.
///
/// # Differences
/// 1. A thread that meets a hole of another OS thread is no future: it looks at the hole for some
///    microseconds, and then its OS thread is parked until the hole is filled. A force of
///    [`Lazy`](crate::Lazy) parks the thread alone. So a closure must not wait in direct style: a
///    thread that meets its hole on the same OS thread fails.
/// 2. Evaluation nests on the native stack, so a chain of thunks is no longer than that allows. A
///    chain of [`Lazy`](crate::Lazy) values may be.
///
/// # Examples
/// ```
/// use selvedge::lazy::Region;
///
/// let region: Region = Region::new();
/// let nursery = region.nursery();
/// let six = nursery.thunk(|_| 6);
/// let answer = nursery.thunk(move |nursery| six.force(nursery) * 7);
/// assert_eq!(answer.force(&nursery), 42);
/// ```
pub struct Region<E: ThunkEntry = Grey> {
    chunks: Mutex<Vec<RegionChunk>>,
    counts: Mutex<RegionCounts>,
    _entry: PhantomData<(E, E::Threads)>,
}

impl<E: ThunkEntry> Region<E> {
    /// An empty region.
    pub fn new() -> Region<E> {
        const { assert!(E::ORDERED, "an unsynchronised region is made by `Region::with`") };
        Region::empty()
    }

    fn empty() -> Region<E> {
        Region {
            chunks: Mutex::new(Vec::new()),
            counts: Mutex::new(RegionCounts::default()),
            _entry: PhantomData,
        }
    }

    /// The counts of all nurseries that are gone.
    pub fn counts(&self) -> RegionCounts {
        *lock(&self.counts)
    }
}

impl Region<Unsynchronised> {
    /// Passes an empty region for this OS thread to `program`: the base line of comparisons.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::{Region, Unsynchronised};
    ///
    /// let answer = Region::<Unsynchronised>::with(|region| {
    ///     let nursery = region.nursery();
    ///     nursery.thunk(|_| 42).force(&nursery)
    /// });
    /// assert_eq!(answer, 42);
    /// ```
    pub fn with<R>(program: impl for<'r> FnOnce(&'r Region<Unsynchronised>) -> R) -> R {
        program(&Region::empty())
    }
}

impl<E: ThunkEntry> Default for Region<E> {
    fn default() -> Region<E> {
        Region::new()
    }
}

impl<E: ThunkEntry> fmt::Debug for Region<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
