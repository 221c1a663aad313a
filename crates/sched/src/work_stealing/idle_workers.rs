//! Which workers search and which sleep, with the argument that no wake-up is lost:
//! [`IdleWorkers`].
//!
//! # Words
//! - A worker **works** while it has threads to run. It **searches** while it looks for threads to
//!   steal. It **sleeps** while it waits in its event source.
//! - Each worker has a ring, from which other workers steal, and private queues: the items that it
//!   has claimed, the threads that do not fit the ring, and the threads that must stay with it.
//!   (While the worker is in a long step, another worker takes some of them: see the watcher
//!   below.)
//! - All workers share one [`Injector`] for the items from outside.
//! - A **hand-off** is an item that one worker sends to another.
//! - A worker that **stands aside** sends the items of its events to others, and they send it none.
//!   It is awake or asleep like others. At least one worker does not stand aside.
//! - In the arguments below, the **pusher** is a worker that pushes items into its own ring and
//!   claims from it. The **sleeper** is a worker that falls asleep.
//! - To **call** a sleeper is to take it out of the list of sleepers, to count it as a searcher,
//!   and to unpark it.
//!
//! ```text
//!                     search, if few workers search
//!         ┌──────────────────────────────────────────────────▶ searching
//!         │  ◀─────────────────── found ────────────────────────  │  ▲
//!      working                                                    │  │ a call,
//!         │  ◀──── wake_up, because an event has come ──┐         │  │ or step S3 saw an item
//!         └──────────────────── fall_asleep ───────▶ asleep ◀─────┘──┘
//! ```
//!
//! One lock guards the list of sleepers, the number of searchers and the hand-offs. Workers take it
//! at these transitions and for hand-offs only.
//!
//! # Steps
//! A worker falls asleep only while its own queues are empty:
//! - **S1.** Under the lock, the sleeper leaves the searchers, if it was one, and enters the list
//!   of sleepers. If there is a hand-off to it, it goes on as a searcher instead.
//! - **S2.** The sleeper marks every other ring as [wanted](Stealer::mark_wanted), by one
//!   read-modify-write on the head of each ring.
//! - **S3.** The sleeper looks into every ring and into the injector. If it sees an item, it leaves
//!   the list and goes on as a searcher.
//! - **S4.** The sleeper waits in its event source, which returns at once if the sleeper has been
//!   unparked since S1.
//!
//! The other workers wake it:
//! - **P.** A pusher that has pushed into its ring does nothing more: no fence, no
//!   read-modify-write.
//! - **C.** When the pusher next claims from its ring, the claim is one read-modify-write on the
//!   ring's head, which also reads the mark. If the claim leaves items in the ring and the ring is
//!   wanted, the pusher calls [`surplus`](IdleWorkers::surplus). If no worker searches, `surplus`
//!   calls one sleeper. If no worker sleeps, it clears the mark, under the lock. (The pusher may
//!   call `surplus` at other times too, to wake a sleeper sooner.)
//! - **I.** An OS thread that has pushed to the injector takes the lock, and calls a sleeper if no
//!   worker searches.
//! - **F.** A searcher that has found an item leaves the searchers. If it was the last searcher,
//!   and it sees more items, it calls a sleeper.
//! - **L.** A worker that hands off items does so under the lock, to a worker that neither sleeps
//!   nor stands aside. It wakes no worker.
//!
//! # No item is forgotten
//! *An item in a ring or in a private queue.* The worker that has the queue does not fall asleep
//! while the item is in it. It runs the item, unless another worker takes the item before.
//!
//! *An item in the injector.* Step I and step S1 of any sleeper are critical sections of the same
//! lock. If S1 comes before I, step I finds the sleeper in the list, or finds a searcher. This
//! argument then applies to the searcher, which takes an item or goes through S1 after I. If S1
//! comes after I, the item was in the injector before S1, and S3 sees it. So while an item is in
//! the injector, not all workers are asleep, except between an unpark and its effect.
//!
//! *A hand-off.* Its receiver was awake when it was sent. The receiver takes it at the beginning of
//! its next turn, or sees it in S1, because L and S1 are critical sections of the same lock. If the
//! receiver is in a long step, the watcher takes the hand-off when it visits that worker. (Where
//! there are no visits, the hand-off waits for the end of that step, as other threads do there.)
//!
//! # No sleeper is forgotten
//! *If a claim leaves items in a ring, then no worker stays asleep while no worker searches.* All
//! changes of a ring's head are read-modify-writes, so they have one order, and each reads the
//! value of the change before it. With Acquire and Release, all that a worker did before the
//! earlier change is visible after the later one. Take a claim C of the pusher that leaves items,
//! and a sleeper that goes through S1 to S4:
//! - **S2 before C.** A mark is cleared only under the lock and while the list is empty: before S1,
//!   or after the sleeper was called. Otherwise the claim reads the mark. So the pusher calls
//!   `surplus`, to which S1 is visible. Unless a worker searches, `surplus` finds the sleeper in
//!   the list, and calls it or another one.
//! - **C before S2.** The items that were pushed before C are visible to S3. The sleeper finds
//!   them, or finds that another worker has taken them.
//!
//! `surplus` calls no sleeper if a worker W searches, which it may read without the lock. W either
//! finds an item or goes through S1 to S4. If S2 of W on this ring had come before C, then S1 of W,
//! in which W left the searchers, would have been visible to `surplus`, and W would not have been
//! counted. So S2 of W comes after C, and S3 of W sees the items.
//!
//! If W finds an item elsewhere, step F decides about the next searcher. The number of searchers
//! and the ring are different variables, and there is no fence, so F may overlook an item that the
//! pusher has just pushed. Then the pusher, which is awake, calls a sleeper at its next claim, a
//! bounded number of steps later. The sleeper is late, but it is not forgotten. This delay is the
//! price for a push that is a plain store.
//!
//! # The watcher
//! A worker in a long step runs no other thread. Another worker must notice that, even if all other
//! workers sleep. So one of the sleepers is the **watcher**: it sleeps for a limited time, and then
//! looks at the other workers (`desk.rs` says at what it looks, and what it does). The field
//! `SleepingWorkers::watcher` names it.
//! - **W1.** A worker that has entered the list of sleepers becomes the watcher in
//!   [`become_watcher`](IdleWorkers::become_watcher), if there is none. There is one exception: if
//!   all workers sleep, and have been quiet for some time, the worker does not become the watcher.
//!   So an idle program uses no CPU.
//! - **W2.** In [`wake_up`](IdleWorkers::wake_up) a watcher stops being the watcher.
//! - **W3.** A worker that has slept looks in [`call_watcher`](IdleWorkers::call_watcher), before
//!   it runs its first thread, whether there is a watcher. If there is none, it makes the worker
//!   that has slept longest the watcher and unparks it. That worker wakes up (W2), finds nothing to
//!   do, and falls asleep as the watcher (W1).
//!
//! *While one worker works and another sleeps, there is a watcher, or a worker is about to become
//! the watcher.* Three changes could end that, all of them under the lock. The watcher wakes up:
//! if it finds a thread, it does W3, and otherwise it falls asleep (W1), when not all workers
//! sleep. A worker wakes up while there is no watcher: it does W3 before it works. The watcher
//! finds that all workers sleep, and does not become the watcher again (W1): then no worker works,
//! and the first worker that has a thread to run does W3.
//!
//! A worker that finds no thread must not do W3. If it did, it would call a worker that finds none
//! either and does W3 in its turn. Two workers on one CPU would wake each other without end,
//! because each sleeps before the other one runs.
//!
//! # How many workers search
//! While no other worker works, no worker searches: there is nothing to steal, and an item from
//! outside wakes a sleeper. Otherwise at most half of the workers search. A worker that may not
//! search falls asleep, and is called by a worker that has more items than it can run. Each
//! searcher that finds an item calls the next one, as long as there are items. How long a search
//! lasts is left to the worker: a worker with less success searches for a shorter time.
//!
//! `tests/loom/idle_workers.rs` checks the steps with models of two and three workers.

