//! A random graph as a graph of the crate.

use super::spec::{Counts, End, Kept, Kind, Node, Outcome, Pairs, Spec, class, mix};
use selvedge_cnc::schedulers::Scheduler;
use selvedge_cnc::{
    AsyncStep, FaultCause, Graph, GraphError, ItemCol, Items, StepContext, StepResult, TagCol, graph,
};

/// The collections of a random graph.
#[derive(Clone, Copy)]
struct Parts<'a, 'g> {
    spec: &'a Spec,
    counts: Option<&'a Counts>,
    /// The tags of `Kind::Replay`, `Kind::Async`, `Kind::Fork` and `Kind::Depends`.
    tags: [TagCol<'g, u32>; 4],
    ranges: TagCol<'g, (u32, u32)>,
    memoised: TagCol<'g, u32>,
    items: ItemCol<'g, u32, u64>,
    /// A copy of each item. These are never counted.
    results: ItemCol<'g, u32, u64>,
}

/// The effects that both kinds of steps have.
trait Effects<'g> {
    fn put(&self, items: ItemCol<'g, u32, u64>, key: u32, value: u64) -> StepResult;

    fn put_tag<T: selvedge_cnc::ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult;
}

impl<'g> Effects<'g> for StepContext<'g> {
    fn put(&self, items: ItemCol<'g, u32, u64>, key: u32, value: u64) -> StepResult {
        StepContext::put(self, items, key, value)
    }

    fn put_tag<T: selvedge_cnc::ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        StepContext::put_tag(self, tags, tag)
    }
}

impl<'g> Effects<'g> for AsyncStep<'g> {
    fn put(&self, items: ItemCol<'g, u32, u64>, key: u32, value: u64) -> StepResult {
        AsyncStep::put(self, items, key, value)
    }

    fn put_tag<T: selvedge_cnc::ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        AsyncStep::put_tag(self, tags, tag)
    }
}

impl<'a, 'g> Parts<'a, 'g> {
    fn node(&self, i: u32) -> &'a Node {
        &self.spec.nodes[i as usize]
    }

    fn takes(&self, i: u32, item: u32) -> bool {
        self.counts.is_some_and(|counts| counts.takes(i, item))
    }

    fn put_child(&self, step: &impl Effects<'g>, child: u32) -> StepResult {
        match self.node(child).kind {
            Kind::Range => step.put_tag(self.ranges, (child, child + 1)),
            Kind::Memoised => {
                step.put_tag(self.memoised, child)?;
                step.put_tag(self.memoised, child)
            }
            kind => step.put_tag(self.tags[kind as usize], child),
        }
    }

    /// The end of a node, after its gets.
    fn end(&self, step: &impl Effects<'g>, i: u32, value: u64) -> StepResult {
        match self.node(i).end {
            End::Fails => return Err(std::io::Error::other("it fails").into()),
            End::Puts => {
                step.put(self.items, i, value)?;
                step.put(self.results, i, value)?;
            }
            End::Twice => {
                step.put(self.items, i, value)?;
                step.put(self.items, i, !value)?;
            }
            End::Silent => {}
        }
        self.spec.children(i).iter().try_for_each(|&child| self.put_child(step, child))
    }

    /// The gets of a node. What it takes comes last, because a step gets before it takes; the
    /// values are mixed in the order of the needs.
    fn gets(&self, step: &StepContext<'g>, i: u32) -> StepResult<u64> {
        let node = self.node(i);
        let mut values = vec![0; node.needs.len()];
        for (value, &need) in values.iter_mut().zip(&node.needs) {
            if !self.takes(i, need) {
                *value = *step.get(self.items, need)?;
            }
        }
        if node.needs_more {
            // The last key follows from the values, which a take would end. So such a step gets.
            for (value, &need) in values.iter_mut().zip(&node.needs) {
                if self.takes(i, need) {
                    *value = *step.get(self.items, need)?;
                }
            }
            let value = values.into_iter().fold(u64::from(i), mix);
            let more = Spec::more(i, value);
            let is_taken = self.takes(i, more);
            let last = if is_taken { step.take(self.items, more)? } else { *step.get(self.items, more)? };
            return Ok(mix(value, last));
        }
        // Of several takes, the later ones come after an effect. So one is enough.
        let mut has_taken = false;
        let mut taken = None;
        for (at, &need) in node.needs.iter().enumerate() {
            if self.takes(i, need) {
                if has_taken {
                    values[at] = *step.get(self.items, need)?;
                } else {
                    (has_taken, taken) = (true, Some(at));
                }
            }
        }
        if let Some(at) = taken {
            values[at] = step.take(self.items, node.needs[at])?;
        }
        Ok(values.into_iter().fold(u64::from(i), mix))
    }

    /// A node of a kind that may run again.
    fn body(&self, step: &StepContext<'g>, i: u32) -> StepResult {
        let value = self.gets(step, i)?;
        self.end(step, i, value)
    }

    /// As [`gets`](Parts::gets), in an async step, which may take in any order.
    async fn gets_async(&self, step: &AsyncStep<'g>, i: u32) -> StepResult<u64> {
        let node = self.node(i);
        let mut value = u64::from(i);
        let more = node.needs_more.then_some(());
        for at in 0..node.needs.len() + more.map_or(0, |()| 1) {
            let need = node.needs.get(at).copied().unwrap_or_else(|| Spec::more(i, value));
            let item = if self.takes(i, need) {
                step.take(self.items, need).await?
            } else {
                *step.get(self.items, need).await?
            };
            value = mix(value, item);
        }
        Ok(value)
    }
}

