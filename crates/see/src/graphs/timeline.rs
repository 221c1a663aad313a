//! The timeline of a graph of steps, in the format of the crate's `timeline.rs`:
//! [`graph_timeline_json`].

use crate::timeline::microseconds;
use selvedge_cnc::{Recording, StepRun};
use selvedge_json as json;

/// What a graph has recorded, in the Chrome trace event format: a JSON array of complete events in
/// the order in which the steps began. The graph is the process 0; each worker is a thread of it.
/// An event is called as its step is, and has the tag among its arguments, and whether the step
/// missed an item.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::Stealing};
/// use selvedge::see::graph_timeline_json;
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let timeline = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("numbers");
///     let squares = graph.items("squares");
///     graph.prescribe(tags, "square", move |n, step| step.put(squares, n, n * n));
///     graph.record(1_000);
///     graph.initialize(|env| (0..10).try_for_each(|n| env.put_tag(tags, n)))?;
///     graph.run(&Stealing::new(2))?;
///     Ok::<_, cnc::GraphError>(graph_timeline_json(&graph.recording()))
/// })?;
/// assert_eq!(timeline.matches(r#""name":"square""#).count(), 10);
/// # Ok(())
/// # }
/// ```
pub fn graph_timeline_json(recording: &Recording) -> String {
    let mut workers: Vec<usize> = recording.runs.iter().map(|run| run.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    let names = workers.into_iter().map(GraphLine::Worker);
    let lines = names.chain(recording.runs.iter().map(GraphLine::Run));
    json::text(|json| {
        json.array(lines, |json, line| {
            json.object(|json| {
                json.number("pid", 0);
                match line {
                    GraphLine::Worker(worker) => {
                        json.string("ph", "M");
                        json.number("tid", worker);
                        json.string("name", "thread_name");
                        json.member("args", |json| {
                            json.object(|json| json.string("name", &format!("worker {worker}")));
                        });
                    }
                    GraphLine::Run(run) => write(run, json),
                }
            });
        });
    })
}

enum GraphLine<'r> {
    Worker(usize),
    Run(&'r StepRun),
}

fn write(run: &StepRun, json: &mut json::Json) {
    json.string("ph", "X");
    json.number("tid", run.worker);
    json.number("ts", microseconds(run.began.as_nanos() as u64));
    json.number("dur", microseconds(run.ended.saturating_sub(run.began).as_nanos() as u64));
    json.string("name", &run.step);
    json.string("cat", "step");
    json.member("args", |json| {
        json.object(|json| {
            json.string("tag", &run.tag);
            json.string("end", if run.missed { "missed" } else { "ended" });
        });
    });
}
