//! Bounded Fifos, conditions, broadcasts and watched values checked against slow and simple models:
//! which waiter gets which value, and which waiters are woken.

use crate::common::{Waiters, config, ops, set};
use proptest::prelude::*;
use selvedge_core::{Mode, Shared};
use selvedge_sync::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The result of a put or of a take.
#[derive(Debug, PartialEq, Clone)]
enum Got {
    Put(Result<(), ClosedError<u32>>),
    Taken(Option<u32>),
}

#[derive(Default)]
struct Fifo {
    capacity: usize,
    closed: bool,
    values: VecDeque<u32>,
    putting: VecDeque<(usize, u32)>,
    taking: VecDeque<usize>,
    served: BTreeMap<usize, Got>,
}

impl Fifo {
    fn put(&mut self, value: u32) -> Option<Result<(), ClosedError<u32>>> {
        if self.closed {
            return Some(Err(ClosedError(value)));
        }
        if let Some(taker) = self.taking.pop_front() {
            self.served.insert(taker, Got::Taken(Some(value)));
        } else if self.values.len() < self.capacity {
            self.values.push_back(value);
        } else {
            return None;
        }
        Some(Ok(()))
    }

    fn take(&mut self) -> Option<Option<u32>> {
        if self.values.is_empty()
            && let Some((putter, value)) = self.putting.pop_front()
        {
            self.served.insert(putter, Got::Put(Ok(())));
            return Some(Some(value));
        }
        let Some(value) = self.values.pop_front() else { return self.closed.then_some(None) };
        if self.values.len() < self.capacity
            && let Some((putter, value)) = self.putting.pop_front()
        {
            self.served.insert(putter, Got::Put(Ok(())));
            self.values.push_back(value);
        }
        Some(Some(value))
    }

    fn close(&mut self) {
        self.closed = true;
        for (putter, value) in self.putting.drain(..) {
            self.served.insert(putter, Got::Put(Err(ClosedError(value))));
        }
        for taker in self.taking.drain(..) {
            self.served.insert(taker, Got::Taken(None));
        }
    }

    fn give_up(&mut self, id: usize) {
        self.putting.retain(|(other, _)| *other != id);
        self.taking.retain(|other| *other != id);
        if let Some(Got::Taken(Some(value))) = self.served.remove(&id) {
            match self.taking.pop_front() {
                Some(taker) => drop(self.served.insert(taker, Got::Taken(Some(value)))),
                None => self.values.push_front(value),
            }
        }
    }
}

fn a_bounded_fifo<M: Mode>(fifo: &BoundedFifo<u32, M>, ops: Vec<(u8, usize)>) {
    let mut model = Fifo { capacity: fifo.capacity(), ..Fifo::default() };
    let mut waiters = Waiters::new();
    let mut value = 0;
    for (op, n) in ops {
        value += 1;
        match op {
            0..=2 => {
                let (id, put) = waiters.begin(async move { Got::Put(fifo.put(value).await) });
                let expected = model.put(value);
                if expected.is_none() {
                    model.putting.push_back((id, value));
                }
                assert_eq!(put, expected.map(Got::Put));
            }
            3..=5 => {
                let (id, taken) = waiters.begin(async { Got::Taken(fifo.take().await) });
                let expected = model.take();
                if expected.is_none() {
                    model.taking.push_back(id);
                }
                assert_eq!(taken, expected.map(Got::Taken));
            }
            6 => match (fifo.try_put(value), model.put(value)) {
                (Ok(()), Some(Ok(()))) => {}
                (Err(TryPutError::Closed(v)), Some(Err(ClosedError(w)))) => assert_eq!(v, w),
                (Err(TryPutError::Full(v)), None) => assert_eq!(v, value),
                other => panic!("{other:?}"),
            },
            7 => match (fifo.try_take(), model.take()) {
                (Ok(v), Some(Some(w))) => assert_eq!(v, w),
                (Err(TryTakeError::Closed), Some(None)) | (Err(TryTakeError::Empty), None) => {}
                other => panic!("{other:?}"),
            },
            8 | 9 => {
                if let Some((id, got)) = waiters.poll(n) {
                    assert_eq!(got, model.served.remove(&id));
                }
            }
            10 | 11 => waiters.give_up(n).into_iter().for_each(|id| model.give_up(id)),
            // Closing is rare, because it is for ever.
            _ if n == 0 => {
                fifo.close();
                model.close();
            }
            _ => {}
        }
        assert_eq!((fifo.len(), fifo.is_closed()), (model.values.len(), model.closed));
        assert_eq!(waiters.woken(), set(model.served.keys().copied()));
    }
}

