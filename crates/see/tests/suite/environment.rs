//! A program that is seen because an environment variable says so. It is this test program, started
//! again.

use selvedge_core::{round_robin_over, sleep, spawn_local};
use selvedge_io::EventLoop;
use selvedge_see::{from_environment, named};
use std::process::{Command, Output};
use std::time::Duration;

fn program(see: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "environment::the_program", "--ignored", "--nocapture"]);
    match see {
        Some(see) => command.env("SELVEDGE_SEE", see),
        None => command.env_remove("SELVEDGE_SEE"),
    };
    command.output().unwrap()
}

#[test]
#[ignore = "it is what the other tests look at"]
fn the_program() {
    let _seeing = match from_environment() {
        Ok(seeing) => seeing,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    let main = async {
        drop(spawn_local(named("the one that waits", std::future::pending::<()>())));
        drop(spawn_local(named("the one that hogs", async {
            std::thread::sleep(Duration::from_millis(300))
        })));
        sleep(Duration::from_millis(5)).await;
        // To ourselves. Without a handler it would be the end.
        if std::env::var("SELVEDGE_SEE").is_ok_and(|see| see.contains("dump")) {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::USR1).unwrap();
            sleep(Duration::from_millis(500)).await;
            rustix::process::kill_process(me, rustix::process::Signal::QUIT).unwrap();
            sleep(Duration::from_millis(500)).await;
        }
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    eprintln!("the program has ended");
}

#[test]
fn signals_ask_for_dumps_and_the_rest_comes_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.json");
    let output = program(Some(&format!("dump,counters,watchdog=20,trace={}", file.display())));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let waits = stderr.lines().filter(|line| line.contains("\"the one that waits\"")).collect::<Vec<_>>();
    assert_eq!(waits.len(), 2, "a dump for each signal: {stderr}");
    assert!(waits[0].contains("waits behind a waker"), "{stderr}");
    let hogs = stderr.lines().filter(|line| line.contains("\"the one that hogs\"")).collect::<Vec<_>>();
    assert_eq!(hogs.len(), 1, "{stderr}");
    assert!(hogs[0].contains("has made no system call for "), "{stderr}");
    let (program, end) = stderr.split_once("the program has ended").unwrap();
    assert!(program.contains("\nall CPUs: steps ") && end.contains("\nall CPUs: steps "), "{stderr}");
    let trace: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let hogs = trace.as_array().unwrap().iter().find(|event| event["name"] == "the one that hogs").unwrap();
    assert!(hogs["dur"].as_f64().unwrap() >= 299_000.0, "{hogs}");
}

#[test]
fn without_the_variable_there_is_nothing_to_see() {
    for see in [None, Some("")] {
        let output = program(see);
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stderr).unwrap().trim(), "the program has ended");
    }
}

#[test]
fn a_variable_that_is_not_understood_is_refused() {
    let output = program(Some("dump,everything"));
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        stderr.trim(),
        "SELVEDGE_SEE: there is no everything; there are dump, counters, trace=FILE, watchdog=MS"
    );
}