impl Spec {
    fn items<'a>(&self, counts: Option<&'a Counts>) -> Items<'a, u32, u64> {
        let extent = self.nodes.len() as u32;
        let items = match self.kept {
            Kept::Dense => Items::dense(extent),
            Kept::Paged => Items::paged(extent),
            Kept::Hashed => Items::hashed(),
            Kept::Streamed => Items::streamed(),
        };
        match counts {
            Some(counts) => items.counted(|&item| Some(counts.of(item))),
            None => items,
        }
    }

    /// What the graph does under a scheduler. With `counts`, the items are counted, and none is
    /// left.
    pub(super) fn run(&self, scheduler: &dyn Scheduler, counts: Option<&Counts>) -> Outcome {
        graph(|graph| {
            graph.finish_after_fault();
            let tags = ["replay", "async", "fork", "depends"].map(|name| graph.tags::<u32>(name));
            let parts = Parts {
                spec: self,
                counts,
                tags,
                ranges: graph.tags("range"),
                memoised: graph.memoised_tags("memoised"),
                items: graph.items_in("items", self.items(counts)),
                results: graph.items("results"),
            };
            let replay = graph.prescribe(tags[0], "node", move |i, step| parts.body(step, i));
            let asynchronous = graph.prescribe_async(tags[1], "node", move |i, step| async move {
                let value = parts.gets_async(&step, i).await?;
                parts.end(&step, i, value)
            });
            let fork = graph.prescribe(tags[2], "node", move |i, step| {
                let value = parts.gets(step, i)?;
                if matches!(parts.node(i).end, End::Fails | End::Twice) {
                    // The faults of a fork have no tag.
                    return parts.end(step, i, value);
                }
                step.fork(move |step| parts.end(step, i, value))
            });
            let depends = graph.prescribe_depends(
                tags[3],
                "node",
                move |i, needs| {
                    let takes = |&&need: &&u32| parts.takes(i, need);
                    let (takes, gets): (Vec<_>, Vec<_>) = parts.node(i).needs.iter().partition(takes);
                    gets.into_iter().try_for_each(|&need| needs.on(parts.items, need))?;
                    takes.into_iter().try_for_each(|&need| needs.to_take(parts.items, need))
                },
                move |i, step| {
                    let mut value = u64::from(i);
                    for &need in &parts.node(i).needs {
                        let taken = parts.takes(i, need);
                        let item = if taken {
                            step.take(parts.items, need)?
                        } else {
                            *step.get(parts.items, need)?
                        };
                        value = mix(value, item);
                    }
                    parts.end(step, i, value)
                },
            );
            let range = graph.prescribe_range(parts.ranges, "node", 1, move |mut range, step| {
                range.try_for_each(|i| parts.body(step, i))
            });
            let memoised = graph.prescribe(parts.memoised, "node", move |i, step| parts.body(step, i));
            for (i, node) in (0..).zip(&self.nodes).filter(|(_, node)| node.cancelled) {
                match node.kind {
                    Kind::Replay => replay.cancel_tag(i),
                    Kind::Async => asynchronous.cancel_tag(i),
                    Kind::Fork => fork.cancel_tag(i),
                    Kind::Depends => depends.cancel_tag(i),
                    Kind::Range => range.cancel_tag((i, i + 1)),
                    Kind::Memoised => memoised.cancel_tag(i),
                }
            }
            graph
                .initialize(|env| self.roots().iter().rev().try_for_each(|&root| parts.put_child(env, root)))
                .unwrap();
            let results: Vec<u32> = match graph.run(scheduler) {
                Ok(finished) => finished.finalize(|view| {
                    let expected = if counts.is_some() { 0 } else { view.iter(parts.results).count() };
                    assert_eq!(view.iter(parts.items).count(), expected);
                    view.iter(parts.results).map(|(i, _)| i).collect()
                }),
                Err(error) => return outcome(error),
            };
            // A second run reduces the results of the first one, and joins them.
            let joined = join(graph, parts.results, &results);
            let (roots, whole) = (graph.tags::<()>("reduce"), graph.item("whole"));
            let key = move |(): &(), n: u32| results.get(n as usize).copied();
            graph.prescribe_reduce(roots, "reduce", parts.results, key, whole, |a, b| mix(*a, *b));
            graph.initialize(|env| env.put_tag(roots, ())).unwrap();
            graph.run(scheduler).unwrap().finalize(|view| {
                let items = view.iter(parts.results).map(|(i, value)| (i, *value)).collect();
                let [of_one_class, of_two_classes] =
                    joined.map(|pairs| view.iter(pairs).map(|(pair, ())| pair).collect());
                let pairs = Pairs { of_one_class, of_two_classes };
                Outcome::Ended(items, view.get(whole, ()).copied(), pairs)
            })
        })
    }
}

