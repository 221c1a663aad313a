//! All threads wait, and an OS thread that is unknown keeps the report of a deadlock away: a notice
//! says so. The test starts its own program again, and reads the notice on its standard error.

use selvedge_core::observe::notice_standstill_after;
use selvedge_core::round_robin;
use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The variable that makes this program the child.
const PROGRAM: &str = "SELVEDGE_TEST_STANDS_STILL";

/// Waits until an OS thread has read a byte of standard input.
#[test]
fn program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    notice_standstill_after(Some(Duration::from_millis(1)));
    let input = Arc::new(Mutex::new((false, None::<Waker>)));
    let reader = input.clone();
    std::thread::spawn(move || {
        std::io::stdin().read_exact(&mut [0]).unwrap();
        let mut input = reader.lock().unwrap();
        input.0 = true;
        input.1.take().into_iter().for_each(Waker::wake);
    });
    // A program without a notice ends after a minute.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(60));
        std::process::exit(3);
    });
    let waits = poll_fn(move |cx| {
        let mut input = input.lock().unwrap();
        input.1 = Some(cx.waker().clone());
        if input.0 { Poll::Ready(()) } else { Poll::Pending }
    });
    round_robin(waits).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "it starts no process")]
fn the_notice_says_why_no_deadlock_is_reported() {
    // In a binary with other tests, this module's name comes before the name of the test.
    let name =
        module_path!().split_once("::").map_or("program".into(), |(_, path)| format!("{path}::program"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--nocapture"]).env(PROGRAM, "yes");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let notice = lines.find(|line| line.contains("No deadlock is reported")).expect("the notice");
    assert!(notice.contains("selvedge: all threads have waited for "), "{notice}");
    assert!(notice.ends_with("not known to be idle, and could wake a thread"), "{notice}");
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(lines.all(|line| !line.contains("No deadlock")), "it is written once");
}
