//! The concurrency model of the paper as three traits: [`Direct`], [`Indirect`] and [`Async`], and
//! what `start` tells: [`RunEnd`].
//!
//! The three applications and the suite are written over the traits, once for each style. A trait
//! has associated functions without `self`, as the paper's modules have functions: a system of
//! threads belongs to the OS thread that calls `spawn` and `start`.
//!
//! # What the paper leaves open
//! 1. `spawn` in a thread puts the new thread behind the ready threads. It runs in the same
//!    `start`.
//! 2. `start` returns when no thread can run any more. Threads that are still blocked are ended,
//!    and [`RunEnd`] has their number.
//! 3. `stop` ends the calling thread at once. No other thread runs after it, and all are ended:
//!    what they own is dropped.
//! 4. A panic ends its thread alone. [`RunEnd`] has the number of such threads.
//! 5. The code that calls `start` is no thread. If it calls `halt`, `yield_`, `stop`, or an
//!    operation that would block, the call panics. A thread that calls `start` panics too.
//! 6. An MVar belongs to one `start`: no code uses it afterwards.
//!
//! # Paper
//! [Del §2.1], [Del §2.2], [Del Figure 4], [Del Figure 5].

use std::convert::Infallible;

/// What [`start`](Direct::start) tells when no thread can run any more.
///
/// # Paper
/// [Del §2.1] `start`, which returns nothing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunEnd {
    /// The threads that were blocked at the end: each waited for a value, or for room for one. If
    /// a thread has called `stop`, it is the number of threads that were blocked at that moment.
    pub blocked: usize,
    /// The threads that a panic ended.
    pub panicked: usize,
    /// Whether a thread called `stop`.
    pub stopped: bool,
}

/// Threads in direct style: an operation that blocks looks like any other call.
///
/// What a thread owns is `Send`, because under [`Sys`](crate::sys::Sys) and [`Vm`](crate::vm::Vm)
/// each thread is an OS thread.
///
/// # Paper
/// [Del Figure 4]; [Del §4] direct style.
pub trait Direct: 'static {
    /// An MVar. At most one thread waits to take and one to put.
    type MVar<T: Send + 'static>: Clone + Send + 'static;
    /// An unbounded queue, of which at most one thread waits to take.
    type Fifo<T: Send + 'static>: Clone + Send + 'static;

    /// Creates a thread. It does not run before [`start`](Self::start).
    fn spawn(thread: impl FnOnce() + Send + 'static);
    /// Lets the other threads run.
    fn yield_();
    /// Ends the calling thread. Its destructors run.
    fn halt() -> !;
    /// Runs all threads until none can run any more.
    fn start() -> RunEnd;
    /// Ends all threads, the calling one too.
    fn stop() -> !;

    /// A fresh empty MVar.
    fn make_mvar<T: Send + 'static>() -> Self::MVar<T>;
    /// Puts a value. Blocks while the MVar is full.
    ///
    /// # Panics
    /// If another thread waits to put already.
    fn put_mvar<T: Send + 'static>(out: &Self::MVar<T>, value: T);
    /// Takes the value. Blocks while the MVar is empty.
    ///
    /// # Panics
    /// If another thread waits to take already.
    fn take_mvar<T: Send + 'static>(inp: &Self::MVar<T>) -> T;

    /// A fresh empty Fifo.
    fn make_fifo<T: Send + 'static>() -> Self::Fifo<T>;
    /// Adds a value. Never blocks.
    fn put_fifo<T: Send + 'static>(out: &Self::Fifo<T>, value: T);
    /// Takes the oldest value. Blocks while there is none.
    ///
    /// # Panics
    /// If another thread waits to take already.
    fn take_fifo<T: Send + 'static>(inp: &Self::Fifo<T>) -> T;
}

