//! A deadlock is reported while the program is seen, too: the OS thread that looks on could wake nobody, and says so. (This process
//! has no test harness, whose OS threads do not say so.)

use selvedge_core::{NoEvents, RunError, round_robin_with, spawn_local};
use selvedge_io::signal::Signal;
use selvedge_sync::MVar;
use std::rc::Rc;
use std::time::{Duration, Instant};

fn main() {
    selvedge_see::on();
    selvedge_see::watchdog(Duration::from_millis(20), |long| eprintln!("{long}"));
    selvedge_see::on_signal(&[Signal::USR1], || eprintln!("{}", selvedge_see::dump())).unwrap();
    let begun = Instant::now();
    let ended = round_robin_with(&mut NoEvents::new(), async {
        // Other OS threads could reach it.
        let never = Rc::new(MVar::<()>::empty());
        let other = never.clone();
        drop(spawn_local(async move { other.take().await }));
        never.take().await;
    });
    match ended {
        Err(RunError::Deadlock(deadlock)) => assert_eq!(deadlock.threads.len(), 2, "{deadlock}"),
        other => panic!("expected a deadlock, got {other:?}"),
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}
