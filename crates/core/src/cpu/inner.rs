//! The memory of a CPU ([`CpuInner`]), the CPU that runs on this OS thread ([`current`]), and the
//! CPU as a scheduler has it ([`Cpu`]).
//!
//! Every other file of this crate that acts for the running thread begins with `current` or
//! `CpuInner::of`. `CpuInner` has two parts: `step`, which other OS threads and forgotten wakers
//! may touch for ever, and `own`, which belongs to one CPU and its OS thread. No reference into an
//! `UnsafeCell` of `own` may live while foreign code runs, because that code may call back into the
//! same CPU.

use super::slot::Slot;
use super::step::{CpuMemory, OBSERVED, Step};
use crate::alarm::{Alarm, CancelCount};
use crate::arena::{self, ArenaFullError, Base, Key, Slab};
use crate::call::Call;
use crate::directory::Entry;
use crate::group::Members;
use crate::header::MOBILE;
use crate::nbio::Nbio;
use crate::observer::Observer;
use crate::outlet::Inlet;
use crate::remote_spawn::{Adopt, Door};
use crate::run_queue::RunQueue;
use crate::thread::{SendThread, Thread};
use crate::thread_info::{Seen, ThreadId};
use crate::time::Time;
use crate::trace::Detached;
use crate::unpark::Unpark;
use crate::vtable::Polled;
use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

thread_local! {
    /// The CPU that is running a step on this OS thread, innermost if nested; null between steps.
    pub(super) static CURRENT: Cell<*const CpuInner> = const { Cell::new(ptr::null()) };

    /// The CPUs on this OS thread, by address.
    pub(super) static LIVING: RefCell<Vec<*const CpuInner>> = const { RefCell::new(Vec::new()) };
}

/// The memory of a [`Cpu`]. Its [entry](Entry) has the place for ever, for one CPU after another.
///
/// Code may use a lent waker, and `step` with it, after the CPU has gone: a poll on a stack to
/// which no code ever switches back does not end. So `step` exists from the first CPU of the place
/// on, and all CPUs with this number share it. Each CPU has its own `own`.
#[repr(C)]
pub(crate) struct CpuInner {
    pub(crate) step: Step,
    pub(super) own: Own,
}

impl Deref for CpuInner {
    type Target = Own;

    #[inline(always)]
    fn deref(&self) -> &Own {
        &self.own
    }
}

/// The part that belongs to one CPU. Only the CPU's OS thread touches it.
pub(crate) struct Own {
    /// A copy of the arena's base address.
    pub(crate) base: Base,
    pub(super) slot: Slot,
    pub(super) woken: UnsafeCell<RunQueue>,
    /// The way out for the threads that may move and that a step makes ready, if the scheduler has
    /// asked for it. Only a CPU of a group has one.
    pub(super) inlet: UnsafeCell<Option<Inlet<SendThread>>>,
    pub(super) slab: UnsafeCell<Slab>,
    /// The waker lent to every step. It points at this object.
    pub(super) step_waker: ManuallyDrop<Waker>,
    pub(super) call: Cell<Option<Box<Call>>>,
    pub(super) nbio: Cell<Option<Box<Nbio>>>,
    pub(super) alarm: Cell<Option<Alarm>>,
    pub(super) payload: Cell<Option<Box<dyn Any + Send>>>,
    /// The CPU around this one: this CPU's step is within a step of it.
    pub(super) outer: Cell<*const CpuInner>,
    pub(super) spilled: RefCell<VecDeque<Detached>>,
    pub(super) now: Cell<Time>,
    /// The number of the CPU, in the upper half.
    pub(super) id_above: u64,
    /// The word by which the arena marks a chunk of this CPU.
    pub(super) owner: u64,
    /// The tag of new threads with a `Send` future.
    pub(super) mobility: u32,
    /// The number of its group, 0 without one; and the group.
    pub(super) group: u32,
    pub(crate) members: Option<Arc<Members>>,
    pub(crate) entry: &'static Entry,
    /// The address of the unparker that the entry has.
    pub(super) unparker: Cell<*const ()>,
    /// The way by which threads come from elsewhere, if the scheduler has not named another.
    pub(crate) door: Arc<Door>,
    /// The scheduler that takes threads from elsewhere. It is set at the first question for it.
    pub(super) adopter: RefCell<Option<Arc<dyn Adopt>>>,
    /// The time that the CPU sleeps before it looks for a deadlock again.
    pub(crate) suspicion: Cell<Duration>,
    /// When the CPU began to look for a deadlock again and again.
    pub(crate) suspicious_since: Cell<Option<Time>>,
    /// The observer, which the CPU tells of every step.
    pub(super) observer: RefCell<Option<Box<dyn Observer>>>,
    /// The number of the call of [`observe`](crate::observe::observe) that gave the observer.
    pub(crate) observing: Cell<u32>,
}