/// Threads in indirect style: an operation that may block has one argument more, its continuation,
/// which is the rest of the thread.
///
/// One text serves the trampoline, the monads and the events. In the trampoline the last argument
/// is the continuation; in a monad, the call is `bind` of the operation and that argument.
///
/// # Paper
/// [Del Figure 5], [Del Figure 6]; [Del §5] indirect style.
pub trait Indirect: 'static {
    /// What code in this style returns: nothing where the continuation has been called or kept; in
    /// a monad, the value that stands for the rest of the thread.
    type Rest: 'static;
    /// An MVar. It is a name of a few bytes: the system owns what it names until `start` returns.
    type MVar<T: 'static>: Copy + 'static;
    /// An unbounded queue, named in the same way.
    type Fifo<T: 'static>: Copy + 'static;

    /// Creates a thread. It does not run before [`start`](Self::start).
    fn spawn(thread: impl FnOnce() -> Self::Rest + 'static);
    /// Goes on at once.
    fn skip(rest: impl FnOnce() -> Self::Rest + 'static) -> Self::Rest;
    /// Lets the other threads run.
    fn yield_(rest: impl FnOnce() -> Self::Rest + 'static) -> Self::Rest;
    /// Ends the thread: nothing is the rest of it.
    fn halt() -> Self::Rest;
    /// Runs all threads until none can run any more.
    fn start() -> RunEnd;
    /// Ends all threads. The calling one ends when it returns the result.
    fn stop() -> Self::Rest;

    /// A fresh empty MVar.
    fn make_mvar<T: 'static>() -> Self::MVar<T>;
    /// Puts a value, and goes on when it is in the MVar.
    ///
    /// # Panics
    /// If another thread waits to put already.
    fn put_mvar<T: 'static>(
        out: Self::MVar<T>,
        value: T,
        rest: impl FnOnce() -> Self::Rest + 'static,
    ) -> Self::Rest;
    /// Takes the value, and goes on with it.
    ///
    /// # Panics
    /// If another thread waits to take already.
    fn take_mvar<T: 'static>(inp: Self::MVar<T>, rest: impl FnOnce(T) -> Self::Rest + 'static) -> Self::Rest;

    /// A fresh empty Fifo.
    fn make_fifo<T: 'static>() -> Self::Fifo<T>;
    /// Adds a value. Never blocks, so it needs no continuation.
    fn put_fifo<T: 'static>(out: Self::Fifo<T>, value: T);
    /// Takes the oldest value, and goes on with it.
    ///
    /// # Panics
    /// If another thread waits to take already.
    fn take_fifo<T: 'static>(inp: Self::Fifo<T>, rest: impl FnOnce(T) -> Self::Rest + 'static) -> Self::Rest;
}

/// Threads of which the compiler makes the continuations: the text is in direct style, and each
/// `await` marks the place where the rest of the thread becomes a value.
pub trait Async: 'static {
    /// An MVar.
    type MVar<T: 'static>: Clone + 'static;
    /// An unbounded queue.
    type Fifo<T: 'static>: Clone + 'static;

    /// Creates a thread. It does not run before [`start`](Self::start).
    fn spawn(thread: impl Future<Output = ()> + 'static);
    /// Lets the other threads run.
    fn yield_() -> impl Future<Output = ()>;
    /// Ends the calling thread. Its destructors run.
    fn halt() -> impl Future<Output = Infallible>;
    /// Runs all threads until none can run any more.
    fn start() -> RunEnd;
    /// Ends all threads, the calling one too.
    fn stop() -> impl Future<Output = Infallible>;

    /// A fresh empty MVar.
    fn make_mvar<T: 'static>() -> Self::MVar<T>;
    /// Puts a value. Waits while the MVar is full.
    fn put_mvar<T: 'static>(out: &Self::MVar<T>, value: T) -> impl Future<Output = ()>;
    /// Takes the value. Waits while the MVar is empty.
    fn take_mvar<T: 'static>(inp: &Self::MVar<T>) -> impl Future<Output = T>;

    /// A fresh empty Fifo.
    fn make_fifo<T: 'static>() -> Self::Fifo<T>;
    /// Adds a value. Never waits.
    fn put_fifo<T: 'static>(out: &Self::Fifo<T>, value: T);
    /// Takes the oldest value. Waits while there is none.
    fn take_fifo<T: 'static>(inp: &Self::Fifo<T>) -> impl Future<Output = T>;
}
