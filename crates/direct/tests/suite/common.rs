//! An MVar on the wait queue alone, for one OS thread: while it is empty takers wait in the queue,
//! while it is full putters.

use selvedge_core::{Local, Queue, Role, WaitQueue};
use std::rc::Rc;

pub(crate) struct MVar<T>(WaitQueue<Option<T>, Option<T>, Local>);

impl<T> MVar<T> {
    pub(crate) fn empty() -> Rc<MVar<T>> {
        Rc::new(MVar(WaitQueue::new(None)))
    }

    pub(crate) fn take(&self) -> impl Future<Output = T> {
        self.0.wait::<Take>(None)
    }

    pub(crate) fn put(&self, value: T) -> impl Future<Output = ()> {
        self.0.wait::<Put>(Some(value))
    }
}

struct Take;
struct Put;

fn take<T>(state: &mut Option<T>, queue: &mut Queue<'_, Option<T>>) -> Option<T> {
    let value = state.take()?;
    if let Some(putter) = queue.front() {
        *state = putter.take();
        queue.grant();
    }
    Some(value)
}

fn put<T>(state: &mut Option<T>, queue: &mut Queue<'_, Option<T>>, value: &mut Option<T>) -> Option<()> {
    if state.is_some() {
        return None;
    }
    match queue.front() {
        Some(taker) => {
            *taker = value.take();
            queue.grant();
        }
        None => *state = value.take(),
    }
    Some(())
}

impl<T> Role<Option<T>, Option<T>> for Take {
    type Output = T;

    fn attempt(state: &mut Option<T>, queue: &mut Queue<'_, Option<T>>, _: &mut Option<T>) -> Option<T> {
        take(state, queue)
    }

    fn granted(payload: &mut Option<T>) -> T {
        payload.take().expect("granted with a value")
    }

    fn abandoned(state: &mut Option<T>, queue: &mut Queue<'_, Option<T>>, payload: &mut Option<T>) {
        put(state, queue, payload);
    }
}

impl<T> Role<Option<T>, Option<T>> for Put {
    type Output = ();

    fn attempt(
        state: &mut Option<T>,
        queue: &mut Queue<'_, Option<T>>,
        payload: &mut Option<T>,
    ) -> Option<()> {
        put(state, queue, payload)
    }

    fn granted(_: &mut Option<T>) {}

    fn abandoned(_: &mut Option<T>, _: &mut Queue<'_, Option<T>>, _: &mut Option<T>) {}
}
