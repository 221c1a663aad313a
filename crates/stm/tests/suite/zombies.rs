//! Attempts of the engine `Figure3` that have seen two moments: what becomes of them.

use selvedge_stm::{Abort, Figure3, TVar, TWord, Tx, atomically_under, try_atomically_under};
use selvedge_sync::wait_blocking;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Two variables that are always equal.
struct Pair {
    x: TWord<usize, Figure3>,
    y: TVar<usize, Figure3>,
}

impl Pair {
    fn new() -> Pair {
        Pair { x: TWord::with_engine(0), y: TVar::with_engine(0) }
    }

    /// Another OS thread adds one to both.
    fn add_one(&self) {
        let add = || {
            wait_blocking(atomically_under::<Figure3, _>(|tx| {
                self.x.modify(tx, |n| n + 1)?;
                self.y.modify(tx, |n| n + 1)
            }));
        };
        thread::scope(|scope| scope.spawn(add).join()).expect("no panic");
    }

    /// What an attempt sees when another one commits between its reads.
    fn read(&self, tx: &Tx<Figure3>, is_zombie: bool) -> selvedge_stm::Tried<(usize, usize)> {
        let x = self.x.read(tx)?;
        if is_zombie {
            self.add_one();
        }
        Ok((x, *self.y.read(tx)?))
    }
}

#[test]
fn a_panic_of_a_zombie_goes_no_further() {
    let (pair, mut attempts) = (Pair::new(), 0);
    let seen = wait_blocking(atomically_under::<Figure3, _>(|tx| {
        attempts += 1;
        let (x, y) = pair.read(tx, attempts == 1)?;
        // The zombie indexes out of bounds.
        let table = vec![7; x + 1];
        Ok(table[y])
    }));
    assert_eq!((attempts, seen), (2, 7));
}

#[test]
fn a_panic_of_an_attempt_that_holds_goes_on() {
    let (pair, mut attempts) = (Pair::new(), 0);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        wait_blocking(atomically_under::<Figure3, ()>(|tx| {
            attempts += 1;
            let (x, y) = pair.read(tx, attempts == 1)?;
            panic!("{}", x + y);
        }));
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"2".to_string()));
    assert_eq!(attempts, 2);
}

#[test]
fn an_error_of_a_zombie_is_not_returned() {
    let (pair, mut attempts) = (Pair::new(), 0);
    let result = wait_blocking(try_atomically_under::<Figure3, _, _>(|tx| {
        attempts += 1;
        match pair.read(tx, attempts == 1)? {
            (x, y) if x == y => Ok(x),
            differ => Err(Abort::Error(differ)),
        }
    }));
    assert_eq!((attempts, result), (2, Ok(1)));
}

#[test]
fn a_zombie_that_only_reads_does_not_commit() {
    let (pair, mut attempts) = (Pair::new(), 0);
    let seen = wait_blocking(atomically_under::<Figure3, _>(|tx| {
        attempts += 1;
        pair.read(tx, attempts == 1)
    }));
    assert_eq!((attempts, seen), (2, (1, 1)));
}

/// It reads the same variable again and again, so its log does not grow.
#[test]
fn a_zombie_that_loops_is_abandoned() {
    let (pair, mut attempts, mut rounds) = (Pair::new(), 0, 0);
    wait_blocking(atomically_under::<Figure3, _>(|tx| {
        attempts += 1;
        let (x, _) = pair.read(tx, attempts == 1)?;
        while *pair.y.read(tx)? != x {
            rounds += 1;
        }
        Ok(())
    }));
    assert_eq!(attempts, 2);
    assert!((1..64).contains(&rounds), "{rounds}");
}

#[test]
fn a_zombie_that_retries_does_not_wait() {
    let (pair, mut attempts) = (Pair::new(), 0);
    wait_blocking(atomically_under::<Figure3, _>(|tx| {
        attempts += 1;
        let (x, y) = pair.read(tx, attempts == 1)?;
        tx.check(x == y)
    }));
    assert_eq!(attempts, 2);
}
