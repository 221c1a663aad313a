//! Which evaluation waits for which value, and the search for a circle: `<<loop>>`.
//!
//! An **evaluation** is a value that a thread has claimed, until its body ends. It *needs*
//! another value if its body is polling or awaiting a force of that value. The table here has
//! evaluations only of threads that had to wait, or had a native stack as deep as it may be: see
//! `force.rs`. Each such evaluation has a **record** with its parent, the evaluation that
//! demands it and polls its body, and there is an **edge** for each evaluation that waits for a
//! value which another thread, or another part of the same thread, has claimed.
//!
//! # Giving up
//! A frozen body has forces in it that have claimed other values. No thread polls them, so these
//! values must be free for all. An evaluation that is pending below another one has a record; an
//! evaluation that is given up gives up all below it in the table. The forces in the body find,
//! when they are polled next, that the claim is theirs no more. A combinator such as
//! `FuturesUnordered` polls only the forces that were woken, so a force behind a foreign waker is
//! woken then. A body may send a force to another thread. The force leaves its parent when it is
//! polled there.
//!
//! # Each circle is found
//! A circle of evaluations that wait for one another has a last edge. The thread that adds this
//! edge does so under the lock of the table, and then all the other edges are there. Under the same
//! lock it looks for the circle: from the evaluation that is about to wait it goes to all that wait
//! for it, on and on, and finds the value that it is about to wait for.
//!
//! # Nothing else is found
//! An edge is there only while a body awaits the value, and a parent only while a body polls the
//! evaluation. So what is found is a value that waits for itself in the moment of the search. A
//! body that awaits a value and something else at once (`select!`) counts as a body that needs the
//! value. (A force that is leaked, by `mem::forget`, leaves its edge behind; then a circle may be
//! found that is none.)
//!
//! # Callers
//! `force.rs` adds records, parents and edges when an evaluation waits or is delegated.
//! `node/give_up.rs` calls `give_up` and `release`. A fast evaluation never comes here. Drops of
//! handles and wakers may run code that needs the lock, so the functions return them, and the
//! caller drops them without the lock.

use crate::failed::NoValueError;
use crate::node::{NodeHandle, RecordId};
use crate::primitives::{Mutex, MutexGuard, lock};
use std::collections::HashMap;
use std::task::Waker;

/// A value, as the table knows it: the address of its head.
pub(crate) type Address = usize;

pub(crate) struct EvaluationRecord {
    value: Address,
    /// A handle of the value while it is claimed. It may be the last one, and be dropped long after
    /// the others: that is sound because values and bodies are `'static` (`NodeHandle::new`).
    handle: Option<NodeHandle>,
    /// The force's waker, if it is not the waker of its driver.
    waker: Option<Waker>,
    parent: RecordId,
    /// The first of the evaluations that this one demands, and the others of the same parent.
    child: RecordId,
    next: RecordId,
    previous: RecordId,
    /// The values at the other ends of the edges of this evaluation.
    awaits: Vec<Address>,
    /// Different for all records that have had this number.
    generation: u64,
}

#[derive(Default)]
pub(crate) struct CircleTable {
    records: Vec<Option<EvaluationRecord>>,
    free: Vec<RecordId>,
    /// The number of records that there have been.
    generation: u64,
    /// For each value the evaluations that wait for it.
    edges: HashMap<Address, Vec<RecordId>>,
}

impl CircleTable {
    /// A record for a claimed value, without a parent.
    pub(crate) fn record(&mut self, handle: NodeHandle) -> RecordId {
        let value = handle.pointer().addr().get();
        self.generation += 1;
        let record = Some(EvaluationRecord {
            value,
            handle: Some(handle),
            waker: None,
            parent: 0,
            child: 0,
            next: 0,
            previous: 0,
            awaits: Vec::new(),
            generation: self.generation,
        });
        match self.free.pop() {
            Some(id) => {
                self.records[id as usize - 1] = record;
                id
            }
            None => {
                self.records.push(record);
                self.records.len() as RecordId
            }
        }
    }

    /// Notes that `parent`, or no evaluation, demands the evaluation.
    pub(crate) fn set_parent(&mut self, id: RecordId, parent: RecordId) {
        let Some(record) = self.at(id) else { return };
        if record.parent == parent {
            return;
        }
        let (old, next, previous) = (record.parent, record.next, record.previous);
        let first = self.at(parent).map_or(0, |parent| std::mem::replace(&mut parent.child, id));
        if let Some(next) = self.at(next) {
            next.previous = previous;
        }
        match self.at(previous) {
            Some(previous) => previous.next = next,
            None => {
                if let Some(old) = self.at(old) {
                    old.child = next;
                }
            }
        }
        if let Some(first) = self.at(first) {
            first.previous = id;
        }
        if let Some(record) = self.at(id) {
            (record.parent, record.next, record.previous) = (parent, first, 0);
            if let Some(handle) = &record.handle {
                handle.head().set_parent(parent);
            }
        }
    }

    /// Notes that the value of the record is claimed again, by an evaluation that `parent` demands,
    /// or none.
    ///
    /// # Errors
    /// When the value waits for the parent already.
    pub(crate) fn resume(
        &mut self,
        id: RecordId,
        handle: NodeHandle,
        parent: RecordId,
    ) -> Result<(), NoValueError> {
        let circle = self.find_circle(parent, handle.pointer().addr().get());
        if let Some(record) = self.at(id) {
            record.handle = Some(handle);
        }
        if let Some(circle) = circle {
            return Err(NoValueError::from_circle(&circle));
        }
        self.set_parent(id, parent);
        Ok(())
    }

