//! Programs that hang, die, cannot be started, or are too many; clients that go away.

use crate::scripts::{Scripts, ask, get, request, run, text_of};
use selvedge_core::{spawn_local, yield_now};
use selvedge_gateway::ProgramSlots;
use selvedge_handler::{Body, BodyError, Cause, Handler};
use selvedge_io::time::sleep;
use selvedge_scope::join;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Writes its process number into the file `number`, with that of a child that heeds no SIGTERM.
const HANG: &str = "sh -c 'trap \"\" TERM; echo $$ > child.tmp; mv child.tmp child; while :; do sleep 9; done' &\n\
    while ! test -e child; do sleep 0.01; done\necho $$ > number.tmp; mv number.tmp number; ";

/// The processes that a script has written down.
async fn numbers(directory: &Path) -> Vec<String> {
    loop {
        let read = |name: &str| fs::read_to_string(directory.join(name)).map(|text| text.trim().to_owned());
        if let (Ok(leader), Ok(child)) = (read("number"), read("child")) {
            return vec![leader, child];
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until none of the processes runs.
async fn are_gone(numbers: &[String]) {
    let runs = |number: &String| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim_start());
        !(state.is_empty() || state.starts_with('Z') || state.starts_with('X'))
    };
    while numbers.iter().any(runs) {
        sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_program_that_answers_too_late_is_ended_with_its_children() {
    let scripts = Scripts::new(&[("hang", &format!("{HANG} wait"))]);
    run(async move {
        let cgi = scripts.cgi().time_limit(Duration::from_millis(400));
        let answer = text_of(cgi.call(get("/cgi/hang")).await).await;
        assert!(answer.starts_with("504 "), "{answer}");
        are_gone(&numbers(scripts.path()).await).await;
        let logged = scripts.logged();
        assert!(logged[0].starts_with("/cgi/hang: no answer within the time limit"), "{logged:?}");
    });
}

#[test]
fn an_answer_that_is_not_complete_in_time_is_broken_off() {
    let scripts = Scripts::new(&[("slow", "printf 'Content-Type: a/b\\n\\nwarp'; exec sleep 100")]);
    let cgi = scripts.cgi().time_limit(Duration::from_millis(300));
    let answer = ask(cgi, get("/cgi/slow"));
    assert!(answer.contains("| broken: the body took too long"), "{answer}");
}

#[test]
fn a_client_that_goes_away_ends_the_program_with_its_children() {
    let scripts = Scripts::new(&[
        ("hang", &format!("{HANG} wait")),
        ("talk", &format!("printf 'Content-Type: a/b\\n\\n'; {HANG} while :; do echo warp; done")),
    ]);
    run(async move {
        let (cgi, slots) = (scripts.cgi(), ProgramSlots::new(1));
        let cgi = Rc::new(cgi.slots(slots.clone()));
        for name in ["hang", "talk"] {
            // The thread of the connection is dropped within the handler, or within the body.
            let asking = spawn_local({
                let cgi = cgi.clone();
                async move {
                    let mut body = cgi.call(get(&format!("/cgi/{name}"))).await.into_body();
                    loop {
                        body.next().await.unwrap().unwrap();
                    }
                }
            });
            let numbers = numbers(scripts.path()).await;
            asking.cancel();
            are_gone(&numbers).await;
            while slots.free() == 0 {
                sleep(Duration::from_millis(5)).await;
            }
            fs::remove_file(scripts.path().join("number")).unwrap();
            fs::remove_file(scripts.path().join("child")).unwrap();
        }
    });
}

#[test]
fn a_body_that_breaks_off_ends_the_program() {
    let scripts = Scripts::new(&[("read", "cat >/dev/null; printf 'Content-Type: a/b\\n\\nall of it'")]);
    let broken = Body::produce(async |mut out| {
        out.put("warp").await;
        Err(BodyError::new(Cause::Disconnected))
    });
    let sized = Sized(broken, 100);
    let answer = ask(scripts.cgi(), request("POST", "/cgi/read", &[], Body::new(sized)));
    assert!(answer.starts_with("400 "), "{answer}");
}

/// A body that says how long it is.
struct Sized(Body, u64);

impl http_body::Body for Sized {
    type Data = bytes::Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        std::pin::Pin::new(&mut self.0).poll_frame(cx)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.1)
    }
}

#[test]
fn a_program_that_dies_is_500_and_told() {
    let scripts = Scripts::new(&[("die", "kill -9 $$"), ("exit", "exit 3")]);
    assert!(ask(scripts.cgi(), get("/cgi/die")).starts_with("500 "));
    assert!(ask(scripts.cgi(), get("/cgi/exit")).starts_with("500 "));
    let logged = scripts.logged();
    assert!(logged[0].contains("signal: 9") && logged[1].contains("exit status: 3"), "{logged:?}");
}

#[test]
fn a_file_that_is_no_program() {
    let scripts = Scripts::new(&[("text", ""), ("garbage", "")]);
    fs::set_permissions(scripts.path().join("text"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(scripts.path().join("garbage"), b"\x7fnothing that the kernel knows").unwrap();
    assert!(ask(scripts.cgi(), get("/cgi/text")).starts_with("403 "));
    assert!(ask(scripts.cgi(), get("/cgi/garbage")).starts_with("500 "));
}

#[test]
fn so_many_at_once_and_so_many_wait() {
    let script =
        "echo >> started; while ! test -e go; do sleep 0.01; done; printf 'Content-Type: a/b\\n\\nok'";
    let scripts = Scripts::new(&[("wait", script)]);
    run(async move {
        let cgi =
            Rc::new(scripts.cgi().slots(ProgramSlots::new(2).queue(1).patience(Duration::from_secs(60))));
        let ask = || {
            let cgi = cgi.clone();
            spawn_local(async move { text_of(cgi.call(get("/cgi/wait")).await).await })
        };
        let started = || fs::read(scripts.path().join("started")).map_or(0, |text| text.len());
        let running = [ask(), ask()];
        while started() < 2 {
            sleep(Duration::from_millis(5)).await;
        }
        let waiting = ask();
        for _ in 0..100 {
            yield_now().await;
        }
        // There is room for one in the queue.
        let refused = ask().await.unwrap();
        assert!(refused.starts_with("503 ") && refused.contains("retry-after=1"), "{refused}");
        assert_eq!(started(), 2);
        fs::write(scripts.path().join("go"), "").unwrap();
        for asked in running.into_iter().chain([waiting]) {
            assert_eq!(asked.await.unwrap(), "200 content-type=a/b| ok");
        }
        assert_eq!(started(), 3);

        fs::remove_file(scripts.path().join("go")).unwrap();
        let impatient = ProgramSlots::new(1).patience(Duration::from_millis(50));
        let cgi = Rc::new(scripts.cgi().slots(impatient));
        let first = spawn_local({
            let cgi = cgi.clone();
            async move { text_of(cgi.call(get("/cgi/wait")).await).await }
        });
        while started() < 4 {
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(cgi.call(get("/cgi/wait")).await.status(), 503);
        fs::write(scripts.path().join("go"), "").unwrap();
        assert!(first.await.unwrap().starts_with("200 "));
    });
}

/// A daemon in a session of its own is not ended with the program, and keeps its output open.
#[test]
fn a_daemon_that_holds_the_output_does_not_hold_the_answer() {
    const DAEMON: &str = "setsid sh -c 'echo $$ > $0.tmp; mv $0.tmp $0.number; n=0\n\
        while ! test -e go && test $n -lt 400; do n=$((n+1)); sleep 0.05; done; echo > $0.over' ";
    let scripts = Scripts::new(&[
        ("head", &format!("{DAEMON} head &")),
        ("body", &format!("printf 'Content-Type: a/b\\n\\nwarp'; {DAEMON} body &\nexec sleep 100")),
    ]);
    run(async move {
        let mut limit = Duration::from_millis(300);
        let numbers = loop {
            let cgi = scripts.cgi().time_limit(limit);
            let ask = async |path: &str| text_of(cgi.call(get(path)).await).await;
            let (head, body) = join((ask("/cgi/head"), ask("/cgi/body"))).await;
            let file = |name: &str, end: &str| scripts.path().join(format!("{name}.{end}"));
            for name in ["head", "body"] {
                assert!(!file(name, "over").exists(), "the answer has waited for the daemon");
            }
            assert!(head.starts_with("504 "), "{head}");
            assert!(body.contains("| broken: the body took too long"), "{body}");
            let number = |name: &str| fs::read_to_string(file(name, "number"));
            if let (Ok(head), Ok(body)) = (number("head"), number("body")) {
                break [head, body].map(|number| number.trim().to_owned());
            }
            // On a busy machine, a daemon was ended before it had a session of its own.
            limit *= 4;
        };
        fs::write(scripts.path().join("go"), "").unwrap();
        are_gone(&numbers).await;
    });
}
