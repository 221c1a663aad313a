//! Threads with a result, and the handles that wait for it.
//!
//! Such a thread is still one block: before its future lies a [`Cell`](JoinCell) for the result,
//! which the handle reaches. The block goes when both the thread and the handle are gone.
//!
//! Thread and handle may be on different OS threads. All that passes between them passes through
//! one word of the cell, which each exchanges as a whole:
//!
//! ```text
//!            handle: who awaits              handle: dropped
//!   NOBODY ─────────────────▶ a joiner ───────────────────────▶ GONE ── thread ends: frees block
//!      │                         │
//!      └── thread ends ──────────┴──▶ OVER ── handle takes the result; dropped, it frees the block
//! ```
//!
//! Whoever finds the other's last word there frees the block; whoever finds a joiner there has it.
//! The result is written before the exchange to OVER (Release), and read after it was seen
//! (Acquire); OVER stays, so that who has seen it exchanges nothing. `tests/loom_join.rs` checks
//! it.

use crate::arena::{self, Key};
use crate::body::{self, Body, create_ready, poll_to_end};
use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::exception::Exception;
use crate::header::{CANCELLABLE, MOBILE};
use crate::primitives::{AtomicU64, Ordering};
use crate::quietly::{drop_quietly, quietly};
use crate::vtable::{Handle, Payload, Polled};
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

/// What a joinable thread and its handle share, at the start of the thread's body.
struct JoinCell<T> {
    meeting: Meeting,
    /// [`CANCELLED`], [`SHIELDED`] and [`HERE`].
    flags: AtomicU8,
    /// Written once, before the thread says OVER.
    result: UnsafeCell<Option<Result<T, JoinError>>>,
}

/// The handle has asked for the thread's end.
const CANCELLED: u8 = 1;
/// The thread has last stopped within a [`shield`](crate::shield()).
const SHIELDED: u8 = 2;
/// The handle has declared that it stays on its OS thread.
const HERE: u8 = 4;

/// The word through which a thread and its handle meet.
#[derive(Debug)]
#[doc(hidden)]
pub struct Meeting(AtomicU64);

/// Whom a thread finds at its end.
#[derive(Debug)]
#[doc(hidden)]
pub enum Joiner {
    /// The handle, which nobody awaits.
    None,
    /// Somebody to be told.
    Waits(Waker),
    /// No handle any more: the cell is the thread's.
    Gone,
}

const NOBODY: u64 = 0;
const OVER: u64 = 1;
const GONE: u64 = 2;

impl Default for Meeting {
    fn default() -> Meeting {
        Meeting(AtomicU64::new(NOBODY))
    }
}

impl Meeting {
    /// The thread has ended.
    #[inline(always)]
    pub fn end(&self) -> Joiner {
        match self.0.swap(OVER, Ordering::AcqRel) {
            GONE => Joiner::Gone,
            joiner => waker_of(joiner).map_or(Joiner::None, Joiner::Waits),
        }
    }

    /// The handle is dropped. True if the thread is over: the cell is the handle's.
    #[inline(always)]
    pub fn leave(&self) -> bool {
        // The thread's last word, which nothing exchanges any more.
        self.is_over() || self.leave_early()
    }

    #[inline(never)]
    fn leave_early(&self) -> bool {
        match self.0.swap(GONE, Ordering::AcqRel) {
            OVER => true,
            joiner => {
                drop(waker_of(joiner));
                false
            }
        }
    }

