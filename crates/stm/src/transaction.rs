//! One attempt of a transaction, as its body sees it: [`Tx`].

use crate::condition::{AttemptConditions, ToWake, WakeCondition};
use crate::engine::{Engine, Versioned};
use crate::log::BranchMark;
use crate::session::{self, Free, Garbage, Session};
use crate::turn::CommitTurn;
use crate::var::Borrowed;
use crate::wait::Registration;
use selvedge_core::{indivisible, quietly};
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The result of an operation in a transaction. The body hands the error on with `?`.
pub type Tried<T> = Result<T, Stop>;

/// The attempt ends without effect: the transaction retries, or another one was in its way.
///
/// A body hands it on. A body that drops a [retry](Tx::retry) goes on as if it had not retried. A
/// body that drops a conflict and returns a value is run again all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the body of a transaction hands it on"]
pub struct Stop(StopReason);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    Retry,
    Conflict,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            StopReason::Retry => "the transaction waits for a variable to change",
            StopReason::Conflict => "another transaction was in the way",
        })
    }
}

impl std::error::Error for Stop {}

/// The end of a body that may give up with an error: see [`try_atomically`](crate::try_atomically).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort<X> {
    /// The attempt ends, as in every transaction.
    Stop(Stop),
    /// The transaction is given up with this error, and has no effect.
    Error(X),
}

impl<X> From<Stop> for Abort<X> {
    fn from(stop: Stop) -> Abort<X> {
        Abort::Stop(stop)
    }
}

impl<X: fmt::Display> fmt::Display for Abort<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Abort::Stop(stop) => stop.fmt(f),
            Abort::Error(error) => error.fmt(f),
        }
    }
}

impl<X: std::error::Error> std::error::Error for Abort<X> {}

/// What a branch of [`Tx::or_else`] may end with: [`Stop`] or [`Abort`].
pub trait Ending: sealed::Ending {}

mod sealed {
    #[expect(unnameable_types, reason = "the two errors of bodies are the only ones")]
    pub trait Ending {
        /// Whether it is a retry.
        fn is_retry(&self) -> bool;
    }
}

impl Ending for Stop {}

impl sealed::Ending for Stop {
    fn is_retry(&self) -> bool {
        self.0 == StopReason::Retry
    }
}

impl<X> Ending for Abort<X> {}

impl<X> sealed::Ending for Abort<X> {
    fn is_retry(&self) -> bool {
        matches!(self, Abort::Stop(stop) if stop.is_retry())
    }
}

/// One attempt of a transaction. The body of the transaction has it, and gives it to the operations
/// on variables.
///
/// A body is a plain closure. It may run several times, so a side effect belongs into
/// [`after_commit`](Tx::after_commit). It cannot await, because it is not `async`:
/// ```compile_fail
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
/// ```compile_fail
/// use selvedge::stm::{TVar, atomically_blocking};
///
/// let var = TVar::new("a value".to_string());
/// let mut kept: &String;
/// atomically_blocking(|tx| {
///     kept = var.read(tx)?;
///     Ok(())
/// });
/// ```
///
/// A panic of the body ends the attempt without effect, and goes on to the caller. The body has
/// seen a state that existed, so another transaction is not the cause of the panic; for the engine
/// [`Figure3`](crate::Figure3) that is checked first. If a branch of [`or_else`](Tx::or_else) or a
/// transaction within the body panics, and the body catches the panic, then that part has no
/// effect, and the body goes on.
///
/// # Paper
/// [HMP05 §5]: the log of a transaction.
///
/// # Differences
/// 1. `or_else`, nested transactions, typed aborts and the two hooks are not in the paper.
pub struct Tx<E: Engine = Versioned> {
    state: RefCell<AttemptState<E>>,
}

type BoxedHook = Box<dyn FnOnce()>;

/// An attempt from its begin to its end. Dropped before its end, it has no effect.
struct AttemptState<E: Engine> {
    /// Dropped before the session is unpinned. With it the locks of the engine and of a turn go.
    attempt: Option<E::Attempt>,
    /// None at the end.
    session: Option<Box<Session>>,
    /// A read has failed: the attempt cannot commit.
    has_conflict: bool,
    /// None as long as the body has given no hook.
    hooks: Option<Box<Hooks>>,
    /// The predicates that did not hold.
    conditions: Option<Box<AttemptConditions>>,
    /// A predicate runs.
    in_predicate: bool,
}

