//! The CPU: what a scheduler has one of for each OS thread it runs threads on.

use crate::alarm::{Alarm, CancelCount};
use crate::arena::{self, Base, Key, Slab};
use crate::birth::{Adopt, Door};
use crate::budget;
use crate::directory::{self, Count, Entry};
use crate::events::SUSPICION_MIN;
use crate::group::Members;
use crate::observe::{self, End, Ended, Note, Observer, Seen, ThreadId};
use crate::place::Place;
use crate::state::{self, Woken};
use crate::thread::{
    self, Body, CANCELLABLE, FINISHED, FREE, MOBILE, OWNED, Polled, STATE, STICKY, Thread, WAITING,
    WAITING_HERE, create,
};
use crate::trace::{Detached, Readiness, Request, Sleep, Trace, Wait};
use crate::waker::{self, Waiter};
use crate::{ArenaFull, Call, Group, Nbio, Panic, RunQueue, ThreadInfo, Time, Unavailable, Unpark};
use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::fmt;
use std::future::Future;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

thread_local! {
    /// The CPU that is running a step on this OS thread, innermost if nested; null between steps.
    static CURRENT: Cell<*const CpuInner> = const { Cell::new(ptr::null()) };

    /// The CPUs on this OS thread, by address.
    static LIVING: RefCell<Vec<*const CpuInner>> = const { RefCell::new(Vec::new()) };
}

/// The request slot's content: what the running step has asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    Nothing,
    Yield,
    /// The child's key; it is owned by the slot.
    Fork(Key),
    Nbio,
    Wait(Readiness),
    Sleep(Time),
    Call,
    Exit,
    /// It waits in a queue that only threads of this CPU reach.
    BlockHere(Place),
    /// It waits in a queue that other OS threads reach too.
    Block(Place),
}

/// Where the running step's request lies, or that the thread has ended. The kind is a word of its
/// own, which is all that most steps write and read: reading at once what was written in parts
/// would wait for the stores.
#[derive(Debug)]
struct Slot {
    kind: Cell<Stop>,
    /// The child's key, or the place.
    word: Cell<u32>,
    readiness: Cell<Readiness>,
    until: Cell<Time>,
    /// The leaf future that filled the slot: it alone may empty it. An address that is its own for
    /// as long as it lives: where it is pinned, or something on the heap that it owns. (A leaf that
    /// is `Unpin` and has moved asks again, or ends, when polled.)
    asker: Cell<*const ()>,
}

/// How a step has stopped: at which request, which is the kind of what the slot holds; or with the
/// thread's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    Nothing,
    /// The two ways to block are the states of threads that wait so.
    BlockHere = WAITING_HERE as u8,
    Block = WAITING as u8,
    Yield,
    Fork,
    Nbio,
    Wait,
    Sleep,
    Call,
    Exit,
    Done,
    JoinerTold,
    JoinerPending,
    Panicked,
}

impl Stop {
    #[inline(always)]
    fn is_block(self) -> bool {
        (self as u8).wrapping_sub(Stop::BlockHere as u8) < 2
    }

    fn polled(self) -> Polled {
        match self {
            Stop::Done => Polled::Done,
            Stop::JoinerTold => Polled::JoinerTold,
            Stop::JoinerPending => Polled::JoinerPending,
            Stop::Panicked => Polled::Panicked,
            _ => Polled::Pending,
        }
    }
}

/// A CPU that is the current one of its OS thread, for a loop that makes many steps and runs none
/// of the program's code between them. When this is dropped, the CPU before it is the current one
/// again.
pub(crate) struct Entered<'a> {
    cpu: &'a CpuInner,
    outer: *const CpuInner,
}

impl Entered<'_> {
    /// As [`Cpu::woken`], without a look at the mail.
    #[inline(always)]
    pub(crate) fn woken(&self) -> Option<Thread> {
        self.cpu.pop_woken()
    }

    /// As [`Cpu::make_ready`].
    #[inline(always)]
    pub(crate) fn make_ready(&self, thread: Thread) {
        self.cpu.push_woken(thread);
    }

    /// As [`Cpu::step`], but for the node of an uncommon end.
    #[inline(always)]
    pub(crate) fn step(&self, thread: Thread) -> Brief {
        self.cpu.run(self.cpu.at_home(thread))
    }
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        leave(self.outer);
    }
}

/// How a step has ended, of which a scheduler's loop makes no [`Trace`] before it acts.
pub(crate) enum Brief {
    Yield(Thread),
    Blocked,
    Ret,
    Fork {
        child: Thread,
        parent: Thread,
    },
    /// Otherwise: [`Cpu::end_of_step`] is to be called next.
    Other,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            kind: Cell::new(Stop::Nothing),
            word: Cell::new(0),
            readiness: Cell::new(Readiness::NONE),
            until: Cell::new(Time::default()),
            asker: Cell::new(ptr::null()),
        }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.kind.get() == Stop::Nothing
    }

    #[inline(always)]
    fn fill(&self, ask: Ask) {
        self.kind.set(match ask {
            Ask::Nothing => Stop::Nothing,
            Ask::Yield => Stop::Yield,
            Ask::Fork(child) => {
                self.word.set(child.get());
                Stop::Fork
            }
            Ask::Nbio => Stop::Nbio,
            Ask::Wait(readiness) => {
                self.readiness.set(readiness);
                Stop::Wait
            }
            Ask::Sleep(until) => {
                self.until.set(until);
                Stop::Sleep
            }
            Ask::Call => Stop::Call,
            Ask::Exit => Stop::Exit,
            Ask::BlockHere(place) => {
                self.word.set(place.0);
                Stop::BlockHere
            }
            Ask::Block(place) => {
                self.word.set(place.0);
                Stop::Block
            }
        });
    }

    #[inline(always)]
    fn take(&self) -> Ask {
        match self.kind.replace(Stop::Nothing) {
            Stop::Nothing => Ask::Nothing,
            Stop::Yield => Ask::Yield,
            Stop::Fork => Ask::Fork(Key::new(self.word.get()).expect("filled with a key")),
            Stop::Nbio => Ask::Nbio,
            Stop::Wait => Ask::Wait(self.readiness.get()),
            Stop::Sleep => Ask::Sleep(self.until.get()),
            Stop::Call => Ask::Call,
            Stop::Exit => Ask::Exit,
            Stop::BlockHere => Ask::BlockHere(Place(self.word.get())),
            Stop::Block => Ask::Block(Place(self.word.get())),
            Stop::Done | Stop::JoinerTold | Stop::JoinerPending | Stop::Panicked => Ask::Nothing,
        }
    }
}

/// The thread was woken during its own step: it must run again.
const NOTIFIED: u8 = 1;
/// Somebody else holds a right to wake the thread.
const SHARED: u8 = 2;
/// There are detached requests.
const SPILLED: u8 = 4;
/// The CPU has an observer, who is told of every step. Kept from step to step.
const OBSERVED: u8 = 8;
/// The step has used up a refill of its [budget](crate::budget). It says nothing of how the step
/// ends.
const TIRED: u8 = 16;
/// The step is within one of another CPU.
const NESTED: u8 = 32;
/// The running thread is within a [`shield`](crate::shield()). It says nothing of how the step
/// ends.
const SHIELDED: u8 = 64;

