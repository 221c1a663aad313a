//! The program of the figure `disk-random`: threads of ours read random blocks of a file,
//! round-robin with an event loop. `child.rs` calls `random` with the io_uring driver or the
//! pool of OS threads.
//!
//! Each thread checks its block, because a block holds its own number (`figures/src/disk.rs`). The
//! program says if the process has no io_uring, and the figure then names the row by the pool.

use super::clock::{Times, rss_bytes};
use super::fault;
use crate::disk::{BLOCK, block_number, data_file};
use selvedge_core::{fork_local, round_robin_over, sleep, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::fs::{Driver, File};
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
    static WRONG: Cell<u64> = const { Cell::new(0) };
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

const WARM_UP: Duration = Duration::from_millis(200);

/// A thread that reads random ones of this number of blocks for ever, and checks each: the number
/// in a block is its own.
async fn reader(file: &'static File, blocks: u64, mut random: u64, off: u64) {
    BEGUN.set(BEGUN.get() + 1);
    loop {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let block = random % blocks;
        let read = file.read_aligned_at(block * BLOCK as u64, BLOCK as u32).await;
        if !read.is_ok_and(|bytes| block_number(&bytes) == Some(block + off)) {
            WRONG.set(WRONG.get() + 1);
        }
        READS.set(READS.get() + 1);
    }
}

/// `n` threads read blocks of a file that has this number, for some time.
pub(super) fn random(blocks: u64, n: u64, milliseconds: u64, driver: Driver) {
    let mut events = EventLoop::with_driver(driver).expect("there are descriptors left");
    let main = async move {
        let before = rss_bytes();
        start(blocks, n, data_file(blocks)).await;
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
        println!("ring {}", u8::from(has_ring()));
        println!("wrong {}", WRONG.get());
        // Without cancelling each.
        std::process::exit(0);
    };
    round_robin_over(&mut events, main).expect("the threads only read");
}

/// Whether this process has an io_uring: an event loop that has none reads through the blocking
/// pool.
fn has_ring() -> bool {
    let descriptors = fs::read_dir("/proc/self/fd").expect("Linux tells a process its descriptors");
    descriptors
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|target| target.as_os_str() == "anon_inode:[io_uring]")
}

async fn start(blocks: u64, n: u64, path: PathBuf) {
    let file = File::options().read(true).direct(true).open(path).await.expect("the file was made");
    let file: &'static File = Box::leak(Box::new(file));
    for i in 1..=n {
        // A thread that is to be wrong takes the next block's number for its own.
        let off = if i == 1 { fault() } else { 0 };
        fork_local(reader(file, blocks, i.wrapping_mul(0x9e37_79b9_7f4a_7c15), off)).await;
    }
}
