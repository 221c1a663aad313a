//! The Rust crates for transactions, and dashmap, on as many threads as they are told.
//!
//! ```text
//! usage: stm-rust CRATE-counter THREADS TOTAL | CRATE-size READS WRITES TOTAL
//!        stm-rust CRATE-disjoint THREADS TOTAL | CRATE-bank THREADS EVERY TOTAL
//!        stm-rust CRATE-ping-pong TOTAL
//!        stm-rust async-stm-herd WAITERS WRITES | async-stm-parked THREADS
//!        stm-rust dashmap-set THREADS RANGE UPDATES TOTAL
//! ```
//! CRATE is `stm`, `fast-stm` or `async-stm`. The first two run on OS threads, the last one as
//! tasks of tokio. The programs print `name value` lines, as those of `figures` do; what each of
//! them does is said there, in `figures/src/child/stm`.
#![forbid(unsafe_code)]

use async_stm::guard as async_guard;
use dashmap::DashSet;
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::future::Future;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

const ACCOUNTS: usize = 1024;
const BALANCE: u64 = 1000;

/// A moment, on the clock of this process's CPU time and on the wall's.
#[derive(Clone, Copy)]
struct Times {
    cpu_ns: f64,
    wall: Instant,
}

impl Times {
    fn now() -> Times {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
        Times { cpu_ns: cpu.tv_sec() as f64 * 1e9 + cpu.tv_nsec() as f64, wall: Instant::now() }
    }

    fn print_as(self, name: &str, last: Times, operations: u64) {
        println!("{name} {:.4}", (last.cpu_ns - self.cpu_ns) / operations as f64);
    }

    fn print_until(self, last: Times, operations: u64) {
        self.print_as("ns", last, operations);
        let wall = (last.wall - self.wall).as_nanos() as f64;
        println!("wall_ns {:.4}", wall / operations as f64);
        println!("rate {:.4}", operations as f64 * 1e3 / wall);
    }
}

/// The anonymous memory that is resident.
fn rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux tells a process its size");
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("there is such a line");
    let kib: u64 = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse().ok()).expect("it is in kB");
    kib * 1024
}

/// A xorshift generator.
fn next(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

/// The generator of one thread.
fn seed(thread: u64) -> u64 {
    (0..16).fold(thread + 1, |x, _| next(x))
}

/// The next transfer: from which account to which.
fn transfer(x: u64) -> (usize, usize) {
    let (from, to) = (x as usize % ACCOUNTS, (x >> 20) as usize % ACCOUNTS);
    (from, if from == to { (to + 1) % ACCOUNTS } else { to })
}

/// OS threads that each do their part; the moments before and after.
fn os_threads(threads: u64, part: impl Fn(u64) + Sync) -> (Times, Times) {
    let (ready, start) = (Barrier::new(threads as usize + 1), Barrier::new(threads as usize + 1));
    let first = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (ready, start, part) = (&ready, &start, &part);
            scope.spawn(move || {
                ready.wait();
                start.wait();
                part(thread);
            });
        }
        ready.wait();
        let first = Times::now();
        start.wait();
        first
    });
    (first, Times::now())
}

/// A runtime with one worker for each thread.
fn runtime(threads: u64) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads as usize).build().expect("the system has threads")
}

/// Tasks of tokio that each do their part; the moments before and after.
fn tasks<F: Future<Output = ()> + Send + 'static>(threads: u64, part: impl Fn(u64) -> F) -> (Times, Times) {
    let runtime = runtime(threads);
    let first = Times::now();
    let tasks: Vec<_> = (0..threads).map(|thread| runtime.spawn(part(thread))).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("the task does not panic");
        }
    });
    (first, Times::now())
}

