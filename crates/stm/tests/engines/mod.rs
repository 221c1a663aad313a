//! The engines that the tests run under.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A module for each engine, with a test for each function.
///
/// The tests of one engine run one after the other, in all files of the program, because two
/// engines have a lock for the whole process: a transaction of one test may conflict with those of
/// another one.
macro_rules! under_each_engine {
    ($($name:ident)*) => {
        under_each_engine! { @ versioned Versioned [$($name)*] }
        under_each_engine! { @ figure3 Figure3 [$($name)*] }
        under_each_engine! { @ norec NOrec [$($name)*] }
        under_each_engine! { @ global_lock GlobalLock [$($name)*] }
    };
    (@ $module:ident $engine:ident [$($name:ident)*]) => {
        mod $module {
            $(#[test]
            fn $name() {
                let _turn = $crate::engines::TURNS.$module.take();
                super::$name::<selvedge_stm::$engine>();
            })*
        }
    };
}

/// The turns of the tests of each engine.
pub(crate) static TURNS: Turns =
    Turns { versioned: Turn::new(), figure3: Turn::new(), norec: Turn::new(), global_lock: Turn::new() };

pub(crate) struct Turns {
    pub(crate) versioned: Turn,
    pub(crate) figure3: Turn,
    pub(crate) norec: Turn,
    pub(crate) global_lock: Turn,
}

pub(crate) struct Turn(Mutex<()>);

impl Turn {
    const fn new() -> Turn {
        Turn(Mutex::new(()))
    }

    /// Waits for the turn, which lasts for as long as the guard.
    pub(crate) fn take(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
