//! The direct-style thread as a future ([`Direct`]).
//!
//! Programs make it from a closure. A scheduler knows nothing of it: it polls the future in a step.
//! A poll of the future switches to the thread's stack (`stack.rs`), and comes back when the thread
//! waits (`waiting.rs`) or is over. A `wait` polls its future on the thread's stack with a copy of
//! that poll's waker. A thread that is dropped is resumed once more, and unwinds its stack
//! (`unwinding.rs`), or leaves it if there is nothing to unwind.
//!
//! **The rule for the waker.** A `wait` may begin while the poll of an outer `wait` is under way on
//! the same stack. The switch leaves that outer poll unfinished, and a later resumption goes on
//! with it. The outer poll still refers to the waker that it was given. So the copy of the waker
//! has one address for the whole life of the thread. While any poll is under way on the stack, the
//! thread may be resumed only with an equal waker ([`Fiber::lend`] checks that). A CPU of `core`
//! lends the same waker to every step, and most executors have one waker for each task, so the rule
//! holds there.

use crate::stack::{Control, NativeStack, STACK_BYTES};
use corosensei::{Coroutine, CoroutineResult};
use selvedge_core::internal::{
    CancelPayload, exchange_frame, exchange_stack, exchange_task_context, is_lent_here, running_cpu,
    task_context,
};
use selvedge_core::{in_thread, spawn_local};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::ptr;
use std::task::{Context, Poll, Waker};

/// A thread in direct style: the future that runs `body` on a stack of its own.
///
/// The stack is taken when it is first polled, and goes back to a list of free ones when the body
/// has returned. See [the crate](crate) for what may be done in the body, and for what dropping the
/// future does.
///
/// # Panics
/// When it is first polled, if there is no memory for another stack or the process has no room for
/// another mapping. A panic in the body is one of the future, as in an `async` block.
///
/// # Paper
/// [Del §4] direct style; [Del §4.2] one-shot continuations.
///
/// # Differences
/// 1. The continuation is not copied: it is the stack, and is resumed once because the future is
///    polled until it is ready.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local, yield_now};
/// use selvedge::direct::{direct, wait};
///
/// round_robin(async {
///     let in_turn = spawn_local(async { yield_now().await; 1 });
///     let blocks = spawn_local(direct(move || wait(in_turn).unwrap() + 1));
///     assert_eq!(blocks.await.unwrap(), 2);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn direct<F, T>(body: F) -> Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    Options::new().direct(body)
}

/// A stack size and a name for a direct-style thread.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::direct::{Options, wait};
///
/// let parser = Options::new().name("parser").stack_bytes(1 << 20);
/// assert_eq!(round_robin(parser.direct(|| wait(async { 7 })))?, 7);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Options {
    bytes: usize,
    name: Option<&'static str>,
}

impl Options {
    /// A stack of [`STACK_BYTES`], and the type name of the body.
    pub const fn new() -> Options {
        Options { bytes: STACK_BYTES, name: None }
    }

    /// How large the stack is; rounded up to a power of two, and to at least 16 KiB. Only what is
    /// touched takes memory.
    pub const fn stack_bytes(mut self, bytes: usize) -> Options {
        self.bytes = bytes;
        self
    }

    /// What the thread is called when its stack overflows.
    pub const fn name(mut self, name: &'static str) -> Options {
        self.name = Some(name);
        self
    }

    /// As [`direct`](crate::direct()), with these options.
    pub fn direct<F, T>(self, body: F) -> Direct<F, T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        Direct { state: DirectState::Fresh(body, self) }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// The future of [`direct`]. It is `!Send`: it stays on the OS thread that first polls it.
#[must_use = "nothing happens until it is awaited or run as a thread"]
pub struct Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    state: DirectState<F, T>,
}

enum DirectState<F, T: 'static> {
    Fresh(F, Options),
    Running(Fiber<T>),
    Over,
}

impl<F, T> Unpin for Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
}

impl<F, T> Future for Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let fiber = match &mut self.state {
            DirectState::Running(fiber) => fiber,
            _ => self.start(),
        };
        if !fiber.lend(cx.waker()) {
            self.strayed();
        }
        match fiber.resume() {
            CoroutineResult::Yield(()) => {
                if fiber.control().shields.get() > 0 {
                    hold_shield(cx);
                }
                Poll::Pending
            }
            CoroutineResult::Return(result) => self.conclude(result),
        }
    }
}

