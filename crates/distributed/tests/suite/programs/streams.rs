//! A pipeline with its stages on other ranks, where there are some.

use super::programs;
use selvedge_distributed::{DistributedError, RankStages, on_rank};
use selvedge_flow::made;
use selvedge_mpi::Communicator;
use selvedge_pipeline::{collect, from_chunks, group_by, lift121, line};

programs! {
    lengths_of_lines: lengths_answer,
}

const CHUNKS: usize = 60;

/// A part of a text, which is cut within its lines.
fn chunk(number: usize) -> String {
    format!("{}\nweft {number} of", "warp ".repeat(number % 7))
}

async fn lengths_of_lines(world: Communicator) -> Result<Option<Vec<u64>>, DistributedError> {
    let mut stages = RankStages::new();
    let lines = stages.register("lines", || group_by(line()));
    let lengths = stages.register("lengths", || lift121(|line: &[u8]| line.len() as u64));
    let pool = stages.start(&world).await?;
    let mut all = None;
    if world.rank() == 0 {
        let last = world.size() - 1;
        let text = made(from_chunks((0..CHUNKS).map(chunk)));
        let there = text >> on_rank(&pool, last.min(1), lines) >> on_rank(&pool, last, lengths);
        all = Some((there >> collect()).run().await.expect("no stage fails"));
    }
    pool.finish().await?;
    Ok(all)
}

fn lengths_answer() -> Vec<u64> {
    let text: String = (0..CHUNKS).map(chunk).collect();
    text.lines().map(|line| line.len() as u64).collect()
}
