//! A bank: transfers between two accounts, and audits of all accounts; with transactions, and with
//! locks of the standard library.

use super::threads::{print, seed, threads};
use super::variable::Variable;
use crate::child::cores::{burst, os_threads};
use crate::child::fault;
use selvedge_stm::atomically_under;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The accounts of the bank.
pub(crate) const ACCOUNTS: u64 = 1024;
/// The balance of each account at the begin.
pub(crate) const BALANCE: u64 = 1000;

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
pub(super) fn bank<V: Variable>(workers: u64, n: u64, every: u64, total: u64) {
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
                    atomically_under::<V::Engine, _>(|tx| {
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
                atomically_under::<V::Engine, _>(|tx| {
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
pub(super) fn bank_locks(n: u64, every: u64, total: u64) {
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
pub(super) fn bank_lock(n: u64, every: u64, total: u64) {
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
