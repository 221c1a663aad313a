//! What threads wait for, in words, for each of the things that there are to wait for; and what the
//! kernel was called with for it.

use crate::common::{find, ms, turn};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use selvedge_core::{round_robin_over, sleep, spawn_local, yield_now};
use selvedge_io::fs::{Driver, File};
use selvedge_io::signal::{Signal, signals};
use selvedge_io::{EventLoop, blocking, net, process};
use selvedge_see::{Doing, counters, dump, named};
use selvedge_sync::{Fifo, Mutex, RwLock, wait_blocking};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::MutexGuard;
use std::sync::mpsc;
use std::time::Duration;

/// The process is observed as a whole, so the tests take turns.
fn see() -> MutexGuard<'static, ()> {
    let turn = turn();
    selvedge_see::on();
    turn
}

/// Between its submission and the next look at the event source an operation waits, and that can be
/// seen; unless an OS thread of the pool was very quick. Then the next attempt will show it.
async fn opening(driver: &'static str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    for attempt in 0..1000 {
        let path = file.path().to_owned();
        let opener = spawn_local(named("opener", async move { File::open(&path).await.unwrap() }));
        yield_now().await;
        let dump = dump();
        let thread = find(&dump, "opener").clone();
        drop(opener.await.unwrap());
        if thread.doing == Doing::Waiting {
            assert_eq!(thread.call, format!("waits to open {}", file.path().display()), "{driver}: {dump}");
            assert!(thread.since.unwrap() < ms(60_000), "{driver}: {dump}");
            return;
        }
        assert!(attempt < 999, "{driver}: {dump}");
    }
}

#[test]
fn a_disk_operation_says_what_and_where() {
    for (name, driver) in [("ring", Driver::Ring), ("pool", Driver::Pool)] {
        let _turn = see();
        round_robin_over(&mut EventLoop::with_driver(driver).unwrap(), opening(name)).unwrap();
    }
}

#[test]
fn a_transfer_says_which_part_of_which_file() {
    let _turn = see();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 100_000]).unwrap();
    let path = file.path().to_owned();
    let main = async move {
        let file = Rc::new(File::options().read(true).write(true).open(&path).await.unwrap());
        let shared = file.clone();
        let reader = spawn_local(named("reader", async move {
            let (read, _) = shared.read_at(vec![0; 4096], 8192).await;
            assert_eq!(read.unwrap(), 4096);
        }));
        let shared = file.clone();
        let syncer = spawn_local(named("syncer", async move { shared.sync_all().await.unwrap() }));
        yield_now().await;
        let dump = dump();
        let at = "waits to read 4096 bytes at 8192 of descriptor ";
        let call = &find(&dump, "reader").call;
        assert!(call.starts_with(at) && call.ends_with(&format!(" ({})", path.display())), "{dump}");
        let call = &find(&dump, "syncer").call;
        assert!(call.starts_with("waits to fsync descriptor "), "{dump}");
        reader.await.unwrap();
        syncer.await.unwrap();
    };
    round_robin_over(&mut EventLoop::with_driver(Driver::Ring).unwrap(), main).unwrap();
}

fn wait_for(gate: mpsc::Receiver<()>) {
    gate.recv().unwrap();
}