/// The model of a condition: its waiters, and the notified waiters, each with whether it was
/// notified alone. If a waiter that was notified alone gives up, the notification goes to the next
/// waiter.
fn a_condition<M: Mode>(mutex: &Mutex<u32, M>, condition: &Condition<M>, ops: Vec<(u8, usize)>) {
    let mut waiting = VecDeque::new();
    let mut told: BTreeMap<usize, bool> = BTreeMap::new();
    let mut waiters = Waiters::new();
    let mut held = None;
    for (op, n) in ops {
        match op {
            0 | 1 => {
                held = held.or_else(|| mutex.try_lock());
                if let Some(guard) = held.take() {
                    let (id, done) = waiters.begin(condition.wait(guard));
                    assert!(done.is_none(), "no wait is told before it begins");
                    waiting.push_back(id);
                }
            }
            2 => held = held.or_else(|| mutex.try_lock()),
            3 => held = None,
            4 => {
                condition.notify_one();
                told.extend(waiting.pop_front().map(|id| (id, true)));
            }
            5 if n < 3 => {
                condition.notify_all();
                told.extend(waiting.drain(..).map(|id| (id, false)));
            }
            6 | 7 => {
                if let Some((id, Some(guard))) = waiters.poll(n) {
                    assert!(held.is_none(), "two hold the mutex");
                    assert!(told.remove(&id).is_some(), "it was not told");
                    held = Some(guard);
                }
            }
            8 => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.retain(|other| *other != id);
                    if told.remove(&id) == Some(true) {
                        told.extend(waiting.pop_front().map(|id| (id, true)));
                    }
                }
            }
            _ => {}
        }
    }
    drop(held);
    // Several rounds, because a waiter that was notified late may hold the mutex while another is
    // polled.
    for at in (0..4).flat_map(|_| (0..80).rev()) {
        if let Some((id, Some(guard))) = waiters.poll(at) {
            assert!(told.remove(&id).is_some(), "it was not told");
            drop(guard);
        }
    }
    assert!(told.is_empty(), "{told:?} were told and did not go on");
    drop(waiters);
    assert!(mutex.try_lock().is_some());
}

