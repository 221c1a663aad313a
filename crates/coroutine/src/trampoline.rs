//! Coroutines that are stepped exactly as the paper says: which one is resumed when, and which
//! values are thrown away.
//!
//! | for | there is |
//! |---|---|
//! | a coroutine, whatever its suspensions | [`Coroutine`], [`Co`] in its body, [`Coroutine::resume`] |
//! | pauses, and coroutines in lock-step | [`Trampoline`], [`bounce`], [`run`], [`mzip_with`], [`interleave`] |
//! | values out of a coroutine, or into it | [`Generator`], [`run_generator`]; [`Iteratee`], [`run_iteratee`] |
//! | other suspensions | [`Request`], [`Many`], [`Compose`], [`EitherFunctor`], your own [`Suspension`] |
//! | one kind of coroutine as another | [`Coroutine::map_suspension`], [`Natural`] |
//! | a producer and a consumer | [`pipe1`], [`pipe2`] |
//! | stages between them | [`Transducer`], `first >> second`, [`from_generator`], [`to_generator`] |
//! | how two coroutines make one step | [`Sequential`], [`Concurrent`], [`Parallel`] |
//!
//! # Base monad
//! The paper's coroutines are a layer over any base monad `m`. Here the base is async Rust: a
//! bounce is a future, and what a body awaits beside the operations of its [`Co`] belongs to the
//! bounce. If the body awaits a lock, the bounce waits, and no suspension reaches the holder.
//! Printing, assigning and other plain code needs no lifting.
//!
//! # Cost
//! [`Coroutine::new`] allocates twice: the body, pinned in a box, and the place where body and
//! holder meet. A coroutine that awaits values has a third allocation, for them. A suspension
//! allocates nothing. It takes the locks of these places a few times, and no other thread holds
//! one. Each combinator here is a body of its own, and costs as much. A step that passes through
//! `n` nested combinators uses the stack of `n` nested polls.
//!
//! # Differences
//! 1. A coroutine is resumed at most once: [`Coroutine::resume`] consumes it. In Haskell a
//!    resumption is a function that may be called again.
//! 2. A suspension functor holds its resumptions from the beginning. A function `a -> x` is
//!    therefore a [`Feed`]: a place for the `a`, and the `x` that will read it. In a composition
//!    with [`Await`] outside, the inner suspension is chosen before the value is fed.
//! 3. Rust computes values before it passes them, so it has no value that fails when it is used.
//!    [`Fed`] is one that the body may hold and never open.

mod binder;
mod body;
mod cast;
mod coroutine;
mod interleave;
mod pipe;
mod roles;
mod suspension;
mod transducer;

pub use binder::{Binder, Concurrent, Parallel, Sequential};
pub use body::Co;
pub use cast::{
    Naught, from_generator, from_iteratee, from_trampoline, to_generator, to_iteratee, to_trampoline,
};
pub use coroutine::{Coroutine, Natural, Resumed};
pub use interleave::{interleave, interleave_by, mzip_with, mzip_with_by};
pub use pipe::{pipe1, pipe1_by, pipe2, pipe2_by};
pub use roles::{
    Generator, InOrOut, Iteratee, Request, Trampoline, bounce, run, run_generator, run_iteratee,
};
pub use suspension::{
    Await, Compose, Either, EitherFunctor, Fed, Feed, FeedSlot, Identity, Many, Single, Suspension, Yield,
};
pub use transducer::{
    AfterUncast, Transducer, lift_one_to_one, lift_stateful, lift_stateless, pipe, pipe_by,
};
