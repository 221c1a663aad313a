//! Deadlines of reads and writes, sleeping, and giving up: a deadline never fires early, and always
//! fires.

use crate::common::{ms, run, tcp_pair};
use selvedge_core::{Time, spawn, spawn_local};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::{Missed, interval, interval_at, sleep, sleep_until, timeout, timeout_at};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Runs a future and returns its output and the time that it took.
async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let start = Instant::now();
    let output = future.await;
    (output, start.elapsed())
}

#[test]
fn a_read_gives_up_at_its_deadline_and_works_again_afterwards() {
    run(async {
        let (client, server) = tcp_pair().await;
        for _ in 0..3 {
            server.set_read_deadline(Some(Time::now() + ms(15)));
            let (read, took) = timed(server.read(&mut [0; 10])).await;
            assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
            assert!(took >= ms(15) && took < ms(1000), "{took:?}");
        }
        server.set_read_deadline(Some(Time::now() + ms(10_000)));
        client.write_all(b"late").await.unwrap();
        assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 4);
        server.set_read_deadline(None);
        let reader = spawn(async move { server.read(&mut [0; 10]).await.unwrap() });
        sleep(ms(5)).await;
        client.write_all(b"later").await.unwrap();
        assert_eq!(reader.await.unwrap(), 5);
    });
}

/// The timer is set once and fires too early again and again, as on a connection that is kept
/// alive.
#[test]
fn a_deadline_that_moves_on_fires_at_its_last_place() {
    /// Long enough for a machine with much other work.
    const DEADLINE: Duration = ms(600);
    run(async {
        let (client, server) = tcp_pair().await;
        let reader = spawn(async move {
            let start = Instant::now();
            for _ in 0..10 {
                server.set_read_deadline(Some(Time::now() + DEADLINE));
                assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 1);
            }
            let last = Instant::now();
            server.set_read_deadline(Some(Time::now() + DEADLINE));
            assert_eq!(server.read(&mut [0; 10]).await.unwrap_err().kind(), ErrorKind::TimedOut);
            (last - start, last.elapsed())
        });
        for _ in 0..10 {
            sleep(DEADLINE / 6).await;
            client.write_all(b"x").await.unwrap();
        }
        let (active, idle) = reader.await.unwrap();
        assert!(active >= DEADLINE, "{active:?}");
        assert!(idle >= DEADLINE && idle < 10 * DEADLINE, "{idle:?}");
    });
}

/// A deadline that is moved forward fires at its new time.
#[test]
fn a_deadline_that_is_brought_forward_fires_early() {
    run(async {
        let (client, server) = tcp_pair().await;
        server.set_read_deadline(Some(Time::now() + ms(50_000)));
        let write = spawn(async move {
            sleep(ms(5)).await;
            client.write_all(b"x").await.unwrap();
            client
        });
        server.read(&mut [0]).await.unwrap();
        let _client = write.await.unwrap();
        server.set_read_deadline(Some(Time::now() + ms(10)));
        let (read, took) = timed(server.read(&mut [0])).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(took >= ms(10) && took < ms(1000), "{took:?}");
    });
}

#[test]
fn a_write_gives_up_at_its_deadline_while_a_read_waits_on() {
    run(async {
        let (client, server) = tcp_pair().await;
        let server = std::rc::Rc::new(server);
        let reader = {
            let server = server.clone();
            spawn_local(async move { server.read(&mut [0; 10]).await.unwrap() })
        };
        server.set_write_deadline(Some(Time::now() + ms(20)));
        let (written, took) = timed(server.write_all(&vec![0; 30_000_000])).await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(took >= ms(20) && took < ms(2000), "{took:?}");
        client.write_all(b"still there").await.unwrap();
        assert_eq!(reader.await.unwrap(), 10);
    });
}

#[test]
fn a_deadline_in_the_past_fails_at_once() {
    run(async {
        let (_client, server) = tcp_pair().await;
        let past = Time::now();
        sleep(ms(2)).await;
        server.set_read_deadline(Some(past));
        let (read, took) = timed(server.read(&mut [0; 10])).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(took < ms(500), "{took:?}");
    });
}