/// The part of a CPU that a borrowed waker may be used on from another OS thread during a step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) id: u32,
    /// The key of the thread that runs, or ran last: between steps [`CURRENT`] is another CPU or
    /// none. It is 0 between the steps of a CPU that has an observer, because an OS thread that
    /// looks from elsewhere does not see `CURRENT`.
    pub(crate) running: AtomicU32,
    flags: AtomicU8,
    /// How many threads the CPU keeps that only its own threads can resume; and how many that
    /// anything can. Written on the CPU's OS thread alone. In a group a thread kept by one CPU may
    /// be resumed by another, so that only the sum over the group counts. By [`STATE`].
    waiting: [Count; 4],
}

impl Step {
    pub(crate) fn notify(&self) {
        self.flags.fetch_or(NOTIFIED, Ordering::Relaxed);
    }

    pub(crate) fn share(&self) {
        self.flags.fetch_or(SHARED, Ordering::Relaxed);
    }

    /// How many of its threads are in this state: waiting here, or waiting.
    #[inline(always)]
    fn in_state(&self, state: u32) -> &Count {
        // The mask, which changes nothing, spares the check of the bound.
        &self.waiting[(state & STATE) as usize]
    }

    /// How many threads the CPU keeps.
    pub(crate) fn waiting(&self) -> isize {
        self.waiting.iter().map(Count::get).sum()
    }
}

/// What lies behind a [`Cpu`], in a place that its [entry](Entry) has for ever. Who has borrowed a
/// lent waker may go on using it, and with it `step`, when the CPU is gone: a poll on a stack that
/// nobody ever comes back to does not end. So the step is there from the place's first CPU on, and
/// the next one with this number has it too; the rest comes and goes with each.
#[repr(C)]
pub(crate) struct CpuInner {
    pub(crate) step: Step,
    own: Own,
}

impl Deref for CpuInner {
    type Target = Own;

    #[inline(always)]
    fn deref(&self) -> &Own {
        &self.own
    }
}

/// A place for CPUs of one number, one after another.
#[derive(Debug)]
pub(crate) struct Room(*mut CpuInner);

// SAFETY: it is an address. What lies there belongs to the CPU of that number, but for the step,
// which is atomic.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

impl Room {
    /// A place that is never freed, and in it the step of CPU `id`, and nothing else.
    pub(crate) fn new(id: u32) -> Room {
        let room = Box::into_raw(Box::<CpuInner>::new_uninit()).cast::<CpuInner>();
        // SAFETY: a fresh allocation of the right size.
        unsafe {
            (&raw mut (*room).step).write(Step {
                id,
                running: AtomicU32::new(0),
                flags: AtomicU8::new(0),
                waiting: Default::default(),
            })
        };
        Room(room)
    }

    /// The step of the CPUs of its number.
    pub(crate) fn step(&self) -> &Step {
        // SAFETY: written by `new`, and never freed.
        unsafe { &(*self.0).step }
    }
}

/// What is a CPU's own. All of it is touched on the CPU's OS thread alone.
pub(crate) struct Own {
    /// A copy of what the arena knows.
    pub(crate) base: Base,
    slot: Slot,
    woken: UnsafeCell<RunQueue>,
    slab: UnsafeCell<Slab>,
    /// The waker lent to every step: points at this object.
    step_waker: ManuallyDrop<Waker>,
    call: Cell<Option<Box<Call>>>,
    nbio: Cell<Option<Box<Nbio>>>,
    alarm: Cell<Option<Alarm>>,
    payload: Cell<Option<Box<dyn Any + Send>>>,
    /// The CPU in a step of which this one has its step.
    outer: Cell<*const CpuInner>,
    spilled: RefCell<std::collections::VecDeque<Detached>>,
    now: Cell<Time>,
    /// Its number, in the upper half.
    id_above: u64,
    /// What says of a chunk that it is this CPU's.
    owner: u64,
    /// The tag of new threads whose futures are `Send`.
    mobility: u32,
    /// The number of its group, 0 without one; and the group.
    group: u32,
    pub(crate) members: Option<Arc<Members>>,
    pub(crate) entry: &'static Entry,
    /// The unparker that the entry has, by address.
    unparker: Cell<*const ()>,
    /// Who takes threads from elsewhere, once it was asked for.
    adopter: RefCell<Option<Arc<dyn Adopt>>>,
    /// How long the CPU sleeps before it looks for a deadlock again.
    pub(crate) suspicion: Cell<Duration>,
    /// Who is told of every step; and since which [`observe`](crate::observe::observe) that is so.
    observer: RefCell<Option<Box<dyn Observer>>>,
    pub(crate) observing: Cell<u32>,
}

/// A processor for threads: it runs their steps, keeps those that wait for one another, and holds
/// their memory.
///
/// A scheduler has one on each of its OS threads. It [creates](Cpu::thread) threads,
/// [steps](Thread::step) them, and looks after each step for those that were [woken](Cpu::woken). A
/// CPU stays on one OS thread, and so do its threads, which therefore need not be `Send`; only on a
/// CPU of a [`Group`] are there others, that move.
///
/// Dropping it cancels the threads that it keeps.
///
/// # Paper
/// [LZ07 Figure 13]: what `worker_main` works with. [HMP05 §2.3]: a capability, all that is needed to run threads; there are as many
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
    inner: NonNull<CpuInner>,
}

impl Cpu {
    /// A new CPU without threads.
    ///
    /// # Errors
    /// If the process can reserve no address space for threads, or has 4,096 CPUs already.
    pub fn new() -> Result<Cpu, Unavailable> {
        Cpu::with(None)
    }

    /// A new CPU of a group, among whose CPUs `Send` threads move.
    ///
    /// # Errors
    /// As [`new`](Cpu::new).
    pub fn new_in(group: &Group) -> Result<Cpu, Unavailable> {
        Cpu::with(Some(Arc::clone(&group.members)))
    }

    fn with(members: Option<Arc<Members>>) -> Result<Cpu, Unavailable> {
        let group = members.as_ref().map_or(0, |members| members.id.get());
        let (id, entry) = directory::enter(members.clone())?;
        let slab = Slab::new(id, group).inspect_err(|_| directory::leave(id))?;
        let inner = entry.room(id).0;
        // SAFETY: the room is that of our number, which nobody else has, and the last one who had
        // it has dropped what was his own. The step is there, and is reached by reference only. The
        // waker refers to it, and is lent out during steps.
        unsafe {
            // Whoever has outlived the last CPU may have left something.
            (*inner).step.flags.store(0, Ordering::Relaxed);
            (*inner).step.waiting.iter().for_each(Count::reset);
            (&raw mut (*inner).own).write(Own {
                base: Base::get(),
                slot: Slot::new(),
                woken: UnsafeCell::new(RunQueue::new()),
                slab: UnsafeCell::new(slab),
                step_waker: ManuallyDrop::new(waker::lent(inner)),
                call: Cell::new(None),
                nbio: Cell::new(None),
                alarm: Cell::new(None),
                payload: Cell::new(None),
                outer: Cell::new(ptr::null()),
                spilled: RefCell::default(),
                now: Cell::new(Time::now()),
                id_above: u64::from(id) << 32,
                owner: arena::owner_word(id, group),
                mobility: if group == 0 { 0 } else { MOBILE },
                group,
                members,
                entry,
                unparker: Cell::new(ptr::null()),
                adopter: RefCell::new(None),
                suspicion: Cell::new(SUSPICION_MIN),
                observer: RefCell::new(None),
                observing: Cell::new(0),
            });
            let cpu = Cpu { inner: NonNull::new_unchecked(inner) };
            // One that is made while the OS thread's variables go is not known; nobody comes back
            // to its waker then.
            let _ = LIVING.try_with(|living| living.borrow_mut().push(inner));
            let _ = cpu.turn();
            budget::begin();
            Ok(cpu)
        }
    }

