//! The program of the figure `cnc-miss` about steps that wait for ever. `cnc.rs` calls it.

use super::super::clock::Times;
use super::super::fault;
use super::measured::print_times;
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{GraphError, Items, graph};

/// Steps each of which waits for an item that is never put. The time is that of the run with its
/// report, and of the report's text.
pub(super) fn stuck(scheduler: &dyn Scheduler, n: u64) {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::<_, u64>::dense(n as u32));
        graph.prescribe(tags, "wait", move |tag, step| step.get(items, tag).map(|_| ()));
        graph
            .initialize(|env| (0..n as u32).try_for_each(|tag| env.put_tag(tags, tag)))
            .unwrap_or_else(|error| panic!("{error}"));
        let first = Times::now();
        let end = graph.run(scheduler).map(|_| ());
        let text = end.as_ref().map_or_else(GraphError::to_string, |()| String::new());
        print_times(first, n);
        assert!(text.contains("item items[0]: step wait(0)"), "{text}");
        let Err(GraphError::Stuck(stuck)) = end else { panic!("the steps wait for ever") };
        let waiting: usize = stuck.items.iter().map(|item| item.steps.len()).sum();
        println!("waiting {}", waiting as u64 + fault());
    });
}
