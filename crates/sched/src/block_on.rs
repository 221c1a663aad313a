//! [`block_on`]: waiting for a future on an ordinary OS thread.

use selvedge_core::{Quiet, in_thread};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// Runs a future on the calling OS thread, which sleeps while the future waits; returns its result.
///
/// Ordinary code uses it to wait for threads: to join a thread that a [`Handle`](crate::Handle) has
/// spawned, or to take from an MVar. It runs no threads itself.
///
/// While the OS thread sleeps it counts as [quiet](Quiet): if it and all other OS threads wait for
/// one another, a scheduler reports the deadlock.
///
/// # Panics
/// If it is called within a thread. The OS thread then belongs to a worker. While it sleeps, none
/// of the worker's threads can run, and perhaps the awaited thread is one of them: `await` the
/// future instead.
///
/// # Examples
/// ```
/// use selvedge::block_on;
/// use selvedge::sync::MVar;
///
/// let var = MVar::empty();
/// std::thread::scope(|scope| {
///     scope.spawn(|| block_on(var.put(42)));
///     assert_eq!(block_on(var.take()), 42);
/// });
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !in_thread(),
        "block_on() was called within a thread: while it blocked, its worker could run no other thread, and perhaps not \
         the one that it waits for. Await the future instead"
    );
    let parking = Arc::new(Parking::default());
    let waker = Waker::from(parking.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        parking.park();
    }
}

/// The place where the OS thread sleeps.
#[derive(Debug, Default)]
struct Parking {
    place: Mutex<Place>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Place {
    is_woken: bool,
    /// The waker ends the quiet, because from then on there is work to do.
    quiet: Option<Quiet>,
}

impl Parking {
    fn park(&self) {
        let mut place = self.place.lock().expect("no panic under this lock");
        while !place.is_woken {
            place.quiet.get_or_insert_with(Quiet::new);
            place = self.woken.wait(place).expect("no panic under this lock");
        }
        place.is_woken = false;
    }
}

impl Wake for Parking {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut place = self.place.lock().expect("no panic under this lock");
        place.is_woken = true;
        place.quiet = None;
        drop(place);
        self.woken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::{round_robin, yield_now};
    use std::panic::catch_unwind;

    #[test]
    fn a_future_that_wakes_itself_is_polled_again() {
        block_on(async {
            yield_now().await;
            yield_now().await;
        });
    }

    #[test]
    fn it_is_refused_where_a_worker_would_block() {
        let message = round_robin(async {
            let refused = catch_unwind(|| block_on(std::future::ready(()))).unwrap_err();
            *refused.downcast::<&str>().expect("a message")
        });
        assert!(message.unwrap().contains("Await the future instead"));
    }
}
