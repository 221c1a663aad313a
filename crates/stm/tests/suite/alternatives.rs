//! A list of alternatives does what nested `or_else`s do: the same effect, hooks and reads, and a
//! wait for the same variables.

use proptest::prelude::*;
use selvedge_stm::{Abort, Engine, TMVar, TWord, Tried, Tx, atomically_under, try_atomically_under};
use selvedge_sync::wait_blocking;
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Debug, Clone)]
enum Op {
    Read(usize),
    Add(usize, u64),
    Hook(u8),
    /// Retries if the variable is even.
    RetryIfEven(usize),
    Retry,
    Fail,
}

const VARS: usize = 6;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..VARS).prop_map(Op::Read),
        3 => (0..VARS, 0..9_u64).prop_map(|(var, n)| Op::Add(var, n)),
        2 => any::<u8>().prop_map(Op::Hook),
        2 => (0..VARS).prop_map(Op::RetryIfEven),
        2 => Just(Op::Retry),
        1 => Just(Op::Fail),
    ]
}

/// The alternatives of a transaction, each a list of operations.
type Alternatives = Vec<Vec<Op>>;

/// The variables and the hooks that have run, for one of the two forms of the transaction.
struct World<E: Engine> {
    vars: Vec<TWord<u64, E>>,
    hooks: Rc<RefCell<Vec<u8>>>,
}

type Ended = Result<(), Abort<()>>;

impl<E: Engine> World<E> {
    fn new() -> World<E> {
        World { vars: (0..VARS as u64).map(TWord::with_engine).collect(), hooks: Rc::default() }
    }

    fn run(&self, tx: &Tx<E>, ops: &[Op]) -> Ended {
        for op in ops {
            match *op {
                Op::Read(var) => {
                    self.vars[var].read(tx)?;
                }
                Op::Add(var, n) => self.vars[var].modify(tx, |old| old + n)?,
                Op::Hook(mark) => {
                    let hooks = self.hooks.clone();
                    tx.after_commit(move || hooks.borrow_mut().push(mark));
                }
                Op::RetryIfEven(var) => tx.check(self.vars[var].read(tx)? % 2 == 1)?,
                Op::Retry => tx.retry()?,
                Op::Fail => return Err(Abort::Error(())),
            }
        }
        Ok(())
    }

    fn listed(&self, tx: &Tx<E>, all: &Alternatives) -> Ended {
        tx.or_else_all(all.iter().map(|ops| |tx: &Tx<E>| self.run(tx, ops)))
    }

