//! Threads with a result ([`spawn`]), and the handles that wait for it ([`JoinHandle`]).
//!
//! The file has what a program sees: the functions that create such a thread, and the handle.
//! `joinable.rs` has the thread itself, and `join_state.rs` the protocol between the two.

use crate::arena::{self, Key};
use crate::body::{self, create};
use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::header::{CANCELLABLE, MOBILE};
use crate::joinable::{JoinCell, JoinError, Joinable};
use crate::release::release_in_turn;
use crate::thread::Thread;
use crate::wait_site::WaitSite;
use crate::{ArenaFullError, Cpu, waker};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, ready};

/// Creates a thread that runs `future`, and returns a handle to wait for its result.
///
/// The thread is ready at once, behind the threads that are ready already; dropping the handle lets
/// it run on unobserved. Its block holds the result beside the future: 8 + 16 + the sizes of both,
/// rounded up to 8.
///
/// On a CPU of a [`Group`](crate::Group) the thread may move among the group's; under other
/// schedulers it stays where it was created. A future that is not `Send` goes to [`spawn_local`].
///
/// # Panics
/// Outside of a Selvedge thread, and if the arena is full: see [`try_spawn`].
///
/// # Paper
/// [Del §2.1] `spawn`; [HMP05 §2.1] `forkIO`.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn};
///
/// let sum = round_robin(async {
///     let halves = [spawn(async { 20 }), spawn(async { 22 })];
///     let mut sum = 0;
///     for half in halves {
///         sum += half.await.unwrap();
///     }
///     sum
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    try_spawn(future).unwrap_or_else(|full| panic!("{full}"))
}

/// As [`spawn`], for a future that must stay on its OS thread.
///
/// # Panics
/// As [`spawn`].
#[inline]
pub fn spawn_local<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    create_joinable::<false, false, F>(here(), future, CANCELLABLE).unwrap_or_else(|full| panic!("{full}"))
}

/// As [`spawn`], for programs that go on when there is no room for another thread.
///
/// # Errors
/// If the arena is full.
///
/// # Panics
/// Outside of a Selvedge thread.
#[inline]
pub fn try_spawn<F>(future: F) -> Result<JoinHandle<F::Output>, ArenaFullError>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let cpu = here();
    create_joinable::<false, true, F>(cpu, future, cpu.mobility() | CANCELLABLE)
}

#[inline(always)]
fn here<'a>() -> &'a CpuInner {
    current().expect("spawn() must be called within a Selvedge thread")
}

impl Cpu {
    /// As [`spawn`], for a caller outside of any thread. The new thread is queued behind the
    /// threads that are [woken](Cpu::woken) already.
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn<F>(&mut self, future: F) -> Result<JoinHandle<F::Output>, ArenaFullError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let cpu = self.inner();
        create_joinable::<false, false, F>(cpu, future, cpu.mobility() | CANCELLABLE)
    }

    /// As [`spawn_local`], for a caller outside of any thread.
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_local<F: Future + 'static>(
        &mut self,
        future: F,
    ) -> Result<JoinHandle<F::Output>, ArenaFullError> {
        create_joinable::<false, false, F>(self.inner(), future, CANCELLABLE)
    }

    /// As [`spawn`](Cpu::spawn), for the main thread of a program. Reports name it "main".
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_main<F>(&mut self, future: F) -> Result<JoinHandle<F::Output>, ArenaFullError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let cpu = self.inner();
        create_joinable::<true, false, F>(cpu, future, cpu.mobility() | CANCELLABLE)
    }

    /// As [`spawn_local`](Cpu::spawn_local), for the main thread of a program. Reports name it
    /// "main".
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_main_local<F: Future + 'static>(
        &mut self,
        future: F,
    ) -> Result<JoinHandle<F::Output>, ArenaFullError> {
        create_joinable::<true, false, F>(self.inner(), future, CANCELLABLE)
    }
}

/// Creates a joinable thread. `MOVES` says that a step creates it, with the tags of a thread that
/// may move.
#[inline(always)]
fn create_joinable<const MAIN: bool, const MOVES: bool, F: Future + 'static>(
    cpu: &CpuInner,
    future: F,
    tags: u32,
) -> Result<JoinHandle<F::Output>, ArenaFullError> {
    let (key, body) = create(cpu, || Joinable::<F, MAIN>::new(future), tags)?;
    // SAFETY: created above, and ours. If `MOVES`, the caller has given it the tags of a mobile
    // thread.
    unsafe {
        match MOVES {
            true => cpu.push_mobile(key),
            false => cpu.push_woken(Thread::from_key(key)),
        }
    }
    // SAFETY: `create` has returned the address of the body that it has written.
    let cell = unsafe { NonNull::new_unchecked(&raw mut (*body).cell) };
    Ok(JoinHandle { key, cell, _result: PhantomData })
}

/// The right to wait for a thread's result: a future of `Result<T, JoinError>`.
///
/// Dropping it lets the thread run on. It may be awaited under any executor, and on any OS thread
/// if `T` is `Send`.
///
/// # Panics
/// When awaited again after it has returned the result.
#[must_use = "a thread's panic is seen only if its handle is awaited; drop it to let the thread run unobserved"]
pub struct JoinHandle<T> {
    key: Key,
    cell: NonNull<JoinCell<T>>,
    _result: PhantomData<T>,
}

