//! Two bounded queues and workers that take from the urgent one first: a wait for either of two
//! queues is one transaction, and so is the end, when both are empty and no producer is left.
//!
//! # Prints
//! ```text
//! 3 workers did 100 urgent and 100 other jobs; the queues never held more than 8 and 8
//! ```

use selvedge::spawn;
use selvedge::stm::{TBQueue, TWord, atomically};
use std::process::ExitCode;

const ROOM: usize = 8;

#[derive(Clone)]
struct Work {
    urgent: TBQueue<u32>,
    other: TBQueue<u32>,
    producers: TWord<u32>,
}

/// What a worker finds: a job, and whether it is urgent.
type Job = (bool, u32);

async fn produce(work: Work, is_urgent: bool) {
    let queue = if is_urgent { &work.urgent } else { &work.other };
    for job in 1..=100 {
        atomically(|tx| queue.push(tx, job)).await; // waits while the queue is full
        assert!(atomically(|tx| queue.len(tx)).await <= ROOM);
    }
    atomically(|tx| work.producers.modify(tx, |n| n - 1)).await;
}

/// The next job; `None` when there will be none.
async fn next(work: &Work) -> Option<Job> {
    atomically(|tx| {
        tx.or_else(
            |tx| Ok(Some((true, work.urgent.pop(tx)?))),
            |tx| {
                tx.or_else(
                    |tx| Ok(Some((false, work.other.pop(tx)?))),
                    |tx| {
                        let are_done = work.producers.read(tx)? == 0;
                        tx.check(are_done)?;
                        Ok(None)
                    },
                )
            },
        )
    })
    .await
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let work = Work { urgent: TBQueue::new(ROOM), other: TBQueue::new(ROOM), producers: TWord::new(2) };
        for is_urgent in [false, true] {
            drop(spawn(produce(work.clone(), is_urgent)));
        }
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let work = work.clone();
                spawn(async move {
                    let mut done = [(0, 0); 2];
                    while let Some((is_urgent, job)) = next(&work).await {
                        let (jobs, sum) = &mut done[usize::from(is_urgent)];
                        (*jobs, *sum) = (*jobs + 1, *sum + job);
                    }
                    done
                })
            })
            .collect();
        let mut all = [(0, 0); 2];
        for worker in workers {
            for (of_all, of_one) in all.iter_mut().zip(worker.await?) {
                *of_all = (of_all.0 + of_one.0, of_all.1 + of_one.1);
            }
        }
        let [(other, sum_of_others), (urgent, sum_of_urgent)] = all;
        assert_eq!((sum_of_others, sum_of_urgent), (5_050, 5_050));
        println!(
            "3 workers did {urgent} urgent and {other} other jobs; the queues never held more than {ROOM} and {ROOM}"
        );
        Ok(())
    })
}
