//! The threads of Selvedge in direct style, under the scheduler of this crate: [`SelvedgeDirect`].
//!
//! A thread is a stack, and for the scheduler a thread as those of `selvedge.rs`: it waits in the
//! same MVars.
//!
//! # What it teaches
//! The stack is found by what resumes it, and not by the program. So the two styles differ in what
//! a thread takes, and in the time of a switch, and in nothing else.
//!
//! # Paper
//! [Del §4.2]: the prompt is the place where the scheduler steps the thread.

use crate::fifo_seat::FifoSeat;
use crate::mvar_seat::MVarSeat;
use crate::scheduler::{SYSTEM, ThreadScheduler};
use crate::seat::WaitSeat;
use crate::selvedge::{insist, put, put_last, take_first, take_value};
use crate::system::Name;
use crate::{Direct, RunEnd};
use ::selvedge::direct::{self, direct};

/// A fresh record by name, because the body of a thread in direct style must be `Send`.
fn make_named<C: WaitSeat>() -> Name<C> {
    SYSTEM.with(ThreadScheduler::make_named)
}

#[inline(always)]
fn named<C: WaitSeat>(name: Name<C>) -> &'static C {
    SYSTEM.with(|system| system.named(name))
}

/// The implementation `selvedge-direct`: direct-style threads of `selvedge::direct`.
#[derive(Debug)]
pub enum SelvedgeDirect {}

impl Direct for SelvedgeDirect {
    type MVar<T: Send + 'static> = Name<MVarSeat<T>>;
    type Fifo<T: Send + 'static> = Name<FifoSeat<T>>;

    fn spawn(thread: impl FnOnce() + Send + 'static) {
        SYSTEM.with(|system| system.spawn(direct(thread)));
    }

    fn yield_() {
        insist("yield");
        direct::yield_now();
    }

    fn halt() -> ! {
        insist("halt");
        direct::exit()
    }

    fn start() -> RunEnd {
        SYSTEM.with(ThreadScheduler::start)
    }

    fn stop() -> ! {
        SYSTEM.with(ThreadScheduler::stop);
        direct::exit()
    }

    fn make_mvar<T: Send + 'static>() -> Self::MVar<T> {
        make_named()
    }

    #[inline(always)]
    fn put_mvar<T: Send + 'static>(&out: &Self::MVar<T>, value: T) {
        put(named(out), value).unwrap_or_else(direct::yield_now);
    }

    #[inline(always)]
    fn take_mvar<T: Send + 'static>(&inp: &Self::MVar<T>) -> T {
        let inp = named(inp);
        take_value(inp).unwrap_or_else(|| {
            direct::yield_now();
            inp.collect()
        })
    }

    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T> {
        make_named()
    }

    #[inline(always)]
    fn put_fifo<T: Send + 'static>(&out: &Self::Fifo<T>, value: T) {
        put_last(named(out), value);
    }

    #[inline(always)]
    fn take_fifo<T: Send + 'static>(&inp: &Self::Fifo<T>) -> T {
        let inp = named(inp);
        take_first(inp).unwrap_or_else(|| {
            direct::yield_now();
            inp.collect()
        })
    }
}
