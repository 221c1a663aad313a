//! The objects between tokio's tasks on several OS threads and Selvedge threads, with tokio's
//! `select!` and its time-outs.
#![cfg(not(any(loom, miri)))]

use selvedge_core::round_robin;
use selvedge_sync::*;
use std::sync::Arc;
use std::time::Duration;

const ROUNDS: u32 = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tasks_count_with_a_mutex() {
    let sum = Arc::new(Mutex::new(0));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let sum = sum.clone();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let mut sum = sum.lock().await;
                    if round % 64 == 0 {
                        tokio::task::yield_now().await;
                    }
                    *sum += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*sum.lock().await, 4 * ROUNDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_loses_a_select_or_times_out_loses_no_value() {
    let (one, other) = (Arc::new(MVar::empty()), Arc::new(BoundedFifo::new(2)));
    let putting = {
        let (one, other) = (one.clone(), other.clone());
        tokio::spawn(async move {
            for value in 0..ROUNDS {
                match value % 2 {
                    0 => one.put(value).await,
                    _ => other.put(value).await.unwrap(),
                }
            }
        })
    };
    let mut seen = vec![false; ROUNDS as usize];
    let mut got = 0;
    while got < ROUNDS {
        let value = tokio::select! {
            value = one.take() => Some(value),
            value = other.take() => value,
            _ = tokio::time::sleep(Duration::from_micros(got as u64 % 3)) => {
                tokio::time::timeout(Duration::ZERO, one.take()).await.ok()
            }
        };
        if let Some(value) = value {
            assert!(!std::mem::replace(&mut seen[value as usize], true), "{value} twice");
            got += 1;
        }
    }
    putting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_and_threads_of_ours_meet() {
    let (to, from) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
    let ours = {
        let (to, from) = (to.clone(), from.clone());
        std::thread::spawn(move || {
            round_robin(async move {
                for _ in 0..ROUNDS {
                    let value: u32 = to.take().await;
                    from.put(value + 1).await;
                }
            })
        })
    };
    let mut value = 0;
    for _ in 0..ROUNDS {
        to.put(value).await;
        value = from.take().await;
    }
    assert_eq!(value, ROUNDS);
    ours.join().unwrap().unwrap();
}

#[tokio::test]
async fn the_rest_of_them() {
    let (fulfiller, promise) = Promise::new();
    let (broadcaster, mut listener) = broadcast(4);
    let (setter, mut watcher) = watch(0);
    let (barrier, cell) = (Arc::new(Barrier::new(2)), Arc::new(OnceCell::new()));
    let shared = Arc::new((Mutex::new(0), Condition::new(), RwLock::new(0), Semaphore::new(1)));
    let task = {
        let (shared, barrier, cell) = (shared.clone(), barrier.clone(), cell.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            fulfiller.fulfil(1);
            broadcaster.send(2);
            setter.set(3);
            *shared.0.lock().await = 4;
            shared.1.notify_all();
            let _permit = shared.3.acquire().await;
            *shared.2.write().await = 5;
            cell.get_or_init(|| async { 6 }).await;
        })
    };
    barrier.wait().await;
    assert_eq!(promise.claim().await, Ok(&1));
    assert_eq!(listener.listen().await, Ok(2));
    assert_eq!(watcher.changed().await.map(|()| *watcher.latest()), Ok(3));
    assert_eq!(*shared.1.wait_while(shared.0.lock().await, |value| *value == 0).await, 4);
    task.await.unwrap();
    assert_eq!((*shared.2.read().await, cell.get()), (5, Some(&6)));
    assert_eq!(shared.3.available(), 1);
}
