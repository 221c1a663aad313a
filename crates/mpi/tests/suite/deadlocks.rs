//! A deadlock of ranks is told as one of threads is, with what each rank waits for.
//!
//! The simulated scheduler finds it, because it knows all that can wake a thread. Under the others
//! the OS threads of the test harness could.

use selvedge_core::NoEvents;
use selvedge_mpi::{ANY, Communicator, Error, run};

/// The report of a program that cannot go on.
fn report<R>(ranks: usize, body: fn(Communicator) -> R) -> String
where
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    let program = async move { drop(run(ranks, body).await) };
    let failed = selvedge_sim::simulated(1, &mut NoEvents::new(), program).unwrap_err();
    failed.to_string()
}

#[test]
fn each_waits_for_the_other() {
    let report = report(2, |world| async move {
        let other = 1 - world.rank();
        world.recv::<i32>(other, 7).await?;
        world.send(other, 7, 1).await
    });
    for told in [
        "\"rank 0\"",
        "\"rank 1\"",
        "waits to receive a message from rank 1 with tag 7, as rank 0, at",
        "waits to receive a message from rank 0 with tag 7, as rank 1",
        "deadlocks.rs",
    ] {
        assert!(report.contains(told), "{told} is missing: {report}");
    }
}

#[test]
fn synchronous_sends_in_a_circle() {
    let report = report(3, |world| async move {
        let next = (world.rank() + 1) % world.size();
        world.ssend(next, (), 1).await?;
        world.recv::<i32>(ANY, ANY).await.map(drop)
    });
    assert!(report.contains("waits to send a message to rank 0, as rank 2"), "{report}");
}

#[test]
fn one_rank_misses_a_collective() {
    let report = report(3, |world| async move {
        if world.rank() == 2 {
            world.recv::<i32>(ANY, 5).await?;
        }
        world.barrier().await
    });
    assert!(report.contains("waits to receive a message from any rank with tag 5, as rank 2"), "{report}");
    assert!(report.contains("waits to receive the message of barrier from rank 2, as rank 0"), "{report}");
}
