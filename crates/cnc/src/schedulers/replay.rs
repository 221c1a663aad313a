//! The order of a recorded run once more: [`Replay`], with the order as text, [`RunOrder`].
//!
//! `Recording::order` makes the order, and `Graph::run` calls `Replay::run`. A test or a debugger
//! uses it to see one schedule again.
//!
//! A step is named by its line, that is, its name and its tag. Instances with the same line (a tag
//! that was put twice) are taken in the order in which they became ready. They have the same code
//! and the same tag, so one does what the other would.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::str::FromStr;
use std::{convert, fmt, iter};

use super::{GraphJob, Scheduler};
use crate::code::ReadyStep;
use crate::step::Worker;

/// The order in which steps began, a line for each: its name, a tabulator, and its tag. Of several
/// steps with one name, the second has ` (2)` behind its name. The tag of a forked step is a number
/// that is the same in each run. The text is for files; it is read with `parse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrder(Vec<String>);

/// A line of a [`RunOrder`]. `twin` steps before this one have the same name.
fn line(step: &str, twin: usize, tag: &str) -> String {
    let twin = if twin == 0 { String::new() } else { format!(" ({})", twin + 1) };
    format!("{step}{twin}\t{tag}").replace('\n', " ")
}

impl RunOrder {
    /// Of steps in their order: the name of each, how many steps before it have the same name, and
    /// its tag.
    pub(crate) fn of<'a>(steps: impl Iterator<Item = (&'a str, usize, &'a str)>) -> RunOrder {
        RunOrder(steps.map(|(step, twin, tag)| line(step, twin, tag)).collect())
    }
}

impl fmt::Display for RunOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl FromStr for RunOrder {
    type Err = convert::Infallible;

    fn from_str(text: &str) -> Result<RunOrder, convert::Infallible> {
        Ok(RunOrder(text.lines().map(str::to_owned).collect()))
    }
}

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
        for line in &self.order.0 {
            if let Some(ready) = steps.take(line) {
                steps.run(&mut worker, ready);
            }
        }
        while let Some((_, ready)) = steps.steps.pop_first() {
            steps.run(&mut worker, ready);
        }
    }
}