fn a_broadcast<M: Mode>(
    (broadcaster, listener): (Broadcaster<u32, M>, Listener<u32, M>),
    capacity: usize,
    ops: Vec<(u8, usize)>,
) {
    let mut broadcaster = Some(broadcaster);
    let mut sent: Vec<u32> = Vec::new();
    let mut idle = vec![(listener, 0)];
    // For each waiting listener, the number of the value that it waits for.
    let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
    let mut served: BTreeMap<usize, (usize, Result<u32, ListenError>)> = BTreeMap::new();
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        let first = sent.len().saturating_sub(capacity);
        let closed = broadcaster.is_none();
        let expected = |next: usize| match sent.get(next) {
            _ if next < first => Some(Err(ListenError::Lagged((first - next) as u64))),
            Some(value) => Some(Ok(*value)),
            None => closed.then_some(Err(ListenError::Closed)),
        };
        let after = |next: usize, got: &Result<u32, ListenError>| match got {
            Ok(_) => next + 1,
            Err(ListenError::Lagged(missed)) => next + *missed as usize,
            Err(ListenError::Closed) => next,
        };
        match op {
            0..=2 => {
                if let Some(broadcaster) = &broadcaster {
                    let value = sent.len() as u32 * 10;
                    assert_eq!(broadcaster.send(value), idle.len() + waiting.len() + served.len());
                    sent.push(value);
                    served.extend(
                        std::mem::take(&mut waiting).into_iter().map(|(id, next)| (id, (next, Ok(value)))),
                    );
                }
            }
            3 | 4 if !idle.is_empty() => {
                let (mut listener, next) = idle.swap_remove(n % idle.len());
                let (id, got) = waiters.begin(async move {
                    let got = listener.listen().await;
                    (listener, got)
                });
                assert_eq!(got.as_ref().map(|(_, got)| *got), expected(next));
                match got {
                    Some((listener, got)) => idle.push((listener, after(next, &got))),
                    None => drop(waiting.insert(id, next)),
                }
            }
            5 if !idle.is_empty() => {
                let at = n % idle.len();
                let (listener, next) = &mut idle[at];
                let got = match listener.try_listen() {
                    Err(TryListenError::Empty) => None,
                    Err(TryListenError::Lagged(missed)) => Some(Err(ListenError::Lagged(missed))),
                    Err(TryListenError::Closed) => Some(Err(ListenError::Closed)),
                    Ok(value) => Some(Ok(value)),
                };
                assert_eq!(got, expected(*next));
                got.iter().for_each(|got| *next = after(*next, got));
            }
            6 | 7 => {
                if let Some((id, got)) = waiters.poll(n) {
                    let expected = served.remove(&id);
                    assert_eq!(got.as_ref().map(|(_, got)| *got), expected.map(|(_, got)| got));
                    if let (Some((listener, got)), Some((next, _))) = (got, expected) {
                        idle.push((listener, after(next, &got)));
                    }
                }
            }
            8 => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.remove(&id);
                    served.remove(&id);
                }
            }
            9 if !idle.is_empty() => {
                let (listener, next) = &idle[n % idle.len()];
                let twin = (listener.clone(), *next);
                idle.push(twin);
            }
            10 => {
                if let Some(broadcaster) = &broadcaster {
                    idle.push((broadcaster.listener(), sent.len()));
                }
            }
            // Closing is rare, because it is for ever.
            _ if n == 0 => {
                broadcaster = None;
                let closed = |(id, next)| (id, (next, Err(ListenError::Closed)));
                served.extend(std::mem::take(&mut waiting).into_iter().map(closed));
            }
            _ => {}
        }
        assert_eq!(waiters.woken(), set(served.keys().copied()));
        for (listener, next) in &idle {
            assert_eq!(listener.behind(), (sent.len() - next) as u64);
        }
    }
}

