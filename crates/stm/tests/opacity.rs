//! The opacity probe: what attempts see, also attempts that do not commit.
//!
//! `cargo xtask soak` runs the long form: at least 10^8 attempts of each engine.
#![cfg(not(loom))]

#[macro_use]
mod engines;

use selvedge_stm::{Abort, Engine, Figure3, GlobalLock, NOrec, TVar, TWord, Versioned};
use selvedge_stm::{atomically_under, try_atomically_under};
use selvedge_sync::wait_blocking;
use std::any::TypeId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Whether each attempt sees one moment, also one that does not commit.
fn sees_one_moment<E: Engine>() -> bool {
    TypeId::of::<E>() != TypeId::of::<Figure3>()
}

/// What the attempts of a probe have seen.
#[derive(Debug, Default)]
struct Seen {
    attempts: AtomicU64,
    /// Attempts that have seen different values in variables that are always equal.
    broken: AtomicU64,
}

/// One OS thread keeps two variables equal, and a text beside them. Two others look at them until
/// `is_enough`; each attempt of theirs counts. The transactions of one of them commit, those of the
/// other one give up.
fn probe<E: Engine>(is_enough: impl Fn(&Seen) -> bool + Sync) -> Seen {
    let (x, y) = (TWord::<u64, E>::with_engine(0), TWord::<u64, E>::with_engine(0));
    let text = TVar::<_, E>::with_engine("0".to_string());
    let (seen, done) = (Seen::default(), AtomicBool::new(false));
    let look = |gives_up: bool| {
        let (mut attempts, mut broken) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            let look = try_atomically_under::<E, _, _>(|tx| {
                attempts += 1;
                let first = x.read(tx)?;
                (0..attempts % 64).for_each(|_| std::hint::spin_loop());
                if attempts % 16 == 0 && text.read(tx)?.parse() != Ok(first) {
                    broken += 1;
                }
                if y.read(tx)? != first {
                    broken += 1;
                }
                if gives_up { Err::<(), _>(Abort::Error(())) } else { Ok(()) }
            });
            let _ = wait_blocking(look);
            if attempts % 64 == 0 {
                seen.attempts.fetch_add(std::mem::take(&mut attempts), Ordering::Relaxed);
                seen.broken.fetch_add(std::mem::take(&mut broken), Ordering::Relaxed);
            }
        }
        seen.attempts.fetch_add(attempts, Ordering::Relaxed);
        seen.broken.fetch_add(broken, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        scope.spawn(|| look(false));
        scope.spawn(|| look(true));
        let mut n = 0;
        while !is_enough(&seen) {
            for _ in 0..100 {
                n += 1;
                wait_blocking(atomically_under::<E, _>(|tx| {
                    x.write(tx, n);
                    y.write(tx, n);
                    text.write(tx, n.to_string());
                    Ok(())
                }));
            }
            // The readers are to get a share of a machine with few CPUs.
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    seen
}

/// A probe that could see nothing would prove nothing: it goes on until it has seen a zombie of the
/// engine that has them.
fn no_attempt_sees_two_moments<E: Engine>() {
    let begin = Instant::now();
    let limit = Duration::from_millis(if cfg!(miri) { 1 } else { 300 });
    let seen = probe::<E>(|seen| {
        let broken = seen.broken.load(Ordering::Relaxed);
        match sees_one_moment::<E>() || cfg!(miri) {
            true => seen.attempts.load(Ordering::Relaxed) > 0 && begin.elapsed() > limit,
            false => broken > 0 || begin.elapsed() > Duration::from_secs(100),
        }
    });
    assert!(sees_one_moment::<E>() == (seen.broken.into_inner() == 0) || cfg!(miri));
}

/// Another transaction commits in the midst of the first attempt, if the engine lets it. So the
/// engine that is not opaque is caught for sure.
fn a_commit_in_the_midst_is_noticed_in_time<E: Engine>() {
    let (x, y) = (TWord::<u64, E>::with_engine(0), TWord::<u64, E>::with_engine(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (mut attempts, mut broken) = (0, 0);
        wait_blocking(atomically_under::<E, _>(|tx| {
            attempts += 1;
            let first = x.read(tx)?;
            if attempts == 1 {
                scope.spawn(|| {
                    wait_blocking(atomically_under::<E, _>(|tx| {
                        x.modify(tx, |n| n + 1)?;
                        y.modify(tx, |n| n + 1)
                    }));
                    done.store(true, Ordering::Relaxed);
                });
                // Under the global lock it cannot commit before this attempt ends.
                let begin = Instant::now();
                while !done.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_millis(200) {
                    thread::yield_now();
                }
            }
            broken += u32::from(y.read(tx)? != first);
            Ok(())
        }));
        let committed = attempts > 1 || !done.load(Ordering::Relaxed);
        match sees_one_moment::<E>() {
            true => assert_eq!(broken, 0),
            false => assert!(broken > 0 || committed, "{broken} of {attempts} attempts"),
        }
    });
}

under_each_engine! {
    no_attempt_sees_two_moments
    a_commit_in_the_midst_is_noticed_in_time
}

/// The long form. It tells what it has seen.
#[test]
#[ignore = "runs for PROBE_SECONDS and 10^8 attempts of each engine"]
fn soak() {
    let seconds: u64 = std::env::var("PROBE_SECONDS").map_or(60, |text| text.parse().expect("a number"));
    let long = Duration::from_secs(seconds) / 4;
    fn one<E: Engine>(name: &str, long: Duration) -> bool {
        let begin = Instant::now();
        let seen =
            probe::<E>(|seen| begin.elapsed() > long && seen.attempts.load(Ordering::Relaxed) >= 100_000_000);
        let broken = seen.broken.into_inner();
        println!(
            "{name}: {broken} broken of {} attempts in {:?}",
            seen.attempts.into_inner(),
            begin.elapsed()
        );
        sees_one_moment::<E>() == (broken == 0)
    }
    let all = [
        one::<Versioned>("Versioned", long),
        one::<NOrec>("NOrec", long),
        one::<GlobalLock>("GlobalLock", long),
        one::<Figure3>("Figure3", long),
    ];
    assert_eq!(all, [true; 4]);
}
