//! Sources that are joined, drained, and read in turn.

use crate::schedulers::{Scheduler, run};
use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, proptest};
use selvedge_core::{round_robin, yield_now};
use selvedge_flow::{FlowSource, Source, ahead, join_sources, made, par};
use selvedge_pipeline::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

under_every_scheduler! {
    a_join_is_the_same_with_threads_and_without
    a_source_is_drained_before_the_result
}

fn a_join_is_the_same_with_threads_and_without(scheduler: Scheduler) {
    let (left, right): (Vec<u32>, Vec<u32>) =
        ((0..900).map(|n| n * 3).collect(), (0..700).map(|n| n * 4).collect());
    let pure = |join: u8| {
        let (left, right) = (from_iter(left.clone()), from_iter(right.clone()));
        match join {
            0 => join_generators(left, right, join::concatenate()).collect(),
            1 => join_generators(left, right, join::interleave()).collect(),
            2 => join_generators(left, right, join::zip_with(|a, b| a + b)).collect(),
            _ => join_generators(left, right, join::merge(u32::cmp)).collect(),
        }
    };
    for join in 0..4 {
        let (left, right) = (left.clone(), right.clone());
        let joined = run(scheduler, async move {
            let pieces = |items: &[u32], length: usize| {
                made(from_chunks(items.chunks(length).map(<[u32]>::to_vec).collect::<Vec<_>>()))
            };
            let mut all = Vec::new();
            for length in [1, 7, 900] {
                let here = (pieces(&left, length), pieces(&right, 11));
                let apart = (pieces(&left, length) >> par(), pieces(&right, 13) >> id() >> ahead(2));
                let (one, other) = match join {
                    0 => (
                        (join_sources(here.0, here.1, join::concatenate()) >> collect()).run().await,
                        (join_sources(apart.0, apart.1, join::concatenate()) >> collect()).run().await,
                    ),
                    1 => (
                        (join_sources(here.0, here.1, join::interleave()) >> collect()).run().await,
                        (join_sources(apart.0, apart.1, join::interleave()) >> collect()).run().await,
                    ),
                    2 => (
                        (join_sources(here.0, here.1, join::zip_with(|a, b| a + b)) >> collect()).run().await,
                        (join_sources(apart.0, apart.1, join::zip_with(|a, b| a + b)) >> collect())
                            .run()
                            .await,
                    ),
                    _ => (
                        (join_sources(here.0, here.1, join::merge(u32::cmp)) >> collect()).run().await,
                        (join_sources(apart.0, apart.1, join::merge(u32::cmp)) >> collect()).run().await,
                    ),
                };
                all.extend([one.unwrap(), other.unwrap()]);
            }
            all
        })
        .unwrap();
        assert_eq!(joined, vec![pure(join); 6], "join {join}");
    }
}

/// Numbers that wait, and count how often they are closed.
struct Waiting {
    next: [u32; 1],
    until: u32,
    closed: Arc<AtomicU32>,
}

impl Source<u32> for Waiting {
    async fn next(&mut self) -> Result<Option<&[u32]>, StageError> {
        yield_now().await;
        if self.next[0] == self.until {
            return Ok(None);
        }
        self.next[0] += 1;
        Ok(Some(&self.next))
    }

    async fn close(self) {
        yield_now().await;
        // Each source adds another digit, so the sum tells the order.
        self.closed.fetch_update(SeqCst, SeqCst, |before| Some(before * 100 + self.next[0])).unwrap();
    }
}

fn waiting(until: u32, closed: &Arc<AtomicU32>) -> FlowSource<u32, u32, Waiting, Unchanged> {
    FlowSource::new(Waiting { next: [0], until, closed: closed.clone() })
}

fn a_source_is_drained_before_the_result(scheduler: Scheduler) {
    let closed = Arc::new(AtomicU32::new(0));
    let (seen, theirs) = (closed.clone(), closed);
    run(scheduler, async move {
        let first = (waiting(9, &theirs) >> lift121(|n: &u32| n * 2)).drain() >> ahead(2) >> head();
        assert_eq!((first.run().await.unwrap(), theirs.swap(0, SeqCst)), (Some(2), 9));
        // Also after a failure behind it.
        let fails = try_lift121(|n: &u32| if *n < 4 { Ok(*n) } else { Err("four") });
        let failed = (waiting(9, &theirs).drain() >> fails >> count()).run().await.unwrap_err();
        assert_eq!((failed.item(), theirs.swap(0, SeqCst)), (4, 9));
        // Without it the source ends where the consumer does.
        assert_eq!((waiting(9, &theirs) >> take(3) >> count()).run().await.unwrap(), 3);
        assert_eq!(theirs.swap(0, SeqCst), 3);
    })
    .unwrap();
    assert_eq!(seen.load(SeqCst), 0);
}

