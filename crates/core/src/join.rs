//! Threads with a result ([`spawn`]), and the handles that wait for it ([`JoinHandle`]).
//!
//! A joinable thread is one block, like any other thread. A [`JoinCell`] for the result lies in it
//! before the future. The handle points to the cell. The block is freed when both the thread and
//! the handle are gone.
//!
//! # The word of a cell
//! Thread and handle may be on different OS threads. They meet in one word of the cell, the
//! [`JoinState`]. Each of them exchanges the word as a whole:
//!
//! ```text
//!   the word       set_joiner (handle)   drop_handle (handle)           finish (thread)
//!   NO_JOINER      a joiner              HANDLE_GONE                    FINISHED
//!   a joiner       another joiner        HANDLE_GONE, drops the joiner  FINISHED, wakes the joiner
//!   FINISHED       no exchange           no exchange, frees the block   -
//!   HANDLE_GONE    -                     -                              FINISHED, frees the block
//! ```
//!
//! - **The joiner is told once.** The joiner is a waker in the word. The side that exchanges it out
//!   of the word owns it. The thread wakes it; the handle drops it, when the handle has another
//!   waker or is dropped itself.
//! - **One side frees the block.** FINISHED and HANDLE_GONE are the last words of the two sides.
//!   The second side to exchange finds the last word of the first one, and frees the block.
//! - **The handle sees the result.** The thread writes the result before its exchange to FINISHED,
//!   which is a Release. The handle reads the result only after it has loaded FINISHED with
//!   Acquire. While there is a handle, FINISHED stays, so a handle that has seen it exchanges
//!   nothing more.
//!
//! `tests/loom_join.rs` checks it.

use crate::arena::{self, Key};
use crate::body::{self, ThreadBody, create_ready, poll_to_end};
use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::exception::Exception;
use crate::header::{CANCELLABLE, MOBILE};
use crate::primitives::{AtomicU64, Ordering};
use crate::quietly::{drop_quietly, quietly};
use crate::vtable::{HandleSite, Payload, Polled};
use crate::wait_site::WaitSite;
use crate::{ArenaFull, Cpu, waker};
use std::any::type_name;
use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU8;
use std::task::{Context, Poll, Waker, ready};

/// The data that a joinable thread and its handle share, at the start of the thread's body.
struct JoinCell<T> {
    state: JoinState,
    /// [`CANCELLED`], [`SHIELDED`] and [`STAYS`].
    flags: AtomicU8,
    /// The thread writes it once, before it finishes the state.
    result: UnsafeCell<Option<Result<T, JoinError>>>,
}

/// The handle has cancelled the thread.
const CANCELLED: u8 = 1;
/// The thread has last stopped within a [`shield`](crate::shield()).
const SHIELDED: u8 = 2;
/// The handle has declared that it stays on its OS thread.
const STAYS: u8 = 4;

/// The word that a thread and its handle exchange: see the head of this file.
#[derive(Debug)]
#[doc(hidden)]
pub struct JoinState(AtomicU64);

/// The state of the handle when its thread finishes.
#[derive(Debug)]
#[doc(hidden)]
pub enum Joiner {
    /// There is a handle, which no thread or task awaits.
    None,
    /// The handle is awaited. The thread must wake this waker.
    Waiting(Waker),
    /// The handle is gone. The thread has the cell alone.
    HandleGone,
}

/// There is a handle, and no joiner.
const NO_JOINER: u64 = 0;
/// The thread has written its result.
const FINISHED: u64 = 1;
/// The handle has been dropped.
const HANDLE_GONE: u64 = 2;

impl Default for JoinState {
    fn default() -> JoinState {
        JoinState(AtomicU64::new(NO_JOINER))
    }
}

impl JoinState {
    /// The thread has ended.
    #[inline(always)]
    pub fn finish(&self) -> Joiner {
        match self.0.swap(FINISHED, Ordering::AcqRel) {
            HANDLE_GONE => Joiner::HandleGone,
            joiner => waker_of(joiner).map_or(Joiner::None, Joiner::Waiting),
        }
    }

    /// The handle is dropped. True if the thread has finished, so that the handle has the cell
    /// alone.
    #[inline(always)]
    pub fn drop_handle(&self) -> bool {
        // FINISHED is the thread's last word, and only the handle could exchange it.
        self.is_finished() || self.drop_handle_early()
    }

    #[inline(never)]
    fn drop_handle_early(&self) -> bool {
        match self.0.swap(HANDLE_GONE, Ordering::AcqRel) {
            FINISHED => true,
            joiner => {
                drop(waker_of(joiner));
                false
            }
        }
    }

