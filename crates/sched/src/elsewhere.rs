//! How one OS thread has another one begin on another CPU than its own: [`SleeperCpus`] for an OS
//! thread that sleeps, and [`MovePlace`], which `beside.rs` uses too, for a new one.
//!
//! # The late start
//! Linux may queue an OS thread that is made or woken on the CPU of the **mover**, which makes or
//! wakes it, although another CPU is idle. If the mover computes on, the **owner**, which is to
//! begin, waits there for the end of a time slice, or for a CPU that looks for work: some 3 ms.
//!
//! Linux does so with a new OS thread, in three of four starts on a virtual machine with two CPUs.
//! It does so with an OS thread that fell asleep on the CPU on which its waker runs. (Linux does
//! not choose a CPU that the host has taken away from a virtual machine, and a host may do that
//! with an idle one.) Two workers that wait for events come to sleep on one CPU, and then a burst
//! of work runs on this CPU alone.
//!
//! So the mover limits the CPUs on which the owner may begin. It leaves the CPUs on which the owner
//! may run anyway, except for the mover's own CPU. As its first act the owner takes its CPUs again,
//! all of them. Linux wakes an OS thread on the CPU on which it fell asleep, if that is not the
//! waker's. So such a sleeper is left alone, and a sleeper that was moved need seldom be moved
//! again.
//!
//! # The order of both acts
//! The owner must not restore its CPUs before the mover has limited them. Both change
//! [`MovePlace::state`]:
//!
//! ```text
//!   AWAKE    the owner runs
//!   QUEUED   the owner has not begun, or sleeps
//!   MOVING   a mover is limiting the CPUs of the owner
//!   MOVED    a mover has limited them
//!
//!   AWAKE  → QUEUED   the owner falls asleep
//!   QUEUED → AWAKE    the owner arrives: it has begun
//!   QUEUED → MOVING   a mover begins
//!   MOVING → MOVED    the mover ends
//!   MOVING → QUEUED   the mover ends, and has limited nothing
//!   MOVED  → AWAKE    the owner arrives, and restores its CPUs
//! ```
//!
//! Only an exchange leads away from `QUEUED`, so one of the two sees the other. The owner waits
//! while the state is `MOVING`, which takes as long as two system calls of the mover. So the owner
//! has not ended either when the mover names it to the system. `tests/loom/elsewhere.rs` checks
//! this.
//!
//! # CPUs that are set from outside
//! The mover reads the owner's CPUs before it limits them, so it finds the CPUs that `taskset` has
//! set last. The owner reads its CPUs before it restores them, and leaves them alone if they differ
//! from the CPUs that the mover left. So a set that comes from outside in between stays. Linux has
//! no call that compares and sets. A set that comes between the read and the write of the mover, or
//! of the owner, is lost: that is a microsecond each.

use crate::primitives::{AtomicU64, Ordering, SlotCell, yield_now};
use std::mem;

/// An OS thread, as far as its CPUs go.
pub(crate) trait HasCpus {
    type Set: Copy + PartialEq;

    /// The CPUs on which it may run; `None` if the system does not say.
    fn cpus(&self) -> Option<Self::Set>;

    /// Limits it to `cpus`. False if the system refuses.
    fn set_cpus(&self, cpus: &Self::Set) -> bool;
}

const AWAKE: u64 = 0;
const QUEUED: u64 = 1;
const MOVING: u64 = 2;
const MOVED: u64 = 3;
const STATES: u64 = 3;
const NOTE_BITS: u32 = u64::BITS - 2;

/// The place where an OS thread that is to begin (the owner) meets the OS thread that moves it (the
/// mover).
#[derive(Debug)]
pub(crate) struct MovePlace<S> {
    /// One of the four states, and above it the owner's note.
    state: AtomicU64,
    /// The owner's CPUs before the move, and the CPUs to which the mover has limited it. The mover
    /// uses the cell while the state is `MOVING`, and the owner while it is `MOVED`.
    cpus: SlotCell<Option<(S, S)>>,
}

