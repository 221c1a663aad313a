//! The CPU ([`Cpu`]) as schedulers call it. A scheduler has one for each OS thread on which it runs
//! threads.
//!
//! Its parts, from the bottom: `step.rs` (the words that other OS threads may touch), `slot.rs`
//! (the request of the running step), `inner.rs` (the memory of a CPU), `keep.rs` (threads that
//! wait), `ask.rs` (how leaf futures ask), `conclude.rs` (the rare ends of a step), `run.rs` (the
//! step and its common ends) and `witness.rs` (what threads say when a deadlock is reported).

pub(crate) mod ask;
mod conclude;
pub(crate) mod inner;
mod keep;
pub(crate) mod run;
pub(crate) mod slot;
pub(crate) mod step;
pub(crate) mod witness;

pub use inner::Cpu;

use crate::arena::{self, Base, Key, Slab};
use crate::budget;
use crate::directory;
use crate::draw;
use crate::events::SUSPICION_MIN;
use crate::group::Members;
use crate::header::{MOBILE, WAITING, WAITING_HERE};
use crate::observe;
use crate::observer::Note;
use crate::outlet::{Inlet, Outlet, outlet};
use crate::quietly::quietly;
use crate::remote_spawn::Door;
use crate::thread::Thread;
use crate::trace::Detached;
use crate::wait_site::WaitSite;
use crate::waker;
use crate::{ArenaFullError, CpuError, Group, RunQueue, ThreadInfo, Time};
use inner::{CURRENT, CpuInner, LIVING, Own, leave};
use slot::Slot;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use step::Count;

impl Cpu {
    /// A new CPU without threads.
    ///
    /// # Errors
    /// If the process can reserve no address space for threads, or has 4,096 CPUs already.
    pub fn new() -> Result<Cpu, CpuError> {
        Cpu::with(None)
    }

    /// A new CPU of a group. `Send` threads move among the CPUs of a group.
    ///
    /// # Errors
    /// As [`new`](Cpu::new).
    pub fn new_in(group: &Group) -> Result<Cpu, CpuError> {
        Cpu::with(Some(Arc::clone(&group.members)))
    }

    fn with(members: Option<Arc<Members>>) -> Result<Cpu, CpuError> {
        let group = members.as_ref().map_or(0, |members| members.id.get());
        let (id, entry) = directory::enter(members.clone())?;
        let slab = Slab::new(id, group).inspect_err(|_| directory::leave(id))?;
        let inner: *mut CpuInner = entry.memory.get_or_init(|| CpuInner::allocate(id)).as_ptr().cast();
        // SAFETY: `directory::enter` has given this CPU the number, and gives it to no other CPU
        // before `directory::leave`. The last CPU with the number has dropped its `own` before it
        // left, so the memory is free. `allocate` has written the step, which is only ever reached
        // by shared reference. The waker refers to the memory, and is lent out during steps only.
        unsafe {
            // Code that has outlived the last CPU may have set flags.
            (*inner).step.flags.store(0, Ordering::Relaxed);
            (*inner).step.waiting.iter().for_each(Count::reset);
            (&raw mut (*inner).own).write(Own {
                base: Base::get(),
                slot: Slot::new(),
                woken: UnsafeCell::new(RunQueue::new()),
                inlet: UnsafeCell::new(None),
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
                door: Arc::new(Door::to(entry)),
                adopter: RefCell::new(None),
                suspicion: Cell::new(SUSPICION_MIN),
                suspicious_since: Cell::new(None),
                observer: RefCell::new(None),
                observing: Cell::new(0),
            });
            let cpu = Cpu { inner: NonNull::new_unchecked(inner) };
            // A CPU that is made while the OS thread's variables are destroyed is not listed. No
            // code comes back to its waker then.
            let _ = LIVING.try_with(|living| living.borrow_mut().push(inner));
            let _ = cpu.turn();
            budget::begin();
            draw::begin(0);
            Ok(cpu)
        }
    }

    /// Creates a thread that stays on this CPU. It does not run until it is stepped.
    ///
    /// # Errors
    /// If no room is left in the arena.
    #[inline]
    pub fn thread(&mut self, future: impl Future<Output = ()> + 'static) -> Result<Thread, ArenaFullError> {
        self.inner().forked(future, 0)
    }