    /// Makes `waker` the joiner, in place of an earlier one. False if the thread has finished.
    pub fn set_joiner(&self, waker: Waker) -> bool {
        let joiner = word_of(waker);
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            if now == FINISHED {
                drop(waker_of(joiner));
                return false;
            }
            match self.0.compare_exchange(now, joiner, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    drop(waker_of(now));
                    return true;
                }
                Err(other) => now = other,
            }
        }
    }

    /// Whether the thread has finished.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.0.load(Ordering::Acquire) == FINISHED
    }

    /// The Selvedge thread that awaits the handle, as the number of its CPU and its key.
    fn awaited_by(&self) -> Option<(u32, Key)> {
        keyed(self.0.load(Ordering::Acquire))
    }

    /// Whether the handle is gone.
    fn is_handle_gone(&self) -> bool {
        self.0.load(Ordering::Acquire) == HANDLE_GONE
    }
}

/// A waker as a word of a [`JoinState`]. A keyed waker becomes its two numbers, with bit 0 set. Bit
/// 0 is free, because a CPU's number has less than 31 bits. Any other waker goes into a box, and
/// the word is the address of the box, a multiple of 8.
fn word_of(waker: Waker) -> u64 {
    match waker::key_of(&waker) {
        Some((id, key)) => u64::from(id) << 33 | u64::from(key.get()) << 1 | 1,
        None => Box::into_raw(Box::new(waker)).expose_provenance() as u64,
    }
}

/// The two numbers of the keyed waker in a word. `None` if there is no keyed waker in it.
fn keyed(word: u64) -> Option<(u32, Key)> {
    if word & 1 == 0 {
        return None;
    }
    Some(((word >> 33) as u32, Key::new((word >> 1) as u32)?))
}

/// The waker in a word. The caller has exchanged the word out of the cell, or never put it there.
fn waker_of(word: u64) -> Option<Waker> {
    match word {
        NO_JOINER | FINISHED | HANDLE_GONE => None,
        word if let Some((id, key)) = keyed(word) => Some(waker::of(id, key.get())),
        boxed => {
            let boxed = std::ptr::with_exposed_provenance_mut::<Waker>(boxed as usize);
            // SAFETY: `word_of` has made the word of a box. By the contract above the word is not
            // in the cell any more, so no other call has it.
            Some(*unsafe { Box::from_raw(boxed) })
        }
    }
}

/// The body of a joinable thread. The cell comes first, because a handle does not know the type of
/// the future. A program's main thread (`MAIN`) is named "main" and not after its future.
#[repr(C)]
struct Joinable<F: Future, const MAIN: bool> {
    cell: JoinCell<F::Output>,
    future: MaybeUninit<F>,
}

/// The thread has no result.
#[derive(Debug)]
pub enum JoinError {
    /// It ended by an exception or a panic.
    Panicked(Exception),
    /// It was cancelled, or called [`exit`](crate::exit).
    Cancelled,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(e) => write!(f, "the thread ended by an exception: {e}"),
            JoinError::Cancelled => f.write_str("the thread was cancelled"),
        }
    }
}

impl std::error::Error for JoinError {}

/// Creates a thread that runs `future`, and returns a handle to wait for its result.
///
/// The thread is ready at once, behind those that are ready already; dropping the handle lets it
/// run on unobserved. Its block holds the result beside the future: 8 + 16 + the sizes of both,
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
    create_joinable::<false, F>(here(), future, CANCELLABLE).unwrap_or_else(|full| panic!("{full}"))
}

/// As [`spawn`], for programs that go on when there is no room for another thread.
///
/// # Errors
/// If the arena is full.
///
/// # Panics
/// Outside of a Selvedge thread.
#[inline]
pub fn try_spawn<F>(future: F) -> Result<JoinHandle<F::Output>, ArenaFull>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let cpu = here();
    create_joinable::<false, F>(cpu, future, cpu.mobility() | CANCELLABLE)
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
    pub fn spawn<F>(&mut self, future: F) -> Result<JoinHandle<F::Output>, ArenaFull>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let cpu = self.inner();
        create_joinable::<false, F>(cpu, future, cpu.mobility() | CANCELLABLE)
    }

    /// As [`spawn_local`], for a caller outside of any thread.
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_local<F: Future + 'static>(
        &mut self,
        future: F,
    ) -> Result<JoinHandle<F::Output>, ArenaFull> {
        create_joinable::<false, F>(self.inner(), future, CANCELLABLE)
    }

    /// As [`spawn`](Cpu::spawn), for the main thread of a program. Reports name it "main".
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_main<F>(&mut self, future: F) -> Result<JoinHandle<F::Output>, ArenaFull>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let cpu = self.inner();
        create_joinable::<true, F>(cpu, future, cpu.mobility() | CANCELLABLE)
    }

    /// As [`spawn_local`](Cpu::spawn_local), for the main thread of a program. Reports name it
    /// "main".
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_main_local<F: Future + 'static>(
        &mut self,
        future: F,
    ) -> Result<JoinHandle<F::Output>, ArenaFull> {
        create_joinable::<true, F>(self.inner(), future, CANCELLABLE)
    }
}

