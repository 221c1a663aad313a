//! Sets of keys, which threads look into and change.
//!
//! Each thread has its own share of the keys, so the answers of its operations do not depend on the
//! order of the threads; all shares are in one structure.
//!
//! `stm.rs` calls the programs for the figure `stm-sets`. The structures are the library's,
//! `list.rs` and `tree.rs`.

use super::list::List;
use super::set::Set;
use super::threads::{print, seed, threads};
use super::tree::RedBlackTree;
use crate::child::cores::{burst, os_threads};
use crate::child::fault;
use selvedge_stm::{TSet, Tried, Tx, atomically, atomically_blocking};
use std::collections::{BTreeSet, HashSet};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads do what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetMix {
    pub(crate) threads: u64,
    /// The keys are below this, and half of them are there at the begin.
    pub(crate) range: u64,
    /// Insertions and removals in a hundred operations, as many of each.
    pub(crate) updates: u64,
    /// Operations of all threads together.
    pub(crate) total: u64,
}

/// The checked answers of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Keys that were found.
    pub(crate) found: u64,
    /// Keys that were put in or taken out.
    pub(crate) changed: u64,
    /// The sum of the keys that are there at the end.
    pub(crate) sum: u64,
}

enum SetOperation {
    Has(u64),
    Insert(u64),
    Remove(u64),
}

impl SetMix {
    /// The keys at the begin. A run that is to be wrong lacks the last one.
    fn keys(self) -> impl Iterator<Item = u64> {
        let keys = (0..self.range).filter(|key| key / 2 % 2 == 0);
        keys.take(self.range as usize / 2 - fault() as usize)
    }

    fn operations(self, thread: u64) -> impl Iterator<Item = SetOperation> {
        let mut x = seed(thread);
        (0..self.total / self.threads).map(move |_| {
            x = burst(x, 1);
            let (drawn, die) = (x % self.range, (x >> 32) % 100);
            let key = drawn - drawn % self.threads + thread;
            match () {
                () if die * 2 < self.updates => SetOperation::Insert(key),
                () if die < self.updates => SetOperation::Remove(key),
                () => SetOperation::Has(key),
            }
        })
    }

    /// The right answers, by a set of the standard library.
    pub(crate) fn answers(self) -> Answers {
        let mut set: BTreeSet<u64> = self.keys().collect();
        let mut answers = Answers::default();
        for thread in 0..self.threads {
            for operation in self.operations(thread) {
                match operation {
                    SetOperation::Has(key) => answers.found += u64::from(set.contains(&key)),
                    SetOperation::Insert(key) => answers.changed += u64::from(set.insert(key)),
                    SetOperation::Remove(key) => answers.changed += u64::from(set.remove(&key)),
                }
            }
        }
        Answers { sum: set.iter().sum(), ..answers }
    }
}

/// A set of the standard library.
trait Collection: FromIterator<u64> + Send + Sync {
    fn has(&self, key: u64) -> bool;
    fn insert(&mut self, key: u64) -> bool;
    fn remove(&mut self, key: u64) -> bool;
    fn sum(&self) -> u64;
}

/// Sorted, as the keys at the begin are.
impl Collection for Vec<u64> {
    fn has(&self, key: u64) -> bool {
        self.binary_search(&key).is_ok()
    }

    fn insert(&mut self, key: u64) -> bool {
        self.binary_search(&key).map_err(|at| Vec::insert(self, at, key)).is_err()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.binary_search(&key).map(|at| Vec::remove(self, at)).is_ok()
    }

    fn sum(&self) -> u64 {
        self.iter().sum()
    }
}

impl Collection for BTreeSet<u64> {
    fn has(&self, key: u64) -> bool {
        self.contains(&key)
    }

    fn insert(&mut self, key: u64) -> bool {
        BTreeSet::insert(self, key)
    }

    fn remove(&mut self, key: u64) -> bool {
        BTreeSet::remove(self, &key)
    }

    fn sum(&self) -> u64 {
        self.iter().sum()
    }
}

