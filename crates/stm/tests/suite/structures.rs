//! What the structures made of variables mean, under each engine.

use selvedge_core::{round_robin, spawn, yield_now};
use selvedge_stm::{
    Engine, TArray, TBQueue, TChan, TCounter, TLink, TMVar, TMap, TNode, TNodeRef, TQueue, TSem, TSet,
    TWordArray, Tried, Tx, atomically_under, reclaim,
};
use selvedge_sync::wait_blocking;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

/// Whether the transaction retries. It is run as a branch.
fn retries<E: Engine, R>(tx: &Tx<E>, body: impl FnOnce(&Tx<E>) -> Tried<R>) -> Tried<bool> {
    tx.or_else(|tx| body(tx).map(|_| false), |_| Ok(true))
}

fn a_variable_is_full_or_empty<E: Engine>() {
    let var = TMVar::<u32, E>::with_engine(None);
    run::<E, _>(|tx| {
        assert!(var.is_empty(tx)? && var.try_read(tx)?.is_none() && var.try_take(tx)?.is_none());
        assert!(retries(tx, |tx| var.take(tx))? && retries(tx, |tx| var.swap(tx, 1).copied())?);
        assert!(retries(tx, |tx| var.read(tx).copied())?);
        var.put(tx, 1)?;
        assert!(retries(tx, |tx| var.put(tx, 2))?);
        assert_eq!((*var.swap(tx, 3)?, var.try_read(tx)?), (1, Some(&3)));
        var.write(tx, 4);
        assert!(!var.is_empty(tx)?);
        assert_eq!((var.try_take(tx)?, var.is_empty(tx)?), (Some(4), true));
        var.write(tx, 5);
        Ok(())
    });
    assert_eq!(run::<E, _>(|tx| var.take(tx)), 5);
}

fn a_semaphore_counts_its_units<E: Engine>() {
    let sem = TSem::<E>::with_engine(1);
    run::<E, _>(|tx| {
        sem.wait(tx)?;
        assert!(retries(tx, |tx| sem.wait(tx))? && !sem.try_wait(tx)?);
        sem.signal_n(tx, 3)?;
        assert!(sem.try_wait(tx)?);
        sem.signal(tx)?;
        assert_eq!((sem.available(tx)?, sem.available_now()), (3, 1));
        Ok(())
    });
    assert_eq!(sem.available_now(), 3);
}

fn an_array_has_its_elements<E: Engine>() {
    let array = TArray::<String, E>::with_engine(["a", "b", "c"].map(String::from));
    run::<E, _>(|tx| {
        array.modify(tx, 1, |text| format!("{text}{text}"))?;
        assert_eq!(array.swap(tx, 0, "x".to_string())?, "a");
        let all: Tried<Vec<&String>> = array.iter(tx).collect();
        assert_eq!(all?, ["x", "bb", "c"]);
        assert_eq!(array.read_now(0, String::clone), "a");
        Ok(())
    });
    assert_eq!((array.len(), array.read_now(1, String::clone)), (3, "bb".to_string()));
    let empty = TArray::<u8, E>::with_engine([]);
    assert!(empty.is_empty() && run::<E, _>(|tx| Ok(empty.iter(tx).len())) == 0);
    let beyond = catch_unwind(AssertUnwindSafe(|| run::<E, _>(|tx| array.read(tx, 3).cloned())));
    assert!(beyond.is_err());
}

fn an_array_has_its_words<E: Engine>() {
    let array = TWordArray::<u32, E>::with_engine([1, 2, 3]);
    run::<E, _>(|tx| {
        array.modify(tx, 1, |n| n * 10)?;
        assert_eq!(array.swap(tx, 0, 7)?, 1);
        assert_eq!(array.iter(tx).collect::<Tried<Vec<u32>>>()?, [7, 20, 3]);
        array.write(tx, 2, 4);
        assert_eq!((array.read(tx, 2)?, array.read_now(0)), (4, 1));
        Ok(())
    });
    assert_eq!((array.len(), array.iter_now().collect::<Vec<_>>()), (3, vec![7, 20, 4]));
    assert!(TWordArray::<u8, E>::with_engine([]).is_empty());
    let beyond = catch_unwind(AssertUnwindSafe(|| array.read_now(3)));
    assert!(beyond.is_err());
}

/// The values of a list, from its first node on.
fn listed<E: Engine>(tx: &Tx<E>, first: &TLink<u32, 2, E>) -> Tried<Vec<u32>> {
    let (mut values, mut next) = (Vec::new(), first.read(tx)?);
    while let Some(node) = next {
        values.push(*node.value());
        next = node.link(0).read(tx)?;
    }
    Ok(values)
}

