//! A thousand jobs, each at its time: a thread that sleeps is all that a timer needs.
//!
//! # Prints
//! ```text
//! 1000 jobs ran within 100 ms, none too early, and 500 were called off
//! ```

use selvedge::scope::Threads;
use selvedge::sleep;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (mut jobs, begun) = (Threads::new(), Instant::now());
        for number in 0..1500u64 {
            // The times of the jobs are in no order.
            let delay = Duration::from_millis(number * 7919 % 100);
            let handle = jobs.spawn(async move {
                if number % 3 == 0 {
                    sleep(Duration::from_secs(3600)).await; // to be called off
                }
                sleep(delay).await;
                begun.elapsed() >= delay
            });
            if number % 3 == 0 {
                jobs.cancel(handle);
            }
        }
        let (mut ran, mut early, mut called_off) = (0, 0, 0);
        while let Some(ended) = jobs.next().await {
            match ended {
                Ok(in_time) => {
                    ran += 1;
                    early += u32::from(!in_time);
                }
                Err(_) => called_off += 1,
            }
        }
        let early = if early == 0 { "none" } else { "some" };
        println!("{ran} jobs ran within 100 ms, {early} too early, and {called_off} were called off");
        Ok(())
    })
}
