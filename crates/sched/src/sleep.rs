//! Who works, who searches, who sleeps: and why no wake-up is lost.
//!
//! # The parts
//! Each worker has queues that only it reaches (what it has claimed, what does not fit its ring,
//! what must stay with it) and a ring from which others steal. (While it is in a long step another
//! worker takes some of the former: see the watcher, below.) There is one [`Injector`] for what
//! comes from outside, and a list of letters, which are what one worker has sent to another. A
//! worker is in one of three states:
//!
//! ```text
//!                        search (if not too many do)
//!         ┌──────────────────────────────────────────────────▶ searching
//!         │  ◀──────────────────────── found ───────────────────  │  ▲
//!      working                                                    │  │ wake_one
//!         │  ◀─── wake_up: an event came, or mail ───┐            │  │ or its last look saw work
//!         └───────────────────── fall_asleep ───▶ asleep ◀────────┘──┘
//! ```
//!
//! The list of the sleepers and the number of the searchers are under one lock, which is taken at
//! these transitions only.
//!
//! # Falling asleep
//! A worker falls asleep only when its own queues are empty, in this order:
//! - **S1.** Under the lock it leaves the searchers, if it was one, and enters the list of the
//!   sleepers.
//! - **S2.** It marks every other ring as [wanted](Stealer::want): one read-modify-write on each
//!   ring's head.
//! - **S3.** It looks once more into every ring, into the injector, and for letters to anybody. If
//!   there is anything it gets up again, as a searcher.
//! - **S4.** It waits in its event source, which returns at once if it has been unparked since.
//!
//! # Waking
//! - **P.** A worker that has pushed into its ring does nothing more: no fence, no
//!   read-modify-write.
//! - **C.** When it next claims from its ring (one read-modify-write on the ring's head) and leaves
//!   something there, it looks at the mark, which that same operation has read. If the ring is
//!   wanted it calls [`surplus`](Crew::surplus): if nobody searches, one sleeper is taken from the
//!   list, counted as a searcher, and unparked. If nobody sleeps, the mark is taken away, under the
//!   lock. (It may do so at other times too, for a quicker response.)
//! - **I.** Who pushes to the injector then takes the lock, and wakes a sleeper likewise if nobody
//!   searches.
//! - **F.** A searcher that finds something leaves the searchers; if it was the last one and there
//!   is more to be found, it wakes the next.
//!
//! - **L.** Who sends a letter does so under the lock, and only while the list of the sleepers is
//!   empty. It wakes nobody.
//!
//! # No thread is forgotten
//! *In a ring or a private queue.* Its worker is awake, for it does not sleep while there is one;
//! it will run it unless another does.
//!
//! *In the injector.* Let the push's critical section I be on the lock that S1 takes too. If S1
//! comes before I, then I finds the sleeper, or a searcher, to whom this argument applies again. If
//! it comes after, then the item was written before I, and S3 sees it. So not all workers are
//! asleep with an item in the injector, except between an unpark and its effect.
//!
//! *In a letter.* It was sent while nobody slept. Its addressee takes it at the beginning of his
//! next turn, unless a searcher does before. If he is in a long step, then whoever falls asleep
//! first finds it in S3: S1 is on the same lock as L, and later.
//!
//! # No sleeper is forgotten
//! That is: if after a claim something is left in the ring, then no worker sleeps on while nobody
//! searches. All changes of a ring's head are read-modify-writes, hence in one order; each reads
//! what the one before it wrote, and with Acquire and Release everything that was done before the
//! earlier is visible after the later. Take a claim C that leaves something and a worker that goes
//! through S1-S4:
//! - **S2 before C.** The claim reads the mark. (It is taken away only under the lock and while the
//!   list is empty, so before S1.) So `surplus` is called, and S1 is visible to it: it finds the
//!   sleeper in the list and wakes it or another, unless somebody searches.
//! - **C before S2.** What was pushed before C is visible in S3, which finds it, or finds that
//!   somebody else has taken it.
//!
//! `surplus` is content when somebody searches, be it by a look without the lock. That searcher W
//! either finds something, or goes through S1-S4. If its S2 on this ring came before C, its leaving
//! of the searchers in S1 would have been visible, and W not have been counted. So its S2 comes
//! after C, and its S3 sees what was left.
//!
//! If W finds something elsewhere, F says who looks next. There the searchers' number and the ring
//! are different variables, and without fences F may overlook what a ring's worker has just pushed.
//! Then the worker of that ring, who is awake, wakes a sleeper at its next claim, a bounded number
//! of steps later: a delay, and no loss. That is the price for a push that is a plain store.
//!
//! # Who watches
//! A worker in a long step serves nobody. Another worker must notice that, be it that all others
//! sleep. So one of the sleepers is the **watcher**: it sleeps for a limited time, and looks at the
//! others each time (`work_stealing.rs` says at what, and what it does then). `Sleepers::watcher`
//! names it.
//! - **W1.** A worker that has fallen asleep becomes the watcher in [`watches`](Crew::watches), if
//!   there is none. If all workers sleep, and have done nothing for some time, it does not: then
//!   nobody watches, and an idle program uses no CPU.
//! - **W2.** A watcher that wakes up is the watcher no more, from [`wake_up`](Crew::wake_up) on.
//! - **W3.** A worker that wakes up, and finds in [`call_watcher`](Crew::call_watcher) that there
//!   is no watcher, makes the longest sleeper the watcher and unparks it. The sleeper wakes up
//!   (W2), finds nothing to do, and falls asleep as the watcher (W1).
//!
//! *While one worker is awake and another sleeps, there is a watcher, or one is about to be.* Three
//! changes could end that, all of them under the lock. Let the watcher wake up: then it is awake
//! itself and does W3. Let a worker wake up while there is no watcher: it does W3. Let the
//! watcher's last look find all asleep (W1): then no worker is awake, and whichever wakes up does
//! W3.
//!
//! # How many search
//! None while no other works: then there is nothing to steal, and what comes from outside wakes a
//! sleeper. Otherwise at most half of the workers. A worker that may not search goes to sleep, and
//! is woken by whoever finds more than one can do. Waking goes on one by one, for as long as there
//! is something to be found. How long a search lasts is the worker's own affair: the less the last
//! ones have found, the shorter the next.
//!
//! `tests/loom_sleep.rs` checks this with models of two and three workers.