// SAFETY: an exchange from `QUEUED` to `MOVING` gives the cell to one mover, and only the owner
// leaves `MOVED` (`arrive`).
unsafe impl<S: Send> Sync for MovePlace<S> {}

impl<S: Copy + PartialEq> MovePlace<S> {
    /// A place of an owner that is awake.
    pub(crate) fn new() -> MovePlace<S> {
        MovePlace { state: AtomicU64::new(AWAKE), cpus: SlotCell::new(None) }
    }

    /// A place of an owner that has not begun.
    pub(crate) fn queued() -> MovePlace<S> {
        MovePlace { state: AtomicU64::new(QUEUED), cpus: SlotCell::new(None) }
    }

    /// Queues the calling OS thread, which sleeps from here on, with a `note` of [`NOTE_BITS`] for
    /// its mover. False if another owner is queued.
    fn queue(&self, note: u64) -> bool {
        let queued = note << 2 | QUEUED;
        self.state.compare_exchange(AWAKE, queued, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Arrives as the owner: the calling OS thread, which has begun. It has its CPUs again, if a
    /// mover has limited them.
    pub(crate) fn arrive(&self, me: &impl HasCpus<Set = S>) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            match state & STATES {
                QUEUED => {
                    let awake =
                        self.state.compare_exchange(state, AWAKE, Ordering::AcqRel, Ordering::Acquire);
                    if awake.is_ok() {
                        return;
                    }
                }
                MOVED => {
                    // SAFETY: the state is `MOVED`, and only this OS thread leaves it.
                    let moved = self.cpus.with_mut(|cpus| unsafe { (*cpus).take() });
                    if let Some((all, limited)) = moved
                        && me.cpus() == Some(limited)
                    {
                        me.set_cpus(&all);
                    }
                    self.state.store(AWAKE, Ordering::Release);
                    return;
                }
                MOVING => yield_now(),
                _ => return,
            }
        }
    }

    /// Begins to move the owner, unless it is awake or its note is not `wanted`. The move ends when
    /// the result is dropped.
    pub(crate) fn begin_move(&self, wanted: impl FnOnce(u64) -> bool) -> Option<Move<'_, S>> {
        let queued = self.state.load(Ordering::Relaxed);
        if queued & STATES != QUEUED || !wanted(queued >> 2) {
            return None;
        }
        let moving = queued & !STATES | MOVING;
        let begun = self.state.compare_exchange(queued, moving, Ordering::AcqRel, Ordering::Relaxed);
        // Not `then_some`, which would make and drop a move if there is none.
        begun.is_ok().then(|| Move { place: self, after: queued })
    }
}

/// A move of the owner by a mover.
pub(crate) struct Move<'a, S> {
    place: &'a MovePlace<S>,
    /// The state when the move has ended.
    after: u64,
}

impl<S: Copy + PartialEq> Move<'_, S> {
    fn note(&self) -> u64 {
        self.after >> 2
    }

    /// Limits the owner to the CPUs that `without` leaves; `None` leaves all.
    pub(crate) fn limit(mut self, owner: &impl HasCpus<Set = S>, without: impl FnOnce(S) -> Option<S>) {
        if let Some(all) = owner.cpus()
            && let Some(limited) = without(all)
            && owner.set_cpus(&limited)
        {
            // SAFETY: the state is `MOVING`, and only this mover leaves it.
            self.place.cpus.with_mut(|cpus| unsafe { *cpus = Some((all, limited)) });
            self.after = MOVED;
        }
    }
}

impl<S> Drop for Move<'_, S> {
    fn drop(&mut self) {
        self.place.state.store(self.after, Ordering::Release);
    }
}

/// The CPUs on which an OS thread may run.
#[derive(Clone, Copy)]
pub(crate) struct CpuSet(libc::cpu_set_t);

impl PartialEq for CpuSet {
    fn eq(&self, other: &CpuSet) -> bool {
        // SAFETY: the call reads both sets.
        unsafe { libc::CPU_EQUAL(&self.0, &other.0) }
    }
}

