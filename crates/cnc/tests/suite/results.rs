//! A graph's result is the same under every scheduler.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Scheduler};
use selvedge_cnc::{Graph, GraphError, ItemCol, ItemKey, Items, StepResult, graph};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// The hash of all items of a collection, in the order of their keys.
fn digest<'g, K, V>(graph: &'g Graph<'g, '_>, scheduler: &dyn Scheduler, items: ItemCol<'g, K, V>) -> u64
where
    K: ItemKey,
    V: Hash + Send + Sync,
{
    graph.run(scheduler).unwrap_or_else(|error| panic!("{error}")).finalize(|view| {
        let mut hasher = DefaultHasher::new();
        view.iter(items).for_each(|item| item.hash(&mut hasher));
        hasher.finish()
    })
}

/// Runs a program under every scheduler, and compares its digests.
fn same_everywhere(program: impl Fn(&dyn Scheduler) -> u64) {
    let expected = program(&OneByOne);
    each(|name, scheduler| assert_eq!(program(scheduler), expected, "{name}"));
}

const SIDE: u32 = if cfg!(miri) { 5 } else { 24 };

/// Puts the border of a wavefront.
fn border<'g>(env: &selvedge_cnc::StepContext<'g>, matrix: ItemCol<'g, (u32, u32), u64>) -> StepResult {
    env.put(matrix, (0, 0), 1)?;
    (1..SIDE)
        .try_for_each(|i| env.put(matrix, (0, i), u64::from(i)).and_then(|()| env.put(matrix, (i, 0), 3)))
}

/// How the items of a wavefront are kept, by its extent.
type Kept = fn((u32, u32)) -> Items<'static, (u32, u32), u64>;

fn wavefront(scheduler: &dyn Scheduler, items: Kept) -> u64 {
    graph(|graph| {
        let tags = graph.tags::<(u32, u32)>("cells");
        let matrix = graph.items_in("matrix", items((SIDE, SIDE)));
        graph.prescribe(tags, "wavestep", move |(i, j), step| {
            let nw = *step.get(matrix, (i - 1, j - 1))?;
            let w = *step.get(matrix, (i - 1, j))?;
            let n = *step.get(matrix, (i, j - 1))?;
            step.put(matrix, (i, j), nw.wrapping_mul(3).wrapping_add(w).wrapping_add(n))
        });
        graph
            .initialize(|env| {
                border(env, matrix)?;
                (1..SIDE).rev().try_for_each(|i| (1..SIDE).rev().try_for_each(|j| env.put_tag(tags, (i, j))))
            })
            .unwrap();
        digest(graph, scheduler, matrix)
    })
}

#[test]
fn a_wavefront_in_dense_items() {
    same_everywhere(|scheduler| wavefront(scheduler, Items::dense));
}

#[test]
fn a_wavefront_in_pages() {
    same_everywhere(|scheduler| wavefront(scheduler, Items::paged));
}

#[test]
fn a_wavefront_in_hashed_words() {
    same_everywhere(|scheduler| wavefront(scheduler, |_| Items::hashed()));
}

#[test]
fn the_three_kinds_of_storage_agree() {
    let one = wavefront(&OneByOne, Items::dense);
    assert_eq!(one, wavefront(&OneByOne, Items::paged));
    assert_eq!(one, wavefront(&OneByOne, |_| Items::hashed()));
}