    /// Has `waker` told of the end. False if the thread is over.
    pub fn join(&self, waker: Waker) -> bool {
        let joiner = word_of(waker);
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            if now == OVER {
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

    /// Whether the thread is over.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == OVER
    }

    /// The thread of ours that awaits the handle, as CPU and key.
    fn awaited_by(&self) -> Option<(u32, Key)> {
        keyed(self.0.load(Ordering::Acquire))
    }

    /// Whether the handle is gone.
    fn is_alone(&self) -> bool {
        self.0.load(Ordering::Acquire) == GONE
    }
}

/// A keyed waker as its two numbers, with the lowest bit set, which is left over since a CPU's
/// number is small; any other in a box, whose address is a multiple of 8.
fn word_of(waker: Waker) -> u64 {
    match waker::key_of(&waker) {
        Some((id, key)) => u64::from(id) << 33 | u64::from(key.get()) << 1 | 1,
        None => Box::into_raw(Box::new(waker)).expose_provenance() as u64,
    }
}

/// The two numbers of a keyed waker.
fn keyed(word: u64) -> Option<(u32, Key)> {
    if word & 1 == 0 {
        return None;
    }
    Some(((word >> 33) as u32, Key::new((word >> 1) as u32)?))
}

/// Takes the waker out of a word that is no longer in the cell.
fn waker_of(word: u64) -> Option<Waker> {
    match word {
        NOBODY | OVER | GONE => None,
        word if let Some((id, key)) = keyed(word) => Some(waker::of(id, key.get())),
        boxed => {
            let boxed = std::ptr::with_exposed_provenance_mut::<Waker>(boxed as usize);
            // SAFETY: made in `word_of` from a box, and exchanged out of the cell (or never put
            // there), so that it is ours alone.
            Some(*unsafe { Box::from_raw(boxed) })
        }
    }
}

/// A joinable thread's body. The cell comes first, so that a handle finds it without knowing the
/// future.
///
/// That of a program's main thread is named so, because the type of its future says no more than
/// where the program begins.
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
/// Outside of a thread of ours, and if the arena is full: see [`try_spawn`].
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
/// Outside of a thread of ours.
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
    current().expect("spawn() needs a thread of ours to be called in")
}

impl Cpu {
    /// As [`spawn`], from outside: creates a thread with a result and puts it behind those already
    /// [woken](Cpu::woken).
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

    /// As [`spawn_local`], from outside.
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn_local<F: Future + 'static>(
        &mut self,
        future: F,
    ) -> Result<JoinHandle<F::Output>, ArenaFull> {
        create_joinable::<false, F>(self.inner(), future, CANCELLABLE)
    }

    /// As [`spawn`](Cpu::spawn), for the main thread of a program, which reports call "main".
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

    /// As [`spawn_local`](Cpu::spawn_local), for the main thread of a program, which reports call
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
    // SAFETY: the body was just created; its cell is the first field.
    let cell = unsafe { NonNull::new_unchecked(&raw mut (*body).cell) };
    Ok(JoinHandle { key, cell, _result: PhantomData })
}

impl<T> JoinCell<T> {
    #[inline(always)]
    fn new() -> JoinCell<T> {
        JoinCell { meeting: Meeting::default(), flags: AtomicU8::new(0), result: UnsafeCell::new(None) }
    }

    /// The thread is over: leaves the result for the handle, if there is one. The joiner is told
    /// when the block is marked, since from then on the block may go.
    #[inline(always)]
    fn conclude(&self, result: Result<T, JoinError>) -> Polled {
        if self.meeting.is_alone() {
            return Self::conclude_alone(result);
        }
        // SAFETY: written once, by the thread's end, over a `None`; read by the handle only after
        // OVER.
        unsafe { self.result.get().write(Some(result)) };
        Polled::Untold
    }