impl CpuSet {
    /// The CPU on which the caller runs.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn mine() -> CpuSet {
        // SAFETY: a set is an array of numbers.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the number is one of a CPU, within the set.
        unsafe { libc::CPU_SET(my_cpu().expect("Linux says it"), &mut set) };
        CpuSet(set)
    }

    /// These CPUs without the one on which the caller runs. `None` if that leaves all or none.
    pub(crate) fn without_mine(mut self) -> Option<CpuSet> {
        let mine = my_cpu()?;
        // SAFETY: the number is within the set.
        if !unsafe { libc::CPU_ISSET(mine, &self.0) } {
            return None;
        }
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_CLR(mine, &mut self.0) };
        (self.count() > 0).then_some(self)
    }

    /// Whether the CPU of this number is one of them.
    pub(crate) fn contains(&self, cpu: usize) -> bool {
        // SAFETY: the number is within the set, which the first condition ensures.
        cpu < libc::CPU_SETSIZE as usize && unsafe { libc::CPU_ISSET(cpu, &self.0) }
    }

    fn count(&self) -> i32 {
        // SAFETY: the call reads the set.
        unsafe { libc::CPU_COUNT(&self.0) }
    }
}

/// The CPU on which the caller runs, if the system says it and the number is within a set.
#[inline]
fn my_cpu() -> Option<usize> {
    // SAFETY: the call has no condition.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).ok().filter(|&cpu| cpu < libc::CPU_SETSIZE as usize)
}

/// An OS thread of this process, which has not ended.
pub(crate) struct OsThread(libc::pthread_t);

impl OsThread {
    /// # Safety
    /// The OS thread has not ended while the result is used.
    pub(crate) unsafe fn new(thread: libc::pthread_t) -> OsThread {
        OsThread(thread)
    }

    pub(crate) fn caller() -> OsThread {
        // SAFETY: the call has no condition.
        OsThread(unsafe { libc::pthread_self() })
    }
}

impl HasCpus for OsThread {
    type Set = CpuSet;

    fn cpus(&self) -> Option<CpuSet> {
        // SAFETY: a set is an array of numbers.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the OS thread exists, because it is the caller or because of the promise to
        // `new`. The call writes to the set, and at most its length.
        let error = unsafe { libc::pthread_getaffinity_np(self.0, size_of_val(&set), &mut set) };
        (error == 0).then_some(CpuSet(set))
    }

    fn set_cpus(&self, cpus: &CpuSet) -> bool {
        // SAFETY: the OS thread exists, as above. The call reads the set.
        unsafe { libc::pthread_setaffinity_np(self.0, size_of_val(&cpus.0), &cpus.0) == 0 }
    }
}

/// Whether the caller may run on several CPUs, and the system lets it say on which.
pub(crate) fn has_caller_several_cpus() -> bool {
    !cfg!(any(loom, miri)) && OsThread::caller().cpus().is_some_and(|cpus| cpus.count() > 1)
}

/// Moves a sleeping OS thread to another CPU than the waker's, before the waker wakes it.
///
/// A worker of a scheduler has one for its sleeps. Another worker that wakes it and computes on
/// calls [`begin_elsewhere`](SleeperCpus::begin_elsewhere) first. The sleeper has all its CPUs
/// again when its sleep ends, also if it unwinds.
pub(crate) struct SleeperCpus {
    /// The note of an owner is its OS thread, and below that the CPU on which it fell asleep.
    place: MovePlace<CpuSet>,
    has_several: bool,
}

const CPU_BITS: u32 = (libc::CPU_SETSIZE as u32).ilog2();

impl SleeperCpus {
    /// One for each of this number of `workers`, which may run on the CPUs of the caller. With one
    /// worker, or one CPU, nothing is done for the sleepers.
    ///
    /// # Complexity
    /// One system call.
    pub(crate) fn of_workers(workers: usize) -> Box<[SleeperCpus]> {
        let has_several = workers > 1 && has_caller_several_cpus();
        (0..workers).map(|_| SleeperCpus { place: MovePlace::new(), has_several }).collect()
    }

