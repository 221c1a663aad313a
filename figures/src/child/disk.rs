//! Random reads of a disk by threads of ours, scheduled round-robin with an event loop.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use selvedge_core::{fork_local, round_robin_with, sleep, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::fs::{Driver, File};

use super::clock::{Times, rss_bytes};
use crate::disk::{BLOCK, BLOCKS, block_number, data_file};

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

const WARM_UP: Duration = Duration::from_millis(200);

/// A thread that reads random blocks for ever, and checks each.
async fn reader(file: &'static File, mut random: u64) {
    BEGUN.set(BEGUN.get() + 1);
    loop {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let block = random % BLOCKS;
        let bytes = file.read(block * BLOCK as u64, BLOCK as u32).await.expect("the file can be read");
        assert_eq!(block_number(&bytes), Some(block), "another block was read");
        READS.set(READS.get() + 1);
    }
}

/// `n` threads read for some time.
pub(super) fn random(n: u64, milliseconds: u64, driver: Driver) {
    let mut events = EventLoop::with_driver(driver).expect("there are descriptors left");
    let main = async move {
        let before = rss_bytes();
        start(n, data_file()).await;
        while BEGUN.get() < n {
            yield_now().await;
        }
        println!("bytes {}", rss_bytes());
        println!("bytes_each {:.1}", (rss_bytes() - before) as f64 / n as f64);
        sleep(WARM_UP).await;
        let (first, before) = (Times::now(), READS.get());
        sleep(Duration::from_millis(milliseconds)).await;
        let (last, reads) = (Times::now(), READS.get() - before);
        first.print_rate_until(last, reads);
        println!("begun {}", BEGUN.get());
        println!("wrong 0");
        // Without cancelling each.
        std::process::exit(0);
    };
    round_robin_with(&mut events, main).expect("the threads only read");
}

async fn start(n: u64, path: PathBuf) {
    let file = File::options().read(true).direct(true).open(path).await.expect("the file was made");
    let file: &'static File = Box::leak(Box::new(file));
    for i in 1..=n {
        fork_local(reader(file, i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).await;
    }
}
