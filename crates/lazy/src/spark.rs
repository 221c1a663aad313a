//! Sparks: work that an idle worker may do, and that is no loss if none does. [`join`], [`par`] and
//! the counts.
//!
//! Each OS thread has two rings ([`SparkRing`]): one for the second halves of [`join`]s, which lie
//! on its stack, and one for lazy values. A **converter** is a thread of the scheduler that takes
//! from the rings of others; each scheduler's own rules say which worker runs it, and a worker that
//! sleeps is woken for it.
//!
//! # When a converter is there
//! The thread that makes a spark hires a converter if none is there. A converter that finds more
//! sparks than one hires another, up to one for each CPU but one. A converter that has found
//! nothing for [`LOOKS`] looks leaves: it takes itself off the count, passes the heavy fence, reads
//! the registry again, and looks once more. The maker enlists its rings, if it is a new OS thread,
//! pushes its spark, passes the light fence, and loads the count. So either the maker sees that no
//! converter is there, or the last converter that leaves sees the rings and the spark.
//!
//! # Why a half that was taken does not block for ever
//! The maker of a half that was taken waits for it on its OS thread, and meanwhile does the halves
//! that the taker has pushed since: they are parts of its own half. It does no other work, because
//! that might need a lazy value that this very thread has claimed further down its stack.
//!
//! # Callers
//! The program, and the maps of `strategy.rs` and `adapters.rs`, call [`join`], [`par`] and
//! [`pseq`]. A spark may be dropped at any time, so only code that forces the value itself may rely
//! on it.

use crate::force::Settle;
use crate::node::{IDLE, NodeHandle};
use crate::primitives::{learn, often, seldom};
use crate::ring::SparkRing;
use crate::value::Lazy;
use selvedge_core::{Cpu, adopter, in_thread, yield_now};
use std::cell::{OnceCell, UnsafeCell};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// How often a converter looks for sparks in vain before it leaves.
const LOOKS: u32 = if cfg!(miri) { 5 } else { 200 };

/// What became of sparks, since the process began.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, par, spark_counts};
///
/// selvedge::run(async {
///     let before = spark_counts();
///     let value = Lazy::new(|| 6 * 7);
///     par(&value);
///     assert_eq!(*value.force().await, 42);
///     par(&value);
///     let now = spark_counts();
///     assert_eq!((now.created - before.created, now.dud - before.dud), (1, 1));
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SparkCounts {
    /// Lazy values that were put into a ring.
    pub created: u64,
    /// Those that a converter has evaluated.
    pub converted: u64,
    /// Those that a converter has found evaluated, or under evaluation.
    pub fizzled: u64,
    /// Those for which the ring had no room, or that were made outside of a scheduler.
    pub overflowed: u64,
    /// Those that were there already when they were to be sparked.
    pub dud: u64,
    /// Halves of [`join`]s that another worker has done.
    pub halves_taken: u64,
}

/// A count that one OS thread writes.
#[derive(Default)]
struct SparkCount(AtomicU64);

impl SparkCount {
    #[inline(always)]
    fn add_one(&self) {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count + 1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct RingCounts {
    created: SparkCount,
    converted: SparkCount,
    fizzled: SparkCount,
    overflowed: SparkCount,
    dud: SparkCount,
    halves_taken: SparkCount,
}

/// The rings of one OS thread.
struct Rings {
    halves: SparkRing,
    values: SparkRing,
    counts: RingCounts,
}

impl Rings {
    fn add_to(&self, sum: &mut SparkCounts) {
        sum.created += self.counts.created.get();
        sum.converted += self.counts.converted.get();
        sum.fizzled += self.counts.fizzled.get();
        sum.overflowed += self.counts.overflowed.get();
        sum.dud += self.counts.dud.get();
        sum.halves_taken += self.counts.halves_taken.get();
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        while let Some(item) = self.values.pop() {
            // SAFETY: the ring of values has handles, and this one was taken from it.
            drop(unsafe { handle_of(item) });
        }
    }
}

#[derive(Default)]
struct RingRegistry {
    rings: Vec<Arc<Rings>>,
    /// The counts of OS threads that have ended.
    gone: SparkCounts,
}

static REGISTRY: LazyLock<Mutex<RingRegistry>> = LazyLock::new(Mutex::default);

fn registry() -> MutexGuard<'static, RingRegistry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rings of this OS thread, in the registry until it ends.
struct Mine(Arc<Rings>);

impl Drop for Mine {
    fn drop(&mut self) {
        let mut registry = registry();
        registry.rings.retain(|rings| !Arc::ptr_eq(rings, &self.0));
        self.0.add_to(&mut registry.gone);
    }
}

std::thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
}

fn with_mine<R>(work: impl FnOnce(&Rings) -> R) -> R {
    MINE.with(|mine| work(&mine.get_or_init(enlist).0))
}

#[cold]
fn enlist() -> Mine {
    learn();
    let rings =
        Arc::new(Rings { halves: SparkRing::new(), values: SparkRing::new(), counts: RingCounts::default() });
    registry().rings.push(rings.clone());
    Mine(rings)
}

/// The number of converters.
static CONVERTERS: AtomicUsize = AtomicUsize::new(0);

/// The most converters: one for each CPU but the caller's.
fn converters_max() -> usize {
    static MAX: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get).saturating_sub(1).max(1));
    *MAX
}

