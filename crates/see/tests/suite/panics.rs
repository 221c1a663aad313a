//! What a program says of a panic in a thread. It is this test program, started again.

use selvedge_core::{NoEvents, round_robin, spawn, spawn_local, yield_now};
use selvedge_direct::direct;
use selvedge_sched::work_stealing;
use selvedge_see::{name_panics, named, this_thread};
use std::process::Command;

/// The lines on standard error of the test with this name, and whether it ended well.
fn stderr_of(program: &str) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("panics::{program}"), "--ignored", "--nocapture"]);
    let output = command.env("RUST_BACKTRACE", "0").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    stderr.lines().map(str::to_string).collect()
}

async fn bake(bread: &'static str) {
    yield_now().await;
    panic!("no {bread}");
}

#[test]
#[ignore = "it is what the other tests look at"]
fn a_bakery() {
    name_panics();
    name_panics();
    round_robin(async {
        assert!(spawn_local(bake("rye")).await.is_err());
        assert!(spawn_local(named("the baker", bake("wheat"))).await.is_err());
        // The name went with its future.
        assert!(spawn_local(bake("barley")).await.is_err());
        let by_hand = direct(|| panic!("no oats"));
        assert!(spawn_local(named("the miller", by_hand)).await.is_err());
    })
    .unwrap();
    let helped = async { spawn(named("a helper", bake("millet"))).await.is_err() };
    assert!(work_stealing(2, |_| Ok(NoEvents::new()), helped).unwrap());
    assert!(std::thread::spawn(|| panic!("no OS")).join().is_err());
}

/// What follows each message. The number of a thread is 7 there.
fn ends(lines: &[String]) -> Vec<(String, Option<String>)> {
    let is_of_us = |line: &&String| line.starts_with("thread ") && line.ends_with(" panicked");
    let told = lines.iter().enumerate().filter(|(_, line)| line.starts_with("no "));
    let end = |at: usize| lines[at + 1..].iter().find(|line| !line.starts_with("note: ")).filter(is_of_us);
    let with_7 = |line: &String| {
        let (number, rest) = line["thread ".len()..].split_once(' ').unwrap();
        assert!(number.parse::<u32>().unwrap() > 0, "{line}");
        format!("thread 7 {rest}")
    };
    told.map(|(at, message)| (message.clone(), end(at).map(with_7))).collect()
}

#[test]
fn the_message_of_a_panic_is_followed_by_the_thread() {
    let lines = stderr_of("a_bakery");
    let ends = ends(&lines);
    let expected = [
        ("no rye", Some("thread 7 (suite::panics::bake) panicked")),
        ("no wheat", Some("thread 7 \"the baker\" (suite::panics::bake) panicked")),
        ("no barley", Some("thread 7 (suite::panics::bake) panicked")),
        ("no oats", Some("thread 7 \"the miller\" (suite::panics::a_bakery) panicked")),
        ("no millet", Some("thread 7 \"a helper\" (suite::panics::bake) panicked")),
        ("no OS", None),
    ];
    let found: Vec<_> = ends.iter().map(|(message, end)| (message.as_str(), end.as_deref())).collect();
    assert_eq!(found, expected, "{lines:#?}");
}

#[test]
#[ignore = "it is what the other tests look at"]
fn a_bakery_with_hooks_of_its_own() {
    std::panic::set_hook(Box::new(|_| eprintln!("the first hook")));
    name_panics();
    round_robin(async {
        assert!(spawn_local(named("the baker", bake("rye"))).await.is_err());
        std::panic::set_hook(Box::new(|_| eprintln!("the second hook: {}", this_thread().unwrap())));
        // It is not wrapped.
        name_panics();
        assert!(spawn_local(named("the baker", bake("wheat"))).await.is_err());
    })
    .unwrap();
}

#[test]
fn hooks_of_the_program_are_called() {
    let lines = stderr_of("a_bakery_with_hooks_of_its_own");
    let lines: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
    let [first, ours, second] = lines[..] else { panic!("{lines:#?}") };
    assert_eq!(first, "the first hook");
    let of_baker = |line: &str| line.contains(" \"the baker\" (suite::panics::bake)");
    assert!(of_baker(ours) && ours.starts_with("thread ") && ours.ends_with(" panicked"), "{ours}");
    assert!(of_baker(second) && second.starts_with("the second hook: thread "), "{second}");
}

#[test]
#[ignore = "it is what the other tests look at"]
fn a_bakery_without_standard_error() {
    name_panics();
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::stdio::dup2_stderr(&writer).unwrap();
    drop(reader);
    round_robin(async { assert!(spawn_local(bake("rye")).await.is_err()) }).unwrap();
}

#[test]
fn a_panic_whose_line_cannot_be_written_is_one_panic() {
    stderr_of("a_bakery_without_standard_error");
}