#[test]
fn connecting_gives_up_at_its_deadline() {
    run(async {
        // A listener with a full backlog does not answer: the handshake hangs.
        let listener = TcpListener::bind(crate::common::localhost(0)).unwrap();
        let full =
            selvedge_io::net::ListenOptions::new().backlog(0).bind(crate::common::localhost(0)).unwrap();
        let address = full.local_addr();
        drop(listener);
        let mut held = Vec::new();
        let error = loop {
            match TcpStream::connect_before(address, Time::now() + ms(50)).await {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
            assert!(held.len() < 100);
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().starts_with(&format!("connect to {address}: ")), "{error}");
    });
}

#[test]
fn sleepers_wake_in_order_and_never_early() {
    run(async {
        let start = Time::now();
        let sleepers: Vec<_> = (0..500u64)
            .map(|i| {
                spawn(async move {
                    let until = start + Duration::from_micros(i * 7919 % 40_000);
                    sleep_until(until).await;
                    let now = Time::now();
                    assert!(now >= until, "{now:?} is before {until:?}");
                    now.since(until)
                })
            })
            .collect();
        for sleeper in sleepers {
            assert!(sleeper.await.unwrap() < ms(1000));
        }
        assert!(Time::now() >= start + ms(39));
    });
}

#[test]
fn a_timeout_cancels_and_lets_through() {
    run(async {
        struct Cancelled(std::rc::Rc<std::cell::Cell<bool>>);
        impl Drop for Cancelled {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let cancelled = std::rc::Rc::new(std::cell::Cell::new(false));
        let guard = Cancelled(cancelled.clone());
        let (result, took) = timed(timeout(ms(10), async move {
            let _guard = guard;
            sleep(ms(60_000)).await;
        }))
        .await;
        assert!(result.is_err() && cancelled.get());
        assert!(took >= ms(10) && took < ms(1000), "{took:?}");
        assert_eq!(timeout(ms(10_000), async { 7 }).await, Ok(7));
        let (result, took) = timed(timeout(ms(10_000), sleep(ms(5)))).await;
        assert!(result.is_ok() && took < ms(5000), "{took:?}");
    });
}

#[test]
fn a_beat_that_was_missed_is_left_out() {
    run(async {
        let mut interval = interval(ms(10));
        let first = interval.tick().await;
        sleep(ms(35)).await;
        let second = interval.tick().await;
        let third = interval.tick().await;
        assert!(second.since(first) >= ms(30), "{:?}", second.since(first));
        assert_eq!(second.since(first).as_millis() % 10, 0, "in step");
        assert_eq!(third.since(second), ms(10));
    });
}

#[test]
fn beats_that_were_missed_are_made_up_for_or_delay_the_others() {
    run(async {
        let start = Time::now();
        let mut burst = interval_at(start + ms(10), ms(10)).missed(Missed::Burst);
        let mut delay = interval_at(start + ms(10), ms(10)).missed(Missed::Delay);
        sleep_until(start + ms(45)).await;
        for beat in 1..=4 {
            assert_eq!(burst.tick().await, start + ms(10 * beat));
        }
        assert!(Time::now() >= start + ms(45));
        assert_eq!(burst.tick().await, start + ms(50));
        assert_eq!(delay.tick().await, start + ms(10));
        assert!(delay.tick().await >= start + ms(55));
    });
}

#[test]
fn a_deadline_is_a_time_out_and_what_is_ready_is_in_time() {
    run(async {
        let until = Time::now() + ms(10);
        assert!(timeout_at(until, std::future::pending::<()>()).await.is_err());
        assert!(Time::now() >= until);
        assert_eq!(timeout_at(until, async { 5 }).await, Ok(5));
        assert_eq!(timeout(Duration::ZERO, async { 5 }).await, Ok(5));
        assert!(timeout(Duration::ZERO, std::future::pending::<()>()).await.is_err());
    });
}

/// The entries of timers that were given up neither keep a program running nor fill its memory.
#[test]
fn timers_that_are_given_up_are_gone() {
    use selvedge_core::{Events, round_robin_over};
    let mut events = selvedge_io::EventLoop::new().unwrap();
    let start = Instant::now();
    round_robin_over(&mut events, async {
        for round in 0..3 {
            let threads: Vec<_> = (0..1000)
                .map(|_| {
                    spawn(async move {
                        for _ in 0..20 {
                            let _ = timeout(ms(1_000_000), selvedge_core::yield_now()).await;
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.await.unwrap();
            }
            sleep(ms(round)).await;
        }
    })
    .unwrap();
    assert_eq!(events.armed(), 0);
    assert!(start.elapsed() < ms(30_000));
}

/// The last waiter gives up. Then there is nothing to wait for, and the loop finds that at once.
#[test]
fn a_timer_that_is_given_up_is_not_waited_for() {
    use selvedge_core::{Cpu, Events, Trace};
    let mut events = selvedge_io::EventLoop::new().unwrap();
    let mut cpu = Cpu::new().unwrap();
    let main = cpu.thread(async {
        let _ = timeout(ms(100_000_000), selvedge_core::yield_now()).await;
    });
    cpu.make_ready(main.unwrap());
    let start = Instant::now();
    while cpu.poll(&mut events, true).unwrap() {
        while let Some(thread) = cpu.woken() {
            match thread.step(&mut cpu) {
                Trace::Yield(thread) => cpu.make_ready(thread),
                Trace::Ret => {}
                node => events.submit(&mut cpu, node).unwrap(),
            }
        }
    }
    assert!(start.elapsed() < ms(10_000), "{:?}", start.elapsed());
}

/// An edge that finds only the waker of a time-out is kept for the next wait.
#[test]
fn a_wait_that_was_given_up_takes_no_edge_along_that_comes_later() {
    run(async {
        let (one, other) = tcp_pair().await;
        for i in 0..5u8 {
            let mut byte = [0; 10];
            assert!(timeout(ms(2), one.read(&mut byte)).await.is_err());
            // The byte is read without a wait, so the waker of the time-out stays in the table.
            other.write_all(&[i]).await.unwrap();
            assert_eq!((one.read(&mut byte).await.unwrap(), byte[0]), (1, i));
            sleep(ms(2)).await;
            other.write_all(b"later").await.unwrap();
            sleep(ms(5)).await;
            let (read, took) = timed(timeout(ms(5000), one.read(&mut byte))).await;
            // A time-out that is over polls its read once more.
            assert!(took < ms(4000), "what has come is found");
            assert_eq!(read.unwrap().unwrap(), 5);
        }
    });
}