impl<F, T> Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    #[cold]
    fn start(&mut self) -> &mut Fiber<T> {
        let DirectState::Fresh(body, options) = std::mem::replace(&mut self.state, DirectState::Over) else {
            panic!("a direct-style thread is not polled after it has ended");
        };
        self.state = DirectState::Running(Fiber::new(body, options));
        let DirectState::Running(fiber) = &mut self.state else { unreachable!("just set") };
        fiber
    }

    #[cold]
    fn strayed(&mut self) -> ! {
        if let DirectState::Running(fiber) = std::mem::replace(&mut self.state, DirectState::Over) {
            fiber.give_up("was resumed by another task in the middle of a wait() within a wait()");
        }
        panic!("a direct-style thread was resumed by another task in the middle of a wait() within a wait()");
    }

    #[cold]
    fn conclude(&mut self, result: BodyResult<T>) -> Poll<T> {
        self.state = DirectState::Over;
        match result {
            Ok(output) => Poll::Ready(output),
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl<F, T> Drop for Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    fn drop(&mut self) {
        if let DirectState::Running(fiber) = std::mem::replace(&mut self.state, DirectState::Over) {
            fiber.cancel();
        }
    }
}

impl<F, T> fmt::Debug for Direct<F, T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            DirectState::Fresh(..) => "not begun",
            DirectState::Running(_) => "waits",
            DirectState::Over => "over",
        };
        f.debug_struct("Direct").field("state", &state).finish_non_exhaustive()
    }
}

type BodyResult<T> = Result<T, Box<dyn Any + Send>>;

/// Runs the body. It is a function with a frame of its own, so that the walk of `unwinding.rs` sees
/// where the program's code ends: a frame that catches outside of this one is `Fiber::new`'s.
#[inline(never)]
fn run<F: FnOnce() -> T, T>(body: F) -> T {
    let output = body();
    // Without it, the call of the body may be a jump, which leaves no frame.
    black_box(());
    output
}

/// Tells the CPU that the thread has stopped within a shield.
#[cold]
fn hold_shield(cx: &mut Context<'_>) {
    let _ = pin!(selvedge_core::shield(std::future::pending::<()>())).poll(cx);
}

/// A body that has begun and is not over, on its stack.
struct Fiber<T: 'static> {
    coroutine: Coroutine<(), (), BodyResult<T>, NativeStack>,
    /// The block beside its stack, which lives as long as the coroutine.
    control: *const Control,
}

