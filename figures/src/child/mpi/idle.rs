//! A rank that waits for a message that is long in coming, and then for messages that come now and
//! then. `mpi.rs` calls `idle`.
//!
//! Each message has the time at which it was sent, by the clock that all processes of the machine
//! have in common.

use super::report::{Tally, next, print};
use nix::time::{ClockId, clock_gettime};
use selvedge_io::time::sleep;
use selvedge_mpi::{Communicator, Error};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The messages that come now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparse {
    pub(super) messages: u64,
    /// The time before each, in microseconds.
    pub(super) interval: u64,
    /// The time before the first, in milliseconds.
    pub(super) rest: u64,
    /// How many other OS threads compute meanwhile, in the process of the sender.
    pub(super) busy: u64,
}

/// `idle`.
pub(super) async fn idle(world: Communicator, sparse: Sparse) -> Result<(), Error> {
    world.barrier().await?;
    if world.rank() == 0 { sender(&world, sparse).await } else { receiver(&world, sparse).await }
}

async fn sender(world: &Communicator, sparse: Sparse) -> Result<(), Error> {
    sleep(Duration::from_millis(sparse.rest)).await;
    world.send_slice(1, (), &[0_u64, now_ns(ClockId::CLOCK_MONOTONIC)]).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..sparse.busy)
        .map(|_| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        })
        .collect();
    for number in 0..sparse.messages {
        sleep(Duration::from_micros(sparse.interval)).await;
        world.send_slice(1, (), &[number, now_ns(ClockId::CLOCK_MONOTONIC)]).await?;
    }
    is_over.store(true, Ordering::Relaxed);
    for os_thread in busy {
        os_thread.join().expect("it only counts");
    }
    let ((mut late, percent, wrong), _) = world.recv::<(Vec<u64>, f64, u64)>(1, ()).await?;
    late.sort_unstable();
    let part = |part: f64| late[(part * (late.len() - 1) as f64) as usize] as f64 / 1e3;
    print(world, "median_us", part(0.5));
    print(world, "worst_us", part(0.99));
    print(world, "cpu", percent);
    Tally { messages: sparse.messages, wrong }.print(world);
    Ok(())
}

async fn receiver(world: &Communicator, sparse: Sparse) -> Result<(), Error> {
    const WALL: ClockId = ClockId::CLOCK_MONOTONIC;
    const CPU: ClockId = ClockId::CLOCK_PROCESS_CPUTIME_ID;
    let mut message = [0_u64; 2];
    let (began, cpu) = (now_ns(WALL), now_ns(CPU));
    world.recv_into(0, (), &mut message).await?;
    let percent = 100.0 * (now_ns(CPU) - cpu) as f64 / (now_ns(WALL) - began) as f64;
    let (mut late, mut wrong) = (Vec::new(), 0);
    for number in 0..sparse.messages {
        world.recv_into(0, (), &mut message).await?;
        late.push(now_ns(WALL) - message[1]);
        wrong += u64::from(next(message[0]) != number + 1);
    }
    world.send(0, (), (late, percent, wrong)).await
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
