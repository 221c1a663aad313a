//! [`join`]: two closures, the second of which an idle worker may do. Its half lies on the stack of
//! the thread that waits for it.
//!
//! # Why a half that was taken does not block for ever
//! The maker of a half that was taken waits for it on its OS thread, and meanwhile does the halves
//! that the taker has pushed since: they are parts of its own half. It does no other work, because
//! that might need a lazy value that this very thread has claimed further down its stack.
//!
//! The program and the maps of `strategy.rs` and `adapters.rs` call [`join`]. A converter calls
//! [`do_half`] for a half that it has taken.

use super::converter::hire_for_half;
use super::rings::{Rings, half_of, registry, with_mine};
use selvedge_core::in_thread;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of a half on the stack of another OS thread.
pub(super) struct Pointer(pub(super) NonNull<Half>);

// SAFETY: the taker has the half for itself, and its maker waits for it.
unsafe impl Send for Pointer {}

/// The second half of a [`join`], on the stack of the thread that made it.
pub(super) struct Half {
    /// # Safety
    /// The caller has taken the half. The half may be gone when this returns.
    run: unsafe fn(NonNull<Half>),
    /// The rings of the OS thread that does it; null until it was taken; [`done`] at its end.
    taker: AtomicPtr<Rings>,
}

/// The mark of a half that is done.
fn done() -> *mut Rings {
    ptr::without_provenance_mut(1)
}

#[repr(C)]
struct TypedHalf<F, R> {
    half: Half,
    work: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<std::thread::Result<R>>>,
}

impl<F: FnOnce() -> R, R> TypedHalf<F, R> {
    unsafe fn run(half: NonNull<Half>) {
        // SAFETY: the half is the beginning of this type, and the caller has taken it.
        let this = unsafe { half.cast::<Self>().as_ref() };
        // SAFETY: the taker has the half for itself until it is done.
        let work = unsafe { (*this.work.get()).take() }.expect("a half is taken once");
        let result = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: as above.
        unsafe { *this.result.get() = Some(result) };
        this.half.taker.store(done(), Ordering::Release);
    }
}

/// Does both, perhaps at the same time: the first on this OS thread, the second on a worker of the
/// scheduler that has nothing else to do, or else here too.
///
/// This is [`par`](super::par) and `pseq` in one, for two closures that may borrow. A thread that
/// calls it keeps its worker until both are done. Outside of a thread of ours both are done here,
/// because there the second may block, which it may not within a step of a worker.
///
/// # Panics
/// If one of them panics, with its payload; after the other has ended, or without it having begun.
///
/// # Paper
/// [HMP05 §2.1] `par`.
///
/// # Complexity
/// If no worker takes the second: two stores into a ring and out of it, without an atomic exchange,
/// fence or allocation.
///
/// # Examples
/// ```
/// use selvedge::lazy::join;
///
/// fn fib(n: u32) -> u64 {
///     if n < 2 {
///         return n.into();
///     }
///     let (a, b) = join(|| fib(n - 1), || fib(n - 2));
///     a + b
/// }
///
/// assert_eq!(selvedge::run(async { fib(20) })?, 6765);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[inline]
pub fn join<A, B>(first: impl FnOnce() -> A, second: impl FnOnce() -> B + Send) -> (A, B)
where
    B: Send,
{
    with_mine(|mine| join_with(mine, first, second))
}

#[inline(always)]
fn join_with<A, B, G>(mine: &Rings, first: impl FnOnce() -> A, second: G) -> (A, B)
where
    G: FnOnce() -> B,
{
    let half = TypedHalf {
        half: Half { run: TypedHalf::<G, B>::run, taker: AtomicPtr::new(ptr::null_mut()) },
        work: UnsafeCell::new(Some(second)),
        result: UnsafeCell::new(None),
    };
    // The taker does the half within a step. Outside of one a half may do more: it may block.
    let is_pushed = in_thread() && mine.halves.push(ptr::from_ref(&half).expose_provenance());
    if is_pushed {
        hire_for_half();
    }
    // The half must not go while another OS thread does it, also if `first` panics.
    let settled = Settled { mine, half: &half.half, is_pushed };
    let a = first();
    let is_mine = settled.settle();
    if is_mine {
        // SAFETY: no other OS thread has taken the half, and none can any more.
        let second = unsafe { (*half.work.get()).take() }.expect("a half is taken once");
        return (a, second());
    }
    // SAFETY: the half is done, which `settle` has seen with Acquire.
    match unsafe { (*half.result.get()).take() }.expect("a half that is done has a result") {
        Ok(b) => (a, b),
        Err(payload) => resume_unwind(payload),
    }
}

/// Takes a half back, or waits until its taker has done it.
struct Settled<'a> {
    mine: &'a Rings,
    half: &'a Half,
    is_pushed: bool,
}

impl Settled<'_> {
    /// Whether the half was taken back.
    #[inline(always)]
    fn settle(self) -> bool {
        let is_mine = self.is_mine();
        std::mem::forget(self);
        is_mine
    }

    #[inline(always)]
    fn is_mine(&self) -> bool {
        if !self.is_pushed {
            return true;
        }
        let mine = ptr::from_ref(self.half).addr();
        match self.mine.halves.pop() {
            // The halves that were pushed later are gone, because their joins have ended.
            Some(item) if item == mine => return true,
            // Only threads in direct style on this OS thread may have left in the middle of theirs.
            Some(other) if self.find(other, mine) => return true,
            _ => {}
        }
        self.wait();
        false
    }

    /// Takes the half out from below the halves of other threads. False if it was taken.
    #[cold]
    fn find(&self, other: usize, mine: usize) -> bool {
        let mut others = vec![other];
        let mut found = false;
        while let Some(item) = self.mine.halves.pop() {
            if item == mine {
                found = true;
                break;
            }
            others.push(item);
        }
        while let Some(item) = others.pop() {
            let pushed = self.mine.halves.push(item);
            assert!(pushed, "there was room for it");
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut vain = 0;
        loop {
            let taker = self.half.taker.load(Ordering::Acquire);
            if taker == done() {
                return;
            }
            let helped = help(taker);
            if helped {
                vain = 0;
                continue;
            }
            vain += 1;
            match vain {
                0..100 => std::hint::spin_loop(),
                _ => std::thread::yield_now(),
            }
        }
    }
}

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.is_mine();
    }
}

/// Does a half that the OS thread with these rings has pushed. False if there is none.
fn help(taker: *mut Rings) -> bool {
    // The rings may go at any moment, with their OS thread, so they are looked up.
    let rings = registry().rings().find(|rings| ptr::eq(Arc::as_ptr(rings), taker)).cloned();
    match rings.and_then(|rings| rings.halves.steal()) {
        Some(item) => {
            // SAFETY: as in `take`.
            do_half(Pointer(unsafe { half_of(item) }));
            true
        }
        None => false,
    }
}

/// Does a half that the caller has taken.
pub(super) fn do_half(half: Pointer) {
    with_mine(|mine| {
        mine.counts.halves_taken.add_one();
        // SAFETY: this OS thread has taken the half, so it has it for itself, until it is done.
        unsafe {
            half.0.as_ref().taker.store(ptr::from_ref(mine).cast_mut(), Ordering::Release);
            (half.0.as_ref().run)(half.0);
        }
    });
}
