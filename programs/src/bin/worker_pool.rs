//! A pool of workers: four threads take jobs from one queue, and put results into another.
//!
//! # Prints
//! ```text
//! 100 jobs, the sum of the squares is 328350
//! ```

use selvedge::spawn;
use selvedge::sync::BoundedFifo;
use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (to_do, jobs) = BoundedFifo::ends(8);
        let (finished, results) = BoundedFifo::ends(8);
        for _ in 0..4 {
            let (jobs, finished) = (jobs.clone(), finished.clone());
            drop(spawn(async move {
                while let Some(number) = jobs.take().await {
                    finished.put(number * number).await?;
                }
                Ok::<(), selvedge::sync::ClosedError<u64>>(())
            }));
        }
        drop((jobs, finished)); // the workers have theirs
        drop(spawn(async move {
            for number in 0..100u64 {
                to_do.put(number).await?;
            }
            Ok::<(), selvedge::sync::ClosedError<u64>>(())
        }));
        let (mut count, mut sum) = (0, 0);
        while let Some(square) = results.take().await {
            count += 1;
            sum += square;
        }
        println!("{count} jobs, the sum of the squares is {sum}");
        Ok(())
    })
}
