//! The structures made of variables, on several OS threads at once: each attempt sees their
//! invariants.

use selvedge_stm::{
    Engine, TArray, TBQueue, TChan, TCounter, TMVar, TMap, TQueue, TSem, TSet, Tried, Tx, atomically_under,
};
use selvedge_sync::wait_blocking;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

fn times(many: u64) -> u64 {
    if cfg!(miri) { 20 } else { many }
}

/// A sequence of numbers below `below`.
fn numbers(seed: u64, below: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// Runs `audits` on an OS thread, while `works` runs on three others.
fn under_audit(audits: impl Fn() + Sync, works: impl Fn(u64) + Sync) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                audits();
            }
        });
        thread::scope(|scope| {
            for seed in 1..=3 {
                let works = &works;
                scope.spawn(move || works(seed));
            }
        });
        done.store(true, Ordering::Relaxed);
    });
}

/// Each transaction moves an entry to another key, so that leaves fill and empty, and branches come
/// and go. The number of entries and the sum of their values stay.
fn a_map_keeps_its_entries<E: Engine>() {
    const KEYS: u64 = 120;
    let (map, set) = (TMap::<u64, u64, E>::with_engine(), TSet::<u64, E>::with_engine());
    run::<E, _>(|tx| {
        for key in 0..KEYS / 2 {
            map.insert(tx, key, key)?;
            set.insert(tx, key)?;
        }
        Ok(())
    });
    let sum = (0..KEYS / 2).sum::<u64>();
    let audit = |tx: &Tx<E>| {
        let values = map.iter(tx).map(|entry| entry.map(|(_, value)| *value)).collect::<Tried<Vec<u64>>>()?;
        assert_eq!((values.len() as u64, values.iter().sum::<u64>()), (KEYS / 2, sum));
        Ok(())
    };
    let moves = |seed| {
        let mut number = numbers(seed, KEYS);
        for _ in 0..times(4_000) {
            let (from, to) = (number(), number());
            run::<E, _>(|tx| {
                assert_eq!(map.contains_key(tx, &from)?, set.contains(tx, &from)?);
                if map.contains_key(tx, &to)? {
                    return Ok(());
                }
                if let Some(value) = map.remove(tx, &from)? {
                    assert_eq!(map.insert(tx, to, *value)?, None);
                    assert!(set.remove(tx, &from)? && set.insert(tx, to)?);
                }
                Ok(())
            });
        }
    };
    under_audit(|| run::<E, _>(audit), moves);
    run::<E, _>(audit);
    assert_eq!(run::<E, _>(|tx| set.len(tx)) as u64, KEYS / 2);
}

/// Fills and empties the map to the ground, so that its branches are made and freed while others
/// read them.
fn a_map_is_filled_and_emptied<E: Engine>() {
    let map = TMap::<u64, u64, E>::with_engine();
    let audit = |tx: &Tx<E>| {
        for entry in map.iter(tx) {
            let (key, value) = entry?;
            assert_eq!(key * 3, *value);
        }
        assert_eq!(map.is_empty(tx)?, map.len(tx)? == 0);
        Ok(())
    };
    let fills_and_empties = |seed: u64| {
        let own = || (0..100).map(|n| n * 4 + seed);
        for _ in 0..times(50) {
            own().for_each(|key| {
                assert_eq!(run::<E, _>(|tx| Ok(map.insert(tx, key, key * 3)?.copied())), None)
            });
            own().for_each(|key| {
                assert_eq!(run::<E, _>(|tx| Ok(map.remove(tx, &key)?.copied())), Some(key * 3));
            });
        }
    };
    under_audit(|| run::<E, _>(audit), fills_and_empties);
    assert!(run::<E, _>(|tx| map.is_empty(tx)));
}

/// Three producers and two consumers: each value comes once, and those of one producer in order.
fn values_go_through(push: impl Fn(u64) + Sync, pop: impl Fn() -> u64 + Sync) {
    const PRODUCERS: u64 = 3;
    let each = times(2_000) * 2;
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let push = &push;
            scope.spawn(move || (0..each).for_each(|n| push(n * PRODUCERS + producer)));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [None; PRODUCERS as usize];
                for _ in 0..each * PRODUCERS / 2 {
                    let value = pop();
                    let before = last[(value % PRODUCERS) as usize].replace(value);
                    assert!(before < Some(value), "{value} after {before:?}");
                    sum.fetch_add(value, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), (0..each * PRODUCERS).sum());
}

