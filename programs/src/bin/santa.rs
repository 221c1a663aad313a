//! The Santa Claus problem: Santa sleeps until all nine reindeer are back or three elves need help,
//! and prefers the reindeer. Groups meet at gates, which are made of variables.
//!
//! # Prints
//! ```text
//! Santa delivered toys with 9 reindeer, 5 times or more
//! Santa helped elves, 3 at a time, 5 times or more
//! ```

use selvedge::spawn;
use selvedge::stm::{TVar, TWord, Tried, Tx, atomically};
use selvedge::time::sleep;
use std::process::ExitCode;
use std::time::Duration;

/// A gate lets a number of helpers through each time that Santa opens it.
#[derive(Clone)]
struct Gate {
    left: TWord<u32>,
}

impl Gate {
    fn closed() -> Gate {
        Gate { left: TWord::new(0) }
    }

    async fn pass(&self) {
        atomically(|tx| {
            let left = self.left.read(tx)?;
            tx.check(left > 0)?;
            self.left.write(tx, left - 1);
            Ok(())
        })
        .await
    }

    /// Opens the gate for `size` helpers, and waits until all of them are through.
    async fn open(&self, size: u32) {
        atomically(|tx| {
            self.left.write(tx, size);
            Ok(())
        })
        .await;
        atomically(|tx| {
            let left = self.left.read(tx)?;
            tx.check(left == 0)
        })
        .await
    }
}

/// The gates of the helpers that gather now, and how many are missing.
#[derive(Clone)]
struct Gathering {
    missing: u32,
    into: Gate,
    out: Gate,
}

impl Gathering {
    fn of(size: u32) -> Gathering {
        Gathering { missing: size, into: Gate::closed(), out: Gate::closed() }
    }
}

#[derive(Clone)]
struct Group {
    size: u32,
    now: TVar<Gathering>,
    /// The helpers that are with Santa.
    inside: TWord<u32>,
}

impl Group {
    fn new(size: u32) -> Group {
        Group { size, now: TVar::new(Gathering::of(size)), inside: TWord::new(0) }
    }

    /// Joins the helpers that gather, if the group is not complete.
    async fn join(&self) -> (Gate, Gate) {
        atomically(|tx| {
            let now = self.now.read(tx)?;
            tx.check(now.missing > 0)?;
            self.now.write(tx, Gathering { missing: now.missing - 1, ..now.clone() });
            Ok((now.into.clone(), now.out.clone()))
        })
        .await
    }

    /// The gates of a complete group; the next one may gather.
    fn complete(&self, tx: &Tx) -> Tried<(Group, Gate, Gate)> {
        let now = self.now.read(tx)?;
        tx.check(now.missing == 0)?;
        self.now.write(tx, Gathering::of(self.size));
        Ok((self.clone(), now.into.clone(), now.out.clone()))
    }

    /// After each time the helper is away for a while.
    async fn help_for_ever(self, away: Duration) {
        loop {
            let (into, out) = self.join().await;
            into.pass().await;
            atomically(|tx| self.inside.modify(tx, |n| n + 1)).await;
            out.pass().await;
            sleep(away).await;
        }
    }
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (reindeer, elves) = (Group::new(9), Group::new(3));
        for (group, number, away) in [(&reindeer, 9, 2), (&elves, 10, 1)] {
            for _ in 0..number {
                drop(spawn(group.clone().help_for_ever(Duration::from_millis(away))));
            }
        }
        let (mut deliveries, mut consultations) = (0, 0);
        while deliveries < 5 || consultations < 5 {
            let (group, into, out) =
                atomically(|tx| tx.or_else(|tx| reindeer.complete(tx), |tx| elves.complete(tx))).await;
            into.open(group.size).await;
            // Each of them is in, and none of the next group.
            atomically(|tx| {
                let inside = group.inside.read(tx)?;
                assert!(inside <= group.size, "{inside} helpers are with Santa");
                tx.check(inside == group.size)?;
                group.inside.write(tx, 0);
                Ok(())
            })
            .await;
            match group.size {
                9 => deliveries += 1,
                _ => consultations += 1,
            }
            out.open(group.size).await;
        }
        println!("Santa delivered toys with 9 reindeer, 5 times or more");
        println!("Santa helped elves, 3 at a time, 5 times or more");
        Ok(())
    })
}
