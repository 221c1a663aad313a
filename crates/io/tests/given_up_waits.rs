//! Waits that a `select` gives up, over and over, and bare waits. They wake no other thread and use
//! hardly any CPU time. (That is the CPU time of the process, so the tests have a file of their
//! own.)

mod common;

use common::{listen, ms, run};
use selvedge_core::{Interest, spawn, spawn_local, wait};
use selvedge_io::net::UnixStream;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::sleep;
use selvedge_io::{EventLoop, calls, pipe};
use selvedge_scope::{Selected, select};
use std::cell::Cell;
use std::future::Future;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

fn cpu_time() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap().into()
}

fn epoll_controls() -> u64 {
    let (total, _) = calls::counted();
    total.kinds.iter().find(|(name, _)| *name == "epoll_ctl").map_or(0, |(_, tally)| tally.calls)
}

/// Runs `selecting`, which waits for one object beside a short sleep, on one of two workers. The
/// other worker has nothing to do. The main thread's own sleep must end, and the process must use
/// hardly any CPU time.
fn beside_a_sleep(what: &str, selecting: impl Future<Output = ()> + Send + 'static) {
    calls::count(true);
    let before = cpu_time();
    let main = async move {
        let selecting = spawn(selecting);
        sleep(ms(500)).await;
        drop(selecting);
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    let runner = std::thread::spawn(move || {
        let ended = selvedge_sched::WorkStealing::new(2).run(|_| EventLoop::new(), main);
        sender.send(ended.map_err(|error| error.to_string())).unwrap();
    });
    let ended = receiver.recv_timeout(ms(20_000));
    assert_eq!(ended, Ok(Ok(())), "{what}: the main thread's sleep never ends");
    runner.join().unwrap();
    let (busy, controls) = (cpu_time() - before, epoll_controls());
    assert!(busy < ms(250), "{what}: {busy:?} of CPU in half a second");
    assert!(controls < 20, "{what}: {controls} calls of epoll_ctl for some 50 waits");
}

/// Two threads wait for one descriptor by the bare call. A wait of one thread must not wake the
/// other.
fn two_bare_waits() {
    let wake_ups = run(async {
        let (writer, reader) = pipe::pipe().unwrap();
        let (reader, wake_ups) = (Rc::new(reader), Rc::new(Cell::new(0)));
        for _ in 0..2 {
            let (reader, wake_ups) = (reader.clone(), wake_ups.clone());
            drop(spawn_local(async move {
                loop {
                    wait(reader.as_fd(), Interest::READ).await;
                    wake_ups.set(wake_ups.get() + 1);
                    while reader.try_read(&mut [0; 10]).is_ok() {}
                }
            }));
        }
        sleep(ms(100)).await;
        let in_vain = wake_ups.get();
        for _ in 0..3 {
            writer.write_all(b"x").await.unwrap();
            sleep(ms(20)).await;
        }
        (in_vain, wake_ups.get() - in_vain)
    });
    assert_eq!(wake_ups.0, 0, "nothing has happened");
    // Each edge resumes both threads. One of them may be resumed once more by an edge that came too
    // late for its wait.
    assert!((3..=12).contains(&wake_ups.1), "{} wake-ups for three bytes", wake_ups.1);
}

// This is one test, because it counts the calls and the CPU time of the whole process.
#[test]
fn waits_that_are_given_up_wake_no_thread() {
    let listener = listen();
    beside_a_sleep("a listener", async move {
        while let Selected::First(()) = select((sleep(ms(10)), listener.accept())).await {}
        panic!("no client connects");
    });
    let (one, other) = UnixStream::pair().unwrap();
    beside_a_sleep("a socket", async move {
        let _other = other;
        while let Selected::First(()) = select((sleep(ms(10)), one.read(&mut [0; 10]))).await {}
        panic!("nothing is sent");
    });
    let (sender, receiver) = pipe::pipe().unwrap();
    beside_a_sleep("a pipe", async move {
        let _sender = sender;
        while let Selected::First(()) = select((sleep(ms(10)), receiver.read(&mut [0; 10]))).await {}
        panic!("nothing is written");
    });
    let mut subscription = signals(&[Signal::USR2]).unwrap();
    beside_a_sleep("a signal", async move {
        while let Selected::First(()) = select((sleep(ms(10)), subscription.next())).await {}
        panic!("no signal comes");
    });
    two_bare_waits();
}
