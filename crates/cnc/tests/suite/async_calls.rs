//! Each call that an async step has, under every scheduler: `take`, `fork`, `items`, `item`, `putt`
//! and `is_cancelled`. Also their errors.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Scheduler};
use selvedge_cnc::{FaultCause, GraphError, ItemCol, Items, Stuck, graph};

/// The text of a run that fails.
fn report(error: &GraphError) -> String {
    let mut text = error.to_string();
    if let GraphError::Failed(faults) = error {
        for fault in faults {
            text += &format!("; {} {} {:?}", fault.step(), fault.tag(), fault.why());
        }
    }
    text
}

#[test]
fn async_steps_take_the_last_of_an_item_that_others_get() {
    const ROUNDS: u32 = if cfg!(miri) { 3 } else { 20 };
    let program = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            let takers = graph.tags::<u32>("takers");
            let getters = graph.tags::<u32>("getters");
            let counts = Items::hashed().counted(|&n: &u32| (n < ROUNDS).then_some(3));
            let tiles = graph.items_in("tiles", counts);
            let sums = graph.items::<u32, u32>("sums");
            // One tag is one step: it takes all tiles, one after the other, and puts between them.
            graph.prescribe_async(takers, "take", move |_, step| async move {
                for n in 0..ROUNDS {
                    let mut tile: Vec<u32> = step.take(tiles, n).await?;
                    tile.push(n);
                    step.put(tiles, n + 1, tile)?;
                }
                Ok(())
            });
            graph.prescribe_async(getters, "get", move |n, step| async move {
                let tile = step.get(tiles, n).await?;
                step.put(sums, n, tile.iter().sum::<u32>())
            });
            graph.prescribe(getters, "get too", move |n, step| step.get(tiles, n).map(|_| ()));
            graph
                .initialize(|env| {
                    env.put_tag(takers, 0)?;
                    (0..ROUNDS).try_for_each(|n| env.putt(getters, n))?;
                    env.put(tiles, 0, vec![7])
                })
                .unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
            finished.finalize(|view| {
                let sums: Vec<_> = view.iter(sums).map(|(_, sum)| *sum).collect();
                (view.get(tiles, ROUNDS).cloned(), sums, view.iter(tiles).count())
            })
        })
    };
    let tile: Vec<u32> = [7].into_iter().chain(0..ROUNDS).collect();
    let sums: Vec<u32> = (0..ROUNDS).map(|n| 7 + (0..n).sum::<u32>()).collect();
    let expected = (Some(tile), sums, 1);
    each(|name, scheduler| assert_eq!(program(scheduler), expected, "{name}"));
}

#[test]
fn async_steps_fork_and_make_collections_around_a_get() {
    let program = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let later = graph.tags::<u32>("later");
            let sums = graph.items::<u32, u32>("sums");
            graph.prescribe_async(tags, "outer", move |n, step| async move {
                let parts: ItemCol<'_, u32, u32> = step.items("parts");
                let whole: ItemCol<'_, (), u32> = step.item("whole");
                for i in 0..n {
                    step.fork(move |step| step.put(parts, i, i + n))?;
                    // This may wait or not, and the number of the next fork is the same.
                    step.get(parts, i).await?;
                }
                step.putt(later, n)?;
                step.fork(move |step| {
                    let sum = (0..n).try_fold(0, |sum, i| step.get(parts, i).map(|part| sum + part))?;
                    step.put(whole, (), sum)
                })?;
                assert!(!step.is_cancelled());
                let whole = *step.get(whole, ()).await?;
                step.put(sums, n, whole)
            });
            graph.prescribe(later, "later", move |n, step| step.put(sums, n + 1_000, 1));
            graph.initialize(|env| (0..6).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
            finished.finalize(|view| view.iter(sums).map(|(n, sum)| (n, *sum)).collect::<Vec<_>>())
        })
    };
    let sum = |n: u32| (0..n).map(|i| i + n).sum::<u32>();
    let mut expected: Vec<(u32, u32)> = (0..6).map(|n| (n, sum(n))).collect();
    expected.extend((0..6).map(|n| (n + 1_000, 1)));
    each(|name, scheduler| assert_eq!(program(scheduler), expected, "{name}"));
}

#[test]
fn the_faults_of_forks_have_one_order_whether_their_parent_waited_or_not() {
    let program = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe_async(tags, "outer", move |n, step| async move {
                step.fork(move |_| Err(std::io::Error::other("first").into()))?;
                step.get(items, n).await?;
                step.fork(move |_| Err(std::io::Error::other("second").into()))
            });
            let puts = graph.tags::<u32>("puts");
            graph.prescribe(puts, "put", move |n, step| step.put(items, n, n));
            graph
                .initialize(|env| {
                    env.put_tag(puts, 2)?;
                    env.put_tag(tags, 2)?;
                    env.put_tag(tags, 3)?;
                    env.put_tag(puts, 3)
                })
                .unwrap();
            report(&graph.run(scheduler).expect_err("two forks fail for each step"))
        })
    };
    let expected = program(&OneByOne);
    assert_eq!(expected.matches("Error(").count(), 4, "{expected}");
    each(|name, scheduler| assert_eq!(program(scheduler), expected, "{name}"));
}

