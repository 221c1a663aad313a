//! [`ThunkEntry`] and its engines: how a thunk is entered and updated.
//!
//! | | entry | update | each quantum |
//! |---|---|---|---|
//! | [`Unsynchronised`] | load | stores, for one OS thread | |
//! | [`LockFree`] | load | store of the result; of a number also a store of the header | |
//! | [`ClaimAtYield`] | load | as above | exchange for BLACK, a frame |
//! | [`Grey`] | load, store of GREY | as above | |
//! | [`GreyClaimAtYield`] | load, store of GREY | as above | exchange for BLACK, a frame |
//! | [`OneCas`] | exchange for BLACK | as above | |
//! | [`TwoCas`] | exchange for BLACK | as above, with an exchange of the header | |
//!
//! On x86-64 the orders Acquire and Release are plain loads and stores, so the rows above `OneCas`
//! have no locked instruction at entry and update.
//!
//! The program chooses an engine as the type parameter of `Region`. `thunk.rs` and `code.rs` read
//! the constants of `entry::Protocol` and call its functions. The constants are known when the code
//! is compiled, so a force has no branch for the engines that it does not use.
//!
//! Paper: [HMP05 §3, §4].

/// How the thunks of a region are entered and updated: see the types that implement it.
pub trait ThunkEntry: entry::Protocol {}

/// One OS thread, without any order of memory: see [`Region::with`](crate::Region::with).
#[derive(Debug, Clone, Copy)]
pub enum Unsynchronised {}

/// The paper's entry without a lock: duplicates are possible for as long as an evaluation takes.
///
/// The entry leaves no mark, so a value that needs its own value is not found: its evaluation
/// overflows the native stack. [`Unsynchronised`] does not find it either. The other engines do.
///
/// # Paper
/// [HMP05 §3.3, §3.4].
#[derive(Debug, Clone, Copy)]
pub enum LockFree {}

/// As [`LockFree`]. Each [quantum](crate::Nursery::QUANTUM) the thread claims what it is
/// evaluating, so no duplicate is longer than a quantum.
///
/// After this number of entries the nursery goes through the thunks that its OS thread is
/// evaluating, and claims each by an atomic exchange. A thunk that another thread has claimed or
/// updated first is evaluated twice. Then the thread leaves that evaluation, and all within it, by
/// unwinding, and takes the other thread's result. A closure that catches the unwinding keeps its
/// evaluation.
///
/// A nursery counts the entries of thunks. A closure that computes for long without forcing a thunk
/// calls [`safe_point`](crate::Nursery::safe_point).
///
/// # Paper
/// [HMP05 §4.1] lazy black-holing, [HMP05 §4.6] the guarantee.
///
/// # Differences
/// 1. A quantum is a number of entries, because a closure runs at a stretch and its thread does not
///    yield.
/// 2. What is left is evaluated again and is not frozen: a closure on a native stack cannot be. So
///    an evaluation stays, although it is a duplicate, while a
///    [`just_once`](crate::Nursery::just_once) thunk within it is evaluated.
/// 3. Where panics abort, no evaluation is left.
#[doc(alias = "lazy black-holing")]
#[derive(Debug, Clone, Copy)]
pub enum ClaimAtYield {}

/// As [`LockFree`], with a store of GREY at the entry: duplicates are possible between two
/// instructions.
///
/// # Paper
/// [HMP05 §4.4].
#[doc(alias = "grey-holing")]
#[doc(alias = "GREYHOLE")]
#[derive(Debug, Clone, Copy)]
pub enum Grey {}

/// [`Grey`] and [`ClaimAtYield`] in one, which is the paper's whole design: a store of GREY at the
/// entry, and each [quantum](crate::Nursery::QUANTUM) an exchange of GREY for BLACK.
///
/// Under [`Grey`] alone a duplicate begins seldom, between two instructions, and then lasts as long
/// as the evaluation. Here its thread leaves it within a quantum. Under [`ClaimAtYield`] alone a
/// duplicate begins whenever two threads need a thunk within a quantum.
///
/// # Paper
/// [HMP05 §4.1] and [HMP05 §4.4]: the headers of the two holes differ, so that a thread tells a
/// thunk that it has entered from one that it, or another thread, has claimed. [HMP05 §4.6]: both
/// together. The paper does not measure them together.
///
/// # Differences
/// As for [`ClaimAtYield`]. And the bound of a quantum has one exception, which the paper's design
/// has too: a thread may be stopped between the load and the store of its entry until another
/// thread has claimed the thunk, or updated it. Then it stores GREY over the claim or the update.
/// Then both evaluations may go on to their end.
#[derive(Debug, Clone, Copy)]
pub enum GreyClaimAtYield {}

