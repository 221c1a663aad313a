//! Threads of one image (the executable) in the arena of another one (the shared library).

use selvedge_shared::selvedge;
use selvedge_shared::selvedge::{MVar, run, run_local, spawn, spawn_local, yield_now};
use std::sync::Arc;

/// Both images are in the process, and 32 bits do not hold the distance of their code.
#[test]
fn the_images_are_far_from_each_other() {
    let here = the_images_are_far_from_each_other as *const () as usize;
    let there = selvedge::Time::now as *const () as usize;
    assert!(here.abs_diff(there) > 1 << 31, "{here:x} {there:x}: selvedge is in this executable");
}

#[test]
fn threads_of_the_executable_run_in_the_library() {
    let sum = run(async {
        let threads: Vec<_> = (0..1_000)
            .map(|n| {
                spawn(async move {
                    yield_now().await;
                    n
                })
            })
            .collect();
        let mut sum = 0;
        for thread in threads {
            sum += thread.await.unwrap();
        }
        sum
    });
    assert_eq!(sum.unwrap(), 499_500);
}

#[test]
fn threads_of_many_types_are_told_apart() {
    run_local(async {
        let var = Arc::new(MVar::empty());
        let gives = var.clone();
        let giver = spawn_local(async move { gives.put("weft").await });
        let taker = spawn_local(async move { var.take().await });
        giver.await.unwrap();
        assert_eq!(taker.await.unwrap(), "weft");
        let panics = spawn_local(async { panic!("as it should") });
        assert!(
            panics.await.is_err_and(|error: selvedge::JoinError| error.to_string().contains("as it should"))
        );
        let cancelled = spawn_local(std::future::pending::<()>());
        cancelled.cancel();
        assert!(cancelled.await.is_err());
    })
    .unwrap();
}