fn nodes_are_linked_and_unlinked<E: Engine>() {
    let node = |value, next| TNode::<u32, 2, E>::new(value, [next, None]);
    let last = node(3, None);
    let first = TLink::new(Some(node(1, Some(last.clone()))));
    run::<E, _>(|tx| {
        let seen = first.read(tx)?.expect("the node 1");
        let after = seen.link(0).read(tx)?;
        assert!(last.link(0).read(tx)?.is_none() && after != Some(seen));
        assert!(after.map(TNodeRef::owned) == Some(last.clone()) && seen.owned() != last);
        seen.link(0).write(tx, Some(node(2, after.map(TNodeRef::owned))));
        assert_eq!(listed(tx, &first)?, [1, 2, 3]);
        // A branch without effect.
        let undone = |tx: &Tx<E>| {
            first.write(tx, Some(node(9, None)));
            seen.link(0).write(tx, None);
            tx.retry()
        };
        tx.or_else(undone, |tx| {
            assert_eq!(listed(tx, &first)?, [1, 2, 3]);
            Ok(())
        })
    });
    assert_eq!(run::<E, _>(|tx| listed(tx, &first)), [1, 2, 3]);
    let beyond = catch_unwind(AssertUnwindSafe(|| last.link(2)));
    assert!(beyond.is_err());
    run::<E, _>(|tx| {
        first.clone().write(tx, None);
        Ok(())
    });
    assert_eq!((run::<E, _>(|tx| listed(tx, &first)), *last.value()), (vec![], 3));
}

fn an_unbounded_queue_gives_values_back<E: Engine>() {
    let queue = TQueue::<u32, E>::with_engine();
    run::<E, _>(|tx| {
        assert!(retries(tx, |tx| queue.pop(tx))? && retries(tx, |tx| queue.peek(tx).copied())?);
        (0..20).try_for_each(|n| queue.push(tx, n))?;
        for n in 0..9 {
            assert_eq!(queue.pop(tx)?, n);
        }
        // Back over the border between two segments, and before the first one there ever was.
        (0..20).try_for_each(|n| queue.unget(tx, 100 + n))?;
        assert_eq!((queue.try_peek(tx)?, queue.try_pop(tx)?), (Some(&119), Some(119)));
        Ok(())
    });
    let rest = run::<E, _>(|tx| queue.flush(tx));
    assert_eq!(rest, (100..119).rev().chain(9..20).collect::<Vec<_>>());
    assert!(run::<E, _>(|tx| Ok(queue.is_empty(tx)? && queue.flush(tx)?.is_empty())));
}

fn a_bounded_queue_has_its_bound<E: Engine>() {
    let queue = TBQueue::<u32, E>::with_engine(3);
    assert_eq!(queue.capacity(), 3);
    run::<E, _>(|tx| {
        assert!(queue.is_empty(tx)? && queue.len(tx)? == 0 && retries(tx, |tx| queue.pop(tx))?);
        for n in 0..3 {
            assert!(!queue.is_full(tx)?);
            queue.push(tx, n)?;
            assert_eq!(queue.len(tx)?, n as usize + 1);
        }
        assert!(queue.is_full(tx)? && retries(tx, |tx| queue.push(tx, 3))?);
        assert!(retries(tx, |tx| queue.unget(tx, 3))?);
        assert_eq!(queue.try_push(tx, 3)?, Err(3));
        assert_eq!((queue.pop(tx)?, *queue.peek(tx)?), (0, 1));
        queue.unget(tx, 7)?;
        assert!(queue.is_full(tx)?);
        assert_eq!((queue.pop(tx)?, queue.try_push(tx, 4)?), (7, Ok(())));
        Ok(())
    });
    assert_eq!(run::<E, _>(|tx| queue.flush(tx)), [1, 2, 4]);
    assert!(run::<E, _>(|tx| queue.is_empty(tx)));
    assert!(catch_unwind(|| TBQueue::<u8, E>::with_engine(0)).is_err());
}

