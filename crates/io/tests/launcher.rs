//! Programs that a `Launcher` or a `Launch` starts. (A test is about the descriptors that programs
//! inherit from this process, so it has a file of its own.)

mod common;

use common::{ms, run};
use selvedge_core::spawn;
use selvedge_io::process::{Child, Launch, Launcher};
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::{sleep, timeout};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// A launcher of programs that read nothing, with variables.
fn launcher<const N: usize>(variables: [(&str, &str); N]) -> Launcher {
    Launcher::new(File::open("/dev/null").unwrap(), variables).unwrap()
}

/// Runs a program to its end; its text.
async fn said(launcher: &Launcher, words: &[&str]) -> String {
    let (mut child, output) = launcher.start(words).unwrap();
    let text = output.read_to_end().await.unwrap();
    let status = child.wait().await.unwrap();
    assert!(status.success(), "{words:?}: {status}, {:?}", child.load_error());
    String::from_utf8(text).unwrap()
}

#[test]
fn a_program_gets_its_words_its_environment_and_both_outputs() {
    run(async {
        let launcher = launcher([("WORD", "a b"), ("HOME", "/elsewhere")]);
        let script = "cat; echo $#,$1,$2,$WORD,$HOME; echo $PATH >&2; pwd";
        let path = std::env::var("PATH").unwrap();
        let directory = std::env::current_dir().unwrap();
        let expected = format!("2,x y,,a b,/elsewhere\n{path}\n{}\n", directory.display());
        assert_eq!(said(&launcher, &["sh", "-c", script, "sh", "x y", ""]).await, expected);
        let long = said(&launcher, &["head", "-c", "300000", "/dev/zero"]).await;
        assert_eq!(long.len(), 300_000);
    });
}

/// What the kernel says about a process's signals, by the names in `/proc/PID/status`.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
}

#[test]
fn a_program_finds_signals_and_descriptors_as_after_any_start() {
    run(async {
        // This process has a handler, and ignores SIGPIPE, as all of Rust. The blocked signals are
        // those of this OS thread: the runner's own blocks all while it starts another.
        let _signals = signals(&[Signal::USR1]).unwrap();
        let own = fs::read_to_string("/proc/thread-self/status").unwrap();
        let (usr1, pipe) = (1 << (libc::SIGUSR1 - 1), 1 << (libc::SIGPIPE - 1));
        assert_eq!((mask(&own, "SigCgt") & usr1, mask(&own, "SigIgn") & pipe), (usr1, pipe));
        let launcher = launcher([]);
        let status = said(&launcher, &["cat", "/proc/self/status"]).await;
        assert_eq!(mask(&status, "SigBlk"), mask(&own, "SigBlk"), "blocked");
        assert_eq!(mask(&status, "SigIgn"), mask(&own, "SigIgn") & !pipe, "ignored");
        assert_eq!(mask(&status, "SigCgt"), 0, "handled");
        // This process may have inherited some that have no close-on-exec flag.
        let expected = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap().stdout;
        assert_eq!(said(&launcher, &["ls", "/proc/self/fd"]).await.as_bytes(), expected);
        // The caller's signals are as before too.
        let after = fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(mask(&after, "SigBlk"), mask(&own, "SigBlk"));
    });
}

#[test]
fn a_program_has_a_process_group_of_its_own_and_dies_of_signals() {
    run(async {
        let launcher = launcher([]);
        let (mut child, output) = launcher.start(["sh", "-c", "ps -o pgid= -p $$; exec sleep 100"]).unwrap();
        let mut group = [0; 64];
        let length = output.read(&mut group).await.unwrap();
        let group = str::from_utf8(&group[..length]).unwrap().trim();
        assert_eq!(group, child.id().to_string());
        child.signal(Signal::INT).unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGINT));
        assert!(child.load_error().is_none());
        assert_eq!(output.read_to_end().await.unwrap(), b"");
    });
}

/// The kind of error with which a program was not loaded.
async fn not_loaded(launcher: &Launcher, program: &Path) -> Option<ErrorKind> {
    let (mut child, output) = launcher.start([program]).unwrap();
    assert_eq!(output.read_to_end().await.unwrap(), b"");
    assert!(child.load_error().is_none(), "it is not known before the child's end is");
    assert_eq!(child.wait().await.unwrap().code(), Some(127));
    child.load_error().map(|error| error.kind())
}