#[inline(always)]
fn create_joinable<const MAIN: bool, F: Future + 'static>(
    cpu: &CpuInner,
    future: F,
    tags: u32,
) -> Result<JoinHandle<F::Output>, ArenaFull> {
    let body = || Joinable::<F, MAIN> { cell: JoinCell::new(), future: MaybeUninit::new(future) };
    let (key, body) = create_ready(cpu, body, tags)?;
    // SAFETY: `create_ready` has returned the address of the body that it has written.
    let cell = unsafe { NonNull::new_unchecked(&raw mut (*body).cell) };
    Ok(JoinHandle { key, cell, _result: PhantomData })
}

impl<T> JoinCell<T> {
    #[inline(always)]
    fn new() -> JoinCell<T> {
        JoinCell { state: JoinState::default(), flags: AtomicU8::new(0), result: UnsafeCell::new(None) }
    }

    /// Leaves the result of the thread for the handle, if there is one. The joiner is told later,
    /// when the block is marked, because the handle may free the block from then on.
    #[inline(always)]
    fn conclude(&self, result: Result<T, JoinError>) -> Polled {
        if self.state.is_handle_gone() {
            return Self::conclude_alone(result);
        }
        // SAFETY: the thread calls this once, at its end. The handle reads the result only after it
        // has seen FINISHED, which the thread stores later.
        unsafe { self.result.get().write(Some(result)) };
        Polled::JoinerPending
    }

    #[inline(never)]
    fn conclude_alone(result: Result<T, JoinError>) -> Polled {
        let mut result = std::mem::ManuallyDrop::new(result);
        // SAFETY: `ManuallyDrop` never drops the result, so it is dropped once, here.
        unsafe { drop_quietly(&raw mut *result) };
        Polled::Done
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        self.flags.load(Ordering::Acquire) != 0 && self.is_cancelled_by_flags()
    }

    #[inline(never)]
    fn is_cancelled_by_flags(&self) -> bool {
        self.flags.load(Ordering::Acquire) & (CANCELLED | SHIELDED) == CANCELLED
    }

    fn handle(&self) -> HandleSite {
        if self.state.is_handle_gone() || self.flags.load(Ordering::Relaxed) & STAYS != 0 {
            return HandleSite::None;
        }
        self.state.awaited_by().map_or(HandleSite::Anywhere, |(id, key)| HandleSite::AwaitedBy(id, key))
    }

    /// Notes whether the thread has stopped within a shield. Tells whether the thread is cancelled
    /// now.
    #[inline(always)]
    fn has_stopped(&self, shielded: bool) -> bool {
        let usual = !shielded && self.flags.load(Ordering::Acquire) == 0;
        !usual && self.has_stopped_otherwise(shielded)
    }

    #[inline(never)]
    fn has_stopped_otherwise(&self, shielded: bool) -> bool {
        let flags = self.flags.load(Ordering::Relaxed);
        if (flags & SHIELDED != 0) != shielded {
            self.flags.fetch_xor(SHIELDED, Ordering::AcqRel);
        }
        self.is_cancelled()
    }
}

