//! Models of a run with a living environment, under a scheduler with one worker.

use crate::bell::RunBell;
use crate::primitives::{AtomicUsize, Mutex, lock};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