    #[inline(never)]
    fn conclude_alone(result: Result<T, JoinError>) -> Polled {
        let mut result = std::mem::ManuallyDrop::new(result);
        // SAFETY: it is dropped here, once.
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

    fn handle(&self) -> Handle {
        if self.meeting.is_alone() || self.flags.load(Ordering::Relaxed) & HERE != 0 {
            return Handle::None;
        }
        self.meeting.awaited_by().map_or(Handle::Anywhere, |(id, key)| Handle::AwaitedBy(id, key))
    }

    /// The thread has stopped, within a shield or not, which is noted. Whether it is cancelled.
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

impl<F: Future + 'static, const MAIN: bool> Body for Joinable<F, MAIN> {
    #[inline]
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled {
        // SAFETY: the body is live and pinned, says the caller. The future is touched by its thread
        // alone; the cell is shared with the handle, by reference only.
        let (cell, future) = unsafe { (&(*body).cell, (*body).future.as_mut_ptr()) };
        if cell.is_cancelled() {
            // SAFETY: live and not being polled; afterwards it is over.
            return unsafe { Self::cancelled(body) };
        }
        // SAFETY: as above; if it is not pending it is over, and not polled again.
        let Some(output) = (unsafe { poll_to_end(future, cx) }) else {
            return match cell.has_stopped(cpu.is_shielded()) {
                // SAFETY: pending, hence live and no longer being polled.
                true => unsafe { Self::cancelled(body) },
                false => Polled::Pending,
            };
        };
        match cell.conclude(Ok(output)) {
            Polled::Untold if cpu.ends_plainly() => {
                cpu.mark_over();
                // SAFETY: it is over, and its block is marked.
                unsafe { Self::tell_in_step(body, cpu) }
            }
            polled => polled,
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: live and not polled again, says the caller; the cell is live until both thread
        // and handle are gone.
        let cell = unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            &(*body).cell
        };
        if cell.meeting.is_alone() {
            return cpu.panicked(payload);
        }
        cell.conclude(Err(JoinError::Panicked(Exception::new(payload))))
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: the caller's contract.
        unsafe { Self::cancelled(body) }
    }

    unsafe fn tell(body: *mut Self) -> bool {
        // SAFETY: over, and kept for the handle, which has not seen so yet. The borrow ends with
        // the exchange.
        match unsafe { (*body).cell.meeting.end() } {
            Joiner::None => false,
            Joiner::Waits(joiner) => {
                if let Err(foreign) = waker::fire_here(joiner) {
                    quietly(|| foreign.wake());
                }
                false
            }
            Joiner::Gone => {
                // SAFETY: the handle has gone meanwhile, so that nobody but us reaches the cell.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                true
            }
        }
    }

    unsafe fn release(body: *mut Self) {
        // SAFETY: over, so that only the cell is left; the caller is the handle, and gives it up.
        unsafe { drop_quietly(&raw mut (*body).cell) };
    }

    unsafe fn handle(body: *mut Self) -> Handle {
        // SAFETY: live, says the caller; the cell is shared by reference only.
        unsafe { (*body).cell.handle() }
    }

    fn name() -> &'static str {
        if MAIN { "main" } else { type_name::<F>() }
    }
}

impl<F: Future + 'static, const MAIN: bool> Joinable<F, MAIN> {
    /// Ends it before its time.
    ///
    /// # Safety
    /// As for [`cancel`](Body::cancel).
    #[cold]
    #[inline(never)]
    unsafe fn cancelled(body: *mut Self) -> Polled {
        // SAFETY: live and not being polled, says the caller; afterwards it is over. The cell is
        // live until both thread and handle are gone.
        unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            (*body).cell.conclude(Err(JoinError::Cancelled))
        }
    }

    /// As [`tell`](Body::tell), in the thread's last step.
    ///
    /// # Safety
    /// As for [`tell`](Body::tell).
    #[inline(always)]
    unsafe fn tell_in_step(body: *mut Self, cpu: &CpuInner) -> Polled {
        // SAFETY: as in `tell`.
        match unsafe { (*body).cell.meeting.end() } {
            Joiner::None => Polled::Told,
            Joiner::Waits(joiner) => {
                cpu.tell_in_step(joiner);
                Polled::Told
            }
            Joiner::Gone => {
                // SAFETY: the handle has gone meanwhile, so that nothing but this reaches the cell.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                Polled::Done
            }
        }
    }
}

/// The right to wait for a thread's result: a future of `Result<T, JoinError>`.
///
/// Dropping it lets the thread run on. It may be awaited under any executor, on any OS thread if
/// `T` is `Send`.
///
/// # Panics
/// When awaited again after it has returned the result.
#[must_use = "a thread's panic is seen by who awaits its handle; drop it to let the thread run unobserved"]
pub struct JoinHandle<T> {
    key: Key,
    cell: NonNull<JoinCell<T>>,
    _result: PhantomData<T>,
}

