//! While the OS thread of the loop for foreign executors cannot be started, the attempts to start
//! it leave no descriptors behind. (The limit belongs to the process, so this file has one test.)

mod common;

use common::{ms, open_descriptors};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use selvedge_io::time::sleep;
use std::pin::pin;
use std::task::{Context, Waker};

#[test]
fn attempts_to_start_the_loop_leave_no_descriptors_behind() {
    let descriptors = open_descriptors();
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
    let before = getrlimit(Resource::As);
    // The limit leaves no room for another stack.
    setrlimit(Resource::As, Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before }).unwrap();
    for _ in 0..5 {
        assert!(pin!(sleep(ms(1))).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    setrlimit(Resource::As, before).unwrap();
    assert_eq!(open_descriptors(), descriptors);
    // The OS thread starts as soon as there is room.
    futures::executor::block_on(sleep(ms(1)));
}
