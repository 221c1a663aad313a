//! One scheduler for each core, sharing nothing: each counts the primes of its own part.

use selvedge::{spawn, yield_now};

async fn primes(from: u32, to: u32) -> usize {
    let mut count = 0;
    for n in from..to {
        if n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0) {
            count += 1;
        }
        if n % 1_000 == 0 {
            yield_now().await;
        }
    }
    count
}

fn main() -> Result<(), selvedge::SchedulerError> {
    const WORKERS: u32 = 2;
    const PART: u32 = 50_000 / WORKERS;
    let counts = selvedge::per_core(WORKERS as usize, |worker| async move {
        let from = worker as u32 * PART;
        let halves = [(from, from + PART / 2), (from + PART / 2, from + PART)];
        let threads = halves.map(|(from, to)| spawn(primes(from, to)));
        let mut count = 0;
        for thread in threads {
            count += thread.await.expect("it does not panic");
        }
        count
    })?;
    assert_eq!(counts.iter().sum::<usize>(), 5_133);
    println!("primes below 50,000, by worker: {counts:?}");
    Ok(())
}
