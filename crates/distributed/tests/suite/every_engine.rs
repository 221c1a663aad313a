//! Runs every program with one, two and four ranks, which are threads.

use crate::programs::{Program, all};
use selvedge_core::{NoEvents, round_robin};
use selvedge_mpi::Ranks;

/// Runs a program, and compares the bits of rank 0 with the answer.
async fn check(world: Ranks, program: &'static Program) {
    let name = program.name;
    let ended = world.run(program.body).await.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    for (rank, bits) in ended.into_iter().enumerate() {
        assert_eq!(bits, (rank == 0).then(program.answer), "{name}, rank {rank}");
    }
}

fn each(run: impl Fn(usize, &'static Program)) {
    for program in all() {
        [1, 2, 4].into_iter().for_each(|ranks| run(ranks, program));
    }
}

#[test]
fn threads() {
    each(|ranks, program| round_robin(check(Ranks::new(ranks), program)).unwrap());
}

#[test]
fn threads_that_serialise() {
    each(|ranks, program| round_robin(check(Ranks::new(ranks).serialized(), program)).unwrap());
}

#[test]
fn threads_on_two_workers() {
    each(|ranks, program| {
        for _ in 0..5 {
            let main = check(Ranks::new(ranks), program);
            selvedge_sched::work_stealing(2, |_| Ok(NoEvents::new()), main).unwrap();
        }
    });
}