#[test]
fn calls_on_the_blocking_pool_children_and_signals_say_what_they_are() {
    let _turn = see();
    let main = async {
        let (open, gate) = mpsc::channel();
        let call = blocking(move || wait_for(gate));
        let blocked = spawn_local(named("blocked", async move { call.await.unwrap() }));
        let mut sleeper = process::Command::new("sleep").arg("1000").spawn().await.unwrap();
        let id = sleeper.id();
        let mut usr = signals(&[Signal::USR2, Signal::WINCH]).unwrap();
        drop(spawn_local(named("signals", async move { drop(usr.next().await) })));
        let waiter = spawn_local(named("parent", async move {
            let told = sleeper.wait().await;
            told.unwrap()
        }));
        sleep(ms(20)).await;
        let dump = dump();
        let call = &find(&dump, "blocked").call;
        assert!(call.starts_with("waits for the blocking pool to run suite::waits::calls_on_"), "{dump}");
        assert_eq!(find(&dump, "parent").call, format!("waits for process {id} to end"), "{dump}");
        assert_eq!(find(&dump, "signals").call, "waits to get SIGUSR2 or SIGWINCH", "{dump}");
        let pool = counters().pool;
        assert!(pool.threads - pool.idle >= 1, "{pool:?}");
        open.send(()).unwrap();
        blocked.await.unwrap();
        let pid = rustix::process::Pid::from_raw(id as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert!(!waiter.await.unwrap().success());
        // Said once, it is not said of what the thread does next.
        let looked = loop {
            let looker = async {
                net::resolve("localhost:80").await.unwrap();
                std::future::pending::<()>().await;
            };
            let looked = spawn_local(named("looker", looker));
            yield_now().await;
            let dump = selvedge_see::dump();
            match &*find(&dump, "looker").call {
                "waits to look up localhost:80" => break looked,
                // An OS thread of the pool was very quick.
                "was woken" => looked.cancel(),
                other => panic!("{other}: {dump}"),
            }
            drop(looked.await);
        };
        while find(&selvedge_see::dump(), "looker").call != "waits behind a waker" {
            sleep(ms(1)).await;
        }
        drop(looked);
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

/// Two threads in a circle, in a program that goes on otherwise; and a thread that might go on by
/// another way, which is in no circle.
#[test]
fn a_dump_tells_circles_of_threads_while_others_run() {
    let _turn = see();
    let main = async {
        let mutexes = [Rc::new(Mutex::new_local(())), Rc::new(Mutex::new_local(()))];
        for (name, i) in [("left", 0), ("right", 1)] {
            let (one, other) = (mutexes[i].clone(), mutexes[1 - i].clone());
            drop(spawn_local(named(name, async move {
                let _guard = one.lock().await;
                yield_now().await;
                drop(other.lock().await);
            })));
        }
        let mutex = mutexes[0].clone();
        drop(spawn_local(named("either", async move {
            either(mutex.lock(), sleep(ms(100_000))).await;
        })));
        sleep(ms(5)).await;
        let dump = dump();
        let [left, right] = ["left", "right"].map(|name| find(&dump, name).id);
        assert_eq!(dump.cycles, [vec![left.min(right), left.max(right)]], "{dump}");
        let link =
            format!("thread {left} \"left\" waits for thread {right} \"right\", which holds the mutex");
        assert!(dump.to_string().contains(&link) && dump.to_string().contains("\ndeadlock: "), "{dump}");
        let either = find(&dump, "either");
        assert_eq!(either.waits_for, None, "it may go on by itself: {dump}");
        let json: serde_json::Value = serde_json::from_str(&dump.to_json()).unwrap();
        assert_eq!(json["cycles"][0][0], left.min(right));
        assert!(
            json["threads"].as_array().unwrap().iter().any(|thread| thread["tie"] == "which holds the mutex")
        );
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

/// What a thread has said of a wait is said of that wait alone.
#[test]
fn a_wait_that_is_taken_back_ties_no_thread_and_neither_does_one_of_several_behind_a_waker() {
    let _turn = see();
    let main = async {
        let (mutex, never) = (Rc::new(Mutex::new_local(())), Rc::new(Fifo::<u8, _>::new_local()));
        let guard = mutex.lock().await;
        let (theirs, empty) = (mutex.clone(), never.clone());
        drop(spawn_local(named("elsewhere", async move {
            either(theirs.lock(), std::future::ready(())).await;
            empty.take().await;
        })));
        drop(spawn_local(named("joiner", async move {
            either(spawn_local(std::future::pending::<()>()), std::future::ready(())).await;
            never.take().await;
        })));
        let theirs = mutex.clone();
        drop(spawn_local(named("either", async move {
            let waits = FuturesUnordered::<Pin<Box<dyn Future<Output = ()>>>>::new();
            waits.push(Box::pin(async move { drop(theirs.lock().await) }));
            waits.push(Box::pin(std::future::pending()));
            waits.collect::<()>().await;
        })));
        sleep(ms(5)).await;
        let dump = dump();
        for name in ["elsewhere", "joiner", "either"] {
            assert_eq!(find(&dump, name).waits_for, None, "{name}: {dump}");
        }
        drop(guard);
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

#[test]
fn a_past_reader_is_not_named_when_an_unknown_thread_writes() {
    let _turn = see();
    let lock: &'static RwLock<()> = Box::leak(Box::new(RwLock::new(())));
    let main = async {
        let passed_on = spawn_local(async { lock.read().await }).await.unwrap();
        drop(passed_on);
        std::thread::spawn(|| std::mem::forget(wait_blocking(lock.write()))).join().unwrap();
        drop(spawn_local(named("late", async { drop(lock.read().await) })));
        sleep(ms(5)).await;
        let dump = dump();
        assert_eq!(find(&dump, "late").waits_for, None, "{dump}");
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

/// Waits for either.
async fn either(one: impl Future, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|cx| match one.as_mut().poll(cx) {
        std::task::Poll::Ready(_) => std::task::Poll::Ready(()),
        std::task::Poll::Pending => other.as_mut().poll(cx),
    })
    .await;
}

#[test]
fn system_calls_are_counted_by_kind_and_queues_by_length() {
    let _turn = see();
    let main = async {
        let (one, other) = net::UnixStream::pair().unwrap();
        for _ in 0..10 {
            one.write_all(b"x").await.unwrap();
            other.read(&mut [0]).await.unwrap();
        }
        // They wait for a descriptor, asleep, and ready, when a turn looks at them.
        drop(spawn_local(async move { drop(other.read(&mut [0]).await) }));
        for _ in 0..3 {
            drop(spawn_local(sleep(ms(100_000))));
        }
        for _ in 0..5 {
            drop(spawn_local(async {
                loop {
                    yield_now().await;
                }
            }));
        }
        // The lengths that this CPU tells of itself are as of some turn within the last 100 ms.
        for _ in 0..4 {
            sleep(ms(60)).await;
        }
        let counters = counters();
        let text = counters.to_string();
        let made =
            |name| counters.calls.kinds.iter().find(|(kind, _)| *kind == name).map_or(0, |(_, t)| t.calls);
        assert_eq!(made("send"), 10, "{text}");
        assert!((10..=12).contains(&made("recv")), "{text}");
        assert_eq!(made("epoll_ctl"), 2, "the socket, and what ends waits: {text}");
        assert!(made("epoll_wait") >= 1, "{text}");
        let time = counters.calls.total().time;
        assert!(time > Duration::from_micros(1) && time < Duration::from_secs(60), "{text}");
        let [cpu] = &counters.cpus[..] else { panic!("{text}") };
        let length = |name: &str| cpu.queues.iter().find(|(queue, _)| *queue == name).map(|(_, n)| *n);
        assert!(matches!(length("woken"), Some(5..=7)), "{text}");
        assert_eq!(length("waiting_for_descriptors"), Some(1), "{text}");
        assert!(matches!(length("sleepers"), Some(3..=4)), "{text}");
        assert!(length("descriptors").unwrap() >= 1 && length("disk_queued") == Some(0), "{text}");
        let here = counters.os_threads.iter().map(|(_, calls)| calls.total().calls).sum::<u64>();
        assert!(here <= counters.calls.total().calls, "{text}");
        assert!(text.contains("\n  send ") && text.contains("\n  in its queues: woken "), "{text}");

        let json: serde_json::Value = serde_json::from_str(&counters.to_json()).unwrap();
        assert_eq!(json["calls"]["send"]["calls"], 10);
        assert_eq!(json["cpus"][0]["queues"]["waiting_for_descriptors"], 1);
        let prometheus = counters.to_prometheus();
        assert!(prometheus.contains("\nselvedge_system_calls_total{call=\"send\"} 10\n"), "{prometheus}");
        assert!(prometheus.contains("queue=\"waiting_for_descriptors\"} 1\n"), "{prometheus}");
        for line in prometheus.lines().filter(|line| !line.starts_with("# ")) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("selvedge_") && value.parse::<f64>().is_ok(), "{line}");
        }
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

#[test]
fn of_several_workers_each_tells_its_queues_and_the_reader_waits_briefly() {
    let _turn = see();
    let main = async {
        let waiters: Vec<_> = (0..10).map(|_| selvedge_core::spawn(sleep(ms(1500)))).collect();
        sleep(ms(50)).await;
        let looked = std::thread::spawn(|| {
            let begun = std::time::Instant::now();
            (counters(), begun.elapsed())
        });
        sleep(ms(200)).await;
        let (counters, took) = looked.join().unwrap();
        assert!(took < ms(1200), "{took:?}");
        assert_eq!(counters.cpus.len(), 2, "{counters}");
        let sum = |name: &str| {
            let queues = counters.cpus.iter().flat_map(|cpu| &cpu.queues);
            queues.filter(|(queue, _)| *queue == name).map(|(_, n)| n).sum::<usize>()
        };
        assert_eq!((sum("sleepers"), sum("injector"), sum("ready")), (11, 0, 0), "{counters}");
        for waiter in waiters {
            waiter.await.unwrap();
        }
    };
    selvedge_sched::work_stealing(2, |_| EventLoop::new(), main).unwrap();
}
