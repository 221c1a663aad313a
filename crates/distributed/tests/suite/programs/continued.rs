//! Async steps: they get items after they have put for other ranks.

use super::programs;
use super::tiles::{PLACES, floyd_warshall_answer, shorter, ways};
use selvedge_cnc::Items;
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::Communicator;

programs! {
    rows_pushed: floyd_warshall_answer,
    rows_fetched: floyd_warshall_answer,
    round_the_table: table_answer,
}

type Answer = Result<Option<Vec<u64>>, DistributedError>;

async fn rows_pushed(world: Communicator) -> Answer {
    let ranks = world.size();
    rows(world, ItemPlacement::consumed_on(move |_| 0..ranks)).await
}

async fn rows_fetched(world: Communicator) -> Answer {
    let ranks = world.size();
    rows(world, ItemPlacement::produced_on(move |row: &u32| *row as usize % ranks)).await
}

/// The shortest ways: one step for each row of the matrix. In the round of its own row it puts the
/// row for the others; in the other rounds it gets a row.
async fn rows(world: Communicator, placement: ItemPlacement<u32>) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        graph.set_turn_steps(1);
        let owner = move |row: &u32| *row as usize % ranks;
        let tags = graph.tags("rows", owner);
        let of_round = graph.items("rows of the rounds", placement);
        let last = graph.items("last rows", ItemPlacement::produced_on(owner));
        graph.prescribe_async(tags, "shorten", move |own, step| async move {
            let mut row = ways(own);
            for round in 0..PLACES {
                if round == own {
                    step.put(of_round, round, row.clone())?;
                } else {
                    row = shorter(&row, round, step.get(of_round, round).await?);
                }
            }
            step.put(last, own, row)
        });
        graph.initialize_everywhere(|env| (0..PLACES).rev().try_for_each(|row| env.put_tag(tags, row)))?;
        let all = graph.run()?.gather(0, last)?;
        Ok(all.map(|all| all.into_iter().flat_map(|(_, row)| row).collect()))
    })
    .await
}

const GUESTS: u32 = 5;
const PASSES: u32 = 17;

/// A book goes round a table. Each guest takes it, writes into it, and puts it for the next one.
async fn round_the_table(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let of_guest = move |guest: u32| (guest % GUESTS) as usize % ranks;
        let guests = graph.tags("guests", move |guest: &u32| of_guest(*guest));
        let next =
            ItemPlacement::consumed_on(move |&pass: &u32| [if pass < PASSES { of_guest(pass) } else { 0 }]);
        let once = Items::hashed().counted(|&pass| (pass < PASSES).then_some(1));
        let books = graph.items_in("books", next, once);
        graph.prescribe_async(guests, "write", move |guest, step| async move {
            for pass in (guest..PASSES).step_by(GUESTS as usize) {
                let mut book: Vec<u64> = step.take(books, pass).await?;
                book.push(u64::from(guest * 100 + pass));
                step.put(books, pass + 1, book)?;
            }
            Ok(())
        });
        graph.initialize_everywhere(|env| {
            env.put(books, 0, vec![])?;
            (0..GUESTS).rev().try_for_each(|guest| env.put_tag(guests, guest))
        })?;
        let finished = graph.run()?;
        let last = finished.finalize(|view| view.get(books.local(), PASSES).cloned());
        Ok(last)
    })
    .await
}

fn table_answer() -> Vec<u64> {
    (0..PASSES).map(|pass| u64::from(pass % GUESTS * 100 + pass)).collect()
}
