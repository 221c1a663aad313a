//! The order of a recorded run once more: [`Replay`]. `record.rs` has the order as text,
//! [`RunOrder`].
//!
//! `Recording::order` makes the order, and `Graph::run` calls `Replay::run`. A test or a debugger
//! uses it to see one schedule again.
//!
//! A step is named by its line, that is, its name and its tag. Instances with the same line (a tag
//! that was put twice) are taken in the order in which they became ready. They have the same code
//! and the same tag, so one does what the other would.

use super::{GraphJob, Scheduler};
use crate::ready_step::ReadyStep;
use crate::record::{RunOrder, line};
use crate::step::Worker;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::iter;

/// Runs the steps on the calling OS thread, in the order of a recorded run.
///
/// A record of one worker is repeated exactly. Of a record of several workers, the steps run one
/// after the other in the order in which they began. A step that had begun before its item was
/// there may now find it, so that it does not run a second time. Steps that the order does not name
/// run at the end.
///
/// # Examples
/// See [`Graph::record`](crate::Graph::record).
#[derive(Clone, Debug)]
pub struct Replay {
    order: RunOrder,
}

impl Replay {
    /// In an order, which [`Recording::order`](crate::Recording::order) returns.
    pub fn new(order: RunOrder) -> Replay {
        Replay { order }
    }
}

/// The steps that are ready, by the order in which they became so, and by their lines.
#[derive(Default)]
struct StepsByLine<'g> {
    made: u64,
    steps: BTreeMap<u64, ReadyStep<'g>>,
    lines: HashMap<String, VecDeque<u64>>,
}

impl<'g> StepsByLine<'g> {
    fn add(&mut self, ready: ReadyStep<'g>) {
        self.made += 1;
        let line = line(ready.step(), ready.entry.twin, &ready.tag_in_record());
        self.lines.entry(line).or_default().push_back(self.made);
        self.steps.insert(self.made, ready);
    }

    /// Takes the oldest step with a line.
    fn take(&mut self, line: &str) -> Option<ReadyStep<'g>> {
        let number = self.lines.get_mut(line)?.pop_front()?;
        self.steps.remove(&number)
    }

    fn run(&mut self, worker: &mut Worker<'g>, ready: ReadyStep<'g>) {
        worker.run(ready);
        iter::from_fn(|| worker.oldest()).for_each(|ready| self.add(ready));
    }
}

impl Scheduler for Replay {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let mut worker = job.worker();
        let mut steps = StepsByLine::default();
        job.start().into_iter().for_each(|ready| steps.add(ready));
        for line in self.order.lines() {
            if let Some(ready) = steps.take(line) {
                steps.run(&mut worker, ready);
            }
        }
        while let Some((_, ready)) = steps.steps.pop_first() {
            steps.run(&mut worker, ready);
        }
    }
}