    /// Runs `wait`, which puts the calling OS thread to sleep, until it returns. One OS thread may
    /// do so at a time; the CPUs of a second one are left alone. Code of the program's that `wait`
    /// runs after the sleep, such as a foreign waker, may run before the CPUs are restored.
    ///
    /// # Complexity
    /// Two exchanges of a word. If a waker has limited the CPUs, two system calls.
    pub(crate) fn while_asleep<R>(&self, wait: impl FnOnce() -> R) -> R {
        struct Arrive<'a>(&'a SleeperCpus);

        impl Drop for Arrive<'_> {
            fn drop(&mut self) {
                self.0.place.arrive(&OsThread::caller());
            }
        }

        let _arrive = (self.has_several && self.queue()).then(|| Arrive(self));
        wait()
    }

    #[inline]
    fn queue(&self) -> bool {
        let (me, cpu) = (OsThread::caller().0, my_cpu());
        // The name of an OS thread is its address, so it has 47 bits, or 56 if a program asks for
        // such addresses.
        let fits = me >> (NOTE_BITS - CPU_BITS) == 0;
        fits && cpu.is_some_and(|cpu| self.place.queue(me << CPU_BITS | cpu as u64))
    }

    /// Moves the sleeper to another CPU than the caller's, if it fell asleep on the caller's. The
    /// caller is about to wake it, and to compute on. A caller that is to sleep itself does not
    /// call this, because its CPU is a good one for the sleeper.
    ///
    /// # Complexity
    /// No system call, if there is no sleeper or it fell asleep on another CPU. Two otherwise.
    #[inline]
    pub(crate) fn begin_elsewhere(&self) {
        let is_here = |note| my_cpu().is_some_and(|cpu| cpu as u64 == note & ((1 << CPU_BITS) - 1));
        if self.has_several
            && let Some(moving) = self.place.begin_move(is_here)
        {
            // SAFETY: the OS thread has not ended, because it waits in `arrive` until the move has
            // ended. `while_asleep` calls that when its wait ends, also if it unwinds.
            let sleeper = unsafe { OsThread::new(moving.note() >> CPU_BITS) };
            moving.limit(&sleeper, CpuSet::without_mine);
        }
    }
}

/// For `tests/loom/elsewhere.rs`.
#[cfg(loom)]
#[doc(hidden)]
pub fn model_of_two_sleeps() {
    begin_and_sleep();
}

/// An OS thread that begins, and then sleeps, while another one may limit its CPUs, has all of them
/// after each.
#[cfg(any(loom, test))]
fn begin_and_sleep() {
    use crate::primitives::{Arc, AtomicU32};
    #[cfg(loom)]
    use loom::thread;
    #[cfg(not(loom))]
    use std::thread;
    const ALL: u32 = 3;

    struct Owner(AtomicU32);

    impl HasCpus for Owner {
        type Set = u32;

        fn cpus(&self) -> Option<u32> {
            Some(self.0.load(Ordering::Relaxed))
        }

        fn set_cpus(&self, cpus: &u32) -> bool {
            self.0.store(*cpus, Ordering::Relaxed);
            true
        }
    }

    let shared = Arc::new((MovePlace::queued(), Owner(AtomicU32::new(ALL))));
    let theirs = shared.clone();
    let owner = thread::spawn(move || {
        let (place, me) = &*theirs;
        place.arrive(me);
        assert_eq!(me.cpus(), Some(ALL));
        assert!(place.queue(7));
        place.arrive(me);
        assert_eq!(me.cpus(), Some(ALL));
    });
    let (place, owner_of) = &*shared;
    for _ in 0..2 {
        if let Some(moving) = place.begin_move(|_| true) {
            moving.limit(owner_of, |all| Some(all & 1));
        }
    }
    owner.join().unwrap();
}

