//! Transactions: a counter, transactions of several sizes, counters that no two threads share, a
//! bank. `retry.rs` has the programs that wait, `sets.rs` those with data structures.
//!
//! The programs of the peers do the same: `figures/peers/haskell/Stm.hs`, `figures/peers/rust` and
//! `figures/peers/c/stm.c`.
//!
//! `child.rs` calls `run` for the names that begin with `stm-`; the figures are in
//! `figures/src/stm.rs`.

mod list;
mod retry;
pub(crate) mod sets;
mod tree;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use selvedge_stm::{Engine, Figure3, GlobalLock, NOrec, TVar, TWord, Tried, Tx, Versioned, atomically_with};
use selvedge_sync::wait_blocking;

use super::clock::Times;
use super::cores::{burst, os_threads};
use super::fault;
use super::runtime::{Ours, Runtime, Waits};

/// The accounts of the bank.
pub(crate) const ACCOUNTS: u64 = 1024;
/// The balance of each account at the begin.
pub(crate) const BALANCE: u64 = 1000;

/// A shared number, for the transactions of one engine.
trait Variable: Clone + Send + Sync + 'static {
    type Engine: Engine;
    fn new(value: u64) -> Self;
    fn read(&self, tx: &Tx<Self::Engine>) -> Tried<u64>;
    fn write(&self, tx: &Tx<Self::Engine>, value: u64);
    fn now(&self) -> u64;
}

impl<E: Engine> Variable for TWord<u64, E> {
    type Engine = E;

    fn new(value: u64) -> Self {
        TWord::with_engine(value)
    }

    #[inline]
    fn read(&self, tx: &Tx<E>) -> Tried<u64> {
        TWord::read(self, tx)
    }

    #[inline]
    fn write(&self, tx: &Tx<E>, value: u64) {
        TWord::write(self, tx, value);
    }

    fn now(&self) -> u64 {
        self.read_now()
    }
}

impl<E: Engine> Variable for TVar<u64, E> {
    type Engine = E;

    fn new(value: u64) -> Self {
        TVar::with_engine(value)
    }

    #[inline]
    fn read(&self, tx: &Tx<E>) -> Tried<u64> {
        TVar::read(self, tx).copied()
    }

    #[inline]
    fn write(&self, tx: &Tx<E>, value: u64) {
        TVar::write(self, tx, value);
    }

    fn now(&self) -> u64 {
        self.read_now(|value| *value)
    }
}

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
        ("bank-locks", &[threads, every, total]) => bank_locks(threads, every, total),
        ("bank-lock", &[threads, every, total]) => bank_lock(threads, every, total),
        _ => return of_kind::<TWord<u64, Versioned>>(name, numbers),
    }
    Ok(())
}

fn of_kind<V: Variable>(program: &str, numbers: &[u64]) -> Result<(), String> {
    match (program, numbers) {
        ("counter", &[workers, threads, total]) => counter::<V>(workers, threads, total),
        ("counter-os", &[threads, total]) => counter_os::<V>(threads, total),
        ("size", &[reads, writes, total]) => size::<V>(reads, writes, total),
        ("disjoint", &[workers, threads, total]) => disjoint::<V>(workers, threads, total),
        ("bank", &[workers, threads, every, total]) => bank::<V>(workers, threads, every, total),
        _ => return Err(format!("no such program of transactions: {program} {numbers:?}")),
    }
    Ok(())
}

/// The generator of one thread.
fn seed(thread: u64) -> u64 {
    burst(thread + 1, 16)
}

