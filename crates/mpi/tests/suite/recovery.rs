//! Ranks that end at any step, and the others, which revoke, shrink and go on.

use selvedge_core::{round_robin, throw, yield_now};
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, Functions, Parts, Ranks, RanksError, op, run};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Throws instead of a poll, after this number of polls.
async fn ends_after<T>(polls: usize, body: impl Future<Output = T>) -> T {
    let mut body = pin!(body);
    let mut left = polls;
    poll_fn(move |cx| {
        left = left.checked_sub(1).unwrap_or_else(|| throw("the rank ends here"));
        body.as_mut().poll(cx)
    })
    .await
}

/// What a round does.
type Round = fn(Communicator, u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>>;

/// Several collectives, of which one goes on beside the others. Gives the ranks, as a mask.
async fn several(comm: Communicator, me: u32) -> Result<u32, Error> {
    comm.barrier().await?;
    let started = comm.iallreduce(me, |a, b| a | b);
    let first = comm.bcast(0, || me).await?;
    let all = comm.allgather(me).await?;
    assert_eq!(all[0], first);
    let mask = comm.scan(me, |a, b| a | b).await?;
    assert_eq!(mask & me, me);
    started.await
}

/// Each collective that has a root has the last rank as its root, and gives the number of ranks.
macro_rules! collectives {
    ($(|$comm:ident, $me:ident, $size:ident, $root:ident| $name:ident($($argument:expr),*);)*) => {
        [$((stringify!($name), |$comm, $me| Box::pin(async move {
            let _ = $me;
            let $size = $comm.size();
            #[allow(unused_variables, reason = "some have no root")]
            let $root = $size - 1;
            $comm.$name($($argument),*).await?;
            Ok($size as u32)
        }))),*]
    };
}

/// Every collective by itself.
const COLLECTIVES: [(&str, Round); 25] = collectives! {
    |comm, me, size, root| barrier();
    |comm, me, size, root| bcast(root, || me);
    |comm, me, size, root| gather(root, me);
    |comm, me, size, root| scatter(root, || vec![me; size]);
    |comm, me, size, root| allgather(me);
    |comm, me, size, root| alltoall(vec![me; size]);
    |comm, me, size, root| reduce(root, me, op::bor);
    |comm, me, size, root| allreduce(me, op::bor);
    |comm, me, size, root| reduce_scatter(vec![me; size], op::bor);
    |comm, me, size, root| scan(me, op::bor);
    |comm, me, size, root| exscan(me, op::bor);
    |comm, me, size, root| bcast_into(root, &mut [me, me]);
    |comm, me, size, root| gather_slice(root, &[me, me]);
    |comm, me, size, root| scatter_parts(root, || Parts::even(vec![me; 2 * size], size));
    |comm, me, size, root| allgather_slice(&[me, me]);
    |comm, me, size, root| alltoall_parts(Parts::even(vec![me; 2 * size], size));
    |comm, me, size, root| reduce_slice(root, &[me, me], op::bor);
    |comm, me, size, root| allreduce_into(&mut [me, me], op::bor);
    |comm, me, size, root| reduce_scatter_parts(Parts::even(vec![me; 2 * size], size), op::bor);
    |comm, me, size, root| scan_into(&mut [me, me], op::bor);
    |comm, me, size, root| exscan_into(&mut [me, me], op::bor);
    |comm, me, size, root| igather(root, me);
    |comm, me, size, root| ialltoall(vec![me; size]);
    |comm, me, size, root| split(0, 0);
    |comm, me, size, root| neighbourhood(&[comm.rank()], &[comm.rank()]);
};

/// Rounds of collectives. A round in which a rank has ended is done again without it. Gives what
/// each round gave.
async fn rounds(world: Communicator, count: usize, round: Round) -> Result<Vec<u32>, Error> {
    let me = 1_u32 << world.rank();
    let mut comm = world;
    let mut seen = Vec::new();
    while seen.len() < count {
        let step = round(comm.clone(), me).await;
        if step.is_err() {
            comm.revoke();
        }
        // A round counts if it was one on every rank.
        match (comm.agree(step.is_ok()).await?, step) {
            (true, Ok(mask)) => seen.push(mask),
            _ => comm = comm.shrink().await?,
        }
    }
    Ok(seen)
}

/// Runs `rounds` on four ranks, of which some end after a number of polls, and checks what the
/// others have seen. Tells whether a rank has ended.
async fn rounds_with_ends(
    ranks: Ranks,
    ends: BTreeMap<usize, usize>,
    (count, round): (usize, Round),
) -> bool {
    let body = {
        let ends = ends.clone();
        move |world: Communicator| {
            let polls = ends.get(&world.rank()).copied();
            async move {
                // The rounds revoke a communicator of their own.
                let own = world.dup().await?;
                let lives = polls.is_none();
                let seen = ends_after(polls.unwrap_or(usize::MAX), rounds(own, count, round)).await?;
                // The ranks that live have seen the same.
                if lives {
                    let alive = world.shrink().await?;
                    let masks = alive.allgather(seen.clone()).await;
                    if let Ok(masks) = masks {
                        assert!(masks.iter().all(|mask| *mask == seen), "{masks:?}");
                    }
                }
                Ok::<_, Error>(())
            }
        }
    };
    match ranks.run(body).await {
        Ok(_) => false,
        Err(failure) => {
            let text = failure.to_string();
            let RanksError { ranks } = failure;
            let failed: Vec<usize> = ranks.iter().map(|(rank, _)| *rank).collect();
            assert!(failed.iter().all(|rank| ends.contains_key(rank)), "{ends:?}: {text}");
            true
        }
    }
}

/// What most tests do.
async fn four_rounds_with_ends(ranks: Ranks, ends: BTreeMap<usize, usize>) {
    rounds_with_ends(ranks, ends, (4, |comm, me| Box::pin(several(comm, me)))).await;
}

/// A rank ends at each step of each collective, until it lives to the end.
#[test]
fn a_rank_ends_at_each_step_of_each_collective() {
    for (name, round) in COLLECTIVES {
        for ended in 0..4 {
            for delays in [false, true] {
                let some_have_ended = Arc::new(AtomicBool::new(true));
                let mut steps = 0;
                while some_have_ended.swap(false, Ordering::Relaxed) {
                    let ends = BTreeMap::from([(ended, steps)]);
                    selvedge_sim::simulate(0..2, || {
                        let ranks = if delays { Ranks::new(4).delayed() } else { Ranks::new(4) };
                        let (seen, ends) = (some_have_ended.clone(), ends.clone());
                        async move {
                            if rounds_with_ends(ranks, ends, (2, round)).await {
                                seen.store(true, Ordering::Relaxed);
                            }
                        }
                    });
                    steps += 1;
                }
                assert!(steps > 3, "{name} takes {steps} steps");
            }
        }
    }
}

#[test]
fn a_rank_ends_at_each_step() {
    for ended in 0..4 {
        for polls in 0..60 {
            let ends = BTreeMap::from([(ended, polls)]);
            selvedge_sim::simulate(0..4, || four_rounds_with_ends(Ranks::new(4), ends.clone()));
            selvedge_sim::simulate(0..4, || four_rounds_with_ends(Ranks::new(4).delayed(), ends.clone()));
        }
    }
}

#[test]
fn two_ranks_end() {
    for (one, other) in [(0, 1), (1, 3), (2, 0), (3, 2)] {
        for (polls, others) in
            (0..30).step_by(3).flat_map(|polls| (0..40).step_by(2).map(move |others| (polls, others)))
        {
            let ends = BTreeMap::from([(one, polls), (other, others)]);
            selvedge_sim::simulate(0..2, || four_rounds_with_ends(Ranks::new(4), ends.clone()));
        }
    }
}

#[test]
fn ranks_end_on_two_workers() {
    for polls in 0..60 {
        let ends = BTreeMap::from([(polls % 4, polls), ((polls + 1) % 4, polls / 2 + 5)]);
        let program = four_rounds_with_ends(Ranks::new(4), ends);
        selvedge_sched::work_stealing(2, |_| Ok(selvedge_core::NoEvents::new()), program).unwrap();
    }
}

/// A rank maps while another one ends at any step: with tasks of its own, or of a rank from which
/// it has stolen, or while a rank steals from it. Each task has its result.
async fn map_with_an_end(ranks: Ranks, ended: usize, polls: usize) {
    let run = ranks.run(move |world| async move {
        let mut functions = Functions::new();
        let rank = world.rank();
        let double = functions.register("double", move |number: usize| async move {
            // The shares take different times, so there are thefts.
            for _ in 0..rank * number % 5 {
                yield_now().await;
            }
            2 * number
        });
        let pool = functions.start(&world).await?;
        let polls = if rank == ended { polls } else { usize::MAX };
        let body = async {
            if rank == 0 {
                let results = pool.map(double, 0..40).await?;
                assert!(results.into_iter().eq((0..40).map(|number| 2 * number)));
                for other in (1..4).filter(|&other| other != ended) {
                    world.send(other, (), ()).await?;
                }
                return Ok(());
            }
            world.recv::<()>(0, ()).await.map(drop)
        };
        ends_after(polls, async {
            let mut body = pin!(body);
            // It is polled in each turn, so that it ends at a step of the others.
            poll_fn(|cx| {
                if rank == ended {
                    cx.waker().wake_by_ref();
                }
                body.as_mut().poll(cx)
            })
            .await
        })
        .await
    });
    let failure: RanksError<Error> = run.await.unwrap_err();
    let failed: Vec<usize> = failure.ranks.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(failed, [ended], "after {polls} polls: {failure}");
}

#[test]
fn a_rank_ends_at_each_step_of_a_map() {
    for ended in 1..4 {
        for polls in 0..40 {
            selvedge_sim::simulate(0..3, || map_with_an_end(Ranks::new(4), ended, polls));
            selvedge_sim::simulate(0..3, || map_with_an_end(Ranks::new(4).delayed(), ended, polls));
        }
    }
}

/// A rank waits for one that lives, and that waits for nothing more because another has ended.
#[test]
fn a_revocation_reaches_the_rank_that_waits_for_a_living_one() {
    let failure = round_robin(run(4, |world| async move {
        match world.rank() {
            3 => panic!("the thread broke"),
            2 => {
                let error = world.recv::<u8>(3, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended);
                world.revoke();
            }
            // Rank 1 waits for rank 2, and rank 0 for rank 1.
            rank => {
                let error = world.recv::<u8>(rank + 1, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Revoked);
                assert!(error.to_string().ends_with("the communicator is revoked"), "{error}");
            }
        }
        let living = world.shrink().await?;
        assert_eq!((living.rank(), living.size()), (world.rank(), 3));
        assert_eq!(living.allgather(world.rank()).await?, [0, 1, 2]);
        // A wildcard receive bears the rank that is not there.
        if living.rank() == 0 {
            assert_eq!(living.recv::<usize>(ANY, ()).await?.0, 2);
        } else if living.rank() == 2 {
            living.send(0, (), 2_usize).await?;
        }
        Ok::<_, Error>(())
    }))
    .unwrap()
    .unwrap_err();
    assert_eq!((failure.rank(), failure.ranks.len()), (3, 1), "{failure}");
}

/// A rank that has returned does not count as alive, and an agreement does without it.
#[test]
fn a_rank_that_has_returned() {
    round_robin(run(3, |world| async move {
        if world.rank() == 0 {
            return Ok(());
        }
        assert!(world.agree(true).await?);
        // It returns without a wait, so it has ended by now.
        while world.send(0, (), ()).await.is_ok() {
            yield_now().await;
        }
        let living = world.shrink().await?;
        assert_eq!(living.size(), 2);
        assert_eq!(living.allreduce(living.rank(), op::sum).await?, 1);
        Ok::<_, Error>(())
    }))
    .unwrap()
    .unwrap();
}

#[test]
fn one_rank_agrees_where_another_shrinks() {
    round_robin(run(2, |world| async move {
        if world.rank() == 0 {
            let error = world.agree(true).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Mismatch);
            assert!(error.to_string().contains("rank 1 calls shrink"), "{error}");
        } else {
            // Rank 0 has returned.
            assert_eq!(world.shrink().await?.size(), 1);
        }
        Ok::<_, Error>(())
    }))
    .unwrap()
    .unwrap();
}
