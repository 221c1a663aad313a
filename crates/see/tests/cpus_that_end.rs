//! The counters while a CPU ends. (What is counted is the process's: one test in this file.)

use selvedge_core::{round_robin, yield_now};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

#[test]
fn what_a_cpu_has_done_counts_once() {
    selvedge_see::on();
    let (told, is_busy) = channel();
    let cpu = thread::spawn(move || {
        round_robin(async move {
            for _ in 0..100 {
                yield_now().await;
            }
            told.send(()).unwrap();
            // A step too long for an answer, but it ends while one is waited for.
            thread::sleep(Duration::from_millis(20));
        })
        .unwrap();
    });
    is_busy.recv().unwrap();
    let meanwhile = selvedge_see::counters().total.steps;
    cpu.join().unwrap();
    let after = selvedge_see::counters().total.steps;
    assert!((100..110).contains(&after) && meanwhile <= after, "{meanwhile} before {after}");
    selvedge_see::off();
}
