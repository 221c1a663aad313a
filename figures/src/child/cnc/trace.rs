//! The program of the figure `cnc-trace`: steps of about a microsecond, each with a get and a put,
//! in a graph that is recorded, monitored, or neither. `cnc.rs` calls it.

use super::super::fault;
use super::measured::timed;
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{Items, graph};

/// A microsecond's work: a chain of multiplications and shifts, which no compiler can make shorter.
pub(crate) fn work(n: u64) -> u64 {
    (0..650).fold(n, |x, _| (x ^ (x >> 29)).wrapping_mul(6_364_136_223_846_793_005))
}

/// Steps in a chain of items, in an order in which none misses. `kind`: 0 for none, 1 for a graph
/// that is recorded, 2 for one that is monitored.
pub(super) fn trace(kind: u64, scheduler: &dyn Scheduler, n: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::dense(n as u32 + 1));
        graph.prescribe(tags, "work", move |tag, step| {
            let before: u64 = *step.get(items, tag)?;
            step.put(items, tag + 1, work(before))?;
            if u64::from(tag) + 1 < n { step.put_tag(tags, tag + 1) } else { Ok(()) }
        });
        match kind {
            1 => graph.record(n as usize),
            2 => drop(graph.monitor()),
            _ => {}
        }
        let finished = timed(graph, scheduler, n, |env| {
            env.put(items, 0, 1)?;
            env.put_tag(tags, 0)
        });
        let last = finished.finalize(|view| view.get(items, n as u32).copied().unwrap_or(0));
        println!("last {}", last % 1_000_000_007 + fault());
    });
}