    #[inline(always)]
    pub(crate) fn inner(&self) -> &CpuInner {
        // SAFETY: it is there from `new` to `drop`.
        unsafe { self.inner.as_ref() }
    }

    /// Creates a thread that stays on this CPU. It does not run until it is stepped.
    ///
    /// # Errors
    /// If no room is left in the arena.
    #[inline]
    pub fn thread(&mut self, future: impl Future<Output = ()> + 'static) -> Result<Thread, ArenaFull> {
        self.inner().forked(future, 0)
    }

    /// As [`thread`](Cpu::thread); if the CPU is of a [`Group`], the thread may move among its
    /// CPUs.
    ///
    /// # Errors
    /// If no room is left in the arena.
    #[inline]
    pub fn send_thread(
        &mut self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Thread, ArenaFull> {
        let tags = self.inner().mobility();
        self.inner().forked(future, tags)
    }

    #[inline(always)]
    pub(crate) fn step(&mut self, thread: Thread) -> Trace {
        match self.step_briefly(thread) {
            Brief::Yield(thread) => Trace::Yield(thread),
            Brief::Blocked => Trace::Blocked,
            Brief::Ret => Trace::Ret,
            Brief::Fork { child, parent } => Trace::Fork { child, parent },
            Brief::Other => self.end_of_step(),
        }
    }

    /// As [`step`](Cpu::step), but for the node of an uncommon end.
    #[inline(always)]
    fn step_briefly(&mut self, thread: Thread) -> Brief {
        let thread = self.inner().at_home(thread);
        if !CURRENT.get().is_null() {
            self.inner().step_within();
        }
        CURRENT.set(self.inner.as_ptr());
        let brief = self.inner().run(thread);
        CURRENT.set(ptr::null());
        brief
    }

    /// Has the CPU be the current one of this OS thread, as in a step, until what this returns is
    /// dropped.
    #[inline(always)]
    pub(crate) fn enter(&mut self) -> Entered<'_> {
        Entered { cpu: self.inner(), outer: CURRENT.replace(self.inner.as_ptr()) }
    }

    /// What a step has come to that ended as [`Brief::Other`].
    #[inline(always)]
    pub(crate) fn end_of_step(&mut self) -> Trace {
        self.inner().end_of_step()
    }

    /// The next thread that was made ready by others: created by [`spawn`](crate::spawn), handed a
    /// value, woken by a waker or given back by an event source. In the order in which they became
    /// ready.
    ///
    /// Threads that were woken on other OS threads are taken in when there is no other, and by
    /// [`poll`](Cpu::poll) and [`tick`](Cpu::tick): a scheduler calls one of these now and then.
    #[inline(always)]
    pub fn woken(&mut self) -> Option<Thread> {
        let cpu = self.inner();
        match cpu.pop_woken() {
            None if cpu.entry.inbox.has_mail() => woken_elsewhere(self.inner),
            thread => thread,
        }
    }

    /// Makes those ready that other OS threads have asked for.
    #[inline]
    pub(crate) fn take_mail(&mut self) {
        if self.inner().entry.inbox.has_mail() {
            self.open_mail();
        }
    }

    /// Resumes the threads, and creates those, that other OS threads have asked for.
    #[inline(never)]
    fn open_mail(&mut self) {
        self.inner().open_inbox();
        if self.inner().is_reached() {
            self.bear();
        }
    }

    /// Whether [`woken`](Cpu::woken) would find a thread.
    pub(crate) fn has_woken(&mut self) -> bool {
        self.take_mail();
        // SAFETY: the queue is touched on this OS thread alone.
        unsafe { !(*self.inner().woken.get()).is_empty() }
    }

    /// Puts a thread behind those already [woken](Cpu::woken). An event source returns threads this
    /// way; a scheduler may use it as its ready queue.
    #[inline(always)]
    pub fn make_ready(&mut self, thread: Thread) {
        self.inner().push_woken(thread);
    }

    /// Wakes a waker; shorter than [`Waker::wake`] if it belongs to a thread that may run on this
    /// CPU, which is then the next [woken](Cpu::woken) here. If a foreign one panics, that ends
    /// here, after the panic hook has reported it.
    pub fn wake(&mut self, waker: Waker) {
        match waker::key_of(&waker) {
            Some((id, key)) => waker::resume(Some(self.inner()), id, key),
            None => thread::quietly(|| waker.wake()),
        }
    }

    /// Takes a thread into the CPU's keeping, and returns the waker that makes it ready again: for
    /// event sources that would rather hold a waker than the thread.
    ///
    /// # Errors
    /// Gives the thread back if it has been woken since its step: it is to run again.
    ///
    /// # Panics
    /// If another CPU, that is not of this one's group, created the thread. It is cancelled.
    pub fn keep(&mut self, thread: Thread) -> Result<Waker, Thread> {
        let cpu = self.inner();
        let key = thread.into_key();
        let head = arena::header(key).head();
        if head & MOBILE == 0 {
            cpu.keep(key, head, WAITING, Place::UNKNOWN);
        } else if !cpu.keep_mobile(key, head, Place::UNKNOWN) {
            // SAFETY: it was the handle's, and nobody has taken it.
            return Err(unsafe { Thread::from_key(key) });
        }
        Ok(waker::of(cpu.step.id, key.get()))
    }

    /// The next request made on behalf of a waker; to be asked after [`Trace::Any`] until there is
    /// none.
    pub fn detached(&mut self) -> Option<Detached> {
        self.inner().spilled.borrow_mut().pop_front()
    }

    /// How many such requests there are.
    pub(crate) fn detached_count(&self) -> usize {
        self.inner().spilled.borrow().len()
    }

    /// Puts a request behind the others.
    pub(crate) fn put_back(&mut self, detached: Detached) {
        self.inner().spilled.borrow_mut().push_back(detached);
    }

    /// How many threads the CPU keeps because they wait for other threads or behind wakers. For a
    /// CPU of a [`Group`]: how many the group keeps, exact when no other CPU of it runs a step.
    pub fn waiting(&self) -> usize {
        match &self.inner().members {
            Some(members) => members.waiting(),
            None => self.inner().entry.waiting() as usize,
        }
    }

    /// How many of them only other threads of this CPU can resume.
    pub(crate) fn waiting_here(&self) -> usize {
        self.inner().step.in_state(WAITING_HERE).get() as usize
    }

    /// Reads the clock for [`now`](crate::now) in the steps to come. An event source calls it once
    /// per turn.
    pub fn tick(&mut self) {
        self.inner().now.set(Time::now());
        self.take_mail();
        let _ = self.turn();
    }

    /// The time of the last [`tick`](Cpu::tick).
    pub fn now(&self) -> Time {
        self.inner().now.get()
    }

    /// Every thread that lives in this CPU's memory and what it waits for, as far as the CPU knows.
    ///
    /// # Complexity
    /// Looks at every block ever used: not for every turn of a loop.
    pub fn threads(&self) -> Vec<ThreadInfo> {
        let cpu = self.inner();
        // SAFETY: the slab is touched on this OS thread alone; `ranges` runs no foreign code.
        let ranges = unsafe { (*cpu.slab.get()).ranges() };
        let keys = ranges.into_iter().flat_map(|(first, end, step)| (first..end).step_by(step));
        keys.filter_map(Key::new).filter_map(|key| cpu.look_at(key)).collect()
    }
}

