//! Many bytes from one rank to another: windows of messages, and a long vector as a value. `mpi.rs`
//! calls `bandwidth`.

use super::report::{BLOCKS, Tally, each, is_marked, mark, median, next, print, wrong_by};
use selvedge_mpi::{Communicator, Error};
use std::time::{Duration, Instant};

/// The numbers of the vector: 4 MiB.
const NUMBERS: usize = 1 << 19;

/// The messages of a stream: the name of the result, their size in bytes, and how many of them the
/// receiver answers at once.
#[derive(Clone, Copy)]
struct Stream {
    name: &'static str,
    size: usize,
    window: u64,
}

const STREAMS: [Stream; 4] = [
    Stream { name: "bytes_4096", size: 4096, window: 64 },
    Stream { name: "bytes_65536", size: 65_536, window: 32 },
    Stream { name: "bytes_1048576", size: 1 << 20, window: 8 },
    Stream { name: "bytes_4194304", size: 4 << 20, window: 4 },
];

/// `bandwidth`, with about this number of bytes in a block.
pub(super) async fn bandwidth(world: Communicator, bytes: u64) -> Result<(), Error> {
    let mut tally = Tally::default();
    for stream in STREAMS {
        let windows = (bytes / (stream.size as u64 * stream.window)).max(1);
        let mut rates = Vec::with_capacity(BLOCKS);
        for _ in 0..BLOCKS {
            let time = one_way(&world, stream, windows, &mut tally).await?;
            // Bytes a nanosecond are gigabytes a second.
            let sent = (stream.size as u64 * stream.window * windows) as f64;
            rates.push(sent / time.as_nanos() as f64);
        }
        print(&world, stream.name, median(rates));
    }
    let rounds = (bytes / (8 * NUMBERS as u64)).max(1);
    let mut blocks = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        blocks.push(vector(&world, rounds, &mut tally).await?);
    }
    print(&world, "vector", each(&blocks, 2 * rounds));
    tally.print(&world);
    Ok(())
}

/// Windows of messages, each of which has the number of its window.
async fn one_way(
    world: &Communicator,
    Stream { size, window, .. }: Stream,
    windows: u64,
    tally: &mut Tally,
) -> Result<Duration, Error> {
    // Ones, because zeros would be memory that the system has not given yet.
    let mut memory = vec![1_u8; size];
    world.barrier().await?;
    let began = Instant::now();
    for number in 0..windows {
        if world.rank() == 0 {
            mark(&mut memory, number as u8);
            for _ in 0..window {
                world.send_slice(1, (), &memory).await?;
            }
            let mut faults = [0_u64];
            world.recv_into(1, (), &mut faults).await?;
            tally.messages += window;
            tally.wrong += faults[0];
        } else {
            let mut faults = wrong_by();
            for _ in 0..window {
                world.recv_into(0, (), &mut memory).await?;
                faults += u64::from(!is_marked(&memory, number as u8));
            }
            world.send_slice(0, (), &[faults]).await?;
        }
    }
    Ok(began.elapsed())
}

/// A vector to and fro as a value.
async fn vector(world: &Communicator, rounds: u64, tally: &mut Tally) -> Result<Duration, Error> {
    let mut numbers = vec![0.0_f64; NUMBERS];
    world.barrier().await?;
    let began = Instant::now();
    for round in 0..rounds {
        if world.rank() == 0 {
            numbers[0] = round as f64;
            world.send(1, (), numbers).await?;
            numbers = world.recv(1, ()).await?.0;
            tally.add(numbers[0] == (round + 1) as f64 && numbers.len() == NUMBERS);
        } else {
            numbers = world.recv(0, ()).await?.0;
            numbers[0] = next(numbers[0] as u64) as f64;
            world.send(0, (), numbers).await?;
            numbers = Vec::new();
        }
    }
    Ok(began.elapsed())
}
