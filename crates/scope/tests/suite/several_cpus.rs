//! Scopes with children that run on several OS threads at once.

use crate::group::run;
use selvedge_core::*;
use selvedge_scope::*;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Is counted while it lives.
struct One(Arc<AtomicI32>);

impl One {
    fn new(count: &Arc<AtomicI32>) -> One {
        count.fetch_add(1, Ordering::SeqCst);
        One(count.clone())
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

const ROUNDS: u32 = if cfg!(miri) { 3 } else { 300 };

async fn yields(n: u32) {
    for _ in 0..n {
        yield_now().await;
    }
}

#[test]
fn none_is_left_when_a_scope_has_failed() {
    let count = Arc::new(AtomicI32::new(0));
    let seen = count.clone();
    run(3, async move {
        for round in 0..ROUNDS {
            let count = seen.clone();
            let failed = try_scope(async |s: TryScope<u32>| {
                for n in 0..8 {
                    let (one, count) = (One::new(&count), count.clone());
                    drop(s.spawn(async move {
                        let _one = one;
                        scope(async move |inner: Scope| {
                            let one = One::new(&count);
                            drop(inner.spawn(async move {
                                let _one = one;
                                if n % 3 == 0 {
                                    shield(yields(n)).await;
                                }
                                pending::<()>().await;
                            }));
                            yields(round % 7).await;
                        })
                        .await;
                        Ok(())
                    }));
                }
                yields(round % 5).await;
                drop(s.spawn(async move { Err::<(), _>(round) }));
                pending::<()>().await;
                Ok(())
            });
            assert_eq!(failed.await, Err(round));
            assert_eq!(seen.load(Ordering::SeqCst), 0, "in round {round}");
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn results_come_from_wherever_they_were_made() {
    let sum = run(3, async {
        let mut sum = 0;
        for _ in 0..ROUNDS {
            sum += scope(async |s: Scope| {
                let children: Vec<_> = (0..10)
                    .map(|n| {
                        s.spawn(async move {
                            yields(n).await;
                            n
                        })
                    })
                    .collect();
                join_all(children).await.into_iter().map(|n| n.unwrap()).sum::<u32>()
            })
            .await;
        }
        sum
    });
    assert_eq!(sum, 45 * ROUNDS);
}

#[test]
fn a_token_is_cancelled_from_another_os_thread() {
    for _ in 0..ROUNDS / 10 + 1 {
        let token = CancelToken::new();
        let there = token.clone();
        let helper = std::thread::spawn(move || there.cancel());
        let woken = run(3, async move {
            scope(async |s: Scope| {
                let children: Vec<_> = (0..10)
                    .map(|_| {
                        let token = token.child();
                        s.spawn(async move { token.cancelled().await })
                    })
                    .collect();
                join_all(children).await.len()
            })
            .await
        });
        helper.join().unwrap();
        assert_eq!(woken, 10);
    }
}
