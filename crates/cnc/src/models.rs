//! Models for loom of private parts: the item's slot, and the end of a run.
//!
//! `tests/loom/slot.rs` and `tests/loom/end.rs` call these functions under `--cfg loom`; no other
//! build has this file. A change to `slot.rs`, `in_use.rs`, `waiters.rs`, `places.rs`,
//! `live/bell.rs` or `schedulers/circle.rs` needs a run of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Tally, Ordering};

use loom::thread;

use selvedge_sched::RunRing;

use crate::in_use::{InUse, InUseWaiters};
use crate::live::bell::{Leave, RunBell};
use crate::primitives::{AtomicUsize, Condvar, Mutex, lock};
use crate::schedulers::circle::{Closed, LOOKS_LIVING, LeftAs, Outside, WorkerCircle};
use crate::slot::{GetCount, ItemSlot, Left, Look};
use crate::storage::{Shape, Storage};
use crate::waiters::{WaiterMemory, WaiterPool};

type ModelSlot = ItemSlot<Box<u32>, u32>;

/// Looks for an item that is kept, and waits for it. Tells whether it is there, or is being put.
/// Otherwise the put has the waiter.
fn get_or_wait(memory: &WaiterMemory<u32>, slot: &ModelSlot, name: u32) -> bool {
    if slot.state.look() == Look::Kept {
        // SAFETY: the item is kept.
        assert_eq!(**unsafe { slot.value() }, 7);
        return true;
    }
    slot.state.wait(name, &WaiterPool::new(memory)).is_err()
}

/// Puts the item, and counts the waiters that it wakes.
fn put_and_wake(memory: &WaiterMemory<u32>, slot: &ModelSlot) -> u32 {
    let mut waiters = slot.put(Box::new(7), GetCount::Kept, 3, 5).expect("the first put");
    let pool = WaiterPool::new(memory);
    let woken = std::iter::from_fn(|| waiters.pop(&pool)).count() as u32;
    assert_eq!(slot.state.maker(), Some((3, Some(5))));
    woken
}

/// One OS thread puts an item while two get it, or wait for it. Each gets it, or is told of the
/// put, or is woken once.
pub fn a_put_and_two_waiters() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let getters: Vec<_> = (0..2)
        .map(|name| {
            let (memory, slot) = (memory.clone(), slot.clone());
            thread::spawn(move || u32::from(get_or_wait(&memory, &slot, name)))
        })
        .collect();
    let woken = put_and_wake(&memory, &slot);
    let told: u32 = getters.into_iter().map(|getter| getter.join().unwrap()).sum();
    assert_eq!(woken + told, 2);
    empty(slot);
}

/// An OS thread that is told of a put lets the put end, and then finds the item.
pub fn a_put_that_has_begun() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let getter = {
        let (memory, slot) = (memory.clone(), slot.clone());
        thread::spawn(move || {
            let told = get_or_wait(&memory, &slot, 0);
            if told {
                slot.state.until_full();
                assert!(get_or_wait(&memory, &slot, 0));
            }
            u32::from(told)
        })
    };
    let woken = put_and_wake(&memory, &slot);
    assert_eq!(woken + getter.join().unwrap(), 1);
    empty(slot);
}

/// A count in one of the two words of a slot.
fn times(times: u16, is_large: bool) -> GetCount {
    if is_large { GetCount::Large(times.into()) } else { GetCount::Times(times) }
}

/// Of two puts, one is told.
pub fn two_puts() {
    let slot = Arc::new(ModelSlot::new());
    let other = {
        let slot = slot.clone();
        thread::spawn(move || slot.put(Box::new(1), GetCount::Kept, 1, 1).map(drop).is_ok())
    };
    let mine = slot.put(Box::new(2), GetCount::Kept, 2, 2).map(drop).is_ok();
    assert!(mine != other.join().unwrap());
    empty(slot);
}