use super::injector::Injector;
use super::run_ring::{self, RunRing, Stealer};
use crate::primitives::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// The idle workers of a multi-core scheduler, and all that they look at before they sleep: the
/// workers' rings of items `T`, an injector of `J`, and the hand-offs.
///
/// It knows no OS threads. A method that wakes a worker returns the worker's number, and the caller
/// unparks that worker. The unpark must not be lost if the worker has not fallen asleep yet, as
/// with [`Unpark`](selvedge_core::Unpark).
///
/// `idle_workers.rs` has the protocol, and the argument that it loses no wake-up.
///
/// # Paper
/// [LZ07 §4.4]: several worker loops on one pool of ready threads.
#[derive(Debug)]
pub struct IdleWorkers<T, J, const N: usize = { run_ring::SLOTS }> {
    rings: Box<[Stealer<T, N>]>,
    injector: Injector<J>,
    sleeping: Mutex<SleepingWorkers<T>>,
    /// The number of searchers. This field and those below are written under the lock.
    searching: AtomicUsize,
    /// The length of the list of sleeping.
    asleep: AtomicUsize,
    /// The number of hand-offs.
    hand_offs: AtomicUsize,
    /// The number of sleepers that do not stand aside.
    helpers: AtomicUsize,
    /// The number of recalls.
    recalls: AtomicUsize,
    /// Whether some workers sleep and none of them is the watcher.
    unwatched: AtomicBool,
}

