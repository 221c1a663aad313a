//! The three programs of light-weight concurrency under each implementation of
//! `selvedge-lightweight`, and under tokio: `lwc-sieve-tramp 1000`, `tokio-lwc-sieve 1000`.
//!
//! `child.rs` calls `ours` and `theirs`. tokio's tasks run the same texts as `async`: they are
//! an implementation of the trait too, over the hand-made MVar.

use super::clock::Times;
use super::handmade::HandMade;
use selvedge_lightweight::apps::{AppFound, answers, kpn, sieve, sorter};
use selvedge_lightweight::implementations::named;
use selvedge_lightweight::{Async, RunEnd};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Runs `program-implementation`.
///
/// # Errors
/// When there is no such program or implementation.
pub(super) fn ours(name: &str, numbers: &[u64], fault: u64) -> Result<(), String> {
    let unknown = || format!("no such program: lwc-{name}");
    let (program, by) = name.split_once('-').ok_or_else(unknown)?;
    let by = named(by).ok_or_else(unknown)?;
    match (program, numbers) {
        ("kpn", &[n, rounds]) => measure(fault, rounds, || (by.kpn)(n as usize)),
        ("sieve", &[last]) => measure(fault, 1, || (by.sieve)(last)),
        ("sorter", &[n]) => measure(fault, 1, || (by.sorter)(n as usize, false)),
        ("built", &[n]) => measure(fault, 1, || (by.sorter)(n as usize, true)),
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Runs a program under tokio.
///
/// # Errors
/// When there is no such program.
pub(super) fn theirs(program: &str, numbers: &[u64], fault: u64) -> Result<(), String> {
    match (program, numbers) {
        ("kpn", &[n, rounds]) => measure(fault, rounds, || kpn::awaited::<Local>(n as usize)),
        ("sieve", &[last]) => measure(fault, 1, || sieve::awaited::<Local>(last)),
        ("sorter", &[n]) => measure(fault, 1, || sorter::awaited::<Local>(n as usize, false)),
        ("built", &[n]) => measure(fault, 1, || sorter::awaited::<Local>(n as usize, true)),
        _ => return Err(format!("no such program: tokio-lwc-{program}")),
    }
    Ok(())
}

/// Runs a program this number of times, and prints the CPU time of a round, the memory of a thread,
/// and the answer. `fault` makes the answer wrong.
fn measure(fault: u64, rounds: u64, program: impl Fn() -> AppFound) {
    let before = status("VmRSS");
    let start = Times::now();
    let mut last = None;
    for _ in 0..rounds {
        last = Some(program());
    }
    let end = Times::now();
    let found = last.expect("at least one round");
    let bytes = status("VmHWM").saturating_sub(before);
    start.print_as("ns", end, rounds);
    println!("ms {:.4}", start.seconds_until(end) * 1e3 / rounds as f64);
    println!("bytes {:.3}", bytes as f64 / found.threads as f64);
    println!("threads {}", found.threads);
    println!("digest {}", answers::digest(&found.numbers) + fault);
}

/// A line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux tells a process its size");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("the line has a number of KiB") * 1024
}

/// tokio's tasks on one OS thread, as an implementation of the paper's interface.
enum Local {}

thread_local! {
    static TASKS: RefCell<LocalSet> = RefCell::new(LocalSet::new());
    static STARTED: Cell<bool> = const { Cell::new(false) };
    static STOP: Rc<Notify> = Rc::new(Notify::new());
}

/// A queue made of `Rc` and a waker, as the hand-made MVar.
struct Queue<T>(Rc<RefCell<(VecDeque<T>, Option<Waker>)>>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Queue(Rc::clone(&self.0))
    }
}

impl Async for Local {
    type MVar<T: 'static> = HandMade<T>;
    type Fifo<T: 'static> = Queue<T>;

    fn spawn(thread: impl Future<Output = ()> + 'static) {
        match STARTED.get() {
            true => drop(tokio::task::spawn_local(thread)),
            false => TASKS.with_borrow(|tasks| drop(tasks.spawn_local(thread))),
        }
    }

    async fn yield_() {
        tokio::task::yield_now().await;
    }

    async fn halt() -> Infallible {
        unreachable!("no program calls it")
    }

    fn start() -> RunEnd {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime without drivers needs nothing of the system");
        let tasks = TASKS.take();
        STARTED.set(true);
        let stop = STOP.with(Rc::clone);
        let stopped = runtime.block_on(async {
            tokio::select! {
                () = tasks => false,
                () = stop.notified() => true,
            }
        });
        STARTED.set(false);
        RunEnd { stopped, ..RunEnd::default() }
    }

    async fn stop() -> Infallible {
        STOP.with(|stop| stop.notify_one());
        pending().await
    }

    fn make_mvar<T: 'static>() -> HandMade<T> {
        HandMade::new()
    }

    async fn put_mvar<T: 'static>(out: &HandMade<T>, value: T) {
        out.put(value).await;
    }

    async fn take_mvar<T: 'static>(inp: &HandMade<T>) -> T {
        inp.take().await
    }

    fn make_fifo<T: 'static>() -> Queue<T> {
        Queue(Rc::new(RefCell::new((VecDeque::new(), None))))
    }

    fn put_fifo<T: 'static>(out: &Queue<T>, value: T) {
        let mut queue = out.0.borrow_mut();
        queue.0.push_back(value);
        let waker = queue.1.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn take_fifo<T: 'static>(inp: &Queue<T>) -> T {
        poll_fn(|context| {
            let mut queue = inp.0.borrow_mut();
            if let Some(value) = queue.0.pop_front() {
                return Poll::Ready(value);
            }
            queue.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
