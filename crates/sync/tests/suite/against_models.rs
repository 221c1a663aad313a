//! MVars, Fifos and mutexes under random schedules of taking, putting, polling and giving up,
//! checked against slow and simple models: which waiter gets which value, and which waiter is
//! woken.

use proptest::prelude::*;
use selvedge_core::{Local, Mode, Shared};
use selvedge_sync::{Fifo, MVar, Mutex};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Debug, Clone, Copy)]
enum Op {
    Take,
    Put(u32),
    TryTake,
    TryPut(u32),
    /// Polls, or drops, the waiter at this index (modulo the number of waiters).
    Poll(usize),
    Drop(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => Just(Op::Take),
        3 => any::<u32>().prop_map(Op::Put),
        1 => Just(Op::TryTake),
        1 => any::<u32>().prop_map(Op::TryPut),
        2 => (0usize..8).prop_map(Op::Poll),
        2 => (0usize..8).prop_map(Op::Drop),
    ];
    prop::collection::vec(op, 1..if cfg!(miri) { 12 } else { 60 })
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 500 },
        failure_persistence: None,
        ..Default::default()
    }
}

#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, Ordering::Relaxed), "woken twice");
    }
}

/// A future under test that has been polled once and is pending. Puts end with `None`.
struct Waiter<'a> {
    id: usize,
    future: Pin<Box<dyn Future<Output = Option<u32>> + 'a>>,
    flag: Arc<WakeFlag>,
}

/// Polls a new future. Gives its result, or a waiter if the future is pending.
fn begin<'a>(id: usize, future: impl Future<Output = Option<u32>> + 'a) -> Result<Option<u32>, Waiter<'a>> {
    let mut waiter = Waiter { id, future: Box::pin(future), flag: Arc::default() };
    match poll(&mut waiter) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err(waiter),
    }
}

fn poll(waiter: &mut Waiter<'_>) -> Poll<Option<u32>> {
    let waker = Waker::from(waiter.flag.clone());
    waiter.future.as_mut().poll(&mut Context::from_waker(&waker))
}

/// The wish of a waiter in the model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wish {
    Take,
    Put(u32),
}

/// The model of an MVar, or with `unbounded` of a Fifo: its values, its waiters in order, and the
/// waiters that have been served.
#[derive(Debug, Default)]
struct Model {
    unbounded: bool,
    values: VecDeque<u32>,
    waiting: VecDeque<(usize, Wish)>,
    served: Vec<(usize, Option<u32>)>,
}

impl Model {
    fn full(&self) -> bool {
        !self.unbounded && !self.values.is_empty()
    }

    fn try_take(&mut self) -> Option<u32> {
        let value = self.values.pop_front()?;
        if !self.full()
            && let Some((id, Wish::Put(next))) = self.waiting.front().copied()
        {
            self.waiting.pop_front();
            self.values.push_back(next);
            self.served.push((id, None));
        }
        Some(value)
    }

    fn try_put(&mut self, value: u32) -> bool {
        if let Some((id, Wish::Take)) = self.waiting.front().copied() {
            self.waiting.pop_front();
            self.served.push((id, Some(value)));
        } else if self.full() {
            return false;
        } else {
            self.values.push_back(value);
        }
        true
    }

    fn give_up(&mut self, id: usize) {
        self.waiting.retain(|(other, _)| *other != id);
        if let Some(at) = self.served.iter().position(|(other, _)| *other == id)
            && let (_, Some(value)) = self.served.remove(at)
        {
            if let Some((next, Wish::Take)) = self.waiting.front().copied() {
                self.waiting.pop_front();
                self.served.push((next, Some(value)));
            } else {
                self.values.push_front(value);
            }
        }
    }
}

/// The common operations of MVar and Fifo.
trait Subject {
    fn take(&self) -> impl Future<Output = Option<u32>>;
    fn put(&self, value: u32) -> impl Future<Output = Option<u32>>;
    fn try_take(&self) -> Option<u32>;
    fn try_put(&self, value: u32) -> bool;
}

impl<M: Mode> Subject for MVar<u32, M> {
    async fn take(&self) -> Option<u32> {
        Some(self.take().await)
    }

    async fn put(&self, value: u32) -> Option<u32> {
        self.put(value).await;
        None
    }

    fn try_take(&self) -> Option<u32> {
        self.try_take()
    }

    fn try_put(&self, value: u32) -> bool {
        self.try_put(value).is_ok()
    }
}

impl<M: Mode> Subject for Fifo<u32, M> {
    async fn take(&self) -> Option<u32> {
        Some(self.take().await)
    }

    async fn put(&self, value: u32) -> Option<u32> {
        self.put(value);
        None
    }

    fn try_take(&self) -> Option<u32> {
        self.try_take()
    }

    fn try_put(&self, value: u32) -> bool {
        self.put(value);
        true
    }
}

