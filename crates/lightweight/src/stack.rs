//! One-shot continuations on stacks: [`StackRest`], `push_prompt` and `shift0`.
//!
//! `callcc` and `dlcont` use them. A continuation is the stack of a direct-style thread of
//! Selvedge, from the place where the thread stopped down to its prompt. It is not copied:
//! capturing it takes it off, and resuming it puts it back.
//!
//! # Why it can be resumed once only
//! OCaml's library copies the stack, so a continuation can be resumed twice. In Rust a stack has
//! values with one owner: two copies would drop each of them twice. So `resume` consumes the
//! continuation, and the second use of one does not compile.
//!
//! # What became of the leak
//! The paper's footnote has a memory leak of the naive `shift0`, which leaves a dead frame below
//! each continuation that it puts back. Here a capture leaves no frame: the same stack is taken off
//! and put back. A continuation that is dropped unwinds its stack, so what lies on it is dropped
//! too.

use ::selvedge::direct::{direct, in_direct, wait};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A stack that is suspended, or a thread that has none yet.
pub struct StackRest(Pin<Box<dyn Future<Output = ()>>>);

impl fmt::Debug for StackRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StackRest")
    }
}

type Capture = Box<dyn FnOnce(StackRest)>;

thread_local! {
    /// What the stack that stops now is given to.
    static CAPTURE: Cell<Option<Capture>> = const { Cell::new(None) };
}

impl StackRest {
    /// Runs the stack until it captures itself or ends. A panic of it comes out here.
    pub(crate) fn resume(mut self) {
        if self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            let capture = CAPTURE.take().expect("a stack stops in shift0 alone");
            capture(self);
        }
    }
}

/// A stack with a prompt at its bottom, on which `body` will run.
pub(crate) fn push_prompt(body: impl FnOnce() + 'static) -> StackRest {
    StackRest(Box::pin(direct(body)))
}

/// Captures the running stack up to its prompt, and gives it to `keep`, which runs below the
/// prompt. Returns when the continuation is resumed.
///
/// # Panics
/// If no thread calls.
pub(crate) fn shift0(keep: impl FnOnce(StackRest) + 'static) {
    assert!(in_direct(), "an operation that blocks is for threads: the code that calls start is none");
    CAPTURE.set(Some(Box::new(keep)));
    let mut stopped = false;
    wait(poll_fn(|_| match std::mem::replace(&mut stopped, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    }));
}

/// As [`shift0`], for a continuation that is resumed with a value. `keep` gets a function that puts
/// the value where the stack finds it, and gives the continuation.
pub(crate) fn shift0_for<T: 'static>(keep: impl FnOnce(Resumer<T>) + 'static) -> T {
    let given = Rc::new(Cell::new(None));
    let place = Rc::clone(&given);
    shift0(move |rest| keep(Resumer { place, rest }));
    given.take().expect("the continuation is resumed with a value")
}

/// A continuation that waits for a value.
pub struct Resumer<T> {
    place: Rc<Cell<Option<T>>>,
    rest: StackRest,
}

impl<T> fmt::Debug for Resumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resumer")
    }
}

impl<T> Resumer<T> {
    /// The continuation, with its value.
    pub(crate) fn with(self, value: T) -> StackRest {
        self.place.set(Some(value));
        self.rest
    }
}

/// The payload with which `halt` unwinds a stack. It reaches no panic hook.
struct Halt;

/// Unwinds the running stack to its prompt.
pub(crate) fn halt() -> ! {
    resume_unwind(Box::new(Halt))
}

/// Runs a thread to its end, and says whether a panic ended it.
pub(crate) fn panics(thread: impl FnOnce()) -> bool {
    let ended = catch_unwind(AssertUnwindSafe(thread));
    ended.is_err_and(|payload| !payload.is::<Halt>())
}
