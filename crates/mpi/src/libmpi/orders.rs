//! [`LoopOrders`]: the queue through which threads ask for calls; and [`LoopSleep`], in which the
//! message loop's OS thread sleeps.
//!
//! `comm.rs` puts orders in, on any OS thread. The holder of the driver takes them out
//! (`shared_driver.rs`), in the order in which they came, so that the calls of one communicator
//! reach MPI in the program's order.

use super::collective::{CallPlan, Collected};
use super::memory::MpiMemory;
use super::ongoing::CallEnd;
use super::received::CommListener;
use crate::processes::Doorbells;
use selvedge_core::Quiet;
use selvedge_core::internal::Parker;
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
    /// A message of a communicator with frames, and too long for one.
    SendBody {
        comm: CommId,
        dest: i32,
        memory: MpiMemory,
        end: CallEnd<MpiMemory>,
    },
    /// A message of which the bytes were lent in vain.
    SendLate {
        comm: CommId,
        dest: i32,
        memory: MpiMemory,
    },
    Listen {
        comm: CommId,
        listener: Arc<dyn CommListener>,
        /// Messages go in frames.
        is_framed: bool,
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

/// The queue of one driver.
#[derive(Debug, Default)]
pub(super) struct LoopOrders(Mutex<OrderQueue>);

impl LoopOrders {
    fn lock(&self) -> MutexGuard<'_, OrderQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an order in. `false` if no more are taken: then it is dropped, which its waiter
    /// notices.
    pub(super) fn put(&self, order: LoopOrder) -> bool {
        let mut queue = self.lock();
        if queue.is_closed {
            // What is dropped with the order may put an order itself.
            drop(queue);
            return false;
        }
        queue.orders.push(order);
        true
    }

    /// Takes all orders out, into an empty list.
    pub(super) fn take(&self, into: &mut Vec<LoopOrder>) {
        std::mem::swap(&mut self.lock().orders, into);
    }

    /// Takes no more orders. The orders in the queue are dropped.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        let orders = std::mem::take(&mut queue.orders);
        drop(queue);
        drop(orders);
    }
}

/// Where the message loop's OS thread sleeps.
#[derive(Debug, Default)]
pub(super) struct LoopSleep {
    parker: Parker,
    /// The loop's OS thread.
    owner: OnceLock<Thread>,
    /// The bell at which the loop may sleep.
    doorbells: OnceLock<Arc<Doorbells>>,
}

/// The reasons that last until the loop looks: there is something to look for, or the loop is to
/// choose its sleep anew.
const LOOK: u8 = 4;
const CHOOSE: u8 = 8;

impl LoopSleep {
    /// The loop is to look for something, and not to sleep before.
    pub(super) fn rouse(&self) {
        self.end(LOOK);
    }

    /// The loop is to look once, and to choose its sleep anew.
    pub(super) fn rouse_to_choose(&self) {
        self.end(CHOOSE);
    }

    fn end(&self, why: u8) {
        if self.parker.rouse(why) {
            self.owner.get().expect("the owner sleeps, so it has said which OS thread it is").unpark();
            if let Some(doorbells) = self.doorbells.get() {
                doorbells.rouse();
            }
        }
    }

    /// The loop looks now. Whether it was [roused](Self::rouse) since the last time.
    pub(super) fn looks(&self) -> bool {
        let is_roused = self.parker.has(LOOK);
        if is_roused || self.parker.has(CHOOSE) {
            self.parker.take(LOOK | CHOOSE);
        }
        is_roused
    }

    /// The loop sleeps at this bell from now on, when it naps.
    pub(super) fn sleep_at(&self, doorbells: Arc<Doorbells>) {
        let _ = self.doorbells.set(doorbells);
    }

    /// The bell at which the loop sleeps.
    pub(super) fn doorbells(&self) -> Option<&Arc<Doorbells>> {
        self.doorbells.get()
    }

    /// Sleeps until the loop is to look, until the bell has been rung more often than `rung`, or
    /// for a time. The owner calls it after it has looked, with the bell armed.
    pub(super) fn nap(&self, doorbells: &Doorbells, rung: u32, limit: Duration) {
        self.owner.get_or_init(thread::current);
        if self.parker.sleep() {
            doorbells.sleep(rung, limit);
            self.parker.wake();
        }
    }

    /// Sleeps until the loop is to look, or for a time. Only the loop's OS thread calls it, always
    /// the same one.
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
    fn orders_come_out_in_their_order_until_the_queue_is_closed() {
        let orders = LoopOrders::default();
        assert!((0..3).all(|comm| orders.put(LoopOrder::Free { comm })));
        let mut taken = Vec::new();
        orders.take(&mut taken);
        let numbers = taken.iter().map(|order| match order {
            LoopOrder::Free { comm } => *comm,
            other => unreachable!("{other:?}"),
        });
        assert!(numbers.eq(0..3));
        orders.close();
        assert!(!orders.put(LoopOrder::Look));
    }

    #[test]
    fn a_loop_that_is_roused_looks_and_then_sleeps_again() {
        let sleep = Arc::new(LoopSleep::default());
        let there = sleep.clone();
        let rouser = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            there.rouse();
        });
        sleep.sleep(None);
        rouser.join().unwrap();
        // It may not sleep before it has looked.
        sleep.sleep(None);
        assert!(sleep.looks());
        assert!(!sleep.looks());
    }

    #[test]
    fn a_sleep_with_a_limit_ends() {
        let sleep = LoopSleep::default();
        let before = Instant::now();
        sleep.sleep(Some(Duration::from_millis(5)));
        assert!(before.elapsed() >= Duration::from_millis(5));
    }
}