    fn nested(&self, tx: &Tx<E>, all: &[Vec<Op>]) -> Ended {
        match all {
            [] => Ok(tx.retry()?),
            [last] => self.run(tx, last),
            [first, others @ ..] => tx.or_else(|tx| self.run(tx, first), |tx| self.nested(tx, others)),
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls a transaction once. If it waits, tells which of the variables wakes it.
fn woken_by<E: Engine>(
    world: &World<E>,
    body: impl Fn(&Tx<E>) -> Ended,
) -> Result<Result<(), ()>, [bool; VARS]> {
    let mut by = [false; VARS];
    for (at, var) in world.vars.iter().enumerate() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut transaction = pin!(try_atomically_under::<E, _, _>(|tx| {
            // A retry without a read panics, and what is read before the list is the same in both.
            world.vars[0].read(tx)?;
            body(tx)
        }));
        match transaction.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return Ok(result),
            Poll::Pending => var.write_now(var.read_now()),
        }
        by[at] = woken.0.load(Ordering::SeqCst);
    }
    Err(by)
}

fn list_is_nest<E: Engine>(programs: &[Alternatives]) {
    let (one, other) = (World::<E>::new(), World::<E>::new());
    for all in programs {
        // The body goes on behind a retry that it drops, so the log of the attempt can be compared.
        let logs = [false, true].map(|is_listed| {
            wait_blocking(try_atomically_under::<E, (), String>(|tx| {
                let ended = match is_listed {
                    true => one.listed(tx, all),
                    false => other.nested(tx, all),
                };
                Err(Abort::Error(format!("{ended:?} {tx:?}")))
            }))
        });
        assert_eq!(logs[0], logs[1]);
        let listed = woken_by(&one, |tx| one.listed(tx, all));
        let nested = woken_by(&other, |tx| other.nested(tx, all));
        assert_eq!(listed, nested);
        assert_eq!(one.hooks, other.hooks);
        let values = |world: &World<E>| world.vars.iter().map(TWord::read_now).collect::<Vec<u64>>();
        assert_eq!(values(&one), values(&other));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_list_does_what_nested_branches_do(
        programs in prop::collection::vec(prop::collection::vec(prop::collection::vec(op(), 0..6), 0..6), 1..6),
    ) {
        in_each_turn!(list_is_nest(&programs));
    }
}

/// Whichever of the variables is written, the transaction goes on with its alternative.
fn a_list_waits_for_the_reads_of_all<E: Engine>() {
    const MANY: usize = 40;
    for at in 0..MANY {
        let places: Vec<TMVar<usize, E>> = (0..MANY).map(|_| TMVar::with_engine(None)).collect();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut taken = pin!(atomically_under::<E, _>(|tx| {
            tx.or_else_all(places.iter().map(|place| |tx: &Tx<E>| place.take(tx)))
        }));
        assert_eq!(taken.as_mut().poll(&mut context), Poll::Pending);
        assert!(!woken.0.load(Ordering::SeqCst));
        wait_blocking(atomically_under::<E, _>(|tx| places[at].put(tx, at)));
        assert!(woken.0.load(Ordering::SeqCst), "the write of {at} has not woken the transaction");
        assert_eq!(taken.as_mut().poll(&mut context), Poll::Ready(at));
    }
}

fn alternatives_behind_the_one_that_ends_do_not_run<E: Engine>() {
    let (made, var) = (RefCell::new(Vec::new()), TWord::<u32, E>::with_engine(1));
    let result = wait_blocking(atomically_under::<E, _>(|tx| {
        made.borrow_mut().clear();
        let (made, var) = (&made, &var);
        tx.or_else_all([0, 1, 2, 3].map(|at| {
            move |tx: &Tx<E>| {
                made.borrow_mut().push(at);
                var.modify(tx, |n| n * 10 + at)?;
                if at == 2 { var.read(tx) } else { tx.retry() }
            }
        }))
    }));
    assert_eq!((result, var.read_now(), made.into_inner()), (12, 12, vec![0, 1, 2]));
}

type Alternative<'a, E, R> = dyn Fn(&Tx<E>) -> Tried<R> + 'a;
type BoxedOnce<'a, E, R> = Box<dyn FnOnce(&Tx<E>) -> Tried<R> + 'a>;

/// Closures of several types, as references and as boxes.
fn alternatives_may_differ_in_type<E: Engine>() {
    let (a, b) = (TWord::<u8, E>::with_engine(0), TWord::<u8, E>::with_engine(7));
    let take = |tx: &Tx<E>, from: &TWord<u8, E>| {
        let n = from.swap(tx, 0)?;
        tx.check(n > 0).map(|()| n)
    };
    let taken = wait_blocking(atomically_under::<E, _>(|tx| {
        let all: [&Alternative<'_, E, u8>; 2] = [&|tx| take(tx, &a), &|tx| take(tx, &b)];
        tx.or_else_all(all)
    }));
    let name = String::from("no letter");
    let text = wait_blocking(atomically_under::<E, _>(|tx| {
        let name = name.clone();
        let all: [BoxedOnce<'_, E, String>; 2] =
            [Box::new(|tx| take(tx, &a).map(|n| n.to_string())), Box::new(|_| Ok(name))];
        tx.or_else_all(all)
    }));
    assert_eq!((taken, text.as_str()), (7, "no letter"));
}

fn a_list_of_100_000_takes_no_deep_stack<E: Engine>() {
    let many = if cfg!(miri) { 100 } else { 100_000 };
    let var = TWord::<u32, E>::with_engine(0);
    let last = wait_blocking(atomically_under::<E, _>(|tx| {
        tx.or_else_all((1..=many).map(|at| {
            let var = &var;
            move |tx: &Tx<E>| {
                var.modify(tx, |n| n + 1)?;
                tx.check(at == many)?;
                var.read(tx)
            }
        }))
    }));
    assert_eq!(last, 1);
}

under_each_engine! {
    a_list_waits_for_the_reads_of_all
    alternatives_behind_the_one_that_ends_do_not_run
    alternatives_may_differ_in_type
    a_list_of_100_000_takes_no_deep_stack
}
