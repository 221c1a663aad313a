//! The thread: a header of 8 bytes and a future, in one block of the arena.
//!
//! ```text
//!        ┌───────────── head ─────────────┬──────── link ────────┐
//!        │ offset of the vtable   │ state │ next key / wait site │  future ...
//!        └────────────────────────────────┴──────────────────────┘
//! bits     31                 4   3    0    32
//! ```
//!
//! A thread takes 8 + round_up_8(size of the future) bytes in all.
//!
//! The offset is taken from [`ANCHOR`], so that the pointer to the vtable fits in 27 bits (vtables
//! are aligned to 32). A vtable of another image (a program with this crate in a shared library) is
//! too far away, and has a copy near the anchor: see [`far`](crate::far). The state bits name the
//! thread's owner:
//!
//! | bits | name | meaning | set by | link holds |
//! |---|---|---|---|---|
//! | 0-1 = 0 | owned | a [`Thread`] handle or a run queue has it, or it is running | `resume`, creation | next key in a run queue |
//! | 0-1 = 1 | waiting here | its CPU keeps it; only threads of the same CPU can resume it | end of a step | where it waits |
//! | 0-1 = 2 | waiting | its CPU keeps it; anybody may resume it | end of a step | where it waits |
//! | 0-1 = 3 | over | the future is gone, a join handle still needs the block | end of a step, cancellation | nothing |
//! | 2 | sticky | a waker for it was once cloned, so that it can be woken at any time | end of a step | |
//! | 2 | noted | the same bit of a mobile thread: it was woken while it was owned | a waker | |
//! | 3 | mobile | it may run on any CPU of its group | creation | |
//! | 4 | cancellable | a join handle may cancel it, so that an event source gets its waker, not the thread | creation | |
//!
//! A thread stays sticky for its life. Copies of its waker are two numbers, which nobody counts,
//! and one may lie anywhere for any time: in a list of wakers that the thread's future has left in
//! an earlier step, say. To end it earlier they would have to carry a number of times that the
//! thread was cloned for, with no bits left in the pointer, or be counted, with an atomic operation
//! and an owner for each. A wake-up that comes while an event source has the thread itself would be
//! lost.
//!
//! A thread that is not mobile is touched on its CPU's OS thread alone; its words are atomic only
//! so that a stale key may be looked at. The head of a mobile one changes by the protocol in
//! [`state`](crate::state), its link belongs to whoever owns the thread.

use crate::arena::{self, GRANULE, GRANULES_MAX, Key};
use crate::cpu::CpuInner;
use crate::observe::ThreadId;
use crate::trace::Trace;
use crate::{ArenaFull, Cpu, far};
use std::any::{Any, type_name};
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

/// The two words before every future.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Header {
    pub(crate) head: AtomicU32,
    link: AtomicU32,
}

impl Header {
    #[inline(always)]
    pub(crate) fn head(&self) -> u32 {
        self.head.load(Ordering::Relaxed)
    }

    /// For who owns the thread or the free block, unless the thread is mobile and may be woken
    /// meanwhile.
    #[inline(always)]
    pub(crate) fn set_head(&self, head: u32) {
        self.head.store(head, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn link(&self) -> u32 {
        self.link.load(Ordering::Relaxed)
    }

    /// For who owns the thread or the free block.
    #[inline(always)]
    pub(crate) fn set_link(&self, link: u32) {
        self.link.store(link, Ordering::Relaxed);
    }
}

/// The head of a block that holds no thread.
pub(crate) const FREE: u32 = 0;

pub(crate) const STATE: u32 = 0b11;
pub(crate) const OWNED: u32 = 0;
pub(crate) const WAITING_HERE: u32 = 1;
pub(crate) const WAITING: u32 = 2;
pub(crate) const FINISHED: u32 = 3;
pub(crate) const STICKY: u32 = 0b100;
pub(crate) const NOTIFIED: u32 = 0b100;
pub(crate) const MOBILE: u32 = 0b1000;
pub(crate) const CANCELLABLE: u32 = 0b1_0000;
const TAGS: u32 = 0b1_1111;

/// What is known of a future once its type is forgotten.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct VTable {
    /// Runs the future until it is pending or over; drops it when over, and says so in the CPU's
    /// slot. It may unwind.
    poll: unsafe fn(*mut u8, &CpuInner),
    /// Drops the future, whose poll has unwound.
    panicked: unsafe fn(*mut u8, &CpuInner, Payload) -> Polled,
    /// Drops the future.
    cancel: unsafe fn(*mut u8) -> Polled,
    /// Tells the joiner of a thread that is over, once its block is marked so; whether nobody needs
    /// the block any more.
    tell: unsafe fn(*mut u8) -> bool,
    /// Drops what is left for the join handle of a thread that is over.
    release: unsafe fn(*mut u8),
    /// Who could cancel it.
    handle: unsafe fn(*mut u8) -> Handle,
    pub(crate) granules: u16,
    pub(crate) name: fn() -> &'static str,
}

/// What a panic was thrown with.
pub(crate) type Payload = Box<dyn Any + Send>;

/// How a poll ended. Unless it is pending, the future has been dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    Pending,
    Done,
    /// Over, and its joiner has been told: the block is the handle's, and may be gone.
    JoinerTold,
    /// Over, and its joiner is still to be told: by [`tell`], when the block is marked.
    JoinerPending,
    /// Over by a panic whose payload is with the CPU.
    Panicked,
}