fn each_end_of_a_channel_reads_for_itself<E: Engine>() {
    let chan = TChan::<u32, E>::with_engine();
    run::<E, _>(|tx| {
        chan.write(tx, 1)?;
        let same = chan.clone();
        let later = chan.dup(tx)?;
        let from_here = chan.dup_from_here(tx)?;
        later.write(tx, 2)?;
        assert_eq!((same.read(tx)?, chan.try_peek(tx)?), (1, Some(&2)));
        assert_eq!((later.read(tx)?, later.try_read(tx)?), (2, None));
        assert!(later.is_empty(tx)? && retries(tx, |tx| later.read(tx))?);
        chan.unget(tx, 9)?;
        assert_eq!((chan.read(tx)?, chan.read(tx)?), (9, 2));
        assert_eq!((*from_here.peek(tx)?, from_here.read(tx)?, from_here.read(tx)?), (1, 1, 2));
        assert!(from_here.is_empty(tx)?);
        Ok(())
    });
    let news = TChan::<u32, E>::broadcast_with_engine();
    run::<E, _>(|tx| news.write(tx, 1));
    let reader = run::<E, _>(|tx| news.dup(tx));
    run::<E, _>(|tx| news.write(tx, 2));
    assert_eq!(run::<E, _>(|tx| reader.read(tx)), 2);
    assert!(catch_unwind(AssertUnwindSafe(|| run::<E, _>(|tx| news.read(tx)))).is_err());
}

fn a_counter_is_the_sum_of_its_parts<E: Engine>() {
    let counter = TCounter::<E>::with_engine();
    std::thread::scope(|scope| {
        for n in 1..=4 {
            let counter = &counter;
            scope.spawn(move || run::<E, _>(|tx| counter.add(tx, n)));
        }
    });
    run::<E, _>(|tx| {
        counter.add(tx, -20)?;
        assert_eq!(counter.read(tx)?, -10);
        Ok(())
    });
}

/// The closures of the updates insert and remove entries, also in the leaf of the updated one.
fn an_update_keeps_what_its_closure_changes<E: Engine>() {
    let map = TMap::<u32, u32, E>::with_engine();
    let many = if cfg!(miri) { 30 } else { 300 };
    run::<E, _>(|tx| {
        let insert = |from: u32| (from..many).step_by(2).try_for_each(|n| map.insert(tx, n, n).map(drop));
        map.update(tx, 1, |_| insert(1).is_ok().then_some(100))?;
        assert_eq!((map.len(tx)?, map.get(tx, &1)?), (many as usize / 2, Some(&100)));
        map.update(tx, 1, |_| insert(0).err().map(|_| 0))?;
        assert_eq!((map.len(tx)?, map.get(tx, &1)?), (many as usize - 1, None));
        map.update(tx, 2, |n| {
            for n in 0..many {
                map.remove(tx, &n).ok()?;
            }
            n.map(|n| n + 1)
        })?;
        assert_eq!((map.len(tx)?, map.get(tx, &2)?), (1, Some(&3)));
        Ok(())
    });
}

fn a_map_has_its_entries<E: Engine>() {
    let map = TMap::<String, u32, E>::with_engine();
    let set = TSet::<String, E>::with_engine();
    let many = if cfg!(miri) { 30 } else { 300 };
    run::<E, _>(|tx| {
        assert!(map.is_empty(tx)? && set.is_empty(tx)?);
        for n in 0..many {
            assert_eq!(map.insert(tx, n.to_string(), n)?, None);
            assert!(set.insert(tx, n.to_string())? && !set.insert(tx, n.to_string())?);
        }
        assert_eq!(map.insert(tx, "7".to_string(), 70)?, Some(&7));
        assert_eq!(map.get_key_value(tx, "7")?, Some((&"7".to_string(), &70)));
        assert_eq!((map.remove(tx, "8")?, map.remove(tx, "8")?), (Some(&8), None));
        assert!(set.remove(tx, "8")? && !set.remove(tx, "8")? && set.get(tx, "8")?.is_none());
        map.update(tx, "9".to_string(), |n| n.map(|n| n * 10))?;
        map.update(tx, "10".to_string(), |_| None)?;
        map.update(tx, "new".to_string(), |n| Some(n.copied().unwrap_or(1)))?;
        Ok(())
    });
    run::<E, _>(|tx| {
        assert_eq!((map.get(tx, "9")?, map.get(tx, "10")?, map.get(tx, "new")?), (Some(&90), None, Some(&1)));
        assert_eq!((map.len(tx)?, set.len(tx)?), (many as usize - 1, many as usize - 1));
        assert!(map.contains_key(tx, "7")? && set.contains(tx, "7")? && !map.is_empty(tx)?);
        let mut keys: Vec<&String> = set.iter(tx).collect::<Tried<_>>()?;
        keys.sort_by_key(|key| key.parse::<u32>().ok());
        let others: Vec<String> = (0..many).filter(|n| *n != 8).map(|n| n.to_string()).collect();
        assert!(keys.into_iter().eq(&others));
        map.clear(tx);
        set.clear(tx);
        assert!(map.is_empty(tx)? && set.iter(tx).next().is_none());
        Ok(())
    });
    assert_eq!(run::<E, _>(|tx| map.len(tx)), 0);
}