#[derive(Default)]
struct Hooks {
    after_commit: Vec<BoxedHook>,
    on_abort: Vec<BoxedHook>,
    /// Those of `on_abort` that belong to branches without effect.
    undone: Vec<BoxedHook>,
}

impl Hooks {
    #[cold]
    fn run_after_commit(mut self) {
        self.undone.drain(..).for_each(quietly);
        self.on_abort.clear();
        self.after_commit.drain(..).for_each(|hook| hook());
    }

    #[cold]
    fn run_after_abort(mut self) {
        self.undone.drain(..).chain(self.on_abort.drain(..)).for_each(quietly);
    }
}

/// How an attempt ended.
pub(crate) enum Attempted<R, X> {
    Committed(R),
    Aborted(X),
    Conflict,
    Retry(Registration),
}

/// Runs the body once. With a turn it meets no conflict, unless it retries and a variable changes
/// after the turn.
pub(crate) fn attempt<E: Engine, R, X>(
    body: &mut impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
    turn: Option<Box<CommitTurn>>,
) -> Attempted<R, X> {
    let tx = Tx { state: RefCell::new(AttemptState::begin(turn)) };
    let result = match E::OPAQUE {
        true => Ok(indivisible(|| body(&tx))),
        false => catch_unwind(AssertUnwindSafe(|| indivisible(|| body(&tx)))),
    };
    let mut state = tx.state.into_inner();
    let result = match result {
        Ok(result) => result,
        Err(panic) if state.holds() => {
            drop(state);
            resume_unwind(panic);
        }
        Err(panic) => {
            quietly(|| drop(panic));
            return Attempted::Conflict;
        }
    };
    match result {
        _ if state.has_conflict => Attempted::Conflict,
        Ok(result) => match state.commit() {
            true => Attempted::Committed(result),
            false => Attempted::Conflict,
        },
        Err(Abort::Error(_)) if !state.holds() => Attempted::Conflict,
        Err(Abort::Error(error)) => Attempted::Aborted(error),
        Err(Abort::Stop(Stop(StopReason::Conflict))) => Attempted::Conflict,
        Err(Abort::Stop(Stop(StopReason::Retry))) => {
            // The registration needs variables that are unlocked, and compares them by itself.
            state.attempt = None;
            let conditions = state.conditions.take();
            match Registration::new::<E>(&mut state.session().log, conditions) {
                Some(registration) => Attempted::Retry(registration),
                None => Attempted::Conflict,
            }
        }
    }
}

impl<E: Engine> AttemptState<E> {
    #[inline(always)]
    fn begin(turn: Option<Box<CommitTurn>>) -> AttemptState<E> {
        let mut session = session::take();
        session.pin();
        AttemptState {
            attempt: Some(E::begin(turn)),
            session: Some(session),
            has_conflict: false,
            hooks: None,
            conditions: None,
            in_predicate: false,
        }
    }

    #[inline(always)]
    fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("the attempt has not ended")
    }

    /// Whether the attempt has seen one moment, so that a panic or an error of its body counts.
    #[inline(always)]
    fn holds(&mut self) -> bool {
        let attempt = self.attempt.as_mut().expect("the attempt has not ended");
        let session = self.session.as_ref().expect("the attempt has not ended");
        !self.has_conflict && E::holds(attempt, &session.log)
    }

    /// Publishes the writes, wakes the transactions that wait for them, and runs the hooks. False
    /// if another transaction is in the way.
    #[inline]
    fn commit(&mut self) -> bool {
        let session = self.session.as_mut().expect("the attempt has not ended");
        let attempt = self.attempt.as_mut().expect("the attempt has not ended");
        let Ok(woken) = E::commit(attempt, session) else { return false };
        drop(self.end(true));
        if !woken.is_empty() {
            ToWake::wake_all::<E>(woken);
        }
        if let Some(hooks) = self.hooks.take() {
            hooks.run_after_commit();
        }
        true
    }

    /// Gives the session back, and the nodes that were not published.
    #[inline]
    fn end(&mut self, published: bool) -> Vec<Garbage> {
        let Some(mut session) = self.session.take() else { return Vec::new() };
        let nodes = session.log.clear(published);
        self.attempt = None;
        session.unpin();
        session::put(session);
        nodes
    }
}