use crate::primitives::{AtomicBool, AtomicUsize, Mutex, Ordering};
use crate::{Deque, Injector, Stealer};

/// What the workers of a multi-core scheduler share: their rings of items `T`, an injector of `J`,
/// and the list of the sleepers.
///
/// It knows no OS threads: where a worker is to be woken its number is returned, for the caller to
/// unpark it; and the unpark must not be lost if the worker has not quite fallen asleep yet, as
/// with [`Unpark`](selvedge_core::Unpark).
///
/// `sleep.rs` has the protocol, and the argument that it loses no wake-up.
///
/// # Paper
/// [LZ07 §4.4]: several worker loops on one pool of ready threads.
#[derive(Debug)]
pub struct Crew<T, J, const N: usize = { crate::deque::SLOTS }> {
    rings: Box<[Stealer<T, N>]>,
    injector: Injector<J>,
    sleepers: Mutex<Sleepers<T>>,
    /// Written under the lock on the sleepers, like the two below.
    searching: AtomicUsize,
    /// How many there are in the list of the sleepers.
    asleep: AtomicUsize,
    /// How many letters there are.
    letters: AtomicUsize,
    /// Whether some sleep and none of them is the watcher. Written under the lock.
    unwatched: AtomicBool,
}

#[derive(Debug)]
struct Sleepers<T> {
    /// The workers that sleep; the last one has slept shortest. The watcher is the first of them.
    list: Vec<usize>,
    /// The sleeper that looks after those in long steps.
    watcher: Option<usize>,
    /// What one worker has sent to another, and to which.
    letters: Vec<(usize, T)>,
}

