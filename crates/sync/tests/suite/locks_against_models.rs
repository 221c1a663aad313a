//! Semaphores, readers-writer locks, barriers, events and promises checked against slow and simple
//! models: which waiters are let in, in which order, and which are woken.

use crate::common::{Waiters, config, ops, set};
use proptest::prelude::*;
use selvedge_core::{Local, Mode, Shared};
use selvedge_sync::{Barrier, Event, Latch, OnceCell, Promise, ReadGuard, RwLock, Semaphore, WriteGuard};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// The model of fair permits: the free permits, the waiters in order with the numbers they want,
/// and the waiters that have been served.
#[derive(Default)]
struct Permits {
    free: u32,
    waiting: VecDeque<(usize, u32)>,
    served: BTreeMap<usize, u32>,
}

impl Permits {
    fn acquire(&mut self, id: usize, permits: u32) -> bool {
        let at_once = self.waiting.is_empty() && permits <= self.free;
        match at_once {
            true => self.free -= permits,
            false => self.waiting.push_back((id, permits)),
        }
        at_once
    }

    fn serve(&mut self) {
        while let Some((id, permits)) = self.waiting.pop_front() {
            if permits > self.free {
                return self.waiting.push_front((id, permits));
            }
            self.free -= permits;
            self.served.insert(id, permits);
        }
    }

    fn give_up(&mut self, id: usize) {
        self.waiting.retain(|(other, _)| *other != id);
        self.free += self.served.remove(&id).unwrap_or(0);
        self.serve();
    }
}

fn a_semaphore<M: Mode>(semaphore: &Semaphore<M>, ops: Vec<(u8, usize)>) {
    let mut model = Permits { free: semaphore.available(), ..Permits::default() };
    let mut waiters = Waiters::new();
    let mut held = Vec::new();
    for (op, n) in ops {
        let permits = (n % 4) as u32;
        match op {
            0 | 1 => {
                let (id, permit) = waiters.begin(semaphore.acquire_many(permits));
                assert_eq!(permit.is_some(), model.acquire(id, permits));
                held.extend(permit);
            }
            2 => {
                let permit = semaphore.try_acquire(permits);
                assert_eq!(permit.is_some(), model.waiting.is_empty() && permits <= model.free);
                if let Some(permit) = permit {
                    model.free -= permits;
                    held.push(permit);
                }
            }
            3 | 4 if !held.is_empty() => {
                let permit = held.swap_remove(n % held.len());
                model.free += permit.permits();
                drop(permit);
                model.serve();
            }
            5 => {
                if let Some((id, permit)) = waiters.poll(n) {
                    assert_eq!(permit.as_ref().map(|p| p.permits()), model.served.remove(&id));
                    held.extend(permit);
                }
            }
            6 => waiters.give_up(n).into_iter().for_each(|id| model.give_up(id)),
            7 => {
                if let Some(part) = held.last_mut().and_then(|permit| permit.split(1)) {
                    held.push(part);
                }
            }
            _ => {}
        }
        assert_eq!(semaphore.available(), model.free);
        assert_eq!(waiters.woken(), set(model.served.keys().copied()));
    }
}