#[test]
fn the_errors_of_a_take() {
    let program = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags::<u32>("tags");
            let kept = graph.items::<u32, u32>("kept");
            let counted = graph.items_in("counted", Items::<u32, u32>::dense(4).counted(|_| Some(1)));
            graph.prescribe_async(tags, "take", move |n, step| async move {
                match n {
                    0 => step.take(kept, 0).await.map(|_| ()),
                    1 => step.take(counted, 4).await.map(|_| ()),
                    _ => {
                        step.take(counted, 2).await?;
                        step.take(counted, 2).await.map(|_| ())
                    }
                }
            });
            graph
                .initialize(|env| {
                    env.put(kept, 0, 1)?;
                    env.put(counted, 2, 1)?;
                    (0..3).try_for_each(|n| env.put_tag(tags, n))
                })
                .unwrap();
            let Err(GraphError::Failed(faults)) = graph.run(scheduler) else { panic!("three steps fail") };
            let kinds: Vec<_> = faults
                .iter()
                .map(|fault| {
                    let kind = match fault.why() {
                        FaultCause::NotCounted { .. } => "not counted",
                        FaultCause::Outside { .. } => "outside",
                        FaultCause::OverGet { .. } => "over-get",
                        _ => "another",
                    };
                    (fault.tag().to_owned(), kind)
                })
                .collect();
            kinds
        })
    };
    each(|name, scheduler| {
        let mut faults = program(scheduler);
        faults.sort();
        let expected = [("0", "not counted"), ("1", "outside"), ("2", "over-get")];
        assert_eq!(faults, expected.map(|(tag, kind)| (tag.to_owned(), kind)), "{name}");
    });
}

#[test]
fn a_take_that_waits_for_ever_is_stuck() {
    let program = |scheduler: &dyn Scheduler| -> Stuck {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let tiles = graph.items_in("tiles", Items::<u32, String>::hashed().counted(|_| Some(2)));
            graph.prescribe_async(tags, "take", move |n, step| async move {
                step.take(tiles, n).await.map(|_| ())
            });
            graph
                .initialize(|env| {
                    // One other get of item 0 never comes. Item 1 is never put.
                    env.put(tiles, 0, "value".to_owned())?;
                    (0..2).try_for_each(|n| env.put_tag(tags, n))
                })
                .unwrap();
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else { panic!("both steps wait") };
            stuck
        })
    };
    each(|name, scheduler| {
        let stuck = program(scheduler);
        let keys: Vec<_> = stuck.items.iter().map(|item| (item.key.as_str(), item.steps.len())).collect();
        assert_eq!(keys, [("0", 1), ("1", 1)], "{name}: {stuck}");
    });
}

#[test]
fn a_take_beside_another_get_is_a_fault() {
    struct Both<'s, 'g>(selvedge_cnc::Get<'s, 'g, u32, u32>, selvedge_cnc::Take<'s, 'g, u32, u32>);
    let end = graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        let counted = graph.items_in("counted", Items::<u32, u32>::hashed().counted(|_| Some(1)));
        graph.prescribe_async(tags, "both", move |n, step| async move {
            let mut both = Both(step.get(items, n), step.take(counted, n));
            std::future::poll_fn(|context| {
                let missed = std::pin::Pin::new(&mut both.0).poll(context).is_pending();
                assert!(missed);
                std::pin::Pin::new(&mut both.1).poll(context).map(|taken| taken.map(|_| ()))
            })
            .await
        });
        graph
            .initialize(|env| {
                env.put(counted, 1, 1)?;
                env.put_tag(tags, 1)
            })
            .unwrap();
        graph.run(&OneByOne).map(|_| ())
    });
    let Err(GraphError::Failed(faults)) = end else { panic!("a step waits for two items: {end:?}") };
    assert!(matches!(faults[0].why(), FaultCause::Foreign), "{faults:?}");
}

#[test]
fn steps_make_arrays_and_counted_items() {
    for count in [1, 2] {
        let mut expected = None;
        each(|name, scheduler| {
            let end = graph(|graph| {
                let (tags, sums) = (graph.tags::<u32>("tags"), graph.items::<(bool, u32), u32>("sums"));
                graph.prescribe(tags, "replay", move |n, step| {
                    let squares = step.items_in("squares", Items::dense(n).counted(move |_| Some(count)));
                    (0..n).try_for_each(|i| step.fork(move |step| step.put(squares, i, i * i)))?;
                    step.fork(move |step| {
                        let mut sum = 0;
                        for i in 0..n {
                            sum += step.get(squares, i)?;
                        }
                        step.put(sums, (false, n), sum)
                    })
                });
                graph.prescribe_async(tags, "async", move |n, step| async move {
                    let squares = step.items_in("squares", Items::paged(n).counted(move |_| Some(count)));
                    (0..n).try_for_each(|i| step.fork(move |step| step.put(squares, i, i * i)))?;
                    let mut sum = 0;
                    for i in 0..n {
                        sum += step.get(squares, i).await?;
                    }
                    step.put(sums, (true, n), sum)
                });
                graph.initialize(|env| env.put_tag(tags, 4)).unwrap();
                match graph.run(scheduler) {
                    Ok(finished) => {
                        finished.finalize(|view| format!("{:?}", view.iter(sums).collect::<Vec<_>>()))
                    }
                    Err(error) => error.to_string(),
                }
            });
            assert_eq!(&end, expected.get_or_insert_with(|| end.clone()), "{name}");
        });
        match (count, expected.unwrap()) {
            (1, end) => assert_eq!(end, "[((false, 4), 14), ((true, 4), 14)]"),
            (_, end) => {
                assert_eq!(end.lines().count(), 8, "{end}");
                assert_eq!(end.matches("has a count for 1 more gets").count(), 8, "{end}");
            }
        }
    }
}
