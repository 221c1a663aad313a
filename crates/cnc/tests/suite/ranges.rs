//! Steps over ranges of each kind of number, in one, two and three axes.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{Scheduler, Stealing};
use selvedge_cnc::{Graph, ItemCol, RangeNumber, StepContext, StepResult, graph};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;

/// The begin and the end of each axis, as the body got them.
type Block = [(u64, u64); 3];
type Blocks<'g> = ItemCol<'g, Vec<u64>, Block>;

/// The blocks of a range, by loops.
fn expected(axes: &[(u64, u64)], grains: &[u64]) -> BTreeMap<Vec<u64>, Block> {
    let mut blocks = vec![Vec::new()];
    for (&(begin, end), &grain) in axes.iter().zip(grains) {
        let mut all = Vec::new();
        for block in &blocks {
            let mut at = begin;
            while at < end {
                let next = at.saturating_add(grain).min(end);
                all.push([block, &[(at, next)][..]].concat());
                at = next;
            }
        }
        blocks = all;
    }
    let three =
        |block: Vec<(u64, u64)>| std::array::from_fn(|axis| block.get(axis).copied().unwrap_or((0, 1)));
    blocks
        .into_iter()
        .map(three)
        .map(|block: Block| (block.map(|(begin, _)| begin).to_vec(), block))
        .collect()
}

/// Runs a graph with a range step, which misses an item at first. `prescribe` also puts the tag.
fn run(
    scheduler: &dyn Scheduler,
    prescribe: impl for<'g> Fn(&'g Graph<'g, '_>, ItemCol<'g, (), ()>, Blocks<'g>),
) -> BTreeMap<Vec<u64>, Block> {
    graph(|graph| {
        let (go, blocks) = (graph.item("go"), graph.items("blocks"));
        let later = graph.tags::<()>("later");
        graph.prescribe(later, "later", move |(), step| step.put(go, (), ()));
        let monitor = graph.monitor();
        prescribe(graph, go, blocks);
        graph.initialize(|env| env.put_tag(later, ())).unwrap();
        let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
        for step in monitor.progress() {
            assert_eq!(step.known, step.ended, "{step:?}");
        }
        end.finalize(|view| view.iter(blocks).map(|(begin, block)| (begin, *block)).collect())
    })
}

fn note<'g, const AXES: usize, N: RangeNumber + Into<u64>>(
    step: &StepContext<'g>,
    (go, blocks): (ItemCol<'g, (), ()>, Blocks<'g>),
    ranges: [Range<N>; AXES],
) -> StepResult {
    step.get(go, ())?;
    let mut block = [(0, 1); 3];
    for (axis, range) in block.iter_mut().zip(ranges) {
        *axis = (range.start.into(), range.end.into());
    }
    step.put(blocks, block.map(|(begin, _)| begin).to_vec(), block)
}

/// How many ranges of each kind a test tries. Under Miri a graph takes seconds.
const RANGES: usize = if cfg!(miri) { 1 } else { usize::MAX };

fn check<N>(name: &str, scheduler: &dyn Scheduler, n: impl Fn(u64) -> N + Copy)
where
    N: RangeNumber + Into<u64> + Debug + Send + Sync + 'static,
{
    let small = [(5, 26), (0, 0), (3, 4), (0, 40), (9, 3)];
    let each_grain = small.into_iter().flat_map(|axis| [7, 1, 4, 200].map(|grain| (axis, grain)));
    for ((begin, end), grain) in each_grain.take(RANGES) {
        let got = run(scheduler, |graph, go, blocks| {
            let tags = graph.tags("tags");
            graph.prescribe_range(tags, "range", n(grain), move |a, step| note(step, (go, blocks), [a]));
            graph.initialize(|env| env.put_tag(tags, (n(begin), n(end)))).unwrap();
        });
        assert_eq!(got, expected(&[(begin, end)], &[grain]), "{name}, {begin}..{end} by {grain}");
    }
    for axes in
        [[(0, 9), (2, 11)], [(4, 5), (0, 30)], [(0, 30), (7, 8)], [(0, 3), (3, 3)]].into_iter().take(RANGES)
    {
        let got = run(scheduler, |graph, go, blocks| {
            let tags = graph.tags("tags");
            let grain = (n(2), n(5));
            graph
                .prescribe_range_2d(tags, "range", grain, move |a, b, step| note(step, (go, blocks), [a, b]));
            let tag = axes.map(|(begin, end)| (n(begin), n(end))).into();
            graph.initialize(|env| env.put_tag(tags, tag)).unwrap();
        });
        assert_eq!(got, expected(&axes, &[2, 5]), "{name}, {axes:?}");
    }
    for axes in [[(0, 5), (2, 9), (1, 5)], [(0, 1), (0, 9), (0, 1)], [(0, 2), (1, 0), (0, 3)]]
        .into_iter()
        .take(RANGES)
    {
        let got = run(scheduler, |graph, go, blocks| {
            let tags = graph.tags("tags");
            let grain = (n(2), n(3), n(1));
            graph.prescribe_range_3d(tags, "range", grain, move |a, b, c, step| {
                note(step, (go, blocks), [a, b, c])
            });
            let tag = axes.map(|(begin, end)| (n(begin), n(end))).into();
            graph.initialize(|env| env.put_tag(tags, tag)).unwrap();
        });
        assert_eq!(got, expected(&axes, &[2, 3, 1]), "{name}, {axes:?}");
    }
}

#[test]
fn the_blocks_are_those_of_loops_under_every_scheduler() {
    each(|name, scheduler| {
        // A tag of 8 bits always fits in a word, and one of 64 bits never does.
        check::<u8>(name, scheduler, |n| n as u8);
        check::<u64>(name, scheduler, |n| n);
    });
    check::<u16>("u16", &Stealing::new(2), |n| n as u16);
    check::<u32>("u32", &Stealing::new(2), |n| n as u32);
}

#[test]
fn a_range_may_end_at_the_last_number() {
    let axes = [(u64::MAX - 10, u64::MAX)];
    let got = run(&Stealing::new(2), |graph, go, blocks| {
        let tags = graph.tags("tags");
        graph.prescribe_range(tags, "range", 4, move |a: Range<u64>, step| note(step, (go, blocks), [a]));
        graph.initialize(|env| env.put_tag(tags, axes[0])).unwrap();
    });
    assert_eq!(got, expected(&axes, &[4]));
}

#[test]
#[should_panic = "a range step has a grain of at least 1"]
fn a_grain_of_zero_is_refused() {
    graph(|graph| {
        graph.prescribe_range_2d(graph.tags::<((u8, u8), (u8, u8))>("tags"), "range", (3, 0), |_, _, _| {
            Ok(())
        });
    });
}