#[test]
fn a_program_that_cannot_be_loaded_is_told_by_the_child() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("text");
        fs::write(&text, "text\n").unwrap();
        let path = directory.path().to_str().unwrap();
        let path = format!("/no/such:{path}:");
        let launcher = launcher([("PATH", &path)]);
        let kind = not_loaded(&launcher, Path::new("/no/such/program")).await;
        assert_eq!(kind, Some(ErrorKind::NotFound));
        assert_eq!(not_loaded(&launcher, Path::new("no-such-program")).await, Some(ErrorKind::NotFound));
        assert_eq!(not_loaded(&launcher, &text).await, Some(ErrorKind::PermissionDenied));
        // A program that is found and is of no kind that the kernel knows ends the search.
        let mode: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&text, mode).unwrap();
        let (mut child, _) = launcher.start(["text"]).unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(127));
        assert_eq!(child.load_error().unwrap().raw_os_error(), Some(libc::ENOEXEC));
        // A program that exits with that number was loaded.
        let (mut child, _) = launcher.start(["/bin/sh", "-c", "exit 127"]).unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(127));
        assert!(child.load_error().is_none());
    });
}

#[test]
fn what_no_system_call_can_take_is_refused() {
    let launcher = launcher([]);
    for words in [vec![], vec![OsStr::new("echo"), OsStr::from_bytes(b"a\0b")]] {
        let error = launcher.start(words).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let error = Launcher::new(File::open("/dev/null").unwrap(), [("A", "a\0b")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// The child may not have read its orders when its `Child` is dropped.
#[test]
fn children_that_are_left_at_once_run_all_the_same() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let launcher = launcher([]);
        for number in 0..20 {
            let path = directory.path().join(number.to_string());
            let start = || launcher.start([OsStr::new("mkdir"), path.as_os_str()]);
            let (child, output): (Child, _) = start().unwrap();
            drop((child, output));
        }
        let all = || fs::read_dir(directory.path()).unwrap().count() == 20;
        let made = async {
            while !all() {
                sleep(ms(1)).await;
            }
        };
        timeout(ms(20_000), made).await.unwrap();
    });
}

#[test]
fn many_at_once_each_end_with_their_own_status() {
    run(async {
        let waiters: Vec<_> = (0..40)
            .map(|number| {
                spawn(async move {
                    let launcher = launcher([]);
                    let script = format!("exit {number}");
                    let (mut child, _) = launcher.start(["/bin/sh", "-c", &script]).unwrap();
                    child.wait().await.unwrap().code()
                })
            })
            .collect();
        for (number, waiter) in waiters.into_iter().enumerate() {
            assert_eq!(waiter.await.unwrap(), Some(number as i32));
        }
    });
}

#[test]
fn a_launch_gives_a_program_an_environment_a_directory_and_three_streams() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let script = "cat; echo \"$0 $1\"; env | sort; pwd; echo to the log >&2";
        let mut launch = Launch::new("/bin/sh");
        launch.arg("-c").arg(script).arg("a").arg("b c").env("PATH", "/usr/bin:/bin").env("A", "b");
        launch.directory(directory.path());
        let mut child = launch.start().unwrap();
        let stdin = child.stdin.take().unwrap();
        stdin.write_all(b"input\n").await.unwrap();
        drop(stdin);
        let output = child.stdout.take().unwrap().read_to_end().await.unwrap();
        let errors = child.stderr.take().unwrap().read_to_end().await.unwrap();
        let output = String::from_utf8(output).unwrap();
        assert!(output.starts_with("input\na b c\nA=b\n"), "{output}");
        assert!(!output.contains("HOME="), "{output}");
        assert!(output.ends_with(&format!("{}\n", directory.path().display())), "{output}");
        assert_eq!(errors, b"to the log\n");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_launch_into_a_directory_that_is_not_there_is_told_by_the_child() {
    run(async {
        let mut launch = Launch::new("/bin/sh");
        let mut child = launch.directory("/no/such").start().unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(127));
        assert_eq!(child.load_error().unwrap().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_group_is_stopped_with_the_processes_that_do_not_heed_a_signal() {
    run(async {
        // The child heeds SIGTERM; its own child does not.
        let script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 100; done' & wait";
        let mut launch = Launch::new("/bin/sh");
        let mut child = launch.arg("-c").arg(script).env("PATH", "/usr/bin:/bin").start().unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut number = [0; 20];
        let read = stdout.read(&mut number).await.unwrap();
        assert!(read > 1, "it runs");
        assert_eq!(child.stop_group(ms(20_000)).await.unwrap().signal(), Some(libc::SIGTERM));
        // The pipe ends when no process of the group is left.
        assert_eq!(stdout.read_to_end().await.unwrap(), b"");
        // The group is gone, and its number is signalled no more.
        child.signal_group(Signal::TERM).unwrap();
    });
}
