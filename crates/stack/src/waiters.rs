//! The threads that wait for a socket.

use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

/// What smoltcp wakes under the lock of the stack: the threads of one socket. It notes their
/// wakers, and the stack wakes these when it has released the lock.
pub(crate) struct SocketWaiters {
    waiting: Mutex<Vec<Waker>>,
    woken: Arc<Mutex<Vec<Waker>>>,
}

impl SocketWaiters {
    pub(crate) fn new(woken: &Arc<Mutex<Vec<Waker>>>) -> Arc<SocketWaiters> {
        Arc::new(SocketWaiters { waiting: Mutex::default(), woken: woken.clone() })
    }

    pub(crate) fn add(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap();
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }
}

impl Wake for SocketWaiters {
    fn wake(self: Arc<Self>) {
        let waiting = mem::take(&mut *self.waiting.lock().unwrap());
        self.woken.lock().unwrap().extend(waiting);
    }
}