impl<T> Sleepers<T> {
    fn new(workers: usize) -> Sleepers<T> {
        Sleepers { list: Vec::with_capacity(workers), watcher: None, letters: Vec::new() }
    }

    /// Takes a worker out of the list, if it is in there.
    fn remove(&mut self, worker: usize) -> bool {
        let at = self.list.iter().position(|&sleeper| sleeper == worker);
        at.map(|at| self.list.remove(at)).is_some()
    }
}

impl<T, J, const N: usize> Crew<T, J, N> {
    /// A crew of `workers`, all of them working, and their rings.
    pub fn new(workers: usize) -> (Crew<T, J, N>, Vec<Deque<T, N>>) {
        let deques: Vec<Deque<T, N>> = (0..workers).map(|_| Deque::new()).collect();
        let crew = Crew {
            rings: deques.iter().map(Deque::stealer).collect(),
            injector: Injector::new(),
            sleepers: Mutex::new(Sleepers::new(workers)),
            searching: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            letters: AtomicUsize::new(0),
            unwatched: AtomicBool::new(false),
        };
        (crew, deques)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.rings.len()
    }

    /// What comes from outside. Push through [`inject`](Crew::inject).
    pub fn injector(&self) -> &Injector<J> {
        &self.injector
    }

    /// Adds something from outside (step I). The worker to unpark, if any.
    ///
    /// # Errors
    /// Gives the item back if the injector is closed.
    pub fn inject(&self, item: J) -> Result<Option<usize>, J> {
        self.injector.push(item)?;
        Ok(self.with_sleepers(|sleepers| self.call(sleepers)))
    }

    /// A worker's claim has left something in its ring, which is wanted (step C). The worker to
    /// unpark, if any.
    #[must_use = "the worker must be unparked"]
    pub fn surplus(&self, me: usize) -> Option<usize> {
        if self.searching.load(Ordering::Relaxed) > 0 {
            return None;
        }
        self.with_sleepers(|sleepers| {
            if sleepers.list.is_empty() {
                self.rings[me].satisfied();
            }
            self.call(sleepers)
        })
    }

    /// A worker that has nothing to do asks whether it may search. Not where there can be nothing
    /// to find: while no other works.
    pub fn search(&self) -> bool {
        self.with_sleepers(|sleepers| {
            let searching = self.searching.load(Ordering::Relaxed);
            let working = self.workers() - sleepers.list.len() - searching;
            // This one is counted.
            let may_find = working > 1 || !self.injector.is_empty();
            let few = 2 * searching < self.workers() && may_find;
            if few {
                self.searching.store(searching + 1, Ordering::Relaxed);
            }
            few
        })
    }

    /// A searcher looks through the others' rings once, beginning at any. What it has stolen, the
    /// rest of which is in its own ring.
    pub fn steal(&self, me: usize, mine: &mut Deque<T, N>, start: usize) -> Option<T> {
        let workers = self.workers();
        let victims = (0..workers).map(|i| start.wrapping_add(i) % workers).filter(|&victim| victim != me);
        victims.into_iter().find_map(|victim| self.rings[victim].steal_into(mine))
    }

    /// A searcher has found something to do (step F). The worker to unpark, if any.
    #[must_use = "the worker must be unparked"]
    pub fn found(&self) -> Option<usize> {
        self.with_sleepers(|sleepers| {
            let searching = self.searching.load(Ordering::Relaxed) - 1;
            self.searching.store(searching, Ordering::Relaxed);
            if searching == 0 && self.is_work_about() { self.call(sleepers) } else { None }
        })
    }

