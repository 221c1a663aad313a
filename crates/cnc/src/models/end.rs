//! A model of workers that steal, sleep, are called, and end together.

use crate::schedulers::circle::{Closed, WorkerCircle};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Tally, Ordering};

/// Workers run items that make others, `item - 1` each, until there are none. Each item is run, and
/// each worker ends.
pub fn workers_end_together(workers: usize, first: &[u32]) {
    let (circle, rings) = WorkerCircle::<u32, 4>::new(workers);
    let (circle, ran) = (Arc::new(circle), Arc::new(Tally::new(0)));
    let expected: u32 = first.iter().map(|item| item + 1).sum();
    let threads: Vec<_> = rings
        .into_iter()
        .enumerate()
        .map(|(me, mut ring)| {
            let (circle, ran) = (circle.clone(), ran.clone());
            let mine: Vec<u32> = if me == 0 { first.to_vec() } else { Vec::new() };
            let work = move || {
                for item in mine {
                    ring.push(item).expect("the ring has room");
                }
                let mut batch = Vec::new();
                while let Some(item) = batch
                    .pop()
                    .or_else(|| circle.own(me, &mut ring))
                    .or_else(|| circle.given(&mut batch))
                    .or_else(|| circle.find(me, &mut ring, &mut batch, &mut Closed))
                {
                    // Other workers may go on while the item runs.
                    thread::yield_now();
                    ran.fetch_add(1, Ordering::Relaxed);
                    // One half goes the way of a ring, the other one that of the injector.
                    match item {
                        0 => {}
                        1 => circle.give(0),
                        _ => ring.push(item - 1).expect("the ring has room"),
                    }
                    if !ring.is_empty() && ring.is_wanted() {
                        circle.surplus(me);
                    }
                }
                // No worker ends before the last item was run.
                assert_eq!(ran.load(Ordering::Relaxed), expected as usize);
            };
            thread::spawn(work)
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(ran.load(Ordering::Relaxed), expected as usize);
}
