//! Pipelines with stages on other ranks: the same items and failures as on one rank, and what holds
//! a stream up or ends it.

use selvedge_core::{round_robin, yield_now};
use selvedge_distributed::{DistributedError, RankStages, RemoteStage, StagePool, on_rank};
use selvedge_flow::{FlowSource, Source, made};
use selvedge_mpi::{Communicator, Ranks};
use selvedge_pipeline::{
    StageError, Transduce, Transducer, collect, fold, from_chunks, from_iter, group_by, head, lift121, line,
    naturals, take, try_lift121,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The stages of the tests, with a pool of all ranks.
struct Stages {
    lines: RemoteStage<u8, [u8]>,
    lengths: RemoteStage<[u8], u64>,
    squares: RemoteStage<u64, u64>,
    halves: RemoteStage<u64, u64>,
    three: RemoteStage<u64, u64>,
    breaks: RemoteStage<u64, u64>,
    pool: StagePool,
}

fn halved() -> Transducer<u64, u64, impl Transduce<u64, u64> + Send + 'static> {
    try_lift121(|n: &u64| if n.is_multiple_of(2) { Ok(n / 2) } else { Err("an odd number") })
}

async fn start(world: &Communicator) -> Result<Stages, DistributedError> {
    let mut stages = RankStages::new();
    let lines = stages.register("lines", || group_by(line()));
    let lengths = stages.register("lengths", || lift121(|line: &[u8]| line.len() as u64));
    let squares = stages.register("squares", || lift121(|n: &u64| n * n));
    let halves = stages.register("halves", halved);
    let three = stages.register("three", || take(3));
    let breaks = stages.register("breaks", || {
        lift121(|n: &u64| {
            assert!(*n != 5, "the thread broke");
            *n
        })
    });
    let pool = stages.start(world).await?;
    Ok(Stages { lines, lengths, squares, halves, three, breaks, pool })
}

/// Runs a pipeline on rank 0 of three, under each engine of threads, and gives what it gives.
fn on_rank_0<R, F>(pipeline: fn(Stages) -> F) -> R
where
    R: Send + PartialEq + std::fmt::Debug + 'static,
    F: Future<Output = R> + Send + 'static,
{
    let body = move |world: Communicator| async move {
        let stages = start(&world).await?;
        let pool = stages.pool.clone();
        let result = if world.rank() == 0 { Some(pipeline(stages).await) } else { None };
        pool.finish().await?;
        Ok::<_, DistributedError>(result)
    };
    let run = |ranks: Ranks| {
        round_robin(ranks.run(body)).expect("no deadlock").expect("no rank fails").swap_remove(0)
    };
    let moved = run(Ranks::new(3));
    assert_eq!(run(Ranks::new(3).serialized()), moved);
    moved.expect("rank 0 has a result")
}

#[test]
fn a_stage_on_another_rank_yields_what_it_yields_here() {
    let lengths = on_rank_0(|Stages { lines, lengths, squares, pool, .. }| async move {
        let text = made(from_chunks(["warp\nwe", "ft\n\nkn", "ot"]));
        let there =
            text >> on_rank(&pool, 1, lines) >> on_rank(&pool, 2, lengths) >> on_rank(&pool, 0, squares);
        (there >> collect()).run().await.unwrap()
    });
    let here = from_chunks(["warp\nwe", "ft\n\nkn", "ot"]) >> group_by(line());
    assert_eq!(lengths, (here >> lift121(|line: &[u8]| (line.len() * line.len()) as u64) >> collect()).run());
}

#[test]
fn many_chunks_come_in_their_order() {
    let sum = on_rank_0(|Stages { squares, pool, .. }| async move {
        let numbers =
            made(from_iter(0..50_000_u64)) >> on_rank(&pool, 1, squares) >> on_rank(&pool, 2, squares);
        let mixed = fold(0_u64, |hash, n: &u64| *hash = hash.wrapping_mul(31).wrapping_add(*n));
        (numbers >> mixed).run().await.unwrap()
    });
    let squares = (0..50_000_u64).map(|n| (n * n).wrapping_mul(n * n));
    assert_eq!(sum, squares.fold(0_u64, |hash, n| hash.wrapping_mul(31).wrapping_add(n)));
}

#[test]
fn a_stage_that_fails_fails_as_it_does_here() {
    let there = on_rank_0(|Stages { halves, squares, pool, .. }| async move {
        let numbers =
            made(from_iter([2, 4, 7, 8_u64])) >> on_rank(&pool, 1, halves) >> on_rank(&pool, 2, squares);
        (numbers >> collect()).run().await.unwrap_err().to_string()
    });
    let here = (from_iter([2, 4, 7, 8_u64]) >> halved() >> collect()).try_run().unwrap_err();
    assert_eq!(there, here.to_string());
}

#[test]
fn a_source_that_fails_gives_its_items_before() {
    let (sum, told) = on_rank_0(|Stages { squares, pool, .. }| async move {
        let sum = Arc::new(AtomicU64::new(0));
        let seen = sum.clone();
        let numbers =
            made(from_iter([2, 4, 7, 8_u64]) >> halved().named("read")) >> on_rank(&pool, 1, squares);
        let add = fold((), move |(), n: &u64| {
            seen.fetch_add(*n, Ordering::Relaxed);
        });
        let failure = (numbers >> add).run().await.unwrap_err();
        (sum.load(Ordering::Relaxed), failure.to_string())
    });
    assert_eq!((sum, &*told), (5, "read: item 3, offset 2: an odd number"));
}