#[test]
fn a_wavefront_of_declared_and_of_async_steps() {
    same_everywhere(|scheduler| {
        graph(|graph| {
            let even = graph.tags::<(u32, u32)>("even");
            let odd = graph.tags::<(u32, u32)>("odd");
            let matrix = graph.items_in("matrix", Items::dense((SIDE, SIDE)));
            graph.prescribe_depends(
                even,
                "declared",
                move |(i, j), needs| {
                    needs.on(matrix, (i - 1, j - 1))?;
                    needs.on(matrix, (i - 1, j))?;
                    needs.on(matrix, (i, j - 1))
                },
                move |(i, j), step| {
                    let nw: u64 = *step.get(matrix, (i - 1, j - 1))?;
                    let w = *step.get(matrix, (i - 1, j))?;
                    let n = *step.get(matrix, (i, j - 1))?;
                    step.put(matrix, (i, j), nw.wrapping_mul(3).wrapping_add(w).wrapping_add(n))
                },
            );
            graph.prescribe_async(odd, "async", move |(i, j), step| async move {
                let nw = *step.get(matrix, (i - 1, j - 1)).await?;
                let w = *step.get(matrix, (i - 1, j)).await?;
                let n = *step.get(matrix, (i, j - 1)).await?;
                step.put(matrix, (i, j), nw.wrapping_mul(3).wrapping_add(w).wrapping_add(n))
            });
            graph
                .initialize(|env| {
                    border(env, matrix)?;
                    (1..SIDE).try_for_each(|i| {
                        (1..SIDE)
                            .rev()
                            .try_for_each(|j| env.put_tag(if (i + j) % 2 == 0 { even } else { odd }, (i, j)))
                    })
                })
                .unwrap();
            let digest = digest(graph, scheduler, matrix);
            assert_eq!(digest, wavefront(&OneByOne, Items::dense));
            digest
        })
    });
}

#[test]
fn tags_and_keys_that_do_not_fit_in_a_word() {
    same_everywhere(|scheduler| {
        graph(|graph| {
            let words = graph.tags::<String>("words");
            let seen = graph.items::<String, usize>("seen");
            graph.prescribe(words, "halve", move |word, step| {
                if word.len() < 2 {
                    return step.put(seen, word, 1);
                }
                let (left, right) = word.split_at(word.len() / 2);
                let both = *step.get(seen, left.into())? + *step.get(seen, right.into())?;
                step.put(seen, word, both)
            });
            graph
                .initialize(|env| {
                    ["abcd", "ab", "cd", "d", "c", "b", "a"]
                        .into_iter()
                        .try_for_each(|word| env.put_tag(words, word.into()))
                })
                .unwrap();
            digest(graph, scheduler, seen)
        })
    });
}

#[test]
fn several_steps_of_one_tag_collection_each_run_once() {
    same_everywhere(|scheduler| {
        graph(|graph| {
            let tags = graph.memoised_tags::<u32>("tags");
            let items = graph.items::<(u32, bool), u32>("items");
            graph.prescribe(tags, "one", move |n, step| {
                step.put(items, (n, false), n)?;
                step.put_tag(tags, (n * 7 + 1) % 50)
            });
            graph.prescribe(tags, "other", move |n, step| {
                let one = *step.get(items, (n, false))?;
                step.put(items, (n, true), one + 1)?;
                step.put_tag(tags, (n + 11) % 50)
            });
            graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
            digest(graph, scheduler, items)
        })
    });
}

#[test]
fn counted_tiles_are_changed_in_place() {
    const TILES: u32 = if cfg!(miri) { 2 } else { 6 };
    same_everywhere(|scheduler| {
        graph(|graph| {
            let tags = graph.tags::<(u32, u32)>("tags");
            // Each tile of a round but the first is read by one step, and changed by another one.
            let count = |&(tile, round): &(u32, u32)| (round < 8).then_some(if tile == 0 { 1 } else { 2 });
            let tiles: ItemCol<'_, _, Vec<u64>> =
                graph.items_in("tiles", Items::paged((TILES, 9)).counted(count));
            graph.prescribe(tags, "change", move |(tile, round), step| {
                let right: u64 =
                    if tile + 1 < TILES { step.get(tiles, (tile + 1, round))?.iter().sum() } else { 0 };
                let mut mine: Vec<u64> = step.take(tiles, (tile, round))?;
                mine.iter_mut().for_each(|x| *x = x.wrapping_mul(5).wrapping_add(right));
                step.put(tiles, (tile, round + 1), mine)
            });
            graph
                .initialize(|env| {
                    for tile in 0..TILES {
                        (0..8).rev().try_for_each(|round| env.put_tag(tags, (tile, round)))?;
                        env.put(tiles, (tile, 0), vec![u64::from(tile); 3])?;
                    }
                    Ok(())
                })
                .unwrap();
            digest(graph, scheduler, tiles)
        })
    });
}