/// One atomic exchange at the entry: no duplicates.
#[derive(Debug, Clone, Copy)]
pub enum OneCas {}

/// Atomic exchanges at entry and update, which the paper measures as the bad idea.
///
/// # Paper
/// [HMP05 §3.1, Figure 4].
#[derive(Debug, Clone, Copy)]
pub enum TwoCas {}

pub(super) mod entry {
    use crate::primitives::{AtomicPtr, AtomicUsize, Ordering};

    #[expect(unnameable_types, reason = "only the protocols here keep the region's promises")]
    pub trait Protocol: 'static {
        /// A type that is Sync if a region may be used by several threads.
        type Threads;
        /// Whether an update orders what the result leads to before the result, for other OS
        /// threads.
        const ORDERED: bool = true;
        /// Whether the entry stores GREY.
        const GREYS: bool = false;
        /// Whether the entry is an atomic exchange for BLACK.
        const CLAIMS: bool = false;
        /// Whether the thunks under evaluation are claimed each quantum.
        const CLAIMS_AT_YIELD: bool = false;
        const UPDATES_BY_EXCHANGE: bool = false;
        /// Whether a thunk may be a hole while it is evaluated, although it is not `just_once`.
        const LEAVES_HOLES: bool = Self::GREYS || Self::CLAIMS || Self::CLAIMS_AT_YIELD;

        #[inline(always)]
        fn load(header: &AtomicUsize) -> usize {
            header.load(if Self::ORDERED { Ordering::Acquire } else { Ordering::Relaxed })
        }

        #[inline(always)]
        fn load_result(result: &AtomicPtr<()>) -> *mut () {
            result.load(if Self::ORDERED { Ordering::Acquire } else { Ordering::Relaxed })
        }

        /// Loom gives two plain stores of different threads no order, so that each thread may read
        /// its own as the later one. The memory has one order for each word, and so has loom for
        /// exchanges.
        #[inline(always)]
        fn store_grey(header: &AtomicUsize, grey: usize) {
            match cfg!(loom) {
                true => _ = header.swap(grey, Ordering::Relaxed),
                false => header.store(grey, Ordering::Relaxed),
            }
        }

        /// Of two evaluations of one thunk, the later one may store over a result that another
        /// thread has read. So the word itself carries what its reference leads to.
        #[inline(always)]
        fn store_result(result: &AtomicPtr<()>, word: *mut ()) {
            result.store(word, if Self::ORDERED { Ordering::Release } else { Ordering::Relaxed });
        }

        #[inline(always)]
        fn update(header: &AtomicUsize, word: usize) {
            if Self::UPDATES_BY_EXCHANGE {
                header.swap(word, Ordering::AcqRel);
            } else {
                header.store(word, if Self::ORDERED { Ordering::Release } else { Ordering::Relaxed });
            }
        }
    }

    impl Protocol for super::Unsynchronised {
        type Threads = *mut ();
        const ORDERED: bool = false;
    }
    impl Protocol for super::LockFree {
        type Threads = ();
    }
    impl Protocol for super::ClaimAtYield {
        type Threads = ();
        const CLAIMS_AT_YIELD: bool = true;
    }
    impl Protocol for super::Grey {
        type Threads = ();
        const GREYS: bool = true;
    }
    impl Protocol for super::GreyClaimAtYield {
        type Threads = ();
        const GREYS: bool = true;
        const CLAIMS_AT_YIELD: bool = true;
    }
    impl Protocol for super::OneCas {
        type Threads = ();
        const CLAIMS: bool = true;
    }
    impl Protocol for super::TwoCas {
        type Threads = ();
        const CLAIMS: bool = true;
        const UPDATES_BY_EXCHANGE: bool = true;
    }
}

impl ThunkEntry for Unsynchronised {}
impl ThunkEntry for LockFree {}
impl ThunkEntry for ClaimAtYield {}
impl ThunkEntry for Grey {}
impl ThunkEntry for GreyClaimAtYield {}
impl ThunkEntry for OneCas {}
impl ThunkEntry for TwoCas {}
