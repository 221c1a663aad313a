//! The condition variable: [`Condition`], for which a thread waits without the mutex that guards
//! the value it depends on.
//!
//! The programs of users call it together with a [`Mutex`](crate::Mutex).

use crate::BlockingGuard;
use crate::blocking::wait_blocking;
use crate::mutex::Guard;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::panic::Location;
use std::pin::pin;

/// A condition variable: threads wait for it until the value in a [`Mutex`](crate::Mutex) has
/// changed.
///
/// A waiting thread enters the queue before the mutex is unlocked, so that no notification comes in
/// between. It holds the mutex again when it goes on. A thread goes on only because of a
/// notification. But another thread may have held the mutex before it, so the thread must check the
/// value again, as [`wait_while`](Condition::wait_while) does.
///
/// # Cancellation
/// Dropping a wait removes it from the queue; the mutex stays unlocked. If `notify_one` had
/// notified the dropped future, the notification goes on to the next waiting thread and is not
/// lost. This also holds while the notified future waits for the mutex.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::{Condition, Mutex};
/// use std::rc::Rc;
///
/// let taken = round_robin(async {
///     let stock = Rc::new((Mutex::new_local(0), Condition::new_local()));
///     let theirs = stock.clone();
///     let buyer = spawn_local(async move {
///         let (amount, changed) = &*theirs;
///         let mut amount = changed.wait_while(amount.lock().await, |amount| *amount < 3).await;
///         std::mem::take(&mut *amount)
///     });
///     for _ in 0..3 {
///         *stock.0.lock().await += 1;
///         stock.1.notify_one();
///     }
///     buyer.await.unwrap()
/// })?;
/// assert_eq!(taken, 3);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "Condvar")]
#[doc(alias = "Notify")]
pub struct Condition<M: Mode = Shared> {
    queue: WaitQueue<(), Notice, M>,
}

/// The payload of a waiter: `Waiting` until it is notified. Then it tells which function has
/// notified it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notice {
    Waiting,
    One,
    All,
}

impl Condition {
    constant! {
        /// A condition without a waiter.
        pub fn new() -> Self {
            Condition { queue: WaitQueue::shared((), 0) }
        }
    }
}

impl Condition<Local> {
    /// A condition that stays on its OS thread.
    pub fn new_local() -> Self {
        Condition::default()
    }
}

impl<M: Mode> Condition<M> {
    /// Unlocks the mutex and waits for a notification; then locks the mutex again.
    ///
    /// The first poll of the future, or its drop, unlocks the mutex.
    #[track_caller]
    pub fn wait<'a, T, N: Mode>(&self, guard: Guard<'a, T, N>) -> impl Future<Output = Guard<'a, T, N>> {
        self.wait_at(guard, Location::caller())
    }

    async fn wait_at<'a, T, N: Mode>(
        &self,
        guard: Guard<'a, T, N>,
        place: &'static Location<'static>,
    ) -> Guard<'a, T, N> {
        let mutex = guard.mutex;
        let notice = {
            let mut guard = Some(guard);
            let mut waiting = pin!(self.queue.wait_at::<Notified>(Notice::Waiting, place));
            // The first poll puts the thread into the queue. The mutex is unlocked after that.
            poll_fn(|cx| {
                let polled = waiting.as_mut().poll(cx);
                guard = None;
                polled
            })
            .await
        };
        let unused = PassOn { condition: self, notice };
        let guard = mutex.lock_at(place).await;
        mem::forget(unused);
        guard
    }

    /// Waits, with the mutex unlocked, while `condition` is true for the value. `condition` runs
    /// with the mutex locked, for the first time before any wait.
    #[track_caller]
    pub fn wait_while<'a, T, N: Mode>(
        &self,
        guard: Guard<'a, T, N>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> impl Future<Output = Guard<'a, T, N>> {
        let place = Location::caller();
        async move {
            let mut guard = guard;
            while condition(&mut guard) {
                guard = self.wait_at(guard, place).await;
            }
            guard
        }
    }

    /// Unlocks the mutex and waits for a notification, blocking this OS thread; then locks the
    /// mutex again.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn wait_blocking<'a, T, N: Mode>(
        &self,
        guard: BlockingGuard<Guard<'a, T, N>>,
    ) -> BlockingGuard<Guard<'a, T, N>> {
        let guard = wait_blocking(self.wait_at(guard.into_inner(), Location::caller()));
        guard.mutex.locked_by_os_thread();
        BlockingGuard::new(guard)
    }

    /// Lets the thread go on that has waited longest. If no thread waits, the notification is not
    /// kept for later.
    pub fn notify_one(&self) {
        self.queue.with(|_, queue| notify(queue, Notice::One));
    }

    /// Lets all threads go on that wait now. They get the mutex in the order in which they came.
    pub fn notify_all(&self) {
        self.queue.with(|_, queue| while notify(queue, Notice::All) {});
    }
}

/// Notifies the first waiter. `false` if there is none.
fn notify(queue: &mut Queue<'_, Notice>, notice: Notice) -> bool {
    let Some(first) = queue.front() else { return false };
    *first = notice;
    queue.grant();
    true
}

/// A notification that its waiter has not used yet, because the waiter does not hold the mutex.
/// Dropped, it goes on to the next waiter.
struct PassOn<'a, M: Mode> {
    condition: &'a Condition<M>,
    notice: Notice,
}

impl<M: Mode> Drop for PassOn<'_, M> {
    fn drop(&mut self) {
        if self.notice == Notice::One {
            self.condition.notify_one();
        }
    }
}

enum Notified {}

impl Role<(), Notice> for Notified {
    type Output = Notice;
    // The first poll must queue, because the mutex is unlocked after it. A spent budget would let
    // the first poll return before that.
    const IS_PAID: bool = false;

    fn attempt(_: &mut (), _: &mut Queue<'_, Notice>, _: &mut Notice) -> Option<Notice> {
        None
    }

    fn granted(notice: &mut Notice) -> Notice {
        *notice
    }

    fn abandoned(_: &mut (), queue: &mut Queue<'_, Notice>, notice: &mut Notice) {
        if *notice == Notice::One {
            notify(queue, Notice::One);
        }
    }
}

impl<M: Mode> Default for Condition<M> {
    /// A condition without a waiter.
    fn default() -> Self {
        Condition { queue: WaitQueue::new(()) }
    }
}

impl<M: Mode> fmt::Debug for Condition<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited = self.queue.with(|_, queue| !queue.is_empty());
        f.write_str(if waited { "Condition(waited for)" } else { "Condition" })
    }
}
