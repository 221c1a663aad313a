//! Ranks of one process, each on an OS thread of its own: their graphs run at the same time, also
//! where the ranks began on the same OS thread.

use crate::programs::{Program, all};
use selvedge_core::{JoinError, NoEvents, round_robin};
use selvedge_distributed::DistributedError;
use selvedge_mpi::{Communicator, Ranks};
use selvedge_sched::bound;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// The OS threads on which graphs have run.
type Seen = Arc<Mutex<BTreeSet<String>>>;

fn name(os_thread: ThreadId) -> String {
    format!("{os_thread:?}")
}

/// A rank that runs its program on an OS thread of its own.
async fn moved(
    world: Communicator,
    program: &'static Program,
    seen: Seen,
) -> Result<Option<Vec<u64>>, DistributedError> {
    let run = bound(
        || Ok(NoEvents::new()),
        move || {
            seen.lock().unwrap().insert(name(thread::current().id()));
            (program.body)(world)
        },
    );
    let ended: Result<_, JoinError> = run.expect("the system has OS threads").await;
    ended.expect("the rank is not cancelled")
}

#[test]
fn graphs_of_ranks_on_their_own_os_threads() {
    let here = name(thread::current().id());
    for program in all() {
        for ranks in [2, 4] {
            let seen = Seen::default();
            let told = seen.clone();
            let run = Ranks::new(ranks).run(move |world| moved(world, program, told.clone()));
            let ended =
                round_robin(run).unwrap().unwrap_or_else(|failure| panic!("{}: {failure}", program.name));
            for (rank, bits) in ended.into_iter().enumerate() {
                assert_eq!(bits, (rank == 0).then(program.answer), "{}, rank {rank}", program.name);
            }
            let seen = seen.lock().unwrap();
            assert_eq!((seen.len(), seen.contains(&here)), (ranks, false), "{}", program.name);
        }
    }
}
