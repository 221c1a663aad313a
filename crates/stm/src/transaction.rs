//! What the body of a transaction calls: [`Tx`].

use crate::attempt::{AttemptState, Branch, PredicateMark};
use crate::condition::Predicate;
use crate::engine::{Engine, Versioned};
use crate::stop::{Abort, Ending, Stop, StopReason, Tried};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// One attempt of a transaction. The body of the transaction has it, and gives it to the operations
/// on variables.
///
/// A body is a plain closure. It may run several times, so a side effect belongs into
/// [`after_commit`](Tx::after_commit). It cannot await, because it is not `async`:
/// ```compile_fail,E0728
/// use selvedge::stm::{TWord, atomically};
///
/// let var = TWord::new(1_u8);
/// # async {
/// atomically(move |tx| {
///     selvedge::yield_now().await;
///     var.read(tx)
/// })
/// .await;
/// # };
/// ```
/// A body must not wait for another OS thread either, by a mutex, a channel or the like. After many
/// conflicts the transaction runs in a [turn](crate::atomically()), in which it has locked the
/// variables that it has read. If the body then waits for a `std::sync::Mutex`, and the OS thread
/// that holds the mutex commits to one of these variables, both wait for ever. A mutex is safe in a
/// body if no code runs a transaction while it holds the mutex. In direct style, a wait in a body
/// panics. So does a transaction that is begun within a body by a function such as
/// [`atomically`](crate::atomically()): [`Tx::atomically`] nests them.
///
/// References to values end with the attempt:
/// ```compile_fail,E0521
/// use selvedge::stm::{TVar, atomically_blocking};
///
/// let var = TVar::new("a value".to_string());
/// let empty = String::new();
/// let mut kept = &empty;
/// atomically_blocking(|tx| {
///     kept = var.read(tx)?;
///     Ok(())
/// });
/// ```
///
/// A panic of the body ends the attempt without effect, and goes on to the caller. The body has
/// seen a state that existed, so another transaction is not the cause of the panic. If a branch of
/// [`or_else`](Tx::or_else) or a transaction within the body panics, and the body catches the
/// panic, then that part has no effect, and the body goes on.
///
/// # Paper
/// [HMP05 §5]: the log of a transaction.
///
/// # Differences
/// 1. `or_else`, `or_else_all`, nested transactions, typed aborts and the two hooks are not in the
///    paper.
pub struct Tx<E: Engine = Versioned> {
    /// No borrow lasts while code of the program runs.
    pub(crate) state: RefCell<AttemptState<E>>,
}

impl<E: Engine> Tx<E> {
    /// Ends the attempt without effect. The transaction waits until another one has written a
    /// variable that this one has read, and then runs again.
    ///
    /// While it waits it is a parked thread: it blocks no OS thread, unless it was begun with
    /// [`atomically_blocking`](crate::atomically_blocking).
    ///
    /// # Errors
    /// Always; the body hands the error on.
    ///
    /// # Panics
    /// The transaction panics if it retries and has read no variable, because no commit could ever
    /// wake it.
    ///
    /// # Paper
    /// [HMP05 §5]: `retry`.
    ///
    /// # Differences
    /// 1. A waiter registers in one variable after the other, and compares each version; the paper
    ///    takes the locks of all of them first.
    ///
    /// # Complexity
    /// One registration for each variable read, which ends in constant time; with
    /// [predicates](Tx::wait_for), in as many steps as others wait for the variable with
    /// predicates. A wait for one variable allocates nothing, if the OS thread and the variable
    /// have had one before. A commit of variables for which no transaction waits does nothing for
    /// this.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TWord, atomically};
    ///
    /// selvedge::run(async {
    ///     let stock = TWord::new(0_u32);
    ///     let shop = stock.clone();
    ///     let customer = selvedge::spawn(atomically(move |tx| match shop.read(tx)? {
    ///         0 => tx.retry(),
    ///         n => Ok(shop.write(tx, n - 1)),
    ///     }));
    ///     selvedge::yield_now().await;
    ///     let delivery = stock.clone();
    ///     atomically(move |tx| delivery.modify(tx, |n| n + 2)).await;
    ///     customer.await.unwrap();
    ///     assert_eq!(stock.read_now(), 1);
    /// })?;
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn retry<R>(&self) -> Tried<R> {
        Err(Stop(StopReason::Retry))
    }