/// An error in the middle leaves each structure as it was.
fn a_branch_without_effect_leaves_the_structures<E: Engine>() {
    let (queue, bounded) = (TQueue::<u32, E>::with_engine(), TBQueue::<u32, E>::with_engine(4));
    let (chan, map) = (TChan::<u32, E>::with_engine(), TMap::<u32, u32, E>::with_engine());
    let counter = TCounter::<E>::with_engine();
    run::<E, _>(|tx| {
        let all = |tx: &Tx<E>, n: u32| {
            queue.push(tx, n)?;
            bounded.push(tx, n)?;
            chan.write(tx, n)?;
            counter.add(tx, n.into())?;
            (0..20).try_for_each(|key| map.insert(tx, key + n, n).map(|_| ()))
        };
        all(tx, 1)?;
        assert!(retries(tx, |tx| all(tx, 2).and_then(|()| tx.retry::<()>()))?);
        assert_eq!((queue.flush(tx)?, bounded.flush(tx)?), (vec![1], vec![1]));
        assert_eq!((chan.read(tx)?, chan.try_read(tx)?, counter.read(tx)?), (1, None, 1));
        assert_eq!((map.len(tx)?, map.get(tx, &20)?, map.get(tx, &21)?), (20, Some(&1), None));
        Ok(())
    });
}

/// Runs `waits` in a thread of its own, then `frees`, and looks that the first waits for the
/// second.
fn waits_for<E: Engine>(
    waits: impl FnMut(&Tx<E>) -> Tried<()> + Send + 'static,
    frees: impl FnMut(&Tx<E>) -> Tried<()> + Send + 'static,
) {
    round_robin(async move {
        let done = Arc::new(AtomicBool::new(false));
        let told = done.clone();
        let waiter = spawn(async move {
            atomically_under::<E, _>(waits).await;
            told.store(true, Ordering::Relaxed);
        });
        for _ in 0..4 {
            yield_now().await;
        }
        assert!(!done.load(Ordering::Relaxed), "it has not waited");
        atomically_under::<E, _>(frees).await;
        waiter.await.unwrap();
    })
    .unwrap();
}

fn a_thread_waits_in_each_structure<E: Engine>() {
    let var = TMVar::<u32, E>::with_engine(Some(1));
    let (full, other) = (var.clone(), var);
    waits_for::<E>(move |tx| full.put(tx, 2), move |tx| other.take(tx).map(drop));

    let queue = TQueue::<u32, E>::with_engine();
    let (empty, other) = (queue.clone(), queue);
    waits_for::<E>(move |tx| empty.pop(tx).map(drop), move |tx| other.push(tx, 1));

    let bounded = TBQueue::<u32, E>::with_engine(1);
    let (empty, other) = (bounded.clone(), bounded.clone());
    waits_for::<E>(move |tx| empty.peek(tx).map(|_| ()), move |tx| other.push(tx, 1));
    let (full, other) = (bounded.clone(), bounded);
    waits_for::<E>(move |tx| full.push(tx, 1), move |tx| other.pop(tx).map(drop));

    let chan = TChan::<u32, E>::with_engine();
    let (empty, other) = (run::<E, _>(|tx| chan.dup(tx)), chan);
    waits_for::<E>(move |tx| empty.read(tx).map(drop), move |tx| other.write(tx, 1));

    let sem = TSem::<E>::with_engine(0);
    let (none, other) = (sem.clone(), sem);
    waits_for::<E>(move |tx| none.wait(tx), move |tx| other.signal(tx));

    let array = TArray::<u32, E>::with_engine([0, 0]);
    let (zero, other) = (array.clone(), array);
    let is_set = move |tx: &Tx<E>| {
        let is_set = *zero.read(tx, 1)? > 0;
        tx.check(is_set)
    };
    waits_for::<E>(is_set, move |tx| other.modify(tx, 1, |n| n + 1));

    let counter = TCounter::<E>::with_engine();
    let (zero, other) = (counter.clone(), counter);
    let is_high = move |tx: &Tx<E>| {
        let is_high = zero.read(tx)? > 2;
        tx.check(is_high)
    };
    waits_for::<E>(is_high, move |tx| other.add(tx, 3));

    let map = TMap::<u32, u32, E>::with_engine();
    let (missing, other) = (map.clone(), map.clone());
    let is_there = move |tx: &Tx<E>| {
        let is_there = missing.contains_key(tx, &1)?;
        tx.check(is_there)
    };
    waits_for::<E>(is_there, move |tx| other.insert(tx, 1, 1).map(|_| ()));
    let (there, other) = (map.clone(), map);
    let is_gone = move |tx: &Tx<E>| {
        let is_empty = there.is_empty(tx)?;
        tx.check(is_empty)
    };
    waits_for::<E>(is_gone, move |tx| other.remove(tx, &1).map(|_| ()));
}

