//! All interleavings of workers that push, claim, search and sleep: a sleeper is woken when there
//! is work for it. If it is not woken, loom reports a deadlock.

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;
use selvedge_sched::{IdleWorkers, RunRing};

const N: usize = 4;

struct Shared {
    idle: IdleWorkers<u32, u32, N>,
    parked: Vec<Notify>,
    done: AtomicUsize,
}

impl Shared {
    fn new(workers: usize) -> (Arc<Shared>, Vec<RunRing<u32, N>>) {
        let (idle, rings) = IdleWorkers::new(workers);
        let parked = (0..workers).map(|_| Notify::new()).collect();
        (Arc::new(Shared { idle, parked, done: AtomicUsize::new(0) }), rings)
    }

    fn unpark(&self, worker: Option<usize>) {
        if let Some(worker) = worker {
            self.parked[worker].notify();
        }
    }

    /// Runs a worker that begins without work: it searches, and sleeps in between, until it has one
    /// item.
    fn get_one(&self, me: usize, mine: &mut RunRing<u32, N>) -> u32 {
        let mut searching = self.idle.search();
        loop {
            if searching {
                let handed_off = || self.idle.take_hand_offs(|to| to == me).pop();
                let item = self.idle.injector().take(self.idle.workers(), 1).pop();
                if let Some(item) = item.or_else(|| self.idle.steal(me, mine, me + 1)).or_else(handed_off) {
                    self.unpark(self.idle.found());
                    return item;
                }
            }
            if self.idle.fall_asleep(me, searching) {
                self.parked[me].wait();
                searching = self.idle.wake_up(me) || self.idle.search();
            } else {
                searching = true;
                thread::yield_now();
            }
        }
    }
}

fn model(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(check);
}

#[test]
fn what_a_claim_leaves_wakes_a_sleeper() {
    model(3, || {
        let (shared, mut rings) = Shared::new(2);
        let (mut other, mut mine) = (rings.pop().unwrap(), rings.pop().unwrap());
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || shared.get_one(1, &mut other))
        };
        mine.push(1).unwrap();
        mine.push(2).unwrap();
        let claim = mine.claim(2);
        if claim.left > 0 && claim.wanted {
            shared.unpark(shared.idle.surplus(0));
        }
        // Worker 0 stays in a long step. The item that its claim left goes to the sleeper, unless
        // the sleeper stole an item before the claim.
        let item = sleeper.join().unwrap();
        assert!(item == 1 || item == 2);
    });
}

#[test]
fn what_is_injected_wakes_a_sleeper() {
    model(3, || {
        let (shared, mut rings) = Shared::new(2);
        let (mut other, _mine) = (rings.pop().unwrap(), rings.pop().unwrap());
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || shared.get_one(1, &mut other))
        };
        shared.unpark(shared.idle.inject(7).unwrap());
        assert_eq!(sleeper.join().unwrap(), 7);
    });
}

#[test]
fn two_sleepers_get_one_each() {
    model(2, || {
        let (shared, rings) = Shared::new(3);
        let sleepers: Vec<_> = rings
            .into_iter()
            .enumerate()
            .skip(1)
            .map(|(me, mut mine)| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let item = shared.get_one(me, &mut mine);
                    shared.done.fetch_add(1, Ordering::Relaxed);
                    item
                })
            })
            .collect();
        shared.unpark(shared.idle.inject(1).unwrap());
        shared.unpark(shared.idle.inject(2).unwrap());
        let mut items: Vec<u32> = sleepers.into_iter().map(|s| s.join().unwrap()).collect();
        items.sort();
        assert_eq!(items, [1, 2]);
        assert_eq!(shared.done.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn what_is_handed_off_keeps_its_receiver_awake() {
    model(3, || {
        let (shared, mut rings) = Shared::new(2);
        let mut other = rings.swap_remove(1);
        let receiver = {
            let shared = shared.clone();
            thread::spawn(move || shared.get_one(1, &mut other))
        };
        // If the receiver sleeps already, worker 0 keeps the item.
        if let Err(kept) = shared.idle.hand_off(0, 1, vec![7]) {
            assert_eq!(kept, [7]);
            shared.unpark(shared.idle.inject(7).unwrap());
        }
        assert_eq!(receiver.join().unwrap(), 7);
    });
}

#[test]
fn a_worker_that_wakes_up_where_all_slept_makes_another_the_watcher() {
    model(3, || {
        let (shared, _rings) = Shared::new(2);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                loop {
                    assert!(shared.idle.fall_asleep(1, false));
                    if shared.idle.become_watcher(1, true) {
                        // It would sleep for a limited time.
                        return;
                    }
                    shared.parked[1].wait();
                    assert!(!shared.idle.wake_up(1), "there is nothing to search for");
                }
            })
        };
        assert!(shared.idle.fall_asleep(0, false));
        shared.idle.become_watcher(0, true);
        // Something has come; what follows may be a long step.
        assert!(!shared.idle.wake_up(0));
        shared.unpark(shared.idle.call_watcher());
        other.join().unwrap();
    });
}
