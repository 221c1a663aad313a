//! The start and the stop of the workers: [`run`] starts an OS thread for each worker, waits for
//! their ends, and puts the results together.
//!
//! The workers stop when main ends, when a worker fails or panics, or when a worker finds a
//! deadlock. Worker 0 then calls off the workers that have not begun, and the others meet. After
//! the meeting no worker runs a step, so each may cancel its threads. After a deadlock each first
//! looks which threads wait in its memory, and the workers meet once more. After the second meeting
//! no worker looks any more.

use super::desk::Desk;
use super::pool::WorkerPool;
use super::worker::WorkerLoop;
use crate::{SchedulerError, run_beside};
use selvedge_core::{
    ArenaFullError, Cpu, Deadlock, Events, Group, JoinError, JoinHandle, Owner, RunError, ThreadInfo,
    prepare_heavy_fence,
};
use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

/// Creates the main thread on the CPU of worker 0.
pub(super) trait CreateMain<T> {
    fn create(self, cpu: &mut Cpu, stop: StopAtEnd) -> Result<JoinHandle<T>, ArenaFullError>;
}

/// A main thread that may move from worker to worker.
pub(super) struct Mobile<F>(pub(super) F);

impl<F> CreateMain<F::Output> for Mobile<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn create(self, cpu: &mut Cpu, stop: StopAtEnd) -> Result<JoinHandle<F::Output>, ArenaFullError> {
        cpu.spawn_main(stop.after(self.0))
    }
}

/// A main thread that stays on worker 0, and so on the OS thread that has made its future.
pub(super) struct Pinned<F>(pub(super) F);

impl<F: Future + 'static> CreateMain<F::Output> for Pinned<F> {
    fn create(self, cpu: &mut Cpu, stop: StopAtEnd) -> Result<JoinHandle<F::Output>, ArenaFullError> {
        cpu.spawn_main_local(stop.after(self.0))
    }
}

/// Runs `main` and the threads it creates on one worker for each desk, until `main` has ended. The
/// calling OS thread is worker 0.
pub(super) fn run<M, E, T>(
    pool: &Arc<WorkerPool>,
    desks: Vec<Owner<Desk>>,
    name: &str,
    events: &M,
    main: impl CreateMain<T>,
) -> Result<T, SchedulerError>
where
    M: Fn(usize) -> io::Result<E> + Sync,
    E: Events,
{
    let workers = desks.len();
    // Without it the first heavy fence would stop its OS thread for some 10 ms.
    prepare_heavy_fence();
    let start = WorkerStart {
        pool,
        group: &Group::new(),
        events,
        all_stopped: &MeetingPoint::new(workers),
        all_looked: &MeetingPoint::new(workers),
    };
    let mut desks = desks.into_iter().enumerate();
    let (_, first) = desks.next().expect("there is a worker");
    let others = desks.map(|(me, desk)| {
        let builder = std::thread::Builder::new().name(format!("{name}-{me}"));
        (builder, move || start.work(me, desk))
    });
    let mut handle = None;
    let (first, others) = run_beside(
        others,
        || start.is_missing(),
        |beside| {
            let first_thread = |cpu: &mut Cpu| {
                handle = Some(main.create(cpu, StopAtEnd(pool.clone()))?);
                Ok(())
            };
            // The runner does not wait for a worker that has not begun when main has ended.
            start.work_with(0, first, first_thread, || beside.call_off())
        },
    );
    let others = others.into_iter().flatten().map(|started| match started {
        Ok(end) => end.unwrap_or_else(WorkerEnd::panicked),
        Err(error) => WorkerEnd::failed(error.into()),
    });
    result(std::iter::once(first).chain(others).collect(), handle)
}

/// The result of the scheduler, from the ends of the workers and the result of main.
fn result<T>(ends: Vec<WorkerEnd>, main: Option<JoinHandle<T>>) -> Result<T, SchedulerError> {
    let mut failure: Option<SchedulerError> = None;
    let mut waiting = Vec::new();
    for (worker, end) in ends.into_iter().enumerate() {
        waiting.extend(end.waiting);
        match end.result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failure = failure.or(Some(SchedulerError { worker, error })),
            Err(panic) => resume_unwind(panic),
        }
    }
    if let Some(mut failure) = failure {
        if let RunError::Deadlock(deadlock) = &mut failure.error {
            *deadlock = Deadlock { threads: waiting };
        }
        return Err(failure);
    }
    match main.and_then(|mut main| main.try_join()) {
        Some(Ok(output)) => Ok(output),
        Some(Err(JoinError::Panicked(exception))) => exception.rethrow(),
        Some(Err(JoinError::Cancelled)) | None => {
            Err(SchedulerError { worker: 0, error: RunError::MainExited })
        }
    }
}

/// Stops the workers when main ends: by a return, a panic, `exit` or a cancellation.
pub(super) struct StopAtEnd(Arc<WorkerPool>);

impl StopAtEnd {
    /// The future, which stops the workers when it is over or dropped.
    async fn after<F: Future>(self, main: F) -> F::Output {
        let _stop = self;
        main.await
    }
}

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A point at which each worker waits until all workers have arrived.
struct MeetingPoint {
    missing: Mutex<usize>,
    complete: Condvar,
}

