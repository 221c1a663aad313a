//! Loops over ranges of numbers, of which each rank runs parts. The parts are items too, so that
//! they are compared with those of one rank.

use super::programs;
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::Communicator;
use std::ops::Range;

programs! {
    squares_in_parts: squares_answer,
    transpose_in_blocks: transpose_answer,
    cube_in_blocks: cube_answer,
}

type Answer = Result<Option<Vec<u64>>, DistributedError>;

/// The loops of the squares, and the numbers of a part.
const LOOPS: [(u32, u32); 3] = [(3, 50), (50, 50), (52, 90)];
const GRAIN: u32 = 7;

/// The environment of one rank puts the first range, and a step on another rank the others. Rank 0
/// gets the squares.
async fn squares_in_parts(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        graph.set_turn_steps(2);
        // Two parts on a rank, and then the next rank.
        let loops = graph.ranges("loops", GRAIN, move |(begin, _)| *begin as usize / 14 % ranks);
        let later = graph.tags("later", move |n: &u32| *n as usize % ranks);
        let squares = graph.items::<u32, u64>("squares", ItemPlacement::consumed_on(|_| [0]));
        let parts = graph.items::<u32, u32>("parts", ItemPlacement::consumed_on(|_| [0]));
        graph.prescribe_range(loops, "square", move |numbers, step| {
            step.put(parts, numbers.start, numbers.end)?;
            for n in numbers {
                step.put(squares, n, u64::from(n).pow(2))?;
            }
            Ok(())
        });
        graph.prescribe(later, "put", move |n, step| step.put_tag(loops.tags(), LOOPS[n as usize]));
        if graph.rank() == 0 {
            graph.initialize(|env| {
                env.put_tag(loops.tags(), LOOPS[0])?;
                (1..3).try_for_each(|n| env.put_tag(later, n))
            })?;
        }
        let finished = graph.run()?;
        let all = finished.finalize(|view| {
            let parts = view.iter(parts.local()).flat_map(|(begin, end)| [begin.into(), (*end).into()]);
            let squares = view.iter(squares.local()).map(|(_, square)| *square);
            parts.chain(squares).collect()
        });
        Ok((graph.rank() == 0).then_some(all))
    })
    .await
}

fn squares_answer() -> Vec<u64> {
    let parts = |(begin, end): (u32, u32)| {
        let begins = (begin..end).step_by(GRAIN as usize);
        begins.flat_map(move |begin| [begin, (begin + GRAIN).min(end)]).map(u64::from)
    };
    let numbers = LOOPS.into_iter().flat_map(|(begin, end)| begin..end);
    LOOPS.into_iter().flat_map(parts).chain(numbers.map(|n| u64::from(n).pow(2))).collect()
}

const ROWS: u16 = 11;
const COLUMNS: u16 = 9;

/// A number for each place of a matrix, and another one for the block in which it was made.
fn entry(i: u16, j: u16, rows: &Range<u16>, columns: &Range<u16>) -> (u64, u64) {
    let block = [rows.start, rows.end, columns.start, columns.end];
    (u64::from(100 * i + j), block.iter().fold(0, |word, at| word << 16 | u64::from(*at)))
}

/// Blocks of a matrix. The transposed matrix has a row on each rank in turn.
async fn transpose_in_blocks(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let block = move |&((i, _), (j, _)): &((u16, u16), (u16, u16))| usize::from(i / 4 + j / 2) % ranks;
        let all = graph.ranges_2d("all", (4, 2), block);
        let row = ItemPlacement::produced_on(move |&(j, _): &(u16, u16)| usize::from(j) % ranks);
        let transposed = graph.items("transposed", row);
        graph.prescribe_range_2d(all, "turn", move |rows: Range<u16>, columns: Range<u16>, step| {
            for i in rows.clone() {
                let mut places = columns.clone();
                places.try_for_each(|j| step.put(transposed, (j, i), entry(i, j, &rows, &columns)))?;
            }
            Ok(())
        });
        graph.initialize_everywhere(|env| env.put_tag(all.tags(), ((0, ROWS), (0, COLUMNS))))?;
        let all = graph.run()?.gather(0, transposed)?;
        Ok(all.map(|all| all.into_iter().flat_map(|(_, (entry, block))| [entry, block]).collect()))
    })
    .await
}

fn transpose_answer() -> Vec<u64> {
    let around = |at: u16, grain: u16, end: u16| at / grain * grain..(at / grain * grain + grain).min(end);
    let both = |(j, i)| {
        let (entry, block) = entry(i, j, &around(i, 4, ROWS), &around(j, 2, COLUMNS));
        [entry, block]
    };
    (0..COLUMNS).flat_map(|j| (0..ROWS).map(move |i| (j, i))).flat_map(both).collect()
}

const SIDE: u8 = 5;

/// Blocks of a cube.
async fn cube_in_blocks(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let blocks = graph.ranges_3d("blocks", (2_u8, 3, 1), move |&((i, _), (j, _), (k, _))| {
            usize::from(i + j + k) % ranks
        });
        let cells = graph.items("cells", ItemPlacement::consumed_on(|_: &(u8, u8, u8)| [0]));
        graph.prescribe_range_3d(blocks, "fill", move |is, js, ks, step| {
            for (i, j) in is.flat_map(|i| js.clone().map(move |j| (i, j))) {
                ks.clone()
                    .try_for_each(|k| step.put(cells, (i, j, k), u64::from(i) * 9 + u64::from(j ^ k)))?;
            }
            Ok(())
        });
        let whole = (0, SIDE);
        graph.initialize_everywhere(|env| env.put_tag(blocks.tags(), (whole, whole, whole)))?;
        let all = graph.run()?.gather(0, cells)?;
        Ok(all.map(|all| all.into_iter().map(|(_, cell)| cell).collect()))
    })
    .await
}

fn cube_answer() -> Vec<u64> {
    let places = (0..SIDE).flat_map(|i| (0..SIDE).flat_map(move |j| (0..SIDE).map(move |k| (i, j, k))));
    places.map(|(i, j, k)| u64::from(i) * 9 + u64::from(j ^ k)).collect()
}