enum Lock<'a, M: Mode> {
    Read(ReadGuard<'a, u32, M>),
    Write(WriteGuard<'a, u32, M>),
}

/// The model of a readers-writer lock is permits. A writer takes all of them.
fn a_rw_lock<M: Mode>(lock: &RwLock<u32, M>, ops: Vec<(u8, usize)>) {
    const ALL: u32 = 1000;
    let mut model = Permits { free: ALL, ..Permits::default() };
    let mut waiters = Waiters::new();
    let mut held: Vec<Lock<'_, M>> = Vec::new();
    let mut writes = 0;
    for (op, n) in ops {
        match op {
            0 => {
                let (id, guard) = waiters.begin(async { Lock::Read(lock.read().await) });
                assert_eq!(guard.is_some(), model.acquire(id, 1));
                held.extend(guard);
            }
            1 => {
                let (id, guard) = waiters.begin(async { Lock::Write(lock.write().await) });
                assert_eq!(guard.is_some(), model.acquire(id, ALL));
                held.extend(guard);
            }
            2 => {
                let guard = lock.try_read();
                assert_eq!(guard.is_some(), model.waiting.is_empty() && model.free > 0);
                model.free -= guard.is_some() as u32;
                held.extend(guard.map(Lock::Read));
            }
            3 => {
                let guard = lock.try_write();
                assert_eq!(guard.is_some(), model.waiting.is_empty() && model.free == ALL);
                model.free -= guard.is_some() as u32 * ALL;
                held.extend(guard.map(Lock::Write));
            }
            4 | 5 if !held.is_empty() => {
                model.free += match held.swap_remove(n % held.len()) {
                    Lock::Read(guard) => {
                        assert_eq!(*guard, writes);
                        1
                    }
                    Lock::Write(mut guard) => {
                        *guard += 1;
                        writes += 1;
                        ALL
                    }
                };
                model.serve();
            }
            6 => {
                if let Some((id, guard)) = waiters.poll(n) {
                    let permits = guard.as_ref().map(|guard| match guard {
                        Lock::Read(_) => 1,
                        Lock::Write(_) => ALL,
                    });
                    assert_eq!(permits, model.served.remove(&id));
                    held.extend(guard);
                }
            }
            7 => waiters.give_up(n).into_iter().for_each(|id| model.give_up(id)),
            8 if matches!(held.last(), Some(Lock::Write(_))) => {
                if let Some(Lock::Write(guard)) = held.pop() {
                    held.push(Lock::Read(WriteGuard::downgrade(guard)));
                    model.free += ALL - 1;
                    model.serve();
                }
            }
            _ => {}
        }
        assert_eq!(waiters.woken(), set(model.served.keys().copied()));
    }
}

fn a_barrier<M: Mode>(barrier: &Barrier<M>, size: usize, ops: Vec<(u8, usize)>) {
    let (mut waiting, mut served) = (Vec::new(), BTreeSet::new());
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0 | 1 => {
                let (id, passed) = waiters.begin(barrier.wait());
                assert_eq!(passed.map(|p| p.is_leader()), (waiting.len() + 1 == size).then_some(true));
                match passed {
                    Some(_) => served.extend(waiting.drain(..)),
                    None => waiting.push(id),
                }
            }
            2 => {
                if let Some((id, passed)) = waiters.poll(n) {
                    assert_eq!(passed.map(|p| p.is_leader()), served.remove(&id).then_some(false));
                }
            }
            _ => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.retain(|other| *other != id);
                    served.remove(&id);
                }
            }
        }
        assert_eq!(waiters.woken(), served);
    }
}

fn an_event<M: Mode>(event: &Event<M>, ops: Vec<(u8, usize)>) {
    let (mut happened, mut waiting, mut served) = (false, BTreeSet::new(), BTreeSet::new());
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0 | 1 => {
                let (id, done) = waiters.begin(event.wait());
                assert_eq!(done.is_some(), happened);
                if !happened {
                    waiting.insert(id);
                }
            }
            2 => {
                event.set();
                happened = true;
                served.append(&mut waiting);
            }
            3 => {
                event.reset();
                happened = false;
            }
            4 => {
                if let Some((id, done)) = waiters.poll(n) {
                    assert_eq!(done.is_some(), served.remove(&id));
                }
            }
            _ => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.remove(&id);
                    served.remove(&id);
                }
            }
        }
        assert_eq!(event.is_set(), happened);
        assert_eq!(waiters.woken(), served);
    }
}

fn a_latch<M: Mode>(latch: &Latch<M>, mut left: u32, ops: Vec<(u8, usize)>) {
    let (mut waiting, mut served) = (BTreeSet::new(), BTreeSet::new());
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0 => {
                let (id, done) = waiters.begin(latch.wait());
                assert_eq!(done.is_some(), left == 0);
                if left > 0 {
                    waiting.insert(id);
                }
            }
            1 => {
                latch.count_down();
                left = left.saturating_sub(1);
                if left == 0 {
                    served.append(&mut waiting);
                }
            }
            2 => {
                if let Some((id, done)) = waiters.poll(n) {
                    assert_eq!(done.is_some(), served.remove(&id));
                }
            }
            _ => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.remove(&id);
                    served.remove(&id);
                }
            }
        }
        assert_eq!(latch.left(), left);
        assert_eq!(waiters.woken(), served);
    }
}

