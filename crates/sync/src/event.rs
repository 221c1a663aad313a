//! Events and latches: [`Event`] and [`Latch`]. Threads wait until something has happened, once or
//! a number of times.
//!
//! The programs of users call them. Both are a [`Countdown`], for which threads wait until its
//! number is 0.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, Waiting, constant};
use std::fmt;
use std::panic::Location;

/// An event that has happened or has not. A thread that waits for it goes on when it happens, and
/// does not wait if it has happened already.
///
/// # Cancellation
/// Dropping a wait removes it from the queue. Nothing is lost.
///
/// # Complexity
/// Waiting for an event that has happened is one atomic operation. Setting is one critical section,
/// which grows with the number of waiting threads.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::Event;
/// use std::rc::Rc;
///
/// round_robin(async {
///     let open = Rc::new(Event::new_local());
///     let theirs = open.clone();
///     let waiter = spawn_local(async move { theirs.wait().await });
///     open.set();
///     waiter.await.unwrap();
///     open.wait().await;
///     open.reset();
///     assert!(!open.is_set());
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "Notify")]
pub struct Event<M: Mode = Shared> {
    /// The number says how often the event must still happen: 1 or 0.
    count: Countdown<M>,
}

/// A number that is counted down. A thread that waits for it goes on when it is 0. It does not go
/// up again.
///
/// # Cancellation
/// As with an [`Event`].
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::Latch;
/// use std::rc::Rc;
///
/// round_robin(async {
///     let done = Rc::new(Latch::new_local(3));
///     for _ in 0..3 {
///         let done = done.clone();
///         drop(spawn_local(async move { done.count_down() }));
///     }
///     done.wait().await;
///     assert_eq!(done.left(), 0);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Latch<M: Mode = Shared> {
    count: Countdown<M>,
}

/// The word of the queue is the number. While it is 0 the queue is empty.
struct Countdown<M: Mode> {
    queue: WaitQueue<(), (), M>,
}

impl<M: Mode> Countdown<M> {
    fn new(count: u32) -> Self {
        Countdown { queue: WaitQueue::with_word((), count) }
    }

    #[inline(always)]
    fn wait(&self, place: &'static Location<'static>) -> Waiting<'_, (), (), Zero, M> {
        self.queue.wait_at((), place)
    }

    /// Replaces the number by the result of `change`. If that is 0, all waiting threads go on.
    fn change(&self, change: impl FnOnce(u32) -> u32) {
        self.queue.with(|_, queue| {
            *queue.word() = change(*queue.word());
            while *queue.word() == 0 && !queue.is_empty() {
                queue.grant();
            }
        });
    }
}

enum Zero {}

impl Role<(), ()> for Zero {
    type Output = ();

    const PASSES: bool = true;

    #[inline(always)]
    fn pass(word: u32, _: &()) -> Option<u32> {
        (word == 0).then_some(0)
    }

    fn attempt(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        (*queue.word() == 0).then_some(())
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), _: &mut Queue<'_, ()>, _: &mut ()) {}
}

impl Event {
    constant! {
        /// An event that has not happened.
        pub fn new() -> Self {
            Event { count: Countdown { queue: WaitQueue::shared((), 1) } }
        }
    }
}

impl Event<Local> {
    /// An event that stays on its OS thread and has not happened.
    pub fn new_local() -> Self {
        Event::default()
    }
}

impl<M: Mode> Event<M> {
    /// The event has happened: all waiting threads go on.
    pub fn set(&self) {
        self.count.change(|_| 0);
    }

    /// The event has not happened. Threads that waited before the last `set` go on all the same.
    pub fn reset(&self) {
        self.count.change(|_| 1);
    }

    /// Whether the event has happened.
    pub fn is_set(&self) -> bool {
        self.count.queue.word() == 0
    }

    /// Waits until the event has happened.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = ()> {
        self.count.wait(Location::caller())
    }

    /// Waits until the event has happened, and blocks this OS thread.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn wait_blocking(&self) {
        wait_blocking(self.wait());
    }
}

impl<M: Mode> Default for Event<M> {
    /// An event that has not happened.
    fn default() -> Self {
        Event { count: Countdown::new(1) }
    }
}

impl<M: Mode> fmt::Debug for Event<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "Event(set)" } else { "Event(not set)" })
    }
}

impl Latch {
    constant! {
        /// A latch with the number `count`, at most 2^31 - 1.
        ///
        /// # Panics
        /// When `count` is larger.
        pub fn new(count: u32) -> Self {
            Latch { count: Countdown { queue: WaitQueue::shared((), checked(count)) } }
        }
    }
}

impl Latch<Local> {
    /// A latch that stays on its OS thread.
    ///
    /// # Panics
    /// As [`Latch::new`].
    pub fn new_local(count: u32) -> Self {
        Latch { count: Countdown::new(checked(count)) }
    }
}

/// A latch's number.
const fn checked(count: u32) -> u32 {
    assert!(count >> 31 == 0, "a latch counts down from 2^31 - 1 at most");
    count
}

impl<M: Mode> Latch<M> {
    /// Counts down by one. At 0 it changes nothing.
    pub fn count_down(&self) {
        self.count.change(|left| left.saturating_sub(1));
    }

    /// The present number.
    pub fn left(&self) -> u32 {
        self.count.queue.word()
    }

    /// Waits until the number is 0.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = ()> {
        self.count.wait(Location::caller())
    }

    /// Waits until the number is 0, and blocks this OS thread.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn wait_blocking(&self) {
        wait_blocking(self.wait());
    }
}

impl<M: Mode> fmt::Debug for Latch<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Latch({})", self.left())
    }
}