    /// Notes that the evaluation was given up, and gives up all that it demands. The caller has
    /// made its node idle under this lock. Gives the handles of all these values and the wakers of
    /// their forces. The caller wakes the waiters and the forces, and drops the handles, without
    /// the lock.
    ///
    /// A record has a parent only while its node is claimed for the parent: the node is made idle
    /// under this lock, and then the record leaves its parent. An evaluation that is being polled
    /// is marked, and the OS thread that polls it gives it up.
    pub(crate) fn give_up(&mut self, id: RecordId) -> Vec<(NodeHandle, Option<Waker>)> {
        self.set_parent(id, 0);
        let mut handles = Vec::new();
        if let Some(record) = self.at(id) {
            handles.extend(record.handle.take().map(|handle| (handle, record.waker.take())));
        }
        let mut to_visit = vec![id];
        while let Some(id) = to_visit.pop() {
            while let Some(child) = self.at(id).map(|record| record.child).filter(|&child| child != 0) {
                self.set_parent(child, 0);
                let let_go = |handle: &mut NodeHandle| handle.head().let_go_below();
                let Some(record) = self.at(child) else { continue };
                if let Some(handle) = record.handle.take_if(let_go) {
                    handles.push((handle, record.waker.take()));
                    to_visit.push(child);
                }
            }
        }
        handles
    }

    /// Notes the waker of the force that evaluates. Gives the one before.
    #[must_use = "it is dropped without the lock"]
    pub(crate) fn set_waker(&mut self, id: RecordId, waker: Waker) -> Option<Waker> {
        self.at(id).and_then(|record| record.waker.replace(waker))
    }

    /// Removes a record and its edges. The caller drops it without the lock. A force that the body
    /// has sent away may still have its [`Edge`], which is of no effect from now on.
    #[must_use = "dropping it may need the lock"]
    pub(crate) fn release(&mut self, id: RecordId) -> Option<EvaluationRecord> {
        self.set_parent(id, 0);
        while let Some(child) = self.at(id).map(|record| record.child).filter(|&child| child != 0) {
            self.set_parent(child, 0);
        }
        for value in self.at(id).map_or_else(Vec::new, |record| std::mem::take(&mut record.awaits)) {
            self.remove_edge(id, value);
        }
        let record = self.records[id as usize - 1].take();
        self.free.push(id);
        record
    }

    fn at(&mut self, id: RecordId) -> Option<&mut EvaluationRecord> {
        self.records.get_mut((id as usize).wrapping_sub(1))?.as_mut()
    }

    /// Notes that the evaluation waits for the value.
    ///
    /// # Errors
    /// When the value waits for the evaluation already.
    pub(crate) fn add_edge(&mut self, waits: RecordId, value: Address) -> Result<Edge, NoValueError> {
        if let Some(circle) = self.find_circle(waits, value) {
            return Err(NoValueError::from_circle(&circle));
        }
        self.edges.entry(value).or_default().push(waits);
        let generation = self.at(waits).map_or(0, |record| {
            record.awaits.push(value);
            record.generation
        });
        Ok(Edge { waits, generation, value })
    }

    fn drop_edge(&mut self, edge: &Edge) {
        let record = self.at(edge.waits).filter(|record| record.generation == edge.generation);
        let Some(record) = record else { return };
        if let Some(at) = record.awaits.iter().position(|&value| value == edge.value) {
            record.awaits.swap_remove(at);
            self.remove_edge(edge.waits, edge.value);
        }
    }

    fn remove_edge(&mut self, waits: RecordId, value: Address) {
        let Some(waiting) = self.edges.get_mut(&value) else { return };
        if let Some(at) = waiting.iter().position(|&id| id == waits) {
            waiting.swap_remove(at);
        }
        if waiting.is_empty() {
            self.edges.remove(&value);
        }
    }

    /// The names from the value to the evaluation, if the value waits for the evaluation.
    fn find_circle(&mut self, waits: RecordId, value: Address) -> Option<Vec<String>> {
        // Each evaluation that was found, with the evaluation for which it waits.
        let mut needs = HashMap::from([(waits, 0)]);
        let mut to_visit = vec![waits];
        while let Some(id) = to_visit.pop() {
            let Some(record) = self.at(id) else { continue };
            let (address, parent) = (record.value, record.parent);
            if address == value {
                let mut names = Vec::new();
                let mut next = id;
                while let Some(record) = self.at(next) {
                    let label = record.handle.as_ref().map(|handle| handle.head().label().write());
                    names.extend(label);
                    next = needs[&next];
                }
                return Some(names);
            }
            let others = self.edges.get(&address).into_iter().flatten();
            for &waiting in others.chain((parent != 0).then_some(&parent)) {
                needs.entry(waiting).or_insert_with(|| {
                    to_visit.push(waiting);
                    id
                });
            }
        }
        None
    }
}

#[cfg(not(loom))]
static TABLE: std::sync::LazyLock<Mutex<CircleTable>> = std::sync::LazyLock::new(Mutex::default);
#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: Mutex<CircleTable> = Mutex::new(CircleTable::default());
}

/// The table, locked.
pub(crate) fn table() -> MutexGuard<'static, CircleTable> {
    lock(&TABLE)
}

/// An edge, removed when it is dropped.
pub(crate) struct Edge {
    waits: RecordId,
    generation: u64,
    value: Address,
}

impl Drop for Edge {
    fn drop(&mut self) {
        table().drop_edge(self);
    }
}
