//! Child processes.

use crate::common::{ms, run};
use selvedge_core::{Time, spawn};
use selvedge_io::process::Command;
use selvedge_io::signal::Signal;
use selvedge_io::time::{sleep, timeout};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    command
}

/// Whether a process with this number exists and has not ended.
fn lives(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat"));
    status.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_child_ends_and_says_how() {
    run(async {
        assert!(sh("exit 0").status().await.unwrap().success());
        assert_eq!(sh("exit 7").status().await.unwrap().code(), Some(7));
        assert_eq!(sh("kill -TERM $$").status().await.unwrap().signal(), Some(libc::SIGTERM));
        let mut child = sh("exit 3").spawn().await.unwrap();
        for _ in 0..3 {
            assert_eq!(child.wait().await.unwrap().code(), Some(3));
        }
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        child.start_kill().unwrap();
    });
}

#[test]
fn others_run_while_one_waits_for_a_child() {
    run(async {
        let (mut inputs, mut waiters) = (Vec::new(), Vec::new());
        for i in 0..20 {
            // `cat` ends with its input, so no child ends before the main thread allows it.
            let mut child = sh(&format!("cat; exit {i}")).stdin(Stdio::piped()).spawn().await.unwrap();
            inputs.push(child.stdin.take());
            waiters.push(spawn(async move { child.wait().await.unwrap() }));
        }
        // This would never end if a waiter kept the OS thread.
        for _ in 0..10 {
            sleep(ms(1)).await;
        }
        drop(inputs);
        for (i, waiter) in waiters.into_iter().enumerate() {
            assert_eq!(waiter.await.unwrap().code(), Some(i as i32));
        }
    });
}

#[test]
fn talking_through_pipes() {
    run(async {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().await.unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        for word in ["one", "another"] {
            input.write_all(word.as_bytes()).await.unwrap();
            let mut echo = vec![0; word.len()];
            output.read_exact(&mut echo).await.unwrap();
            assert_eq!(echo, word.as_bytes());
        }
        assert!(child.try_wait().unwrap().is_none());
        drop(input);
        assert_eq!(output.read_to_end().await.unwrap(), b"");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn all_of_the_output_however_long() {
    run(async {
        let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; echo $WORD; pwd; cat; exit 5";
        let output = sh(script).env("WORD", "word").current_dir("/").output().await.unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000 + 5 + 2, 200_000));
        assert!(output.stdout.ends_with(b"word\n/\n"));
    });
}

/// `wait` closes the child's input, so that the child ends.
#[test]
fn waiting_leaves_nothing_to_wait_for() {
    run(async {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().await.unwrap();
        assert!(timeout(ms(10_000), child.wait()).await.unwrap().unwrap().success());
    });
}

#[test]
fn a_child_is_killed_or_left_as_was_said() {
    run(async {
        let mut child = sh("exec sleep 100").spawn().await.unwrap();
        assert!(timeout(ms(10), child.wait()).await.is_err(), "a wait that is given up");
        assert_eq!(child.kill().await.unwrap().signal(), Some(libc::SIGKILL));

        let child = sh("exec sleep 100").kill_on_drop(true).spawn().await.unwrap();
        let id = child.id();
        assert!(lives(id));
        drop(child);
        eventually(|| !lives(id)).await;

        let left = sh("sleep 0.1").spawn().await.unwrap();
        let id = left.id();
        drop(left);
        assert!(lives(id));
        // The zombie of a dropped child is removed when the next child starts.
        sleep(ms(200)).await;
        sh("true").status().await.unwrap();
        assert!(!std::fs::exists(format!("/proc/{id}")).unwrap(), "a zombie is left");
    });
}

#[test]
fn a_child_is_asked_to_end_before_it_is_killed() {
    run(async {
        let mut heeds = sh("exec sleep 100").spawn().await.unwrap();
        assert_eq!(heeds.stop(ms(10_000)).await.unwrap().signal(), Some(libc::SIGTERM));

        let mut deaf = sh("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        let mut deaf = deaf.stdout(Stdio::piped()).spawn().await.unwrap();
        let said = deaf.stdout.take().unwrap();
        said.read_exact(&mut [0; 6]).await.unwrap();
        let begun = Time::now();
        assert_eq!(deaf.stop(ms(50)).await.unwrap().signal(), Some(libc::SIGKILL));
        assert!(Time::now().since(begun) >= ms(50));

        // A child that has ended is neither asked to end nor killed.
        let mut ended = sh("exit 3").spawn().await.unwrap();
        ended.wait().await.unwrap();
        assert_eq!(ended.stop(ms(10)).await.unwrap().code(), Some(3));
        ended.signal(Signal::USR1).unwrap();
    });
}

async fn eventually(done: impl Fn() -> bool) {
    let start = Time::now();
    while !done() {
        assert!(Time::now().since(start) < Duration::from_secs(10));
        sleep(ms(1)).await;
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    run(async {
        let mut command = Command::new("/no/such/program");
        let error = command.spawn().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.to_string(), "start /no/such/program: No such file or directory");
        // The failed start has not changed the command.
        assert_eq!(command.status().await.unwrap_err().to_string(), error.to_string());
    });
}

#[test]
fn under_a_foreign_executor() {
    futures::executor::block_on(async {
        let output = sh("echo hello").output().await.unwrap();
        assert_eq!(output.stdout, b"hello\n");
    });
}
