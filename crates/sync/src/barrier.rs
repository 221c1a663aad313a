//! The barrier: [`Barrier`], at which a number of threads wait for one another.
//!
//! The programs of users call it.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::fmt;

/// A place where threads wait until a given number of them have come. Then all go on, and the
/// barrier is as new.
///
/// # Cancellation
/// Dropping a wait before the last thread has come takes it back: the barrier then needs one more
/// thread.
///
/// # Complexity
/// One critical section for each thread. The last one's grows with the number of threads.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::Barrier;
/// use std::rc::Rc;
///
/// let leaders = round_robin(async {
///     let barrier = Rc::new(Barrier::new_local(3));
///     let mut threads = vec![];
///     for _ in 0..3 {
///         let barrier = barrier.clone();
///         threads.push(spawn_local(async move { barrier.wait().await.is_leader() }));
///     }
///     let mut leaders = 0;
///     for thread in threads {
///         leaders += u32::from(thread.await.unwrap());
///     }
///     leaders
/// })?;
/// assert_eq!(leaders, 1);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Barrier<M: Mode = Shared> {
    queue: WaitQueue<Party, (), M>,
}

struct Party {
    size: usize,
    waiting: usize,
}

/// The answer that a thread gets when it has passed a [`Barrier`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    leader: bool,
}

impl Passed {
    /// Whether this thread was the last to come. Each time there is exactly one such thread.
    pub fn is_leader(self) -> bool {
        self.leader
    }
}

impl Barrier {
    constant! {
        /// A barrier for this many threads. With 0 or 1, no thread waits.
        pub fn new(size: usize) -> Self {
            Barrier { queue: WaitQueue::shared(Party { size, waiting: 0 }, 0) }
        }
    }
}

impl Barrier<Local> {
    /// A barrier that stays on its OS thread.
    pub fn new_local(size: usize) -> Self {
        Barrier { queue: WaitQueue::new(Party { size, waiting: 0 }) }
    }
}

impl<M: Mode> Barrier<M> {
    /// Waits until all threads have come.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Passed> {
        self.queue.wait::<Come>(())
    }

    /// Waits until all threads have come, and blocks this OS thread.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn wait_blocking(&self) -> Passed {
        wait_blocking(self.wait())
    }
}

enum Come {}

impl Role<Party, ()> for Come {
    type Output = Passed;

    fn attempt(party: &mut Party, queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<Passed> {
        if party.waiting + 1 < party.size {
            party.waiting += 1;
            return None;
        }
        party.waiting = 0;
        while !queue.is_empty() {
            queue.grant();
        }
        Some(Passed { leader: true })
    }

    fn granted(_: &mut ()) -> Passed {
        Passed { leader: false }
    }

    /// Nothing is to be passed on, because all threads had come.
    fn abandoned(_: &mut Party, _: &mut Queue<'_, ()>, _: &mut ()) {}

    fn withdrawn(party: &mut Party, _: &mut Queue<'_, ()>, _: &mut (), _: bool) {
        party.waiting -= 1;
    }
}

impl<M: Mode> fmt::Debug for Barrier<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, size) = self.queue.with(|party, _| (party.waiting, party.size));
        // Written outside of the lock, because the writer is code of the caller. All objects here
        // do so.
        write!(f, "Barrier({waiting} of {size} have come)")
    }
}
