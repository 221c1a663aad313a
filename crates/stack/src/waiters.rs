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

    /// Takes the waker of a thread that waits. What is there already stays with the caller, which
    /// drops it when the lock of the stack is released: to clone or drop a waker may run any code.
    pub(crate) fn add(&self, waker: &mut Option<Waker>) {
        let mut waiting = self.waiting.lock().unwrap();
        if let Some(new) = waker
            && !waiting.iter().any(|other| other.will_wake(new))
        {
            // Mostly there is one, and each of thousands of connections at rest has it.
            waiting.reserve_exact(1);
            waiting.extend(waker.take());
        }
    }
}

impl Wake for SocketWaiters {
    fn wake(self: Arc<Self>) {
        let waiting = mem::take(&mut *self.waiting.lock().unwrap());
        self.woken.lock().unwrap().extend(waiting);
    }
}
