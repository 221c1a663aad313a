//! Two threads that wait for each other: the run ends with a report that names both threads
//! and the source lines at which they wait.

use selvedge::{MVar, RunError, spawn_local};
use std::rc::Rc;

fn main() {
    let left = Rc::new(MVar::<u32, _>::empty_local());
    let right = Rc::new(MVar::<u32, _>::empty_local());
    let ended = selvedge::run_local(async move {
        let (l, r) = (left.clone(), right.clone());
        let other = spawn_local(async move {
            let got = l.take().await;
            r.put(got).await;
        });
        let got = right.take().await;
        left.put(got).await;
        other.await
    });
    match ended {
        Err(RunError::Deadlock(deadlock)) => println!("{deadlock}"),
        other => panic!("expected a deadlock, got {other:?}"),
    }
}