/// The next thread of a CPU that had none until mail came.
///
/// It takes the address of what is behind the `Cpu`, which its caller has borrowed for this: a
/// scheduler's loop can go on as if its `Cpu` had been given to no function, and need not read it
/// again.
#[cold]
#[inline(never)]
fn woken_elsewhere(cpu: NonNull<CpuInner>) -> Option<Thread> {
    let mut cpu = ManuallyDrop::new(Cpu { inner: cpu });
    cpu.open_mail();
    cpu.inner().pop_woken()
}

/// The thread is cancelled.
#[cold]
#[inline(never)]
fn strayed(thread: Thread) -> ! {
    panic!("{thread:?} was created by another CPU: only that one can step it")
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu")
            .field("id", &self.inner().step.id)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        let cpu = self.inner();
        cpu.step.running.store(0, Ordering::Relaxed);
        // Destructors may wake and create threads: those are cancelled in the next round.
        let outer = CURRENT.replace(self.inner.as_ptr());
        let unborn = cpu.entry.births().close();
        thread::quietly(|| drop(unborn));
        loop {
            cpu.open_inbox();
            // SAFETY: the queue is touched on this OS thread alone, and the borrow ends before
            // anything is dropped.
            let woken = std::mem::take(unsafe { &mut *cpu.woken.get() });
            let spilled = std::mem::take(&mut *cpu.spilled.borrow_mut());
            let kept: Vec<u32> =
                self.threads().iter().filter(|t| t.is_waiting()).map(ThreadInfo::id).collect();
            if woken.is_empty() && spilled.is_empty() && kept.is_empty() {
                break;
            }
            thread::quietly(|| drop((woken, spilled)));
            for key in kept.into_iter().filter_map(Key::new) {
                // A destructor before it may have woken it.
                if let Some(thread) = cpu.release(key) {
                    drop(thread);
                }
            }
        }
        let address = self.inner.as_ptr().cast_const();
        let _ = LIVING.try_with(|living| living.borrow_mut().retain(|cpu| *cpu != address));
        leave(outer);
        observe::leave(&cpu.step);
        let id = cpu.step.id;
        // SAFETY: written by `new`; no step runs (it would borrow self), so that nobody refers to
        // it. The step stays.
        unsafe { (&raw mut (*self.inner.as_ptr()).own).drop_in_place() };
        directory::leave(id);
    }
}

impl CpuInner {
    /// The thread, which a debug build finds to be one that may run here.
    #[inline(always)]
    fn at_home(&self, thread: Thread) -> Thread {
        if cfg!(debug_assertions) && !self.owns(thread.key()) && !self.is_home_to(thread.key()) {
            strayed(thread);
        }
        thread
    }

    /// Runs a thread to the end of its step, which is within those of this CPU already.
    #[inline(always)]
    fn run(&self, thread: Thread) -> Brief {
        let key = thread.into_key();
        let (head, body) = (self.base.header(key).head(), self.base.body(key));
        self.step.running.store(key.get(), Ordering::Relaxed);
        // SAFETY: the handle owned the thread, so it is live; we hold it until we pass it on below,
        // according to the result.
        unsafe { thread::poll(head, body, self) };
        let slot = &self.slot;
        if self.step.flags.load(Ordering::Relaxed) != 0 {
            return Brief::Other;
        }
        // Comparisons in this order, and no `match`, of which the compiler would make a jump
        // through a table.
        let stop = slot.kind.get();
        if stop == Stop::Yield {
            slot.kind.set(Stop::Nothing);
            // SAFETY: it is pending and we hold it; it goes to the handle.
            return Brief::Yield(unsafe { Thread::from_key(key) });
        }
        if stop.is_block() {
            let head = self.base.header(key).head();
            if head & (STICKY | MOBILE) == 0 && self.owns(key) {
                slot.kind.set(Stop::Nothing);
                self.keep_own(key, head, stop as u32, Place(slot.word.get()));
                return Brief::Blocked;
            }
        } else if stop == Stop::Done {
            if self.owns(key) {
                slot.kind.set(Stop::Nothing);
                // SAFETY: the body is dropped, and the block was held by us, and is ours.
                unsafe {
                    let head = self.base.header(key).head();
                    (*self.slab.get()).free(self.base, key, thread::vtable(head).granules as usize);
                }
                return Brief::Ret;
            }
        } else if stop == Stop::JoinerTold {
            slot.kind.set(Stop::Nothing);
            return Brief::Ret;
        } else if stop == Stop::Fork {
            slot.kind.set(Stop::Nothing);
            // SAFETY: the slot was filled with the key of the child, which it owned; we hold the
            // parent.
            unsafe {
                let child = Thread::from_key(Key::new_unchecked(slot.word.get()));
                return Brief::Fork { child, parent: Thread::from_key(key) };
            }
        }
        Brief::Other
    }

    #[inline(always)]
    pub(crate) fn step_waker(&self) -> &Waker {
        &self.step_waker
    }

    /// Where the waker lent to the steps of a CPU lies, if there is one at the address.
    #[inline(always)]
    fn step_waker_of(cpu: *const CpuInner) -> *const Waker {
        cpu.cast::<u8>().wrapping_add(offset_of!(CpuInner, own.step_waker)).cast()
    }

    #[inline(always)]
    pub(crate) fn alloc(&self, granules: usize) -> Result<Key, ArenaFull> {
        // SAFETY: the slab is touched on this OS thread alone, and `alloc` runs no foreign code.
        unsafe { (*self.slab.get()).alloc_by(self.base, granules) }
    }

    /// Frees a block wherever it belongs.
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

    /// Frees a block wherever it belongs: mostly here.
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