fn a_promise<M: Mode>(
    (fulfiller, promise): (selvedge_sync::Fulfiller<u32, M>, Promise<u32, M>),
    kept: bool,
    ops: Vec<(u8, usize)>,
) {
    let mut fulfiller = Some(fulfiller);
    let (mut waiting, mut served) = (BTreeSet::new(), BTreeSet::new());
    let mut settled = None;
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0..=3 => {
                let (id, claimed) = waiters.begin(promise.claim());
                assert_eq!(
                    claimed,
                    settled.map(|kept: bool| if kept {
                        Ok(&7)
                    } else {
                        Err(selvedge_sync::BrokenPromiseError)
                    })
                );
                if claimed.is_none() {
                    waiting.insert(id);
                }
            }
            4 => {
                if let Some(fulfiller) = fulfiller.take() {
                    if kept {
                        fulfiller.fulfil(7);
                    }
                    settled = Some(kept);
                    served.append(&mut waiting);
                }
            }
            5 | 6 => {
                if let Some((id, claimed)) = waiters.poll(n) {
                    assert_eq!(claimed.map(|c| c.is_ok()), served.remove(&id).then_some(kept));
                }
            }
            _ => {
                if let Some(id) = waiters.give_up(n) {
                    waiting.remove(&id);
                    served.remove(&id);
                }
            }
        }
        assert_eq!(promise.is_settled(), settled.is_some());
        assert_eq!(promise.get(), (settled == Some(true)).then_some(&7));
        assert_eq!(waiters.woken(), served);
    }
}

/// Checks which task makes the value of a cell: at most one task at a time, the first of the
/// remaining tasks, and none once the value is made.
fn a_once_cell<M: Mode>(cell: &OnceCell<usize, M>, ops: Vec<(u8, usize)>) {
    // Each maker makes its own number, when `may` allows it, or fails.
    let may = [const { Cell::new(None::<bool>) }; 128];
    let making = Rc::new(Cell::new(None));
    let mut makers = 0;
    let mut waiters = Waiters::new();
    for (op, n) in ops {
        match op {
            0 | 1 => {
                let (number, may, making) = (makers, &may, making.clone());
                makers += 1;
                let make = move || async move {
                    assert_eq!(making.replace(Some(number)), None, "two make it at once");
                    let _made = Reset(making);
                    std::future::poll_fn(|_| match may[number].get() {
                        None => std::task::Poll::Pending,
                        Some(true) => std::task::Poll::Ready(Ok(number)),
                        Some(false) => std::task::Poll::Ready(Err(number)),
                    })
                    .await
                };
                let got = waiters.begin(async move { cell.get_or_try_init(make).await.copied() }).1;
                assert_eq!(got, cell.get().map(|value| Ok(*value)));
            }
            2 => {
                if let Some(number) = making.get() {
                    may[number].set(Some(n % 3 == 0));
                }
            }
            3..=5 => {
                let before = cell.get().copied();
                if let Some((id, Some(got))) = waiters.poll(n) {
                    match got {
                        Ok(value) => assert!(before.is_none_or(|before| before == value)),
                        Err(number) => assert_eq!(number, id, "one's own failure"),
                    }
                }
            }
            _ => drop(waiters.give_up(n)),
        }
        if cell.get().is_some() {
            assert_eq!(making.get(), None);
            assert!(cell.set(0).is_err());
        }
    }
    // In each state that the tasks can leave, the value has been made, or can be made now.
    drop(waiters);
    assert_eq!(cell.set(1000).is_ok(), *cell.get().unwrap() == 1000);
}

struct Reset(Rc<Cell<Option<usize>>>);

impl Drop for Reset {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn semaphores(ops in ops(8), permits in 0u32..6) {
        a_semaphore(&Semaphore::new_local(permits), ops.clone());
        a_semaphore(&Semaphore::new(permits), ops);
    }

    #[test]
    fn rw_locks(ops in ops(9)) {
        a_rw_lock::<Local>(&RwLock::new_local(0), ops.clone());
        a_rw_lock::<Shared>(&RwLock::new(0), ops);
    }

    #[test]
    fn barriers(ops in ops(4), size in 1usize..5) {
        a_barrier(&Barrier::new_local(size), size, ops.clone());
        a_barrier(&Barrier::new(size), size, ops);
    }

    #[test]
    fn events(ops in ops(6)) {
        an_event(&Event::new_local(), ops.clone());
        an_event(&Event::new(), ops);
    }

    #[test]
    fn latches(ops in ops(4), count in 0u32..6) {
        a_latch(&Latch::new_local(count), count, ops.clone());
        a_latch(&Latch::new(count), count, ops);
    }

    #[test]
    fn promises(ops in ops(8), kept: bool) {
        a_promise(Promise::new_local(), kept, ops.clone());
        a_promise(Promise::new(), kept, ops);
    }

    #[test]
    fn once_cells(ops in ops(7)) {
        a_once_cell(&OnceCell::new_local(), ops.clone());
        a_once_cell(&OnceCell::new(), ops);
    }
}
