//! The streaming merge sort that the paper says pipelines cannot express: as a cycle with a buffer,
//! and as the paper's diamond, with the queues of its join.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use selvedge_pipeline::*;

fn merged(a: &[u16], b: &[u16]) -> Vec<u16> {
    join_generators(from_iter(a.to_vec()), from_iter(b.to_vec()), join::merge(u16::cmp)).collect()
}

/// Runs of one length are merged, and go round again.
fn sort_by_a_cycle() -> Transducer<u16, u16, impl Transduce<u16, u16> + Clone> {
    let step = |runs: &mut Vec<Option<Vec<u16>>>, run: &Vec<u16>| {
        let size = run.len().ilog2() as usize;
        runs.resize(runs.len().max(size + 1), None);
        match runs[size].take() {
            Some(other) => Some(merged(&other, run)),
            None => {
                runs[size] = Some(run.clone());
                None
            }
        }
    };
    let end = |runs: &mut Vec<Option<Vec<u16>>>| {
        std::mem::take(runs).into_iter().flatten().reduce(|short, long| merged(&long, &short))
    };
    lift121(|n: &u16| vec![*n])
        >> cycle(1, everything(), lift_stateful(step, end, Vec::new()))
        >> lift_stateless(|run: &Vec<u16>| run.clone())
}

/// A sorter in the shape of the paper: a splitter of the odd and the even places, a sorter for
/// each, and a join. The sorters below begin with the second item.
#[derive(Clone, Default)]
struct Diamond {
    first: Option<u16>,
    sides: Option<BoxedTransducer<u16, u16>>,
}

/// Every other item: the first one, if `first`.
fn alternate(first: bool) -> Transducer<u16, u16, impl Transduce<u16, u16> + Clone> {
    let step = move |pass: &mut bool, n: &u16| {
        *pass = !*pass;
        (*pass == first).then_some(*n)
    };
    lift_stateful(step, |_| None, false)
}

impl Diamond {
    fn drive<S: Sink<u16>>(&mut self, item: u16, out: &mut S) -> Flow {
        if self.first.is_none() {
            self.first = Some(item);
            return std::ops::ControlFlow::Continue(());
        }
        let sides = self.sides.get_or_insert_with(|| {
            let sorted = |first| alternate(first) >> Transducer::new(Diamond::default());
            join_transduced(sorted(true), sorted(false), join::merge(u16::cmp)).boxed()
        });
        Running(sides).put(item, out)
    }
}

/// Feeds a recipe that lies in a field.
struct Running<'a>(&'a mut BoxedTransducer<u16, u16>);

impl Running<'_> {
    fn put<S: Sink<u16>>(&mut self, item: u16, out: &mut S) -> Flow {
        self.with(|stage, out| stage.put(&item, out), out)
    }

    fn end<S: Sink<u16>>(&mut self, out: &mut S) -> Flow {
        self.with(|stage, out| stage.end(out), out)
    }

    fn with<S>(
        &mut self,
        f: impl FnOnce(&mut BoxedTransduce<u16, u16>, &mut S) -> Flow,
        out: &mut S,
    ) -> Flow {
        let mut stage = std::mem::replace(self.0, id().boxed()).into_stage();
        let flow = f(&mut stage, out);
        *self.0 = Transducer::new(stage);
        flow
    }
}

impl Transduce<u16, u16> for Diamond {
    fn put<S: Sink<u16>>(&mut self, item: &u16, out: &mut S) -> Flow {
        self.drive(*item, out)
    }

    fn end<S: Sink<u16>>(&mut self, out: &mut S) -> Flow {
        match (self.first.take(), &mut self.sides) {
            (Some(first), None) => out.put(&first),
            (Some(first), Some(sides)) => {
                // The first item belongs to one of the sides.
                let mut running = Running(sides);
                running.put(first, out)?;
                running.end(out)
            }
            (None, _) => std::ops::ControlFlow::Continue(()),
        }
    }
}

proptest! {
    #[test]
    fn merge_sort_sorts(items in prop::collection::vec(0..50u16, 0..200), length in 1..30usize) {
        let mut slow = items.clone();
        slow.sort_unstable();
        let chunks = || from_chunks(items.chunks(length).map(<[u16]>::to_vec).collect::<Vec<_>>());
        prop_assert_eq!((chunks() >> sort_by_a_cycle()).collect(), slow.clone());
        prop_assert_eq!((chunks() >> Transducer::new(Diamond::default())).collect(), slow);
    }

    #[test]
    fn a_cycle_does_what_a_loop_does(items in prop::collection::vec(0..100u64, 0..40), length in 1..9usize) {
        let even = || satisfies(|n: &u64| *n > 0 && n.is_multiple_of(2));
        let halve = || lift121(|n: &u64| n / 2);
        let chunks = || from_chunks(items.chunks(length).map(<[u64]>::to_vec).collect::<Vec<_>>());
        // The stage of a cycle gets each item once at least.
        let round = (chunks() >> cycle(1, even(), halve())).collect();
        let twice = (chunks() >> halve() >> while_(halve(), even())).collect();
        prop_assert_eq!(round, twice);
        // A splitter that holds items back: sections that have an even number as a whole.
        let having_even = || having(satisfies(|n: &u64| *n > 0), even());
        let round = (chunks() >> cycle(1000, having_even(), halve())).collect();
        let mut sum = items.iter().map(|n| n / 2).collect::<Vec<_>>();
        sum.retain(|n| *n == 0);
        prop_assert!(round.iter().filter(|n| **n == 0).count() >= sum.len());
        prop_assert_eq!(round.len(), items.len());
        let mut fed = cycle(1000, having_even(), halve()).step();
        let mut again = Vec::new();
        for item in &items {
            again.extend_from_slice(fed.put_chunk(std::slice::from_ref(item)));
        }
        again.extend_from_slice(fed.end());
        prop_assert_eq!(again, round);
    }
}

#[test]
fn a_cycle_that_grows_is_told() {
    let doubles = lift_stateless(|n: &u64| [*n, *n]);
    let grows = cycle(100, satisfies(|n: &u64| *n > 6), doubles);
    let failed = (from_iter(0..9) >> grows).try_collect().unwrap_err();
    let told = "cycle: item 8, offset 7: more than 100 items in the buffer of a cycle";
    assert_eq!(failed.to_string(), told);
}

#[test]
fn a_stage_in_a_cycle_may_fail_or_finish() {
    let counts_down = || try_lift121(|n: &u64| n.checked_sub(3).ok_or("less than three"));
    let failed = (from_iter([9, 7]) >> cycle(1, satisfies(|n: &u64| *n > 0), counts_down())).try_collect();
    assert_eq!(failed.unwrap_err().to_string(), "try_lift121: item 6, offset 5: less than three");
    let once = cycle(9, satisfies(|n: &u64| *n > 9), take(2) >> lift121(|n: &u64| n + 1));
    assert_eq!((from_iter([1, 2, 3]) >> once).collect(), [2, 3]);
}