    #[inline(always)]
    pub(crate) fn forked<F: Future<Output = ()> + 'static>(
        &self,
        future: F,
        tags: u32,
    ) -> Result<Thread, ArenaFull> {
        let (key, _) = create(self, || thread::forked(future), tags)?;
        // SAFETY: just created and ours.
        Ok(unsafe { Thread::from_key(key) })
    }

    #[inline(always)]
    pub(crate) fn push_woken(&self, thread: Thread) {
        // SAFETY: the queue is touched on this OS thread alone, and `push` runs no foreign code.
        unsafe { (*self.woken.get()).push_by(self.base, thread) }
    }

    #[inline(always)]
    fn pop_woken(&self) -> Option<Thread> {
        // SAFETY: the queue is touched on this OS thread alone, and `pop` runs no foreign code.
        unsafe { (*self.woken.get()).pop_by(self.base) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) -> Polled {
        self.payload.set(Some(payload));
        Polled::Panicked
    }

    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    /// The tag of a new thread whose future is `Send`.
    #[inline(always)]
    pub(crate) fn mobility(&self) -> u32 {
        self.mobility
    }

    /// Whether the thread at `key`, if it is mobile, may run here.
    #[inline(always)]
    pub(crate) fn is_home_to(&self, key: Key) -> bool {
        self.group != 0 && arena::group(key) == self.group && arena::header(key).head() & MOBILE != 0
    }

    /// Lets another thread know that `key` is to run: wakes it if it waits, marks it if it is
    /// running.
    #[inline(always)]
    pub(crate) fn resume(&self, key: Key) {
        if let Some(thread) = self.release(key) {
            self.push_woken(thread);
        } else if self.runs(key) {
            self.step.notify();
        }
    }

    /// Makes the thread at `key` ready if it waits and may run here; false if not. A stale key is
    /// no harm. It runs no code of the program's and takes no lock.
    #[inline(always)]
    pub(crate) fn resume_own(&self, key: Key) -> bool {
        let head = self.base.header(key).head();
        if self.take_local(key, head) {
            // SAFETY: taken just now.
            self.push_woken(unsafe { Thread::from_key(key) });
            return true;
        }
        head & MOBILE != 0 && self.resume_mobile(key, head)
    }

    #[inline(never)]
    fn resume_mobile(&self, key: Key, head: u32) -> bool {
        if self.runs(key)
            || !self.is_home_to(key)
            || state::wake(&arena::header(key).head, head) != Woken::Ours
        {
            return false;
        }
        self.step.in_state(WAITING).add(-1);
        // SAFETY: the wake has made it ours.
        self.push_woken(unsafe { Thread::from_key(key) });
        true
    }

    /// Takes a thread that waits, if it is one, out of the CPU's keeping or the group's. A stale
    /// key is no harm.
    #[inline(always)]
    fn release(&self, key: Key) -> Option<Thread> {
        let head = self.base.header(key).head();
        if head & MOBILE != 0 {
            return self.release_mobile(key, head);
        }
        self.release_local(key, head)
    }

    /// As [`release`](CpuInner::release), of a thread that is not mobile.
    #[inline(always)]
    fn release_local(&self, key: Key, head: u32) -> Option<Thread> {
        // SAFETY: taken just now.
        self.take_local(key, head).then(|| unsafe { Thread::from_key(key) })
    }

    /// As [`release_local`](CpuInner::release_local); if it is true, the thread is the caller's.
    #[inline(always)]
    fn take_local(&self, key: Key, head: u32) -> bool {
        // In a waiting state a thread is its CPU's, which is this one. If it is not mobile, its
        // state is written on this OS thread alone.
        let state = head & (STATE | MOBILE);
        let takes = matches!(state, WAITING_HERE | WAITING) && self.owns(key);
        if takes {
            self.step.in_state(state).add(-1);
            self.base.header(key).set_head(head & !STATE | OWNED);
        }
        takes
    }

    /// Whether the thread at `key` is in its step.
    #[inline(always)]
    fn runs(&self, key: Key) -> bool {
        self.step.running.load(Ordering::Relaxed) == key.get() && ptr::eq(CURRENT.get(), self)
    }

    #[inline(always)]
    fn release_mobile(&self, key: Key, head: u32) -> Option<Thread> {
        if self.runs(key) {
            return None;
        }
        if self.group == 0 || arena::group(key) != self.group {
            directory::post_mobile(arena::owner(key), self.step.id, key.get());
            return None;
        }
        if state::wake(&arena::header(key).head, head) != Woken::Ours {
            return None;
        }
        self.step.in_state(WAITING).add(-1);
        // SAFETY: the wake has made it ours.
        Some(unsafe { Thread::from_key(key) })
    }

    /// Takes a pending thread into the CPU's keeping.
    #[inline(always)]
    fn keep(&self, key: Key, head: u32, state: u32, place: Place) {
        // Only the owner of its chunk could ever release it, and might be doing so on another OS
        // thread.
        if !self.owns(key) {
            // SAFETY: called at the end of a step, when the thread is held by us.
            strayed(unsafe { Thread::from_key(key) });
        }
        self.keep_own(key, head, state, place);
    }

    /// As [`keep`](CpuInner::keep), of a thread in a chunk of this CPU.
    #[inline(always)]
    fn keep_own(&self, key: Key, head: u32, state: u32, place: Place) {
        self.step.in_state(state).add(1);
        let header = self.base.header(key);
        header.set_link(place.0);
        header.set_head(head & !STATE | state);
    }

    /// Lets go of a pending mobile thread, until somebody wakes it; false if that has happened, and
    /// it must run again.
    #[inline(always)]
    fn keep_mobile(&self, key: Key, head: u32, place: Place) -> bool {
        if arena::group(key) != self.group {
            // SAFETY: called at the end of a step, when the thread is held by us.
            strayed(unsafe { Thread::from_key(key) });
        }
        let header = arena::header(key);
        header.set_link(place.0);
        // Counted first: it may be resumed elsewhere before `park` returns.
        self.step.in_state(WAITING).add(1);
        let parked = state::park(&header.head, head);
        if !parked {
            self.step.in_state(WAITING).add(-1);
            state::take_notification(&header.head);
        }
        parked
    }

    /// Whether the thread at `joiner` waits here, for the end of the thread at `key` and nothing
    /// else.
    pub(crate) fn joins_here(&self, joiner: Key, key: Key) -> bool {
        let header = arena::header(joiner);
        arena::owner(joiner) == self.step.id
            && header.head() & STATE == WAITING_HERE
            && header.link() == Place::join(key).0
    }

    /// What is to be said of the thread at `key`, in a chunk of this CPU.
    fn look_at(&self, key: Key) -> Option<ThreadInfo> {
        let header = arena::header(key);
        let head = header.head();
        if head == FREE || head & STATE == FINISHED {
            return None;
        }
        if head & (MOBILE | STATE) != MOBILE | WAITING {
            return Some(ThreadInfo::of(key, head, header.link()));
        }
        // Another CPU may be about to run it, and to queue it through its link. Who holds it may
        // read that.
        match self.release_mobile(key, head) {
            Some(thread) => {
                let (key, place) = (thread.into_key(), Place(header.link()));
                let info = ThreadInfo::of(key, head, place.0);
                if !self.keep_mobile(key, head, place) {
                    // SAFETY: we hold it still.
                    self.push_woken(unsafe { Thread::from_key(key) });
                }
                Some(info)
            }
            None => Some(ThreadInfo::of(key, head & !STATE | OWNED, 0)),
        }
    }

    /// How many threads [`Cpu::woken`] would find. It looks at each.
    pub(crate) fn woken_len(&self) -> usize {
        // SAFETY: the queue is touched on this OS thread alone, and `len` runs no foreign code.
        unsafe { (*self.woken.get()).len() }
    }

    /// Who takes threads from elsewhere: this CPU, if its scheduler has named no other.
    pub(crate) fn adopter(&self) -> Arc<dyn Adopt> {
        let mut adopter = self.adopter.borrow_mut();
        adopter.get_or_insert_with(|| Arc::new(Door::to(self.entry))).clone()
    }

    pub(crate) fn set_adopter(&self, adopter: Arc<dyn Adopt>) {
        let before = self.adopter.replace(Some(adopter));
        drop(before);
    }

    /// Whether threads may come from elsewhere.
    pub(crate) fn is_reached(&self) -> bool {
        self.adopter.borrow().is_some()
    }

    /// Makes sure that mail unparks whom this one does.
    pub(crate) fn know_unparker(&self, unparker: Arc<dyn Unpark>) {
        // The entry holds on to it, so that no other has its address.
        let address = Arc::as_ptr(&unparker).cast();
        if self.unparker.replace(address) != address {
            self.entry.set_unpark(Some(unparker));
        }
    }

    /// Whether [`Cpu::detached`] would find a request.
    pub(crate) fn has_detached(&self) -> bool {
        !self.spilled.borrow().is_empty()
    }

    #[cold]
    fn open_inbox(&self) {
        let mail = self.entry.inbox.open();
        let mut resumed = 0;
        for key in mail.into_iter().filter_map(Key::new) {
            self.resume(key);
            resumed += 1;
        }
        if resumed > 0 {
            self.tell(|observer| observer.note(Note::Mail(resumed)));
        }
    }

    /// Fills the request slot for a leaf future; false if another has filled it in this step.
    #[inline(always)]
    pub(crate) fn ask<T>(&self, leaf: *const T, ask: Ask) -> bool {
        let free = self.slot.is_empty();
        if free {
            self.slot.fill(ask);
            self.slot.asker.set(leaf.cast());
        }
        free
    }

    /// Fills the request slot for a leaf future that is polled with the running thread's own
    /// context; false if it is not, or if that cannot be told at once, or if another leaf has
    /// filled the slot in this step.
    #[inline(always)]
    pub(crate) fn ask_with<T>(cx: &Context<'_>, leaf: *const T, ask: Ask) -> bool {
        CpuInner::of(cx).is_some_and(|cpu| cpu.ask(leaf, ask))
    }

    /// The CPU, if `cx` is the running thread's own context; `None` if it is not, or if that cannot
    /// be told at once.
    #[inline(always)]
    pub(crate) fn of<'a>(cx: &Context<'_>) -> Option<&'a CpuInner> {
        let cpu = CURRENT.get();
        // SAFETY: as in `current`; it is not null if a waker is at its address.
        ptr::eq(cx.waker(), CpuInner::step_waker_of(cpu)).then(|| unsafe { &*cpu })
    }

    /// Says that the running thread waits in a queue, whose owner has a key or waker to resume it.
    #[inline(always)]
    pub(crate) fn ask_block<T>(&self, leaf: *const T, place: Place, here: bool) {
        if !self.ask(leaf, if here { Ask::BlockHere(place) } else { Ask::Block(place) }) {
            self.step.share();
        }
    }

    /// The running thread wants to end; whatever it has asked before in this step is void.
    pub(crate) fn ask_exit(&self) {
        self.retract(self.slot.asker.get());
        self.slot.fill(Ask::Exit);
        // Nobody takes it back; least of all a leaf at the address of an earlier asker.
        self.slot.asker.set(ptr::null());
    }

    /// Marks the running step as one that stops within a [`shield`](crate::shield()).
    pub(crate) fn shield(&self) {
        self.step.flags.fetch_or(SHIELDED, Ordering::Relaxed);
    }

    /// Whether the running step is marked so.
    #[inline(always)]
    pub(crate) fn is_shielded(&self) -> bool {
        self.step.flags.load(Ordering::Relaxed) & SHIELDED != 0
    }

    /// Whether no leaf has filled the slot.
    #[inline(always)]
    pub(crate) fn asks_nothing(&self) -> bool {
        self.slot.is_empty()
    }

    /// Whether nothing has happened in the running step that its end is to deal with.
    #[inline(always)]
    pub(crate) fn ends_plainly(&self) -> bool {
        self.step.flags.load(Ordering::Relaxed) == 0 && self.slot.is_empty()
    }

    /// Marks the block of the running thread, which has just ended: from then on its joiner may be
    /// told.
    #[inline(always)]
    pub(crate) fn mark_finished(&self) {
        let (key, head) = self.stopped();
        self.base.header(key).set_head(head & !STATE | FINISHED);
    }

    /// Tells the joiner of the running thread, which has ended and has marked its block. A panic of
    /// foreign code ends in here, because the step would take it for one of the thread's own.
    /// While foreign code wakes the joiner, no thread counts as the running one.
    #[inline(never)]
    pub(crate) fn tell_in_step(&self, joiner: Waker) {
        let key = self.step.running.load(Ordering::Relaxed);
        thread::quietly(|| {
            if let Err(foreign) = waker::fire_here(joiner) {
                self.step.running.store(0, Ordering::Relaxed);
                foreign.wake();
            }
        });
        self.step.running.store(key, Ordering::Relaxed);
    }

    /// Marks the running step as one that has used up a refill of its [budget](crate::budget).
    /// Whether it was marked already.
    pub(crate) fn tire(&self) -> bool {
        self.step.flags.fetch_or(TIRED, Ordering::Relaxed) & TIRED != 0
    }

    /// Empties the slot again if this leaf has filled it in this step: it is being dropped.
    #[inline(always)]
    pub(crate) fn retract(&self, leaf: *const ()) {
        if !self.slot.is_empty() && self.slot.asker.get() == leaf {
            self.empty_slot();
        }
    }

    #[cold]
    fn empty_slot(&self) {
        if let Ask::Fork(child) = self.slot.take() {
            // SAFETY: the slot owned the child.
            drop(unsafe { Thread::from_key(child) });
        }
        self.call.set(None);
        self.nbio.set(None);
        self.alarm.set(None);
        self.tell(|observer| observer.waits_not());
    }

    pub(crate) fn put_call(&self, call: Box<Call>) {
        self.call.set(Some(call));
    }

    pub(crate) fn put_nbio(&self, nbio: Box<Nbio>) {
        self.nbio.set(Some(nbio));
    }

    /// The alarm of the sleep in the slot, in case that is served with a waker.
    pub(crate) fn put_alarm(&self, alarm: Alarm) {
        self.alarm.set(Some(alarm));
    }

    pub(crate) fn spill(&self, request: Request, waker: Waker) {
        let waker = waker::tame(waker);
        self.step.flags.fetch_or(SPILLED, Ordering::Relaxed);
        self.spilled.borrow_mut().push_back(Detached { request, waker });
    }

    /// The running thread: the CPU's number and its key.
    pub(crate) fn running(&self) -> Option<(u32, Key)> {
        Some((self.step.id, Key::new(self.step.running.load(Ordering::Relaxed))?))
    }

    /// Where those who ask here for a sleep count that they gave it up.
    pub(crate) fn cancel_count(&self) -> &'static CancelCount {
        &self.entry.cancel_count
    }

    /// The running thread's own waker, for a queue that says so with
    /// [`ask_block`](CpuInner::ask_block).
    #[inline(always)]
    pub(crate) fn keyed_waker(&self) -> Waker {
        waker::of(self.step.id, self.step.running.load(Ordering::Relaxed))
    }

    /// The running thread as a waiter, for a queue that says so with
    /// [`ask_block`](CpuInner::ask_block).
    #[inline(always)]
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter::Ours(self.id_above | u64::from(self.step.running.load(Ordering::Relaxed)))
    }

    /// The running thread's own waker; the thread is marked as one that others can wake.
    pub(crate) fn shared_waker(&self) -> Waker {
        self.step.share();
        waker::of(self.step.id, self.step.running.load(Ordering::Relaxed))
    }

    /// The running thread has ended: what it has asked for in the same step is void.
    #[inline(always)]
    pub(crate) fn ended(&self, polled: Polled) {
        if !self.slot.is_empty() {
            self.void_slot();
        }
        self.slot.kind.set(match polled {
            Polled::Pending => return,
            Polled::Done => Stop::Done,
            Polled::JoinerTold => Stop::JoinerTold,
            Polled::JoinerPending => Stop::JoinerPending,
            Polled::Panicked => Stop::Panicked,
        });
    }

    #[cold]
    #[inline(never)]
    fn void_slot(&self) {
        if let Ask::Fork(child) = self.slot.take() {
            // SAFETY: the slot owned the child, which has been created.
            self.push_woken(unsafe { Thread::from_key(child) });
        }
        let beside = (self.call.take(), self.nbio.take(), self.alarm.take());
        thread::quietly(|| drop(beside));
    }

    /// The step that begins is within one of another CPU, which runs on when it ends.
    #[cold]
    #[inline(never)]
    fn step_within(&self) {
        self.outer.set(CURRENT.get());
        self.step.flags.fetch_or(NESTED, Ordering::Relaxed);
    }

    /// The key and the head of the thread whose step has just ended.
    #[inline(always)]
    fn stopped(&self) -> (Key, u32) {
        // SAFETY: `step` has put a key there, and clears it nowhere before the end of the step.
        let key = unsafe { Key::new_unchecked(self.step.running.load(Ordering::Relaxed)) };
        (key, self.base.header(key).head())
    }

    /// The end of a step: the others. It calls nothing but what it ends with, so that it saves no
    /// register.
    #[inline(never)]
    fn end_of_step(&self) -> Trace {
        let (key, head) = self.stopped();
        let slot = &self.slot;
        if self.step.flags.load(Ordering::Relaxed) == 0 {
            match slot.kind.get() {
                Stop::JoinerPending => {
                    slot.kind.set(Stop::Nothing);
                    return self.end_joined(key, head);
                }
                Stop::Wait if head & (STICKY | MOBILE) == 0 => {
                    slot.kind.set(Stop::Nothing);
                    // SAFETY: it is pending and we hold it; it goes to the handle.
                    let thread = unsafe { Thread::from_key(key) };
                    return Trace::Wait(Wait::new(thread, slot.readiness.get()));
                }
                _ => {}
            }
        }
        self.end_otherwise()
    }

    /// As [`end_of_step`](CpuInner::end_of_step): the end of a thread that is joined.
    #[inline(never)]
    fn end_joined(&self, key: Key, head: u32) -> Trace {
        // Who is told may look.
        self.step.running.store(0, Ordering::Relaxed);
        // SAFETY: it was held by us, and has just ended.
        unsafe { self.tell_joiner(key, head) };
        Trace::Ret
    }

    /// As [`end_of_step`](CpuInner::end_of_step): all the others.
    #[inline(never)]
    fn end_otherwise(&self) -> Trace {
        if self.step.flags.load(Ordering::Relaxed) & NESTED != 0 {
            self.step.flags.fetch_and(!NESTED, Ordering::Relaxed);
            leave(self.outer.get());
        }
        let (key, mut head) = self.stopped();
        if head & MOBILE != 0 {
            // What it has been woken for since is for `park` to find.
            head &= !thread::NOTIFIED;
        }
        // Destructors and observers may look.
        self.step.running.store(0, Ordering::Relaxed);
        let stop = self.slot.kind.get();
        let usual = self.step.flags.load(Ordering::Relaxed) == 0;
        if usual && stop == Stop::Block && head & MOBILE != 0 {
            self.slot.kind.set(Stop::Nothing);
            return match self.keep_mobile(key, head, Place(self.slot.word.get())) {
                true => Trace::Blocked,
                // SAFETY: it is pending and we hold it; it goes to the handle.
                false => Trace::Yield(unsafe { Thread::from_key(key) }),
            };
        }
        let ask = self.slot.take();
        self.conclude(key, head, stop.polled(), ask)
    }

    /// Whether the block at `key` lies in a chunk of this CPU.
    #[inline(always)]
    fn owns(&self, key: Key) -> bool {
        arena::belongs_to(key, self.owner)
    }

    /// The end of a step, but for the few ends that `step` deals with itself.
    #[inline(never)]
    fn conclude(&self, key: Key, head: u32, polled: Polled, ask: Ask) -> Trace {
        // The waker that was lent to the step is back: nobody else writes to the flags.
        let mut flags = self.step.flags.load(Ordering::Relaxed);
        self.step.flags.store(flags & OBSERVED, Ordering::Relaxed);
        flags &= !(TIRED | SHIELDED);
        if flags & OBSERVED != 0 {
            flags &= !OBSERVED;
            self.tell_end(key, polled, ask, flags);
        }
        let (call, nbio, alarm) = (self.call.take(), self.nbio.take(), self.alarm.take());
        if polled != Polled::Pending || matches!(ask, Ask::Exit) {
            let end = self.end(key, head, polled);
            return if flags & SPILLED == 0 { end } else { self.also_any(end) };
        }
        // SAFETY: pending, and held by us. Nothing of ours runs foreign code until it is passed on.
        let hand_over = || unsafe { Thread::from_key(key) };
        // Once a waker for it is with others, or with an event source, it can be woken at any time.
        // So it can when it waits in a queue, but was woken in this very step and goes on to
        // something else.
        let detaching = flags != 0
            && matches!(ask, Ask::Wait(_) | Ask::Sleep(_) | Ask::Call | Ask::Block(_) | Ask::BlockHere(_));
        // A mobile thread can be woken at any time anyway.
        let mobile = head & MOBILE != 0;
        let sticky = !mobile && (flags & SHARED != 0 || detaching || head & STICKY != 0);
        if sticky && head & STICKY == 0 {
            arena::header(key).set_head(head | STICKY);
        }
        // For `keep`, which writes the whole word.
        let head = if sticky { head | STICKY } else { head };
        let alone = flags == 0 && !sticky && head & (MOBILE | CANCELLABLE) == 0;
        match ask {
            // While no observer looks on, `step` has dealt with it. Of a thread that can be
            // cancelled see [`Thread::is_cancellable`].
            Ask::Wait(readiness) if flags == 0 && !sticky && !mobile => {
                return Trace::Wait(Wait::new(hand_over(), readiness));
            }
            Ask::Sleep(until) if alone => return Trace::Sleep(Sleep::new(hand_over(), until)),
            Ask::Call if alone => {
                let mut call = call.expect("put into the slot with Ask::Call");
                call.carry(hand_over());
                return Trace::Call(call);
            }
            Ask::Nbio if flags & SPILLED == 0 => {
                let mut nbio = nbio.expect("put into the slot with Ask::Nbio");
                nbio.carry(hand_over());
                return Trace::Nbio(nbio);
            }
            Ask::Fork(child) if flags & SPILLED == 0 => {
                // SAFETY: the slot owned the child.
                return Trace::Fork { child: unsafe { Thread::from_key(child) }, parent: hand_over() };
            }
            Ask::Yield if flags & SPILLED == 0 => return Trace::Yield(hand_over()),
            _ => {}
        }
        // The thread waits for several things, or can be woken by others: its request goes to the
        // event source with a waker, and the thread stays here.
        let mut runnable = flags & NOTIFIED != 0;
        let mut place = Place::UNKNOWN;
        match ask {
            Ask::Wait(readiness) => self.detach(key, Request::Wait(readiness)),
            Ask::Sleep(_) => {
                let alarm = alarm.expect("put beside the slot with Ask::Sleep");
                self.detach(key, Request::Sleep(alarm));
            }
            Ask::Call => {
                let mut call = call.expect("put into the slot with Ask::Call");
                call.detach(waker::of(self.step.id, key.get()));
                self.detach(key, Request::Call(call));
            }
            Ask::Nbio => {
                nbio.expect("put into the slot with Ask::Nbio").perform_detached();
                runnable = true;
            }
            Ask::Fork(child) => {
                // SAFETY: the slot owned the child.
                self.push_woken(unsafe { Thread::from_key(child) });
                runnable = true;
            }
            Ask::Yield => runnable = true,
            Ask::Block(at) | Ask::BlockHere(at) => place = at,
            Ask::Nothing | Ask::Exit => {}
        }
        let any = !self.spilled.borrow().is_empty();
        if runnable {
            if !any {
                return Trace::Yield(hand_over());
            }
            self.push_woken(hand_over());
        } else if mobile {
            if !self.keep_mobile(key, head, place) {
                if !any {
                    return Trace::Yield(hand_over());
                }
                self.push_woken(hand_over());
            }
        } else {
            let state =
                if matches!(ask, Ask::BlockHere(_)) && !sticky && !any { WAITING_HERE } else { WAITING };
            self.keep(key, head, state, place);
        }
        if any { Trace::Any } else { Trace::Blocked }
    }

    /// What the observer knows of a thread, if there is one.
    pub(crate) fn seen(&self, thread: ThreadId) -> Option<Seen> {
        let mut seen = None;
        self.tell(|observer| seen = observer.seen(thread));
        seen
    }

    /// Gives the CPU an observer, or takes the one it has.
    pub(crate) fn set_observer(&self, observer: Option<Box<dyn Observer>>) {
        self.step.running.store(0, Ordering::Relaxed);
        match &observer {
            Some(_) => self.step.flags.fetch_or(OBSERVED, Ordering::Relaxed),
            None => self.step.flags.fetch_and(!OBSERVED, Ordering::Relaxed),
        };
        let before = self.observer.replace(observer);
        drop(before);
    }

    /// Tells the observer, if there is one. What an observer does itself is not told.
    #[inline]
    pub(crate) fn tell(&self, what: impl FnOnce(&mut dyn Observer)) {
        if self.step.flags.load(Ordering::Relaxed) & OBSERVED != 0
            && let Ok(mut observer) = self.observer.try_borrow_mut()
            && let Some(observer) = &mut *observer
        {
            what(&mut **observer);
        }
    }

    /// Tells the observer how a step has ended, before anybody else has the thread.
    fn tell_end(&self, key: Key, polled: Polled, ask: Ask, flags: u8) {
        let end = match (polled, ask) {
            (Polled::Panicked, _) => End::Panic,
            (Polled::Done | Polled::JoinerTold | Polled::JoinerPending, _) | (_, Ask::Exit) => End::Return,
            (_, Ask::Fork(child)) => End::Fork(ThreadId(child)),
            (_, Ask::Nbio) => End::Nbio,
            (_, Ask::Yield) => End::Yield,
            _ if flags & NOTIFIED != 0 => End::Yield,
            (_, Ask::Wait(readiness)) => End::Wait(readiness),
            (_, Ask::Sleep(until)) => End::Sleep(until),
            (_, Ask::Call) => {
                let call = self.call.take();
                let name = call.as_ref().map_or("", |call| call.name());
                self.call.set(call);
                End::Call(name)
            }
            (_, Ask::Block(place) | Ask::BlockHere(place)) => End::of_place(place),
            (_, Ask::Nothing) => End::of_request(self.spilled.borrow().back().map(|d| &d.request)),
        };
        // Who waits in a queue or for an event, and has given its waker away besides, waits for
        // that too.
        let several = flags & SPILLED != 0 || flags & SHARED != 0 && !matches!(ask, Ask::Nothing);
        let ended = Ended { thread: ThreadId(key), end, several };
        self.tell(|observer| observer.ended(ended));
    }

    /// The step ended the thread, and left detached requests of combinators that outlive it.
    fn also_any(&self, end: Trace) -> Trace {
        match end {
            Trace::Ret => Trace::Any,
            // The panic is reported first; the requests come with the next step, or when the
            // scheduler is idle.
            end => {
                self.step.flags.fetch_or(SPILLED, Ordering::Relaxed);
                end
            }
        }
    }

    fn detach(&self, key: Key, request: Request) {
        self.spilled.borrow_mut().push_back(Detached { request, waker: waker::of(self.step.id, key.get()) });
    }

    /// The end of a thread that is joined.
    ///
    /// # Safety
    /// The thread was held by the caller and has just ended as `JoinerPending`.
    unsafe fn tell_joiner(&self, key: Key, head: u32) {
        // So that a joiner of ours is woken here, and not by mail.
        let outer = CURRENT.replace(self);
        // SAFETY: the caller's contract.
        unsafe { thread::conclude(key, head, thread::vtable(head)) };
        leave(outer);
    }

    /// The thread is over: by itself, by a panic, or by `exit`.
    fn end(&self, key: Key, head: u32, polled: Polled) -> Trace {
        let vtable = thread::vtable(head);
        match polled {
            Polled::Pending => {
                let outer = CURRENT.replace(self);
                // SAFETY: `exit` left the thread pending and held by us; it is given up.
                unsafe { thread::cancel(key) };
                leave(outer);
                Trace::Ret
            }
            Polled::JoinerPending => {
                // SAFETY: it was held by us, and has just ended.
                unsafe { self.tell_joiner(key, head) };
                Trace::Ret
            }
            Polled::JoinerTold => Trace::Ret,
            Polled::Done | Polled::Panicked => {
                // SAFETY: the body is dropped, and the block was held by us.
                unsafe { self.free_block(key, vtable.granules as usize) };
                match self.payload.take() {
                    Some(payload) => Trace::Panic(Box::new(Panic::new((vtable.name)(), payload))),
                    None => Trace::Ret,
                }
            }
        }
    }
}

