//! A field that is relaxed in blocks (Jacobi).

use super::{bits, programs};
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::Communicator;

programs! {
    jacobi: jacobi_answer,
    jacobi_in_two_runs: jacobi_answer,
}

const BLOCKS: u32 = 6;
const ROUNDS: u32 = 9;
const LENGTH: usize = 5;

fn block(number: u32) -> Vec<f64> {
    (0..LENGTH).map(|at| (f64::from(number) * 1.7 + at as f64).sin()).collect()
}

/// A block after another round. Beyond the field is 1.
fn relaxed(left: Option<&Vec<f64>>, own: &[f64], right: Option<&Vec<f64>>) -> Vec<f64> {
    let before = left.map_or(1.0, |left| left[LENGTH - 1]);
    let after = right.map_or(1.0, |right| right[0]);
    let all: Vec<f64> = [&[before], own, &[after]].concat();
    all.windows(3).map(|three| (three[0] + three[1] + three[2]) / 3.0).collect()
}

async fn jacobi(world: Communicator) -> Result<Option<Vec<u64>>, DistributedError> {
    relax(world, &[ROUNDS]).await
}

/// The environment puts more tags after a run, and runs again.
async fn jacobi_in_two_runs(world: Communicator) -> Result<Option<Vec<u64>>, DistributedError> {
    relax(world, &[4, ROUNDS]).await
}

async fn relax(world: Communicator, runs: &'static [u32]) -> Result<Option<Vec<u64>>, DistributedError> {
    let ranks = world.size();
    graph(&world, move |graph| {
        let owner = move |block: u32| (block as usize * ranks / BLOCKS as usize).min(ranks - 1);
        let tags = graph.tags("rounds", move |&(_, block): &(u32, u32)| owner(block));
        let readers = move |&(_, block): &(u32, u32)| {
            [block.saturating_sub(1), block, (block + 1).min(BLOCKS - 1)].map(owner)
        };
        let placement = ItemPlacement::consumed_on(readers).with_producer(move |&(_, block)| owner(block));
        let blocks = graph.items("blocks", placement);
        graph.prescribe(tags, "relax", move |(round, block), step| {
            let own: &Vec<f64> = step.get(blocks, (round, block))?;
            let left = if block > 0 { Some(step.get(blocks, (round, block - 1))?) } else { None };
            let right = if block + 1 < BLOCKS { Some(step.get(blocks, (round, block + 1))?) } else { None };
            step.put(blocks, (round + 1, block), relaxed(left, own, right))
        });
        graph.initialize_everywhere(|env| {
            (0..BLOCKS).try_for_each(|number| env.put(blocks, (0, number), block(number)))
        })?;
        let (mut first, mut all) = (0, None);
        for &last in runs {
            graph.initialize_everywhere(|env| {
                let mut rounds = (first..last).flat_map(|round| (0..BLOCKS).map(move |block| (round, block)));
                rounds.try_for_each(|tag| env.put_tag(tags, tag))
            })?;
            all = graph.run()?.gather(0, blocks)?;
            first = last;
        }
        let is_last = |(round, _): &(u32, u32)| *round == ROUNDS;
        Ok(all.map(|all| {
            all.iter().filter(|(key, _)| is_last(key)).flat_map(|(_, block)| bits(block)).collect()
        }))
    })
    .await
}

fn jacobi_answer() -> Vec<u64> {
    let mut field: Vec<Vec<f64>> = (0..BLOCKS).map(block).collect();
    for _ in 0..ROUNDS {
        let at = |number: usize| field.get(number);
        let next =
            |number: usize| relaxed(number.checked_sub(1).and_then(at), &field[number], at(number + 1));
        field = (0..field.len()).map(next).collect();
    }
    field.iter().flat_map(bits).collect()
}