#[test]
fn ranges_cover_every_number_once() {
    const END: u32 = if cfg!(miri) { 60 } else { 1_000 };
    same_everywhere(|scheduler| {
        graph(|graph| {
            let loops = graph.tags::<(u32, u32)>("loops");
            let items = graph.items_in("items", Items::dense(END));
            graph.prescribe_range(loops, "copy", 7, move |range, step| {
                // The first number of a part misses now and then.
                let before = if range.start == 0 { 0 } else { *step.get(items, range.start - 1)? };
                range.into_iter().try_for_each(|n| step.put(items, n, before + u64::from(n)))
            });
            graph
                .initialize(|env| {
                    env.put_tag(loops, (0, END / 2)).and_then(|()| env.put_tag(loops, (END / 2, END)))
                })
                .unwrap();
            // The parts are the same, so their first numbers are, and so are the values.
            digest(graph, scheduler, items)
        })
    });
}

#[test]
fn forks_and_items_that_steps_make() {
    fn sum<'g>(
        step: &selvedge_cnc::StepContext<'g>,
        (from, to): (u64, u64),
        total: ItemCol<'g, (), u64>,
    ) -> StepResult {
        if to - from == 1 {
            return step.put(total, (), from);
        }
        let (left, right, middle) = (step.item("left"), step.item("right"), from.midpoint(to));
        step.fork(move |step| step.put(total, (), step.get(left, ())? + step.get(right, ())?))?;
        step.fork(move |step| sum(step, (from, middle), left))?;
        step.fork(move |step| sum(step, (middle, to), right))
    }
    let to = if cfg!(miri) { 8 } else { 40 };
    same_everywhere(|scheduler| {
        graph(|graph| {
            let total = graph.item("total");
            graph.initialize(|env| env.fork(move |step| sum(step, (0, to), total))).unwrap();
            graph.run(scheduler).unwrap().finalize(|view| *view.get(total, ()).unwrap())
        })
    });
}

#[test]
fn the_environment_may_go_on() {
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "next", move |n, step| step.put(items, n + 1, step.get(items, n)? + 1));
            graph.initialize(|env| (0..10).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else { panic!("{name}") };
            assert_eq!(stuck.items.len(), 10);
            graph.initialize(|env| env.put(items, 0, 5)).unwrap();
            let last = graph.run(scheduler).unwrap().finalize(|view| view.get(items, 10).copied());
            assert_eq!(last, Some(15), "{name}");
        });
    });
}

#[test]
fn a_graph_within_a_step_of_a_graph() {
    same_everywhere(|scheduler| {
        graph(|outer| {
            let tags = outer.tags::<u64>("tags");
            let items = outer.items::<u64, u64>("items");
            outer.prescribe_async(tags, "outer", move |n, step| async move {
                let before = *step.get(items, n).await?;
                let inner = graph(|inner| {
                    let tags = inner.tags::<u64>("tags");
                    let result = inner.item("result");
                    inner.prescribe_async(tags, "inner", move |n, step| async move {
                        step.put(result, (), n * 2)
                    });
                    inner.initialize(|env| env.put_tag(tags, n))?;
                    Ok::<_, GraphError>(inner.run(&OneByOne)?.finalize(|view| *view.get(result, ()).unwrap()))
                })?;
                step.put(items, n + 1, before + inner)
            });
            outer
                .initialize(|env| {
                    (0..20).rev().try_for_each(|n| env.put_tag(tags, n))?;
                    env.put(items, 0, 0)
                })
                .unwrap();
            digest(outer, scheduler, items)
        })
    });
}