/// The end of what a CPU does: the one that ran `outer` around it runs on.
#[inline(always)]
fn leave(outer: *const CpuInner) {
    match outer.is_null() {
        true => CURRENT.set(ptr::null()),
        false => leave_nested(outer),
    }
}

/// `outer` was kept on the stack, which may be one that was left in the middle of a step and comes
/// back to life when that CPU is gone.
#[cold]
fn leave_nested(outer: *const CpuInner) {
    CURRENT.set(if lives(outer) { outer } else { ptr::null() });
}

/// Whether a CPU at this address lives on this OS thread.
fn lives(cpu: *const CpuInner) -> bool {
    LIVING.try_with(|living| living.borrow().contains(&cpu)).unwrap_or(false)
}

/// Which CPU is running a step on this OS thread, to be compared: null between steps. Code that
/// leaves its stack for another one must see to it that this is then as it was when the stack was
/// entered, because a step ends on the stack that it began on.
#[inline(always)]
pub fn running_cpu() -> *const () {
    CURRENT.get().cast()
}

/// The CPU that is running a step on this OS thread.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a CpuInner> {
    // SAFETY: it is null, or a CPU that lives on this OS thread: `step` and `drop` set it to their
    // own CPU, `leave` to one that it has found in `LIVING`, and `drop` sets it to another before
    // its CPU goes. Callers use it within the same step.
    unsafe { CURRENT.get().as_ref() }
}

