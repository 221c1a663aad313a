//! One call on its way through a pool: [`Blocking`], and the cell that brings back the answer.

use super::queue::{Job, PoolShared, wake_next};
use super::{Lost, lock};
use crate::sys;
use selvedge_core::SleepUntil;
use selvedge_core::observe::{self, Object, WaitReason};
use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// The place where a job leaves its answer, with the waker of the caller.
pub(super) struct AnswerCell<T> {
    answer: Mutex<JobAnswer<T>>,
}

enum JobAnswer<T> {
    /// The job has left no answer yet. It will wake the waker.
    Awaited(Option<Waker>),
    Here(Result<T, Lost>),
    /// The caller has taken the answer, or does not want it any more.
    Gone,
}

impl<T> Default for AnswerCell<T> {
    fn default() -> AnswerCell<T> {
        AnswerCell { answer: Mutex::new(JobAnswer::Awaited(None)) }
    }
}

impl<T> AnswerCell<T> {
    fn put(&self, result: Result<T, Lost>) {
        let mut answer = lock(&self.answer);
        // The lock is released before the replaced waker or answer is woken or dropped, because
        // both may run code of the program.
        match std::mem::replace(&mut *answer, JobAnswer::Gone) {
            JobAnswer::Awaited(waker) => {
                *answer = JobAnswer::Here(result);
                drop(answer);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            JobAnswer::Here(_) | JobAnswer::Gone => drop(answer),
        }
    }
}

/// The future of [`blocking`](super::blocking): a call on its way to the pool, in the pool, or on
/// its way back.
#[must_use = "the call is made when this is awaited"]
pub struct Blocking<T, F> {
    pool: Arc<PoolShared>,
    stage: JobStage<F>,
    cell: Arc<AnswerCell<T>>,
}

#[derive(Debug)]
enum JobStage<F> {
    Unsent(F),
    /// The queue was full. The turn of this call has come when its ticket is no longer in the line.
    InLine(F, u64),
    /// In a simulation this future makes the call itself, at the time at which the call would be
    /// over.
    Simulated(F, Pin<Box<SleepUntil>>),
    Sent,
    Over,
}

impl<T, F> fmt::Debug for Blocking<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            JobStage::Unsent(_) => "unsent",
            JobStage::InLine(..) => "in line",
            JobStage::Simulated(..) => "simulated",
            JobStage::Sent => "sent",
            JobStage::Over => "over",
        };
        f.debug_tuple("Blocking").field(&stage).finish()
    }
}

// `f` is moved out and never pinned.
impl<T, F> Unpin for Blocking<T, F> {}

impl<T, F> Future for Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = Result<T, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let polled = this.advance(cx);
        if polled.is_pending() {
            observe::waits_on(|| WaitReason { call: "run", object: Object::Code(type_name::<F>()) });
        }
        polled
    }
}

