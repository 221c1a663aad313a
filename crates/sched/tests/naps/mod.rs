//! An event source for time only: [`Naps`].

use selvedge_core::{CancelFlag, Cpu, Detached, Events, NoEvents, Request, Thread, Time, Trace, Unpark};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// An event source that serves sleeps only.
#[derive(Debug)]
pub(crate) struct Naps {
    without_time: NoEvents,
    /// The sleepers, by their time and a number.
    sleepers: BTreeMap<(Time, u64), Sleeper>,
    number: u64,
}

#[derive(Debug)]
enum Sleeper {
    Thread(Thread),
    Waker(CancelFlag, Waker),
}

impl Sleeper {
    fn is_wanted(&self) -> bool {
        match self {
            Sleeper::Thread(_) => true,
            Sleeper::Waker(flag, _) => !flag.is_cancelled(),
        }
    }
}

impl Naps {
    pub(crate) fn new() -> Naps {
        Naps { without_time: NoEvents::new(), sleepers: BTreeMap::new(), number: 0 }
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
            Trace::Detached => {
                while let Some(Detached { request, waker }) = cpu.detached() {
                    match request {
                        Request::Sleep(alarm) => {
                            let (until, flag) = alarm.into_parts();
                            self.add(until, Sleeper::Waker(flag, waker));
                        }
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
        self.sleepers.retain(|_, sleeper| sleeper.is_wanted());
        let next = self.sleepers.keys().next().map(|(until, _)| until.since(Time::now()));
        let wait = next.into_iter().chain(timeout).min();
        self.without_time.poll(cpu, wait)?;
        cpu.tick();
        while let Some(first) = self.sleepers.first_entry() {
            if first.key().0 > cpu.now() {
                break;
            }
            match first.remove() {
                Sleeper::Thread(thread) => cpu.make_ready(thread),
                Sleeper::Waker(_, waker) => cpu.wake(waker),
            }
        }
        Ok(())
    }

    fn armed(&self) -> usize {
        self.sleepers.values().filter(|sleeper| sleeper.is_wanted()).count()
    }

    fn cancel_all(&mut self, _: &mut Cpu) {
        self.sleepers.clear();
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.without_time.unparker()
    }
}