impl<E: Engine> Drop for AttemptState<E> {
    #[inline]
    fn drop(&mut self) {
        if self.session.is_some() {
            drop(self.end(false));
            if let Some(hooks) = self.hooks.take() {
                hooks.run_after_abort();
            }
        }
    }
}

/// A part of a transaction that may be undone. If it is dropped before its end, because its body
/// has panicked, it is undone.
struct Branch<'tx, E: Engine> {
    tx: &'tx Tx<E>,
    /// None at the end.
    log: Option<BranchMark>,
    after_commit: usize,
    on_abort: usize,
}

impl<'tx, E: Engine> Branch<'tx, E> {
    fn begin(tx: &'tx Tx<E>) -> Branch<'tx, E> {
        let state = &mut *tx.state.borrow_mut();
        let counts = |hooks: &Hooks| (hooks.after_commit.len(), hooks.on_abort.len());
        let (after_commit, on_abort) = state.hooks.as_deref().map_or((0, 0), counts);
        let log = Some(state.session().log.begin_branch());
        Branch { tx, log, after_commit, on_abort }
    }

    fn end(mut self, kept: bool) {
        let undone = self.end_log(kept);
        // Their captures are values of the program, so they are dropped without a borrow.
        drop(undone);
    }

    /// The hooks that belong to the branch, if it is not kept.
    fn end_log(&mut self, kept: bool) -> Vec<BoxedHook> {
        let Some(mark) = self.log.take() else { return Vec::new() };
        let state = &mut *self.tx.state.borrow_mut();
        state.session().log.end_branch(mark, kept);
        if kept {
            return Vec::new();
        }
        let Some(hooks) = state.hooks.as_deref_mut() else { return Vec::new() };
        hooks.undone.extend(hooks.on_abort.drain(self.on_abort..));
        hooks.after_commit.split_off(self.after_commit)
    }
}

impl<E: Engine> Drop for Branch<'_, E> {
    fn drop(&mut self) {
        if self.log.is_some() {
            let undone = self.end_log(false);
            quietly(|| drop(undone));
        }
    }
}

impl<E: Engine> Tx<E> {
    /// The value of a variable, as a pointer to its node or as the bits of a word.
    #[inline(always)]
    pub(crate) fn load(&self, inner: Borrowed<'_>) -> Tried<*mut ()> {
        let state = &mut *self.state.borrow_mut();
        if state.has_conflict {
            return Err(Stop(StopReason::Conflict));
        }
        let log = &mut state.session.as_mut().expect("the attempt has not ended").log;
        if let Some(at) = log.find(inner.pointer()) {
            return Ok(log.writes[at].value);
        }
        let attempt = state.attempt.as_mut().expect("the attempt has not ended");
        E::read(attempt, log, inner).map_err(|_| {
            state.has_conflict = true;
            Stop(StopReason::Conflict)
        })
    }

    #[inline(always)]
    pub(crate) fn store(&self, inner: Borrowed<'_>, value: *mut (), free: Option<Free>) {
        self.state.borrow_mut().session().log.write(inner.pointer(), value, free);
    }

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
    /// One registration for each variable read, and as many steps to leave as others wait for the
    /// same variable. A commit of variables for which no transaction waits does nothing for this.
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
    /// # Ok::<(), selvedge::Failure>(())
    /// ```
    pub fn retry<R>(&self) -> Tried<R> {
        Err(Stop(StopReason::Retry))
    }