impl Collection for HashSet<u64> {
    fn has(&self, key: u64) -> bool {
        self.contains(&key)
    }

    fn insert(&mut self, key: u64) -> bool {
        HashSet::insert(self, key)
    }

    fn remove(&mut self, key: u64) -> bool {
        HashSet::remove(self, &key)
    }

    fn sum(&self) -> u64 {
        self.iter().sum()
    }
}

impl Set for TSet<u64> {
    fn new() -> Self {
        TSet::new()
    }

    fn has<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        self.contains(tx, &key)
    }

    fn insert<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        TSet::insert(self, tx, key)
    }

    fn remove<'tx>(&'tx self, tx: &'tx Tx, key: u64) -> Tried<bool> {
        TSet::remove(self, tx, &key)
    }

    fn keys(&self, tx: &Tx) -> Tried<Vec<u64>> {
        self.iter(tx).map(|key| key.copied()).collect()
    }
}

/// Runs the program over a structure.
///
/// # Errors
/// When there is no such structure.
pub(super) fn run(name: &str, mix: SetMix) -> Result<(), String> {
    match name {
        "list" => transactions::<List>(mix),
        "tree" => transactions::<RedBlackTree>(mix),
        "map" => transactions::<TSet<u64>>(mix),
        "list-lock" => locked::<Vec<u64>>(mix),
        "tree-lock" => locked::<BTreeSet<u64>>(mix),
        "map-lock" => locked::<HashSet<u64>>(mix),
        _ => return Err(format!("no such set: {name}")),
    }
    Ok(())
}

/// The counts of all threads.
#[derive(Debug, Default)]
struct Counts {
    found: AtomicU64,
    changed: AtomicU64,
}

impl Counts {
    fn add(&self, found: u64, changed: u64) {
        self.found.fetch_add(found, Ordering::Relaxed);
        self.changed.fetch_add(changed, Ordering::Relaxed);
    }

    fn print(&self, sum: u64) {
        println!("found {}", self.found.load(Ordering::Relaxed));
        println!("changed {}", self.changed.load(Ordering::Relaxed));
        println!("sum {sum}");
    }
}

/// Threads of ours, of which each operation is a transaction.
fn transactions<S: Set>(mix: SetMix) {
    static COUNTS: Counts = Counts { found: AtomicU64::new(0), changed: AtomicU64::new(0) };
    let set = S::new();
    for key in mix.keys() {
        atomically_blocking(|tx| set.insert(tx, key));
    }
    let shared = set.clone();
    let times = threads(mix.threads, mix.threads, move |thread| {
        let set = shared.clone();
        async move {
            let (mut found, mut changed) = (0, 0);
            for operation in mix.operations(thread) {
                match operation {
                    SetOperation::Has(key) => found += u64::from(atomically(|tx| set.has(tx, key)).await),
                    SetOperation::Insert(key) => {
                        changed += u64::from(atomically(|tx| set.insert(tx, key)).await)
                    }
                    SetOperation::Remove(key) => {
                        changed += u64::from(atomically(|tx| set.remove(tx, key)).await)
                    }
                }
            }
            COUNTS.add(found, changed);
        }
    });
    print(times, mix.total);
    COUNTS.print(atomically_blocking(|tx| set.keys(tx)).iter().sum());
}

/// OS threads with one collection of the standard library under one lock.
fn locked<C: Collection>(mix: SetMix) {
    let set: RwLock<C> = RwLock::new(mix.keys().collect());
    let counts = Counts::default();
    let read = || set.read().expect("no panic under this lock");
    let write = || set.write().expect("no panic under this lock");
    let times = os_threads(mix.threads, |thread| {
        let (mut found, mut changed) = (0, 0);
        for operation in mix.operations(thread) {
            match operation {
                SetOperation::Has(key) => found += u64::from(read().has(key)),
                SetOperation::Insert(key) => changed += u64::from(write().insert(key)),
                SetOperation::Remove(key) => changed += u64::from(write().remove(key)),
            }
        }
        counts.add(found, changed);
    });
    print(times, mix.total);
    counts.print(read().sum());
}
