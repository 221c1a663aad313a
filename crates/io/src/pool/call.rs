//! One call on its way through a pool: the future `Blocking`. Its answer comes back in a
//! `ReplyCell`.
//!
//! `Pool::run` makes it, for `blocking` and for the calls of this crate (`lane.rs`). `advance`
//! moves the call from stage to stage (`JobStage`), and `drop` takes back a call that no OS thread
//! has begun. Foreign code (a waker's clone, the drop of a job) runs outside the lock of the pool's
//! state. In a simulation no OS thread is involved: the future makes the call itself after a delay.

use super::lost::BlockingError;
use super::queue::{Job, PoolShared, lock, wake_next};
use crate::sys;
use selvedge_core::SleepUntil;
use selvedge_core::internal::ReplyCell;
use selvedge_core::observe::{self, Object, WaitReason};
use std::any::type_name;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The future of [`blocking`](super::blocking): a call on its way to the pool, in the pool, or on
/// its way back.
#[must_use = "the call is made when this is awaited"]
pub struct Blocking<T, F> {
    pool: Arc<PoolShared>,
    stage: JobStage<F>,
    /// The place where the job leaves its answer.
    cell: Arc<ReplyCell<Result<T, BlockingError>>>,
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
    type Output = Result<T, BlockingError>;

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
        Blocking { pool, stage: JobStage::Unsent(f), cell: Arc::new(ReplyCell::default()) }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, BlockingError>> {
        let this = self;
        match std::mem::replace(&mut this.stage, JobStage::Over) {
            JobStage::Unsent(f) if let Some(delay) = sys::simulated_delay() => {
                this.stage = JobStage::Simulated(f, Box::pin(crate::time::sleep(delay)));
                this.advance(cx)
            }
            JobStage::Simulated(f, mut delay) => match delay.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    Poll::Ready(catch_unwind(AssertUnwindSafe(f)).map_err(BlockingError::panicked))
                }
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
                let polled = this.cell.poll(waker);
                debug_assert!(polled.is_pending(), "no job has the cell yet");
                let cell = this.cell.clone();
                let run = move || {
                    let result = catch_unwind(AssertUnwindSafe(f)).map_err(BlockingError::panicked);
                    // The caller may have given up. Then the result is dropped here.
                    let _ = cell.put(result);
                };
                let id = Arc::as_ptr(&this.cell).cast();
                if let Err(error) = this.pool.submit(state, Job::new(run, id)) {
                    return Poll::Ready(Err(BlockingError::no_thread(&error)));
                }
                this.stage = JobStage::Sent;
                Poll::Pending
            }
            JobStage::Sent => {
                let polled = this.cell.poll(cx.waker().clone());
                if polled.is_pending() {
                    this.stage = JobStage::Sent;
                }
                polled.map(|answer| answer.expect("only this poll and `drop` take the answer"))
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
                drop(self.cell.abandon());
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