#[cfg(all(test, not(loom)))]
#[test]
fn an_os_thread_has_all_its_cpus_after_each_sleep() {
    (0..20).for_each(|_| begin_and_sleep());
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::thread;

    fn my_cpus() -> CpuSet {
        OsThread::caller().cpus().expect("Linux says it")
    }

    /// The CPUs of an OS thread after its `wait`, during which it may run on all CPUs of the
    /// caller. Meanwhile `waker` runs, on the CPU on which the other one fell asleep, and gets its
    /// name.
    fn after_a_sleep(
        wait: impl FnOnce() + Send,
        waker: impl FnOnce(&SleeperCpus, &OsThread) + Send,
    ) -> CpuSet {
        let all = my_cpus();
        let cpus = &SleeperCpus::of_workers(2)[0];
        let (tell, asleep) = mpsc::channel();
        thread::scope(|scope| {
            let sleeper = scope.spawn(move || {
                let place = CpuSet::mine();
                assert!(OsThread::caller().set_cpus(&place));
                let slept = catch_unwind(AssertUnwindSafe(|| {
                    cpus.while_asleep(|| {
                        assert!(OsThread::caller().set_cpus(&all));
                        tell.send((OsThread::caller(), place)).unwrap();
                        thread::park();
                        wait();
                    })
                }));
                (slept.is_ok(), my_cpus())
            });
            let (id, place) = asleep.recv().unwrap();
            let waking = scope.spawn(move || {
                assert!(OsThread::caller().set_cpus(&place));
                waker(cpus, &id);
            });
            let woken = waking.join();
            sleeper.thread().unpark();
            let (_, after) = sleeper.join().unwrap();
            woken.unwrap();
            after
        })
    }

    #[test]
    fn a_sleeper_begins_elsewhere_and_has_all_its_cpus_then() {
        let all = my_cpus();
        let after = after_a_sleep(
            || (),
            |cpus, sleeper| {
                cpus.begin_elsewhere();
                let elsewhere = all.without_mine().unwrap_or(all);
                assert!(sleeper.cpus() == Some(elsewhere));
                // A second waker finds that the sleeper is moved.
                cpus.begin_elsewhere();
                assert!(sleeper.cpus() == Some(elsewhere));
            },
        );
        assert!(after == all);
    }

    #[test]
    fn a_sleeper_that_unwinds_has_all_its_cpus() {
        let after = after_a_sleep(|| panic!("on purpose"), |cpus, _| cpus.begin_elsewhere());
        assert!(after == my_cpus());
    }

    #[test]
    fn cpus_that_are_set_during_a_sleep_stay() {
        let mine = my_cpus();
        let before = after_a_sleep(
            || (),
            |cpus, sleeper| {
                assert!(sleeper.set_cpus(&CpuSet::mine()));
                cpus.begin_elsewhere();
                // No CPU is left, so the sleeper is not limited.
                assert!(sleeper.cpus() == Some(CpuSet::mine()));
            },
        );
        assert!(before.count() == 1);
        let after = after_a_sleep(
            || (),
            |cpus, sleeper| {
                cpus.begin_elsewhere();
                assert!(sleeper.set_cpus(&CpuSet::mine()));
            },
        );
        assert!(after.count() == 1 && (mine.count() == 1 || after != mine));
    }

    #[test]
    fn a_sleeper_on_another_cpu_is_left_alone() {
        let all = my_cpus();
        let after = after_a_sleep(
            || (),
            |cpus, sleeper| {
                if let Some(elsewhere) = all.without_mine() {
                    assert!(OsThread::caller().set_cpus(&elsewhere));
                    cpus.begin_elsewhere();
                    assert!(sleeper.cpus() == Some(all));
                }
            },
        );
        assert!(after == all);
    }

    #[test]
    fn only_one_os_thread_sleeps_at_a_place() {
        let cpus = &SleeperCpus::of_workers(2)[0];
        let all = my_cpus();
        cpus.while_asleep(|| {
            thread::scope(|scope| scope.spawn(|| cpus.while_asleep(|| ())).join().unwrap());
            cpus.begin_elsewhere();
        });
        assert!(my_cpus() == all);
    }
}
