//! A worker in a long step: what waits in its event loop is served by another worker.

use crate::common::ms;
use selvedge_core::{detach_local, spawn, spawn_local, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::net::{Stream, UnixStream};
use selvedge_io::time::sleep;
use selvedge_sched::work_stealing;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Instant;

/// Runs `main` on two workers, again and again until it says that it has seen what it is about.
fn until_seen<F: Future<Output = bool> + Send + 'static>(main: fn() -> F) {
    let seen = (0..50).any(|_| work_stealing(2, |_| EventLoop::new(), main()).unwrap());
    assert!(seen, "no thread has waited in the loop of the worker with the long step");
}

/// A step that ends when `count` others have gone on, and panics if they do not come to it.
fn last_until(count: usize, gone_on: &AtomicUsize) {
    let begun = Instant::now();
    while gone_on.load(Ordering::SeqCst) < count {
        assert!(begun.elapsed() < ms(10_000), "the others wait for the end of this step");
        thread::sleep(ms(1));
    }
}

/// How many of the threads began their waits on this OS thread.
fn are_here(waits: &Mutex<Vec<ThreadId>>) -> usize {
    waits.lock().unwrap().iter().filter(|&&id| id == thread::current().id()).count()
}

const WAITS: usize = 20;

#[test]
fn sleeps_in_the_loop_of_a_worker_in_a_long_step_end() {
    until_seen(|| async {
        let (gone_on, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        for _ in 0..WAITS {
            let (gone_on, waits) = (gone_on.clone(), waits.clone());
            drop(spawn(async move {
                waits.lock().unwrap().push(thread::current().id());
                sleep(ms(30)).await;
                gone_on.fetch_add(1, Ordering::SeqCst);
            }));
        }
        while waits.lock().unwrap().len() < WAITS {
            yield_now().await;
        }
        let here = are_here(&waits);
        last_until(WAITS, &gone_on);
        here > 0
    });
}

#[test]
fn descriptors_in_the_loop_of_a_worker_in_a_long_step_are_served() {
    until_seen(|| async {
        let (gone_on, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let mut writers = Vec::new();
        for _ in 0..WAITS {
            let (reader, writer) = UnixStream::pair().unwrap();
            writers.push(writer);
            let (gone_on, waits) = (gone_on.clone(), waits.clone());
            drop(spawn(async move {
                let reader = Stream::from(reader);
                waits.lock().unwrap().push(thread::current().id());
                for _ in 0..3 {
                    assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 1);
                    gone_on.fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
        while waits.lock().unwrap().len() < WAITS {
            yield_now().await;
        }
        // All wait.
        sleep(ms(5)).await;
        let here = are_here(&waits);
        for round in 1..=3 {
            for writer in &writers {
                assert_eq!(rustix::io::write(writer, b"x"), Ok(1));
            }
            last_until(round * WAITS, &gone_on);
        }
        here > 0
    });
}

#[test]
fn threads_that_stay_wait_for_the_end_of_the_long_step() {
    until_seen(|| async {
        let (gone_on, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        for wait in 0..2 * WAITS {
            let (gone_on, waits) = (gone_on.clone(), waits.clone());
            let thread = async move {
                let here = thread::current().id();
                waits.lock().unwrap().push(here);
                sleep(ms(20)).await;
                assert_eq!(thread::current().id(), here);
                gone_on.fetch_add(1, Ordering::SeqCst);
            };
            // The event loop has the thread itself, or its waker.
            if wait % 2 == 0 {
                detach_local(thread);
            } else {
                drop(spawn_local(thread));
            }
            yield_now().await;
        }
        sleep(ms(1)).await;
        let here = are_here(&waits);
        thread::sleep(ms(60));
        while gone_on.load(Ordering::SeqCst) < 2 * WAITS {
            sleep(ms(1)).await;
        }
        here > 0
    });
}
