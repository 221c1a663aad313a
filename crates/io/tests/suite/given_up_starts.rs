//! Starts of child processes that are given up: the command stays as it was.

use crate::common::{ms, run};
use futures::poll;
use selvedge_io::process::Command;
use selvedge_io::time::timeout;
use std::io::{ErrorKind, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::pin::pin;
use std::process::Stdio;

/// A command with a start that takes until one byte is written to the pipe.
fn held(program: &str) -> (Command, PipeWriter) {
    let (mut gate, opener) = std::io::pipe().unwrap();
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    // SAFETY: the hook only reads from a descriptor into its own stack, and `read` may be called
    // between `fork` and `exec`.
    unsafe { command.as_std_mut().pre_exec(move || gate.read_exact(&mut [0])) };
    (command, opener)
}

#[test]
fn a_start_that_is_given_up_half_way_leaves_the_command_as_it_was() {
    run(async {
        let (mut command, mut opener) = held("echo");
        command.arg("still");
        timeout(ms(20), command.spawn()).await.expect_err("the start is held up");
        // The start that was given up takes one byte, and the next one the other.
        opener.write_all(b"xx").unwrap();
        let output = command.arg("here").output().await.unwrap();
        assert_eq!(output.stdout, b"still here\n");
    });
}

#[test]
fn the_next_start_waits_for_one_that_was_given_up_and_may_be_given_up_too() {
    run(async {
        let (mut command, mut opener) = held("true");
        for _ in 0..3 {
            timeout(ms(20), command.spawn()).await.expect_err("the start is held up");
        }
        opener.write_all(b"xx").unwrap();
        assert!(command.status().await.unwrap().success());
    });
}

#[test]
fn a_start_that_is_given_up_before_its_turn_leaves_the_command_as_it_was() {
    run(async {
        let mut command = Command::new("no-such-program-here");
        command.arg("argument");
        for _ in 0..50 {
            assert!(poll!(pin!(command.spawn())).is_pending());
        }
        let error = command.spawn_here().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("no-such-program-here"), "{error}");
        assert_eq!(command.as_std_mut().get_args().count(), 1);
    });
}
