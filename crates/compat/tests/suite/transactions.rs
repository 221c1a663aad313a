//! Transactions of tokio's tasks, which wait for one another, for threads of ours, and for OS
//! threads.

use selvedge_sched::round_robin_over;
use selvedge_stm::{TMVar, TQueue, TWord, atomically, atomically_blocking, wait_for};
use std::thread;
use tokio::runtime::{Builder, Runtime};

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()].map(|mut builder| builder.build().unwrap())
}

#[test]
fn tasks_hand_values_on() {
    const ROUNDS: u32 = 500;
    for runtime in runtimes() {
        let (ping, pong) = (TMVar::empty(), TMVar::empty());
        let (taken, given) = (ping.clone(), pong.clone());
        let other = runtime.spawn(async move {
            for _ in 0..ROUNDS {
                let n: u32 = atomically(|tx| taken.take(tx)).await;
                atomically(|tx| given.put(tx, n + 1)).await;
            }
        });
        runtime.block_on(async {
            for n in 0..ROUNDS {
                atomically(|tx| ping.put(tx, n)).await;
                assert_eq!(atomically(|tx| pong.take(tx)).await, n + 1);
            }
            other.await.unwrap();
        });
    }
}

/// An aborted task leaves no waiter: a write wakes the others.
#[test]
fn aborted_tasks_leave_no_waiter() {
    for runtime in runtimes() {
        let (queue, taken) = (TQueue::new(), TWord::new(0_u32));
        let takers: Vec<_> = (0..20)
            .map(|_| {
                let (queue, taken) = (queue.clone(), taken.clone());
                runtime.spawn(async move {
                    atomically(|tx| {
                        let n: u32 = queue.pop(tx)?;
                        taken.modify(tx, |sum| sum + n)
                    })
                    .await;
                })
            })
            .collect();
        runtime.block_on(async {
            for (n, taker) in takers.iter().enumerate() {
                if n % 2 == 0 {
                    taker.abort();
                }
            }
            let mut left = 0;
            for (n, taker) in takers.into_iter().enumerate() {
                if n % 2 == 0 {
                    assert!(taker.await.unwrap_err().is_cancelled());
                } else {
                    left += 1;
                    drop(taker);
                }
            }
            for _ in 0..left {
                atomically(|tx| queue.push(tx, 1)).await;
            }
            wait_for(move |tx| Ok(taken.read(tx)? == left)).await;
        });
    }
}

/// A task, a thread of ours and an OS thread take turns.
#[test]
fn tasks_threads_and_os_threads_take_turns() {
    const ROUNDS: u32 = 300;
    for runtime in runtimes() {
        let turn = TWord::new(0_u32);
        let (of_thread, of_os) = (turn.clone(), turn.clone());
        let ours = thread::spawn(move || {
            round_robin_over(&mut selvedge_io::EventLoop::new().unwrap(), async move {
                for n in 0..ROUNDS {
                    atomically(|tx| {
                        tx.check(of_thread.read(tx)? == 3 * n + 1)?;
                        of_thread.modify(tx, |n| n + 1)
                    })
                    .await;
                }
            })
            .unwrap();
        });
        let os = thread::spawn(move || {
            for n in 0..ROUNDS {
                atomically_blocking(|tx| {
                    tx.check(of_os.read(tx)? == 3 * n + 2)?;
                    of_os.modify(tx, |n| n + 1)
                });
            }
        });
        runtime.block_on(async {
            for n in 0..ROUNDS {
                atomically(|tx| {
                    tx.check(turn.read(tx)? == 3 * n)?;
                    turn.modify(tx, |n| n + 1)
                })
                .await;
            }
        });
        ours.join().unwrap();
        os.join().unwrap();
        assert_eq!(turn.read_now(), 3 * ROUNDS);
    }
}
