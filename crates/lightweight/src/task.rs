//! Tasks with a waker: futures under an executor, as tokio has them.
//!
//! The compiler makes the continuation: an `async` block is a state machine, and its state is the
//! rest of the thread. An MVar does not get the thread, but a waker, with which the executor can be
//! told that polling the task again is worth while.
//!
//! # What it teaches
//! A waker must work from any OS thread and outlive its task, because it may be kept anywhere. So
//! it is counted with atomic instructions, and wakes by way of a queue behind a lock. That is the
//! price of not knowing what the thread waits for.
//!
//! # Paper
//! [Del §5.3] is the nearest: a future is a promise that its reader drives.

use crate::channel::{FifoRecord, MVarRecord, PutFound, TakeFound};
use crate::{Async, RunEnd};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

/// What a waker refers to: the number of its task, and the queue of the executor.
struct TaskWoken {
    task: usize,
    queue: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for TaskWoken {
    fn wake(self: Arc<Self>) {
        self.queue.lock().expect("no code panics under this lock").push_back(self.task);
    }
}

/// What an executor keeps of a task.
struct Task {
    /// `None` while it is polled.
    future: Option<BoxedTask>,
    waker: Waker,
}

#[derive(Default)]
struct Executor {
    tasks: RefCell<Vec<Option<Task>>>,
    /// The places in `tasks` that are free.
    free: RefCell<Vec<usize>>,
    queue: Arc<Mutex<VecDeque<usize>>>,
    running: Cell<bool>,
    stopped: Cell<bool>,
    /// The running task is to be dropped.
    halted: Cell<bool>,
    panicked: Cell<usize>,
}

thread_local! {
    static EXECUTOR: Executor = Executor::default();
}

impl Executor {
    fn spawn(&self, future: BoxedTask) {
        let mut tasks = self.tasks.borrow_mut();
        let place = self.free.borrow_mut().pop().unwrap_or(tasks.len());
        let woken = Arc::new(TaskWoken { task: place, queue: Arc::clone(&self.queue) });
        let task = Task { future: Some(future), waker: Waker::from(Arc::clone(&woken)) };
        if place == tasks.len() {
            tasks.push(Some(task));
        } else {
            tasks[place] = Some(task);
        }
        woken.wake();
    }

    fn next(&self) -> Option<usize> {
        match self.stopped.get() {
            true => None,
            false => self.queue.lock().expect("no code panics under this lock").pop_front(),
        }
    }

    /// Polls a task, and drops it when it has ended.
    fn poll(&self, place: usize) {
        let taken = self.tasks.borrow_mut()[place]
            .as_mut()
            .and_then(|task| Some((task.future.take()?, task.waker.clone())));
        let Some((mut future, waker)) = taken else { return };
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        if polled.is_err() {
            self.panicked.set(self.panicked.get() + 1);
        }
        if !self.halted.take() && matches!(polled, Ok(Poll::Pending)) {
            if let Some(task) = &mut self.tasks.borrow_mut()[place] {
                task.future = Some(future);
            }
            return;
        }
        drop(future);
        let ended = self.tasks.borrow_mut()[place].take();
        self.free.borrow_mut().push(place);
        drop(ended);
    }

    fn insist(&self, operation: &str) {
        assert!(self.running.get(), "{operation} is for threads: the code that calls start is none");
    }

    /// The running task ends when it next waits.
    async fn halt(operation: &str) -> Infallible {
        EXECUTOR.with(|executor| {
            executor.insist(operation);
            executor.halted.set(true);
            if operation == "stop" {
                executor.stopped.set(true);
            }
        });
        pending().await
    }
}

/// A place that a waiting task shares with the record: the value, and the waker.
pub struct TaskWaiting<T> {
    place: Rc<Cell<Option<T>>>,
    waker: Waker,
}

impl<T> fmt::Debug for TaskWaiting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskWaiting")
    }
}

impl<T> TaskWaiting<T> {
    fn give(self, value: T) {
        self.place.set(Some(value));
        self.waker.wake();
    }
}

/// Leaves the running task with its waker, by `leave`, and waits for a value.
async fn wait<T>(leave: impl FnOnce(TaskWaiting<T>)) -> T {
    let place = Rc::new(Cell::new(None));
    let mut leave = Some(leave);
    poll_fn(|cx| match leave.take() {
        Some(leave) => {
            leave(TaskWaiting { place: Rc::clone(&place), waker: cx.waker().clone() });
            Poll::Pending
        }
        None => place.take().map_or(Poll::Pending, Poll::Ready),
    })
    .await
}

/// The implementation `async`.
#[derive(Debug)]
pub enum Tasks {}

impl Async for Tasks {
    type MVar<T: 'static> = Rc<RefCell<MVarRecord<T, TaskWaiting<T>, TaskWaiting<()>>>>;
    type Fifo<T: 'static> = Rc<RefCell<FifoRecord<T, TaskWaiting<T>>>>;

    fn spawn(thread: impl Future<Output = ()> + 'static) {
        EXECUTOR.with(|executor| executor.spawn(Box::pin(thread)));
    }

    async fn yield_() {
        EXECUTOR.with(|executor| executor.insist("yield"));
        wait(|task: TaskWaiting<()>| task.give(())).await;
    }

    async fn halt() -> Infallible {
        Executor::halt("halt").await
    }

    fn start() -> RunEnd {
        EXECUTOR.with(|executor| {
            assert!(!executor.running.replace(true), "start was called by a thread");
            while let Some(place) = executor.next() {
                executor.poll(place);
            }
            let ready = executor.queue.lock().expect("no code panics under this lock").len();
            let left = executor.tasks.take();
            let blocked = left.iter().flatten().count() - ready;
            executor.running.set(false);
            drop(left);
            executor.free.take();
            executor.queue.lock().expect("no code panics under this lock").clear();
            RunEnd { blocked, panicked: executor.panicked.take(), stopped: executor.stopped.take() }
        })
    }

    async fn stop() -> Infallible {
        Executor::halt("stop").await
    }

    fn make_mvar<T: 'static>() -> Self::MVar<T> {
        Rc::new(RefCell::new(MVarRecord::new()))
    }

    async fn put_mvar<T: 'static>(out: &Self::MVar<T>, value: T) {
        let found = out.borrow_mut().put(value);
        match found {
            PutFound::Done => {}
            PutFound::Reader(reader, value) => reader.give(value),
            PutFound::Full(value) => wait(|writer| out.borrow_mut().wait_to_put(writer, value)).await,
        }
    }

    async fn take_mvar<T: 'static>(inp: &Self::MVar<T>) -> T {
        let found = inp.borrow_mut().take();
        match found {
            TakeFound::Value(value, writer) => {
                writer.into_iter().for_each(|writer| writer.give(()));
                value
            }
            TakeFound::Empty => wait(|reader| inp.borrow_mut().wait_to_take(reader)).await,
        }
    }

    fn make_fifo<T: 'static>() -> Self::Fifo<T> {
        Rc::new(RefCell::new(FifoRecord::new()))
    }

    fn put_fifo<T: 'static>(out: &Self::Fifo<T>, value: T) {
        let found = out.borrow_mut().put(value);
        found.into_iter().for_each(|(reader, value)| reader.give(value));
    }

    async fn take_fifo<T: 'static>(inp: &Self::Fifo<T>) -> T {
        let found = inp.borrow_mut().take();
        match found {
            Some(value) => value,
            None => wait(|reader| inp.borrow_mut().wait_to_take(reader)).await,
        }
    }
}
