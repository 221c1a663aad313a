//! Messages to and fro between two ranks: elements, a small value, and elements that a parked
//! thread receives beside another one. `mpi.rs` calls `latency`.
//!
//! The buffers of sends and receives are not the same, because a line of the cache that both ranks
//! write goes to and fro too.

use super::super::runtime::{Ours, Runtime};
use super::report::{BLOCKS, Tally, each, is_marked, mark, next, print};
use selvedge_mpi::{Communicator, Error, Tag};
use std::time::{Duration, Instant};

/// A value of the simple interface.
type Small = (bool, u64, String, [u32; 3]);

/// The tag for which a thread waits all the time.
const LATER: Tag = Tag(1);

/// `latency`.
pub(super) async fn latency(world: Communicator, rounds: u64) -> Result<(), Error> {
    let mut tally = Tally::default();
    for (name, size, fewer) in [("bytes_1", 1, 1), ("bytes_1024", 1024, 1), ("bytes_65536", 65_536, 4)] {
        let rounds = (rounds / fewer).max(1);
        let mut blocks = Vec::with_capacity(BLOCKS);
        for _ in 0..BLOCKS {
            blocks.push(elements(&world, size, rounds, &mut tally).await?);
        }
        print(&world, name, each(&blocks, 2 * rounds));
    }
    let mut blocks = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        blocks.push(values(&world, rounds, &mut tally).await?);
    }
    print(&world, "small", each(&blocks, 2 * rounds));
    let blocks = beside_another(&world, rounds, &mut tally).await?;
    print(&world, "parked", each(&blocks, 2 * rounds));
    tally.print(&world);
    Ok(())
}

/// Elements to and fro. Each message has its number, and the next number on the way back.
async fn elements(
    world: &Communicator,
    size: usize,
    rounds: u64,
    tally: &mut Tally,
) -> Result<Duration, Error> {
    let (mut going, mut coming) = (vec![0_u8; size], vec![0_u8; size]);
    world.barrier().await?;
    let began = Instant::now();
    for round in 0..rounds {
        if world.rank() == 0 {
            mark(&mut going, round as u8);
            world.send_slice(1, (), &going).await?;
            world.recv_into(1, (), &mut coming).await?;
            tally.add(is_marked(&coming, (round as u8).wrapping_add(1)));
        } else {
            world.recv_into(0, (), &mut coming).await?;
            mark(&mut going, next(u64::from(coming[0])) as u8);
            world.send_slice(0, (), &going).await?;
        }
    }
    Ok(began.elapsed())
}

/// A small value to and fro.
async fn values(world: &Communicator, rounds: u64, tally: &mut Tally) -> Result<Duration, Error> {
    world.barrier().await?;
    let began = Instant::now();
    for round in 0..rounds {
        if world.rank() == 0 {
            let value: Small = (true, round, "a short text".to_owned(), [1, 2, 3]);
            world.send(1, (), value).await?;
            let ((flag, number, text, three), _) = world.recv::<Small>(1, ()).await?;
            tally.add(flag && number == round + 1 && text == "a short text" && three == [1, 2, 3]);
        } else {
            let ((flag, number, text, three), _) = world.recv::<Small>(0, ()).await?;
            world.send(0, (), (flag, next(number), text, three)).await?;
        }
    }
    Ok(began.elapsed())
}

/// Elements to and fro between threads of the ranks, beside threads that wait for another tag.
async fn beside_another(
    world: &Communicator,
    rounds: u64,
    tally: &mut Tally,
) -> Result<Vec<Duration>, Error> {
    let other = 1 - world.rank();
    let there = world.clone();
    let waits = Ours::spawn(async move { there.recv::<u64>(other, LATER).await });
    let there = world.clone();
    let plays = Ours::spawn(async move {
        let (mut blocks, mut tally) = (Vec::with_capacity(BLOCKS), Tally::default());
        for _ in 0..BLOCKS {
            blocks.push(elements(&there, 1, rounds, &mut tally).await?);
        }
        Ok::<_, Error>((blocks, tally))
    });
    let (blocks, played) = plays.await?;
    tally.messages += played.messages;
    tally.wrong += played.wrong;
    world.send(other, LATER, 7_u64).await?;
    tally.wrong += u64::from(waits.await?.0 != 7);
    Ok(blocks)
}
