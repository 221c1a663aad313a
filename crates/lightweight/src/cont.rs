//! The continuation monad: a computation is a function that takes its continuation.
//!
//! A value of [`Cont`] stands for code that will have a result of type `A`. The code gets its
//! continuation when it runs, so the program passes none by hand: `bind` does.
//!
//! # What it teaches
//! It is the trampoline with another type. `bind` makes a closure around two closures, and that is
//! the whole difference, in the text and in the time. See how an operation is made of two:
//! ```
//! use selvedge_lightweight::cont::Cont;
//! use selvedge_lightweight::{ContMonad as C, Monad};
//!
//! type MVar = <C as Monad>::MVar<u32>;
//!
//! fn transfer_mvar(from: MVar, to: MVar) -> Cont<()> {
//!     C::bind(<C as Monad>::take_mvar(from), move |value| <C as Monad>::put_mvar(to, value))
//! }
//!
//! let (from, to) = (<C as Monad>::make_mvar(), <C as Monad>::make_mvar());
//! <C as Monad>::spawn(move || transfer_mvar(from, to));
//! <C as Monad>::spawn(move || <C as Monad>::put_mvar(from, 42));
//! let check = |value| {
//!     assert_eq!(value, 42);
//!     <C as Monad>::skip()
//! };
//! <C as Monad>::spawn(move || C::bind(<C as Monad>::take_mvar(to), check));
//! assert_eq!(<C as Monad>::start().blocked, 0);
//! ```
//!
//! # Paper
//! [Del §5.2], [Del Figure 6].

use crate::tramp::Tramp;
use crate::{Indirect, Monad, RunEnd};
use std::fmt;

/// A continuation: what takes a result of type `A`.
type Continuation<A> = Box<dyn FnOnce(A)>;

/// A computation with a result of type `A`: `(A -> unit) -> unit` in the paper.
pub struct Cont<A>(Box<dyn FnOnce(Continuation<A>)>);

impl<A> fmt::Debug for Cont<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cont")
    }
}

/// The implementation `cont`. A computation ends in calls of the trampoline, which has the queue
/// and the loop.
#[derive(Debug)]
pub enum ContMonad {}

impl Monad for ContMonad {
    type T<A: 'static> = Cont<A>;
    type MVar<A: 'static> = <Tramp as Indirect>::MVar<A>;
    type Fifo<A: 'static> = <Tramp as Indirect>::Fifo<A>;

    fn ret<A: 'static>(result: A) -> Cont<A> {
        Cont(Box::new(|rest| rest(result)))
    }

    fn bind<A: 'static, B: 'static>(first: Cont<A>, then: impl FnOnce(A) -> Cont<B> + 'static) -> Cont<B> {
        Cont(Box::new(|rest| (first.0)(Box::new(|result| (then(result).0)(rest)))))
    }

    /// The continuation that comes last does nothing.
    fn spawn(thread: impl FnOnce() -> Cont<()> + 'static) {
        Tramp::spawn(|| (thread().0)(Box::new(|()| ())));
    }

    fn skip() -> Cont<()> {
        Cont(Box::new(|rest| Tramp::skip(|| rest(()))))
    }

    fn yield_() -> Cont<()> {
        Cont(Box::new(|rest| Tramp::yield_(|| rest(()))))
    }

    /// The continuation is dropped.
    fn halt() -> Cont<()> {
        Tramp::halt();
        Cont(Box::new(drop))
    }

    fn start() -> RunEnd {
        Tramp::start()
    }

    fn stop() -> Cont<()> {
        Tramp::stop();
        Cont(Box::new(drop))
    }

    fn make_mvar<A: 'static>() -> Self::MVar<A> {
        Tramp::make_mvar()
    }

    fn put_mvar<A: 'static>(out: Self::MVar<A>, value: A) -> Cont<()> {
        Cont(Box::new(move |rest| Tramp::put_mvar(out, value, || rest(()))))
    }

    fn take_mvar<A: 'static>(inp: Self::MVar<A>) -> Cont<A> {
        Cont(Box::new(move |rest| Tramp::take_mvar(inp, rest)))
    }

    fn make_fifo<A: 'static>() -> Self::Fifo<A> {
        Tramp::make_fifo()
    }

    fn put_fifo<A: 'static>(out: Self::Fifo<A>, value: A) {
        Tramp::put_fifo(out, value);
    }

    fn take_fifo<A: 'static>(inp: Self::Fifo<A>) -> Cont<A> {
        Cont(Box::new(move |rest| Tramp::take_fifo(inp, rest)))
    }
}
