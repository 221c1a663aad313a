//! A sleep is the first thing of all that this process asks for, on a foreign executor. (A file of
//! its own: it must be the first.)

#[test]
fn a_sleep_outside_of_threads_needs_nothing_before_it() {
    let begun = std::time::Instant::now();
    selvedge::block_on(selvedge::sleep(std::time::Duration::from_millis(5)));
    assert!(begun.elapsed() >= std::time::Duration::from_millis(5));
}