/// Two steps get an item with a count of two and return it, while it is put; a third one comes too
/// late or is told. The value is dropped once, by the last one.
pub fn counted_gets(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let getter = |slot: Arc<ModelSlot>| {
        move || match slot.state.look() {
            Look::Claimed => {
                // SAFETY: the item is claimed until `give_back`.
                assert_eq!(**unsafe { slot.value() }, 7);
                if slot.state.give_back().0 == Left::None {
                    // SAFETY: this caller has made the item gone.
                    unsafe { slot.drop_value() };
                }
                1
            }
            Look::AllClaimed | Look::Exhausted => 0,
            look => panic!("{look:?}"),
        }
    };
    let others = [thread::spawn(getter(slot.clone())), thread::spawn(getter(slot.clone()))];
    let got: u32 = getter(slot.clone())() + others.map(|other| other.join().unwrap()).iter().sum::<u32>();
    assert_eq!(got, 2);
    assert!(!slot.state.has_value());
}

/// A step takes an item of which another step has a get. It gets the value by value, or is told
/// that the other one has not ended.
pub fn a_take_and_a_get(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let other = {
        let slot = slot.clone();
        thread::spawn(move || {
            assert_eq!(slot.state.look(), Look::Claimed);
            // SAFETY: the item is claimed until `give_back`.
            assert_eq!(**unsafe { slot.value() }, 7);
            assert_eq!(slot.state.give_back().0, Left::One);
        })
    };
    let mut taken = slot.state.take();
    other.join().unwrap();
    if taken == Look::InUse {
        taken = slot.state.take();
    }
    assert_eq!(taken, Look::Claimed);
    // SAFETY: `take` has said `Claimed`.
    assert_eq!(*unsafe { slot.move_out() }, 7);
    assert!(!slot.state.has_value());
}

/// A step waits to be the last one with a get, while the other one ends. It is woken, or it is told
/// that it need not wait. Then it takes the item.
pub fn a_take_that_waits(is_large: bool) {
    let (slot, waiters) = (Arc::new(ModelSlot::new()), Arc::new(InUseWaiters::new()));
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let other = {
        let (slot, waiters) = (slot.clone(), waiters.clone());
        thread::spawn(move || {
            assert_eq!(slot.state.look(), Look::Claimed);
            let (left, is_waited) = slot.state.give_back();
            assert_eq!(left, Left::One);
            if is_waited { waiters.of_slot(5) } else { Vec::new() }
        })
    };
    let mut taken = slot.state.take();
    let waits = taken == Look::InUse && waiters.wait(5, &slot.state, 9, InUse::ToBeLast).is_ok();
    if taken == Look::InUse && !waits {
        taken = slot.state.take();
    }
    let woken = other.join().unwrap();
    assert_eq!(woken, if waits { vec![9] } else { vec![] });
    if waits {
        taken = slot.state.take();
    }
    assert_eq!(taken, Look::Claimed);
    // SAFETY: `take` has said `Claimed`.
    assert_eq!(*unsafe { slot.move_out() }, 7);
}

/// Of two steps with a get of an item with a count of one, one is late. It is woken when the other
/// one has ended, or it sees that the item is gone.
pub fn a_get_that_is_late(is_large: bool) {
    let (slot, waiters) = (Arc::new(ModelSlot::new()), Arc::new(InUseWaiters::new()));
    drop(slot.put(Box::new(7), times(1, is_large), 1, 1).expect("the first put"));
    // The steps that this one wakes, and whether this one waits.
    let get = |name: u32, slot: &ModelSlot, waiters: &InUseWaiters<u32>| match slot.state.look() {
        Look::Claimed => {
            let (left, is_waited) = slot.state.give_back();
            assert_eq!(left, Left::None);
            // SAFETY: this caller has made the item gone.
            unsafe { slot.drop_value() };
            (if is_waited { waiters.of_slot(5) } else { Vec::new() }, false)
        }
        Look::AllClaimed => {
            let waits = waiters.wait(5, &slot.state, name, InUse::ForAGet).is_ok();
            assert!(waits || slot.state.look() == Look::Exhausted);
            (Vec::new(), waits)
        }
        Look::Exhausted => (Vec::new(), false),
        look => panic!("{look:?}"),
    };
    let other = {
        let (slot, waiters) = (slot.clone(), waiters.clone());
        thread::spawn(move || get(1, &slot, &waiters))
    };
    let (woken, waits) = get(2, &slot, &waiters);
    let (woken_there, waits_there) = other.join().unwrap();
    assert_eq!(woken, if waits_there { vec![1] } else { vec![] });
    assert_eq!(woken_there, if waits { vec![2] } else { vec![] });
    assert!(!slot.state.has_value());
}