impl<F: Future + 'static, const MAIN: bool> ThreadBody for Joinable<F, MAIN> {
    #[inline]
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled {
        // SAFETY: by the caller's contract the body is live and pinned. Only the thread reaches the
        // future. The handle reaches the cell too, so the cell is borrowed by shared reference.
        let (cell, future) = unsafe { (&(*body).cell, (*body).future.as_mut_ptr()) };
        if cell.is_cancelled() {
            // SAFETY: the future is live and not being polled. After this the caller does not poll
            // it again, because the result is not `Pending`.
            return unsafe { Self::cancelled(body) };
        }
        // SAFETY: the future is live and pinned, as above. If it is not pending, `poll_to_end` has
        // dropped it, and the caller does not poll it again.
        let Some(output) = (unsafe { poll_to_end(future, cx) }) else {
            return match cell.has_stopped(cpu.is_shielded()) {
                // SAFETY: the future is pending, so it is live, and its poll has returned.
                true => unsafe { Self::cancelled(body) },
                false => Polled::Pending,
            };
        };
        match cell.conclude(Ok(output)) {
            Polled::JoinerPending if cpu.ends_plainly() => {
                cpu.mark_finished();
                // SAFETY: `conclude` has written the result, and `mark_finished` has marked the
                // block.
                unsafe { Self::tell_in_step(body, cpu) }
            }
            polled => polled,
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: by the caller's contract the future is live and is not polled again. The cell is
        // live until both thread and handle are gone, and the thread is not.
        let cell = unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            &(*body).cell
        };
        if cell.state.is_handle_gone() {
            return cpu.panicked(payload);
        }
        cell.conclude(Err(JoinError::Panicked(Exception::new(payload))))
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: the caller's contract.
        unsafe { Self::cancelled(body) }
    }

    unsafe fn tell(body: *mut Self) -> bool {
        // SAFETY: `conclude` has kept the cell for the handle, which frees it only after the
        // exchange in `finish`. The borrow of the cell ends with that exchange.
        match unsafe { (*body).cell.state.finish() } {
            Joiner::None => false,
            Joiner::Waiting(joiner) => {
                // A foreign waker may panic, and so may the `Unpark` of the joiner's event source.
                quietly(|| joiner.wake());
                false
            }
            Joiner::HandleGone => {
                // SAFETY: the handle has been dropped since `conclude`, so this thread has the cell
                // alone.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                true
            }
        }
    }

    unsafe fn release(body: *mut Self) {
        // SAFETY: the thread has finished, so only the cell is left of the body. The caller is the
        // handle, which has the cell alone and gives it up.
        unsafe { drop_quietly(&raw mut (*body).cell) };
    }

    unsafe fn handle(body: *mut Self) -> HandleSite {
        // SAFETY: by the caller's contract the body is live. The cell is borrowed by shared
        // reference.
        unsafe { (*body).cell.handle() }
    }

    fn name() -> &'static str {
        if MAIN { "main" } else { type_name::<F>() }
    }
}

impl<F: Future + 'static, const MAIN: bool> Joinable<F, MAIN> {
    /// Drops the future, and leaves the result `Cancelled`.
    ///
    /// # Safety
    /// As for [`cancel`](ThreadBody::cancel).
    #[cold]
    #[inline(never)]
    unsafe fn cancelled(body: *mut Self) -> Polled {
        // SAFETY: by the caller's contract the future is live and is not polled, now or later. The
        // cell is live until both thread and handle are gone, and the thread is not.
        unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            (*body).cell.conclude(Err(JoinError::Cancelled))
        }
    }

    /// As [`tell`](ThreadBody::tell), in the thread's last step.
    ///
    /// # Safety
    /// As for [`tell`](ThreadBody::tell).
    #[inline(always)]
    unsafe fn tell_in_step(body: *mut Self, cpu: &CpuInner) -> Polled {
        // SAFETY: as in `tell`.
        match unsafe { (*body).cell.state.finish() } {
            Joiner::None => Polled::JoinerTold,
            Joiner::Waiting(joiner) => {
                cpu.tell_in_step(joiner);
                Polled::JoinerTold
            }
            Joiner::HandleGone => {
                // SAFETY: as in `tell`.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                Polled::Done
            }
        }
    }
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
        self.cell().flags.fetch_or(STAYS, Ordering::Relaxed);
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
        self.cell().flags.fetch_or(CANCELLED, Ordering::AcqRel);
        if !self.is_finished() {
            waker::resume(current(), arena::owner(self.key), self.key);
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
            // handle, which is being dropped.
            unsafe { body::release(self.key) };
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

/// Runs `future`. While it runs, the thread cannot be [cancelled](JoinHandle::cancel): a
/// cancellation takes effect after it has ended.
///
/// It is for a section that must not be left half-way. It does not protect the future from a drop,
/// by a combinator around it or with the scheduler.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, shield, spawn, yield_now};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static BALANCE: AtomicU32 = AtomicU32::new(0);
/// round_robin(async {
///     let transfer = spawn(async {
///         shield(async {
///             BALANCE.fetch_add(1, Ordering::Relaxed);
///             yield_now().await;
///             BALANCE.fetch_sub(1, Ordering::Relaxed);
///         })
///         .await;
///         std::future::pending::<()>().await;
///     });
///     yield_now().await;
///     transfer.cancel();
///     assert!(transfer.await.is_err());
///     assert_eq!(BALANCE.load(Ordering::Relaxed), 0);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield { future }
}

/// The future of [`shield`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Shield<F> {
    future: F,
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned with the shield, and no code here moves it.
        let polled = unsafe { self.map_unchecked_mut(|shield| &mut shield.future) }.poll(cx);
        if polled.is_pending()
            && let Some(cpu) = current()
        {
            cpu.shield();
        }
        polled
    }
}
