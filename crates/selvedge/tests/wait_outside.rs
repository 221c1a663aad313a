//! A bare wait is the first thing of all that this process asks for, on a foreign executor. (A file
//! of its own: it must be the first.)

use std::io::Write;
use std::os::fd::AsFd;

#[test]
fn a_wait_outside_of_threads_needs_nothing_before_it() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"x").unwrap();
    selvedge::block_on(selvedge::wait(reader.as_fd(), selvedge::Interest::READ));
}
