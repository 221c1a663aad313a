//! Random graphs of values, forced by several threads in random orders, against the same graphs
//! computed strictly.

use proptest::prelude::*;
use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_lazy::{
    ClaimAtYield, Grey, GreyClaimAtYield, Lazy, LockFree, OneCas, Region, Thunk, ThunkEntry, TwoCas,
};
use selvedge_sched::work_stealing;
use std::thread;

/// The most values of a graph, and one.
const VALUES: usize = if cfg!(miri) { 10 } else { 64 };

/// A value of the graph: the numbers of the values that it needs, all smaller than its own, and how
/// it makes its value of theirs.
#[derive(Clone, Debug)]
struct Made {
    needs: Vec<usize>,
    yields: bool,
    panics: bool,
}

fn graphs() -> impl Strategy<Value = Vec<Made>> {
    let made = (proptest::collection::vec(0..VALUES, 0..4), any::<bool>(), 0..40u8)
        .prop_map(|(needs, yields, panics)| Made { needs, yields, panics: panics == 0 });
    proptest::collection::vec(made, 1..VALUES).prop_map(|mut graph| {
        for (at, made) in graph.iter_mut().enumerate() {
            made.needs.retain(|&need| need < at);
        }
        graph
    })
}

fn mix(at: usize, values: &[u64]) -> u64 {
    values.iter().fold(at as u64, |mixed, value| mixed.wrapping_mul(31).wrapping_add(*value))
}

/// All values, with `None` for a value that fails.
fn strictly(graph: &[Made]) -> Vec<Option<u64>> {
    let mut values: Vec<Option<u64>> = Vec::new();
    for (at, made) in graph.iter().enumerate() {
        let needed: Option<Vec<u64>> = made.needs.iter().map(|&need| values[need]).collect();
        values.push(needed.filter(|_| !made.panics).map(|needed| mix(at, &needed)));
    }
    values
}

fn lazily(graph: &[Made]) -> Vec<Lazy<u64>> {
    let mut values: Vec<Lazy<u64>> = Vec::new();
    for (at, made) in graph.iter().enumerate() {
        let needs: Vec<_> = made.needs.iter().map(|&need| values[need].clone()).collect();
        let made = made.clone();
        values.push(Lazy::future(async move {
            let mut needed = Vec::new();
            for need in needs {
                if made.yields {
                    yield_now().await;
                }
                needed.push(*need.force().await);
            }
            if made.panics {
                std::panic::resume_unwind(Box::new("made to fail"));
            }
            mix(at, &needed)
        }));
    }
    values
}

async fn force_all(graph: Vec<Made>, orders: Vec<Vec<usize>>) -> Result<(), TestCaseError> {
    let (values, expected) = (lazily(&graph), strictly(&graph));
    let threads: Vec<_> = orders
        .into_iter()
        .map(|order| {
            let (values, expected) = (values.clone(), expected.clone());
            spawn(async move {
                for at in order {
                    let at = at % values.len();
                    let forced = values[at].try_force().await;
                    prop_assert_eq!(forced.as_ref().ok().copied(), expected[at].as_ref());
                    if let Err(failed) = forced {
                        prop_assert_eq!(failed.message(), "made to fail");
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.await.unwrap()?;
    }
    Ok(())
}

/// The graph as thunks of a region, forced by an OS thread for each order. Thunks have no failures,
/// and so the graph has none.
fn force_in_region<E: ThunkEntry>(graph: &[Made], orders: &[Vec<usize>])
where
    Region<E>: Sync,
{
    let (region, expected) = (Region::<E>::new(), strictly(graph));
    let nursery = region.nursery();
    let mut thunks: Vec<Thunk<'_, u64, E>> = Vec::new();
    for (at, made) in graph.iter().enumerate() {
        let needs = [0, 1, 2].map(|need| made.needs.get(need).map(|&need| thunks[need]));
        let body = move |nursery: &_| {
            let needed: Vec<u64> = needs.iter().flatten().map(|need| need.force(nursery)).collect();
            mix(at, &needed)
        };
        thunks.push(if made.yields { nursery.just_once(body) } else { nursery.thunk(body) });
    }
    thread::scope(|scope| {
        for order in orders {
            scope.spawn(|| {
                let nursery = region.nursery();
                for at in order.iter().map(|at| at % thunks.len()) {
                    assert_eq!(Some(thunks[at].force(&nursery)), expected[at]);
                }
            });
        }
    });
}

fn orders() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(
        proptest::collection::vec(0..VALUES, 1..VALUES / 2),
        1..if cfg!(miri) { 3 } else { 5 },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn threads_of_one_cpu_see_the_values_of_a_strict_program(graph in graphs(), orders in orders()) {
        round_robin(force_all(graph, orders)).unwrap()?;
    }

    #[test]
    fn threads_of_two_workers_see_the_values_of_a_strict_program(graph in graphs(), orders in orders()) {
        work_stealing(2, |_| Ok(NoEvents::new()), force_all(graph, orders)).unwrap()?;
    }
    #[test]
    fn os_threads_see_the_values_of_a_strict_program_under_each_engine(graph in graphs(), orders in orders()) {
        let graph: Vec<_> = graph.into_iter().map(|made| Made { panics: false, ..made }).collect();
        force_in_region::<LockFree>(&graph, &orders);
        force_in_region::<ClaimAtYield>(&graph, &orders);
        force_in_region::<Grey>(&graph, &orders);
        force_in_region::<GreyClaimAtYield>(&graph, &orders);
        force_in_region::<OneCas>(&graph, &orders);
        force_in_region::<TwoCas>(&graph, &orders);
    }
}