fn values_go_through_queues_in_order<E: Engine>() {
    let queue = TQueue::<u64, E>::with_engine();
    values_go_through(|n| run::<E, _>(|tx| queue.push(tx, n)), || run::<E, _>(|tx| queue.pop(tx)));
    assert!(run::<E, _>(|tx| queue.is_empty(tx)));
    let bounded = TBQueue::<u64, E>::with_engine(3);
    values_go_through(|n| run::<E, _>(|tx| bounded.push(tx, n)), || run::<E, _>(|tx| bounded.pop(tx)));
    assert!(run::<E, _>(|tx| bounded.is_empty(tx)));
    let chan = TChan::<u64, E>::with_engine();
    values_go_through(|n| run::<E, _>(|tx| chan.write(tx, n)), || run::<E, _>(|tx| chan.read(tx)));
    assert!(run::<E, _>(|tx| chan.is_empty(tx)));
    let var = TMVar::<u64, E>::with_engine(None);
    values_go_through(|n| run::<E, _>(|tx| var.put(tx, n)), || run::<E, _>(|tx| var.take(tx)));
    assert!(run::<E, _>(|tx| var.is_empty(tx)));
}

/// A value leaves one queue and enters the other at one moment, so each audit finds all of them.
fn values_are_in_one_of_two_queues<E: Engine>() {
    const VALUES: usize = 5;
    let (queue, bounded) = (TQueue::<u64, E>::with_engine(), TBQueue::<u64, E>::with_engine(VALUES));
    let there = TCounter::<E>::with_engine();
    (0..VALUES as u64).for_each(|n| run::<E, _>(|tx| queue.push(tx, n)));
    let audit = |tx: &Tx<E>| {
        let in_bounded = bounded.len(tx)?;
        assert_eq!(there.read(tx)?, in_bounded as i64);
        assert_eq!(queue.is_empty(tx)?, in_bounded == VALUES);
        Ok(())
    };
    let moves = |seed| {
        for n in 0..times(3_000) {
            run::<E, _>(|tx| match n % 2 == seed % 2 {
                true => {
                    let Some(value) = queue.try_pop(tx)? else { return Ok(()) };
                    there.add(tx, 1)?;
                    bounded.push(tx, value)
                }
                false => {
                    let Some(value) = bounded.try_pop(tx)? else { return Ok(()) };
                    there.add(tx, -1)?;
                    queue.unget(tx, value)
                }
            });
        }
    };
    under_audit(|| run::<E, _>(audit), moves);
    let mut all = run::<E, _>(|tx| Ok([queue.flush(tx)?, bounded.flush(tx)?].concat()));
    all.sort_unstable();
    assert_eq!(all, (0..VALUES as u64).collect::<Vec<_>>());
}

fn each_reader_of_a_channel_gets_all_values<E: Engine>() {
    let news = TChan::<u64, E>::broadcast_with_engine();
    let many = times(3_000);
    thread::scope(|scope| {
        for _ in 0..3 {
            let own = run::<E, _>(|tx| news.dup(tx));
            scope.spawn(move || (0..many).for_each(|n| assert_eq!(run::<E, _>(|tx| own.read(tx)), n)));
        }
        (0..many).for_each(|n| run::<E, _>(|tx| news.write(tx, n)));
    });
}

fn a_semaphore_lets_two_in<E: Engine>() {
    let (sem, inside) = (TSem::<E>::with_engine(2), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..times(2_000) {
                    run::<E, _>(|tx| sem.wait(tx));
                    assert!(inside.fetch_add(1, Ordering::Relaxed) < 2);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    run::<E, _>(|tx| sem.signal(tx));
                }
            });
        }
    });
    assert_eq!(sem.available_now(), 2);
}

/// Sums move between the elements, and from the array to a counter.
fn no_sum_of_an_array_is_wrong<E: Engine>() {
    const LEN: u64 = 16;
    let array = TArray::<i64, E>::with_engine((0..LEN).map(|_| 100));
    let taken = TCounter::<E>::with_engine();
    let audit = |tx: &Tx<E>| {
        let sum: i64 = array.iter(tx).map(|n| n.copied()).sum::<Tried<i64>>()?;
        assert_eq!(sum + taken.read(tx)?, 100 * LEN as i64);
        Ok(())
    };
    let moves = |seed| {
        let mut number = numbers(seed, LEN);
        for _ in 0..times(4_000) {
            let (from, to) = (number() as usize, number() as usize);
            run::<E, _>(|tx| {
                array.modify(tx, from, |n| n - 2)?;
                array.modify(tx, to, |n| n + 1)?;
                taken.add(tx, 1)
            });
        }
    };
    under_audit(|| run::<E, _>(audit), moves);
    run::<E, _>(audit);
}

under_each_engine! {
    a_map_keeps_its_entries
    a_map_is_filled_and_emptied
    values_go_through_queues_in_order
    values_are_in_one_of_two_queues
    each_reader_of_a_channel_gets_all_values
    a_semaphore_lets_two_in
    no_sum_of_an_array_is_wrong
}
