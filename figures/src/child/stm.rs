//! Transactions: `counters.rs` and `bank.rs` have the programs about variables, `retry.rs` the
//! programs that wait, and `sets.rs` the programs about data structures.
//!
//! The programs of the peers do the same: `figures/peers/haskell/Stm.hs`, `figures/peers/rust` and
//! `figures/peers/c/stm.c`.
//!
//! `child.rs` calls `run` for the names that begin with `stm-`; the figures are in
//! `figures/src/stm.rs`.

mod bank;
mod counters;
mod list;
mod retry;
mod set;
pub(crate) mod sets;
mod threads;
mod tree;
mod variable;

use selvedge_stm::{Figure3, GlobalLock, NOrec, TVar, TWord, Versioned};

pub(crate) use self::bank::{ACCOUNTS, BALANCE};
pub(crate) use self::counters::size_sum;
use self::variable::Variable;

/// Runs the program `PROGRAM` or `PROGRAM-KIND`, where KIND is that of the variables: words of the
/// default engine, if it is left out.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<(), String> {
    if let Some(program) = name.strip_suffix("-boxed") {
        return of_kind::<TVar<u64, Versioned>>(program, numbers);
    }
    if let Some(program) = name.strip_suffix("-global-lock") {
        return of_kind::<TWord<u64, GlobalLock>>(program, numbers);
    }
    if let (Some(structure), &[threads, range, updates, total]) = (name.strip_prefix("set-"), numbers) {
        return sets::run(structure, sets::SetMix { threads, range, updates, total });
    }
    if let Some(program) = name.strip_suffix("-figure3") {
        return of_kind::<TWord<u64, Figure3>>(program, numbers);
    }
    if let Some(program) = name.strip_suffix("-norec") {
        return of_kind::<TWord<u64, NOrec>>(program, numbers);
    }
    match (name, numbers) {
        ("ping-pong", &[workers, total]) => retry::ping_pong(workers, total),
        ("herd", &[waiters, writes]) => retry::herd_predicate(waiters, writes),
        ("herd-retry", &[waiters, writes]) => retry::herd_retry(waiters, writes),
        ("parked", &[threads]) => retry::parked(threads),
        ("bank-locks", &[threads, every, total]) => bank::bank_locks(threads, every, total),
        ("bank-lock", &[threads, every, total]) => bank::bank_lock(threads, every, total),
        _ => return of_kind::<TWord<u64, Versioned>>(name, numbers),
    }
    Ok(())
}

fn of_kind<V: Variable>(program: &str, numbers: &[u64]) -> Result<(), String> {
    match (program, numbers) {
        ("counter", &[workers, threads, total]) => counters::counter::<V>(workers, threads, total),
        ("counter-os", &[threads, total]) => counters::counter_os::<V>(threads, total),
        ("size", &[reads, writes, total]) => counters::size::<V>(reads, writes, total),
        ("disjoint", &[workers, threads, total]) => counters::disjoint::<V>(workers, threads, total),
        ("bank", &[workers, threads, every, total]) => bank::bank::<V>(workers, threads, every, total),
        _ => return Err(format!("no such program of transactions: {program} {numbers:?}")),
    }
    Ok(())
}