/// A step gives its claim back, to run again, and another step has the get instead of it. The drop
/// of the value by the second one comes after the read by the first one.
pub fn a_claim_given_back(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(1, is_large), 1, 1).expect("the first put"));
    let end = |slot: &ModelSlot| match slot.state.look() {
        Look::Claimed => {
            assert_eq!(slot.state.give_back().0, Left::None);
            // SAFETY: this caller has made the item gone.
            unsafe { slot.drop_value() };
            true
        }
        Look::AllClaimed | Look::Exhausted => false,
        look => panic!("{look:?}"),
    };
    let other = {
        let slot = slot.clone();
        thread::spawn(move || {
            if slot.state.look() != Look::Claimed {
                return;
            }
            // SAFETY: the item is claimed until `unclaim`.
            assert_eq!(**unsafe { slot.value() }, 7);
            slot.state.unclaim();
        })
    };
    let ended = end(&slot);
    other.join().unwrap();
    assert!(ended || end(&slot));
    assert!(!slot.state.has_value());
}

/// A step gets a counted item or waits for it, while it is put. It gets the item once, by itself or
/// after it was woken, and the value is dropped.
pub fn a_counted_get_that_waits() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let get = |slot: &ModelSlot| {
        assert_eq!(slot.state.look(), Look::Claimed);
        // SAFETY: the item is claimed until `give_back`.
        assert_eq!(**unsafe { slot.value() }, 7);
        assert_eq!(slot.state.give_back().0, Left::None);
        // SAFETY: this caller has made the item gone.
        unsafe { slot.drop_value() };
    };
    let getter = {
        let (memory, slot) = (memory.clone(), slot.clone());
        thread::spawn(move || {
            if slot.state.wait(9, &WaiterPool::new(&memory)).is_err() {
                slot.state.until_full();
                get(&slot);
            }
        })
    };
    let mut woken = slot.put(Box::new(7), GetCount::Times(1), 1, 1).expect("the first put");
    if let Some(step) = woken.pop(&WaiterPool::new(&memory)) {
        assert_eq!(step, 9);
        get(&slot);
    }
    assert!(woken.is_empty());
    getter.join().unwrap();
    assert!(slot.state.was_put() && !slot.state.has_value());
}

/// A step misses an item and waits for it, while the item and others are put and go, and their
/// places are used for other keys: a page, or the places of a stream. The step does not wait for
/// another key: the put of its item wakes it, or it sees that the item was put.
pub fn a_missed_get_and_a_place_that_is_used_again(is_stream: bool) {
    // A page has two items in these models.
    let items = if is_stream { Storage::streamed() } else { Storage::paged(Shape::new(&4)) };
    let items = Arc::new(items);
    let memory = Arc::new(WaiterMemory::new());
    let getter = {
        let (items, memory) = (items.clone(), memory.clone());
        thread::spawn(move || {
            let Ok(found) = items.find(&0_u32) else { return 0 };
            if found.slot.state.was_put() {
                return 0;
            }
            let state = &found.slot.state;
            let _page = found.into_page_use();
            u32::from(state.wait(9, &WaiterPool::new(&memory)).is_ok())
        })
    };
    let pool = WaiterPool::new(&memory);
    let put = |key: u32| {
        let place = items.find(&key).expect("the place was not given up");
        let mut woken = place.slot.put(key, GetCount::Times(0), 1, 1).expect("the first put");
        let woken = std::iter::from_fn(|| woken.pop(&pool)).count() as u32;
        items.note_gone(place.place);
        woken
    };
    let woken = put(0);
    assert_eq!(put(1) + put(2), 0);
    assert_eq!(getter.join().unwrap(), woken);
}

