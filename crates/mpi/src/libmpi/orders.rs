//! [`LoopOrders`]: the queue through which threads ask the message loop for calls, and in which the
//! loop's OS thread sleeps.
//!
//! `comm.rs` puts orders in, on any OS thread. `message_loop.rs` takes them out, in the order in
//! which they came, so that the calls of one communicator reach MPI in the program's order.

use super::collective::{CallPlan, Collected};
use super::memory::MpiMemory;
use super::ongoing::CallEnd;
use super::received::CommListener;
use crate::processes::Doorbells;
use selvedge_core::{Parker, Quiet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The number of a communicator in the message loop. It is never used again.
pub(super) type CommId = u32;

/// The communicator of all ranks.
pub(super) const WORLD: CommId = 0;

/// A new communicator, and this rank's place in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewPlace {
    pub(super) id: CommId,
    pub(super) rank: usize,
    pub(super) size: usize,
}

/// A call that a thread asks for.
#[derive(Debug)]
pub(super) enum LoopOrder {
    Send {
        comm: CommId,
        dest: i32,
        tag: i32,
        synchronous: bool,
        memory: MpiMemory,
        end: CallEnd<MpiMemory>,
    },
    Listen {
        comm: CommId,
        listener: Arc<dyn CommListener>,
    },
    /// A listener wants messages from now on.
    Look,
    /// The ranks of this communicator ring one another.
    Doorbells {
        comm: CommId,
        doorbells: Arc<Doorbells>,
    },
    Collective {
        comm: CommId,
        plan: Box<CallPlan>,
        end: CallEnd<Collected>,
    },
    Dup {
        comm: CommId,
        end: CallEnd<NewPlace>,
    },
    Split {
        comm: CommId,
        color: Option<i32>,
        key: i32,
        end: CallEnd<Option<NewPlace>>,
    },
    Free {
        comm: CommId,
    },
    /// MPI's clock.
    Time {
        end: CallEnd<f64>,
    },
    Abort {
        code: i32,
        end: CallEnd<()>,
    },
    /// MPI is ended when all calls are done.
    Finish,
}

#[derive(Debug, Default)]
struct OrderQueue {
    orders: Vec<LoopOrder>,
    /// Whether the message loop takes no more orders.
    is_closed: bool,
}

/// The queue of one message loop.
#[derive(Debug, Default)]
pub(super) struct LoopOrders {
    queue: Mutex<OrderQueue>,
    parker: Parker,
    /// The loop's OS thread.
    owner: OnceLock<Thread>,
    /// The bell at which the loop may sleep.
    doorbells: OnceLock<Arc<Doorbells>>,
}

/// The reason that lasts until the loop takes the orders out.
const MAIL: u8 = 4;

impl LoopOrders {
    fn lock(&self) -> MutexGuard<'_, OrderQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a call. An order that the loop takes no more is dropped, which its waiter notices.
    pub(super) fn put(&self, order: LoopOrder) {
        let mut queue = self.lock();
        if queue.is_closed {
            // What is dropped with the order may put an order itself.
            drop(queue);
            return;
        }
        queue.orders.push(order);
        drop(queue);
        if self.parker.rouse(MAIL) {
            self.owner.get().expect("the owner sleeps, so it has said which OS thread it is").unpark();
            if let Some(doorbells) = self.doorbells.get() {
                doorbells.rouse();
            }
        }
    }

    /// The loop sleeps at this bell from now on, when it naps.
    pub(super) fn sleep_at(&self, doorbells: Arc<Doorbells>) {
        let _ = self.doorbells.set(doorbells);
    }

    /// Sleeps until there are orders, until the bell has been rung more often than `rung`, or for a
    /// time. The owner calls it after it has armed the bell and looked.
    pub(super) fn nap(&self, doorbells: &Doorbells, rung: u32, limit: Duration) {
        self.owner.get_or_init(thread::current);
        if self.parker.sleep() {
            doorbells.sleep(rung, limit);
            self.parker.wake();
        }
    }

    /// Takes all orders out, into an empty list.
    pub(super) fn take(&self, into: &mut Vec<LoopOrder>) {
        if self.parker.has(MAIL) {
            self.parker.take(MAIL);
            std::mem::swap(&mut self.lock().orders, into);
        }
    }

    /// Takes no more orders. The orders in the queue are dropped.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        let orders = std::mem::take(&mut queue.orders);
        drop(queue);
        drop(orders);
    }

    /// Sleeps until there are orders, or for a time. Only the loop's OS thread calls it, always the
    /// same one.
    pub(super) fn sleep(&self, limit: Option<Duration>) {
        self.owner.get_or_init(thread::current);
        if !self.parker.sleep() {
            return;
        }
        let until = limit.map(|limit| Instant::now() + limit);
        match until {
            None => {
                self.parker.declare(Quiet::new);
                while self.parker.is_asleep() {
                    thread::park();
                }
            }
            Some(until) => {
                while self.parker.is_asleep() {
                    let rest = until.saturating_duration_since(Instant::now());
                    if rest.is_zero() {
                        break;
                    }
                    thread::park_timeout(rest);
                }
            }
        }
        self.parker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_out_in_their_order_and_end_a_sleep() {
        let orders = Arc::new(LoopOrders::default());
        let there = orders.clone();
        let asker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            (0..3).for_each(|comm| there.put(LoopOrder::Free { comm }));
        });
        let mut taken = Vec::new();
        while taken.len() < 3 {
            orders.sleep(None);
            let mut more = Vec::new();
            orders.take(&mut more);
            taken.append(&mut more);
        }
        asker.join().unwrap();
        assert!(
            taken.iter().zip(0..).all(|(order, n)| matches!(order, LoopOrder::Free { comm } if *comm == n))
        );
    }

    #[test]
    fn a_sleep_with_a_limit_ends() {
        let orders = LoopOrders::default();
        let before = Instant::now();
        orders.sleep(Some(Duration::from_millis(5)));
        assert!(before.elapsed() >= Duration::from_millis(5));
    }
}