#[test]
fn a_join_that_is_finished_closes_the_left_source_first() {
    let closed = Arc::new(AtomicU32::new(0));
    let theirs = closed.clone();
    // It starts at another number, so the sum tells the order.
    let later = FlowSource::new(Waiting { next: [10], until: 50, closed: closed.clone() });
    let sums = round_robin(async move {
        let zipped = join_sources(waiting(3, &theirs), later, join::zip_with(|a, b| a + b));
        (zipped >> collect()).run().await
    });
    assert_eq!(sums.unwrap().unwrap(), [12, 14, 16]);
    assert_eq!(closed.load(SeqCst), 313);
}

#[test]
fn items_that_are_joined_do_not_wait_for_the_other_side() {
    /// Gives one item, and then waits for ever.
    struct OneItem(bool);

    impl Source<u32> for OneItem {
        async fn next(&mut self) -> Result<Option<&[u32]>, StageError> {
            if std::mem::replace(&mut self.0, true) {
                std::future::pending::<()>().await;
            }
            Ok(Some(&[7]))
        }
    }

    let first = round_robin(async {
        let joined = join_sources(made(from_iter(1..3)), FlowSource::new(OneItem(false)), join::interleave());
        (joined >> take(3) >> collect()).run().await
    });
    assert_eq!(first.unwrap().unwrap(), [1, 7, 2]);
}

#[test]
fn a_failure_of_a_side_comes_after_the_items_before_it() {
    let run = |left: bool| {
        round_robin(async move {
            let fails = || try_lift121(|n: &u32| if *n < 3 { Ok(*n) } else { Err("three") });
            let ends = made(from_iter(0..9));
            let faulty = made(from_iter(0..9)) >> fails();
            let seen = Arc::new(AtomicU32::new(0));
            let count = seen.clone();
            let counting = fold((), move |(): &mut (), _: &u32| {
                let _before = count.fetch_add(1, SeqCst);
            });
            let over = match left {
                true => (join_sources(faulty, ends, join::interleave()) >> counting).run().await,
                false => (join_sources(ends, faulty, join::interleave()) >> counting).run().await,
            };
            (over.unwrap_err().to_string(), seen.load(SeqCst))
        })
        .unwrap()
    };
    let told = "try_lift121: item 4, offset 3: three".to_string();
    assert_eq!((run(true), run(false)), ((told.clone(), 6), (told, 7)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A source that is read in turn gives each item once, and then its failure.
    #[test]
    fn a_source_is_read_in_turn(lengths in prop::collection::vec(1..5_usize, 0..8), cut in 1..9_usize) {
        let read = round_robin(async move {
            let items: Vec<Vec<u32>> = (0..20).collect::<Vec<_>>().chunks(cut).map(<[u32]>::to_vec).collect();
            let fails = try_lift121(|n: &u32| if *n < 18 { Ok(*n) } else { Err("eighteen") });
            let mut stream = (made(from_chunks(items)) >> fails).pull();
            let mut all = Vec::new();
            for length in lengths {
                match stream.read(take(length as u64) >> collect()).await {
                    Ok(some) => all.push((some, None)),
                    Err(failure) => all.push((Vec::new(), Some(failure.item()))),
                }
            }
            let rest = stream.read(collect::<u32>()).await.map_err(|failure| failure.item());
            stream.close().await;
            (all, rest)
        });
        let (all, rest) = read.unwrap();
        let mut next = 0;
        for (some, failed) in &all {
            prop_assert_eq!(some.clone(), (next..next + some.len() as u32).collect::<Vec<_>>());
            prop_assert!(failed.is_none_or(|item| item == 19));
            next += some.len() as u32;
        }
        // The failure is told once. After it the stream has ended.
        let told = all.iter().any(|(_, failed)| failed.is_some());
        prop_assert_eq!(rest, if told { Ok(Vec::new()) } else { Err(19) });
    }
}