/// Adds two joins of a graph's results, by number and by class. Returns the collections in which
/// the graph notes the pairs of both joins: a pair that a join made twice would be put twice.
fn join<'g>(
    graph: &'g Graph<'g, '_>,
    results: ItemCol<'g, u32, u64>,
    numbers: &[u32],
) -> [ItemCol<'g, (u32, u32), ()>; 2] {
    let [noted, noted_by_class] = ["pairs", "pairs by class"].map(|name| graph.items(name));
    let (sides, by_class) = (graph.tags::<u32>("sides"), graph.tags("pairs by class"));
    let [even, odd] = ["even", "odd"].map(|name| graph.tags::<(u32, u32)>(name));
    let ([left, right], pairs) = (["left", "right"].map(|name| graph.tags::<u32>(name)), graph.tags("pairs"));
    graph.prescribe(sides, "side", move |i, step| {
        let class = class(*step.get(results, i)?);
        step.put_tag(if i % 2 == 0 { even } else { odd }, (i, class))?;
        match class {
            0 => step.put_tag(left, i),
            1 => step.put_tag(right, i),
            _ => Ok(()),
        }
    });
    graph.prescribe_join_by(even, |&(_, class)| class, odd, |&(_, class)| class, by_class);
    graph.prescribe(by_class, "note", move |((a, _), (b, _)), step| step.put(noted_by_class, (a, b), ()));
    graph.prescribe_join(left, right, pairs);
    graph.prescribe(pairs, "note", move |pair, step| step.put(noted, pair, ()));
    graph.initialize(|env| numbers.iter().try_for_each(|&i| env.put_tag(sides, i))).unwrap();
    [noted_by_class, noted]
}

/// The number of a node, by the text of its tag: `7`, or `(7, 8)` for a range.
fn number(tag: &str) -> u32 {
    let first = tag.trim_start_matches('(').split(',').next();
    first.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{tag:?} is no node"))
}

/// The outcome of a run that has not ended well.
fn outcome(error: GraphError) -> Outcome {
    match error {
        GraphError::Stuck(stuck) => {
            let item = |item: selvedge_cnc::MissingItem| {
                let mut steps: Vec<u32> = item.steps.iter().map(|(_, tag)| number(tag)).collect();
                steps.sort_unstable();
                (number(&item.key), steps)
            };
            Outcome::Stuck(stuck.items.into_iter().map(item).collect())
        }
        GraphError::Failed(faults) => {
            let is_meant =
                |why: &FaultCause| matches!(why, FaultCause::Error(_) | FaultCause::DoublePut { .. });
            assert!(faults.iter().all(|fault| is_meant(fault.why())), "{faults:?}");
            let mut failed: Vec<u32> = faults.iter().map(|fault| number(fault.tag())).collect();
            failed.sort_unstable();
            Outcome::Failed(failed)
        }
        error => panic!("{error}"),
    }
}
