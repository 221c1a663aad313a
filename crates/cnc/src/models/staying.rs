//! A model of workers that stay while the environment of their graph lives on.

use crate::bell::{Leave, RunBell};
use crate::primitives::{AtomicUsize, Condvar, Mutex, lock};
use crate::schedulers::circle::{LOOKS_LIVING, LeftAs, Outside, WorkerCircle};
use loom::thread;
use selvedge_sched::RunRing;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A step that runs until another one has run.
pub const LONG: u32 = u32::MAX;

/// A graph with a living environment, the workers of which stay.
struct LivingCircle {
    bell: RunBell,
    circle: WorkerCircle<u32, 4>,
    /// The ready steps that the environment has left. Step `n` makes step `n - 1` ready.
    ready: Mutex<Vec<u32>>,
    /// The numbers of running steps and of steps that have run. Both are loom's, as in
    /// `living.rs`.
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
