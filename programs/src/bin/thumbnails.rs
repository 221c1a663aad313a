//! Thumbnails of many pictures: each takes a library's blocking call, and no more than two of these
//! calls may run at once, because each needs much memory. The bound is the runner's.
//!
//! # Prints
//! ```text
//! 40 thumbnails, at most 2 at once
//! the OS threads have left
//! ```

use selvedge::{Runner, blocking, pool, sleep, spawn};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// How many calls run now, and the most that ever ran at once.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A picture's thumbnail, by a library that blocks.
fn thumbnail(picture: usize, running: &Running) -> usize {
    running.most.fetch_max(running.now.fetch_add(1, SeqCst) + 1, SeqCst);
    std::thread::sleep(Duration::from_millis(1));
    running.now.fetch_sub(1, SeqCst);
    picture / 10
}

fn main() -> Result<(), Box<dyn Error>> {
    let runner = Runner::from_environment()?.blocking_threads(2).blocking_idle(Duration::from_millis(20));
    runner.run(async {
        let running = Arc::new(Running::default());
        let calls: Vec<_> = (0..40)
            .map(|picture| {
                let running = running.clone();
                spawn(blocking(move || thumbnail(picture, &running)))
            })
            .collect();
        for (picture, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), picture / 10);
        }
        println!("40 thumbnails, at most {} at once", running.most.load(SeqCst));
        while pool::shared().threads() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
        println!("the OS threads have left");
    })?;
    Ok(())
}
