//! Graphs over ranks that do not end well: what is told, and that all ranks hear the same.

use selvedge_cnc::Items;
use selvedge_core::round_robin;
use selvedge_distributed::{DistributedError, DistributedGraph, ItemPlacement, MissingOnRank, graph};
use selvedge_mpi::{Communicator, ErrorClass, Ranks, run};

/// The error of each rank.
fn errors(
    ranks: usize,
    define: impl for<'g, 'env> Fn(&DistributedGraph<'g, 'env>) -> Result<(), DistributedError>
    + Clone
    + Send
    + Sync
    + 'static,
) -> Vec<DistributedError> {
    let body = move |world: Communicator| {
        let define = define.clone();
        async move { Ok::<_, DistributedError>(graph(&world, move |graph| define(graph)).await.err()) }
    };
    let ended = round_robin(run(ranks, body)).expect("no deadlock").expect("no rank fails");
    ended.into_iter().map(|error| error.expect("the graph does not end well")).collect()
}

/// The number of a rank as a key.
fn own(rank: &u32) -> usize {
    *rank as usize
}

#[test]
fn steps_that_wait_are_told_with_the_rank_that_should_have_put() {
    let errors = errors(3, |graph| {
        let tags = graph.tags("tags", |rank: &u32| own(rank));
        let asked = graph.items::<u32, u64>("asked", ItemPlacement::produced_on(|_| 2));
        let sent =
            ItemPlacement::consumed_on(|rank: &u32| [own(rank)]).with_producer(|rank| own(rank).abs_diff(1));
        let sent = graph.items::<u32, u64>("sent", sent);
        graph.prescribe(tags, "look", move |rank, step| {
            if rank == 0 { step.get(sent, 0).map(drop) } else { step.get(asked, 7).map(drop) }
        });
        graph.initialize_everywhere(|env| (0..3).try_for_each(|rank| env.put_tag(tags, rank)))?;
        graph.run().map(drop)
    });
    for error in errors {
        let DistributedError::Stuck(stuck) = error else { panic!("{error}") };
        let missing = |rank: usize, collection: &str, key: &str, producer| MissingOnRank {
            rank,
            collection: collection.into(),
            key: key.into(),
            was_put: false,
            steps: vec![("look".into(), rank.to_string())],
            producer,
        };
        let items = [
            missing(0, "sent", "0", Some(1)),
            missing(1, "asked", "7", Some(2)),
            missing(2, "asked", "7", None),
        ];
        assert_eq!(stuck.items, items);
        let told = "rank 1: item asked[7], which rank 2 should have put: step look(1)";
        assert!(stuck.to_string().contains(told), "{stuck}");
    }
}

#[test]
fn an_async_step_that_waits_is_told_as_any_step() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |rank: &u32| own(rank));
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 0));
        graph.prescribe_async(tags, "look", move |rank, step| async move {
            step.put(items, 10 + rank, rank)?;
            assert_eq!(*step.get(items, 10).await?, 0);
            step.get(items, 7).await.map(drop)
        });
        graph.initialize_everywhere(|env| (0..2).try_for_each(|rank| env.put_tag(tags, rank)))?;
        graph.run().map(drop)
    });
    for error in errors {
        let told = "2 steps wait for items that no step has put\n  rank 0: item items[7]: step look(0)\n  \
                    rank 1: item items[7], which rank 0 should have put: step look(1)";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn an_async_step_that_has_failed_puts_nothing_for_other_ranks() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |_: &u32| 1);
        let once = Items::hashed().counted(|_| Some(1));
        let counted = graph.items_in("counted", ItemPlacement::consumed_on(|_: &u32| [1]), once);
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 0));
        graph.finish_after_fault();
        graph.prescribe_async(tags, "take", move |n, step| async move {
            let _: u32 = step.take(counted, 1).await?;
            // There is no second get, so the step has failed.
            let second = step.take(counted, 1).await;
            assert!(second.is_err() && step.put(items, n, n).is_err());
            second.map(drop)
        });
        graph.initialize_everywhere(|env| env.put(counted, 1, 1).and_then(|()| env.put_tag(tags, 1)))?;
        graph.run().map(drop)
    });
    for error in errors {
        let text = error.to_string();
        assert!(text.starts_with("rank 1: step take(1)") && !text.contains("items["), "{text}");
    }
}

