//! Random graphs, against an interpreter that evaluates their nodes one after the other.

use std::collections::BTreeMap;

use selvedge_cnc::schedulers::{OneByOne, Scheduler, Stealing, TaskPool};
use selvedge_cnc::{GraphError, Items, MissingItem, graph};

/// The next number of a random sequence.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn mix(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A step with a number for a tag. All that it needs has a smaller number.
struct Node {
    kind: u64,
    /// The node that puts its tag; the environment does if there is none.
    parent: Option<u32>,
    needs: Vec<u32>,
    /// Whether it also needs an item that depends on the values of the others.
    needs_more: bool,
    /// Whether it puts its item.
    puts: bool,
}

struct Spec {
    nodes: Vec<Node>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Spec {
    fn random(seed: u64) -> Spec {
        let seed = &mut (seed + 1);
        let count = 20 + random(seed) as u32 % if cfg!(miri) { 10 } else { 200 };
        let silent = random(seed) % 4;
        let mut children = BTreeMap::<u32, Vec<u32>>::new();
        let nodes = (0..count)
            .map(|i| {
                let below = |seed: &mut u64| (random(seed) % u64::from(i.max(1))) as u32;
                let parent = (i > 0 && !random(seed).is_multiple_of(3)).then(|| below(seed));
                children.entry(parent.unwrap_or(u32::MAX)).or_default().push(i);
                let needs = if i == 0 { 0 } else { random(seed) % 4 };
                Node {
                    kind: random(seed) % 3,
                    parent,
                    needs: (0..needs).map(|_| below(seed)).collect(),
                    needs_more: needs > 0 && random(seed).is_multiple_of(2),
                    puts: silent > 0 || !random(seed).is_multiple_of(20),
                }
            })
            .collect();
        Spec { nodes, children }
    }

    /// The key that node `i` gets after the others, with this value.
    fn more(i: u32, value: u64) -> u32 {
        (value % u64::from(i)) as u32
    }

    /// The items, and for each missing one the steps that wait for it.
    fn interpret(&self) -> (BTreeMap<u32, u64>, BTreeMap<u32, Vec<u32>>) {
        let (mut items, mut waiting) = (BTreeMap::new(), BTreeMap::<u32, Vec<u32>>::new());
        let mut ended = vec![false; self.nodes.len()];
        for (i, node) in (0..).zip(&self.nodes) {
            if node.parent.is_some_and(|parent| !ended[parent as usize]) {
                continue;
            }
            let mut value = u64::from(i);
            let more = node.needs_more.then_some(());
            let mut needs = node.needs.iter().copied();
            let missing = loop {
                let Some(need) = needs.next() else {
                    break more.map(|()| Spec::more(i, value)).filter(|more| !items.contains_key(more));
                };
                match items.get(&need) {
                    Some(got) => value = mix(value, *got),
                    None => break Some(need),
                }
            };
            if let Some(missing) = missing {
                waiting.entry(missing).or_default().push(i);
                continue;
            }
            if node.needs_more {
                value = mix(value, items[&Spec::more(i, value)]);
            }
            ended[i as usize] = true;
            if node.puts {
                items.insert(i, value);
            }
        }
        (items, waiting)
    }

    /// The same by a graph.
    fn run(&self, scheduler: &dyn Scheduler) -> Result<BTreeMap<u32, u64>, Vec<MissingItem>> {
        graph(|graph| {
            let tags = [graph.tags::<u32>("replay"), graph.tags("async"), graph.tags("forks")];
            let items = graph.items_with("items", Items::dense(self.nodes.len() as u32));
            let tags_of = move |children: &[u32]| -> Vec<_> {
                children
                    .iter()
                    .map(|&child| (tags[self.nodes[child as usize].kind as usize], child))
                    .collect()
            };
            let node = |i: u32| (&self.nodes[i as usize], self.children.get(&i).map_or(&[][..], |c| c));
            graph.prescribe(tags[0], "node", move |i, step| {
                let (node, children) = node(i);
                let mut value = u64::from(i);
                for &need in &node.needs {
                    value = mix(value, *step.get(items, need)?);
                }
                if node.needs_more {
                    value = mix(value, *step.get(items, Spec::more(i, value))?);
                }
                if node.puts {
                    step.put(items, i, value)?;
                }
                tags_of(children).into_iter().try_for_each(|(tags, child)| step.put_tag(tags, child))
            });
            graph.prescribe_async(tags[1], "node", move |i, step| async move {
                let (node, children) = node(i);
                let mut value = u64::from(i);
                for &need in &node.needs {
                    value = mix(value, *step.get(items, need).await?);
                }
                if node.needs_more {
                    value = mix(value, *step.get(items, Spec::more(i, value)).await?);
                }
                if node.puts {
                    step.put(items, i, value)?;
                }
                tags_of(children).into_iter().try_for_each(|(tags, child)| step.put_tag(tags, child))
            });
            graph.prescribe(tags[2], "node", move |i, step| {
                let (node, children) = node(i);
                let mut value = u64::from(i);
                for &need in &node.needs {
                    value = mix(value, *step.get(items, need)?);
                }
                if node.needs_more {
                    value = mix(value, *step.get(items, Spec::more(i, value))?);
                }
                // Through a fork, which puts for the step.
                let puts = node.puts;
                step.fork(move |step| {
                    if puts {
                        step.put(items, i, value)?;
                    }
                    tags_of(children).into_iter().try_for_each(|(tags, child)| step.put_tag(tags, child))
                })
            });
            let roots = self.children.get(&u32::MAX).map_or(&[][..], |roots| roots);
            graph
                .initialize(|env| {
                    tags_of(roots).into_iter().rev().try_for_each(|(tags, root)| env.put_tag(tags, root))
                })
                .unwrap();
            match graph.run(scheduler) {
                Ok(finished) => {
                    Ok(finished.finalize(|view| view.iter(items).map(|(i, value)| (i, *value)).collect()))
                }
                Err(GraphError::Stuck(stuck)) => Err(stuck.items),
                Err(error) => panic!("{error}"),
            }
        })
    }
}

#[test]
fn random_graphs_end_as_the_interpreter_says() {
    let (mut stuck, mut ended) = (0, 0);
    for seed in 0..if cfg!(miri) { 4 } else { 80 } {
        let spec = Spec::random(seed);
        let (items, waiting) = spec.interpret();
        let expected = if waiting.is_empty() {
            ended += 1;
            Ok(items)
        } else {
            stuck += 1;
            Err(waiting
                .iter()
                .map(|(key, steps)| (key.to_string(), steps.iter().map(u32::to_string).collect::<Vec<_>>()))
                .collect::<Vec<_>>())
        };
        let workers = 1 + seed as usize % 4;
        let schedulers: [&dyn Scheduler; 4] =
            [&OneByOne, &Stealing::new(workers), &TaskPool::fuzz(workers, seed), &TaskPool::fifo(workers)];
        for (number, scheduler) in schedulers.into_iter().enumerate() {
            let tags = |item: MissingItem| (item.key, item.steps.into_iter().map(|(_, tag)| tag).collect());
            let found = spec.run(scheduler).map_err(|items| items.into_iter().map(tags).collect());
            assert_eq!(found, expected, "seed {seed}, scheduler {number}");
        }
    }
    assert!(stuck > 0 && ended > 0);
}
