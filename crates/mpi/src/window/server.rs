//! [`WindowServer`]: the thread of a rank that does what the other ranks do to its memory.
//!
//! It takes one [`WindowOrder`] after another. Those of one rank come in the order in which that
//! rank gave them, so the answer to one says that all before it are done.

use super::WindowElement;
use crate::Tag;
use crate::communicator::Communicator;
use crate::engine::SendMode;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::{Value, open, pack};
use crate::tag::{Source, Tags};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// What an order asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WindowCommand {
    Put,
    Accumulate,
    Get,
    FetchAndOp,
    CompareAndSwap,
    Flush,
    LockShared,
    LockExclusive,
    Unlock,
    Stop,
}

impl WindowCommand {
    const ALL: [WindowCommand; 10] = [
        WindowCommand::Put,
        WindowCommand::Accumulate,
        WindowCommand::Get,
        WindowCommand::FetchAndOp,
        WindowCommand::CompareAndSwap,
        WindowCommand::Flush,
        WindowCommand::LockShared,
        WindowCommand::LockExclusive,
        WindowCommand::Unlock,
        WindowCommand::Stop,
    ];
}

/// One operation on the memory of a rank.
pub(super) struct WindowOrder<T> {
    pub(super) command: WindowCommand,
    /// The tag of the answer, or 0 if there is none.
    pub(super) answer: u32,
    pub(super) at: usize,
    /// How many elements to get, or the answer of the lock that is released.
    pub(super) count: usize,
    pub(super) elements: Vec<T>,
}

/// An order as a message: the command, the answer, the place, the count and the elements.
type WrittenOrder<T> = (u8, u32, u64, u64, Vec<T>);

/// The tag of orders. Those of answers are greater.
const ORDERS: Tag = Tag(0);

impl<T: WindowElement> WindowOrder<T> {
    pub(super) fn new(command: WindowCommand) -> WindowOrder<T> {
        WindowOrder { command, answer: 0, at: 0, count: 0, elements: Vec::new() }
    }

    pub(super) fn of_elements(command: WindowCommand, at: usize, elements: &[T]) -> WindowOrder<T> {
        WindowOrder { at, elements: elements.to_vec(), ..WindowOrder::new(command) }
    }

    /// Sends the order. It does not wait.
    pub(super) fn send(self, comm: &Communicator, call: CallSite, target: usize) -> Result<(), Error> {
        let WindowOrder { command, answer, at, count, elements } = self;
        let written: WrittenOrder<T> = (command as u8, answer, at as u64, count as u64, elements);
        send(comm, call, target, ORDERS, Value(written))
    }
}

/// Sends a message of a window.
fn send<T: crate::Message>(
    comm: &Communicator,
    call: CallSite,
    to: usize,
    tag: Tag,
    value: Value<T>,
) -> Result<(), Error> {
    let body = pack(call, value, comm.moves_values(to))?;
    // What is underway goes its way.
    comm.start_send(call, comm.own(), to, tag, body, SendMode::Standard).map(drop)
}

/// Waits for the elements of an answer.
pub(super) async fn answer<T: WindowElement>(
    comm: &Communicator,
    call: CallSite,
    target: usize,
    tag: Tag,
) -> Result<Vec<T>, Error> {
    let envelope = comm.receive(call, comm.own(), Source::Rank(target), Tags::One(tag)).await?;
    let (Value(elements), _) = open(call, envelope)?;
    Ok(elements)
}

/// The thread of a rank that serves its memory.
pub(super) struct WindowServer<T, O> {
    comm: Communicator,
    call: CallSite,
    memory: Arc<Mutex<Vec<T>>>,
    op: O,
    /// The ranks that have the lock, with the answers that have told them.
    holders: Vec<(usize, u32)>,
    /// Whether the one holder has the lock alone.
    is_exclusive: bool,
    waiting: VecDeque<WaitingLock>,
    /// The number of ranks that have failed.
    failed: usize,
}

/// A rank that waits for the lock.
struct WaitingLock {
    source: usize,
    answer: u32,
    is_exclusive: bool,
}

impl<T: WindowElement, O: Fn(T, T) -> T + Send> WindowServer<T, O> {
    pub(super) fn new(
        comm: Communicator,
        call: CallSite,
        memory: Arc<Mutex<Vec<T>>>,
        op: O,
    ) -> WindowServer<T, O> {
        let waiting = VecDeque::new();
        WindowServer { comm, call, memory, op, holders: Vec::new(), is_exclusive: false, waiting, failed: 0 }
    }

