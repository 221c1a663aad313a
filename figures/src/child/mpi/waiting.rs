//! Threads of a rank that wait for a message each, with a tag of its own. `mpi.rs` calls `waiting`.

use super::super::runtime::{Ours, Runtime};
use super::report::{Tally, next, print};
use selvedge_mpi::{Communicator, Error, Tag};
use std::time::Instant;

/// The number after which a thread ends.
const END: u64 = u64::MAX;

/// Measures a message to one of the threads of rank 1 and its answer: with one thread, and with
/// this number of threads.
pub(super) async fn waiting(world: Communicator, threads: u64, messages: u64) -> Result<(), Error> {
    let mut tally = Tally::default();
    for (name, threads) in [("one", 1), ("many", threads as u32)] {
        if world.rank() == 0 {
            world.barrier().await?;
            let time = asking(&world, threads, messages, &mut tally).await?;
            print(&world, name, time);
        } else {
            answering(&world, threads).await?;
        }
    }
    tally.print(&world);
    Ok(())
}

/// Sends numbers, each to any of the threads, and checks the answers.
async fn asking(world: &Communicator, threads: u32, messages: u64, tally: &mut Tally) -> Result<f64, Error> {
    let mut state = 1_u64;
    let began = Instant::now();
    for number in 0..messages {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let tag = Tag((state >> 33) as u32 % threads);
        let mut answer = [0_u64];
        world.send_slice(1, tag, &[number]).await?;
        world.recv_into(1, tag, &mut answer).await?;
        tally.add(answer == [number + 1]);
    }
    let time = began.elapsed().as_nanos() as f64 / messages as f64;
    for thread in 0..threads {
        world.send_slice(1, thread, &[END]).await?;
    }
    Ok(time)
}

/// Threads that wait, until each has got its end.
async fn answering(world: &Communicator, threads: u32) -> Result<(), Error> {
    let thread = |tag: u32| {
        let world = world.clone();
        Ours::spawn(async move {
            let mut number = [0_u64];
            loop {
                world.recv_into(0, tag, &mut number).await?;
                if number == [END] {
                    return Ok::<_, Error>(());
                }
                world.send_slice(0, tag, &[next(number[0])]).await?;
            }
        })
    };
    let waiting: Vec<_> = (0..threads).map(thread).collect();
    // Each thread has come to its first wait when this one runs again, on one worker.
    Ours::yield_now().await;
    world.barrier().await?;
    for thread in waiting {
        thread.await?;
    }
    Ok(())
}
