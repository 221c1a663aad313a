//! The body of a thread ([`ThreadBody`]): its future behind the header, and how it is created,
//! polled, ended and freed.
//!
//! Bodies of two kinds are polled through it: `Forked` here (`fork.rs`, `Cpu::thread`), and the
//! body with a join handle (`joinable.rs`). `Heap` wraps a body that fits into no block. The step
//! (`cpu/run.rs`) and the drop of a `Thread` reach a body by the functions of its vtable
//! (`vtable.rs`), which the header's number names. A body's code may run the program's code, so a
//! body is polled or dropped only while no lock of this crate is held.

use crate::ArenaFullError;
use crate::arena::{self, GRANULE, GRANULES_MAX, Key};
use crate::cpu::inner::CpuInner;
use crate::far;
use crate::header::{FINISHED, Header, OWNED, STATE};
use crate::quietly::drop_quietly;
use crate::thread::Thread;
use crate::vtable::{self, CpuAddress, HandleSite, Payload, Polled, VTable, vtable};
use std::any::type_name;
use std::future::Future;
use std::mem::{MaybeUninit, align_of, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// How a kind of thread lives in its block.
pub(crate) trait ThreadBody: 'static {
    /// # Safety
    /// `body` is live, pinned, and polled by no other caller; it is over when the result says so.
    /// If this unwinds, [`panicked`](ThreadBody::panicked) is to be called.
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

    /// Tells the joiner. If there is no joiner any more, it drops the rest of the body and returns
    /// true; the caller then frees the block. Otherwise the handle may release the body at any
    /// time. This may run any code.
    ///
    /// # Safety
    /// `body` is over, `JoinerPending`, and its block is marked as over; this is called once.
    unsafe fn tell(body: *mut Self) -> bool;

    /// Drops the rest that was left for the join handle.
    ///
    /// # Safety
    /// `body` is over and was kept for the handle, which calls this once.
    unsafe fn release(body: *mut Self);

    /// The join handle, which could cancel it.
    ///
    /// # Safety
    /// `body` is live and not being polled.
    unsafe fn handle(_body: *mut Self) -> HandleSite {
        HandleSite::None
    }

    /// The name of the thread's code.
    fn name() -> &'static str;
}

/// The body of a thread without a join handle: its future alone.
#[repr(transparent)]
struct Forked<F>(F);

/// The body of a thread without a join handle.
pub(crate) fn forked<F: Future<Output = ()> + 'static>(future: F) -> impl ThreadBody {
    Forked(future)
}

impl<F: Future<Output = ()> + 'static> ThreadBody for Forked<F> {
    #[inline]
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, _: &CpuInner) -> Polled {
        // SAFETY: `body` is pinned in its block and exclusively ours, as the caller promises.
        match unsafe { poll_to_end(&raw mut (*body).0, cx) } {
            None => Polled::Pending,
            Some(()) => Polled::Done,
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: live and exclusively ours, as the caller promises.
        unsafe { drop_quietly(&raw mut (*body).0) };
        cpu.panicked(payload)
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: live and exclusively ours, as the caller promises.
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

impl<B: ThreadBody> ThreadBody for Heap<B> {
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

    unsafe fn handle(body: *mut Self) -> HandleSite {
        // SAFETY: as above.
        unsafe { B::handle((*body).0) }
    }

    fn name() -> &'static str {
        B::name()
    }
}

/// Creates a thread, not yet run, which the caller owns: returns its key and the place of its body.
/// `body` is called to make the body in that place.
#[inline(always)]
pub(crate) fn create<B: ThreadBody>(
    cpu: &CpuInner,
    body: impl FnOnce() -> B,
    tags: u32,
) -> Result<(Key, *mut B), ArenaFullError> {
    if const { fits::<B>() } {
        let key = place(cpu, body, tags)?;
        Ok((key, cpu.base.body(key).cast()))
    } else {
        let key = place(cpu, || Heap::new(body()), tags)?;
        // SAFETY: it was just created, and holds the pointer to a body that is there.
        Ok((key, unsafe { (*cpu.base.body(key).cast::<Heap<B>>()).0 }))
    }
}

impl CpuInner {
    #[inline(always)]
    pub(crate) fn forked<F: Future<Output = ()> + 'static>(
        &self,
        future: F,
        tags: u32,
    ) -> Result<Thread, ArenaFullError> {
        let (key, _) = create(self, || forked(future), tags)?;
        // SAFETY: created above, and ours.
        Ok(unsafe { Thread::from_key(key) })
    }
}

