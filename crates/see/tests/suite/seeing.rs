//! Programs with known threads, as they are seen. The process is observed as a whole, so the tests
//! take turns.

use crate::common::{find, ms, turn};
use selvedge_core::{
    Syscall, call, fork, nbio, park, round_robin, round_robin_over, sleep, spawn_local, yield_now,
};
use selvedge_io::EventLoop;
use selvedge_io::net::{TcpListener, TcpStream, UnixStream};
use selvedge_see::{Doing, ThreadState, counters, dump, named, timeline, timeline_json, watchdog};
use selvedge_sync::{MVar, Mutex};
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// Seeing, from the beginning, for as long as it lives.
struct Seeing(#[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

fn see() -> Seeing {
    let seeing = not_yet();
    selvedge_see::on();
    seeing
}

/// It is the test's turn, but nothing is seen before it says so.
fn not_yet() -> Seeing {
    Seeing(turn())
}

impl Drop for Seeing {
    fn drop(&mut self) {
        timeline(0);
        selvedge_see::off();
    }
}

#[test]
fn a_dump_of_a_program_that_does_a_bit_of_everything() {
    let _seeing = see();
    let main = async {
        let (here, _there) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr();
        let (empty, mutex) = (Rc::new(MVar::<u8>::empty()), Rc::new(Mutex::new_local(())));
        let mut threads = Vec::new();
        let e = empty.clone();
        let take_line = line!() + 1;
        threads.push(spawn_local(named("taker", async move { assert_eq!(e.take().await, 0) })));
        let m = mutex.clone();
        threads.push(spawn_local(named("holder", async move {
            let _guard = m.lock().await;
            std::future::pending::<()>().await;
        })));
        let m = mutex.clone();
        let lock_line = line!() + 1;
        threads.push(spawn_local(named("second", async move { drop(m.lock().await) })));
        threads.push(spawn_local(named("reader", async move { drop(here.read(&mut [0]).await) })));
        threads.push(spawn_local(named("server", async move { drop(listener.accept().await) })));
        threads.push(spawn_local(named("sleeper", sleep(Duration::from_secs(1000)))));
        threads.push(spawn_local(named("parked", park(drop))));
        threads.push(spawn_local(named("yielder", async {
            loop {
                yield_now().await;
            }
        })));
        let joined = spawn_local(std::future::pending::<()>());
        let joined = spawn_local(named("joiner", async move { joined.await.unwrap() }));
        sleep(ms(20)).await;
        drop(spawn_local(named("unborn", async {})));
        let dump = dump();
        let text = dump.to_string();

        for name in ["taker", "holder", "second", "reader", "server", "sleeper", "parked", "joiner"] {
            let thread = find(&dump, name);
            assert_eq!(thread.doing, Doing::Waiting, "{text}");
            assert!(thread.since.unwrap() >= ms(10) && thread.since.unwrap() < ms(60_000), "{text}");
        }
        let here = |line: u32| format!("waits at crates/see/tests/suite/seeing.rs:{line}:");
        assert!(find(&dump, "taker").call.starts_with(&here(take_line)), "{text}");
        let second = find(&dump, "second");
        assert!(second.call.starts_with(&here(lock_line)), "{text}");
        assert_eq!(second.waits_for, Some(find(&dump, "holder").id), "{text}");
        assert!(find(&dump, "reader").call.contains("waits to read descriptor "), "{text}");
        assert!(find(&dump, "reader").call.ends_with(" (unix)"), "{text}");
        assert!(find(&dump, "server").call.ends_with(&format!("(tcp {address})")), "{text}");
        let sleeper = &find(&dump, "sleeper").call;
        assert!(sleeper.starts_with("sleeps, ") && sleeper.ends_with("s to go"), "{text}");
        assert_eq!(find(&dump, "parked").call, "waits behind a waker");
        let joiner = find(&dump, "joiner");
        assert_eq!(joiner.call, "waits to join another thread");
        let other = dump.threads.iter().find(|thread| Some(thread.id) == joiner.waits_for).unwrap();
        assert!(other.name.contains("Pending"), "{text}");
        assert_eq!(find(&dump, "yielder").doing, Doing::Ready);
        assert!(find(&dump, "yielder").steps > 1);
        // The caller runs, and is first in the list.
        let me = &dump.threads[0];
        assert_eq!((me.doing, Some(me.id)), (Doing::Running, selvedge_core::this_thread()));
        assert_eq!(
            dump.cpus.iter().find(|cpu| cpu.running == Some(me.id)).map(|cpu| cpu.asleep),
            Some(false)
        );

        let json: Value = serde_json::from_str(&dump.to_json()).unwrap();
        let threads_json = json["threads"].as_array().unwrap();
        assert_eq!(threads_json.len(), dump.threads.len());
        let second = threads_json.iter().find(|thread| thread["called"] == "second").unwrap();
        assert_eq!(second["doing"], "waiting");
        assert_eq!(second["waits_for"], find(&dump, "holder").id);
        drop((threads, joined, empty, mutex));
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    assert!(dump().threads.is_empty(), "they are gone: {}", dump());
}

/// From outside, CPUs that wait for events tell their threads, also threads that have not run while
/// they were observed.
#[test]
fn a_dump_from_another_os_thread_also_of_what_was_there_before() {
    let _seeing = not_yet();
    static READY: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicBool = AtomicBool::new(false);
    let program = std::thread::spawn(|| {
        round_robin_over(&mut EventLoop::new().unwrap(), async {
            for _ in 0..10 {
                drop(spawn_local(async { sleep(Duration::from_secs(1000)).await }));
            }
            sleep(ms(5)).await;
            READY.store(1, Ordering::Release);
            while !DONE.load(Ordering::Acquire) {
                sleep(ms(50)).await;
            }
        })
        .unwrap();
    });
    while READY.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    selvedge_see::on();
    // Until the sleeping CPU has been told of it.
    let begun = Instant::now();
    let dump = loop {
        let dump = dump();
        if dump.threads.len() == 11 || begun.elapsed() > ms(5000) {
            break dump;
        }
    };
    DONE.store(true, Ordering::Release);
    program.join().unwrap();
    let waiting =
        |t: &&ThreadState| t.call == "waits since before it was observed" || t.call == "has not run yet";
    assert!(dump.threads.iter().filter(waiting).count() >= 10, "{dump}");
}

struct Ask;
impl Syscall for Ask {
    type Reply = ();
}

#[test]
fn the_counters_of_a_program_that_runs_the_same_way_each_time() {
    let _seeing = see();
    round_robin(async {
        for _ in 0..10 {
            yield_now().await;
        }
        fork(async { yield_now().await }).await;
        nbio(|| ()).await;
        let parcel = Rc::new(MVar::<u8, selvedge_core::Local>::empty_local());
        let there = parcel.clone();
        let taker = spawn_local(async move {
            for _ in 0..3 {
                there.take().await;
            }
        });
        for i in 0..3 {
            yield_now().await;
            parcel.put(i).await;
        }
        taker.await.unwrap();
    })
    .unwrap();
    let total = counters().total;
    assert_eq!(total.yields, 10 + 1 + 3, "{total}");
    assert_eq!((total.forks, total.nbios, total.returns, total.panics), (1, 1, 3, 0), "{total}");
    assert_eq!(total.blocks, 3, "the taker waits for each parcel: {total}");
    assert_eq!(total.joins, 1, "{total}");
    // The taker's three, and the joiner.
    assert_eq!(total.wake_ups, 4, "{total}");
    let ends = total.yields + total.forks + total.nbios + total.blocks + total.joins + total.returns;
    assert_eq!(total.steps, ends, "{total}");
    assert_eq!(
        (total.sleeps, total.waits_to_read, total.waits_to_write, total.calls, total.parks),
        (0, 0, 0, 0, 0)
    );

    let json: Value = serde_json::from_str(&counters().to_json()).unwrap();
    assert_eq!(json["total"]["steps"], total.steps);
    assert_eq!(json["ready"], 0);
    assert!(counters().to_string().contains("yields 14"), "{}", counters());
}

#[test]
fn sleep_sockets_and_the_time_in_the_kernel() {
    let _seeing = see();
    let begun = Instant::now();
    round_robin_over(&mut EventLoop::new().unwrap(), async {
        let (one, other) = UnixStream::pair().unwrap();
        let echo = spawn_local(async move {
            let mut buffer = [0; 8];
            while let Ok(n @ 1..) = other.read(&mut buffer).await {
                other.write_all(&buffer[..n]).await.unwrap();
            }
        });
        for _ in 0..5 {
            sleep(ms(10)).await;
            one.write_all(b"x").await.unwrap();
            one.read(&mut [0]).await.unwrap();
        }
        assert_eq!(counters().waiting, 1, "the echo");
        assert_eq!(counters().ready, 1, "main itself");
        drop(one);
        echo.await.unwrap();
    })
    .unwrap();
    let counters = counters();
    let total = counters.total;
    assert_eq!(total.sleeps, 5, "{total}");
    assert!(total.waits_to_read >= 10 && total.waits_to_write == 0, "{total}");
    let idle = Duration::from_nanos(total.idle_ns);
    assert!(total.idles >= 5 && idle >= ms(40) && idle <= begun.elapsed(), "{total}");
    assert!(counters.cpus.is_empty(), "the CPU is gone");
}

/// The events of a timeline, after what any reader of it relies on has been checked.
fn checked_events(timeline: &str) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_str(timeline).unwrap();
    let mut last_begin = 0.0;
    let mut ends: HashMap<u64, f64> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        assert_eq!(event["ph"], "X");
        let (ts, dur) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        assert!(ts >= last_begin && dur >= 0.0, "in order of time: {event}");
        last_begin = ts;
        let end = ends.entry(event["tid"].as_u64().unwrap()).or_default();
        // Nanoseconds in floating point.
        assert!(ts >= *end - 0.002, "a CPU does one thing at a time: {event} begins before {end}");
        *end = ts + dur;
        assert_eq!(event["pid"], std::process::id());
    }
    events
}