/// Threads of ours that each do their part; the moments before and after.
fn threads<F>(workers: u64, threads: u64, part: impl Fn(u64) -> F + Send + 'static) -> (Times, Times)
where
    F: Future<Output = ()> + Send + 'static,
{
    Ours::run(workers as usize, Waits::Nothing, async move {
        let first = Times::now();
        let handles: Vec<_> = (0..threads).map(|thread| Ours::spawn(part(thread))).collect();
        for handle in handles {
            handle.await;
        }
        (first, Times::now())
    })
}

fn print((first, last): (Times, Times), operations: u64) {
    first.print_until(last, operations);
    println!("rate {:.4}", operations as f64 / first.seconds_until(last) / 1e6);
}

async fn count_one<V: Variable>(counter: &V) {
    atomically_with::<V::Engine, _>(|tx| {
        let count = counter.read(tx)?;
        counter.write(tx, count + 1);
        Ok(())
    })
    .await;
}

/// Threads of ours that count together.
fn counter<V: Variable>(workers: u64, n: u64, total: u64) {
    let counter = V::new(0);
    let shared = counter.clone();
    let times = threads(workers, n, move |_| {
        let counter = shared.clone();
        async move {
            for _ in 0..total / n - fault() {
                count_one(&counter).await;
            }
        }
    });
    print(times, total);
    println!("count {}", counter.now());
}

/// OS threads that count together.
fn counter_os<V: Variable>(n: u64, total: u64) {
    let counter = V::new(0);
    let times = os_threads(n, |_| {
        for _ in 0..total / n - fault() {
            wait_blocking(count_one(&counter));
        }
    });
    print(times, total);
    println!("count {}", counter.now());
}

/// Counters of which each thread has one. They are so far apart that they share no cache line.
fn disjoint<V: Variable>(workers: u64, n: u64, total: u64) {
    const APART: usize = 8;
    let counters: Vec<V> = (0..n as usize * APART).map(|_| V::new(0)).collect();
    let shared = counters.clone();
    let times = threads(workers, n, move |thread| {
        let counter = shared[thread as usize * APART].clone();
        async move {
            for _ in 0..total / n - fault() {
                count_one(&counter).await;
            }
        }
    });
    print(times, total);
    println!("count {}", counters.iter().map(V::now).sum::<u64>());
}

/// Transactions of one thread that read `reads` variables and write the first `writes` of them.
fn size<V: Variable>(reads: u64, writes: u64, total: u64) {
    let variables: Vec<V> = (0..reads).map(|at| V::new(if at == 0 { 1 + fault() } else { 1 })).collect();
    Ours::run(0, Waits::Nothing, async move {
        let mut sum = 0;
        let first = Times::now();
        for _ in 0..total {
            sum += atomically_with::<V::Engine, _>(|tx| {
                let mut sum = 0;
                for (at, variable) in variables.iter().enumerate() {
                    let value = variable.read(tx)?;
                    sum += value;
                    if at < writes as usize {
                        variable.write(tx, value + 1);
                    }
                }
                Ok(sum)
            })
            .await;
        }
        print((first, Times::now()), total);
        println!("sum {}", sum + variables.iter().map(V::now).sum::<u64>());
    });
}

/// The sum that `size` prints: of all values that were read, and of those at the end.
pub(crate) fn size_sum(reads: u64, writes: u64, total: u64) -> u64 {
    reads * (total + 1) + writes * total * (total - 1) / 2 + writes * total
}

/// The accounts of the next transfer.
fn transfer(x: u64) -> (usize, usize) {
    let (from, to) = (x % ACCOUNTS, (x >> 20) % ACCOUNTS);
    (from as usize, (if from == to { (to + 1) % ACCOUNTS } else { to }) as usize)
}

/// The number of audits of a bank, and the number that saw a wrong sum.
#[derive(Debug, Default)]
struct Audits {
    all: AtomicU64,
    wrong: AtomicU64,
}

impl Audits {
    fn see(&self, sum: u64) {
        self.wrong.fetch_add(u64::from(sum != ACCOUNTS * BALANCE), Ordering::Relaxed);
    }

    fn print(&self, total: u64) {
        println!("wrong {}", self.wrong.load(Ordering::Relaxed));
        println!("audits {}", self.all.load(Ordering::Relaxed));
        println!("total {total}");
    }
}

/// The balances at the begin. A run that is to be wrong lacks a coin.
fn balances() -> impl Iterator<Item = u64> {
    (0..ACCOUNTS).map(|account| if account == 7 { BALANCE - fault() } else { BALANCE })
}

/// Transfers of one coin between two accounts, and audits of all accounts: each `every`th operation
/// of a thread is one, none if that is 0.
fn bank<V: Variable>(workers: u64, n: u64, every: u64, total: u64) {
    let accounts: Arc<Vec<V>> = Arc::new(balances().map(V::new).collect());
    let audits = Arc::new(Audits::default());
    let shared = (accounts.clone(), audits.clone());
    let times = threads(workers, n, move |thread| {
        let (accounts, audits) = shared.clone();
        async move {
            let mut x = seed(thread);
            for operation in 1..=total / n {
                if every != 0 && operation % every == 0 {
                    // Each attempt looks at its sum, also one that will not commit.
                    atomically_with::<V::Engine, _>(|tx| {
                        let mut sum = 0;
                        for account in accounts.iter() {
                            sum += account.read(tx)?;
                        }
                        audits.see(sum);
                        Ok(())
                    })
                    .await;
                    audits.all.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                x = burst(x, 1);
                let (from, to) = transfer(x);
                atomically_with::<V::Engine, _>(|tx| {
                    let there = accounts[from].read(tx)?;
                    if there > 0 {
                        accounts[from].write(tx, there - 1);
                        let there = accounts[to].read(tx)?;
                        accounts[to].write(tx, there + 1);
                    }
                    Ok(())
                })
                .await;
            }
        }
    });
    print(times, total);
    audits.print(accounts.iter().map(V::now).sum());
}

/// The operations of one thread of a bank, by two functions.
fn bank_part(
    thread: u64,
    every: u64,
    operations: u64,
    audit: impl Fn(),
    transfer_between: impl Fn(usize, usize),
) {
    let mut x = seed(thread);
    for operation in 1..=operations {
        if every != 0 && operation % every == 0 {
            audit();
            continue;
        }
        x = burst(x, 1);
        let (from, to) = transfer(x);
        transfer_between(from, to);
    }
}

/// The bank of OS threads with the standard library's mutex for each account. A transfer locks its
/// two, and an audit all of them, in the order of the accounts.
fn bank_locks(n: u64, every: u64, total: u64) {
    let accounts: Vec<Mutex<u64>> = balances().map(Mutex::new).collect();
    let lock = |account: usize| accounts[account].lock().expect("no panic under this lock");
    let audits = Audits::default();
    let audit = || {
        let held: Vec<_> = (0..accounts.len()).map(lock).collect();
        audits.see(held.iter().map(|balance| **balance).sum());
        audits.all.fetch_add(1, Ordering::Relaxed);
    };
    let transfer_between = |from: usize, to: usize| {
        let (first, second) = (lock(from.min(to)), lock(from.max(to)));
        let (mut from, mut to) = if from < to { (first, second) } else { (second, first) };
        if *from > 0 {
            *from -= 1;
            *to += 1;
        }
    };
    let times = os_threads(n, |thread| bank_part(thread, every, total / n, audit, transfer_between));
    print(times, total);
    audits.print((0..accounts.len()).map(|account| *lock(account)).sum());
}

/// The bank of OS threads with one mutex of the standard library for all accounts.
fn bank_lock(n: u64, every: u64, total: u64) {
    let accounts: Mutex<Vec<u64>> = Mutex::new(balances().collect());
    let lock = || accounts.lock().expect("no panic under this lock");
    let audits = Audits::default();
    let audit = || {
        audits.see(lock().iter().sum());
        audits.all.fetch_add(1, Ordering::Relaxed);
    };
    let transfer_between = |from: usize, to: usize| {
        let mut accounts = lock();
        if accounts[from] > 0 {
            accounts[from] -= 1;
            accounts[to] += 1;
        }
    };
    let times = os_threads(n, |thread| bank_part(thread, every, total / n, audit, transfer_between));
    print(times, total);
    audits.print(lock().iter().sum());
}