/// A processor for threads: it runs their steps, keeps the threads that wait for one another, and
/// holds their memory.
///
/// A scheduler has one on each of its OS threads. It [creates](Cpu::thread) threads,
/// [steps](Thread::step) them, and looks after each step for threads that were [woken](Cpu::woken).
/// A CPU stays on one OS thread. So do its threads, which therefore need not be `Send`. Only a CPU
/// of a [`Group`](crate::Group) has threads that move too.
///
/// Dropping it cancels the threads that it keeps.
///
/// # Paper
/// [LZ07 Figure 13]: `worker_main` works with it. [HMP05 §2.3]: a capability, which an OS thread needs to run threads; there are as many
/// as run at once.
///
/// # Examples
/// A first-in, first-out scheduler for threads that wait only for one another:
/// ```
/// use selvedge::{Cpu, Trace, spawn, yield_now};
///
/// let mut cpu = Cpu::new()?;
/// let main = cpu.thread(async {
///     let twice = spawn(async { yield_now().await; 2 * 21 });
///     assert_eq!(twice.await.unwrap(), 42);
/// })?;
/// cpu.make_ready(main);
/// while let Some(thread) = cpu.woken() {
///     match thread.step(&mut cpu) {
///         Trace::Yield(thread) => cpu.make_ready(thread),
///         Trace::Blocked | Trace::Ret => {}
///         other => panic!("{other:?}"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cpu {
    pub(super) inner: NonNull<CpuInner>,
}

impl Cpu {
    #[inline(always)]
    pub(crate) fn inner(&self) -> &CpuInner {
        // SAFETY: `with` has made it, and only `drop` ends it.
        unsafe { self.inner.as_ref() }
    }
}

impl CpuInner {
    /// Memory for the CPUs with the number `id`, and in it their step and no other field.
    pub(super) fn allocate(id: u32) -> CpuMemory {
        let inner = Box::into_raw(Box::<CpuInner>::new_uninit()).cast::<CpuInner>();
        // SAFETY: a fresh allocation of the right size, which is never freed.
        unsafe {
            (&raw mut (*inner).step).write(Step::new(id));
            CpuMemory::new(NonNull::new_unchecked(inner).cast())
        }
    }