/// What a thread knows of its join handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    /// There is none, or it stays on the thread's OS thread.
    None,
    /// It was awaited last by this thread of CPU `.0`.
    AwaitedBy(u32, Key),
    /// It may be on any OS thread.
    Anywhere,
}

/// Vtables are found at an offset from here.
static ANCHOR: VTable = VTable {
    poll: |_, _| {},
    panicked: |_, _, _| Polled::Done,
    cancel: |_| Polled::Done,
    tell: |_| true,
    release: |_| {},
    handle: |_| Handle::None,
    granules: 0,
    name: || "",
};

/// That of no thread, of any size.
#[cfg(test)]
pub(crate) fn vtable_of_nothing(granules: u16) -> VTable {
    VTable { granules, ..ANCHOR }
}

/// The distance of a static object from the anchor, if 32 bits hold it: always within one
/// executable.
pub(crate) fn offset<T>(object: &'static T) -> Option<u32> {
    let distance =
        (&raw const *object).expose_provenance().wrapping_sub((&raw const ANCHOR).expose_provenance());
    i32::try_from(distance as isize).ok().map(|d| d as u32)
}

/// The object at a distance from the anchor.
///
/// # Safety
/// `offset` is what [`offset`] returned for an object of this type.
pub(crate) unsafe fn at_offset<T>(offset: u32) -> &'static T {
    let address = (&raw const ANCHOR).addr().wrapping_add(offset as i32 as usize);
    // SAFETY: the caller promises that a static T lies there; its provenance was exposed by
    // `offset`.
    unsafe { &*std::ptr::with_exposed_provenance::<T>(address) }
}

pub(crate) fn vtable(head: u32) -> &'static VTable {
    // SAFETY: a live header's head is made in `create`, from the offset of a vtable and tags in the
    // low 5 bits, which the alignment of vtables keeps free.
    unsafe { at_offset(head & !TAGS) }
}

/// How a kind of thread lives in its block.
pub(crate) trait Body: 'static {
    /// # Safety
    /// `body` is live, pinned, and polled by no other caller; it is over when the result says so.
    /// If this unwinds, [`panicked`](Body::panicked) is to be called.
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled;

    /// Ends it after its poll has unwound.
    ///
    /// # Safety
    /// `body` is live, and is not polled again; it is over afterwards.
    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled;

    /// Ends it before its time.
    ///
    /// # Safety
    /// `body` is live and not being polled; it is over afterwards.
    unsafe fn cancel(body: *mut Self) -> Polled;

    /// Tells the joiner. If there is none any more, drops what is left and returns true: the block
    /// is the caller's to free. Else the handle may release the body at any time, and this may run
    /// any code.
    ///
    /// # Safety
    /// `body` is over, `JoinerPending`, and its block is marked as over; this is called once.
    unsafe fn tell(body: *mut Self) -> bool;

    /// Drops what is left for the join handle.
    ///
    /// # Safety
    /// `body` is over and was kept for the handle, which calls this once.
    unsafe fn release(body: *mut Self);

    /// Who could cancel it.
    ///
    /// # Safety
    /// `body` is live and not being polled.
    unsafe fn handle(_body: *mut Self) -> Handle {
        Handle::None
    }

    fn name() -> &'static str;
}

