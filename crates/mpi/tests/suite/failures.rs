//! A rank that fails or ends is an error at the ranks that need it, and not their end.

use selvedge_core::{round_robin, yield_now};
use selvedge_mpi::{ANY, Cause, Communicator, Error, ErrorClass, Functions, RanksError, WindowLock, op, run};

fn run_here<T: Send + 'static, R>(
    ranks: usize,
    body: fn(Communicator) -> R,
) -> Result<Vec<T>, RanksError<Error>>
where
    R: Future<Output = Result<T, Error>> + Send + 'static,
{
    round_robin(run(ranks, body)).unwrap()
}

#[test]
fn a_panic_is_named_and_ends_the_waits_for_that_rank() {
    let failure = run_here(3, |world| async move {
        match world.rank() {
            1 => panic!("the thread broke"),
            0 => {
                let error = world.recv::<i32>(1, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended);
                let told = "rank 1 has failed: no message from rank 1 with tag 0 will come";
                assert!(error.to_string().ends_with(told), "{error}");
            }
            _ => {
                let error = world.recv::<i32>(ANY, 3).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended);
            }
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!((failure.rank(), failure.ranks.len()), (1, 1));
    assert!(matches!(failure.cause(), Cause::Exception(_)));
    assert!(failure.to_string().contains("rank 1 has failed"), "{failure}");
    assert!(failure.to_string().contains("the thread broke"), "{failure}");
}

#[test]
fn the_first_failure_comes_first() {
    let failure = run_here(3, |world| async move {
        if world.rank() == 2 {
            yield_now().await;
            world.send(9, (), ()).await?;
        }
        // The other two fail because rank 2 has.
        world.allreduce(1, op::sum).await
    })
    .unwrap_err();
    let ranks: Vec<usize> = failure.ranks.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(ranks[0], 2, "{failure}");
    assert_eq!(ranks.len(), 3, "{failure}");
    assert!(failure.to_string().starts_with("rank 2 has failed: send on rank 2"), "{failure}");
    assert!(failure.to_string().contains("\n  then rank 0: allreduce on rank 0"), "{failure}");
}

#[test]
fn messages_of_a_rank_that_has_ended_are_received() {
    run_here(2, |world| async move {
        if world.rank() == 0 {
            world.send(1, (), 1).await?;
            world.send(1, (), 2).await?;
        } else {
            world.recv::<i32>(0, ()).await?;
            // Rank 0 has returned, or returns now.
            for _ in 0..10 {
                yield_now().await;
            }
            assert_eq!(world.recv::<i32>(0, ()).await?.0, 2);
            let error = world.recv::<i32>(0, ()).await.unwrap_err();
            assert!(error.to_string().contains("rank 0 has returned"), "{error}");
            let error = world.send(0, (), 3).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended);
        }
        Ok(())
    })
    .unwrap();
}

/// A rank fails while others await a start of a persistent collective, and before a later start.
#[test]
fn a_rank_of_a_persistent_collective_fails() {
    let failure = run_here(3, |world| async move {
        let mut sum = world.allreduce_init(vec![1], op::sum);
        assert_eq!(*sum.start().await?, [3]);
        if world.rank() == 1 {
            panic!("the thread broke");
        }
        let error = sum.start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "allreduce_init"));
        // Rank 0 combines, so rank 2 waits for rank 0, which returns.
        let told = ["rank 1 has failed: no part of rank 1", "", "rank 0 has returned: no part of rank 0"];
        assert!(error.to_string().contains(told[world.rank()]), "{error}");
        // A start that is given up needs no rank.
        drop(sum.start());
        let mut receives = world.recv_init::<u8>(1, ());
        let error = receives.start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "recv_init"));
        Ok(())
    })
    .unwrap_err();
    assert_eq!((failure.rank(), failure.ranks.len()), (1, 1), "{failure}");
}