    /// The CPU, if `cx` is the running thread's own context. `None` if it is not, or if its waker
    /// is a copy of the lent waker.
    #[inline(always)]
    pub(crate) fn of<'a>(cx: &Context<'_>) -> Option<&'a CpuInner> {
        let cpu = CURRENT.get();
        // SAFETY: as in `current`. It is not null, because a waker lies in the object.
        ptr::eq(cx.waker(), CpuInner::step_waker_of(cpu)).then(|| unsafe { &*cpu })
    }

    #[inline(always)]
    pub(crate) fn step_waker(&self) -> &Waker {
        &self.step_waker
    }

    /// The address of the waker that the CPU at this address lends to its steps, if there is a CPU.
    #[inline(always)]
    fn step_waker_of(cpu: *const CpuInner) -> *const Waker {
        cpu.cast::<u8>().wrapping_add(offset_of!(CpuInner, own.step_waker)).cast()
    }

    /// The running thread: the number of its CPU, and its key.
    pub(crate) fn running(&self) -> Option<(u32, Key)> {
        Some((self.step.id, Key::new(self.step.running.load(Ordering::Relaxed))?))
    }

    /// Whether the thread at `key` is in its step.
    #[inline(always)]
    pub(super) fn runs(&self, key: Key) -> bool {
        self.step.running.load(Ordering::Relaxed) == key.get() && ptr::eq(CURRENT.get(), self)
    }

    #[inline(always)]
    pub(crate) fn alloc(&self, granules: usize) -> Result<Key, ArenaFullError> {
        // SAFETY: the slab is touched on this OS thread alone, and `alloc` runs no foreign code.
        unsafe { (*self.slab.get()).alloc_by(self.base, granules) }
    }

    /// Frees a block of any CPU.
    ///
    /// # Safety
    /// As for [`Slab::free`], for the block's owner.
    pub(crate) unsafe fn free(key: Key, granules: usize) {
        match current() {
            // SAFETY: the caller's contract.
            Some(cpu) => unsafe { cpu.free_block(key, granules) },
            // SAFETY: the caller's contract.
            None => unsafe { arena::free_elsewhere(key) },
        }
    }

    /// Frees a block of any CPU. Most blocks belong to this one.
    ///
    /// # Safety
    /// As for [`Slab::free`], for the block's owner; and this CPU is on the calling OS thread.
    #[inline(always)]
    pub(crate) unsafe fn free_block(&self, key: Key, granules: usize) {
        if self.owns(key) {
            // SAFETY: the caller's contract, and the block's chunk is ours.
            unsafe { (*self.slab.get()).free(self.base, key, granules) }
        } else {
            // SAFETY: the caller's contract.
            unsafe { arena::free_elsewhere(key) }
        }
    }

    /// Whether the block at `key` lies in a chunk of this CPU.
    #[inline(always)]
    pub(super) fn owns(&self, key: Key) -> bool {
        arena::belongs_to(key, self.owner)
    }

    /// Whether the thread at `key`, if it is mobile, may run here.
    #[inline(always)]
    pub(crate) fn is_home_to(&self, key: Key) -> bool {
        self.group != 0 && arena::group(key) == self.group && arena::header(key).head() & MOBILE != 0
    }

    /// The tag of a new thread with a `Send` future.
    #[inline(always)]
    pub(crate) fn mobility(&self) -> u32 {
        self.mobility
    }

    #[inline(always)]
    pub(crate) fn push_woken(&self, thread: Thread) {
        // SAFETY: the queue is touched on this OS thread alone, and `push` runs no foreign code.
        unsafe { (*self.woken.get()).push_by(self.base, thread) }
    }

    /// Makes the thread at `key` ready in the middle of a step. If the CPU has an outlet, the
    /// thread can run elsewhere before the step ends.
    ///
    /// # Safety
    /// The caller owns the thread, and gives it up. If the CPU is in a group, the thread is mobile.
    #[inline(always)]
    pub(crate) unsafe fn push_mobile(&self, key: Key) {
        // SAFETY: the inlet is touched on this OS thread alone, and `put` runs no foreign code.
        match unsafe { &*self.inlet.get() } {
            // SAFETY: the caller's contract. `Cpu::outlet` makes an inlet in a group alone, so the
            // thread is mobile.
            Some(inlet) => inlet.put(unsafe { SendThread::from_raw(key) }),
            // SAFETY: the caller's contract.
            None => self.push_woken(unsafe { Thread::from_key(key) }),
        }
    }

    #[inline(always)]
    pub(super) fn pop_woken(&self) -> Option<Thread> {
        // SAFETY: the queue is touched on this OS thread alone, and `pop` runs no foreign code.
        unsafe { (*self.woken.get()).pop_by(self.base) }
    }

    /// The number of threads that [`Cpu::woken`] would find. It looks at each of them.
    pub(crate) fn woken_len(&self) -> usize {
        // SAFETY: the queue is touched on this OS thread alone, and `len` runs no foreign code.
        unsafe { (*self.woken.get()).len() }
    }

    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    /// The count of the sleeps that were asked for here and given up.
    pub(crate) fn cancel_count(&self) -> &'static CancelCount {
        &self.entry.cancel_count
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) -> Polled {
        self.payload.set(Some(payload));
        Polled::Panicked
    }

    /// Whether [`Cpu::detached`] would find a request.
    pub(crate) fn has_detached(&self) -> bool {
        !self.spilled.borrow().is_empty()
    }

    /// Makes sure that mail unparks the OS thread that `unparker` unparks.
    pub(crate) fn know_unparker(&self, unparker: Arc<dyn Unpark>) {
        // The entry holds the unparker, so no other unparker has this address.
        let address = Arc::as_ptr(&unparker).cast();
        if self.unparker.replace(address) != address {
            self.entry.set_unpark(Some(unparker));
        }
    }

    /// The scheduler that takes threads from elsewhere: this CPU, unless its scheduler has named
    /// another one.
    pub(crate) fn adopter(&self) -> Arc<dyn Adopt> {
        let mut adopter = self.adopter.borrow_mut();
        adopter.get_or_insert_with(|| self.door.clone()).clone()
    }

    /// The scheduler that takes threads from elsewhere, if there was a question for it, or if the
    /// scheduler has named one.
    pub(crate) fn named_adopter(&self) -> Option<Arc<dyn Adopt>> {
        self.adopter.borrow().clone()
    }

    pub(crate) fn set_adopter(&self, adopter: Arc<dyn Adopt>) {
        let before = self.adopter.replace(Some(adopter));
        drop(before);
    }

    /// Whether threads may come from elsewhere.
    pub(crate) fn is_reached(&self) -> bool {
        self.adopter.borrow().is_some()
    }

    /// Gives the CPU an observer, or takes its observer away.
    pub(crate) fn set_observer(&self, observer: Option<Box<dyn Observer>>) {
        self.step.running.store(0, Ordering::Relaxed);
        match &observer {
            Some(_) => self.step.flags.fetch_or(OBSERVED, Ordering::Relaxed),
            None => self.step.flags.fetch_and(!OBSERVED, Ordering::Relaxed),
        };
        let before = self.observer.replace(observer);
        drop(before);
    }

    /// Tells the observer, if there is one. An action of the observer itself is not told.
    #[inline]
    pub(crate) fn tell(&self, what: impl FnOnce(&mut dyn Observer)) {
        if self.step.flags.load(Ordering::Relaxed) & OBSERVED != 0
            && let Ok(mut observer) = self.observer.try_borrow_mut()
            && let Some(observer) = &mut *observer
        {
            what(&mut **observer);
        }
    }

    /// Whether the CPU has an observer.
    pub(crate) fn is_observed(&self) -> bool {
        self.step.flags.load(Ordering::Relaxed) & OBSERVED != 0
    }

    /// The facts that the observer knows of a thread, if there is an observer.
    pub(crate) fn seen(&self, thread: ThreadId) -> Option<Seen> {
        let mut seen = None;
        self.tell(|observer| seen = observer.seen(thread));
        seen
    }
}

