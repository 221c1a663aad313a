//! While the OS thread of the loop for foreign executors cannot be started, nothing is used up by the attempts. (The limit is the
//! process's: one test in this file.)

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
    // No room for another stack.
    setrlimit(Resource::As, Rlimit { current: Some(pages * 4096 + (1 << 20)), ..before }).unwrap();
    for _ in 0..5 {
        assert!(pin!(sleep(ms(1))).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    setrlimit(Resource::As, before).unwrap();
    assert_eq!(open_descriptors(), descriptors);
    // There is one when there is room.
    futures::executor::block_on(sleep(ms(1)));
}