#[derive(Debug)]
struct SleepingWorkers<T> {
    /// The sleepers; the last one has slept shortest. The watcher is the first of them.
    list: Vec<usize>,
    /// The sleeper that looks for workers in long steps.
    watcher: Option<usize>,
    /// The items that one worker has sent to another, each with its receiver.
    hand_offs: Vec<(usize, T)>,
    /// The workers that stand aside.
    aside: Vec<usize>,
}

impl<T> SleepingWorkers<T> {
    fn new(workers: usize) -> SleepingWorkers<T> {
        SleepingWorkers {
            list: Vec::with_capacity(workers),
            watcher: None,
            hand_offs: Vec::new(),
            aside: Vec::new(),
        }
    }

    /// Takes a worker out of the list; whether it was in the list.
    fn remove(&mut self, worker: usize) -> bool {
        let at = self.list.iter().position(|&sleeper| sleeper == worker);
        at.map(|at| self.list.remove(at)).is_some()
    }
}

impl<T, J, const N: usize> IdleWorkers<T, J, N> {
    /// The state for `workers` workers, all of them working, and their rings.
    pub fn new(workers: usize) -> (IdleWorkers<T, J, N>, Vec<RunRing<T, N>>) {
        let rings: Vec<RunRing<T, N>> = (0..workers).map(|_| RunRing::new()).collect();
        let idle = IdleWorkers {
            rings: rings.iter().map(RunRing::stealer).collect(),
            injector: Injector::new(),
            sleeping: Mutex::new(SleepingWorkers::new(workers)),
            searching: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            hand_offs: AtomicUsize::new(0),
            helpers: AtomicUsize::new(0),
            recalls: AtomicUsize::new(0),
            unwatched: AtomicBool::new(false),
        };
        (idle, rings)
    }

    /// The number of workers, idle or not.
    pub fn workers(&self) -> usize {
        self.rings.len()
    }

    /// The queue of items from outside. Push through [`inject`](IdleWorkers::inject).
    pub fn injector(&self) -> &Injector<J> {
        &self.injector
    }

    /// Adds an item from outside (step I). Returns the worker to unpark, if any.
    ///
    /// # Errors
    /// Gives the item back if the injector is closed.
    pub fn inject(&self, item: J) -> Result<Option<usize>, J> {
        self.injector.push(item)?;
        Ok(self.locked(|sleeping| self.call(sleeping)))
    }

    /// Calls a sleeper for an item that is neither in a ring nor in the injector, as step I does
    /// for the injector. Returns the worker to unpark, if any. The caller makes the item visible
    /// first. A worker that has entered the list of sleepers looks for such items once more.
    #[must_use = "the worker must be unparked"]
    pub fn call_sleeper(&self) -> Option<usize> {
        self.locked(|sleeping| self.call(sleeping))
    }

    /// Notes that a claim of worker `me` has left items in its ring, which is wanted (step C).
    /// Returns the worker to unpark, if any.
    #[must_use = "the worker must be unparked"]
    pub fn surplus(&self, me: usize) -> Option<usize> {
        if self.searching.load(Ordering::Relaxed) > 0 {
            return None;
        }
        self.locked(|sleeping| {
            if sleeping.list.is_empty() {
                self.rings[me].clear_wanted();
            }
            self.call(sleeping)
        })
    }