    /// Serves until it is stopped, or its rank has ended.
    pub(super) async fn serve(mut self) {
        loop {
            match self.next().await {
                Ok((_, WindowOrder { command: WindowCommand::Stop, .. })) => return,
                Ok((source, order)) => self.obey(source, order),
                Err(error) => {
                    // The failure of another rank ends its locks, and not the thread.
                    let failed = self.comm.acknowledge_failed().len();
                    if error.class() != ErrorClass::Ended || failed == self.failed {
                        return;
                    }
                    self.failed = failed;
                    let comm = self.comm.clone();
                    self.holders.retain(|(source, _)| !comm.has_ended(*source));
                    self.waiting.retain(|waiting| !comm.has_ended(waiting.source));
                    self.grant();
                }
            }
        }
    }

    async fn next(&mut self) -> Result<(usize, WindowOrder<T>), Error> {
        let orders = Tags::One(ORDERS);
        let envelope = self.comm.receive(self.call, self.comm.own(), Source::Any, orders).await?;
        let (Value((command, answer, at, count, elements)), status) =
            open::<Value<WrittenOrder<T>>>(self.call, envelope)?;
        let command = WindowCommand::ALL[usize::from(command)];
        Ok((status.source, WindowOrder { command, answer, at: at as usize, count: count as usize, elements }))
    }

    fn obey(&mut self, source: usize, order: WindowOrder<T>) {
        let (command, answer) = (order.command, order.answer);
        let result = match command {
            WindowCommand::LockShared | WindowCommand::LockExclusive => {
                let is_exclusive = command == WindowCommand::LockExclusive;
                self.waiting.push_back(WaitingLock { source, answer, is_exclusive });
                // The answer comes with the lock.
                return self.grant();
            }
            WindowCommand::Unlock => {
                self.unlock(source, order.count as u32);
                Vec::new()
            }
            _ => self.access(order),
        };
        if answer != 0 {
            self.answer(source, answer, result);
        }
    }

    /// Reads or changes the memory. Gives the elements of the answer.
    fn access(&self, order: WindowOrder<T>) -> Vec<T> {
        let WindowOrder { command, at, count, elements, .. } = order;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Vec::new();
        match command {
            WindowCommand::Put => memory[at..at + elements.len()].copy_from_slice(&elements),
            WindowCommand::Accumulate => self.combine(&mut memory[at..], &elements),
            WindowCommand::Get => result.extend_from_slice(&memory[at..at + count]),
            WindowCommand::FetchAndOp => {
                result.push(memory[at]);
                self.combine(&mut memory[at..], &elements);
            }
            WindowCommand::CompareAndSwap => {
                result.push(memory[at]);
                if memory[at] == elements[0] {
                    memory[at] = elements[1];
                }
            }
            // No order for the memory: the answer alone is asked for.
            _ => {}
        }
        result
    }

    fn combine(&self, memory: &mut [T], elements: &[T]) {
        for (here, came) in memory.iter_mut().zip(elements) {
            *here = (self.op)(*here, *came);
        }
    }

    /// The lock that this answer has told, or will tell, is released.
    fn unlock(&mut self, source: usize, lock: u32) {
        self.holders.retain(|holder| *holder != (source, lock));
        self.waiting.retain(|waiting| (waiting.source, waiting.answer) != (source, lock));
        self.grant();
    }

    /// Gives the lock to the ranks that wait at the front, as many as may have it together.
    fn grant(&mut self) {
        while let Some(first) = self.waiting.front() {
            let is_free = self.holders.is_empty();
            if !is_free && (self.is_exclusive || first.is_exclusive) {
                return;
            }
            let WaitingLock { source, answer, is_exclusive } =
                self.waiting.pop_front().expect("one waits at the front");
            self.holders.push((source, answer));
            self.is_exclusive = is_exclusive;
            self.answer(source, answer, Vec::new());
        }
    }

    fn answer(&self, source: usize, answer: u32, elements: Vec<T>) {
        // A rank that has ended waits for no answer.
        let _ = send(&self.comm, self.call, source, Tag(answer), Value(elements));
    }
}
