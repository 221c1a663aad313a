//! When no OS thread can be started, a call on the blocking pool is an error. The call is dropped
//! where its destructor may use the pool. (The limit belongs to the process, so this file has one
//! test.)

use selvedge_io::pool::{Limits, Pool};
use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A value that uses the pool when it is dropped.
struct Looks(Arc<Pool>, Arc<AtomicBool>);

impl Drop for Looks {
    fn drop(&mut self) {
        assert_eq!(self.0.load().threads, 0);
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_call_that_no_os_thread_can_run_is_an_error_and_its_destructor_may_use_the_pool() {
    let over = Arc::new(AtomicBool::new(false));
    let watched = over.clone();
    let (started, has_started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        started.send(()).unwrap();
        std::thread::sleep(Duration::from_secs(20));
        if !watched.load(Ordering::SeqCst) {
            abort();
        }
    });
    has_started.recv().unwrap();
    let pool = Arc::new(Pool::new(Limits::default()));
    let dropped = Arc::new(AtomicBool::new(false));
    let looks = Looks(pool.clone(), dropped.clone());
    // The limit leaves no room for another stack.
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let before = rustix::process::getrlimit(rustix::process::Resource::As);
    let little = rustix::process::Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before };
    rustix::process::setrlimit(rustix::process::Resource::As, little).unwrap();
    let lost = futures::executor::block_on(pool.run(move || drop(looks)));
    rustix::process::setrlimit(rustix::process::Resource::As, before).unwrap();
    let lost = lost.unwrap_err();
    assert!(!lost.is_panic() && lost.to_string().contains("cannot start"), "{lost}");
    assert!(dropped.load(Ordering::SeqCst));
    // The pool serves calls again when there is room.
    assert_eq!(futures::executor::block_on(pool.run(|| 2)).unwrap(), 2);
    over.store(true, Ordering::SeqCst);
}