    /// Makes a worker that has nothing to do a searcher, unless half of the workers search, or
    /// there can be nothing to find. Returns whether it is a searcher now.
    pub fn search(&self) -> bool {
        self.locked(|sleeping| {
            let searching = self.searching.load(Ordering::Relaxed);
            let working = self.workers() - sleeping.list.len() - searching;
            // `working` counts this worker too.
            let may_find = working > 1 || !self.injector.is_empty();
            let few = 2 * searching < self.workers() && may_find;
            if few {
                self.searching.store(searching + 1, Ordering::Relaxed);
            }
            few
        })
    }

    /// Goes once through the rings of the other workers, from worker `start` on, for the searcher
    /// `me`. Returns the first of the stolen items; the others are in the searcher's ring.
    pub fn steal(&self, me: usize, mine: &mut RunRing<T, N>, start: usize) -> Option<T> {
        let mut victims = self.all_from(start).filter(|&victim| victim != me);
        victims.find_map(|victim| self.rings[victim].steal_into(mine))
    }

    /// All workers, from worker `start` on.
    fn all_from(&self, start: usize) -> impl Iterator<Item = usize> + use<T, J, N> {
        let workers = self.workers();
        (0..workers).map(move |i| start.wrapping_add(i) % workers)
    }

    /// Notes that a searcher has found an item (step F). Returns the worker to unpark, if any.
    #[must_use = "the worker must be unparked"]
    pub fn found(&self) -> Option<usize> {
        self.locked(|sleeping| {
            let searching = self.searching.load(Ordering::Relaxed) - 1;
            self.searching.store(searching, Ordering::Relaxed);
            if searching == 0 && self.sees_item() { self.call(sleeping) } else { None }
        })
    }

    /// Puts a worker among the sleepers (steps S1 to S3). False if it has seen an item; then it is
    /// a searcher.
    pub fn fall_asleep(&self, me: usize, was_searching: bool) -> bool {
        let is_sent = self.locked(|sleeping| {
            let searching = self.searching.load(Ordering::Relaxed);
            let is_sent = sleeping.hand_offs.iter().any(|&(to, _)| to == me);
            match (is_sent, was_searching) {
                (true, false) => self.searching.store(searching + 1, Ordering::Relaxed),
                (false, true) => self.searching.store(searching - 1, Ordering::Relaxed),
                _ => {}
            }
            if !is_sent {
                sleeping.list.push(me);
            }
            is_sent
        });
        if is_sent {
            return false;
        }
        for (_, ring) in self.rings.iter().enumerate().filter(|&(owner, _)| owner != me) {
            ring.mark_wanted();
        }
        let sees_item = self.sees_item();
        if sees_item && !self.wake_up(me) {
            self.locked(|_| {
                self.searching.store(self.searching.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            });
        }
        !sees_item
    }

    /// Notes that a worker is awake again, for whatever reason. True if another OS thread has
    /// called it; then it is a searcher.
    pub fn wake_up(&self, me: usize) -> bool {
        self.locked(|sleeping| {
            sleeping.watcher.take_if(|watcher| *watcher == me);
            !sleeping.remove(me)
        })
    }

    /// Makes a worker that has entered the list of sleepers the watcher, if there is none (step
    /// W1). Returns whether it is the watcher; then it is to sleep for a limited time. `quiet` says
    /// that it has seen no other worker begin a turn for some time.
    pub fn become_watcher(&self, me: usize, quiet: bool) -> bool {
        self.locked(|sleeping| {
            sleeping.watcher.take_if(|watcher| *watcher == me);
            let all_asleep = sleeping.list.len() == self.workers();
            if sleeping.watcher.is_some() || quiet && all_asleep {
                return false;
            }
            // A worker that was called meanwhile is a searcher, and not in the list.
            let asleep = sleeping.remove(me);
            if asleep {
                sleeping.list.insert(0, me);
                sleeping.watcher = Some(me);
            }
            asleep
        })
    }

    /// Makes a sleeper the watcher, if some workers sleep and none of them is the watcher (step
    /// W3). Returns the worker to unpark, if any.
    #[must_use = "the worker must be unparked"]
    #[inline]
    pub fn call_watcher(&self) -> Option<usize> {
        if !self.unwatched.load(Ordering::Relaxed) {
            return None;
        }
        self.locked(|sleeping| {
            if sleeping.watcher.is_none() {
                sleeping.watcher = sleeping.list.first().copied();
                return sleeping.watcher;
            }
            None
        })
    }

    /// Whether all other workers sleep. This is a hint: one of them may be waking up.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) + 1 >= self.workers()
    }