#[test]
fn a_timeline_in_chromes_format() {
    let _seeing = see();
    timeline(10_000);
    round_robin_over(&mut EventLoop::new().unwrap(), async {
        let busy = spawn_local(named("busy", async {
            for _ in 0..3 {
                std::thread::sleep(ms(5));
                yield_now().await;
            }
        }));
        busy.await.unwrap();
        sleep(ms(20)).await;
        drop(spawn_local(async { panic!("it is meant to") }));
        yield_now().await;
    })
    .unwrap();
    let events = checked_events(&timeline_json());
    let called = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let busy = called("busy");
    let ends: Vec<_> = busy.iter().map(|event| event["args"]["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["yield", "yield", "yield", "return"]);
    for event in &busy[..3] {
        let us = event["dur"].as_f64().unwrap();
        assert!((4_900.0..1_000_000.0).contains(&us), "{event}");
    }
    let idle: f64 = called("idle").iter().map(|event| event["dur"].as_f64().unwrap()).sum();
    assert!((18_000.0..1_000_000.0).contains(&idle), "{idle} µs");
    assert!(events.iter().any(|event| event["args"]["end"] == "sleep"));
    assert!(events.iter().any(|event| event["ph"] == "M" && event["args"]["name"].is_string()));
}

#[test]
fn a_timeline_keeps_the_last_of_it() {
    let _seeing = see();
    timeline(100);
    round_robin(async {
        for _ in 0..10_000 {
            yield_now().await;
        }
    })
    .unwrap();
    let events = checked_events(&timeline_json());
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 100);
    assert_eq!(events.last().unwrap()["args"]["end"], "return");
    timeline(0);
    assert_eq!(timeline_json(), "[]");
    let directory = tempfile::tempdir().unwrap();
    let error = selvedge_see::write_timeline(directory.path()).unwrap_err().to_string();
    assert!(error.contains(directory.path().to_str().unwrap()), "{error}");
}

#[test]
fn the_watchdog_names_the_thread_that_holds_up_a_cpu() {
    let _seeing = see();
    let (to, reports) = std::sync::mpsc::channel();
    watchdog(ms(50), move |long| drop(to.send(long.clone())));
    let culprit = std::thread::spawn(|| {
        round_robin(async {
            // Busy, and in good order: it lets others run.
            let begun = Instant::now();
            while begun.elapsed() < ms(100) {
                yield_now().await;
            }
            let hog = spawn_local(named("hog", async {
                std::thread::sleep(ms(500));
                yield_now().await;
                selvedge_core::this_thread().unwrap()
            }));
            hog.await.unwrap()
        })
        .unwrap()
    });
    let culprit = culprit.join().unwrap();
    std::thread::sleep(ms(50));
    // On a machine that does much else, any step may have lasted long.
    let of_hog: Vec<_> = reports.try_iter().filter(|report| report.thread == culprit).collect();
    let [report] = &of_hog[..] else { panic!("once is enough: {of_hog:?}") };
    assert_eq!(report.called.as_deref(), Some("hog"));
    assert!(report.lasts >= ms(50) && report.lasts <= ms(500), "{report}");
    assert!(report.to_string().contains("\"hog\"") && report.name.contains("the_watchdog_names"), "{report}");
}

#[test]
fn the_report_of_the_watchdog_may_set_another_watchdog() {
    let _seeing = see();
    let (to, reports) = std::sync::mpsc::channel();
    watchdog(ms(20), move |_| {
        let to = to.clone();
        watchdog(ms(20), move |long| drop(to.send(long.clone())));
    });
    let has_come = Arc::new(AtomicBool::new(false));
    let is_over = has_come.clone();
    let hog = std::thread::spawn(|| {
        round_robin(async move {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(ms(100));
                yield_now().await;
            }
        })
    });
    let report = reports.recv_timeout(ms(10_000));
    has_come.store(true, Ordering::Relaxed);
    hog.join().unwrap().unwrap();
    assert!(report.is_ok(), "the helper waits for itself");
}