/// Reclaims until the value has this number of owners.
fn comes_down_to(owners: usize, value: &Arc<()>) {
    let begin = Instant::now();
    // Another test may be in a transaction, and so keep the values for a while.
    while Arc::strong_count(value) > owners {
        reclaim();
        std::thread::yield_now();
        assert!(begin.elapsed() < Duration::from_secs(60), "{} are left", Arc::strong_count(value));
    }
    assert_eq!(Arc::strong_count(value), owners);
}

fn values_that_leave_are_dropped<E: Engine>() {
    let many = if cfg!(miri) { 40 } else { 2_000 };
    let value = Arc::new(());
    let (queue, bounded) = (TQueue::<Arc<()>, E>::with_engine(), TBQueue::<_, E>::with_engine(8));
    let (chan, map) = (TChan::<_, E>::with_engine(), TMap::<u32, _, E>::with_engine());
    let array = TArray::<_, E>::with_engine([(); 4].map(|()| Some(value.clone())));
    for n in 0..many {
        run::<E, _>(|tx| {
            map.insert(tx, n, value.clone())?;
            queue.push(tx, value.clone())?;
            bounded.push(tx, value.clone())?;
            bounded.pop(tx)?;
            chan.write(tx, value.clone())
        });
    }
    comes_down_to(1 + 4 + 3 * many as usize, &value);
    for n in 0..many {
        run::<E, _>(|tx| {
            map.remove(tx, &n)?;
            queue.pop(tx)?;
            chan.read(tx).map(drop)
        });
    }
    comes_down_to(1 + 4, &value);
    run::<E, _>(|tx| array.modify(tx, 0, |_| None));
    comes_down_to(1 + 3, &value);
    for n in 0..many {
        run::<E, _>(|tx| {
            map.insert(tx, n, value.clone())?;
            queue.push(tx, value.clone())?;
            chan.write(tx, value.clone())
        });
    }
    drop((map, queue, bounded, chan, array));
    comes_down_to(1, &value);
}

/// Also the values of a long list, which is dropped without a deep stack, and the values that an
/// attempt has made and not published.
fn values_of_nodes_are_dropped<E: Engine>() {
    let many = if cfg!(miri) { 40 } else { 100_000 };
    let value = Arc::new(());
    let first = TLink::<_, 1, E>::new(None);
    for _ in 0..many {
        run::<E, _>(|tx| {
            let next = first.read(tx)?.map(TNodeRef::owned);
            first.write(tx, Some(TNode::new(value.clone(), [None])));
            let undone = TNode::new(value.clone(), [None]);
            first.write(tx, Some(undone));
            first.write(tx, Some(TNode::new(value.clone(), [next])));
            Ok(())
        });
    }
    comes_down_to(1 + many, &value);
    drop(first);
    comes_down_to(1, &value);
}

/// A transaction that waits for an element keeps the array, and frees it when it leaves.
fn a_registration_outlives_the_array<E: Engine>() {
    let value = Arc::new(());
    let place = RefCell::new(Some(TArray::<_, E>::with_engine([(); 3].map(|()| value.clone()))));
    {
        let mut waits = pin!(atomically_under::<E, ()>(|tx| {
            let array = place.borrow().clone().expect("it is there");
            let _ = (array.read(tx, 0)?, array.read(tx, 2)?);
            tx.retry()
        }));
        assert_eq!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        drop(place.take());
        (0..10).for_each(|_| reclaim());
        assert_eq!(Arc::strong_count(&value), 4);
    }
    comes_down_to(1, &value);
}

under_each_engine! {
    a_variable_is_full_or_empty
    a_semaphore_counts_its_units
    an_array_has_its_elements
    an_array_has_its_words
    nodes_are_linked_and_unlinked
    an_unbounded_queue_gives_values_back
    a_bounded_queue_has_its_bound
    each_end_of_a_channel_reads_for_itself
    a_counter_is_the_sum_of_its_parts
    an_update_keeps_what_its_closure_changes
    a_map_has_its_entries
    a_branch_without_effect_leaves_the_structures
    a_thread_waits_in_each_structure
    values_that_leave_are_dropped
    values_of_nodes_are_dropped
    a_registration_outlives_the_array
}