/// The programs of the two crates that have one interface.
macro_rules! on_os_threads {
    ($module:ident, $stm:ident) => {
        mod $module {
            use super::*;
            use $stm::{TVar, atomically, guard};

            fn count_one(counter: &TVar<u64>) {
                atomically(|tx| {
                    let count = counter.read(tx)?;
                    counter.write(tx, count + 1)
                });
            }

            pub(super) fn counter(threads: u64, total: u64) {
                let counter = TVar::new(0_u64);
                let part = |_| (0..total / threads).for_each(|_| count_one(&counter));
                let (first, last) = os_threads(threads, part);
                first.print_until(last, total);
                println!("count {}", counter.read_atomic());
            }

            pub(super) fn disjoint(threads: u64, total: u64) {
                let counters: Vec<_> = (0..threads * 8).map(|_| TVar::new(0_u64)).collect();
                let part = |thread| {
                    let counter = &counters[thread as usize * 8];
                    (0..total / threads).for_each(|_| count_one(counter));
                };
                let (first, last) = os_threads(threads, part);
                first.print_until(last, total);
                println!("count {}", counters.iter().map(TVar::read_atomic).sum::<u64>());
            }

            pub(super) fn size(reads: u64, writes: u64, total: u64) {
                let variables: Vec<_> = (0..reads).map(|_| TVar::new(1_u64)).collect();
                let mut sum = 0;
                let first = Times::now();
                for _ in 0..total {
                    sum += atomically(|tx| {
                        let mut sum = 0;
                        for (at, variable) in variables.iter().enumerate() {
                            let value = variable.read(tx)?;
                            sum += value;
                            if at < writes as usize {
                                variable.write(tx, value + 1)?;
                            }
                        }
                        Ok(sum)
                    });
                }
                first.print_until(Times::now(), total);
                println!("sum {}", sum + variables.iter().map(TVar::read_atomic).sum::<u64>());
            }

            pub(super) fn bank(threads: u64, every: u64, total: u64) {
                let accounts: Vec<_> = (0..ACCOUNTS).map(|_| TVar::new(BALANCE)).collect();
                let (audits, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
                let part = |thread| {
                    let mut x = seed(thread);
                    for operation in 1..=total / threads {
                        if every != 0 && operation % every == 0 {
                            let sum = atomically(|tx| {
                                let mut sum = 0;
                                for account in &accounts {
                                    sum += account.read(tx)?;
                                }
                                Ok(sum)
                            });
                            audits.fetch_add(1, Ordering::Relaxed);
                            wrong.fetch_add(u64::from(sum != ACCOUNTS as u64 * BALANCE), Ordering::Relaxed);
                            continue;
                        }
                        x = next(x);
                        let (from, to) = transfer(x);
                        atomically(|tx| {
                            let there = accounts[from].read(tx)?;
                            if there > 0 {
                                accounts[from].write(tx, there - 1)?;
                                let there = accounts[to].read(tx)?;
                                accounts[to].write(tx, there + 1)?;
                            }
                            Ok(())
                        });
                    }
                };
                let (first, last) = os_threads(threads, part);
                first.print_until(last, total);
                println!("audits {}", audits.into_inner());
                println!("wrong {}", wrong.into_inner());
                println!("total {}", accounts.iter().map(TVar::read_atomic).sum::<u64>());
            }

            fn pass(from: &TVar<Option<u64>>, to: &TVar<Option<u64>>) {
                let token = atomically(|tx| {
                    let token = from.read(tx)?;
                    guard(token.is_some())?;
                    from.write(tx, None)?;
                    Ok(token.unwrap_or_default())
                });
                atomically(|tx| {
                    guard(to.read(tx)?.is_none())?;
                    to.write(tx, Some(token + 1))
                });
            }

            pub(super) fn ping_pong(total: u64) {
                let (ping, pong) = (TVar::new(Some(0)), TVar::new(None));
                let part = |thread| {
                    let (from, to) = if thread == 0 { (&ping, &pong) } else { (&pong, &ping) };
                    (0..total).for_each(|_| pass(from, to));
                };
                let (first, last) = os_threads(2, part);
                first.print_until(last, total);
                println!("token {}", ping.read_atomic().unwrap_or_default());
            }
        }
    };
}

on_os_threads!(of_stm, stm);
on_os_threads!(of_fast_stm, fast_stm);

/// async-stm: its transactions are awaited.
mod of_async_stm {
    use super::*;
    use async_stm::{TVar, atomically};

    async fn count_one(counter: &TVar<u64>) {
        atomically(|| counter.update(|count| count + 1)).await;
    }

    async fn now(variable: &TVar<u64>) -> u64 {
        atomically(|| variable.read_clone()).await
    }

    async fn sum_now(variables: &[TVar<u64>]) -> u64 {
        let mut sum = 0;
        for variable in variables {
            sum += now(variable).await;
        }
        sum
    }

    fn variables(count: u64, value: u64) -> Arc<Vec<TVar<u64>>> {
        Arc::new((0..count).map(|_| TVar::new(value)).collect())
    }

    /// Counters of which each thread has one, or all have the first.
    fn count(threads: u64, total: u64, apart: u64) {
        let counters = variables(threads * 8, 0);
        let (first, last) = tasks(threads, |thread| {
            let counters = counters.clone();
            async move {
                for _ in 0..total / threads {
                    count_one(&counters[(thread * apart) as usize]).await;
                }
            }
        });
        first.print_until(last, total);
        println!("count {}", runtime(1).block_on(sum_now(&counters)));
    }

    pub(super) fn counter(threads: u64, total: u64) {
        count(threads, total, 0);
    }

    pub(super) fn disjoint(threads: u64, total: u64) {
        count(threads, total, 8);
    }

    pub(super) fn size(reads: u64, writes: u64, total: u64) {
        let variables = variables(reads, 1);
        let sums = Arc::new(AtomicU64::new(0));
        let (first, last) = tasks(1, |_| {
            let (variables, sums) = (variables.clone(), sums.clone());
            async move {
                let mut sum = 0;
                for _ in 0..total {
                    sum += atomically(|| {
                        let mut sum = 0;
                        for (at, variable) in variables.iter().enumerate() {
                            let value = *variable.read()?;
                            sum += value;
                            if at < writes as usize {
                                variable.write(value + 1)?;
                            }
                        }
                        Ok(sum)
                    })
                    .await;
                }
                sums.store(sum, Ordering::Relaxed);
            }
        });
        first.print_until(last, total);
        let sum = sums.load(Ordering::Relaxed) + runtime(1).block_on(sum_now(&variables));
        println!("sum {sum}");
    }

    pub(super) fn bank(threads: u64, every: u64, total: u64) {
        let accounts = variables(ACCOUNTS as u64, BALANCE);
        let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let (first, last) = tasks(threads, |thread| {
            let (accounts, counts) = (accounts.clone(), counts.clone());
            async move {
                let mut x = seed(thread);
                for operation in 1..=total / threads {
                    if every != 0 && operation % every == 0 {
                        let sum = atomically(|| {
                            let mut sum = 0;
                            for account in accounts.iter() {
                                sum += *account.read()?;
                            }
                            Ok(sum)
                        })
                        .await;
                        counts.0.fetch_add(1, Ordering::Relaxed);
                        counts.1.fetch_add(u64::from(sum != ACCOUNTS as u64 * BALANCE), Ordering::Relaxed);
                        continue;
                    }
                    x = next(x);
                    let (from, to) = transfer(x);
                    atomically(|| {
                        let there = *accounts[from].read()?;
                        if there > 0 {
                            accounts[from].write(there - 1)?;
                            accounts[to].update(|there| there + 1)?;
                        }
                        Ok(())
                    })
                    .await;
                }
            }
        });
        first.print_until(last, total);
        println!("audits {}", counts.0.load(Ordering::Relaxed));
        println!("wrong {}", counts.1.load(Ordering::Relaxed));
        println!("total {}", runtime(1).block_on(sum_now(&accounts)));
    }

    async fn pass(from: &TVar<Option<u64>>, to: &TVar<Option<u64>>) {
        let token = atomically(|| {
            let token = *from.read()?;
            async_guard(token.is_some())?;
            from.write(None)?;
            Ok(token.unwrap_or_default())
        })
        .await;
        atomically(|| {
            async_guard(to.read()?.is_none())?;
            to.write(Some(token + 1))
        })
        .await;
    }

    pub(super) fn ping_pong(total: u64) {
        Builder::new_current_thread().build().expect("a runtime").block_on(async {
            let (ping, pong) = (TVar::new(Some(0)), TVar::new(None));
            let first = Times::now();
            let other = tokio::spawn({
                let (ping, pong) = (ping.clone(), pong.clone());
                async move {
                    for _ in 0..total {
                        pass(&pong, &ping).await;
                    }
                }
            });
            for _ in 0..total {
                pass(&ping, &pong).await;
            }
            other.await.expect("the task does not panic");
            first.print_until(Times::now(), total);
            println!("token {}", atomically(|| ping.read_clone()).await.unwrap_or_default());
        });
    }

    pub(super) fn herd(waiters: u64, writes: u64) {
        Builder::new_current_thread().build().expect("a runtime").block_on(async {
            let level = TVar::new(0_u64);
            let waiting: Vec<_> = (0..waiters)
                .map(|_| {
                    let level = level.clone();
                    tokio::spawn(async move { atomically(|| async_guard(*level.read()? >= writes)).await })
                })
                .collect();
            yield_now().await;
            let first = Times::now();
            for write in 1..=writes {
                atomically(|| level.write(write)).await;
                yield_now().await;
            }
            first.print_until(Times::now(), writes);
            let mut finished = 0;
            for waiter in waiting {
                waiter.await.expect("the task does not panic");
                finished += 1;
            }
            println!("finished {finished}");
        });
    }

    pub(super) fn parked(threads: u64) {
        Builder::new_current_thread().build().expect("a runtime").block_on(async {
            let (started, finished) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let open = TVar::new(false);
            let before = rss_bytes();
            for _ in 0..threads {
                let (started, finished, open) = (started.clone(), finished.clone(), open.clone());
                tokio::spawn(async move {
                    started.fetch_add(1, Ordering::Relaxed);
                    atomically(|| async_guard(*open.read()?)).await;
                    finished.fetch_add(1, Ordering::Relaxed);
                });
            }
            while started.load(Ordering::Relaxed) < threads {
                yield_now().await;
            }
            println!("bytes {:.3}", (rss_bytes() - before) as f64 / threads as f64);
            println!("live {}", threads - finished.load(Ordering::Relaxed));
            let first = Times::now();
            atomically(|| open.write(true)).await;
            while finished.load(Ordering::Relaxed) < threads {
                yield_now().await;
            }
            first.print_as("wake_ns", Times::now(), threads);
            println!("finished {}", finished.load(Ordering::Relaxed));
        });
    }
}

/// The program of sets, over dashmap.
fn dashmap_set(threads: u64, range: u64, updates: u64, total: u64) {
    let set: DashSet<u64> = (0..range).filter(|key| key / 2 % 2 == 0).collect();
    let (found, changed) = (AtomicU64::new(0), AtomicU64::new(0));
    let part = |thread| {
        let mut x = seed(thread);
        let (mut seen, mut moved) = (0, 0);
        for _ in 0..total / threads {
            x = next(x);
            let key = x % range;
            let (key, die) = (key - key % threads + thread, (x >> 32) % 100);
            match die * 2 {
                twice if twice < updates => moved += u64::from(set.insert(key)),
                _ if die < updates => moved += u64::from(set.remove(&key).is_some()),
                _ => seen += u64::from(set.contains(&key)),
            }
        }
        found.fetch_add(seen, Ordering::Relaxed);
        changed.fetch_add(moved, Ordering::Relaxed);
    };
    let (first, last) = os_threads(threads, part);
    first.print_until(last, total);
    println!("found {}", found.into_inner());
    println!("changed {}", changed.into_inner());
    println!("sum {}", set.into_iter().sum::<u64>());
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
    match (words.first().map(String::as_str).unwrap_or_default(), numbers.as_slice()) {
        ("stm-counter", &[threads, total]) => of_stm::counter(threads, total),
        ("stm-size", &[reads, writes, total]) => of_stm::size(reads, writes, total),
        ("stm-disjoint", &[threads, total]) => of_stm::disjoint(threads, total),
        ("stm-bank", &[threads, every, total]) => of_stm::bank(threads, every, total),
        ("stm-ping-pong", &[total]) => of_stm::ping_pong(total),
        ("fast-stm-counter", &[threads, total]) => of_fast_stm::counter(threads, total),
        ("fast-stm-size", &[reads, writes, total]) => of_fast_stm::size(reads, writes, total),
        ("fast-stm-disjoint", &[threads, total]) => of_fast_stm::disjoint(threads, total),
        ("fast-stm-bank", &[threads, every, total]) => of_fast_stm::bank(threads, every, total),
        ("fast-stm-ping-pong", &[total]) => of_fast_stm::ping_pong(total),
        ("async-stm-counter", &[threads, total]) => of_async_stm::counter(threads, total),
        ("async-stm-size", &[reads, writes, total]) => of_async_stm::size(reads, writes, total),
        ("async-stm-disjoint", &[threads, total]) => of_async_stm::disjoint(threads, total),
        ("async-stm-bank", &[threads, every, total]) => of_async_stm::bank(threads, every, total),
        ("async-stm-ping-pong", &[total]) => of_async_stm::ping_pong(total),
        ("async-stm-herd", &[waiters, writes]) => of_async_stm::herd(waiters, writes),
        ("async-stm-parked", &[threads]) => of_async_stm::parked(threads),
        ("dashmap-set", &[threads, range, updates, total]) => dashmap_set(threads, range, updates, total),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
