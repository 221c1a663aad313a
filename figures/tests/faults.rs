//! A figure notices when a program of ours gives a wrong answer. `cargo xtask ci` asks this of
//! every figure; here are those about yields, idle threads and the disk, because these once took a
//! constant for the answer.

use std::process::{Command, Output};

fn figures(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_figures")).args(words).output().expect("the program was built")
}

/// In how many rows of a figure a program was told to give a wrong answer, and the figure noticed.
fn noticed(figure: &str) -> usize {
    let output = figures(&["--faults", figure]);
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{why}");
    let line = said.lines().find(|line| line.starts_with(figure)).expect("a line of the figure");
    let number = line.split_once("faults of ").and_then(|(_, rest)| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("the line names the number of rows")
}

#[test]
fn a_yield_that_is_not_made_is_noticed() {
    assert_eq!(noticed("threads-switch"), 5);
}

#[test]
fn an_idle_thread_that_is_woken_is_noticed() {
    assert_eq!(noticed("fifo-idle"), 6);
}

#[test]
fn a_read_that_brings_another_block_is_noticed() {
    assert_eq!(noticed("disk-random"), 17);
}