impl<T: 'static> Fiber<T> {
    /// Takes a stack, on which the body waits to be resumed.
    fn new<F: FnOnce() -> T + 'static>(body: F, options: Options) -> Fiber<T> {
        let name = options.name.unwrap_or(std::any::type_name::<F>());
        let stack = NativeStack::take(options.bytes, name).unwrap_or_else(|error| panic!("{error}"));
        stack.control().keep_surroundings(task_context(), ptr::null());
        let control: *const Control = stack.control();
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the control block lives as long as the stack that this runs on.
            let control = unsafe { &*control };
            control.yielder.set(yielder);
            control.cold.outermost.set(run::<F, T> as *const ());
            catch_unwind(AssertUnwindSafe(|| run(body)))
        });
        Fiber { coroutine, control }
    }

    fn control(&self) -> &Control {
        // SAFETY: the block lives as long as the coroutine.
        unsafe { &*self.control }
    }

    /// Sets the waker for the step that begins. False if a poll is under way on the stack and
    /// refers to a waker that is not equal to this one.
    #[inline(always)]
    fn lend(&self, waker: &Waker) -> bool {
        let control = self.control();
        let lent = control.lent.get();
        if control.polls.get() == 0 {
            // SAFETY: no reference to the copy exists, because `wait` makes one only within a poll
            // that `Polls` counts. The copy is used only until this poll is over, while the caller
            // lends the original, and `ManuallyDrop` never drops it.
            unsafe { lent.write(ManuallyDrop::new(ptr::read(waker))) };
        } else {
            // SAFETY: `map` has written a waker there, and every later write replaces it by a
            // waker. Only its two words are compared.
            let lent = unsafe { &*lent };
            if lent.data() != waker.data() || !ptr::eq(lent.vtable(), waker.vtable()) {
                return false;
            }
        }
        control.waker.set(lent.cast());
        true
    }

    /// Runs the body on its stack until it waits or is over.
    #[inline(always)]
    fn resume(&mut self) -> CoroutineResult<(), BodyResult<T>> {
        let control = self.control();
        control.cpu.set(running_cpu());
        control.panicking.set(std::thread::panicking());
        let (context, frame) = control.surroundings();
        let (context, frame) = (exchange_task_context(context), exchange_frame(frame));
        let outer = exchange_stack(self.control.cast());
        // This does not unwind, because `new` catches the body's panics on the body's own stack.
        let result = self.coroutine.resume(());
        exchange_stack(outer);
        self.control().keep_surroundings(exchange_task_context(context), exchange_frame(frame));
        result
    }

    /// As [`resume`](Self::resume), after a cancellation. A stack that was left is over, as one
    /// that was unwound.
    fn resume_cancelled(&mut self) -> CoroutineResult<(), BodyResult<T>> {
        let result = self.resume();
        if !self.control().cold.is_left.get() {
            return result;
        }
        // SAFETY: `throw` (`waiting.rs`) has found that no frame on the stack has anything to drop.
        unsafe { self.coroutine.force_reset() };
        CoroutineResult::Return(Err(Box::new(CancelPayload)))
    }

    /// Whether the polls that are under way on the stack may go on with their waker. They may in
    /// three cases: no poll is under way; `suspend_within` has kept an equal waker, which keeps the
    /// data of both alive; or a living CPU lends the waker.
    fn may_come_back(&self) -> bool {
        let control = self.control();
        if control.polls.get() == 0 {
            return true;
        }
        // SAFETY: as in `lend`.
        let lent = unsafe { &*control.lent.get() };
        let kept = control.cold.kept.take();
        let is_kept = kept.as_ref().is_some_and(|kept| kept.will_wake(lent));
        control.cold.kept.set(kept);
        is_kept || is_lent_here(lent)
    }

    /// Unwinds the stack. If a destructor waits, or if the thread waits within a function that
    /// cannot unwind, the rest becomes a thread of its own ([`Remains`]).
    #[cold]
    fn cancel(mut self) {
        if !self.may_come_back() {
            return self
                .give_up("was dropped in the middle of a wait() within a wait(), when its CPU was gone");
        }
        self.control().cancelled.set(true);
        self.control().waker.set(Waker::noop());
        match self.resume_cancelled() {
            CoroutineResult::Return(result) => {
                // The body has unwound, returned or panicked. No caller wants its result.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(result)));
            }
            CoroutineResult::Yield(()) => {
                let remains = Remains { fiber: Some(self) };
                if in_thread() {
                    // If there is no room for another thread, the drop of `remains` gives the stack
                    // up.
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(spawn_local(remains))));
                }
            }
        }
    }

    /// Leaves the stack as it is for ever. No code touches its content again, and it is neither
    /// reused nor freed.
    #[cold]
    fn give_up(self, why: &str) {
        eprintln!("direct-style thread {} {why}: its stack is given up", self.control().cold.name);
        std::mem::forget(self);
    }
}

/// The rest of a cancelled thread, which waits in a destructor or within a function that cannot
/// unwind.
struct Remains<T: 'static> {
    fiber: Option<Fiber<T>>,
}

impl<T: 'static> Unpin for Remains<T> {}

impl<T: 'static> Future for Remains<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let fiber = self.fiber.as_mut().expect("a future is not polled after it has ended");
        if fiber.lend(cx.waker()) && matches!(fiber.resume_cancelled(), CoroutineResult::Yield(())) {
            return Poll::Pending;
        }
        if let Some(fiber) = self.fiber.take_if(|fiber| !fiber.coroutine.done()) {
            fiber.give_up("cannot go on in a destructor within a wait()");
        }
        self.fiber = None;
        Poll::Ready(())
    }
}

impl<T: 'static> Drop for Remains<T> {
    fn drop(&mut self) {
        if let Some(fiber) = self.fiber.take() {
            fiber.give_up(
                "waits in a destructor, or within a function that cannot unwind, where no scheduler will run it",
            );
        }
    }
}
