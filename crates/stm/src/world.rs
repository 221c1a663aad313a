//! The numbers that all transactions of the process share: the clock of the versions, the epoch of
//! reclamation, the turn, and the locks of two engines.

#[cfg(feature = "engines")]
use crate::primitives::Mutex;
use crate::primitives::{AtomicBool, AtomicU64};

/// A value on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Alone<T>(pub(crate) T);

pub(crate) struct Globals {
    /// See `engine/versioned.rs`. Read by each transaction, raised by few.
    pub(crate) clock: Alone<AtomicU64>,
    /// See `epochs.rs`. Read by each transaction, written under the registry's lock.
    pub(crate) epoch: Alone<AtomicU64>,
    /// See `turn.rs`. Whether a transaction has the turn.
    pub(crate) turn: Alone<AtomicBool>,
    /// See `engine/norec.rs`. Read by each transaction of that engine, and written by each commit.
    #[cfg(feature = "engines")]
    pub(crate) sequence: Alone<AtomicU64>,
    /// See `engine/global_lock.rs`.
    #[cfg(feature = "engines")]
    pub(crate) one: Alone<Mutex<()>>,
}

impl Globals {
    selvedge_core::constant! {
        fn new() -> Globals {
            Globals {
                clock: Alone(AtomicU64::new(0)),
                epoch: Alone(AtomicU64::new(1)),
                turn: Alone(AtomicBool::new(false)),
                #[cfg(feature = "engines")]
                sequence: Alone(AtomicU64::new(0)),
                #[cfg(feature = "engines")]
                one: Alone(Mutex::new(())),
            }
        }
    }
}

#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn world() -> &'static Globals {
    static WORLD: Globals = Globals::new();
    &WORLD
}

#[cfg(loom)]
pub(crate) fn world() -> &'static Globals {
    loom::lazy_static! {
        static ref WORLD: Globals = Globals::new();
    }
    &WORLD
}