/// Places a body in a block of the CPU's slab. If there is no block left, `body` is not called.
#[inline(always)]
fn place<B: ThreadBody>(cpu: &CpuInner, body: impl FnOnce() -> B, tags: u32) -> Result<Key, ArenaFullError> {
    let vtable: &'static VTable = const {
        &VTable {
            // SAFETY: the vtable is stored only in the head of a block that holds a `B`, and `poll`
            // below passes the address of the CPU that runs the thread.
            poll: |body, cpu| unsafe { poll_body::<B>(body, cpu.cast().as_ref()) },
            // SAFETY: as above; `panicked` below passes the address.
            panicked: |body, cpu, payload| unsafe { B::panicked(body.cast(), cpu.cast().as_ref(), payload) },
            // SAFETY: as above.
            cancel: |key| unsafe { cancel::<B>(key) },
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
    let head = vtable::offset(vtable).unwrap_or_else(|| far::offset(vtable));
    let base = cpu.base;
    let key = cpu.alloc(granules_of::<B>())?;
    // SAFETY: `alloc` has just given out this block, so no other code uses it. It is large enough
    // (`granules_of`) and aligned (`fits`, which `create` has checked).
    unsafe { base.body(key).cast::<B>().write(body()) };
    base.header(key).set_head(head | OWNED | tags);
    Ok(key)
}

/// # Safety
/// As for [`ThreadBody::poll`].
unsafe fn poll_body<B: ThreadBody>(body: *mut u8, cpu: &CpuInner) {
    let mut cx = Context::from_waker(cpu.step_waker());
    // SAFETY: `body` is the live body of the thread being stepped, which the CPU holds exclusively.
    let polled = unsafe { B::poll(body.cast(), &mut cx, cpu) };
    if polled != Polled::Pending {
        cpu.ended(polled);
    }
}

/// The place of the body of the thread `key`.
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

/// Runs the destructors of a thread and frees its block, unless its join handle still needs that.
///
/// # Safety
/// The thread at `key` has a `B` as its body. It is live, not running, and owned by the caller,
/// which gives it up.
unsafe fn cancel<B: ThreadBody>(key: Key) {
    let header = arena::header(key);
    let head = header.head();
    // Whatever its destructors wake, it is not to be resumed.
    header.set_head(head & !STATE | OWNED);
    // SAFETY: the thread is live and the caller's; its body is not being polled.
    match unsafe { B::cancel(body_of(key)) } {
        // SAFETY: the body is dropped, and the block was the caller's.
        Polled::Done => unsafe { CpuInner::free(key, granules_of::<B>()) },
        // SAFETY: the thread ended as `JoinerPending`.
        _ => unsafe { conclude(key, head, vtable(head)) },
    }
}

/// The end of a thread that is joined: marks its block, tells the joiner, and frees the block if
/// the join handle is gone.
///
/// # Safety
/// The thread was owned by the caller and has just ended as `JoinerPending`.
pub(crate) unsafe fn conclude(key: Key, head: u32, vtable: &VTable) {
    arena::header(key).set_head(head & !STATE | FINISHED);
    // SAFETY: the vtable is that of the body in this block, which is marked.
    if unsafe { (vtable.tell)(body_of(key)) } {
        // SAFETY: `tell` has said that the block is ours to free.
        unsafe { CpuInner::free(key, vtable.granules as usize) };
    }
}

/// Frees the block of a thread that is over and has dropped its body.
///
/// # Safety
/// The caller owns the block and gives it up; the CPU is on the calling OS thread.
#[inline(always)]
pub(crate) unsafe fn free(cpu: &CpuInner, key: Key) {
    let vtable = vtable(cpu.base.header(key).head());
    // SAFETY: the caller's contract.
    unsafe { cpu.free_block(key, vtable.granules as usize) };
}

/// Drops the rest that a thread that is over has left to its join handle, and frees the block.
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

/// The handle of the thread at `key`, as far as the thread knows.
///
/// # Safety
/// The thread is live, not running, and stays so meanwhile: it is in the keeping of a CPU on this
/// OS thread.
pub(crate) unsafe fn handle(key: Key) -> HandleSite {
    let vtable = vtable(arena::header(key).head());
    // SAFETY: the vtable is that of the body in this block.
    unsafe { (vtable.handle)(body_of(key)) }
}

#[inline(always)]
fn address(cpu: &CpuInner) -> CpuAddress {
    NonNull::from(cpu).cast()
}

/// Polls the thread that `head` and `body` belong to, which `cpu` runs. A panic of the thread ends
/// here. The content of the CPU's slot says how the poll ended.
///
/// # Safety
/// The thread is live, in its step, and held by `cpu`.
#[inline(always)]
pub(crate) unsafe fn poll(head: u32, body: *mut u8, cpu: &CpuInner) {
    // SAFETY: the vtable in the head is that of the body in this block, which is ours to poll.
    let polled = catch_unwind(AssertUnwindSafe(|| unsafe { (vtable(head).poll)(body, address(cpu)) }));
    if let Err(payload) = polled {
        // SAFETY: the poll has unwound, and the body is not polled again.
        unsafe { panicked(cpu, payload) };
    }
}

/// # Safety
/// As for [`ThreadBody::panicked`], for the thread that `cpu` runs.
#[cold]
#[inline(never)]
unsafe fn panicked(cpu: &CpuInner, payload: Payload) {
    let key = cpu.running().expect("a thread is in its step").1;
    let vtable = vtable(arena::header(key).head());
    // SAFETY: the caller's contract; the vtable is that of the body in this block.
    let polled = unsafe { (vtable.panicked)(body_of(key), address(cpu), payload) };
    cpu.ended(polled);
}

impl Thread {
    /// Bytes that a thread running `F` takes in the arena: 8 + the size of the future rounded up
    /// to 8.
    ///
    /// A future beyond 4,080 bytes, or one aligned to more than 8, lives on the heap; its thread
    /// takes 16 bytes here besides. This is the size for [`fork`](crate::fork) and
    /// [`Cpu::thread`](crate::Cpu::thread); [`spawn`](crate::spawn) adds the result.
    pub const fn size_of<F>() -> usize {
        if fits::<F>() { granules_of::<F>() * GRANULE } else { size_of::<Header>() + size_of::<Heap<F>>() }
    }
}
