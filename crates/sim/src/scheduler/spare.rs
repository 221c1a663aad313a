//! `Spare`: the CPU that successive runs share, because making a CPU takes as long as a hundred
//! steps. `each_seed` and `Explorer` keep one while they live; `Running` takes it and gives it
//! back.
//!
//! Only an empty CPU is kept. A thread that was left in it would run in the next run.

use selvedge_core::Cpu;
use std::cell::{Cell, RefCell};

/// While a value of this type lives, the CPU of one run is kept for the next run.
pub(super) struct Spare {
    /// Whether another value of this OS thread was alive already.
    outer: bool,
}

thread_local! {
    static SPARE: RefCell<Option<Cpu>> = const { RefCell::new(None) };
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

impl Spare {
    pub(super) fn keep() -> Spare {
        Spare { outer: KEPT.replace(true) }
    }

    /// The CPU of the run before, if it was kept.
    pub(super) fn take() -> Option<Cpu> {
        SPARE.take()
    }

    /// Keeps a CPU that was used, if no thread is left in it. `clean` says that no thread of the
    /// run was left when its main thread ended.
    pub(super) fn give(mut cpu: Cpu, clean: bool) {
        if KEPT.get() && clean && cpu.waiting() == 0 && cpu.woken().is_none() && cpu.detached().is_none() {
            SPARE.set(Some(cpu));
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        KEPT.set(self.outer);
        if !self.outer {
            drop(SPARE.take());
        }
    }
}