    /// Goes on if the condition holds; else [retries](Tx::retry).
    ///
    /// # Errors
    /// If the condition does not hold; the body hands the error on.
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
    /// Two allocations if the predicate does not hold, and those of a retry. A commit evaluates
    /// each predicate that is registered in its variables, without a lock. While it does so, a
    /// registration in the same variable or the end of one copies the list of its predicates.
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
    pub fn wait_for(&self, predicate: impl Fn(&Tx<E>) -> Tried<bool> + Send + Sync + 'static) -> Tried<()> {
        let Some(mark) = PredicateMark::begin(self) else {
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
        let log = &state.session.as_ref().expect("the attempt has not ended").log;
        if log.writes.is_empty() {
            let conditions = state.conditions.get_or_insert_with(|| Box::new(AttemptConditions::new()));
            conditions.add(from..log.reads.len(), &log.reads, predicate);
        }
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
    pub fn or_else<R, X: Ending>(
        &self,
        first: impl FnOnce(&Tx<E>) -> Result<R, X>,
        second: impl FnOnce(&Tx<E>) -> Result<R, X>,
    ) -> Result<R, X> {
        let branch = Branch::begin(self);
        let result = first(self);
        let retries = matches!(&result, Err(ending) if ending.is_retry());
        branch.end(!retries);
        match retries {
            true => second(self),
            false => result,
        }
    }

    /// A transaction within this one: it becomes a part of this one, and has its effect when this
    /// one commits. If it retries, this one retries.
    ///
    /// # Errors
    /// Those of the body.
    pub fn atomically<R>(&self, body: impl FnOnce(&Tx<E>) -> Tried<R>) -> Tried<R> {
        let branch = Branch::begin(self);
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
    pub fn try_atomically<R, X>(
        &self,
        body: impl FnOnce(&Tx<E>) -> Result<R, Abort<X>>,
    ) -> Tried<Result<R, X>> {
        let branch = Branch::begin(self);
        let result = body(self);
        branch.end(!matches!(result, Err(Abort::Error(_))));
        match result {
            Ok(result) => Ok(Ok(result)),
            Err(Abort::Error(error)) => Ok(Err(error)),
            Err(Abort::Stop(stop)) => Err(stop),
        }
    }

    /// Has `hook` run when this attempt has committed, in the same thread and before the
    /// transaction returns. Several run in the order in which they were given.
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
        self.state.borrow_mut().hooks.get_or_insert_default().after_commit.push(Box::new(hook));
    }

    /// Has `hook` run when this attempt ends without effect: because of a conflict, a retry, an
    /// error or a panic. It runs before the transaction runs again, waits or returns.
    ///
    /// A hook of a branch that was undone runs at the end of the attempt, however the attempt ends.
    /// A panic of a hook is reported and goes no further.
    ///
    /// # Complexity
    /// As [`after_commit`](Tx::after_commit).
    pub fn on_abort(&self, hook: impl FnOnce() + 'static) {
        self.state.borrow_mut().hooks.get_or_insert_default().on_abort.push(Box::new(hook));
    }
}

/// The part of an attempt in which a predicate runs.
struct PredicateMark<'tx, E: Engine> {
    tx: &'tx Tx<E>,
    /// The number of reads before the predicate.
    from: usize,
}

impl<'tx, E: Engine> PredicateMark<'tx, E> {
    /// `None` within another predicate.
    fn begin(tx: &'tx Tx<E>) -> Option<PredicateMark<'tx, E>> {
        let state = &mut *tx.state.borrow_mut();
        if state.in_predicate {
            return None;
        }
        state.in_predicate = true;
        let log = &mut state.session().log;
        log.fresh = log.reads.len();
        Some(PredicateMark { tx, from: log.fresh })
    }
}

impl<E: Engine> Drop for PredicateMark<'_, E> {
    fn drop(&mut self) {
        let state = &mut *self.tx.state.borrow_mut();
        state.in_predicate = false;
        let log = &mut state.session().log;
        log.fresh = log.reads.len();
    }
}

/// The result of a predicate in a commit.
pub(crate) enum Evaluated {
    /// The transaction goes on waiting.
    Stays,
    Wakes,
    /// As `Wakes`; and this attempt can evaluate no more predicates.
    Spent,
}

/// What a commit does with the predicates of transactions that wait: see `condition.rs`.
impl<E: Engine> Tx<E> {
    /// An attempt that evaluates predicates, and does not commit.
    pub(crate) fn for_predicates() -> Tx<E> {
        let mut state = AttemptState::begin(None);
        state.in_predicate = true;
        Tx { state: RefCell::new(state) }
    }

    /// Evaluates a predicate, whatever this attempt has evaluated before.
    ///
    /// # Safety
    /// As for [`WakeCondition::holds`].
    #[inline]
    pub(crate) unsafe fn evaluate(&self, condition: &WakeCondition) -> Evaluated {
        self.state.borrow_mut().session().log.reads.clear();
        // SAFETY: the caller's contract.
        let result = unsafe { condition.holds(self) };
        let state = &mut *self.state.borrow_mut();
        let log = &state.session.as_ref().expect("the attempt has not ended").log;
        if state.has_conflict || !log.writes.is_empty() {
            return Evaluated::Spent;
        }
        match result {
            Ok(false) | Err(Stop(StopReason::Retry))
                if log.reads.iter().all(|read| condition.watches(read.inner)) =>
            {
                Evaluated::Stays
            }
            _ => Evaluated::Wakes,
        }
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
