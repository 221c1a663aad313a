//! The objects between OS threads that block: no value is lost or doubled, also when waits are
//! given up.

use selvedge_sync::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const THREADS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 8 } else { 3_000 };

/// Runs `work` on several OS threads.
fn all(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

/// A short time, sometimes zero.
fn impatience(round: usize) -> Duration {
    Duration::from_micros(round as u64 % 5 * 10)
}

#[test]
fn a_mutex_guards_a_sum() {
    let mutex = Mutex::new(0);
    all(|_| {
        for round in 0..ROUNDS {
            match round % 3 {
                0 => *mutex.lock_blocking() += 1,
                1 => *wait_blocking(mutex.lock()) += 1,
                _ => match wait_blocking_for(impatience(round), mutex.lock()) {
                    Some(mut sum) => *sum += 1,
                    None => *mutex.lock_blocking() += 1,
                },
            }
        }
    });
    assert_eq!(*mutex.try_lock().unwrap(), THREADS * ROUNDS);
}

#[test]
fn a_rw_lock_guards_a_pair() {
    let lock = RwLock::new((0, 0));
    all(|number| {
        for round in 0..ROUNDS {
            if (number + round) % 3 == 0 {
                let mut pair = lock.write_blocking();
                pair.0 += 1;
                pair.1 += 1;
                let pair = BlockingGuard::downgrade(pair);
                assert_eq!(pair.0, pair.1);
            } else if let Some(pair) = wait_blocking_for(impatience(round), lock.read()) {
                assert_eq!(pair.0, pair.1);
            }
        }
    });
    assert!(lock.try_write().is_some());
}

#[test]
fn a_semaphore_lets_in_as_many_as_it_says() {
    let semaphore = Semaphore::new(3);
    let inside = AtomicUsize::new(0);
    all(|_| {
        for round in 0..ROUNDS {
            let permits = round % 3 + 1;
            let permit = match round % 2 {
                0 => Some(semaphore.acquire_blocking(permits as u32)),
                _ => wait_blocking_for(impatience(round), semaphore.acquire_many(permits as u32)),
            };
            if let Some(_permit) = permit {
                assert!(inside.fetch_add(permits, Ordering::Relaxed) + permits <= 3);
                inside.fetch_sub(permits, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(semaphore.available(), 3);
}

/// Checks that each number is taken once, while takers give up in between.
fn each_once(put: impl Fn(u64) + Sync, take: impl Fn(usize) -> Option<u64> + Sync) {
    let (taken, sum) = (AtomicUsize::new(0), AtomicU64::new(0));
    all(|number| {
        if number % 2 == 0 {
            (0..ROUNDS).for_each(|round| put((number * ROUNDS + round) as u64));
        } else {
            let mut got = 0;
            let mut round = 0;
            while got < ROUNDS {
                round += 1;
                if let Some(value) = take(round) {
                    got += 1;
                    sum.fetch_add(value, Ordering::Relaxed);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    let expected: u64 =
        (0..THREADS).step_by(2).flat_map(|n| (0..ROUNDS).map(move |r| (n * ROUNDS + r) as u64)).sum();
    assert_eq!((taken.into_inner(), sum.into_inner()), (THREADS / 2 * ROUNDS, expected));
}

#[test]
fn an_mvar_delivers_each_value_once() {
    let var = MVar::empty();
    each_once(|value| var.put_blocking(value), |round| wait_blocking_for(impatience(round), var.take()));
}

#[test]
fn a_fifo_delivers_each_value_once() {
    let fifo = Fifo::new();
    each_once(|value| fifo.put(value), |round| wait_blocking_for(impatience(round), fifo.take()));
}

#[test]
fn a_bounded_fifo_delivers_each_value_once() {
    for capacity in [0, 1, 7] {
        let fifo = BoundedFifo::new(capacity);
        each_once(
            |value| fifo.put_blocking(value).unwrap(),
            |round| wait_blocking_for(impatience(round), fifo.take()).map(Option::unwrap),
        );
        assert!(fifo.is_empty());
    }
}

#[test]
fn a_condition_is_never_missed() {
    let (mutex, turned) = (Mutex::new(0), Condition::new());
    all(|number| {
        for _ in 0..ROUNDS / 4 {
            let mut turn = mutex.lock_blocking();
            while *turn % THREADS != number {
                turn = turned.wait_blocking(turn);
            }
            *turn += 1;
            drop(turn);
            turned.notify_all();
        }
    });
    assert_eq!(*mutex.try_lock().unwrap(), ROUNDS / 4 * THREADS);
}

#[test]
fn a_barrier_keeps_all_in_step() {
    let barrier = Barrier::new(THREADS);
    let (step, leaders) = (AtomicUsize::new(0), AtomicUsize::new(0));
    all(|_| {
        for round in 0..ROUNDS / 4 {
            step.fetch_add(1, Ordering::Relaxed);
            if barrier.wait_blocking().is_leader() {
                leaders.fetch_add(1, Ordering::Relaxed);
            }
            assert!(step.load(Ordering::Relaxed) >= (round + 1) * THREADS, "a thread went on too early");
            // No thread leaves before all have checked.
            barrier.wait_blocking();
        }
    });
    assert_eq!(leaders.into_inner(), ROUNDS / 4);
}

#[test]
fn a_once_cell_is_made_once() {
    for _ in 0..ROUNDS / 20 {
        let (cell, made) = (OnceCell::new(), AtomicUsize::new(0));
        all(|number| {
            let make = || async {
                made.fetch_add(1, Ordering::Relaxed);
                number
            };
            let one = *wait_blocking(cell.get_or_init(make));
            assert_eq!(cell.get(), Some(&one));
        });
        assert_eq!(made.into_inner(), 1);
    }
}

#[test]
fn a_promise_reaches_all() {
    for _ in 0..ROUNDS / 20 {
        let (fulfiller, promise) = Promise::new();
        let fulfiller = std::sync::Mutex::new(Some(fulfiller));
        all(|number| match number {
            0 => fulfiller.lock().unwrap().take().unwrap().fulfil(6),
            _ => assert_eq!(promise.claim_blocking(), Ok(&6)),
        });
    }
}

#[test]
fn a_broadcast_reaches_all_in_order() {
    let (broadcaster, listener) = broadcast(16);
    let broadcaster = std::sync::Mutex::new(Some(broadcaster));
    let counts = AtomicUsize::new(0);
    let listeners: Vec<_> = (0..THREADS).map(|_| std::sync::Mutex::new(Some(listener.clone()))).collect();
    all(|number| {
        if number == 0 {
            let broadcaster = broadcaster.lock().unwrap().take().unwrap();
            for value in 0..ROUNDS {
                broadcaster.send(value);
            }
            return;
        }
        let mut listener = listeners[number].lock().unwrap().take().unwrap();
        let mut next = 0;
        loop {
            match listener.listen_blocking() {
                Ok(value) => {
                    assert_eq!(value, next);
                    next += 1;
                }
                Err(ListenError::Lagged(missed)) => next += missed as usize,
                Err(ListenError::Closed) => break,
            }
        }
        assert_eq!(next, ROUNDS);
        counts.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(counts.into_inner(), THREADS - 1);
}

#[test]
fn a_watched_value_comes_to_its_last() {
    let (setter, watcher) = watch(0);
    let setter = std::sync::Mutex::new(Some(setter));
    let watcher = Arc::new(watcher);
    all(|number| {
        if number == 0 {
            let setter = setter.lock().unwrap().take().unwrap();
            (1..=ROUNDS).for_each(|value| drop(setter.set(value)));
            return;
        }
        let mut watcher = Watcher::clone(&watcher);
        let mut last = 0;
        while watcher.changed_blocking().is_ok() {
            let value = *watcher.latest();
            assert!(value >= last);
            last = value;
        }
        assert_eq!(*watcher.latest(), ROUNDS);
    });
}

#[test]
fn an_event_and_a_latch_let_all_go_on() {
    for _ in 0..ROUNDS / 20 {
        let (event, latch) = (Event::new(), Latch::new(THREADS as u32));
        all(|number| {
            latch.count_down();
            latch.wait_blocking();
            match number {
                0 => event.set(),
                _ => event.wait_blocking(),
            }
        });
        assert!(event.is_set() && latch.left() == 0);
    }
}

#[test]
fn an_os_thread_has_one_bell_and_another_within_a_wait() {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::task::{Poll, Waker};

    // Runs a wait that is woken at once; gives the waker of its first poll.
    let waker_of = |within: &dyn Fn()| {
        let first = RefCell::new(None::<Waker>);
        wait_blocking(poll_fn(|cx| {
            if first.borrow().is_some() {
                return Poll::Ready(());
            }
            within();
            cx.waker().wake_by_ref();
            *first.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }));
        first.into_inner().unwrap()
    };
    let inner = RefCell::new(None);
    let one = waker_of(&|| {
        let waker = waker_of(&|| {});
        *inner.borrow_mut() = Some(waker);
    });
    assert!(!one.will_wake(inner.borrow().as_ref().unwrap()));
    let next = waker_of(&|| {});
    assert!(next.will_wake(&one), "a waker is allocated for each wait");
    // The waker is woken for an earlier wait. The next wait polls once more, and sleeps.
    one.wake();
    let never = wait_blocking_for(Duration::from_millis(5), std::future::pending::<()>());
    assert_eq!(never, None);
}

#[test]
fn a_limit_beyond_the_clock_is_none() {
    assert_eq!(wait_blocking_for(Duration::MAX, std::future::ready(1)), Some(1));
}
