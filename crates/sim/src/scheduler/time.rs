//! [`VirtualTime`]: the event source of simulated programs without descriptors. Tests pass it to
//! `simulated` and `Simulation`; in a `World` the ordinary event loop over the simulated kernel is
//! in its place.
//!
//! Its `poll` never blocks: a poll that would wait moves the virtual clock instead. Sleeps that end
//! at the same time wake in the order in which they began, so that a run is repeatable.

use selvedge_core::{Alarm, Cpu, Detached, Events, Request, Thread, Time, Trace, Unpark, VirtualClock};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The event source of simulated programs with threads that wait for each other and for time, but
/// for no descriptor. A poll that would wait moves the [virtual clock](VirtualClock) on instead.
#[derive(Debug, Default)]
pub struct VirtualTime {
    sleepers: BTreeMap<(Time, u64), VirtualSleeper>,
    /// Distinguishes sleepers with the same time, which wake in the order in which they came.
    next: u64,
}

#[derive(Debug)]
enum VirtualSleeper {
    Thread(Thread),
    /// With the alarm, which says whether the sleep is still wanted.
    Waker(Waker, Alarm),
}

impl VirtualTime {
    /// An event source without sleepers.
    pub fn new() -> VirtualTime {
        VirtualTime::default()
    }

    fn insert(&mut self, until: Time, sleeper: VirtualSleeper) {
        self.sleepers.insert((until, self.next), sleeper);
        self.next += 1;
    }
}

#[derive(Debug)]
struct NoOsThread;

impl Unpark for NoOsThread {
    fn unpark(&self) {}
}

impl Events for VirtualTime {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        match node {
            Trace::Sleep(sleep) => self.insert(sleep.until(), VirtualSleeper::Thread(sleep.into_thread())),
            Trace::Detached => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    match request {
                        Request::Sleep(alarm) => {
                            self.insert(alarm.until(), VirtualSleeper::Waker(waker, alarm))
                        }
                        Request::Call(call) => return Err(Trace::Call(call)),
                        // Without an answer the thread waits for ever. The scheduler reports that
                        // as a deadlock when all threads wait.
                        _ => {}
                    }
                }
            }
            other => return Err(other),
        }
        Ok(())
    }

    /// # Errors
    /// None.
    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        let limit = timeout.map(|timeout| Time::now() + timeout);
        self.sleepers.retain(|_, s| !matches!(s, VirtualSleeper::Waker(_, alarm) if alarm.is_cancelled()));
        let first = self.sleepers.keys().next().map(|(until, _)| *until);
        if let Some(until) = first.into_iter().chain(limit).min()
            && VirtualClock::now().is_some()
        {
            VirtualClock::advance(until);
        }
        cpu.tick();
        while let Some(entry) = self.sleepers.first_entry()
            && entry.key().0 <= cpu.now()
        {
            match entry.remove() {
                VirtualSleeper::Thread(thread) => cpu.make_ready(thread),
                VirtualSleeper::Waker(waker, alarm) if !alarm.is_cancelled() => cpu.wake(waker),
                VirtualSleeper::Waker(..) => {}
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
        Arc::new(NoOsThread)
    }
}
