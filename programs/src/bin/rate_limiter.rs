//! A rate limiter: ten threads want to do something five times each, and a bucket of tokens lets
//! fifty through in no less than 80 ms.
//!
//! # Prints
//! ```text
//! 50 calls took at least 80 ms
//! ```
//!
//! # CPU time
//! 200 ms.

use selvedge::scope::scope;
use selvedge::spawn;
use selvedge::sync::Semaphore;
use selvedge::time::interval;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    selvedge::run_main(async {
        // Ten tokens at first, and five more every ten milliseconds.
        let bucket = Arc::new(Semaphore::new(10));
        let filled = bucket.clone();
        let filler = spawn(async move {
            let mut ticks = interval(Duration::from_millis(10));
            loop {
                ticks.tick().await;
                filled.release(5);
            }
        });
        let begun = Instant::now();
        let calls = scope(async |s| {
            let callers: Vec<_> = (0..10)
                .map(|_| {
                    let bucket = bucket.clone();
                    s.spawn(async move {
                        for _ in 0..5 {
                            bucket.acquire().await.forget();
                        }
                        5
                    })
                })
                .collect();
            let mut calls = 0;
            for caller in callers {
                calls += caller.await.unwrap_or(0);
            }
            calls
        })
        .await;
        filler.cancel();
        let time = if begun.elapsed() >= Duration::from_millis(80) { "at least 80 ms" } else { "too little" };
        println!("{calls} calls took {time}");
        Ok(())
    })
}