// SAFETY: the handle and its thread share the atomic words of the cell. Besides, the result moves
// from the thread to the handle: a T, which is Send, or an exception, which is Send too.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: through a shared reference the handle only reads and sets the atomic words of the cell.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    #[inline(always)]
    fn cell(&self) -> &JoinCell<T> {
        // SAFETY: the block is freed only after `drop_handle`, so the cell is live. The thread
        // writes the result through a raw pointer of `UnsafeCell`, and the other fields are atomic.
        unsafe { self.cell.as_ref() }
    }

    /// Whether the thread is over.
    pub fn is_finished(&self) -> bool {
        self.cell().state.is_finished()
    }

    /// Declares that the handle stays on this OS thread, and is used only here.
    ///
    /// A scheduler calls it for the handle of its main thread. An OS thread that has a handle may
    /// cancel its thread. So while the handle may be elsewhere, the scheduler does not know whether
    /// its thread can still be woken. It then reports a deadlock only when all other OS threads of
    /// the process are quiet.
    pub fn stays(&self) {
        self.cell().stays();
    }

    /// The result, if the thread is over and the result has not been taken before.
    pub fn try_join(&mut self) -> Option<Result<T, JoinError>> {
        // SAFETY: `is_finished` has seen FINISHED, so the thread has written the result and does
        // not reach it again. `self` is borrowed exclusively.
        self.is_finished().then(|| unsafe { (*self.cell().result.get()).take() }).flatten()
    }

    /// Cancels the thread. The thread does not run on, even if it waits, and its destructors run.
    /// The thread that joins it gets [`JoinError::Cancelled`], unless the thread ends by itself
    /// before.
    ///
    /// The thread is made ready, and the cancellation takes effect when the scheduler comes to it.
    /// A running thread finishes its step. A thread within a [`shield`](crate::shield()) leaves the
    /// shield first. To wait until the destructors have run, await the handle.
    ///
    /// # Examples
    /// ```
    /// use selvedge::{JoinError, round_robin, spawn};
    ///
    /// round_robin(async {
    ///     let idle = spawn(std::future::pending::<()>());
    ///     idle.cancel();
    ///     assert!(matches!(idle.await, Err(JoinError::Cancelled)));
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    ///
    /// # Complexity
    /// As a wake-up: constant.
    #[doc(alias = "abort")]
    pub fn cancel(&self) {
        self.cell().cancel();
        if !self.is_finished() {
            waker::resume_in_step(arena::owner(self.key), self.key);
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_finished() && self.wait(cx) {
            return Poll::Pending;
        }
        ready!(budget::spend(cx, 1));
        // SAFETY: the handle has seen FINISHED, in `is_finished` or in `wait`. So the thread has
        // written the result and does not reach it again. `self` is borrowed exclusively.
        let result = unsafe { (*self.cell.as_ptr()).result.get_mut().take() };
        Poll::Ready(result.expect("a join handle is not polled after it has ended"))
    }
}

impl<T> JoinHandle<T> {
    /// Gives up the handle's part of the cell. The caller is its destructor.
    #[inline(never)]
    fn leave(&mut self) {
        retract(self.cell.as_ptr());
        if self.cell().state.drop_handle() {
            // SAFETY: `drop_handle` has seen FINISHED, so the thread has left its block to this
            // handle, which is being dropped. The result borrows nothing, because
            // `create_joinable`, which alone makes handles, asks for a future that borrows nothing.
            unsafe { release_in_turn(self.key) };
        }
    }

    /// Makes the caller of the handle's `poll` the joiner. False if the thread has finished.
    #[inline(never)]
    fn wait(&self, cx: &mut Context<'_>) -> bool {
        let direct = direct(cx);
        let waker = || direct.map_or_else(|| cx.waker().clone(), |cpu| cpu.keyed_waker());
        let waits = self.cell().state.set_joiner(waker());
        if waits && let Some(cpu) = direct {
            cpu.tell(|observer| observer.waits_for(self.key.get(), "which it joins"));
            let here = cpu.step.id == arena::owner(self.key) && arena::header(self.key).head() & MOBILE == 0;
            // The request is known by the address of the cell, because the handle itself may move.
            cpu.ask_block(self.cell.as_ptr(), WaitSite::join(self.key), here);
        }
        waits
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(cpu) = current()
            && cpu.asks_nothing()
            && self.is_finished()
            && ptr::eq(cpu.base.body(self.key), self.cell.as_ptr().cast())
            // SAFETY: `is_finished` has seen FINISHED, so only the handle reaches the result.
            && unsafe { (*self.cell().result.get()).is_none() }
        {
            // SAFETY: the thread has finished, so it has left its block to this handle, which is
            // being dropped. The comparison of addresses shows that the cell lies in the block and
            // not on the heap. Only the result in the cell would need to be dropped, and it is
            // gone.
            unsafe { body::free(cpu, self.key) };
            return;
        }
        self.leave();
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({}{})", self.key, if self.is_finished() { ", over" } else { "" })
    }
}
