//! [`Lazy`]: a value that is made when it is needed, once, and that threads share.
//!
//! This is the program's interface. The state and the memory are in `node.rs`, the evaluation is in
//! `force.rs`, and the reason of a failure is in `failed.rs`. `spark.rs` and `strategy.rs` call the
//! methods of this file.
//!
//! `Lazy<T>` is a `NodeHandle` with a type. A node's values are of type `T`, because only the
//! functions here make nodes, so the `unsafe` reads of this file need to check the state alone.
//!
//! Paper: [HMP05 §3.1, §3.5, §4.2, §4.3].

use crate::failed::NoValueError;
use crate::force::{Settle, is_within, settle_blocking};
use crate::node::{FAILED, NodeHandle, Once, Restarted, Resumable};
use selvedge_core::budget;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// A value that is made when it is first needed, once. Its handles are cloned and shared between
/// threads.
///
/// The first thread that [forces](Lazy::force) the value claims it and runs its body. A thread that
/// forces a value under evaluation waits for it: a thread of ours is parked, an OS thread
/// [blocks](Lazy::force_blocking), and under a foreign executor the force is a future like any
/// other. The end of the evaluation wakes all of them at once.
///
/// The body is a closure, or a future that may itself await other lazy values, sleep, and so on.
///
/// # Failure
/// - A body that panics leaves its payload with the value. The first force that panics throws that
///   very payload. Each later one throws the same text, or a message if the payload was no text.
///   [`try_force`](Lazy::try_force) gives the reason as an error: see [`NoValueError`].
/// - A value that needs its own value is found, in one thread and across threads: that force fails
///   with a message `<<loop>>` that names each value of the circle. A value is named by the place
///   that made it, and by [`named`](Lazy::named).
///
/// # Memory
/// What the body has captured is dropped when the value is there, before any thread sees it. A
/// chain of values, however long, is dropped in a bounded native stack, and is forced in one if its
/// bodies are futures that await one another: [`Lazy::future`], [`map`](Lazy::map).
///
/// A body that waits for another value in any other way keeps its frames on the native stack:
///
/// | the body | a chain of such bodies |
/// |---|---|
/// | calls [`force_blocking`](Lazy::force_blocking) | is forced to any length: from a depth of 64 on upon OS threads of its own, with 64 MiB of stack each. If the kernel refuses one, the force panics and names the depth |
/// | forces behind a waker of its own: in `join_all` of many, `block_on`, or `wait` in direct style | nests to 512 bodies, and to 64 in direct style. The force below that fails with an error that names the depth |
///
/// A force that fails because of the depth leaves its own value as it was. The values of which the
/// bodies were in the middle fail for good.
///
/// The last handle drops the value. Such drops nest to a depth of 32. A value that is dropped at
/// that depth, for instance within a list of lazy cells, is put off: it is dropped on the same OS
/// thread when the drop around it is at its end. So a guard of a lock in such a value may hold the
/// lock for longer than its handle lives.
///
/// # Where a value is forced
/// The first force runs the body where it is itself, so the body may do there what any code may do
/// there. If a body panics because of the place, the value fails for good. So:
/// - Within the body of a transaction a force of a value that is not there panics before the body
///   of the value begins. The value stays as it was. A value that is there may be forced.
/// - Within a step of a Selvedge thread a body may not block the OS thread: a body that calls
///   [`force_blocking`](Lazy::force_blocking) or `atomically_blocking` is for values that are first
///   forced outside of threads. Elsewhere, let the body be a future that awaits.
///
/// ```
/// use selvedge::lazy::Lazy;
/// use selvedge::stm::{TWord, atomically_blocking};
/// use std::panic::{AssertUnwindSafe, catch_unwind};
///
/// let count = TWord::new(0_u32);
/// let counted = Lazy::new(move || atomically_blocking(|tx| count.modify(tx, |n| n + 1)));
/// # std::panic::set_hook(Box::new(|_| {}));
/// let within = || atomically_blocking(|_| Ok(*counted.force_blocking()));
/// assert!(catch_unwind(AssertUnwindSafe(within)).is_err());
/// counted.force_blocking();
/// within();
/// ```
///
/// # Cancellation
/// A force that is dropped while it waits leaves the queue. A force that is dropped while it
/// evaluates gives the evaluation up: the future of the body stays as it is, "frozen", and the next
/// thread that needs the value goes on with it. Waiting threads are told, and one of them does so
/// at once. A closure runs at a stretch, so no force is dropped in the middle of one. It is unwound
/// there only if it waits in direct style and its thread is cancelled. What happens to the value
/// then depends on its body:
///
/// | made by | the body | cancelled in the middle |
/// |---|---|---|
/// | [`Lazy::future`] | a future that was dropped between its polls | goes on where it was |
/// | [`Lazy::again`] | a closure that may be called again | is called again by the next force |
/// | [`Lazy::new`] | a closure that is called once | the value fails for ever |
///
/// A future that calls code in direct style, and is unwound within its poll, fails as the last row
/// does.
///
/// ```
/// use selvedge::{lazy::Lazy, scope::race, sleep, yield_now};
/// use std::time::Duration;
///
/// let slow = Lazy::future(async {
///     sleep(Duration::from_millis(50)).await;
///     5
/// });
/// let hasty = slow.clone();
/// selvedge::run_local(async move {
///     let hurry = async {
///         yield_now().await;
///         0
///     };
///     assert_eq!(race((async { *hasty.force().await }, hurry)).await, 0);
/// })?;
/// // The rest of the sleep, under another scheduler.
/// assert_eq!(selvedge::run(async move { *slow.force().await }).unwrap(), 5);
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// # Paper
/// [HMP05 §3.1, §3.5]: the thunk that is locked, which the paper wants for `justOnce` only; [HMP05
/// §4.2] blocking on a black hole; [HMP05 §4.3] freezing.
///
/// # Differences
/// 1. The black hole has its own queue of waiters, as in [NCM11 §3.5], and the update looks there;
///    a fence that costs the update no instruction makes that safe.
/// 2. An evaluation is a future, so it is frozen without copying a stack.
/// 3. A circle across threads is found.
///
/// # Complexity
/// Making a value is one allocation, of 16 bytes and the larger one of body and value.
/// The first force is one atomic exchange, without a second one at the update. Reading a value that
/// is there is one load.
///
/// # Examples
/// ```
/// use selvedge::lazy::Lazy;
///
/// selvedge::run(async {
///     let warp = Lazy::new(|| 6);
///     let weft = Lazy::future({
///         let warp = warp.clone();
///         async move {
///             selvedge::yield_now().await;
///             *warp.force().await + 1
///         }
///     });
///     assert!(!warp.is_ready());
///     let other = selvedge::spawn({
///         let weft = weft.clone();
///         async move { *weft.force().await }
///     });
///     assert_eq!(*weft.force().await * other.await.unwrap(), 49);
///     assert_eq!(warp.get(), Some(&6));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "thunk")]
#[doc(alias = "black hole")]
#[doc(alias = "justOnce")]
pub struct Lazy<T> {
    node: NodeHandle,
    _value: PhantomData<T>,
}