fn a_watched_value<M: Mode>((setter, watcher): (Setter<usize, M>, Watcher<usize, M>), ops: Vec<(u8, usize)>) {
    let mut setter = Some(setter);
    let mut changes = 0;
    let mut idle = vec![(watcher, 0)];
    let mut waiting = BTreeSet::new();
    // For each watcher that has been told, the change that it was told of.
    let mut served: BTreeMap<usize, Result<usize, WatchError>> = BTreeMap::new();
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0 | 1 => {
                if let Some(setter) = &setter {
                    assert_eq!(*setter.set(changes + 1), changes);
                    changes += 1;
                    served.extend(std::mem::take(&mut waiting).into_iter().map(|id| (id, Ok(changes))));
                }
            }
            2 | 3 if !idle.is_empty() => {
                let (mut watcher, seen) = idle.swap_remove(n % idle.len());
                assert_eq!(watcher.has_changed(), seen != changes);
                let (id, told) = waiters.begin(async move {
                    let told = watcher.changed().await;
                    (watcher, told)
                });
                let expected = if seen != changes { Some(Ok(())) } else { None };
                let expected = expected.or(setter.is_none().then_some(Err(WatchError)));
                assert_eq!(told.as_ref().map(|(_, told)| *told), expected);
                match told {
                    Some((watcher, _)) => idle.push((watcher, changes)),
                    None => drop(waiting.insert(id)),
                }
            }
            4 if !idle.is_empty() => {
                let at = n % idle.len();
                assert_eq!(*idle[at].0.latest(), changes);
                idle[at].1 = changes;
            }
            5 | 6 => {
                if let Some((id, told)) = waiters.poll(n) {
                    let expected = served.remove(&id);
                    assert_eq!(told.as_ref().map(|(_, told)| *told), expected.map(|told| told.map(|_| ())));
                    // A watcher that was told has seen the change it was told of, and no later
                    // change.
                    idle.extend(
                        told.map(|(watcher, _)| (watcher, expected.and_then(Result::ok).unwrap_or(changes))),
                    );
                }
            }
            7 => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.remove(&id);
                    served.remove(&id);
                }
            }
            8 => idle.extend(setter.as_ref().map(|setter| (setter.watcher(), changes))),
            _ if n == 0 => {
                setter = None;
                served.extend(std::mem::take(&mut waiting).into_iter().map(|id| (id, Err(WatchError))));
            }
            _ => {}
        }
        assert_eq!(waiters.woken(), set(served.keys().copied()));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bounded_fifos(ops in ops(13), capacity in 0usize..4) {
        a_bounded_fifo(&BoundedFifo::new_local(capacity), ops.clone());
        a_bounded_fifo(&BoundedFifo::new(capacity), ops);
    }

    #[test]
    fn conditions(ops in ops(9)) {
        a_condition(&Mutex::new_local(0), &Condition::new_local(), ops.clone());
        a_condition::<Shared>(&Mutex::new(0), &Condition::new(), ops);
    }

    #[test]
    fn broadcasts(ops in ops(12), capacity in 1usize..4) {
        a_broadcast(broadcast_local(capacity), capacity, ops.clone());
        a_broadcast(broadcast(capacity), capacity, ops);
    }

    #[test]
    fn watched_values(ops in ops(10)) {
        a_watched_value(watch_local(0), ops.clone());
        a_watched_value(watch(0), ops);
    }
}

#[test]
fn what_a_listener_was_handed_and_did_not_collect_comes_again() {
    let (broadcaster, mut listener) = broadcast(1);
    let mut waiters = Waiters::new();
    assert!(waiters.begin(listener.listen()).1.is_none());
    broadcaster.send(5);
    drop(waiters);
    assert_eq!(listener.try_listen(), Ok(5));
}

#[test]
fn a_change_that_a_watcher_was_told_of_and_did_not_hear_is_told_again() {
    let (setter, mut watcher) = watch(0);
    let mut waiters = Waiters::new();
    assert!(waiters.begin(watcher.changed()).1.is_none());
    setter.set(1);
    drop(waiters);
    assert!(watcher.has_changed());
    assert_eq!(watcher.changed_blocking(), Ok(()));
}

#[test]
fn ends_close_when_the_last_of_a_kind_goes() {
    let (putter, taker) = BoundedFifo::ends(4);
    let other = putter.clone();
    putter.try_put(1).unwrap();
    drop(putter);
    other.try_put(2).unwrap();
    drop(other);
    assert_eq!(
        [taker.take_blocking(), taker.take_blocking(), taker.take_blocking()],
        [Some(1), Some(2), None]
    );

    let (putter, taker) = BoundedFifo::ends(1);
    putter.try_put(1).unwrap();
    drop((taker.clone(), taker));
    assert_eq!(putter.put_blocking(2), Err(ClosedError(2)));
    assert!(putter.fifo().is_empty(), "values without a taker are dropped");
}