/// A thread that nobody joins: nothing but its future.
#[repr(transparent)]
struct Forked<F>(F);

/// The body of a thread that nobody joins.
pub(crate) fn forked<F: Future<Output = ()> + 'static>(future: F) -> impl Body {
    Forked(future)
}

impl<F: Future<Output = ()> + 'static> Body for Forked<F> {
    #[inline]
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, _: &CpuInner) -> Polled {
        // SAFETY: `body` is pinned in its block and exclusively ours, says the caller.
        match unsafe { poll_to_end(&raw mut (*body).0, cx) } {
            None => Polled::Pending,
            Some(()) => Polled::Done,
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: live and exclusively ours, says the caller.
        unsafe { drop_quietly(&raw mut (*body).0) };
        cpu.panicked(payload)
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: live and exclusively ours, says the caller.
        unsafe { drop_quietly(&raw mut (*body).0) };
        Polled::Done
    }

    unsafe fn tell(_: *mut Self) -> bool {
        unreachable!("a forked thread has no handle");
    }

    unsafe fn release(_: *mut Self) {
        unreachable!("a forked thread has no handle");
    }

    fn name() -> &'static str {
        type_name::<F>()
    }
}

/// Polls a future and drops it if it returns.
///
/// # Safety
/// The future is live, pinned, and exclusively the caller's; unless the result is `None` or this
/// unwinds it is dropped.
#[inline(always)]
pub(crate) unsafe fn poll_to_end<F: Future>(future: *mut F, cx: &mut Context<'_>) -> Option<F::Output> {
    // SAFETY: pinned and exclusively ours by this function's contract.
    match unsafe { Pin::new_unchecked(&mut *future) }.poll(cx) {
        Poll::Pending => None,
        Poll::Ready(output) => {
            // SAFETY: live until now, and never touched again.
            unsafe { drop_quietly(future) };
            Some(output)
        }
    }
}

/// Drops a value; a panic in its destructor ends there, after the panic hook has reported it.
///
/// # Safety
/// As for [`std::ptr::drop_in_place`].
pub(crate) unsafe fn drop_quietly<T>(value: *mut T) {
    // SAFETY: the caller's contract.
    quietly(|| unsafe { value.drop_in_place() });
}

/// Runs code that is not ours, as that of a foreign waker, where nothing may unwind; a panic ends
/// there, after the panic hook has reported it.
pub fn quietly(code: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(code)) else { return };
    // Its destructor may panic too.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// A body on the heap: it is too large for a block, or aligned to more than 8.
#[repr(transparent)]
struct Heap<B>(*mut B);

impl<B> Heap<B> {
    fn new(body: B) -> Heap<B> {
        Heap(Box::into_raw(Box::new(body)))
    }

    /// # Safety
    /// The body is over, and this is called once.
    unsafe fn free(&self) {
        // SAFETY: it came from a Box in `new`, and what was in it has been dropped.
        drop(unsafe { Box::from_raw(self.0.cast::<MaybeUninit<B>>()) });
    }
}

impl<B: Body> Body for Heap<B> {
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled {
        // SAFETY: the caller's contract, passed on to the body, which never moves from its box.
        unsafe {
            let polled = B::poll((*body).0, cx, cpu);
            if matches!(polled, Polled::Done | Polled::Panicked) {
                (*body).free();
            }
            polled
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: as above.
        unsafe {
            let ended = B::panicked((*body).0, cpu, payload);
            if ended != Polled::JoinerPending {
                (*body).free();
            }
            ended
        }
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: as above.
        unsafe {
            let ended = B::cancel((*body).0);
            if ended == Polled::Done {
                (*body).free();
            }
            ended
        }
    }

    unsafe fn tell(body: *mut Self) -> bool {
        // SAFETY: as above. If it is false, the body may be gone; else it is ours.
        unsafe {
            let free = B::tell((*body).0);
            if free {
                (*body).free();
            }
            free
        }
    }

    unsafe fn release(body: *mut Self) {
        // SAFETY: as above.
        unsafe {
            B::release((*body).0);
            (*body).free();
        }
    }

    unsafe fn handle(body: *mut Self) -> Handle {
        // SAFETY: as above.
        unsafe { B::handle((*body).0) }
    }

    fn name() -> &'static str {
        B::name()
    }
}

