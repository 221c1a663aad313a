//! Random transactions with branches, errors and nested transactions, against a slow obvious model:
//! a copy of the state for each branch.

use crate::shaken_alone;
use proptest::prelude::*;
use selvedge_stm::{
    Abort, Engine, Figure3, GlobalLock, NOrec, TVar, TWord, Tx, Versioned, try_atomically_under,
};
use selvedge_sync::wait_blocking;

#[derive(Debug, Clone)]
enum Step {
    /// Adds the number to a variable.
    Add(usize, u64),
    /// Adds one variable to another one.
    Sum(usize, usize),
    Retry,
    Fail,
    /// The second branch ends with no retry, because the program has one OS thread.
    OrElse(Vec<Step>, Vec<Step>),
    /// As nested `OrElse`s. Without an alternative it retries.
    OrElseAll(Vec<Vec<Step>>),
    Nested(Vec<Step>),
}

const VARS: usize = 24;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        6 => (0..VARS, 0..1000_u64).prop_map(|(var, n)| Step::Add(var, n)),
        4 => (0..VARS, 0..VARS).prop_map(|(var, other)| Step::Sum(var, other)),
        1 => Just(Step::Retry),
        1 => Just(Step::Fail),
    ];
    let step = leaf.prop_recursive(4, 60, 8, |step| {
        let several = prop::collection::vec(step, 0..8);
        prop_oneof![
            (several.clone(), several.clone()).prop_map(|(a, b)| Step::OrElse(a, b)),
            prop::collection::vec(several.clone(), 0..5).prop_map(Step::OrElseAll),
            several.prop_map(Step::Nested),
        ]
    });
    prop::collection::vec(step, 0..30)
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum End {
    Retried,
    Failed,
}

/// Each variable is a word if its number is even, else a node.
struct Vars<E: Engine>(Vec<(TWord<u64, E>, TVar<u64, E>)>);

impl<E: Engine> Vars<E> {
    fn read(&self, tx: &Tx<E>, at: usize) -> Result<u64, Abort<()>> {
        let (word, node) = &self.0[at];
        Ok(if at.is_multiple_of(2) { word.read(tx)? } else { *node.read(tx)? })
    }

    fn write(&self, tx: &Tx<E>, at: usize, n: u64) {
        let (word, node) = &self.0[at];
        if at.is_multiple_of(2) { word.write(tx, n) } else { node.write(tx, n) }
    }

    fn run(&self, tx: &Tx<E>, steps: &[Step]) -> Result<(), Abort<()>> {
        for step in steps {
            match step {
                Step::Add(var, n) => self.write(tx, *var, self.read(tx, *var)?.wrapping_add(*n)),
                Step::Sum(var, other) => {
                    let sum = self.read(tx, *var)?.wrapping_add(self.read(tx, *other)?);
                    self.write(tx, *var, sum);
                }
                Step::Retry => tx.retry()?,
                Step::Fail => return Err(Abort::Error(())),
                Step::OrElse(a, b) => tx.or_else(|tx| self.run(tx, a), |tx| self.run(tx, b))?,
                Step::OrElseAll(all) => {
                    tx.or_else_all(all.iter().map(|steps| |tx: &Tx<E>| self.run(tx, steps)))?;
                }
                Step::Nested(steps) => {
                    let _ = tx.try_atomically(|tx| self.run(tx, steps))?;
                }
            }
        }
        Ok(())
    }
}

fn model(state: &mut Vec<u64>, steps: &[Step]) -> Result<(), End> {
    for step in steps {
        match step {
            Step::Add(var, n) => state[*var] = state[*var].wrapping_add(*n),
            Step::Sum(var, other) => state[*var] = state[*var].wrapping_add(state[*other]),
            Step::Retry => return Err(End::Retried),
            Step::Fail => return Err(End::Failed),
            Step::OrElse(a, b) => {
                let before = state.clone();
                match model(state, a) {
                    Err(End::Retried) => {
                        *state = before;
                        model(state, b)?;
                    }
                    other => other?,
                }
            }
            Step::OrElseAll(all) => {
                let before = state.clone();
                let mut end = Err(End::Retried);
                for steps in all {
                    state.clone_from(&before);
                    end = model(state, steps);
                    if end != Err(End::Retried) {
                        break;
                    }
                }
                end?;
            }
            Step::Nested(steps) => {
                let before = state.clone();
                match model(state, steps) {
                    Err(End::Failed) => *state = before,
                    other => other?,
                }
            }
        }
    }
    Ok(())
}

fn agrees<E: Engine>(programs: &[Vec<Step>]) {
    let vars = Vars::<E>((0..VARS).map(|_| (TWord::with_engine(1), TVar::with_engine(1))).collect());
    let mut state = vec![1; VARS];
    for steps in programs {
        let before = state.clone();
        let expected = model(&mut state, steps);
        let result = wait_blocking(try_atomically_under::<E, _, _>(|tx| {
            let result = tx.or_else(|tx| vars.run(tx, steps).map(|()| Ok(())), |_| Ok(Err(End::Retried)));
            result.map_err(|abort| match abort {
                Abort::Stop(stop) => Abort::Stop(stop),
                Abort::Error(()) => Abort::Error(End::Failed),
            })
        }));
        assert_eq!(result.and_then(|retried| retried), expected);
        if expected.is_err() {
            state = before;
        }
        let values = wait_blocking(try_atomically_under::<E, Vec<u64>, ()>(|tx| {
            (0..VARS).map(|at| vars.read(tx, at)).collect()
        }));
        assert_eq!(values.as_ref(), Ok(&state));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 60 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn transactions_agree_with_the_model(programs in prop::collection::vec(steps(), 1..6)) {
        // Without a cause, one comparison in three fails in the second round.
        for one_in in [0, 3] {
            let _alone = shaken_alone(one_in);
            agrees::<Versioned>(&programs);
            agrees::<Figure3>(&programs);
            agrees::<NOrec>(&programs);
            agrees::<GlobalLock>(&programs);
        }
    }
}
