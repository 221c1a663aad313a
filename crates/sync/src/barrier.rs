//! The barrier: where threads wait for one another.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::fmt;

/// Where a number of threads wait until all of them have come. Then they go on, and it is as new.
///
/// # Cancellation
/// Dropping a wait before the last has come takes it back: one more is then needed.
///
/// # Complexity
/// One critical section for each who comes; the last one's is as long as there are threads.
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

/// What a thread is told that has passed a [`Barrier`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    leader: bool,
}

impl Passed {
    /// Whether it was the last to come, of whom there is one each time.
    pub fn is_leader(self) -> bool {
        self.leader
    }
}

impl Barrier {
    constant! {
        /// A barrier for `size` threads; no thread waits at one for 0 or 1.
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
    /// Waits until all have come.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Passed> {
        self.queue.wait::<Come>(())
    }

    /// Waits until all have come, blocking this OS thread.
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

    /// All had come.
    fn abandoned(_: &mut Party, _: &mut Queue<'_, ()>, _: &mut ()) {}

    fn withdrawn(party: &mut Party, _: &mut Queue<'_, ()>, _: &mut (), _: bool) {
        party.waiting -= 1;
    }
}

impl<M: Mode> fmt::Debug for Barrier<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, size) = self.queue.with(|party, _| (party.waiting, party.size));
        // As of every object: written outside of the lock, because the writer is code of the caller's.
        write!(f, "Barrier({waiting} of {size} have come)")
    }
}
