//! The programs of the figure `cnc-items`: puts and gets of items in each kind of storage, and an
//! array of `OnceLock`s beside them. `cnc.rs` calls `items` and `once_lock`.
//!
//! The kind is a number of the command line, which the figure gives too: see `items`. All puts end
//! before the first get, so that no get misses its item.

use super::super::clock::Times;
use super::super::fault;
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{ItemKey, Items, graph};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Kinds: 0 an array, 1 pages, 2 hashed keys that fit in a word, 3 hashed keys that do not.
pub(super) fn items(kind: u64, scheduler: &dyn Scheduler, n: u32) {
    let side = n.div_ceil(1024);
    let pair = |number: u32| (number / 1024, number % 1024);
    match kind {
        0 => with(Items::dense((side, 1024)), pair, scheduler, n),
        1 => with(Items::paged((side, 1024)), pair, scheduler, n),
        2 => with(Items::hashed(), pair, scheduler, n),
        _ => with(Items::hashed(), |n| (u64::from(n / 1024), u64::from(n % 1024)), scheduler, n),
    }
}

/// Range steps put all items, and then others get all of them. Prints how many million items were
/// put and got in a second.
fn with<K: ItemKey>(
    items: Items<'_, K, u64>,
    key: impl Fn(u32) -> K + Copy + Send + Sync,
    scheduler: &dyn Scheduler,
    n: u32,
) {
    let sum = AtomicU64::new(0);
    graph(|graph| {
        let (puts, gets) = (graph.tags("puts"), graph.tags("gets"));
        let items = graph.items_in("items", items);
        let sum = &sum;
        graph.prescribe_range(puts, "put", 4096, move |numbers, step| {
            numbers.into_iter().try_for_each(|number| step.put(items, key(number), u64::from(number)))
        });
        graph.prescribe_range(gets, "get", 4096, move |numbers, step| {
            let mut part = 0;
            for number in numbers {
                part += *step.get(items, key(number))?;
            }
            sum.fetch_add(part, Ordering::Relaxed);
            Ok(())
        });
        let first = Times::now();
        for loops in [puts, gets] {
            graph
                .initialize(|env| {
                    env.put_tag(loops, (0, n / 2))?;
                    env.put_tag(loops, (n / 2, n))
                })
                .unwrap_or_else(|error| panic!("{error}"));
            graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
        }
        print_rate(first, n);
    });
    println!("sum {}", sum.into_inner() + fault());
}

fn print_rate(first: Times, n: u32) {
    println!("rate {:.4}", f64::from(n) / 1e6 / first.seconds_until(Times::now()));
}

/// An array of cells that are set once, by OS threads.
pub(super) fn once_lock(workers: usize, n: u32) {
    let items: Vec<OnceLock<u64>> = (0..n).map(|_| OnceLock::new()).collect();
    let sum = AtomicU64::new(0);
    let part = (n as usize).div_ceil(workers);
    let first = Times::now();
    thread::scope(|scope| {
        for (number, items) in items.chunks(part).enumerate() {
            scope.spawn(move || {
                for (at, item) in items.iter().enumerate() {
                    item.set((number * part + at) as u64).expect("each is set once");
                }
            });
        }
    });
    thread::scope(|scope| {
        for items in items.chunks(part) {
            let sum = &sum;
            scope.spawn(move || {
                let part: u64 = items.iter().filter_map(OnceLock::get).sum();
                sum.fetch_add(part, Ordering::Relaxed);
            });
        }
    });
    print_rate(first, n);
    println!("sum {}", sum.into_inner());
}