/// Creates a thread, not yet run, owned by the caller: its key, and where its body lies. The body
/// is made where it is to lie.
#[inline(always)]
pub(crate) fn create<B: Body>(
    cpu: &CpuInner,
    body: impl FnOnce() -> B,
    tags: u32,
) -> Result<(Key, *mut B), ArenaFull> {
    if const { fits::<B>() } {
        let key = place(cpu, body, tags)?;
        Ok((key, cpu.base.body(key).cast()))
    } else {
        let key = place(cpu, || Heap::new(body()), tags)?;
        // SAFETY: it was just created, and holds the pointer to a body that is there.
        Ok((key, unsafe { (*cpu.base.body(key).cast::<Heap<B>>()).0 }))
    }
}

/// Places a body in a block of the CPU's slab. If there is none, nothing is made.
#[inline(always)]
fn place<B: Body>(cpu: &CpuInner, body: impl FnOnce() -> B, tags: u32) -> Result<Key, ArenaFull> {
    let vtable: &'static VTable = const {
        &VTable {
            // SAFETY: the vtable is stored only in the head of a block that holds a `B`.
            poll: |body, cpu| unsafe { poll_body::<B>(body, cpu) },
            // SAFETY: as above.
            panicked: |body, cpu, payload| unsafe { B::panicked(body.cast(), cpu, payload) },
            // SAFETY: as above.
            cancel: |body| unsafe { B::cancel(body.cast()) },
            // SAFETY: as above.
            tell: |body| unsafe { B::tell(body.cast()) },
            // SAFETY: as above.
            release: |body| unsafe { B::release(body.cast()) },
            // SAFETY: as above.
            handle: |body| unsafe { B::handle(body.cast()) },
            granules: granules_of::<B>() as u16,
            name: B::name,
        }
    };
    let head = offset(vtable).unwrap_or_else(|| far::offset(vtable));
    let base = cpu.base;
    let key = cpu.alloc(granules_of::<B>())?;
    // SAFETY: the block is fresh from our slab, large enough (granules_of) and aligned (fits), and
    // only ours.
    unsafe { base.body(key).cast::<B>().write(body()) };
    base.header(key).set_head(head | OWNED | tags);
    Ok(key)
}

/// # Safety
/// As for [`Body::poll`].
unsafe fn poll_body<B: Body>(body: *mut u8, cpu: &CpuInner) {
    let mut cx = Context::from_waker(cpu.step_waker());
    // SAFETY: `body` is the live body of the thread being stepped, which the CPU holds exclusively.
    let polled = unsafe { B::poll(body.cast(), &mut cx, cpu) };
    if polled != Polled::Pending {
        cpu.ended(polled);
    }
}

/// Where the body of the thread `key` lies.
#[inline(always)]
pub(crate) fn body_of<B>(key: Key) -> *mut B {
    arena::body(key).cast()
}

/// Whether a body can live in the arena itself.
pub(crate) const fn fits<B>() -> bool {
    align_of::<B>() <= GRANULE && granules_of::<B>() <= GRANULES_MAX
}

const fn granules_of<B>() -> usize {
    (size_of::<Header>() + size_of::<B>()).div_ceil(GRANULE)
}

/// A thread: an owned, one-shot continuation.
///
/// It is what is left to do of an `async fn` that has stopped at a system call.
/// [`step`](Thread::step) runs it to its next one and returns the [`Trace`] node for it, which owns
/// what is left then. It cannot be resumed twice, and dropping it cancels it: its destructors run,
/// nothing else of it does.
///
/// A handle is 4 bytes; the thread is one block of 8 bytes plus the size of its future, rounded up
/// to 8.
///
/// # Paper
/// [LZ07 §3.1, Figure 4], [Del §6] (one-shot continuations).
///
/// # Examples
/// ```
/// use selvedge::{Cpu, Trace, yield_now};
///
/// let mut cpu = Cpu::new()?;
/// let thread = cpu.thread(async { yield_now().await })?;
/// let Trace::Yield(rest) = thread.step(&mut cpu) else { panic!() };
/// assert!(matches!(rest.step(&mut cpu), Trace::Ret));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Thread {
    key: Key,
    /// The future may be `!Send`, and the block belongs to one CPU.
    _local: PhantomData<*mut ()>,
}

