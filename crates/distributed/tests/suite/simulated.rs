//! Graphs over ranks in simulated worlds: in each order of messages and steps the same bits.

use crate::programs::{all, named};
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::{Communicator, Ranks, run};

/// Runs a program in a thousand worlds.
fn a_thousand(name: &str, ranks: usize) {
    let program = named(name);
    let answer = (program.answer)();
    selvedge_sim::simulate(0..1_000, || {
        let answer = answer.clone();
        async move {
            let ended = run(ranks, program.body).await.unwrap();
            assert_eq!(ended[0], Some(answer));
        }
    });
}

#[test]
fn a_factor_in_tiles() {
    a_thousand("cholesky", 3);
}

#[test]
fn a_wavefront_that_is_fetched() {
    a_thousand("wavefront_fetched", 3);
}

#[test]
fn async_steps_that_fetch() {
    a_thousand("rows_fetched", 3);
}

#[test]
fn async_steps_that_take() {
    a_thousand("round_the_table", 3);
}

#[test]
fn loops_in_parts() {
    a_thousand("squares_in_parts", 3);
}

/// Says under how many seeds every program runs: the soak has 1,000, which take some minutes.
const SEEDS: &str = "DISTRIBUTED_SEEDS";

/// Every program in simulated worlds with messages that take time.
#[test]
fn every_program_in_any_order() {
    let seeds = std::env::var(SEEDS).map_or(40, |text| text.parse().expect("a number of seeds"));
    for program in all() {
        let answer = (program.answer)();
        selvedge_sim::simulate(0..seeds, || {
            let answer = answer.clone();
            async move {
                let ended = Ranks::new(3).delayed().run(program.body).await.unwrap();
                assert_eq!(ended[0], Some(answer), "{}", program.name);
            }
        });
    }
}

/// A turn is one step: a chain of steps, each on another rank than the one before, and a step on
/// each rank that waits for the end of the chain.
async fn chain(world: Communicator) -> Result<u64, DistributedError> {
    let ranks = world.size() as u64;
    graph(&world, move |graph| {
        graph.set_turn_steps(1);
        let links = graph.tags("links", move |n: &u64| (n % ranks) as usize);
        let last = graph.tags("last", |rank: &u64| *rank as usize);
        let sums =
            graph.items::<u64, u64>("sums", ItemPlacement::produced_on(move |n: &u64| (n % ranks) as usize));
        let ends = graph.items::<u64, u64>("ends", ItemPlacement::consumed_on(|rank: &u64| [*rank as usize]));
        graph.prescribe(links, "link", move |n, step| {
            let sum = *step.get(sums, n)? + n;
            step.put(sums, n + 1, sum)?;
            if n < 9 { step.put_tag(links, n + 1) } else { Ok(()) }
        });
        graph.prescribe(last, "look", move |rank, step| step.put(ends, rank, *step.get(sums, 10)?));
        graph.initialize_everywhere(|env| {
            (0..ranks).try_for_each(|rank| env.put_tag(last, rank))?;
            env.put(sums, 0, 0)?;
            env.put_tag(links, 0)
        })?;
        let (me, finished) = (graph.rank() as u64, graph.run()?);
        Ok(finished.finalize(|view| view.get(ends.local(), me).copied()).expect("the step has put it"))
    })
    .await
}

#[test]
fn a_chain_from_rank_to_rank() {
    selvedge_sim::simulate(0..1_000, || async {
        assert_eq!(run(3, chain).await.unwrap(), [45; 3]);
    });
}
