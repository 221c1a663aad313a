//! The child of a `fork(2)` runs programs of its own. This test is a program without the test
//! harness, so that the parent has only its own OS threads when it forks.

use selvedge_core::{RunError, park, round_robin_over};
use selvedge_io::time::sleep;
use selvedge_io::{EventLoop, blocking};
use std::time::Duration;

/// Uses the blocking pool.
fn run() {
    let main = async { blocking(|| 42).await.unwrap() };
    assert_eq!(round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap(), 42);
}

/// Uses the event loop outside schedulers.
fn outside() {
    futures::executor::block_on(sleep(Duration::from_millis(1)));
}

/// A deadlock is reported, because the pool's OS threads idle and no thread will be woken.
fn deadlock() {
    let ended = round_robin_over(&mut EventLoop::new().unwrap(), park(drop));
    assert!(matches!(ended, Err(RunError::Deadlock(_))), "{ended:?}");
}

fn main() {
    outside();
    run();
    // SAFETY: the only OS threads besides this one idle, so none of them holds a lock that the
    // child might need.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // The timer ends a child that hangs.
        // SAFETY: the call only sets a timer.
        unsafe { libc::alarm(20) };
        run();
        outside();
        deadlock();
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: `status` is a local variable of this function.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
    run();
    deadlock();
    println!("test the_child_of_a_fork_runs_programs ... ok");
}