    /// As [`thread`](Cpu::thread). If the CPU is in a [`Group`], the thread may move among the CPUs
    /// of the group.
    ///
    /// # Errors
    /// If no room is left in the arena.
    #[inline]
    pub fn send_thread(
        &mut self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Thread, ArenaFullError> {
        let tags = self.inner().mobility();
        self.inner().forked(future, tags)
    }

    /// The next thread that other code has made ready: one that was created by
    /// [`spawn`](crate::spawn), was handed a value, was woken by a waker, or was given back by an
    /// event source. Threads come in the order in which they became ready.
    ///
    /// It takes in the threads that were woken on other OS threads when there is no other thread.
    /// [`poll`](Cpu::poll) and [`tick`](Cpu::tick) always take them in. A scheduler calls one of
    /// these now and then.
    #[inline(always)]
    pub fn woken(&mut self) -> Option<Thread> {
        let cpu = self.inner();
        match cpu.pop_woken() {
            None if cpu.entry.inbox.has_mail() => woken_elsewhere(self.inner),
            thread => thread,
        }
    }

    /// The outlet of the CPU. From now on, the threads that may move and that a step makes ready
    /// come out there, and not from [`woken`](Cpu::woken): the step's thread hands them a value,
    /// wakes or spawns them. So another OS thread can take them before the step ends.
    ///
    /// A CPU has one outlet: a second call makes the first one useless. Without a
    /// [`Group`] no thread comes out of it.
    pub fn outlet(&mut self) -> Outlet {
        let cpu = self.inner();
        if cpu.group == 0 {
            return Outlet::default();
        }
        let (inlet, outlet) = outlet();
        // SAFETY: the inlet is touched on this OS thread alone, and no reference to it lives.
        let before = unsafe { (*cpu.inlet.get()).replace(inlet) };
        quietly(|| drop(before));
        outlet
    }

    /// Makes the threads ready that other OS threads have asked for.
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
            self.run_remote_spawns();
        }
    }

    /// Whether [`woken`](Cpu::woken) would find a thread, or the holder of the outlet.
    pub(crate) fn has_woken(&mut self) -> bool {
        self.take_mail();
        // SAFETY: the two are touched on this OS thread alone, and no foreign code runs.
        let (woken, inlet) = unsafe { (&*self.inner().woken.get(), &*self.inner().inlet.get()) };
        !woken.is_empty() || inlet.as_ref().is_some_and(Inlet::has_any)
    }

    /// Puts a thread behind those already [woken](Cpu::woken). An event source returns threads this
    /// way; a scheduler may use it as its ready queue.
    #[inline(always)]
    pub fn make_ready(&mut self, thread: Thread) {
        self.inner().push_woken(thread);
    }

    /// Wakes a waker. If the waker belongs to a thread that may run on this CPU, this is faster
    /// than [`Waker::wake`], and the thread is put behind those already [woken](Cpu::woken) here. A
    /// panic of a foreign waker ends here, after the panic hook has reported it.
    pub fn wake(&mut self, waker: Waker) {
        match waker::key_of(&waker) {
            Some((id, key)) => waker::resume(Some(self.inner()), id, key),
            None => quietly(|| waker.wake()),
        }
    }

    /// Takes a thread into the CPU's keeping, and returns the waker that makes it ready again. It
    /// is for event sources that hold a waker instead of the thread.
    ///
    /// # Errors
    /// Gives the thread back if it has been woken since its step, so that it must run again.
    ///
    /// # Panics
    /// If another CPU created the thread, and the thread may not move to this one. It is cancelled.
    pub fn keep(&mut self, thread: Thread) -> Result<Waker, Thread> {
        let cpu = self.inner();
        let key = thread.into_key();
        let head = arena::header(key).head();
        if head & MOBILE == 0 {
            cpu.keep(key, head, WAITING, WaitSite::UNKNOWN);
        } else if !cpu.keep_mobile(key, head, WaitSite::UNKNOWN) {
            // SAFETY: the handle owned the thread, and `keep_mobile` has not given it up.
            return Err(unsafe { Thread::from_key(key) });
        }
        Ok(waker::of(cpu.step.id, key.get()))
    }

    /// The next request that was made on behalf of a waker. A scheduler calls this after
    /// [`Trace::Detached`](crate::Trace::Detached) until there is none.
    pub fn detached(&mut self) -> Option<Detached> {
        self.inner().spilled.borrow_mut().pop_front()
    }

    /// The number of such requests.
    pub(crate) fn detached_count(&self) -> usize {
        self.inner().spilled.borrow().len()
    }

    /// Puts a request behind the others.
    pub(crate) fn put_back(&mut self, detached: Detached) {
        self.inner().spilled.borrow_mut().push_back(detached);
    }

    /// The number of threads that the CPU keeps because they wait for other threads or behind
    /// wakers. For a CPU of a [`Group`] it is the number of the group, which is exact while no
    /// other CPU of the group runs a step.
    pub fn waiting(&self) -> usize {
        match &self.inner().members {
            Some(members) => members.waiting(),
            None => self.inner().entry.waiting() as usize,
        }
    }

    /// The number of waiting threads that only other threads of this CPU can resume.
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

    /// Every thread that lives in this CPU's memory, with the place where it waits if the CPU knows
    /// it.
    ///
    /// # Complexity
    /// It looks at every block that was ever used, so do not call it in every turn of a loop.
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
/// It takes the address in the `Cpu`, and not the `Cpu`, which its caller has borrowed for this. So
/// the compiler knows in a scheduler's loop that the `Cpu` is unchanged, and does not load it
/// again.
#[cold]
#[inline(never)]
fn woken_elsewhere(cpu: NonNull<CpuInner>) -> Option<Thread> {
    let mut cpu = ManuallyDrop::new(Cpu { inner: cpu });
    cpu.open_mail();
    cpu.inner().pop_woken()
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
        // Destructors may wake and create threads. The next round cancels those.
        let outer = CURRENT.replace(self.inner.as_ptr());
        let unborn = cpu.door.close();
        // SAFETY: the inlet is touched on this OS thread alone, and no reference to it lives.
        let inlet = unsafe { (*cpu.inlet.get()).take() };
        quietly(|| drop((unborn, inlet)));
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
            quietly(|| drop((woken, spilled)));
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
        // SAFETY: `with` has written it. No step runs, because a step borrows the `Cpu`, so there
        // is no reference to it. The step stays.
        unsafe { (&raw mut (*self.inner.as_ptr()).own).drop_in_place() };
        directory::leave(id);
    }
}

impl CpuInner {
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
}
