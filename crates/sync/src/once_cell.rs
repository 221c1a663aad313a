//! A cell with a value that is made once: [`OnceCell`], and [`Enter`], the role in which a thread
//! waits for the value or for its turn to make it.
//!
//! The programs of users call it. Vocabulary: the **maker** is the thread that has the turn and
//! runs the function which makes the value.

use crate::blocking::wait_blocking;
use crate::holder::{self, OwnerRecord};
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget, constant};
use std::convert::Infallible;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;

/// A cell with a value that is made once, by the first thread that needs it, with system calls if
/// need be. Other threads wait for it meanwhile.
///
/// If the maker fails, panics or is cancelled, the next waiting thread makes the value with its own
/// function.
///
/// # Cancellation
/// Dropping a `get_or_init` that waits removes it from the queue. Dropping a `get_or_init` that
/// makes the value gives the turn to the next waiter.
///
/// # Complexity
/// When the value is there, reading it is one load.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local, yield_now};
/// use selvedge::sync::OnceCell;
/// use std::rc::Rc;
///
/// round_robin(async {
///     let cell = Rc::new(OnceCell::new_local());
///     let theirs = cell.clone();
///     let other = spawn_local(async move { *theirs.get_or_init(|| async { 1 }).await });
///     let make = || async {
///         yield_now().await;
///         2
///     };
///     assert_eq!(*cell.get_or_init(make).await, 2);
///     assert_eq!(other.await.unwrap(), 2);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "Once")]
pub struct OnceCell<T, M: Mode = Shared> {
    value: OnceLock<T>,
    queue: WaitQueue<Making, Option<InitTurn>, M>,
    /// The maker, for observers.
    maker: OwnerRecord,
}

/// The progress of the value. Threads wait while it is [`Making::Now`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Making {
    NotYet,
    Now,
    Made,
}

/// The answer that a waiter is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InitTurn {
    Make,
    Made,
}

impl<T> OnceCell<T> {
    constant! {
        /// An empty cell.
        pub fn new() -> Self {
            OnceCell { value: OnceLock::new(), queue: WaitQueue::shared(Making::NotYet, 0), maker: OwnerRecord::new() }
        }
    }
}

impl<T> OnceCell<T, Local> {
    /// An empty cell that stays on its OS thread.
    pub fn new_local() -> Self {
        OnceCell::default()
    }
}

impl<T, M: Mode> OnceCell<T, M> {
    /// The value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value. The exclusive borrow shows that no other thread reaches it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// The value. Because the cell is moved here, no other thread reaches it.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Sets the value, if it has not been made and no thread is making it.
    ///
    /// # Errors
    /// Gives the value back.
    pub fn set(&self, value: T) -> Result<(), T> {
        let attempt =
            |making: &mut Making, queue: &mut Queue<'_, _>| Enter::attempt(making, queue, &mut None);
        match self.queue.with(attempt) {
            Some(InitTurn::Make) => {
                self.finish(value);
                Ok(())
            }
            _ => Err(value),
        }
    }

    /// The value. If it has not been made, this thread makes it, or waits for the thread that is
    /// making it.
    ///
    /// `make` must not ask for the value of the same cell, because it would wait for itself.
    #[track_caller]
    pub fn get_or_init<F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> impl Future<Output = &T> {
        let place = Location::caller();
        async move {
            let make = || async { Ok::<T, Infallible>(make().await) };
            match self.make(make, place).await {
                Ok(value) => value,
                Err(never) => match never {},
            }
        }
    }

    /// The same with a maker that can fail.
    ///
    /// # Errors
    /// The maker's own. The cell is then as before, and the next waiting thread makes the value.
    ///
    /// # Examples
    /// ```
    /// use selvedge::sync::{OnceCell, wait_blocking};
    ///
    /// let cell = OnceCell::<u32>::new();
    /// let refused = wait_blocking(cell.get_or_try_init(|| async { Err("not today") }));
    /// assert_eq!(refused, Err("not today"));
    /// assert_eq!(wait_blocking(cell.get_or_try_init(|| async { Ok::<_, &str>(3) })), Ok(&3));
    /// ```
    #[track_caller]
    pub fn get_or_try_init<E, F: Future<Output = Result<T, E>>>(
        &self,
        make: impl FnOnce() -> F,
    ) -> impl Future<Output = Result<&T, E>> {
        self.make(make, Location::caller())
    }

    /// The value, made by a function on this OS thread. The OS thread blocks while another thread
    /// is making it.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn get_or_init_blocking(&self, make: impl FnOnce() -> T) -> &T {
        wait_blocking(self.get_or_init(|| async { make() }))
    }

    async fn make<E, F: Future<Output = Result<T, E>>>(
        &self,
        make: impl FnOnce() -> F,
        place: &'static Location<'static>,
    ) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            budget::pay(1).await;
            return Ok(value);
        }
        let waiting = self.queue.wait_at::<Enter>(None, place);
        if self.maker.told("which makes the value", waiting).await == InitTurn::Make {
            self.maker.set(holder::thread());
            let unfinished = Unfinished(self);
            let value = make().await?;
            std::mem::forget(unfinished);
            self.finish(value);
        }
        Ok(self.value.get().expect("it has been made"))
    }

    /// Ends the turn of this thread with the value, and tells all waiters.
    fn finish(&self, value: T) {
        let set = self.value.set(value);
        debug_assert!(set.is_ok(), "one makes it at a time");
        self.queue.with(|making, queue| {
            *making = Making::Made;
            while let Some(turn) = queue.front() {
                *turn = Some(InitTurn::Made);
                queue.grant();
            }
        });
    }
}

/// The turn of a maker. Dropped without a value, it gives the turn to the next waiter.
struct Unfinished<'a, T, M: Mode>(&'a OnceCell<T, M>);

impl<T, M: Mode> Drop for Unfinished<'_, T, M> {
    fn drop(&mut self) {
        self.0.maker.set(None);
        self.0.queue.with(Enter::pass_on);
    }
}

enum Enter {}

impl Enter {
    fn pass_on(making: &mut Making, queue: &mut Queue<'_, Option<InitTurn>>) {
        match queue.front() {
            Some(turn) => {
                *turn = Some(InitTurn::Make);
                queue.grant();
            }
            None => *making = Making::NotYet,
        }
    }
}

impl Role<Making, Option<InitTurn>> for Enter {
    type Output = InitTurn;

    fn attempt(
        making: &mut Making,
        _: &mut Queue<'_, Option<InitTurn>>,
        _: &mut Option<InitTurn>,
    ) -> Option<InitTurn> {
        match making {
            Making::NotYet => {
                *making = Making::Now;
                Some(InitTurn::Make)
            }
            Making::Now => None,
            Making::Made => Some(InitTurn::Made),
        }
    }

    fn granted(turn: &mut Option<InitTurn>) -> InitTurn {
        turn.expect("a granted waiter has been told its turn")
    }

    fn abandoned(making: &mut Making, queue: &mut Queue<'_, Option<InitTurn>>, turn: &mut Option<InitTurn>) {
        if *turn == Some(InitTurn::Make) {
            Enter::pass_on(making, queue);
        }
    }
}

impl<T, M: Mode> Default for OnceCell<T, M> {
    /// An empty cell.
    fn default() -> Self {
        OnceCell {
            value: OnceLock::new(),
            queue: WaitQueue::new(Making::NotYet),
            maker: OwnerRecord::default(),
        }
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for OnceCell<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("OnceCell").field(value).finish(),
            None => f.write_str("OnceCell(empty)"),
        }
    }
}
