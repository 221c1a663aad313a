//! [`WokenBodies`]: which of the bodies that a driver was given have been woken since its last poll.
//!
//! A driver may have many open bodies, and mostly few of them can go on. So each of them is polled
//! with a [`BodyWaker`] of its own, which notes the number of the body and wakes the driver. The
//! next poll of the driver polls the noted bodies only. If it polled all, a chain of bodies that
//! each wait once would take a number of polls that is quadratic in its length.
//!
//! `force.rs` makes one `WokenBodies` for a driver when the driver is given its first body. The
//! rule: [`WokenBodies::begin`] stores the waker of the driver before it takes the numbers, under
//! one lock. So each number is taken by this poll, or wakes the waker of this poll.

use crate::primitives::{Mutex, lock};
use std::mem;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// The numbers of the bodies that were woken.
pub(super) struct WokenBodies(Mutex<WokenState>);

struct WokenState {
    /// That of the driver's last poll.
    driver: Waker,
    /// Each number at most once.
    indexes: Vec<usize>,
    /// Whether the body of a number is among `indexes`.
    is_noted: Vec<bool>,
}

impl WokenBodies {
    /// `driver` is the waker of the poll that is under way.
    pub(super) fn new(driver: Waker) -> Arc<WokenBodies> {
        Arc::new(WokenBodies(Mutex::new(WokenState { driver, indexes: Vec::new(), is_noted: Vec::new() })))
    }

    /// Begins a poll of the driver: appends the numbers of the bodies that were woken since the
    /// last one.
    pub(super) fn begin(&self, driver: &Waker, into: &mut Vec<usize>) {
        let mut before = None;
        {
            let mut state = lock(&self.0);
            if !state.driver.will_wake(driver) {
                before = Some(mem::replace(&mut state.driver, driver.clone()));
            }
            let WokenState { indexes, is_noted, .. } = &mut *state;
            for &index in &*indexes {
                is_noted[index] = false;
            }
            into.append(indexes);
        }
        // It may run code of the program.
        drop(before);
    }

    /// The waker of the body with this number.
    pub(super) fn waker_of(self: &Arc<Self>, index: usize) -> Waker {
        Waker::from(Arc::new(BodyWaker { woken: self.clone(), index }))
    }

    fn note(&self, index: usize) -> Waker {
        let mut state = lock(&self.0);
        if state.is_noted.len() <= index {
            state.is_noted.resize(index + 1, false);
        }
        if !mem::replace(&mut state.is_noted[index], true) {
            state.indexes.push(index);
        }
        state.driver.clone()
    }
}

/// Wakes a driver for one of its bodies. A number that has gone to another body since, or to none,
/// costs a poll in vain.
struct BodyWaker {
    woken: Arc<WokenBodies>,
    index: usize,
}

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.note(self.index).wake();
    }
}