const _: () = assert!(size_of::<Option<Thread>>() == 4);
const _: () = assert!(size_of::<Header>() == 8);

impl Thread {
    /// Bytes that a thread running `F` takes in the arena: 8 + the size of the future rounded up
    /// to 8.
    ///
    /// A future beyond 4,080 bytes, or one aligned to more than 8, lives on the heap; its thread
    /// takes 16 bytes here besides. This is the size for [`fork`](crate::fork) and [`Cpu::thread`];
    /// [`spawn`](crate::spawn) adds the result.
    pub const fn size_of<F>() -> usize {
        if fits::<F>() { granules_of::<F>() * GRANULE } else { size_of::<Header>() + size_of::<Heap<F>>() }
    }

    /// Runs the thread to its next system call. A step of a thread that yields takes 4-5 ns.
    ///
    /// A panic in it ends this thread alone: it becomes [`Trace::Panic`], or reaches the thread's
    /// joiner.
    ///
    /// # Panics
    /// If a CPU created the thread that is neither this one nor, for a thread that may move, of its
    /// group, when this one would have to keep it (in a debug build: always). It is cancelled.
    #[inline(always)]
    pub fn step(self, cpu: &mut Cpu) -> Trace {
        cpu.step(self)
    }

    /// The number of the thread, by which a scheduler may keep what it knows of it. It stays the
    /// same for the thread's life; a later thread may have it again.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.key.get()
    }

    /// Its identity, by which it can be looked at while others have it.
    #[inline(always)]
    pub fn identity(&self) -> ThreadId {
        ThreadId(self.key)
    }

    /// The name of the thread's code: the type name of its future, or "main".
    pub fn name(&self) -> &'static str {
        (vtable(arena::header(self.key).head()).name)()
    }

    /// Whether a join handle can cancel it while it waits. An event source that is handed such a
    /// thread gives it into the CPU's [keeping](Cpu::keep) and holds the waker: one that holds the
    /// thread itself makes a cancellation wait for the event.
    #[inline(always)]
    pub fn is_cancellable(&self) -> bool {
        arena::header(self.key).head() & CANCELLABLE != 0
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    #[inline(always)]
    pub(crate) fn into_key(self) -> Key {
        let key = self.key;
        std::mem::forget(self);
        key
    }

    /// # Safety
    /// The thread is live and owned by the caller, who gives it up for the handle.
    #[inline(always)]
    pub(crate) unsafe fn from_key(key: Key) -> Thread {
        Thread { key, _local: PhantomData }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: the handle owned the thread, and is gone.
        unsafe { cancel(self.key) }
    }
}

impl Thread {
    /// The thread in a form that may go to another OS thread, if it may run there: if it was
    /// created by [`spawn`](crate::spawn), [`fork`](crate::fork) or [`Cpu::send_thread`] on a CPU
    /// of a [`Group`](crate::Group).
    ///
    /// # Errors
    /// Gives the thread back if it belongs to one CPU.
    #[inline(always)]
    pub fn into_send(self) -> Result<SendThread, Thread> {
        if arena::header(self.key).head() & MOBILE == 0 {
            return Err(self);
        }
        Ok(SendThread { key: self.into_key() })
    }
}

/// A [`Thread`] that may be on its way to another CPU of its group: its future is `Send`.
///
/// A handle is 4 bytes, as is an `Option` of one. Dropping it cancels the thread.
pub struct SendThread {
    key: Key,
}

const _: () = assert!(size_of::<Option<SendThread>>() == 4);

impl SendThread {
    /// The thread, to be stepped by a CPU of its group on this OS thread.
    #[inline(always)]
    pub fn into_thread(self) -> Thread {
        // SAFETY: the handle owned the thread.
        unsafe { Thread::from_key(self.into_key()) }
    }

    /// The number of the thread, as [`Thread::id`], in the place of the handle: for queues that
    /// hold words.
    #[inline(always)]
    pub fn into_raw(self) -> NonZeroU32 {
        self.into_key()
    }

    /// The handle again.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](SendThread::into_raw), and is used once.
    #[inline(always)]
    pub unsafe fn from_raw(raw: NonZeroU32) -> SendThread {
        SendThread { key: raw }
    }

    #[inline(always)]
    fn into_key(self) -> Key {
        let key = self.key;
        std::mem::forget(self);
        key
    }
}

