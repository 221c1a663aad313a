//! Code that blocks: in the blocking pool, where it holds up no thread, and in direct style, where
//! it is a thread itself.
//!
//! # Prints
//! ```text
//! 100 calls that do nothing
//! 8 calls that wait for each other have met, and a thread ticked meanwhile
//! in direct style: warp, weft
//! ```

use selvedge::direct::{self, wait};
use selvedge::{MVar, blocking, sleep, spawn};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn main() -> ExitCode {
    selvedge::run_main(async {
        for _ in 0..100 {
            blocking(|| ()).await?;
        }
        println!("100 calls that do nothing");

        let ticks = spawn(async {
            for _ in 0..5 {
                sleep(Duration::from_millis(1)).await;
            }
        });
        // Each of these calls blocks its OS thread until all of them are there.
        let all = Arc::new(Barrier::new(8));
        let meets = (0..8).map(|_| all.clone());
        let calls: Vec<_> = meets.map(|all| spawn(blocking(move || all.wait().is_leader()))).collect();
        ticks.await?;
        for call in calls {
            call.await??;
        }
        println!("8 calls that wait for each other have met, and a thread ticked meanwhile");

        let (word, other) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
        let (from, to) = (word.clone(), other.clone());
        let loom = direct::spawn(move || {
            // This code has no `async`. A callback of a C library could do the same.
            let warp: String = wait(from.take());
            wait(to.put("weft"));
            warp
        });
        word.put("warp".to_string()).await;
        let weft = other.take().await;
        println!("in direct style: {}, {weft}", loom.await?);
        Ok(())
    })
}