    /// Goes on if the condition holds; else [retries](Tx::retry).
    ///
    /// # Errors
    /// If the condition does not hold; the body hands the error on.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn check(&self, condition: bool) -> Tried<()> {
        match condition {
            true => Ok(()),
            false => self.retry(),
        }
    }

    /// Goes on if the predicate holds; else ends the attempt without effect, as a
    /// [retry](Tx::retry) does, and the transaction waits until the predicate holds.
    ///
    /// The difference from `check` lies in the wake-up. Each commit that writes a variable that the
    /// predicate has read evaluates the predicate on the new values, and wakes the transaction only
    /// if the predicate holds. So a transaction that waits for a number to reach 100 runs once, and
    /// not at each step to 100. The transaction then runs its whole body again, because another one
    /// may have been faster. A variable that the transaction has read outside of predicates wakes
    /// it at each write.
    ///
    /// The predicate runs on the OS thread of the transaction that commits, so it should be short,
    /// and should do nothing but read. It may read different variables at different times. If it
    /// retries, it does not hold.
    ///
    /// # When the transaction runs all the same
    /// - The transaction has written a variable before or in the predicate. The commits do not know
    ///   these writes, so each write to a variable of the predicate wakes the transaction.
    /// - The predicate reads a variable that it did not read before.
    /// - A third transaction is in the way while the predicate is evaluated.
    /// - The predicate panics in the transaction that commits. The panic is reported and harms only
    ///   the transaction that waits, which runs the predicate again.
    ///
    /// # Errors
    /// If the predicate does not hold; the body hands the error on. And those of the predicate.
    ///
    /// # Complexity
    /// If the predicate does not hold, several allocations: 13 for one that has read two variables
    /// without other predicates. A commit evaluates each predicate that is registered in its
    /// variables, without a lock. While it does so, a registration in the same variable or the end
    /// of one copies the list of its predicates.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TWord, atomically};
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
    ///
    /// selvedge::run_local(async {
    ///     let stock = TWord::new(0_u32);
    ///     let (shop, runs) = (stock.clone(), Arc::new(AtomicU32::new(0)));
    ///     let counts = runs.clone();
    ///     let customer = selvedge::spawn(atomically(move |tx| {
    ///         counts.fetch_add(1, Relaxed);
    ///         let shown = shop.clone();
    ///         tx.wait_for(move |tx| Ok(shown.read(tx)? >= 100))?;
    ///         shop.modify(tx, |n| n - 100)
    ///     }));
    ///     for _ in 0..100 {
    ///         selvedge::yield_now().await;
    ///         atomically(|tx| stock.modify(tx, |n| n + 1)).await;
    ///     }
    ///     customer.await.unwrap();
    ///     assert_eq!((stock.read_now(), runs.load(Relaxed)), (0, 2));
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn wait_for(&self, predicate: impl Fn(&Tx<E>) -> Tried<bool> + Send + Sync + 'static) -> Tried<()> {
        let Some(mark) = PredicateMark::begin(&self.state) else {
            let holds = predicate(self)?;
            return self.check(holds);
        };
        let result = predicate(self);
        let from = mark.from;
        drop(mark);
        match result {
            Ok(true) => return Ok(()),
            Ok(false) | Err(Stop(StopReason::Retry)) => {}
            Err(conflict) => return Err(conflict),
        }
        let state = &mut *self.state.borrow_mut();
        state.add_condition(from, PredicateOf::<_, E>(predicate, PhantomData));
        Err(Stop(StopReason::Retry))
    }

    /// The value that an operation of the form `try_` has given; retries if it has given none.
    #[inline]
    pub(crate) fn some_or_retry<T>(&self, value: Option<T>) -> Tried<T> {
        match value {
            Some(value) => Ok(value),
            None => self.retry(),
        }
    }

    /// Runs `first`; if it retries, undoes its writes and runs `second` instead. If that retries
    /// too, the transaction waits for the variables that either of them has read.
    ///
    /// # Errors
    /// Those of the branch that ran last.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TWord, atomically_blocking};
    ///
    /// let (left, right) = (TWord::new(0_u8), TWord::new(7_u8));
    /// let taken = atomically_blocking(|tx| {
    ///     let take = |from: &TWord<u8>| {
    ///         let n = from.swap(tx, 0)?;
    ///         tx.check(n > 0).map(|()| n)
    ///     };
    ///     tx.or_else(|_| take(&left), |_| take(&right))
    /// });
    /// assert_eq!((taken, right.read_now()), (7, 0));
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn or_else<R, X: Ending>(
        &self,
        first: impl FnOnce(&Tx<E>) -> Result<R, X>,
        second: impl FnOnce(&Tx<E>) -> Result<R, X>,
    ) -> Result<R, X> {
        match self.run_branch(first) {
            (_, true) => second(self),
            (result, false) => result,
        }
    }

    /// Runs the alternatives from first to last until one of them does not retry: an
    /// [`or_else`](Tx::or_else) over a list of any length. The writes of an alternative that
    /// retries are undone before the next one runs. If all retry, the transaction waits for the
    /// variables that any of them has read.
    ///
    /// The list `[a, b, c]` does the same as `tx.or_else(a, |tx| tx.or_else(b, c))`. An empty list
    /// [retries](Tx::retry). Alternatives of different types go into the list as
    /// `&dyn Fn(&Tx) -> Tried<R>` or as boxes. The iterator makes an alternative when the one
    /// before has retried, or when that one is about to begin; those behind the first that does not
    /// retry are not run.
    ///
    /// # Errors
    /// Those of the alternative that ran last.
    ///
    /// # Complexity
    /// As nested [`or_else`](Tx::or_else)s of the same number, without their depth of the stack.
    /// Nothing is allocated for the list.
    ///
    /// # Examples
    /// The first job of the first queue that has one:
    /// ```
    /// use selvedge::stm::{TQueue, Tx, atomically_blocking};
    ///
    /// let queues: Vec<TQueue<&str>> = (0..4).map(|_| TQueue::new()).collect();
    /// atomically_blocking(|tx| queues[2].push(tx, "sweep"));
    /// let job = atomically_blocking(|tx| {
    ///     tx.or_else_all(queues.iter().map(|queue| |tx: &Tx| queue.pop(tx)))
    /// });
    /// assert_eq!(job, "sweep");
    /// ```
    #[doc(alias = "asum")]
    #[doc(alias = "select")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn or_else_all<R, X: Ending, F>(&self, alternatives: impl IntoIterator<Item = F>) -> Result<R, X>
    where
        F: FnOnce(&Tx<E>) -> Result<R, X>,
    {
        let mut alternatives = alternatives.into_iter();
        let Some(mut next) = alternatives.next() else { return Err(Stop(StopReason::Retry).into()) };
        for after in alternatives {
            let (result, retries) = self.run_branch(next);
            if !retries {
                return result;
            }
            next = after;
        }
        next(self)
    }

    /// Runs a branch, and undoes its writes if it retries. Whether it does is the second part.
    fn run_branch<R, X: Ending>(&self, branch: impl FnOnce(&Tx<E>) -> Result<R, X>) -> (Result<R, X>, bool) {
        let mark = Branch::begin(&self.state);
        let result = branch(self);
        let retries = matches!(&result, Err(ending) if ending.is_retry());
        mark.end(!retries);
        (result, retries)
    }

    /// A transaction within this one: it becomes a part of this one, and has its effect when this
    /// one commits. If it retries, this one retries.
    ///
    /// # Errors
    /// Those of the body.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn atomically<R>(&self, body: impl FnOnce(&Tx<E>) -> Tried<R>) -> Tried<R> {
        let branch = Branch::begin(&self.state);
        let result = body(self);
        branch.end(true);
        result
    }

    /// A transaction within this one that may be given up: an error of its own undoes its writes,
    /// and this one goes on.
    ///
    /// # Errors
    /// The outer ones end the attempt, as those of a read do. The inner ones are the body's own.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{Abort, TWord, atomically_blocking};
    ///
    /// let var = TWord::new(1_u8);
    /// let result = atomically_blocking(|tx| {
    ///     tx.try_atomically(|tx| {
    ///         var.write(tx, 2);
    ///         Err::<(), _>(Abort::Error("no"))
    ///     })
    /// });
    /// assert_eq!((result, var.read_now()), (Err("no"), 1));
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_atomically<R, X>(
        &self,
        body: impl FnOnce(&Tx<E>) -> Result<R, Abort<X>>,
    ) -> Tried<Result<R, X>> {
        let branch = Branch::begin(&self.state);
        let result = body(self);
        branch.end(!matches!(result, Err(Abort::Error(_))));
        match result {
            Ok(result) => Ok(Ok(result)),
            Err(Abort::Error(error)) => Ok(Err(error)),
            Err(Abort::Stop(stop)) => Err(stop),
        }
    }

    /// Adds a hook that runs when this attempt has committed, in the same thread and before the
    /// transaction returns. Several hooks run in the order in which they were given.
    ///
    /// A hook of a branch that was undone does not run. A panic of a hook goes on to the caller,
    /// and the hooks after it do not run; the transaction has its effect all the same.
    ///
    /// # Complexity
    /// One allocation for a hook that has captured something, and two for the first hook.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TWord, atomically_blocking};
    ///
    /// let orders = TWord::new(0_u64);
    /// atomically_blocking(|tx| {
    ///     tx.after_commit(|| println!("ordered"));
    ///     orders.modify(tx, |n| n + 1)
    /// });
    /// ```
    pub fn after_commit(&self, hook: impl FnOnce() + 'static) {
        let hook = Box::new(hook);
        self.state.borrow_mut().extras().after_commit.push(hook);
    }

    /// Adds a hook that runs when this attempt ends without effect: because of a conflict, a retry,
    /// an error or a panic. It runs before the transaction runs again, waits or returns.
    ///
    /// A hook of a branch that was undone runs at the end of the attempt, however the attempt ends.
    /// A panic of a hook is reported and goes no further.
    ///
    /// # Complexity
    /// As [`after_commit`](Tx::after_commit).
    pub fn on_abort(&self, hook: impl FnOnce() + 'static) {
        let hook = Box::new(hook);
        self.state.borrow_mut().extras().on_abort.push(hook);
    }
}

/// A predicate for the transactions of an engine.
struct PredicateOf<F, E>(F, PhantomData<fn() -> E>);

impl<E: Engine, F: Fn(&Tx<E>) -> Tried<bool> + Send + Sync> Predicate for PredicateOf<F, E> {
    unsafe fn holds(&self, tx: NonNull<()>) -> Tried<bool> {
        // SAFETY: the caller's contract.
        (self.0)(unsafe { tx.cast::<Tx<E>>().as_ref() })
    }
}

impl<E: Engine> fmt::Debug for Tx<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut state = self.state.borrow_mut();
        let log = &state.session().log;
        let (reads, writes) = (log.reads.len(), log.writes.len());
        f.debug_struct("Tx").field("reads", &reads).field("writes", &writes).finish_non_exhaustive()
    }
}