impl Drop for SendThread {
    fn drop(&mut self) {
        // SAFETY: the handle owned the thread, and is gone. Its future is Send, so that it may be
        // dropped on any OS thread.
        unsafe { cancel(self.key) }
    }
}

impl std::fmt::Debug for SendThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SendThread({}: {})", self.key, (vtable(arena::header(self.key).head()).name)())
    }
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Thread({}: {})", self.key, self.name())
    }
}

/// Runs the destructors of a thread and frees its block.
///
/// # Safety
/// The thread is live, not running, and owned by the caller, who gives it up.
pub(crate) unsafe fn cancel(key: Key) {
    let header = arena::header(key);
    let head = header.head();
    let vtable = vtable(head);
    // Whatever its destructors wake, it is not to be resumed.
    header.set_head(head & !STATE | OWNED);
    // SAFETY: the thread is live and ours; its body is not being polled.
    match unsafe { (vtable.cancel)(body_of(key)) } {
        // SAFETY: the body is dropped, and the block was ours.
        Polled::Done => unsafe { CpuInner::free(key, vtable.granules as usize) },
        // SAFETY: it ended as untold.
        _ => unsafe { conclude(key, head, vtable) },
    }
}

/// The end of a thread that is joined: marks its block, tells the joiner, and frees the block if
/// nobody needs it.
///
/// # Safety
/// The thread was owned by the caller and has just ended as `JoinerPending`.
pub(crate) unsafe fn conclude(key: Key, head: u32, vtable: &VTable) {
    arena::header(key).set_head(head & !STATE | FINISHED);
    // SAFETY: the vtable is that of the body in this block, which is marked.
    if unsafe { (vtable.tell)(body_of(key)) } {
        // SAFETY: nobody else needs the block.
        unsafe { CpuInner::free(key, vtable.granules as usize) };
    }
}

/// Frees the block of a thread that is over, in which nothing is left.
///
/// # Safety
/// The caller owns the block and gives it up; the CPU is on the calling OS thread.
#[inline(always)]
pub(crate) unsafe fn free(cpu: &CpuInner, key: Key) {
    let vtable = vtable(cpu.base.header(key).head());
    // SAFETY: the caller's contract.
    unsafe { cpu.free_block(key, vtable.granules as usize) };
}

/// Frees what a thread that is over has left to its join handle.
///
/// # Safety
/// The thread is over and was kept; the caller is the handle, and does this once.
pub(crate) unsafe fn release(key: Key) {
    let vtable = vtable(arena::header(key).head());
    // SAFETY: the block is the handle's until this frees it.
    unsafe {
        (vtable.release)(body_of(key));
        CpuInner::free(key, vtable.granules as usize);
    }
}

/// What the thread at `key` knows of its handle.
///
/// # Safety
/// The thread is live, not running, and stays so meanwhile: it is in the keeping of a CPU on this
/// OS thread.
pub(crate) unsafe fn handle(key: Key) -> Handle {
    let vtable = vtable(arena::header(key).head());
    // SAFETY: the vtable is that of the body in this block.
    unsafe { (vtable.handle)(body_of(key)) }
}

/// Polls the thread that `head` and `body` belong to, which is the one that `cpu` runs; contains a
/// panic in it.
///
/// # Safety
/// The thread is live, in its step, and held by `cpu`, which goes by what is in its slot then.
#[inline(always)]
pub(crate) unsafe fn poll(head: u32, body: *mut u8, cpu: &CpuInner) {
    // SAFETY: the vtable in the head is that of the body in this block, which is ours to poll.
    let polled = catch_unwind(AssertUnwindSafe(|| unsafe { (vtable(head).poll)(body, cpu) }));
    if let Err(payload) = polled {
        // SAFETY: it has unwound, and is given up.
        unsafe { panicked(cpu, payload) };
    }
}

/// # Safety
/// As for [`Body::panicked`], for the thread that `cpu` runs.
#[cold]
#[inline(never)]
unsafe fn panicked(cpu: &CpuInner, payload: Payload) {
    let key = cpu.running().expect("a thread is in its step").1;
    let vtable = vtable(arena::header(key).head());
    // SAFETY: the caller's contract; the vtable is that of the body in this block.
    let polled = unsafe { (vtable.panicked)(body_of(key), cpu, payload) };
    cpu.ended(polled);
}