    /// Whether any worker sleeps. This is a hint: a worker may be falling asleep.
    #[inline]
    pub fn does_any_sleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) > 0
    }

    /// Sends items from worker `me` to another that neither sleeps nor stands aside: the first one
    /// from worker `start` on (step L).
    ///
    /// # Errors
    /// Gives the items back if there is none.
    pub fn hand_off(&self, me: usize, start: usize, items: Vec<T>) -> Result<(), Vec<T>> {
        self.locked(|sleeping| {
            let is_free =
                |&to: &usize| to != me && !sleeping.list.contains(&to) && !sleeping.aside.contains(&to);
            let Some(to) = self.all_from(start).find(is_free) else { return Err(items) };
            sleeping.hand_offs.extend(items.into_iter().map(|item| (to, item)));
            Ok(())
        })
    }

    /// Notes that a worker stands aside. False, and nothing is noted, if all others do.
    pub fn stand_aside(&self, me: usize) -> bool {
        self.locked(|sleeping| {
            let may = sleeping.aside.len() + 1 < self.workers();
            if may {
                sleeping.aside.push(me);
            }
            may
        })
    }

    /// Notes that a worker has come back, which stood aside.
    pub fn come_back(&self, me: usize) {
        self.locked(|sleeping| sleeping.aside.retain(|&worker| worker != me));
    }

    /// The number of recalls. A worker that stands aside comes back when the number has changed.
    #[inline]
    pub fn recalls(&self) -> usize {
        self.recalls.load(Ordering::Relaxed)
    }

    /// Recalls the workers that stand aside. False if there are none.
    pub fn recall(&self) -> bool {
        self.locked(|sleeping| {
            let any = !sleeping.aside.is_empty();
            if any {
                self.recalls.store(self.recalls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            any
        })
    }

    /// Whether a worker sleeps that does not stand aside. This is a hint: a worker may be falling
    /// asleep.
    #[inline]
    pub fn does_helper_sleep(&self) -> bool {
        self.helpers.load(Ordering::Relaxed) > 0
    }

    /// Whether there are hand-offs. This is a hint, and costs one load.
    #[inline]
    pub fn has_hand_offs(&self) -> bool {
        self.hand_offs.load(Ordering::Relaxed) > 0
    }

    /// Takes the hand-offs to those workers for which `to` returns true.
    pub fn take_hand_offs(&self, mut to: impl FnMut(usize) -> bool) -> Vec<T> {
        self.locked(|sleeping| {
            sleeping.hand_offs.extract_if(.., |(receiver, _)| to(*receiver)).map(|(_, item)| item).collect()
        })
    }

    /// The number of workers that sleep. A worker that has been called does not count, even if it
    /// has not woken up yet.
    pub fn sleeping(&self) -> usize {
        self.locked(|sleeping| sleeping.list.len())
    }

    /// Takes a sleeper from the list and counts it as a searcher, if no worker searches. Returns
    /// it; the caller of the public method unparks it.
    fn call(&self, sleeping: &mut SleepingWorkers<T>) -> Option<usize> {
        if self.searching.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let called = sleeping.list.pop()?;
        sleeping.watcher.take_if(|watcher| *watcher == called);
        self.searching.store(1, Ordering::Relaxed);
        Some(called)
    }

    fn sees_item(&self) -> bool {
        !self.injector.is_empty() || self.rings.iter().any(|ring| !ring.is_empty())
    }

    /// Does `work` under the lock, and then updates the fields that are read without it.
    fn locked<R>(&self, work: impl FnOnce(&mut SleepingWorkers<T>) -> R) -> R {
        let mut sleeping = self.sleeping.lock().expect("no panic under this lock");
        let result = work(&mut sleeping);
        self.asleep.store(sleeping.list.len(), Ordering::Relaxed);
        let helpers = sleeping.list.iter().filter(|worker| !sleeping.aside.contains(worker)).count();
        self.helpers.store(helpers, Ordering::Relaxed);
        self.hand_offs.store(sleeping.hand_offs.len(), Ordering::Relaxed);
        let unwatched = sleeping.watcher.is_none() && !sleeping.list.is_empty();
        self.unwatched.store(unwatched, Ordering::Relaxed);
        result
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_worker_searches_where_no_other_worker_works() {
        let (idle, _rings) = IdleWorkers::<u32, u32>::new(2);
        assert!(idle.fall_asleep(1, false));
        assert!(idle.is_alone() && !idle.search());
        assert_eq!(idle.inject(1), Ok(Some(1)));
        assert!(!idle.is_alone());
        assert!(idle.wake_up(1));
        assert_eq!(idle.found(), None);
        assert!(idle.search());
        let (alone, _ring) = IdleWorkers::<u32, u32>::new(1);
        assert!(alone.is_alone() && !alone.search());
    }

    #[test]
    fn an_item_is_handed_off_to_a_worker_that_is_awake_and_keeps_it_awake() {
        let (idle, _rings) = IdleWorkers::<u32, u32>::new(3);
        assert!(idle.fall_asleep(1, false));
        assert_eq!(idle.hand_off(0, 1, vec![7, 8]), Ok(()));
        assert_eq!(idle.take_hand_offs(|to| to != 2), []);
        assert!(!idle.fall_asleep(2, false), "there are hand-offs to it");
        assert_eq!(idle.take_hand_offs(|to| to == 2), [7, 8]);
        assert!(!idle.has_hand_offs());
        assert!(idle.fall_asleep(2, true));
        assert_eq!(idle.hand_off(0, 1, vec![9]), Err(vec![9]), "all others sleep");
    }

    #[test]
    fn a_worker_that_stands_aside_gets_nothing_until_it_comes_back() {
        let (idle, _rings) = IdleWorkers::<u32, u32>::new(2);
        assert!(!idle.recall(), "no worker stands aside");
        assert!(idle.stand_aside(1));
        assert!(!idle.stand_aside(0), "the last one does not stand aside");
        assert_eq!(idle.hand_off(0, 1, vec![7]), Err(vec![7]));
        assert_eq!(idle.hand_off(1, 2, vec![8]), Ok(()));
        assert_eq!(idle.take_hand_offs(|to| to == 0), [8]);
        assert!(idle.fall_asleep(1, false));
        assert!(idle.does_any_sleep() && !idle.does_helper_sleep());
        assert!(idle.recall());
        assert_eq!(idle.recalls(), 1);
        idle.come_back(1);
        assert!(idle.does_helper_sleep());
    }

    #[test]
    fn half_of_the_workers_may_search() {
        let (idle, _rings) = IdleWorkers::<u32, u32>::new(4);
        assert!(idle.search() && idle.search() && !idle.search());
        assert_eq!(idle.found(), None);
        assert!(idle.search());
    }

    #[test]
    fn a_sleeper_is_called_once_and_by_the_marked_ring() {
        let (idle, mut rings) = IdleWorkers::<u32, u32>::new(2);
        assert!(idle.fall_asleep(1, false));
        (0..3).for_each(|i| rings[0].push(i).unwrap());
        let claim = rings[0].claim(2);
        assert!(claim.wanted && claim.left == 2);
        assert_eq!(idle.surplus(0), Some(1));
        assert_eq!(idle.surplus(0), None, "a worker searches already");
        assert!(idle.wake_up(1));
        assert_eq!(idle.steal(1, &mut rings[1], 0), Some(1));
        assert_eq!(idle.found(), None, "no worker sleeps");
        assert_eq!(idle.surplus(0), None);
        assert!(!rings[0].is_wanted(), "no worker sleeps, so the mark is cleared");
    }

    #[test]
    fn a_worker_that_sees_work_at_the_last_look_gets_up_as_a_searcher() {
        let (idle, _rings) = IdleWorkers::<u32, u32>::new(2);
        assert_eq!(idle.inject(7), Ok(None));
        assert!(!idle.fall_asleep(1, false));
        assert_eq!(idle.sleeping(), 0);
        assert_eq!(idle.injector().take(2, 9), [7]);
        assert_eq!(idle.found(), None);
    }

    #[test]
    fn the_last_searcher_passes_the_search_on() {
        let (idle, mut rings) = IdleWorkers::<u32, u32>::new(3);
        assert!(idle.fall_asleep(2, false) && idle.fall_asleep(1, false));
        assert_eq!(idle.inject(1), Ok(Some(1)), "the worker that fell asleep last is woken first");
        assert_eq!(idle.inject(2), Ok(None));
        (0..8).for_each(|i| rings[0].push(i).unwrap());
        assert_eq!(idle.injector().take(3, 1), [1]);
        assert_eq!(idle.found(), Some(2));
    }
}
