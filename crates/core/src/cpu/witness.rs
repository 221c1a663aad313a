//! [`Witness`]: what the waiting threads of a program say that is not observed, when a deadlock is
//! reported.
//!
//! The leaf futures say at each poll what they wait for, and for which thread, but without an
//! observer nothing hears it. At a deadlock all threads are at rest. So [`Cpu::deadlock`] has each
//! of them polled once more, and the witness hears what they say. A future bears a poll without
//! cause anyway. The deadlock is certain before: what a thread does in that poll changes nothing.

use super::inner::{Cpu, CpuInner};
use crate::observe;
use crate::observer::{End, Ended, Observer, WaitReason};
use crate::thread_info::{Seen, ThreadId, ThreadInfo};
use crate::trace::Trace;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one thread has said in its poll.
#[derive(Default)]
struct Statement {
    called: Option<Arc<str>>,
    waits_for: Option<(u32, &'static str)>,
    reason: Option<WaitReason>,
    ended: Option<Ended>,
}

/// The observer of the CPU while a witness asks.
struct Hearing(Arc<Mutex<Statement>>);

fn lock(statement: &Mutex<Statement>) -> MutexGuard<'_, Statement> {
    statement.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Hearing {
    fn ended(&mut self, step: Ended) {
        lock(&self.0).ended = Some(step);
    }

    fn named(&mut self, _: ThreadId, name: &Arc<str>) {
        lock(&self.0).called = Some(name.clone());
    }

    fn waits_for(&mut self, other: u32, tie: &'static str) {
        lock(&self.0).waits_for = Some((other, tie));
    }

    fn waits_not(&mut self) {
        let mut statement = lock(&self.0);
        (statement.waits_for, statement.reason) = (None, None);
    }

    fn waits_on(&mut self, reason: WaitReason) {
        lock(&self.0).reason = Some(reason);
    }
}

/// Asks the waiting threads of a CPU that has no observer.
pub(crate) struct Witness {
    statement: Arc<Mutex<Statement>>,
    /// The nodes of the threads that did not wait again. They are kept so that no thread is
    /// cancelled before all threads have been asked.
    others: Vec<Trace>,
}

impl Witness {
    /// Begins to hear, if the CPU has no observer.
    pub(crate) fn of(cpu: &CpuInner) -> Option<Witness> {
        if cpu.is_observed() {
            return None;
        }
        let statement = Arc::<Mutex<Statement>>::default();
        observe::be_heard();
        cpu.set_observer(Some(Box::new(Hearing(statement.clone()))));
        Some(Witness { statement, others: Vec::new() })
    }

    /// Polls a waiting thread once. `None` if the thread does not wait in the keeping of `cpu`.
    pub(crate) fn ask(&mut self, cpu: &mut Cpu, info: &ThreadInfo) -> Option<Seen> {
        if !info.is_waiting() {
            return None;
        }
        let thread = cpu.inner().release(info.thread().0)?;
        *lock(&self.statement) = Statement::default();
        let node = thread.step(cpu);
        let Statement { called, waits_for, reason, ended } = std::mem::take(&mut *lock(&self.statement));
        let ended = ended.filter(|ended| matches!(ended.end, End::Block(_) | End::Join | End::Park));
        if !matches!(node, Trace::Blocked | Trace::Ret) {
            self.others.push(node);
        }
        let Some(Ended { several, .. }) = ended else {
            return Some(Seen { called, call: info.words(), since: None, waits_for: None });
        };
        let mut call = reason.map_or_else(|| info.words(), |reason| reason.to_string());
        if several {
            call.push_str(", among other things");
        }
        Some(Seen { called, call, since: None, waits_for: waits_for.filter(|_| !several) })
    }

    /// Hears no more.
    pub(crate) fn end(self, cpu: &Cpu) {
        cpu.inner().set_observer(None);
    }
}