/// Sees to it that a converter looks for the spark that the caller has pushed.
#[inline(always)]
fn hire() {
    often();
    if CONVERTERS.load(Ordering::Relaxed) == 0 {
        hire_one();
    }
}

/// Has the scheduler of the running thread start a converter, if fewer are there than may be.
#[cold]
#[inline(never)]
fn hire_one() {
    if !in_thread() {
        return;
    }
    let Some(scheduler) = adopter() else { return };
    let more = |there: usize| (there < converters_max()).then_some(there + 1);
    if CONVERTERS.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more).is_ok() {
        let employed = Employed;
        // If the scheduler has ended, it gives the birth back, and its drop takes the converter
        // off the count.
        drop(scheduler.adopt(Box::new(move |cpu: &mut Cpu| {
            if let Ok(thread) = cpu.spawn(convert(employed)) {
                drop(thread);
            }
        })));
    }
}

/// A converter in the count.
struct Employed;

impl Drop for Employed {
    fn drop(&mut self) {
        CONVERTERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A converter: a thread that does what lies in the rings of others.
async fn convert(employed: Employed) {
    let mut employed = Some(employed);
    let mut vain = 0;
    loop {
        let all: Vec<Arc<Rings>> = registry().rings.clone();
        if let Some(taken) = all.iter().find_map(|rings| take(rings)) {
            // There may be more than one converter can do.
            if all.iter().any(|rings| rings.has_items()) {
                hire_one();
            }
            do_taken(taken).await;
            vain = 0;
        } else {
            vain += 1;
            if vain > LOOKS {
                drop(employed.take());
                seldom();
                // Not `all`: an OS thread may have enlisted its rings since.
                let all: Vec<Arc<Rings>> = registry().rings.clone();
                if !all.iter().any(|rings| rings.has_items()) {
                    return;
                }
                CONVERTERS.fetch_add(1, Ordering::SeqCst);
                employed = Some(Employed);
                vain = 0;
            }
        }
        yield_now().await;
    }
}

/// What a converter has taken from a ring.
enum Taken {
    Half(Pointer),
    Value(NodeHandle),
}

/// The address of a half on the stack of another OS thread.
struct Pointer(NonNull<Half>);

// SAFETY: the taker has the half for itself, and its maker waits for it.
unsafe impl Send for Pointer {}

fn take(rings: &Rings) -> Option<Taken> {
    if let Some(item) = rings.halves.steal() {
        // SAFETY: the ring of halves has the addresses of halves, which wait for their takers.
        return Some(Taken::Half(Pointer(unsafe { half_of(item) })));
    }
    // SAFETY: the ring of values has handles, and this one was taken from it.
    rings.values.steal().map(|item| Taken::Value(unsafe { handle_of(item) }))
}

async fn do_taken(taken: Taken) {
    match taken {
        Taken::Half(half) => do_half(half),
        Taken::Value(handle) => {
            let is_idle = handle.head().state() == IDLE;
            with_mine(|mine| if is_idle { &mine.counts.converted } else { &mine.counts.fizzled }.add_one());
            if is_idle {
                // A failure is kept with the value.
                let _ = Settle::new(&handle, Location::caller()).await;
            }
        }
    }
}

fn do_half(half: Pointer) {
    with_mine(|mine| {
        mine.counts.halves_taken.add_one();
        // SAFETY: this OS thread has taken the half, so it has it for itself, until it is done.
        unsafe {
            half.0.as_ref().taker.store(ptr::from_ref(mine).cast_mut(), Ordering::Release);
            (half.0.as_ref().run)(half.0);
        }
    });
}

/// # Safety
/// The word is from a ring of halves.
unsafe fn half_of(item: usize) -> NonNull<Half> {
    // SAFETY: `join` has pushed the address of a half.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(item)) }
}

/// # Safety
/// The word was taken from a ring of values, by its one taker.
unsafe fn handle_of(item: usize) -> NodeHandle {
    // SAFETY: `par` has pushed a handle as a word.
    unsafe { NodeHandle::from_raw(NonNull::new_unchecked(ptr::with_exposed_provenance_mut(item))) }
}

impl Rings {
    fn has_items(&self) -> bool {
        self.halves.has_items() || self.values.has_items()
    }
}

/// The second half of a [`join`], on the stack of the thread that made it.
struct Half {
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
/// This is [`par`] and `pseq` in one, for two closures that may borrow. A thread that calls it
/// keeps its worker until both are done.
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
/// # Ok::<(), selvedge::Failure>(())
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
    let is_pushed = mine.halves.push(ptr::from_ref(&half).expose_provenance());
    if is_pushed {
        hire();
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
    let rings = registry().rings.iter().find(|rings| ptr::eq(Arc::as_ptr(rings), taker)).cloned();
    match rings.and_then(|rings| rings.halves.steal()) {
        Some(item) => {
            // SAFETY: as in `take`.
            do_half(Pointer(unsafe { half_of(item) }));
            true
        }
        None => false,
    }
}

/// Sparks a lazy value: an idle worker of the scheduler may evaluate it, before a thread needs it.
///
/// A spark costs a few instructions, and may be dropped: it is evaluated by the thread that needs
/// it, or never. [`spark_counts`] tells what became of the sparks.
///
/// # Paper
/// [HMP05 §2.1]: `par` adds its first argument to the pool of work for unemployed processors.
///
/// # Differences
/// 1. Continuing with the second argument is the next statement of the program, or [`pseq`].
#[inline]
pub fn par<T: Send + Sync + 'static>(value: &Lazy<T>) {
    spark(value.node());
}

/// The second value, forced after the first: with [`par`] for the second before it, an idle worker
/// may have made the second meanwhile.
///
/// # Panics
/// If one of them has no value: see [`Lazy::force`].
///
/// # Paper
/// [HMP05 §9] leaves strategies to later work; this is the `pseq` that they have with `par`.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, par, pseq};
///
/// selvedge::run(async {
///     let (warp, weft) = (Lazy::new(|| 6), Lazy::new(|| 7));
///     par(&weft);
///     assert_eq!(*pseq(&warp, &weft).await * warp.get().unwrap(), 42);
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[track_caller]
pub fn pseq<'a, A, B>(first: &'a Lazy<A>, second: &'a Lazy<B>) -> impl Future<Output = &'a B> {
    let (first, second) = (first.force(), second.force());
    async {
        first.await;
        second.await
    }
}

fn spark(node: &NodeHandle) {
    with_mine(|mine| {
        if node.head().state() != IDLE {
            return mine.counts.dud.add_one();
        }
        if !in_thread() && CONVERTERS.load(Ordering::Relaxed) == 0 {
            return mine.counts.overflowed.add_one();
        }
        let raw = node.clone().into_raw();
        if mine.values.push(raw.as_ptr().expose_provenance()) {
            mine.counts.created.add_one();
            hire();
        } else {
            mine.counts.overflowed.add_one();
            // SAFETY: the ring has not taken the handle.
            drop(unsafe { NodeHandle::from_raw(raw) });
        }
    });
}

/// What became of the sparks of all OS threads.
pub fn spark_counts() -> SparkCounts {
    let registry = registry();
    let mut sum = registry.gone;
    registry.rings.iter().for_each(|rings| rings.add_to(&mut sum));
    sum
}