    /// A worker falls asleep (steps S1 to S3); false if it has seen something to do: then it is a
    /// searcher.
    pub fn fall_asleep(&self, me: usize, was_searching: bool) -> bool {
        self.with_sleepers(|sleepers| {
            if was_searching {
                self.searching.store(self.searching.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
            }
            sleepers.list.push(me);
        });
        for (_, ring) in self.rings.iter().enumerate().filter(|&(owner, _)| owner != me) {
            ring.want();
        }
        let see_work = self.is_work_about();
        if see_work && !self.wake_up(me) {
            self.with_sleepers(|_| {
                self.searching.store(self.searching.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            });
        }
        !see_work
    }

    /// A worker is awake again, for whatever reason. True if another has woken it: then it is a
    /// searcher.
    pub fn wake_up(&self, me: usize) -> bool {
        self.with_sleepers(|sleepers| {
            sleepers.watcher.take_if(|watcher| *watcher == me);
            !sleepers.remove(me)
        })
    }

    /// A worker that has fallen asleep asks whether it is the watcher (step W1): then it is to
    /// sleep for a limited time. `quiet` says that it has seen no other worker make a turn for some
    /// time.
    pub fn watches(&self, me: usize, quiet: bool) -> bool {
        self.with_sleepers(|sleepers| {
            sleepers.watcher.take_if(|watcher| *watcher == me);
            let all_asleep = sleepers.list.len() == self.workers();
            if sleepers.watcher.is_some() || quiet && all_asleep {
                return false;
            }
            // Unless it was called meanwhile.
            let asleep = sleepers.remove(me);
            if asleep {
                sleepers.list.insert(0, me);
                sleepers.watcher = Some(me);
            }
            asleep
        })
    }

    /// A worker that is awake sees to it that there is a watcher (step W3). The worker to unpark,
    /// if any.
    #[must_use = "the worker must be unparked"]
    #[inline]
    pub fn call_watcher(&self) -> Option<usize> {
        if !self.unwatched.load(Ordering::Relaxed) {
            return None;
        }
        self.with_sleepers(|sleepers| {
            if sleepers.watcher.is_none() {
                sleepers.watcher = sleepers.list.first().copied();
                return sleepers.watcher;
            }
            None
        })
    }

    /// Whether all other workers sleep. As it seems: one may just be waking up.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) + 1 >= self.workers()
    }

    /// Whether any worker sleeps. As it seems: one may just be falling asleep.
    #[inline]
    pub fn does_any_sleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) > 0
    }

    /// A worker that has work sends items to another that has work too (step L).
    ///
    /// # Errors
    /// Gives the items back if any worker sleeps.
    pub fn send(&self, to: usize, items: Vec<T>) -> Result<(), Vec<T>> {
        self.with_sleepers(|sleepers| {
            if !sleepers.list.is_empty() {
                return Err(items);
            }
            sleepers.letters.extend(items.into_iter().map(|item| (to, item)));
            Ok(())
        })
    }

    /// Whether anything that was sent has not been taken yet. As it seems; one load.
    #[inline]
    pub fn has_letters(&self) -> bool {
        self.letters.load(Ordering::Relaxed) > 0
    }

    /// Takes what was sent to those workers.
    pub fn letters(&self, mut to: impl FnMut(usize) -> bool) -> Vec<T> {
        self.with_sleepers(|sleepers| {
            sleepers.letters.extract_if(.., |(whose, _)| to(*whose)).map(|(_, item)| item).collect()
        })
    }

    /// How many workers sleep. One that has been called does not count, though it may not know yet.
    pub fn sleeping(&self) -> usize {
        self.with_sleepers(|sleepers| sleepers.list.len())
    }

    /// Takes a sleeper from the list and counts it as a searcher, if nobody searches already.
    fn call(&self, sleepers: &mut Sleepers<T>) -> Option<usize> {
        if self.searching.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let called = sleepers.list.pop()?;
        sleepers.watcher.take_if(|watcher| *watcher == called);
        self.searching.store(1, Ordering::Relaxed);
        Some(called)
    }

    fn is_work_about(&self) -> bool {
        self.has_letters() || !self.injector.is_empty() || self.rings.iter().any(|ring| !ring.is_empty())
    }

    fn with_sleepers<R>(&self, work: impl FnOnce(&mut Sleepers<T>) -> R) -> R {
        let mut sleepers = self.sleepers.lock().expect("no panic under this lock");
        let result = work(&mut sleepers);
        self.asleep.store(sleepers.list.len(), Ordering::Relaxed);
        self.letters.store(sleepers.letters.len(), Ordering::Relaxed);
        let unwatched = sleepers.watcher.is_none() && !sleepers.list.is_empty();
        self.unwatched.store(unwatched, Ordering::Relaxed);
        result
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_searches_where_nobody_else_works() {
        let (crew, _deques) = Crew::<u32, u32>::new(2);
        assert!(crew.fall_asleep(1, false));
        assert!(crew.is_alone() && !crew.search());
        assert_eq!(crew.inject(1), Ok(Some(1)));
        assert!(!crew.is_alone());
        assert!(crew.wake_up(1));
        assert_eq!(crew.found(), None);
        assert!(crew.search());
        let (alone, _deque) = Crew::<u32, u32>::new(1);
        assert!(alone.is_alone() && !alone.search());
    }

    #[test]
    fn a_letter_is_sent_only_while_nobody_sleeps_and_keeps_everybody_awake() {
        let (crew, _deques) = Crew::<u32, u32>::new(3);
        assert_eq!(crew.send(1, vec![7, 8]), Ok(()));
        assert_eq!(crew.letters(|to| to == 2), []);
        assert!(!crew.fall_asleep(2, false), "the addressee may be in a long step");
        assert_eq!(crew.letters(|_| true), [7, 8]);
        assert!(!crew.has_letters());
        assert!(crew.fall_asleep(2, true));
        assert_eq!(crew.send(1, vec![9]), Err(vec![9]));
    }

    #[test]
    fn half_of_the_workers_may_search() {
        let (crew, _deques) = Crew::<u32, u32>::new(4);
        assert!(crew.search() && crew.search() && !crew.search());
        assert_eq!(crew.found(), None);
        assert!(crew.search());
    }

    #[test]
    fn who_sleeps_is_called_once_and_by_the_marked_ring() {
        let (crew, mut deques) = Crew::<u32, u32>::new(2);
        assert!(crew.fall_asleep(1, false));
        (0..3).for_each(|i| deques[0].push(i).unwrap());
        let claim = deques[0].claim(2);
        assert!(claim.wanted && claim.left == 2);
        assert_eq!(crew.surplus(0), Some(1));
        assert_eq!(crew.surplus(0), None, "one searches already");
        assert!(crew.wake_up(1));
        assert_eq!(crew.steal(1, &mut deques[1], 0), Some(1));
        assert_eq!(crew.found(), None, "nobody sleeps");
        assert_eq!(crew.surplus(0), None);
        assert!(!deques[0].is_wanted(), "nobody sleeps, so the mark is gone");
    }

    #[test]
    fn a_worker_that_sees_work_at_the_last_look_gets_up_as_a_searcher() {
        let (crew, _deques) = Crew::<u32, u32>::new(2);
        assert_eq!(crew.inject(7), Ok(None));
        assert!(!crew.fall_asleep(1, false));
        assert_eq!(crew.sleeping(), 0);
        assert_eq!(crew.injector().take(2, 9), [7]);
        assert_eq!(crew.found(), None);
    }

    #[test]
    fn the_last_searcher_passes_the_search_on() {
        let (crew, mut deques) = Crew::<u32, u32>::new(3);
        assert!(crew.fall_asleep(2, false) && crew.fall_asleep(1, false));
        assert_eq!(crew.inject(1), Ok(Some(1)), "who fell asleep last is woken first");
        assert_eq!(crew.inject(2), Ok(None));
        (0..8).for_each(|i| deques[0].push(i).unwrap());
        assert_eq!(crew.injector().take(3, 1), [1]);
        assert_eq!(crew.found(), Some(2));
    }
}