// SAFETY: thread and handle share the cell's atomic words, and pass the result, a T, from one to
// the other.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: by reference one can only read and set atomic words.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    #[inline(always)]
    fn cell(&self) -> &JoinCell<T> {
        // SAFETY: the block is kept until the handle goes; what others change in the cell meanwhile
        // is atomic.
        unsafe { self.cell.as_ref() }
    }

    /// Whether the thread is over.
    pub fn is_finished(&self) -> bool {
        self.cell().meeting.is_over()
    }

    /// Declares that the handle stays on the OS thread that it is on, and is used there alone. A
    /// scheduler of one's own says so of the one of its main thread: who holds a handle may cancel,
    /// so that of one that may be anywhere it is not known whether nothing can wake its thread any
    /// more; a deadlock is then reported only when no other OS thread of the process is awake.
    pub fn stays(&self) {
        self.cell().flags.fetch_or(HERE, Ordering::Relaxed);
    }

    /// The result, if the thread is over and it has not been taken before.
    pub fn try_join(&mut self) -> Option<Result<T, JoinError>> {
        // SAFETY: once the thread is over, only the handle reaches the result.
        self.is_finished().then(|| unsafe { (*self.cell().result.get()).take() }).flatten()
    }

    /// Cancels the thread: whatever it waits for, it does not run on, and its destructors run. Who
    /// joins it is told [`JoinError::Cancelled`], unless it has come to its end before.
    ///
    /// It happens when the scheduler next comes to the thread, which is made ready. A thread that
    /// is running finishes its step; one within a [`shield`](crate::shield()) leaves that first. To
    /// wait until the destructors have run, await the handle.
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
    /// Constant, as a wake-up.
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
        // SAFETY: the thread is over, and only the handle reaches the result.
        let result = unsafe { (*self.cell.as_ptr()).result.get_mut().take() };
        Poll::Ready(result.expect("a join handle is not polled after it has ended"))
    }
}

impl<T> JoinHandle<T> {
    /// The handle is dropped.
    #[inline(never)]
    fn leave(&mut self) {
        retract(self.cell.as_ptr());
        if self.cell().meeting.leave() {
            // SAFETY: the thread is over and left its block to the handle, which is gone.
            unsafe { body::release(self.key) };
        }
    }

    /// Has whatever polls the handle told of the thread's end. False if the thread is over.
    #[inline(never)]
    fn wait(&self, cx: &mut Context<'_>) -> bool {
        let direct = direct(cx);
        let waker = || direct.map_or_else(|| cx.waker().clone(), |cpu| cpu.keyed_waker());
        let waits = self.cell().meeting.join(waker());
        if waits && let Some(cpu) = direct {
            cpu.tell(|observer| observer.waits_for(self.key.get(), "which it joins"));
            let here = cpu.step.id == arena::owner(self.key) && arena::header(self.key).head() & MOBILE == 0;
            // The handle may move before it is dropped; the cell does not.
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
            // SAFETY: once the thread is over, only the handle reaches the result.
            && unsafe { (*self.cell().result.get()).is_none() }
        {
            // SAFETY: the thread is over and left its block to the handle, which is gone. The cell,
            // which lies at the block's start and not on the heap, has nothing to drop but the
            // result.
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

/// Runs `future` where the thread cannot be [cancelled](JoinHandle::cancel): a cancellation takes
/// effect when it has ended.
///
/// For a section that must not be left half-way. It does not protect from being dropped: by a
/// combinator around it, or with the scheduler.
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
        // SAFETY: the future is pinned with the shield; nothing moves out of it.
        let polled = unsafe { self.map_unchecked_mut(|shield| &mut shield.future) }.poll(cx);
        if polled.is_pending()
            && let Some(cpu) = current()
        {
            cpu.shield();
        }
        polled
    }
}
