//! Scopes whose children run on several OS threads at once.

use selvedge_core::*;
use selvedge_scope::*;
use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// The simplest scheduler for a group: one queue under a lock.
#[derive(Default)]
struct Queue {
    ready: Mutex<VecDeque<SendThread>>,
    stop: AtomicBool,
}

impl Queue {
    fn work(&self, cpu: &mut Cpu) {
        while !self.stop.load(Ordering::Acquire) {
            while let Some(thread) = cpu.woken() {
                self.offer(cpu, thread);
            }
            let next = self.ready.lock().unwrap().pop_front();
            match next {
                Some(thread) => self.step(cpu, thread.into_thread()),
                None => std::thread::yield_now(),
            }
        }
    }

    fn offer(&self, cpu: &mut Cpu, thread: Thread) {
        match thread.into_send() {
            Ok(thread) => self.ready.lock().unwrap().push_back(thread),
            Err(thread) => self.step(cpu, thread),
        }
    }

    fn step(&self, cpu: &mut Cpu, thread: Thread) {
        match thread.step(cpu) {
            Trace::Yield(thread) => self.offer(cpu, thread),
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Runs `main` with three CPUs until it has ended.
fn run<T: Send + 'static>(main: impl Future<Output = T> + Send + 'static) -> T {
    let (group, queue, together) = (Group::new(), Arc::new(Queue::default()), Barrier::new(3));
    let result = Arc::new(Mutex::new(None));
    std::thread::scope(|threads| {
        let mut cpu = Cpu::new_in(&group).unwrap();
        let (to, end) = (result.clone(), queue.clone());
        let main = cpu.spawn(async move {
            let output = main.await;
            *to.lock().unwrap() = Some(output);
            end.stop.store(true, Ordering::Release);
        });
        drop(main.unwrap());
        for _ in 1..3 {
            threads.spawn(|| {
                let mut cpu = Cpu::new_in(&group).unwrap();
                queue.work(&mut cpu);
                together.wait();
            });
        }
        queue.work(&mut cpu);
        together.wait();
        queue.ready.lock().unwrap().clear();
    });
    result.lock().unwrap().take().expect("it has ended")
}

/// Counts those that are there.
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
    run(async move {
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
    let sum = run(async {
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
        let woken = run(async move {
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