/// The lock of a rank that fails goes to the next one, and the memory is served on.
#[test]
fn a_rank_fails_with_the_lock_of_a_window() {
    let failure = run_here(3, |world| async move {
        let window = world.window(vec![0], op::sum).await?;
        match world.rank() {
            1 => {
                let locked = window.lock(0, WindowLock::Exclusive).await?;
                window.put(0, 0, &[7])?;
                world.send(2, (), ()).await?;
                // No destructor releases it.
                std::mem::forget(locked);
                panic!("the thread broke");
            }
            2 => {
                world.recv::<()>(1, ()).await?;
                let locked = window.lock(0, WindowLock::Exclusive).await?;
                assert_eq!(window.get(0, 0, 1).await?, [7]);
                locked.unlock().await?;
                let error = window.get(1, 0, 1).await.unwrap_err();
                assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "get"));
                world.send(0, (), ()).await?;
            }
            _ => {
                world.recv::<()>(2, ()).await?;
                assert_eq!(window.read(|own| own[0]), 7);
            }
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!((failure.rank(), failure.ranks.len()), (1, 1), "{failure}");
}

#[test]
fn a_synchronous_send_to_a_rank_that_ends() {
    run_here(2, |world| async move {
        if world.rank() == 0 {
            let error = world.ssend(1, (), 1).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "ssend"));
        } else {
            world.probe(0, ()).await?;
        }
        Ok(())
    })
    .unwrap();
}

/// Farming out work: the master goes on without a worker that has failed.
#[test]
fn a_failed_rank_is_acknowledged() {
    let failure = run_here(4, |world| async move {
        if world.rank() == 0 {
            let mut sum = 0;
            let mut failed = Vec::new();
            while failed.len() < 3 {
                match world.recv::<usize>(ANY, ()).await {
                    Ok((number, _)) => sum += number,
                    Err(error) => {
                        assert_eq!(error.class(), ErrorClass::Ended);
                        failed = world.acknowledge_failed();
                    }
                }
            }
            assert_eq!((sum, failed), (1 + 2 + 3, vec![1, 2, 3]));
        } else {
            world.send(0, (), world.rank()).await?;
            panic!("rank {} gives up", world.rank());
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!(failure.ranks.len(), 3);
}

/// The tasks of a rank that fails are done by the others.
#[test]
fn a_rank_fails_in_the_middle_of_a_map() {
    let failure = run_here(3, |world| async move {
        let mut functions = Functions::new();
        let own = world.rank();
        let double = functions.register("double", move |number: usize| async move {
            yield_now().await;
            (2 * number, own)
        });
        let pool = functions.start(&world).await?;
        match own {
            0 => {
                let results = pool.map(double, 0..200).await?;
                let numbers: Vec<usize> = results.iter().map(|result| result.0).collect();
                assert_eq!(numbers, (0..200).map(|number| 2 * number).collect::<Vec<_>>());
                let on_the_last_rank = results.iter().filter(|result| result.1 == 2).count();
                assert!((1..150).contains(&on_the_last_rank), "{on_the_last_rank}");
                world.send(1, (), ()).await?;
            }
            1 => drop(world.recv::<()>(0, ()).await?),
            _ => {
                for _ in 0..30 {
                    yield_now().await;
                }
                panic!("rank 2 gives up");
            }
        }
        Ok(())
    })
    .unwrap_err();
    assert_eq!((failure.rank(), failure.ranks.len()), (2, 1), "{failure}");
}

#[test]
fn a_thread_that_outlives_its_rank() {
    round_robin(async {
        let left = std::sync::Arc::new(std::sync::Mutex::new(None));
        let seen = left.clone();
        let body = move |world: Communicator| {
            let left = left.clone();
            async move {
                if world.rank() == 0 {
                    let thread = world.clone();
                    let receives =
                        selvedge_core::spawn(async move { thread.recv::<i32>(1, ()).await.map(drop) });
                    *left.lock().unwrap() = Some(receives);
                    yield_now().await;
                } else {
                    world.barrier().await.unwrap_err();
                }
                Ok::<_, Error>(())
            }
        };
        run(2, body).await.unwrap();
        let receives = seen.lock().unwrap().take().unwrap();
        let error = receives.await.unwrap().unwrap_err();
        assert_eq!(error.class(), ErrorClass::Ended);
    })
    .unwrap();
}

/// A run that is dropped cancels its ranks.
#[test]
fn a_run_is_cancelled() {
    round_robin(async {
        let alive = std::sync::Arc::new(());
        let held = alive.clone();
        let running = run(3, move |world| {
            let held = held.clone();
            async move {
                let _held = held;
                world.recv::<()>(world.rank(), ()).await.map(drop)
            }
        });
        let late = async {
            for _ in 0..5 {
                yield_now().await;
            }
            Ok(Vec::new())
        };
        selvedge_scope::race((running, late)).await.unwrap();
        while std::sync::Arc::strong_count(&alive) > 1 {
            yield_now().await;
        }
    })
    .unwrap();
}
