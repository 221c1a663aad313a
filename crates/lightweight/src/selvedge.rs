//! The threads of Selvedge under a scheduler of this crate, with `await`: [`Selvedge`].
//!
//! A thread is a value of 4 bytes, as the continuation of the paper is a value: the ready queue
//! and the MVars own threads. The compiler makes the continuation, and it lies in a block of an
//! arena. The scheduler is the loop in `start`: it steps a thread to its next system call, and then
//! has the rest of it.
//!
//! # What it teaches
//! It is the trampoline again. The closure has become a state machine in a block that stays where
//! it is, so waiting allocates nothing, where `tramp` makes a new closure for each wait. The queue
//! of closures has become a list through the blocks. Because a program may have its own scheduler,
//! an MVar that needs little takes little.
//!
//! # Paper
//! [Del §4.1], with threads for continuations; [Del §5.1], with the continuation that the compiler
//! makes.
//!
//! # Differences
//! 1. A thread does not leave itself in an MVar: it says in which one, and its step ends. The
//!    scheduler, which owns the thread then, puts it there.

use crate::fifo_seat::FifoSeat;
use crate::mvar_seat::{MVarSeat, PutSeat};
use crate::scheduler::{SYSTEM, ThreadScheduler};
use crate::seat::WaitSeat;
use crate::{Async, RunEnd};
use ::selvedge::yield_now;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Does what can be done without waiting. `None` if the thread must end its step now.
#[inline(always)]
pub(crate) fn put<T: 'static>(out: &'static MVarSeat<T>, value: T) -> Option<()> {
    match out.put(value) {
        PutSeat::Done => {}
        PutSeat::Reader(reader) => SYSTEM.with(|system| system.wake(reader)),
        PutSeat::Full => {
            SYSTEM.with(|system| system.wait_in(out));
            return None;
        }
    }
    Some(())
}

/// As [`put`].
#[inline(always)]
pub(crate) fn take_value<T: 'static>(inp: &'static MVarSeat<T>) -> Option<T> {
    match inp.take() {
        Some((value, writer)) => {
            if let Some(writer) = writer {
                SYSTEM.with(|system| system.wake(writer));
            }
            Some(value)
        }
        None => {
            SYSTEM.with(|system| system.wait_in(inp));
            None
        }
    }
}

/// As [`put`], for a queue, in which there is always room.
#[inline(always)]
pub(crate) fn put_last<T: 'static>(out: &'static FifoSeat<T>, value: T) {
    if let Some(reader) = out.put(value) {
        SYSTEM.with(|system| system.wake(reader));
    }
}

/// As [`take_value`], for a queue.
#[inline(always)]
pub(crate) fn take_first<T: 'static>(inp: &'static FifoSeat<T>) -> Option<T> {
    let value = inp.take();
    if value.is_none() {
        SYSTEM.with(|system| system.wait_in(inp));
    }
    value
}

pub(crate) fn insist(operation: &str) {
    SYSTEM.with(|system| system.insist(operation));
}

/// A fresh record.
fn make<C: WaitSeat>() -> &'static C {
    SYSTEM.with(ThreadScheduler::make)
}

/// What a waiting thread is woken with.
trait TakenFrom: 'static {
    type Value;

    /// The value, if it is there. Otherwise the thread must end its step now.
    fn take(&'static self) -> Option<Self::Value>;

    /// The value with which the thread was woken.
    fn collect(&self) -> Self::Value;
}

impl<T: 'static> TakenFrom for MVarSeat<T> {
    type Value = T;

    #[inline(always)]
    fn take(&'static self) -> Option<T> {
        take_value(self)
    }

    #[inline(always)]
    fn collect(&self) -> T {
        self.collect()
    }
}

impl<T: 'static> TakenFrom for FifoSeat<T> {
    type Value = T;

    #[inline(always)]
    fn take(&'static self) -> Option<T> {
        take_first(self)
    }

    #[inline(always)]
    fn collect(&self) -> T {
        self.collect()
    }
}

/// A thread that takes. Its step ends at most once.
struct TakeWait<C: 'static, B, Y> {
    from: &'static C,
    /// Ends the step.
    begin: B,
    turn: Option<Y>,
}

impl<C, B, Y> Unpin for TakeWait<C, B, Y> {}

impl<C: TakenFrom, B: Fn() -> Y, Y: Future<Output = ()> + Unpin> Future for TakeWait<C, B, Y> {
    type Output = C::Value;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Value> {
        let this = &mut *self;
        if let Some(turn) = &mut this.turn {
            ready!(Pin::new(turn).poll(cx));
            return Poll::Ready(this.from.collect());
        }
        if let Some(value) = this.from.take() {
            return Poll::Ready(value);
        }
        let turn = this.turn.insert((this.begin)());
        Pin::new(turn).poll(cx).map(|()| unreachable!("a thread yields by ending its step"))
    }
}

/// The implementation `selvedge`: `async` threads of `selvedge`'s core.
///
/// A value is put when the operation is called, and its future waits for room. So the future need
/// not hold the value.
#[derive(Debug)]
pub enum Selvedge {}

impl Async for Selvedge {
    type MVar<T: 'static> = &'static MVarSeat<T>;
    type Fifo<T: 'static> = &'static FifoSeat<T>;

    fn spawn(thread: impl Future<Output = ()> + 'static) {
        SYSTEM.with(|system| system.spawn(thread));
    }

    fn yield_() -> impl Future<Output = ()> {
        insist("yield");
        yield_now()
    }

    fn halt() -> impl Future<Output = Infallible> {
        insist("halt");
        ::selvedge::exit()
    }

    fn start() -> RunEnd {
        SYSTEM.with(ThreadScheduler::start)
    }

    async fn stop() -> Infallible {
        SYSTEM.with(ThreadScheduler::stop);
        ::selvedge::exit().await
    }

    fn make_mvar<T: 'static>() -> Self::MVar<T> {
        make()
    }

    #[inline(always)]
    fn put_mvar<T: 'static>(&out: &Self::MVar<T>, value: T) -> impl Future<Output = ()> {
        let done = put(out, value);
        async move {
            if done.is_none() {
                yield_now().await;
            }
        }
    }

    #[inline(always)]
    fn take_mvar<T: 'static>(&inp: &Self::MVar<T>) -> impl Future<Output = T> {
        TakeWait { from: inp, begin: yield_now, turn: None }
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        make()
    }

    fn put_fifo<T: 'static>(&out: &Self::Fifo<T>, value: T) {
        put_last(out, value);
    }

    fn take_fifo<T: 'static>(&inp: &Self::Fifo<T>) -> impl Future<Output = T> {
        TakeWait { from: inp, begin: yield_now, turn: None }
    }
}
