//! Every scheduler behind one trait, and an event source that knows the time.

use selvedge_core::{Cpu, Detached, Events, NoEvents, Request, RunError, Thread, Time, Trace, Unpark};
use selvedge_sched::{per_core, priority, round_robin_with, work_stealing};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Runs a main thread and what it creates.
pub trait Scheduler {
    /// # Errors
    /// As the scheduler's.
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send;
}

pub struct RoundRobin;

impl Scheduler for RoundRobin {
    fn run<F: Future + Send + 'static>(main: F) -> Result<F::Output, RunError> {
        round_robin_with(&mut Naps::new(), main)
    }
}

/// The main thread is on the first of two workers; that of the other ends at once.
pub struct PerCore;

impl Scheduler for PerCore {
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let main = Mutex::new(Some(main));
        let ended = per_core(
            2,
            |_| Ok(Naps::new()),
            |worker| {
                let main = if worker == 0 { main.lock().unwrap().take() } else { None };
                async {
                    match main {
                        Some(main) => Some(main.await),
                        None => None,
                    }
                }
            },
        );
        let outputs = ended.map_err(|failure| failure.error)?;
        Ok(outputs.into_iter().flatten().next().expect("the first worker's"))
    }
}

pub struct Priorities;

impl Scheduler for Priorities {
    fn run<F: Future + Send + 'static>(main: F) -> Result<F::Output, RunError> {
        priority(&mut Naps::new(), main)
    }
}

pub struct Stealing<const WORKERS: usize>;

impl<const WORKERS: usize> Scheduler for Stealing<WORKERS> {
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        work_stealing(WORKERS, |_| Ok(Naps::new()), main).map_err(|failure| failure.error)
    }
}

/// An event source for `sleep`.
#[derive(Debug)]
pub struct Naps {
    nobody: NoEvents,
    /// By their time, and numbered.
    sleepers: BTreeMap<(Time, u64), Sleeper>,
    number: u64,
}

#[derive(Debug)]
enum Sleeper {
    Thread(Thread),
    Waker(Waker),
}

impl Naps {
    pub fn new() -> Naps {
        Naps { nobody: NoEvents::new(), sleepers: BTreeMap::new(), number: 0 }
    }

    fn add(&mut self, until: Time, sleeper: Sleeper) {
        self.number += 1;
        self.sleepers.insert((until, self.number), sleeper);
    }
}

impl Events for Naps {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Sleep(sleep) => self.add(sleep.until(), Sleeper::Thread(sleep.into_thread())),
            Trace::Any => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    match request {
                        Request::Sleep(until) => self.add(until, Sleeper::Waker(waker)),
                        Request::Call(call) => return Err(Trace::Call(call)),
                        other => panic!("{other:?}"),
                    }
                }
            }
            other => return Err(other),
        }
        Ok(())
    }

    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        let next = self.sleepers.keys().next().map(|(until, _)| until.since(Time::now()));
        let wait = next.into_iter().chain(timeout).min();
        self.nobody.poll(cpu, wait)?;
        cpu.tick();
        while let Some(first) = self.sleepers.first_entry() {
            if first.key().0 > cpu.now() {
                break;
            }
            match first.remove() {
                Sleeper::Thread(thread) => cpu.make_ready(thread),
                Sleeper::Waker(waker) => cpu.wake(waker),
            }
        }
        Ok(())
    }

    fn armed(&self) -> usize {
        self.sleepers.len()
    }

    fn cancel_all(&mut self, _: &mut Cpu) {
        self.sleepers.clear();
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.nobody.unparker()
    }
}