// SAFETY: a handle reaches the value by reference, from any OS thread that has one, and the last
// handle drops it. All bodies are Send: see the functions that make values.
unsafe impl<T: Send + Sync> Send for Lazy<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Lazy<T> {}

impl<T> Lazy<T> {
    /// A value that the closure makes.
    ///
    /// The value is Send, because the body may run on another OS thread than the force.
    /// ```compile_fail,E0277
    /// use selvedge::lazy::Lazy;
    /// use std::rc::Rc;
    ///
    /// let count = Lazy::new(|| Rc::new(0));
    /// ```
    ///
    /// It is `'static`, because a spark, or the search for a circle, may keep a handle for longer
    /// than the program does. A closure that captures nothing is `'static` by itself, also if its
    /// value is not:
    /// ```compile_fail,E0597
    /// use selvedge::lazy::{Lazy, par};
    /// use std::sync::Mutex;
    ///
    /// struct PrintsAtDrop<'a>(&'a str);
    /// impl Drop for PrintsAtDrop<'_> {
    ///     fn drop(&mut self) {
    ///         println!("{}", self.0);
    ///     }
    /// }
    ///
    /// let cloth = String::from("cloth");
    /// let kept: Lazy<Mutex<Vec<PrintsAtDrop<'_>>>> = Lazy::new(|| Mutex::new(Vec::new()));
    /// kept.force_blocking().lock().unwrap().push(PrintsAtDrop(&cloth));
    /// ```
    #[track_caller]
    #[inline]
    pub fn new(body: impl FnOnce() -> T + Send + 'static) -> Lazy<T>
    where
        T: Send + 'static,
    {
        Lazy::of(NodeHandle::new(Once(body), Location::caller()))
    }

    /// A value that the closure makes, which is called again if its thread was cancelled in the
    /// middle of it.
    ///
    /// Only a closure that waits in direct style can be cancelled there. After a panic it is not
    /// called again.
    ///
    /// # Paper
    /// [HMP05 §4.3]: an evaluation that is interrupted is started again, or is frozen.
    ///
    /// # Examples
    /// ```
    /// use selvedge::direct::{direct, sleep, spawn, wait, yield_now};
    /// use selvedge::lazy::Lazy;
    /// use std::time::Duration;
    ///
    /// let answer = selvedge::run_local(direct(|| {
    ///     let slow = Lazy::again(|| {
    ///         sleep(Duration::from_millis(1));
    ///         42
    ///     });
    ///     let forced = slow.clone();
    ///     let hasty = spawn(move || *wait(forced.force()));
    ///     yield_now();
    ///     hasty.cancel();
    ///     *wait(slow.force())
    /// }))?;
    /// assert_eq!(answer, 42);
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn again(body: impl Fn() -> T + Send + 'static) -> Lazy<T>
    where
        T: Send + 'static,
    {
        Lazy::of(NodeHandle::new(Restarted(body), Location::caller()))
    }

    /// A value that the future makes.
    #[track_caller]
    #[inline]
    pub fn future(body: impl Future<Output = T> + Send + 'static) -> Lazy<T>
    where
        T: Send + 'static,
    {
        Lazy::of(NodeHandle::new(Resumable(body), Location::caller()))
    }

    /// A value that is there.
    ///
    /// It is `'static`, because its drop may be put off: see the section "Memory" above.
    /// ```compile_fail,E0597
    /// use selvedge::lazy::Lazy;
    ///
    /// let cloth = String::from("cloth");
    /// let borrows = Lazy::ready(&cloth);
    /// ```
    #[track_caller]
    #[inline]
    pub fn ready(value: T) -> Lazy<T>
    where
        T: 'static,
    {
        Lazy::of(NodeHandle::ready(value, Location::caller()))
    }

    #[inline(always)]
    fn of(node: NodeHandle) -> Lazy<T> {
        Lazy { node, _value: PhantomData }
    }

    pub(crate) fn node(&self) -> &NodeHandle {
        &self.node
    }

    /// Gives the value a name for the message of a circle.
    ///
    /// # Panics
    /// If the value has been cloned.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Lazy;
    /// use std::sync::{Arc, OnceLock};
    ///
    /// let own = Arc::new(OnceLock::<Lazy<u32>>::new());
    /// let tail = own.clone();
    /// let body = async move { *tail.get().unwrap().force().await + 1 };
    /// let snake = Lazy::future(body).named("snake");
    /// own.set(snake.clone()).unwrap();
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let failed = selvedge::block_on(snake.try_force()).unwrap_err();
    /// assert!(failed.is_loop());
    /// assert!(failed.message().starts_with("<<loop>>: snake ("), "{failed}");
    /// ```
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Lazy<T> {
        self.node.name(name);
        self
    }

    /// The value, if it is there.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the node was made for values of type `T`, and is READY.
        self.node.head().is_ready().then(|| unsafe { self.node.value() })
    }

    /// Whether the value is there.
    pub fn is_ready(&self) -> bool {
        self.node.head().is_ready()
    }

    /// Whether the value will never be there.
    pub fn has_failed(&self) -> bool {
        self.node.head().state() == FAILED
    }

    /// The value. If it is not there, the thread evaluates it, or waits for the thread that does.
    ///
    /// # Panics
    /// If the body panicked, or needs its own value. If the value is not there, within the body of
    /// a transaction.
    #[track_caller]
    #[inline]
    pub fn force(&self) -> impl Future<Output = &T> {
        let forced = self.try_force();
        async { forced.await.unwrap_or_else(|failed| failed.throw()) }
    }

    /// The value, or the reason why there is none.
    ///
    /// # Errors
    /// If the body panicked, or needs its own value; and if too many bodies nest on the native
    /// stack (see the section "Memory" above): then the value stays as it was.
    ///
    /// # Panics
    /// Within the body of a transaction, if the value is not there.
    #[track_caller]
    #[inline]
    pub fn try_force(&self) -> impl Future<Output = Result<&T, NoValueError>> {
        let place = Location::caller();
        async move {
            if let Some(value) = self.get() {
                // A body is a computation: the budget ends no poll within it.
                if !is_within() {
                    budget::pay(1).await;
                }
                return Ok(value);
            }
            Settle::new(&self.node, place).await?;
            Ok(self.get().expect("a node that is settled and has not failed has its value"))
        }
    }

    /// The value, forced on this OS thread, which blocks while another thread evaluates it.
    ///
    /// # Panics
    /// As [`force`](Lazy::force); if a chain of bodies block for one another and the kernel refuses
    /// an OS thread for the rest of the chain; and if it has to do more than read the value within
    /// a step of a Selvedge thread: await the force there, or in direct style
    /// `wait(value.force())`.
    #[track_caller]
    #[inline]
    pub fn force_blocking(&self) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        settle_blocking(&self.node);
        self.get().expect("a node that is settled and has not failed has its value")
    }

    /// The value moved out, if it is there and this is its only handle.
    ///
    /// # Errors
    /// Gives the handle back.
    pub fn into_value(self) -> Result<T, Lazy<T>> {
        // SAFETY: the node was made for values of type `T`.
        unsafe { self.node.into_value() }.map_err(Lazy::of)
    }

    /// Whether both are handles of one value.
    pub fn is_same(&self, other: &Lazy<T>) -> bool {
        self.node.pointer() == other.node.pointer()
    }
}

impl<T: Send + Sync + 'static> Lazy<T> {
    /// The value that `f` makes of this one, when it is needed.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Lazy;
    ///
    /// let mut count = Lazy::ready(0u32);
    /// for _ in 0..10_000 {
    ///     count = count.map(|count| count + 1);
    /// }
    /// assert_eq!(*count.force_blocking(), 10_000);
    /// ```
    #[track_caller]
    #[must_use]
    pub fn map<U: Send + 'static>(&self, f: impl FnOnce(&T) -> U + Send + 'static) -> Lazy<U> {
        let value = self.clone();
        Lazy::future(async move { f(value.force().await) })
    }
}

impl<T> Clone for Lazy<T> {
    /// Another handle of the same value.
    #[inline]
    fn clone(&self) -> Lazy<T> {
        Lazy::of(self.node.clone())
    }
}

impl<T: 'static> From<T> for Lazy<T> {
    /// As [`ready`](Lazy::ready).
    /// ```compile_fail,E0597
    /// use selvedge::lazy::Lazy;
    ///
    /// let cloth = String::from("cloth");
    /// let borrows: Lazy<&String> = (&cloth).into();
    /// ```
    #[track_caller]
    fn from(value: T) -> Lazy<T> {
        Lazy::ready(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("Lazy").field(value).finish(),
            None if self.has_failed() => f.write_str("Lazy(failed)"),
            None => f.write_str("Lazy(not there)"),
        }
    }
}