fn empty(slot: Arc<ModelSlot>) {
    drop(slot.state.take_waiters());
    let slot = Arc::try_unwrap(slot).ok().expect("the other OS threads have ended");
    // SAFETY: the slot is owned here, so no other OS thread uses it.
    unsafe { slot.empty() };
}

/// Workers run items that make others, `item - 1` each, until there are none. Each item is run, and
/// each worker ends.
pub fn workers_end_together(workers: usize, first: &[u32]) {
    let (circle, rings) = WorkerCircle::<u32, 4>::new(workers);
    let (circle, ran) = (Arc::new(circle), Arc::new(Tally::new(0)));
    let expected: u32 = first.iter().map(|item| item + 1).sum();
    let threads: Vec<_> = rings
        .into_iter()
        .enumerate()
        .map(|(me, mut ring)| {
            let (circle, ran) = (circle.clone(), ran.clone());
            let mine: Vec<u32> = if me == 0 { first.to_vec() } else { Vec::new() };
            let work = move || {
                for item in mine {
                    ring.push(item).expect("the ring has room");
                }
                let mut batch = Vec::new();
                while let Some(item) = batch
                    .pop()
                    .or_else(|| circle.own(me, &mut ring))
                    .or_else(|| circle.given(&mut batch))
                    .or_else(|| circle.find(me, &mut ring, &mut batch, &mut Closed))
                {
                    // Other workers may go on while the item runs.
                    thread::yield_now();
                    ran.fetch_add(1, Ordering::Relaxed);
                    // One half goes the way of a ring, the other one that of the injector.
                    match item {
                        0 => {}
                        1 => circle.give(0),
                        _ => ring.push(item - 1).expect("the ring has room"),
                    }
                    if !ring.is_empty() && ring.is_wanted() {
                        circle.surplus(me);
                    }
                }
                // No worker ends before the last item was run.
                assert_eq!(ran.load(Ordering::Relaxed), expected as usize);
            };
            thread::spawn(work)
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(ran.load(Ordering::Relaxed), expected as usize);
}

/// A graph with a living environment. Its scheduler has one worker.
struct LivingGraph {
    bell: RunBell,
    ready: Mutex<Vec<()>>,
    /// The puts and looks that are under way, and the steps that have run. Both are loom's, so that
    /// it has each of these accesses come before and after those of other OS threads.
    inside: AtomicUsize,
    ran: AtomicUsize,
}

impl LivingGraph {
    /// With open handles.
    fn new(handles: usize) -> Arc<LivingGraph> {
        let bell = RunBell::default();
        (0..handles).for_each(|_| bell.open());
        let (inside, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(LivingGraph { bell, ready: Mutex::new(Vec::new()), inside, ran })
    }

    /// A put that makes one step ready. False if the run was stopped.
    fn put(&self) -> bool {
        let Some(inside) = self.bell.enter(|| false, || ()) else { return false };
        self.inside.fetch_add(1, Ordering::Relaxed);
        lock(&self.ready).push(());
        self.inside.fetch_sub(1, Ordering::Relaxed);
        drop(inside);
        true
    }

    fn take(&self) -> Vec<()> {
        std::mem::take(&mut *lock(&self.ready))
    }

    /// Rounds of the scheduler. The worker takes steps in before each step. No put or look is
    /// under way before the run and after it.
    fn run(&self) {
        assert_eq!(self.inside.load(Ordering::Relaxed), 0);
        self.bell.begin();
        loop {
            let mut steps = self.take();
            while steps.pop().is_some() {
                if self.bell.is_rung() {
                    self.bell.answer();
                    steps.append(&mut self.take());
                }
                self.ran.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(quiet) = self.bell.between_rounds() {
                assert_eq!(self.inside.load(Ordering::Relaxed), 0);
                assert!(lock(&self.ready).is_empty());
                drop(quiet);
            }
            if !self.bell.rest() {
                break;
            }
        }
        self.bell.end();
        assert_eq!(self.inside.load(Ordering::Relaxed), 0);
    }
}

/// A run, and an OS thread of its living environment. Each step that the environment makes ready is
/// run before the run ends.
pub fn a_living_environment(puts: usize) {
    let graph = LivingGraph::new(1);
    let environment = {
        let graph = graph.clone();
        thread::spawn(move || {
            (0..puts).for_each(|_| assert!(graph.put()));
            graph.bell.close();
        })
    };
    graph.run();
    assert_eq!(graph.ran.load(Ordering::Relaxed), puts);
    environment.join().unwrap();
    assert!(lock(&graph.ready).is_empty());
}

/// An OS thread that waits until the graph is at rest: its step has run, none runs, and no other
/// handle puts.
pub fn a_graph_at_rest() {
    let graph = LivingGraph::new(2);
    let looks = {
        let graph = graph.clone();
        thread::spawn(move || {
            assert!(graph.put());
            let rest = graph.bell.at_rest(|| false).expect("the run is not stopped");
            assert_eq!(graph.inside.load(Ordering::Relaxed), 0);
            let ran = graph.ran.load(Ordering::Relaxed);
            assert!(ran > 0 && lock(&graph.ready).is_empty());
            assert_eq!(graph.ran.load(Ordering::Relaxed), ran);
            drop(rest);
            graph.bell.close();
        })
    };
    let puts = {
        let graph = graph.clone();
        thread::spawn(move || {
            assert!(graph.put());
            graph.bell.close();
        })
    };
    graph.run();
    assert_eq!(graph.ran.load(Ordering::Relaxed), 2);
    for thread in [looks, puts] {
        thread.join().unwrap();
    }
}

/// A run that another OS thread stops ends with an open handle. No put and no look at the graph is
/// under way after its end.
pub fn a_stop_of_a_living_environment() {
    let graph = LivingGraph::new(1);
    let environment = {
        let graph = graph.clone();
        thread::spawn(move || {
            graph.put();
            // The graph may be at rest before it is stopped.
            if let Some(rest) = graph.bell.at_rest(|| false) {
                graph.inside.fetch_add(1, Ordering::Relaxed);
                lock(&graph.ready).clear();
                graph.inside.fetch_sub(1, Ordering::Relaxed);
                drop(rest);
            }
        })
    };
    let stopper = {
        let graph = graph.clone();
        thread::spawn(move || graph.bell.stop())
    };
    graph.run();
    assert!(!graph.put() && graph.bell.at_rest(|| false).is_none());
    for thread in [environment, stopper] {
        thread.join().unwrap();
    }
}

/// A step that runs until another one has run.
pub const LONG: u32 = u32::MAX;

/// A graph with a living environment, the workers of which stay.
struct LivingCircle {
    bell: RunBell,
    circle: WorkerCircle<u32, 4>,
    /// The ready steps that the environment has left. Step `n` makes step `n - 1` ready.
    ready: Mutex<Vec<u32>>,
    /// The numbers of running steps and of steps that have run. Both are loom's, as in
    /// [`LivingGraph`].
    running: AtomicUsize,
    ran: AtomicUsize,
    /// Whether a step has run that is not long.
    short: Mutex<bool>,
    short_ran: Condvar,
}

impl LivingCircle {
    /// With open handles, and the rings of the workers.
    fn new(workers: usize, handles: usize) -> (Arc<LivingCircle>, Vec<RunRing<u32, 4>>) {
        let bell = RunBell::default();
        (0..handles).for_each(|_| bell.open());
        bell.begin();
        let (circle, rings) = WorkerCircle::new(workers);
        let ready = Mutex::new(Vec::new());
        let (running, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (short, short_ran) = (Mutex::new(false), Condvar::new());
        (Arc::new(LivingCircle { bell, circle, ready, running, ran, short, short_ran }), rings)
    }

    /// A put that makes a step ready. False if the run was stopped.
    fn put(&self, step: u32) -> bool {
        let Some(inside) = self.bell.enter(|| false, || self.circle.wake()) else { return false };
        lock(&self.ready).push(step);
        drop(inside);
        true
    }

    fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *lock(&self.ready))
    }

    fn run(&self, step: u32, ring: &mut RunRing<u32, 4>) {
        let mut short = lock(&self.short);
        if step == LONG {
            while !*short {
                short = self.short_ran.wait(short).unwrap();
            }
            return;
        }
        *short = true;
        drop(short);
        self.short_ran.notify_all();
        if let Some(made) = step.checked_sub(1) {
            ring.push(made).expect("the ring has room");
        }
    }

    /// A worker's loop.
    fn work(&self, me: usize, ring: &mut RunRing<u32, 4>) {
        let (mut held, mut batch) = (Vec::new(), Vec::new());
        loop {
            let next = held.pop().or_else(|| batch.pop()).or_else(|| self.circle.own(me, ring));
            let next = next.or_else(|| self.circle.given(&mut batch)).or_else(|| {
                let mut environment = LivingOutside { graph: self, held: &mut held };
                self.circle.find(me, ring, &mut batch, &mut environment)
            });
            let Some(step) = next else { break };
            if self.bell.is_rung() && self.bell.answer() {
                held.push(step);
                held.append(&mut self.take());
                continue;
            }
            self.running.fetch_add(1, Ordering::Relaxed);
            self.run(step, ring);
            self.ran.fetch_add(1, Ordering::Relaxed);
            self.running.fetch_sub(1, Ordering::Relaxed);
            if !ring.is_empty() && ring.is_wanted() {
                self.circle.surplus(me);
            }
        }
    }
}

/// What `Stay` does.
struct LivingOutside<'a> {
    graph: &'a LivingCircle,
    held: &'a mut Vec<u32>,
}

impl Outside<u32> for LivingOutside<'_> {
    const LOOKS: u32 = LOOKS_LIVING;

    fn take(&mut self) -> Option<u32> {
        let bell = &self.graph.bell;
        if bell.is_rung() && bell.answer() {
            self.held.append(&mut self.graph.take());
        }
        self.held.pop()
    }

    fn leave(&mut self, leave: impl FnOnce() -> Leave, join: impl FnOnce()) -> LeftAs<u32> {
        match self.graph.bell.leave(leave) {
            None => self.held.append(&mut self.graph.take()),
            Some(Leave::Back) => {}
            Some(Leave::Asleep) => return LeftAs::Asleep,
            Some(Leave::Last) => loop {
                assert_eq!(self.graph.running.load(Ordering::Relaxed), 0);
                if !self.graph.bell.rest() {
                    return LeftAs::End;
                }
                self.held.append(&mut self.graph.take());
                if !self.held.is_empty() {
                    self.graph.bell.join(join);
                    break;
                }
            },
        }
        self.held.pop().map_or(LeftAs::Back, LeftAs::Found)
    }
}

/// Workers that stay, and an OS thread that puts steps and looks at the graph at rest. No put is
/// lost: each step runs before the graph is at rest, and each worker ends. With `stops`, another OS
/// thread stops the run instead, and each worker ends too.
pub fn workers_stay(workers: usize, puts: &[u32], looks: bool, stops: bool) {
    let (graph, rings) = LivingCircle::new(workers, 1);
    let expected: u32 = puts.iter().map(|step| step.wrapping_add(1).max(1)).sum();
    let puts = puts.to_vec();
    let environment = {
        let graph = graph.clone();
        thread::spawn(move || {
            puts.into_iter().for_each(|step| assert!(graph.put(step) || stops));
            if looks && let Some(rest) = graph.bell.at_rest(|| false) {
                assert_eq!(graph.running.load(Ordering::Relaxed), 0);
                assert_eq!(graph.ran.load(Ordering::Relaxed), expected as usize);
                drop(rest);
            }
            if stops {
                graph.bell.stop();
            } else {
                graph.bell.close();
            }
        })
    };
    let mut threads = Vec::new();
    let mut rings = rings.into_iter().enumerate();
    let (_, mut mine) = rings.next().expect("there is a worker");
    for (me, mut ring) in rings {
        let graph = graph.clone();
        threads.push(thread::spawn(move || graph.work(me, &mut ring)));
    }
    graph.work(0, &mut mine);
    for thread in threads {
        thread.join().unwrap();
    }
    if !stops {
        assert_eq!(graph.ran.load(Ordering::Relaxed), expected as usize);
    }
    environment.join().unwrap();
}
