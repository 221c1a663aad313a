//! Values on their way as bytes: how long it takes to make bytes of a value and the value of them
//! again. `mpi.rs` calls `serialise`.
//!
//! A rank sends each value to itself, once as bytes and once moved. The difference is the time of
//! the bytes.

use super::report::{BLOCKS, each, wrong_by};
use selvedge_mpi::{Communicator, Error, Message, Ranks};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How often each value goes its way in a block.
const SMALL: u64 = 2000;
const LARGE: u64 = 5;

/// `serialise`.
pub(super) async fn serialise() {
    let mut wrong = 0;
    let small = (true, 1_u64 << 40, "a short text".to_owned(), [1_u32, 2, 3]);
    wrong += measured("small", small, SMALL).await;
    let numbers: Vec<i64> = (0..50_001).map(|number| number * 7919).collect();
    wrong += measured("numbers", numbers, LARGE).await;
    wrong += measured("floats", vec![0.5_f64; 1 << 17], LARGE).await;
    let row =
        |number: u32| (number, f64::from(number) / 2.0, format!("row {number}"), number.is_multiple_of(3));
    wrong += measured("rows", (0..5000).map(row).collect::<Vec<_>>(), LARGE).await;
    println!("wrong {}", wrong + wrong_by());
}

/// Prints the time for one value, and gives 1 if it has come back changed.
async fn measured<T: Message + Clone + PartialEq + Sync>(name: &str, value: T, times: u64) -> u64 {
    let mut both = Vec::new();
    let mut wrong = 0;
    for ranks in [Ranks::new(1).serialized(), Ranks::new(1).in_process()] {
        let sent = value.clone();
        let ended = ranks.run(move |world| to_itself(world, sent.clone(), times)).await;
        let (blocks, back) = ended.expect("no rank fails").remove(0);
        wrong += u64::from(back != value);
        both.push(each(&blocks, times));
    }
    println!("{name} {:.4}", both[0] - both[1]);
    wrong
}

async fn to_itself<T: Message>(
    world: Communicator,
    mut value: T,
    times: u64,
) -> Result<(Vec<Duration>, T), Error> {
    let mut blocks = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        let began = Instant::now();
        for _ in 0..times {
            world.send(0, (), black_box(value)).await?;
            value = world.recv(0, ()).await?.0;
        }
        blocks.push(began.elapsed());
    }
    Ok((blocks, value))
}