/// The CPU, if `cx` is the very context of its running step, so that a request in the slot is the
/// thread's own.
#[inline(always)]
pub(crate) fn direct<'a>(cx: &Context<'_>) -> Option<&'a CpuInner> {
    // The waker itself, or else a copy of it.
    CpuInner::of(cx).or_else(|| direct_by_copy(cx.waker()))
}

#[cold]
#[inline(never)]
fn direct_by_copy<'a>(waker: &Waker) -> Option<&'a CpuInner> {
    current().filter(|cpu| waker.data() == ptr::from_ref(*cpu).cast() && waker::is_lent(waker))
}

/// Whether `waker` is the one that a CPU on this OS thread lends to its steps. Such a waker lives
/// no longer than its CPU, so that who comes back to one must ask.
pub fn is_lent_here(waker: &Waker) -> bool {
    waker::is_lent(waker) && lives(waker.data().cast())
}

/// To be called by a leaf future that is dropped before its system call has been answered.
#[inline(always)]
pub(crate) fn retract<T>(leaf: *const T) {
    if let Some(cpu) = current() {
        cpu.retract(leaf.cast());
    }
}

/// Creates a thread in the running CPU and makes it ready.
#[inline(always)]
pub(crate) fn create_ready<B: Body>(
    cpu: &CpuInner,
    body: impl FnOnce() -> B,
    tags: u32,
) -> Result<(Key, *mut B), ArenaFull> {
    let (key, body) = create(cpu, body, tags)?;
    // SAFETY: just created and ours.
    cpu.push_woken(unsafe { Thread::from_key(key) });
    Ok((key, body))
}
