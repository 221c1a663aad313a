//! Dining philosophers: each takes both forks in one transaction, so no order of the forks is
//! needed and no philosopher holds one fork while it waits for the other.
//!
//! # Prints
//! ```text
//! 5 philosophers ate 100 times each; never more than 2 at once
//! ```

use selvedge::stm::{TWord, atomically};
use selvedge::{spawn, yield_now};
use std::process::ExitCode;

const PHILOSOPHERS: usize = 5;
const MEALS: u32 = 100;

/// One fork of the table: whether it lies there.
type Fork = TWord<bool>;

async fn dine(left: Fork, right: Fork, eating: TWord<u32>) -> u32 {
    let mut most = 0;
    for _ in 0..MEALS {
        let at_once = atomically(|tx| {
            let both = left.read(tx)? && right.read(tx)?;
            tx.check(both)?; // waits until another philosopher has put a fork back
            left.write(tx, false);
            right.write(tx, false);
            eating.modify(tx, |n| n + 1)?;
            eating.read(tx)
        })
        .await;
        most = most.max(at_once);
        yield_now().await;
        atomically(|tx| {
            left.write(tx, true);
            right.write(tx, true);
            eating.modify(tx, |n| n - 1)
        })
        .await;
    }
    most
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let forks: Vec<_> = (0..PHILOSOPHERS).map(|_| Fork::new(true)).collect();
        let eating = TWord::new(0);
        let philosophers: Vec<_> = (0..PHILOSOPHERS)
            .map(|at| {
                let (left, right) = (forks[at].clone(), forks[(at + 1) % PHILOSOPHERS].clone());
                spawn(dine(left, right, eating.clone()))
            })
            .collect();
        let mut most = 0;
        for philosopher in philosophers {
            most = most.max(philosopher.await?);
        }
        assert!(most <= 2, "five forks are enough for two");
        println!("{PHILOSOPHERS} philosophers ate {MEALS} times each; never more than 2 at once");
        Ok(())
    })
}