impl<T, F> Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(super) fn new(pool: Arc<PoolShared>, f: F) -> Blocking<T, F> {
        Blocking { pool, stage: JobStage::Unsent(f), cell: Arc::new(AnswerCell::default()) }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Lost>> {
        let this = self;
        match std::mem::replace(&mut this.stage, JobStage::Over) {
            JobStage::Unsent(f) if let Some(delay) = sys::simulated_delay() => {
                this.stage = JobStage::Simulated(f, Box::pin(crate::time::sleep(delay)));
                this.advance(cx)
            }
            JobStage::Simulated(f, mut delay) => match delay.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(catch_unwind(AssertUnwindSafe(f)).map_err(Lost::panicked)),
                Poll::Pending => {
                    this.stage = JobStage::Simulated(f, delay);
                    Poll::Pending
                }
            },
            stage @ (JobStage::Unsent(_) | JobStage::InLine(..)) => {
                // The clone may run foreign code, so it is made before the lock is taken.
                let waker = cx.waker().clone();
                let mut state = lock(&this.pool.state);
                let f = match stage {
                    JobStage::InLine(f, ticket) if let Ok(i) = state.position(ticket) => {
                        // Another event has woken the task, and the turn of this call has not come.
                        let replaced = std::mem::replace(&mut state.line[i].1, waker);
                        this.stage = JobStage::InLine(f, ticket);
                        drop(state);
                        // The waker may be foreign, and may hold another call that stands in the
                        // line. So it is dropped after the lock is released.
                        drop(replaced);
                        return Poll::Pending;
                    }
                    JobStage::Unsent(f) | JobStage::InLine(f, _) => f,
                    _ => unreachable!("matched above"),
                };
                if state.jobs.len() >= state.limits.queue_max.get() {
                    let ticket = state.next_ticket;
                    state.next_ticket += 1;
                    state.line.push_back((ticket, waker));
                    this.stage = JobStage::InLine(f, ticket);
                    return Poll::Pending;
                }
                *lock(&this.cell.answer) = JobAnswer::Awaited(Some(waker));
                let cell = this.cell.clone();
                let run = move || {
                    let result = catch_unwind(AssertUnwindSafe(f)).map_err(Lost::panicked);
                    cell.put(result);
                };
                let id = Arc::as_ptr(&this.cell).cast();
                let submitted = this.pool.submit(&mut state, Job::new(run, id));
                drop(state);
                if let Err((error, job)) = submitted {
                    drop(job);
                    return Poll::Ready(Err(Lost::no_thread(&error)));
                }
                this.stage = JobStage::Sent;
                Poll::Pending
            }
            JobStage::Sent => {
                let known = |waker: &Option<Waker>| waker.as_ref().is_some_and(|w| w.will_wake(cx.waker()));
                let is_known = matches!(&*lock(&this.cell.answer), JobAnswer::Awaited(waker) if known(waker));
                // Cloning and dropping a waker may run foreign code, so both happen without the
                // lock.
                let waker = (!is_known).then(|| cx.waker().clone());
                let mut answer = lock(&this.cell.answer);
                let replaced = match (std::mem::replace(&mut *answer, JobAnswer::Gone), waker) {
                    (JobAnswer::Here(result), _) => return Poll::Ready(result),
                    (JobAnswer::Awaited(before), None) => {
                        *answer = JobAnswer::Awaited(before);
                        None
                    }
                    (JobAnswer::Awaited(before), waker) => {
                        *answer = JobAnswer::Awaited(waker);
                        before
                    }
                    (JobAnswer::Gone, _) => {
                        unreachable!("only `poll` and `drop` leave `Gone`, and neither comes back to `Sent`")
                    }
                };
                drop(answer);
                drop(replaced);
                this.stage = JobStage::Sent;
                Poll::Pending
            }
            JobStage::Over => panic!("a call is awaited once more after its answer"),
        }
    }
}

impl<T, F> Drop for Blocking<T, F> {
    fn drop(&mut self) {
        match self.stage {
            JobStage::Unsent(_) | JobStage::Simulated(..) | JobStage::Over => {}
            JobStage::InLine(_, ticket) => {
                let mut state = lock(&self.pool.state);
                // If the turn of this call has come already, the next caller gets the room.
                let gone = match state.position(ticket) {
                    Ok(i) => state.line.remove(i),
                    Err(_) => None,
                };
                let next = if gone.is_none() { state.next_in_line() } else { None };
                drop(state);
                drop(gone);
                wake_next(next);
            }
            JobStage::Sent => {
                let unwanted = std::mem::replace(&mut *lock(&self.cell.answer), JobAnswer::Gone);
                drop(unwanted);
                let id = Arc::as_ptr(&self.cell).cast();
                let mut state = lock(&self.pool.state);
                let unstarted =
                    state.jobs.iter().position(|job| job.id == id).and_then(|i| state.jobs.remove(i));
                state.settle();
                let next = if unstarted.is_some() { state.next_in_line() } else { None };
                drop(state);
                drop(unstarted);
                wake_next(next);
            }
        }
    }
}
