//! [`Waiters`]: the list of the transactions that wait for one variable.
//!
//! One of the three files that know one another: see the head of `variable.rs`.

use crate::condition::WakeCondition;
use crate::waiter::WaitingTx;
use crate::weak::{Weak, WeakAnchor};
use std::ptr::NonNull;
use std::sync::Arc;

/// The transactions that wait for a variable. A variable that nothing waits for any more keeps this
/// without waiters, for the next one.
#[derive(Default)]
pub(crate) struct Waiters {
    /// The waiters that each write wakes. A waiter keeps its place until it leaves, so that it
    /// leaves in constant time; the next waiter takes a free place. This is place 0. Mostly there
    /// is one waiter, which takes no memory of its own then.
    first: Option<Arc<WaitingTx>>,
    /// The places from 1 on. None if all of them are free, and the variable has had no weak handle.
    others: Option<Box<WaiterPlaces>>,
    /// The conditions for which transactions wait. The commits that evaluate them share the list.
    /// `None` if there are none.
    pub(crate) conditions: Option<Arc<Vec<Arc<WakeCondition>>>>,
}

#[derive(Default)]
struct WaiterPlaces {
    all: Vec<Option<Arc<WaitingTx>>>,
    free: Vec<u32>,
    /// Here, because few variables have more than one waiter, and few have weak handles.
    weak: Option<WeakAnchor>,
}

impl WaiterPlaces {
    fn are_free(&self) -> bool {
        self.free.len() == self.all.len()
    }
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
            && self.others.as_ref().is_none_or(|others| others.are_free())
            && self.conditions.is_none()
    }

    /// A weak handle to the variable with these waiters.
    pub(crate) fn weak(&mut self, inner: NonNull<()>) -> Weak {
        let anchor = &mut self.others.get_or_insert_default().weak;
        anchor.get_or_insert_with(|| WeakAnchor::new(inner)).weak()
    }

    /// What the weak handles of the variable share, if it has had one. The variable is freed next.
    pub(crate) fn take_weak(&mut self) -> Option<WeakAnchor> {
        self.others.as_mut()?.weak.take()
    }

    /// Takes out the places from 1 on, with the waiters that are in some of them.
    fn take_places(&mut self) -> Vec<Option<Arc<WaitingTx>>> {
        if let Some(others) = &mut self.others
            && others.weak.is_some()
        {
            others.free = Vec::new();
            return std::mem::take(&mut others.all);
        }
        self.others.take().map(|others| others.all).unwrap_or_default()
    }

    /// Keeps those conditions for which `stays` is true.
    pub(crate) fn retain_conditions(&mut self, stays: impl Fn(&Arc<WakeCondition>) -> bool) {
        if let Some(conditions) = &mut self.conditions
            && !conditions.iter().all(&stays)
        {
            let list = Arc::make_mut(conditions);
            list.retain(stays);
            if list.is_empty() {
                self.conditions = None;
            }
        }
    }

    /// Adds a waiter that each write wakes; its place.
    pub(crate) fn enter(&mut self, waiter: Arc<WaitingTx>) -> u32 {
        if self.first.is_none() {
            self.first = Some(waiter);
            return 0;
        }
        let others = self.others.get_or_insert_default();
        if let Some(place) = others.free.pop() {
            others.all[place as usize - 1] = Some(waiter);
            return place;
        }
        others.all.push(Some(waiter));
        others.all.len() as u32
    }

    /// Takes a waiter out, unless it is not there any more, because a commit has taken all waiters.
    /// Its place may have another waiter since.
    pub(crate) fn leave(&mut self, place: u32, waiter: &Arc<WaitingTx>) {
        let is_there =
            |there: &Option<Arc<WaitingTx>>| there.as_ref().is_some_and(|there| Arc::ptr_eq(there, waiter));
        if place == 0 {
            if is_there(&self.first) {
                self.first = None;
            }
            return;
        }
        if let Some(others) = &mut self.others
            && let Some(entry) = others.all.get_mut(place as usize - 1)
            && is_there(entry)
        {
            *entry = None;
            others.free.push(place);
            if others.are_free() {
                drop(self.take_places());
            }
        }
    }

    /// Takes out all waiters that each write wakes.
    pub(crate) fn take_plain(&mut self, mut woken: impl FnMut(Arc<WaitingTx>)) {
        if let Some(first) = self.first.take() {
            woken(first);
        }
        if self.others.is_some() {
            self.take_places().into_iter().flatten().for_each(woken);
        }
    }
}