/// The CPU that is running a step on this OS thread.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a CpuInner> {
    // SAFETY: it is null, or a CPU that lives on this OS thread. `Cpu::step_briefly`, `Cpu::enter`
    // and `Cpu::drop` set it to their own CPU, and `leave` sets it to a CPU that it has found in
    // `LIVING`. `drop` sets it to another before its CPU goes. Callers use it within the same step.
    unsafe { CURRENT.get().as_ref() }
}

/// The address of the CPU that is running a step on this OS thread, for comparisons. Null between
/// steps.
///
/// A step must end on the stack on which it began. So code that is about to switch from its stack
/// to another stack checks that this address is the same as when it entered its stack.
#[inline(always)]
pub fn running_cpu() -> *const () {
    CURRENT.get().cast()
}

/// A CPU has ended its step. From now on `outer`, the CPU around it, is the current one.
#[inline(always)]
pub(super) fn leave(outer: *const CpuInner) {
    match outer.is_null() {
        true => CURRENT.set(ptr::null()),
        false => leave_nested(outer),
    }
}

/// As [`leave`], if there is an `outer`. Its address was kept on the stack. The thread may have
/// switched away from that stack in the middle of a step, and may come back to it after the CPU
/// `outer` has gone.
#[cold]
fn leave_nested(outer: *const CpuInner) {
    CURRENT.set(if lives(outer) { outer } else { ptr::null() });
}

/// Whether a CPU at this address lives on this OS thread.
pub(super) fn lives(cpu: *const CpuInner) -> bool {
    LIVING.try_with(|living| living.borrow().contains(&cpu)).unwrap_or(false)
}
