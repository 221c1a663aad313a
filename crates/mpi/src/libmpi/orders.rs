//! [`Orders`]: the queue through which threads ask the message loop for calls, and in which the
//! loop's OS thread sleeps.
//!
//! `comm.rs` puts orders in, on any OS thread. `message_loop.rs` takes them out, in the order in
//! which they came, so that the calls of one communicator reach MPI in the program's order.

use super::collective::{Collected, Plan};
use super::completion::Completer;
use super::matching::{Filter, Origin};
use super::memory::Memory;
use super::scalar::Scalar;
use selvedge_core::{Parker, Quiet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The number of a communicator in the message loop. It is never used again.
pub(super) type CommId = u32;

/// The communicator of all ranks.
pub(super) const WORLD: CommId = 0;

/// A message that was received.
#[derive(Debug)]
pub struct Received {
    /// The rank that sent it.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
    /// Its numbers.
    pub memory: Memory,
    /// Its place in the order of messages, if it has to come back.
    pub(super) number: u64,
}

/// A message that has arrived, and has not been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rank that sent it.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Where a message goes.
#[derive(Debug)]
pub(super) enum Room {
    /// Into memory that the loop makes, as long as the message.
    Fitting(Scalar),
    /// Into the receiver's memory.
    Given(Memory),
}

/// A new communicator, and this rank's place in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewPlace {
    pub(super) id: CommId,
    pub(super) rank: usize,
    pub(super) size: usize,
}

/// A call that a thread asks for.
#[derive(Debug)]
pub(super) enum Order {
    Send { comm: CommId, dest: i32, tag: i32, synchronous: bool, memory: Memory, completer: Completer<Memory> },
    Receive { comm: CommId, filter: Filter, ticket: u64, room: Room, completer: Completer<Received> },
    /// The thread that waits for a receive has left.
    GiveUp { comm: CommId, filter: Filter, ticket: u64 },
    /// The thread that waited for a receive has left, and the message was received for it.
    ComeBack { comm: CommId, origin: Origin, number: u64, memory: Memory },
    Probe { comm: CommId, filter: Filter, completer: Completer<Arrival> },
    Collective { comm: CommId, plan: Box<Plan>, completer: Completer<Collected> },
    Dup { comm: CommId, completer: Completer<NewPlace> },
    Split { comm: CommId, color: Option<i32>, key: i32, completer: Completer<Option<NewPlace>> },
    Free { comm: CommId },
    /// MPI's clock.
    Time { completer: Completer<f64> },
    Abort { code: i32, completer: Completer<()> },
    /// MPI is ended when all calls are done.
    Finish,
}

#[derive(Debug, Default)]
struct Queue {
    orders: Vec<Order>,
    /// Receives that have been asked for.
    tickets: u64,
    /// Whether the message loop takes no more orders.
    is_closed: bool,
}

/// The queue of one message loop.
#[derive(Debug, Default)]
pub(super) struct Orders {
    queue: Mutex<Queue>,
    parker: Parker,
    /// The loop's OS thread.
    owner: OnceLock<Thread>,
}

/// The reason that lasts until the loop takes the orders out.
const MAIL: u8 = 4;

impl Orders {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a call. An order that the loop takes no more is dropped, which its waiter notices.
    pub(super) fn put(&self, order: Order) {
        self.put_with(|_| order);
    }

    /// Asks for a call that has a ticket. Tickets ascend in the order in which the loop takes the
    /// orders out.
    pub(super) fn put_with(&self, order: impl FnOnce(u64) -> Order) -> u64 {
        let mut queue = self.lock();
        queue.tickets += 1;
        let ticket = queue.tickets;
        let order = order(ticket);
        if queue.is_closed {
            // An order may have another communicator's last handle, which puts an order itself.
            drop(queue);
            return ticket;
        }
        queue.orders.push(order);
        drop(queue);
        if self.parker.rouse(MAIL) {
            self.owner.get().expect("the owner sleeps, so it has said which OS thread it is").unpark();
        }
        ticket
    }

    /// Takes all orders out, into an empty list.
    pub(super) fn take(&self, into: &mut Vec<Order>) {
        if self.parker.has(MAIL) {
            self.parker.take(MAIL);
            std::mem::swap(&mut self.lock().orders, into);
        }
    }

    /// Takes no more orders. Those that are there are dropped.
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
    use std::sync::Arc;

    #[test]
    fn orders_come_out_in_their_order_and_end_a_sleep() {
        let orders = Arc::new(Orders::default());
        let there = orders.clone();
        let asker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            (0..3).for_each(|comm| there.put(Order::Free { comm }));
        });
        let mut taken = Vec::new();
        while taken.len() < 3 {
            orders.sleep(None);
            let mut more = Vec::new();
            orders.take(&mut more);
            taken.append(&mut more);
        }
        asker.join().unwrap();
        assert!(taken.iter().zip(0..).all(|(order, n)| matches!(order, Order::Free { comm } if *comm == n)));
    }

    #[test]
    fn a_sleep_with_a_limit_ends() {
        let orders = Orders::default();
        let before = Instant::now();
        orders.sleep(Some(Duration::from_millis(5)));
        assert!(before.elapsed() >= Duration::from_millis(5));
    }
}
