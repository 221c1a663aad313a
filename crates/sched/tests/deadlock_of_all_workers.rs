//! A deadlock across OS threads is reported, and the workers do not wait for ever. A deadlock can
//! be told only while the process has no other OS thread, so this is a program of its own, without
//! the test harness.

use selvedge_core::{NoEvents, RunError, park};
use selvedge_sched::per_core;
use std::sync::Mutex;

fn main() {
    if cfg!(miri) {
        // Miri cannot see how many OS threads there are.
        return;
    }
    // Each main thread waits behind a waker that any OS thread might wake, and that only the other
    // worker could reach.
    let wakers = Mutex::new(Vec::new());
    let wakers: &'static _ = Box::leak(Box::new(wakers));
    let ended = per_core(
        2,
        |_| Ok(NoEvents::new()),
        move |_| async move { park(move |waker| wakers.lock().unwrap().push(waker)).await },
    );
    let failure = ended.expect_err("they wait for one another");
    let RunError::Deadlock(deadlock) = &failure.error else { panic!("{failure}") };
    assert_eq!(deadlock.threads.len(), 1, "{deadlock}");
    println!("test a_deadlock_of_all_workers_is_reported ... ok");
}