impl MeetingPoint {
    fn new(missing: usize) -> MeetingPoint {
        MeetingPoint { missing: Mutex::new(missing), complete: Condvar::new() }
    }

    /// Arrives without waiting for the others.
    fn arrive(&self) {
        let mut missing = self.missing.lock().expect("no panic under this lock");
        *missing -= 1;
        if *missing == 0 {
            self.complete.notify_all();
        }
    }

    /// Arrives, and waits for the others.
    fn meet(&self) {
        self.arrive();
        let missing = self.missing.lock().expect("no panic under this lock");
        drop(self.complete.wait_while(missing, |missing| *missing > 0).expect("no panic under this lock"));
    }
}

/// The end of a worker.
struct WorkerEnd {
    /// The worker's error or panic.
    result: Result<Result<(), RunError>, Box<dyn Any + Send>>,
    /// The threads that wait in the worker's memory, if there is a deadlock.
    waiting: Vec<ThreadInfo>,
}

impl WorkerEnd {
    fn failed(error: RunError) -> WorkerEnd {
        WorkerEnd { result: Ok(Err(error)), waiting: Vec::new() }
    }

    fn panicked(panic: Box<dyn Any + Send>) -> WorkerEnd {
        WorkerEnd { result: Err(panic), waiting: Vec::new() }
    }
}

/// The things that a worker needs to start.
pub(super) struct WorkerStart<'a, M> {
    pub(super) pool: &'a Arc<WorkerPool>,
    pub(super) group: &'a Group,
    pub(super) events: &'a M,
    /// The workers pass it when none of them runs a step any more.
    all_stopped: &'a MeetingPoint,
    /// The workers pass it after a deadlock, when none of them looks any more which threads wait.
    all_looked: &'a MeetingPoint,
}

impl<M> Clone for WorkerStart<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for WorkerStart<'_, M> {}

impl<M, E> WorkerStart<'_, M>
where
    M: Fn(usize) -> io::Result<E> + Sync,
    E: Events,
{
    /// Stops the others, because a worker's OS thread could not be started.
    fn is_missing(self) {
        self.pool.stop();
        self.arrive();
    }

    /// Arrives at both points for a worker that never begins.
    fn arrive(self) {
        self.all_stopped.arrive();
        self.all_looked.arrive();
    }

    fn work(self, me: usize, desk: Owner<Desk>) -> WorkerEnd {
        self.work_with(me, desk, |_| Ok(()), || 0)
    }

    /// Runs a worker from its start to its end; it begins with `first`. When the workers are to
    /// stop, `call_off` calls off the workers that have not begun, and returns how many.
    fn work_with(
        self,
        me: usize,
        mut desk: Owner<Desk>,
        first: impl FnOnce(&mut Cpu) -> Result<(), RunError>,
        call_off: impl FnOnce() -> usize,
    ) -> WorkerEnd {
        let desk = desk.enter();
        let mut worker = None;
        let result = catch_unwind(AssertUnwindSafe(|| {
            // Main may have ended before this worker's OS thread has begun. (Worker 0 goes on, so
            // that it drops main on a CPU.)
            if me > 0 && self.pool.is_stopped() {
                return Ok(());
            }
            let worker = worker.insert(WorkerLoop::new(me, self.pool, self.group, self.events, desk)?);
            worker.cpu.adopts_by(self.pool.clone());
            self.pool.doors.begin(me, worker.cpu.door());
            first(&mut worker.cpu)?;
            worker.run()
        }));
        if matches!(result, Ok(Err(RunError::Deadlock(_)))) {
            self.pool.deadlocked.store(true, Ordering::SeqCst);
        }
        if !matches!(result, Ok(Ok(()))) {
            self.pool.stop();
        }
        (0..call_off()).for_each(|_| self.arrive());
        self.all_stopped.meet();
        let mut waiting = Vec::new();
        // All workers read the same here, because a worker writes it before the first meeting.
        if self.pool.deadlocked.load(Ordering::SeqCst) {
            if let Some(worker) = &mut worker {
                waiting = worker.cpu.deadlock().threads;
                waiting.retain(ThreadInfo::is_waiting);
            }
            self.all_looked.meet();
        }
        if let Some(worker) = worker {
            worker.end();
        }
        WorkerEnd { result, waiting }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::desk::WorkerView;
    use super::super::idle_workers::IdleWorkers;
    use super::*;
    use selvedge_core::NoEvents;

    #[test]
    fn a_worker_that_begins_after_the_stop_makes_nothing() {
        let (idle, rings) = IdleWorkers::new(2);
        let (views, mut desks): (Vec<_>, Vec<_>) = rings.into_iter().map(WorkerView::new).unzip();
        let pool = &Arc::new(WorkerPool::new(idle, views));
        let events = |_| -> io::Result<NoEvents> { Err(io::Error::other("an event source is made")) };
        let point = || MeetingPoint::new(1);
        let start = WorkerStart {
            pool,
            group: &Group::new(),
            events: &events,
            all_stopped: &point(),
            all_looked: &point(),
        };
        pool.stop();
        let end = start.work(1, desks.remove(1));
        assert!(matches!(end.result, Ok(Ok(()))) && end.waiting.is_empty());
    }
}
