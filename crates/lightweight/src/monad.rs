//! The signatures of the monadic implementations ([`Monad`]), and why their programs are those of
//! the trampoline: every `Monad` is [`Indirect`].
//!
//! `cont` and `promise` implement it. An operation of `Indirect` that gets its continuation is
//! `bind` of the operation here and that continuation.

use crate::{Indirect, RunEnd};

/// Threads as values of a monad.
///
/// # Paper
/// [Del Figure 6].
pub trait Monad: 'static {
    /// A computation with a result of type `A`.
    type T<A: 'static>: 'static;
    /// As [`Indirect::MVar`].
    type MVar<A: 'static>: Copy + 'static;
    /// As [`Indirect::Fifo`].
    type Fifo<A: 'static>: Copy + 'static;

    /// The computation that has this result: `return`.
    #[doc(alias = "return")]
    fn ret<A: 'static>(result: A) -> Self::T<A>;
    /// First `first`, then what `then` makes of its result: `>>=`.
    fn bind<A: 'static, B: 'static>(
        first: Self::T<A>,
        then: impl FnOnce(A) -> Self::T<B> + 'static,
    ) -> Self::T<B>;

    /// As [`Indirect::spawn`].
    fn spawn(thread: impl FnOnce() -> Self::T<()> + 'static);
    /// Does nothing.
    fn skip() -> Self::T<()>;
    /// Lets the other threads run.
    fn yield_() -> Self::T<()>;
    /// Ends the thread.
    fn halt() -> Self::T<()>;
    /// As [`Indirect::start`].
    fn start() -> RunEnd;
    /// Ends all threads.
    fn stop() -> Self::T<()>;

    /// A fresh empty MVar.
    fn make_mvar<A: 'static>() -> Self::MVar<A>;
    /// Puts a value.
    fn put_mvar<A: 'static>(out: Self::MVar<A>, value: A) -> Self::T<()>;
    /// Takes the value.
    fn take_mvar<A: 'static>(inp: Self::MVar<A>) -> Self::T<A>;
    /// A fresh empty Fifo.
    fn make_fifo<A: 'static>() -> Self::Fifo<A>;
    /// Adds a value.
    fn put_fifo<A: 'static>(out: Self::Fifo<A>, value: A);
    /// Takes the oldest value.
    fn take_fifo<A: 'static>(inp: Self::Fifo<A>) -> Self::T<A>;
}

impl<M: Monad> Indirect for M {
    type Rest = M::T<()>;
    type MVar<A: 'static> = M::MVar<A>;
    type Fifo<A: 'static> = M::Fifo<A>;

    fn spawn(thread: impl FnOnce() -> M::T<()> + 'static) {
        M::spawn(thread);
    }

    fn skip(rest: impl FnOnce() -> M::T<()> + 'static) -> M::T<()> {
        M::bind(M::skip(), |()| rest())
    }

    fn yield_(rest: impl FnOnce() -> M::T<()> + 'static) -> M::T<()> {
        M::bind(M::yield_(), |()| rest())
    }

    fn halt() -> M::T<()> {
        M::halt()
    }

    fn start() -> RunEnd {
        M::start()
    }

    fn stop() -> M::T<()> {
        M::stop()
    }

    fn make_mvar<A: 'static>() -> M::MVar<A> {
        M::make_mvar()
    }

    fn put_mvar<A: 'static>(
        out: M::MVar<A>,
        value: A,
        rest: impl FnOnce() -> M::T<()> + 'static,
    ) -> M::T<()> {
        M::bind(M::put_mvar(out, value), |()| rest())
    }

    fn take_mvar<A: 'static>(inp: M::MVar<A>, rest: impl FnOnce(A) -> M::T<()> + 'static) -> M::T<()> {
        M::bind(M::take_mvar(inp), rest)
    }

    fn make_fifo<A: 'static>() -> M::Fifo<A> {
        M::make_fifo()
    }

    fn put_fifo<A: 'static>(out: M::Fifo<A>, value: A) {
        M::put_fifo(out, value);
    }

    fn take_fifo<A: 'static>(inp: M::Fifo<A>, rest: impl FnOnce(A) -> M::T<()> + 'static) -> M::T<()> {
        M::bind(M::take_fifo(inp), rest)
    }
}