#[test]
fn items_are_dropped_once_and_borrow_from_outside() {
    struct Counts<'a>(&'a std::sync::atomic::AtomicUsize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    each(|name, scheduler| {
        let drops = std::sync::atomic::AtomicUsize::new(0);
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let kept = graph.items_in("kept", Items::dense(20));
            let counted = graph.items_in("counted", Items::hashed().counted(|_| Some(1)));
            let drops = &drops;
            graph.prescribe(tags, "make", move |n, step| {
                step.put(kept, n, Counts(drops))?;
                step.put(counted, n, Counts(drops))
            });
            graph.prescribe(tags, "use", move |n, step| step.get(counted, n).map(|_| ()));
            graph.initialize(|env| (0..20).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.run(scheduler).unwrap();
            assert_eq!(drops.load(std::sync::atomic::Ordering::Relaxed), 20, "{name}");
        });
        assert_eq!(drops.into_inner(), 40, "{name}");
    });
}

#[test]
fn words_of_keys_are_different_and_in_order() {
    fn check<K: ItemKey>(keys: &[K]) {
        let words: BTreeMap<u64, K> = keys.iter().map(|key| (key.to_word(), key.clone())).collect();
        assert_eq!(words.len(), keys.len());
        let mut sorted = keys.to_vec();
        sorted.sort();
        assert!(words.values().eq(&sorted));
        assert!(keys.iter().all(|key| K::from_word(key.to_word()).as_ref() == Some(key)));
    }
    let shorts = [i16::MIN, -300, -1, 0, 1, 77, i16::MAX];
    check(&shorts);
    check(&shorts.iter().flat_map(|&a| shorts.map(|b| (a, b))).collect::<Vec<_>>());
    check(&[(0_u32, u32::MAX), (1, 0), (u32::MAX, 7)]);
    check(&[i64::MIN, -1, 0, i64::MAX]);
    check(&[(true, 'a', -5_i8), (false, char::MAX, 5), (true, 'a', 5)]);
    check(&[((), u64::MAX), ((), 0)]);
    assert_eq!(<(u64, bool)>::BITS, None);
}

/// A key that notes the name of a collection when it is dropped.
#[derive(Clone)]
struct NamingKey<'g, 'n> {
    number: u32,
    items: ItemCol<'g, u32, u32>,
    names: &'n Mutex<Vec<String>>,
}

impl PartialEq for NamingKey<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for NamingKey<'_, '_> {}

impl PartialOrd for NamingKey<'_, '_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NamingKey<'_, '_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for NamingKey<'_, '_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Debug for NamingKey<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl ItemKey for NamingKey<'_, '_> {}

impl Drop for NamingKey<'_, '_> {
    fn drop(&mut self) {
        self.names.lock().unwrap().push(self.items.name().to_owned());
    }
}

#[test]
fn a_key_may_use_another_collection_when_it_is_dropped() {
    let names = Mutex::new(Vec::new());
    graph(|graph| {
        let named = graph.items::<u32, u32>("a collection that is freed first");
        let items = graph.items("items");
        graph
            .initialize(|env| {
                (0..50).try_for_each(|number| {
                    env.put(items, NamingKey { number, items: named, names: &names }, 0)
                })
            })
            .unwrap();
        names.lock().unwrap().clear();
    });
    let names = names.into_inner().unwrap();
    assert!(names.len() >= 50 && names.iter().all(|name| name == "a collection that is freed first"));
}

/// The programs in the documentation that do not compile, with handles of one graph alone.
#[test]
fn a_graph_within_a_graph_uses_its_own_handles() {
    graph(|one| {
        graph(|other| {
            let outer = (one.items::<u32, u32>("items"), one.tags::<u32>("tags"));
            let (items, tags) = (other.items::<u32, u32>("items"), other.tags::<u32>("tags"));
            other.prescribe(tags, "step", |_, _| Ok(()));
            other.prescribe_async(tags, "step", move |n, step| async move { step.put(items, n, 1) });
            other.initialize(|env| env.put(items, 1, 1)).unwrap();
            other.initialize(|env| env.put_tag(tags, 2)).unwrap();
            one.initialize(|env| env.put(outer.0, 1, 1).and_then(|()| env.put_tag(outer.1, 1))).unwrap();
            let found = other.run(&OneByOne).unwrap().finalize(|view| view.iter(items).count());
            assert_eq!(found, 2);
        });
    });
}