#[test]
fn looking_on_while_workers_steal() {
    let _seeing = see();
    timeline(1000);
    let (done, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let looker = std::thread::spawn({
        let (done, seen) = (done.clone(), seen.clone());
        move || {
            while !done.load(Ordering::Acquire) {
                let dump = dump();
                if dump.threads.len() > 100 {
                    seen.store(true, Ordering::Release);
                }
                let _ = (dump.to_string(), dump.to_json(), counters().to_string());
                checked_events(&timeline_json());
            }
        }
    });
    let main = async move {
        let mutex = Arc::new(Mutex::new(0));
        let threads = (0..200).map(|i| {
            let (mutex, seen) = (mutex.clone(), seen.clone());
            selvedge_core::spawn(named(format!("worker {i}"), async move {
                // However late the looker gets a CPU, the threads are there.
                while !seen.load(Ordering::Acquire) {
                    yield_now().await;
                }
                for j in 0..50u32 {
                    *mutex.lock().await += 1;
                    if j % 10 == 0 {
                        sleep(ms(1)).await;
                    }
                    yield_now().await;
                }
            }))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.await.unwrap();
        }
        *mutex.lock().await
    };
    let sum = selvedge_sched::work_stealing(2, |_| EventLoop::new(), main).unwrap();
    assert_eq!(sum, 200 * 50);
    done.store(true, Ordering::Release);
    looker.join().unwrap();
    let total = counters().total;
    assert_eq!(total.returns, 201, "{total}");
    assert_eq!(total.sleeps, 200 * 5, "{total}");
    assert!(total.yields >= 200 * 50 && total.steals <= total.stolen, "{total}");
}

#[test]
fn a_call_of_the_programs_own() {
    let _seeing = see();
    let mut cpu = selvedge_core::Cpu::new().unwrap();
    let thread = cpu.thread(named("asker", async { call(Ask).await })).unwrap();
    let node = thread.step(&mut cpu);
    let dump = dump();
    assert!(find(&dump, "asker").call.starts_with("waits for the answer to suite::seeing::Ask"), "{dump}");
    drop(node);
    assert_eq!(selvedge_see::dump().threads.len(), 0);
}

#[test]
fn a_connection_is_told_by_its_addresses() {
    let _seeing = see();
    round_robin_over(&mut EventLoop::new().unwrap(), async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let there = listener.local_addr();
        let client = TcpStream::connect(there).await.unwrap();
        let here = client.local_addr().unwrap();
        client.set_read_deadline(Some(selvedge_core::Time::now() + Duration::from_secs(100)));
        drop(spawn_local(named("client", async move { drop(client.read(&mut [0]).await) })));
        sleep(ms(5)).await;
        let call = find(&dump(), "client").call.clone();
        assert!(call.contains(&format!("(tcp {here} to {there})")) && call.ends_with("s to go"), "{call}");
        drop(listener);
    })
    .unwrap();
}

/// It is the CPUs that tell, so that every scheduler is seen alike.
#[test]
fn under_every_scheduler() {
    async fn program() -> u32 {
        let threads: Vec<_> = (0..10).map(|i| spawn_local(named("adder", async move { i + 1 }))).collect();
        let mut sum = 0;
        for thread in threads {
            yield_now().await;
            sum += thread.await.unwrap();
        }
        sum
    }
    fn check(scheduler: &str, sum: u32) {
        let total = counters().total;
        assert_eq!((sum, total.returns, total.yields), (55, 11, 10), "{scheduler}: {total}");
        selvedge_see::off();
        selvedge_see::on();
    }
    use selvedge_core::NoEvents;
    let _seeing = see();
    check("round_robin", round_robin(program()).unwrap());
    check("priority", selvedge_sched::priority(&mut NoEvents::new(), program()).unwrap());
    let sums = selvedge_sched::per_core(1, |_| Ok(NoEvents::new()), |_| program()).unwrap();
    check("per_core", sums[0]);
    let simulated = selvedge_sim::simulated(7, &mut NoEvents::new(), program());
    check("simulated", simulated.unwrap());
}