fn agree(subject: &impl Subject, mut model: Model, ops: Vec<Op>) {
    let mut waiters: Vec<Waiter> = Vec::new();
    for (id, op) in ops.into_iter().enumerate() {
        match op {
            Op::TryTake => assert_eq!(subject.try_take(), model.try_take()),
            Op::TryPut(value) => assert_eq!(subject.try_put(value), model.try_put(value)),
            Op::Take => match begin(id, subject.take()) {
                Ok(taken) => assert_eq!(taken, model.try_take()),
                Err(waiter) => {
                    assert_eq!(model.try_take(), None);
                    model.waiting.push_back((id, Wish::Take));
                    waiters.push(waiter);
                }
            },
            Op::Put(value) => match begin(id, subject.put(value)) {
                Ok(_) => assert!(model.try_put(value)),
                Err(waiter) => {
                    assert!(!model.try_put(value));
                    model.waiting.push_back((id, Wish::Put(value)));
                    waiters.push(waiter);
                }
            },
            Op::Poll(at) if !waiters.is_empty() => {
                let at = at % waiters.len();
                let served = model.served.iter().position(|(id, _)| *id == waiters[at].id);
                let expected = served.map_or(Poll::Pending, |at| Poll::Ready(model.served.remove(at).1));
                assert_eq!(poll(&mut waiters[at]), expected);
                if expected.is_ready() {
                    waiters.remove(at);
                }
            }
            Op::Drop(at) if !waiters.is_empty() => {
                let waiter = waiters.remove(at % waiters.len());
                model.give_up(waiter.id);
            }
            Op::Poll(_) | Op::Drop(_) => {}
        }
        for waiter in &waiters {
            let served = model.served.iter().any(|(id, _)| *id == waiter.id);
            assert_eq!(
                waiter.flag.0.load(Ordering::Relaxed),
                served,
                "the served waiter is woken, and no other"
            );
        }
    }
    drop(waiters);
}

/// The MVar also keeps values that came back. They lie in front of the present value, in the order
/// in which they came back.
fn mvar() -> Model {
    Model::default()
}

fn fifo() -> Model {
    Model { unbounded: true, ..Model::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_local_mvar(ops in ops()) {
        agree(&MVar::<u32, Local>::default(), mvar(), ops);
    }

    #[test]
    fn a_shared_mvar(ops in ops()) {
        agree(&MVar::<u32, Shared>::default(), mvar(), ops);
    }

    #[test]
    fn a_local_fifo(ops in ops()) {
        agree(&Fifo::<u32, Local>::default(), fifo(), ops);
    }

    #[test]
    fn a_shared_fifo(ops in ops()) {
        agree(&Fifo::<u32, Shared>::default(), fifo(), ops);
    }

    /// There is at most one guard of the mutex. Waiters get it in order. An unlock wakes the first
    /// waiter. If the mutex is locked again when that waiter is polled, the next unlock hands the
    /// mutex to it.
    #[test]
    fn a_mutex(steps in prop::collection::vec((0u8..5, 0usize..8), 1..60)) {
        let mutex = Mutex::new(());
        let mut holder = None;
        let mut waiting = VecDeque::new();
        // `promised`: the first waiter has been polled and found the mutex locked. `handed`: the
        // mutex has been handed to a waiter that has not been polled since.
        let (mut promised, mut handed) = (false, false);
        for (op, at) in steps {
            match op {
                0 => {
                    let mut lock = Box::pin(mutex.lock());
                    match lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(guard) => {
                            prop_assert!(holder.is_none() && !handed);
                            holder = Some(guard);
                        }
                        Poll::Pending => {
                            prop_assert!(holder.is_some() || handed);
                            waiting.push_back(lock);
                        }
                    }
                }
                1 if holder.is_some() => {
                    holder = None;
                    handed = promised;
                    promised = false;
                }
                2 if !waiting.is_empty() => {
                    let at = at % waiting.len();
                    drop(waiting.remove(at));
                    // If the mutex had been handed to the dropped waiter, it is unlocked again.
                    // Otherwise, if the dropped waiter had the promise, the promise ends.
                    let first = usize::from(handed);
                    handed = if handed && at == 0 { promised } else { handed };
                    promised &= at > first;
                }
                3 | 4 if !waiting.is_empty() => {
                    let at = if op == 3 { 0 } else { at % waiting.len() };
                    let polled = waiting[at].as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    prop_assert_eq!(polled.is_ready(), at == 0 && holder.is_none());
                    match polled {
                        Poll::Ready(guard) => {
                            waiting.pop_front();
                            holder = Some(guard);
                            promised &= std::mem::take(&mut handed);
                        }
                        // Only a waiter that the mutex has been handed to can come before this one.
                        Poll::Pending => promised |= at == usize::from(handed),
                    }
                }
                _ => {}
            }
            prop_assert_eq!(mutex.is_locked(), holder.is_some() || handed);
            if holder.is_some() {
                prop_assert!(mutex.try_lock().is_none());
            }
        }
        drop(waiting);
        drop(holder);
        prop_assert!(mutex.try_lock().is_some());
    }
}