#[test]
fn a_panic_of_the_stage_is_its_failure() {
    let told = on_rank_0(|Stages { breaks, pool, .. }| async move {
        let numbers = made(naturals()) >> on_rank(&pool, 2, breaks);
        (numbers >> collect()).run().await.unwrap_err().to_string()
    });
    assert!(told.starts_with("breaks: item 1, offset 0: the stage has panicked on rank 2: "), "{told}");
    assert!(told.contains("the thread broke"), "{told}");
}

/// Numbers without end, which says how many it has given and when it was closed.
struct Counts {
    given: Arc<AtomicU64>,
    closed: Arc<AtomicBool>,
    item: [u64; 1],
}

impl Source<u64> for Counts {
    async fn next(&mut self) -> Result<Option<&[u64]>, StageError> {
        self.item[0] = self.given.fetch_add(1, Ordering::Relaxed);
        Ok(Some(&self.item))
    }

    async fn close(self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

fn counts() -> (Counts, Arc<AtomicU64>, Arc<AtomicBool>) {
    let (given, closed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    (Counts { given: given.clone(), closed: closed.clone(), item: [0] }, given, closed)
}

#[test]
fn a_consumer_that_is_finished_stops_the_source() {
    let (items, given, is_closed) = on_rank_0(|Stages { squares, three, pool, .. }| async move {
        let (supply, given, closed) = counts();
        let numbers = FlowSource::new(supply) >> on_rank(&pool, 1, squares) >> on_rank(&pool, 2, three);
        let items = (numbers >> take(2) >> collect()).run().await.unwrap();
        (items, given.load(Ordering::Relaxed), closed.load(Ordering::Relaxed))
    });
    assert_eq!((items, is_closed), (vec![0, 1], true));
    assert!(given < 40, "the source has given {given} items for two");
}

#[test]
fn a_slow_consumer_holds_up_the_source() {
    let given = on_rank_0(|Stages { squares, pool, .. }| async move {
        let (supply, given, _) = counts();
        let mut reading = (FlowSource::new(supply) >> on_rank(&pool, 1, squares)).pull();
        let first = reading.read(head()).await.unwrap();
        assert_eq!(first, Some(0));
        for _ in 0..10_000 {
            yield_now().await;
        }
        let given = given.load(Ordering::Relaxed);
        reading.close().await;
        given
    });
    // The windows of both directions, what is worked at, and what was asked for.
    assert!((2..=14).contains(&given), "the source has given {given} items for one");
}

#[test]
fn a_pipeline_that_is_dropped_closes_its_stream() {
    let (given, is_closed) = on_rank_0(|Stages { squares, pool, .. }| async move {
        let (supply, given, closed) = counts();
        let mut reading = (FlowSource::new(supply) >> on_rank(&pool, 1, squares)).pull();
        reading.read(head()).await.unwrap();
        drop(reading);
        while !closed.load(Ordering::Relaxed) {
            yield_now().await;
        }
        (given.load(Ordering::Relaxed) < 20, closed.load(Ordering::Relaxed))
    });
    assert!(given && is_closed);
}

#[test]
fn a_rank_that_ends_fails_the_pipelines_through_it() {
    let body = |world: Communicator| async move {
        let Stages { squares, pool, .. } = start(&world).await?;
        if world.rank() == 1 {
            // It ends in the middle of a stream that has no end.
            for _ in 0..200 {
                yield_now().await;
            }
            panic!("rank 1 ends");
        }
        let mut told = String::new();
        if world.rank() == 0 {
            let numbers = made(naturals()) >> on_rank(&pool, 1, squares) >> on_rank(&pool, 2, squares);
            let failure = (numbers >> fold((), |(), _: &u64| ())).run().await.unwrap_err();
            told = failure.to_string();
            world.send(2, (), ()).await?;
        } else {
            world.recv::<()>(0, ()).await?;
        }
        // The rank that has ended takes no part in the end.
        assert!(pool.finish().await.is_err());
        Ok::<_, DistributedError>(told)
    };
    let failure = round_robin(Ranks::new(3).run(body)).expect("no deadlock").unwrap_err();
    let failed: Vec<usize> = failure.ranks.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(failed, [1], "{failure}");
}

#[test]
fn the_same_items_in_five_hundred_simulated_worlds() {
    selvedge_sim::simulate(0..500, || async {
        let body = |world: Communicator| async move {
            let Stages { lines, lengths, halves, pool, .. } = start(&world).await?;
            let mut seen = Vec::new();
            if world.rank() == 0 {
                let text = made(from_chunks(["warp\n", "we", "ft\n", "knot\n", "a\n", "bb\n", "c\n"]));
                let there = text >> on_rank(&pool, 1, lines) >> on_rank(&pool, 2, lengths);
                let numbers = there >> on_rank(&pool, 1, halves);
                match (numbers >> collect()).run().await {
                    Ok(all) => panic!("one of the lengths is odd: {all:?}"),
                    Err(failure) => seen.push(failure.to_string()),
                }
            }
            pool.finish().await?;
            Ok::<_, DistributedError>(seen)
        };
        let ended = Ranks::new(3).run(body).await.unwrap();
        assert_eq!(ended[0], ["try_lift121: item 4, offset 3: an odd number"]);
    });
}