#[test]
fn a_part_for_a_rank_that_there_is_not_is_a_fault_of_the_step() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |rank: &u32| own(rank));
        let loops = graph.ranges("loops", 10_u32, |(begin, _)| *begin as usize / 10);
        graph.prescribe_range(loops, "run", |_, _| Ok(()));
        graph.prescribe(tags, "put", move |_, step| step.put_tag(loops.tags(), (0, 25)));
        graph.initialize_everywhere(|env| env.put_tag(tags, 1))?;
        graph.run().map(drop)
    });
    for error in errors {
        let told = "rank 1: step put(1) failed: loops[(20, 25)] is for rank 2, and there are 2 ranks";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn the_environment_puts_what_was_missing_and_runs_again() {
    let body = |world: Communicator| async move {
        graph(&world, |graph| {
            let tags = graph.tags("tags", |rank: &u32| own(rank));
            let items = graph.items("items", ItemPlacement::produced_on(|_: &u32| 0));
            let seen = graph.items("seen", ItemPlacement::consumed_on(|rank: &u32| [own(rank)]));
            graph.prescribe(tags, "look", move |rank, step| step.put(seen, rank, *step.get(items, 5)?));
            graph.initialize_everywhere(|env| (0..2).try_for_each(|rank| env.put_tag(tags, rank)))?;
            let Err(DistributedError::Stuck(stuck)) = graph.run() else { panic!("the item 5 is not there") };
            assert_eq!(stuck.items.len(), 2, "{stuck}");
            // Rank 1 puts it, and rank 0 keeps it.
            if graph.rank() == 1 {
                graph.initialize(|env| env.put(items, 5, 50_u64))?;
            }
            let finished = graph.run()?;
            let me = graph.rank() as u32;
            Ok(finished.finalize(|view| view.get(seen.local(), me).copied()))
        })
        .await
    };
    assert_eq!(round_robin(run(2, body)).unwrap().unwrap(), [Some(50), Some(50)]);
}

#[test]
fn a_panic_of_a_step_ends_the_run_on_all_ranks() {
    let errors = errors(3, |graph| {
        let tags = graph.tags("tags", |n: &u32| *n as usize % 3);
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|n| *n as usize % 3));
        graph.prescribe(tags, "count", move |n, step| {
            assert!(n != 50, "the thread broke");
            step.put(items, n, n)?;
            step.put_tag(tags, n + 1)
        });
        graph.initialize_everywhere(|env| env.put_tag(tags, 0))?;
        graph.run().map(drop)
    });
    for error in errors {
        let DistributedError::Failed(faults) = &error else { panic!("{error}") };
        assert_eq!(faults.len(), 1, "{error}");
        assert_eq!(error.to_string(), "rank 2: step count(50) panicked: the thread broke");
    }
}

#[test]
fn a_second_put_on_another_rank_is_told_where_both_meet() {
    for placement in
        [|| ItemPlacement::produced_on(|_: &u32| 0), || ItemPlacement::consumed_on(|_: &u32| [0])]
    {
        let errors = errors(3, move |graph| {
            let tags = graph.tags("tags", |rank: &u32| own(rank));
            let items = graph.items::<u32, u32>("items", placement());
            graph.finish_after_fault();
            graph.prescribe(tags, "make", move |rank, step| step.put(items, 4, rank));
            graph.initialize_everywhere(|env| (1..3).try_for_each(|rank| env.put_tag(tags, rank)))?;
            graph.run().map(drop)
        });
        for error in errors {
            let told = "rank 0: item items[4] was put twice: by step received(1) and by step received(2)";
            assert_eq!(error.to_string(), told);
        }
    }
}

#[test]
fn a_rank_that_there_is_not_is_a_fault_of_the_step() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |rank: &u32| own(rank));
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 7));
        graph.prescribe(tags, "make", move |rank, step| step.put(items, rank, rank));
        graph.initialize_everywhere(|env| env.put_tag(tags, 1))?;
        graph.run().map(drop)
    });
    for error in errors {
        let told = "rank 1: step make(1) failed: items[1] is for rank 7, and there are 2 ranks";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn a_get_after_a_put_for_another_rank_is_a_fault() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |_: &u32| 1);
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|n| *n as usize % 2));
        graph.prescribe(tags, "make", move |n, step| {
            step.put(items, 2 * n, n)?;
            step.get(items, 1).map(drop)
        });
        graph.initialize_everywhere(|env| env.put(items, 1, 1).and_then(|()| env.put_tag(tags, 1)))?;
        graph.run().map(drop)
    });
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("step make(1) failed: got item items[1] after it had put"), "{text}");
    }
}

#[test]
fn a_count_is_that_of_one_rank() {
    let errors = errors(2, |graph| {
        let tags = graph.tags("tags", |rank: &u32| own(rank));
        let both = ItemPlacement::consumed_on(|_: &u32| [0, 1]);
        let items = graph.items_in("items", both, Items::hashed().counted(|_| Some(2)));
        graph.prescribe(tags, "look", move |rank, step| {
            let _: &u32 = step.get(items, 3)?;
            if rank == 0 { step.get(items, 3).map(drop) } else { Ok(()) }
        });
        graph.initialize_everywhere(|env| {
            env.put(items, 3, 3)?;
            (0..2).try_for_each(|rank| env.put_tag(tags, rank))
        })?;
        graph.run().map(drop)
    });
    for error in errors {
        let told = "rank 1: item items[3], put by step the environment(), has a count for 1 more gets";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn ranks_that_define_other_collections_are_refused() {
    let errors = errors(2, |graph| {
        match graph.rank() {
            0 => drop(graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 0))),
            _ => drop(graph.items::<u32, u64>("items", ItemPlacement::produced_on(|_| 0))),
        }
        graph.run().map(drop)
    });
    for error in errors {
        assert!(matches!(error, DistributedError::Mismatch(_)), "{error}");
    }
}

#[test]
fn a_rank_that_ends_is_an_error_at_the_others() {
    let body = |world: Communicator| async move {
        let me = world.rank();
        let ended = graph(&world, move |graph| {
            let tags = graph.tags("tags", |rank: &u32| own(rank));
            let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 2));
            graph.prescribe(tags, "look", move |_, step| step.get(items, 1).map(drop));
            graph.initialize_everywhere(|env| (0..3).try_for_each(|rank| env.put_tag(tags, rank)))?;
            assert!(graph.rank() != 2, "rank 2 runs no graph");
            graph.run().map(drop)
        })
        .await;
        match ended {
            // The first to see it revokes the communicator of the graph.
            Err(DistributedError::Message(error))
                if matches!(error.class(), ErrorClass::Ended | ErrorClass::Revoked) =>
            {
                Ok(me)
            }
            Err(error) => Err(error),
            Ok(()) => panic!("rank 2 has put nothing"),
        }
    };
    let failure = round_robin(Ranks::new(3).run(body)).expect("no deadlock").unwrap_err();
    let failed: Vec<usize> = failure.ranks.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(failed, [2], "{failure}");
}
