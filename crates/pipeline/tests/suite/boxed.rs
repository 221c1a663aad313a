//! Stages behind a pointer do what they do without it, and call it once for each chunk.

use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};
use selvedge_pipeline::*;
use std::ops::ControlFlow;

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab \n".to_vec()), 0..80)
}

/// A sink that counts how it is called.
#[derive(Default)]
struct Calls {
    items: u64,
    calls: u64,
    /// It breaks at this number of items.
    most: Option<u64>,
}

impl<A: Item + ?Sized> Sink<A> for Calls {
    const CHUNKS: bool = true;

    fn put(&mut self, item: &A) -> Flow {
        Sink::<A>::put_chunk(self, A::Chunk::one(item))
    }

    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.calls += 1;
        self.items += chunk.count();
        if self.most.is_some_and(|most| self.items >= most) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

proptest! {
    #[test]
    fn a_boxed_pipeline_does_what_it_does_without(text in text(), length in 1..9usize) {
        let chunks = || from_chunks(text.chunks(length).map(<[u8]>::to_vec).collect::<Vec<_>>());
        let spaces = || satisfies(|c: &u8| *c == b' ');
        let upper = || lift121(|c: &u8| c.to_ascii_uppercase());
        let words = || having(line(), substring(b"ab"));
        let plain = if_then_else(!spaces() & words(), upper(), id()) >> group_by(line()) >> append(b";") >> concatenate();
        let boxed = if_then_else((!spaces().boxed() & words().boxed()).boxed(), upper().boxed(), id().boxed()).boxed()
            >> group_by(line().boxed()).boxed()
            >> (append(b";").boxed() >> concatenate().boxed()).boxed();
        let kinds = DynStage::new(if_then_else(!spaces() & words(), upper(), id()))
            .then(DynStage::new(group_by(line())).then(DynStage::new(append(b";"))).unwrap()).unwrap()
            .then(DynStage::new(concatenate())).unwrap();
        let slow = (chunks() >> plain).collect();
        prop_assert_eq!((chunks() >> boxed.clone()).collect(), slow.clone());
        prop_assert_eq!((chunks() >> kinds.clone().transducer::<u8, u8>().unwrap()).collect(), slow.clone());
        // A recipe that is cloned begins anew.
        let mut fed = boxed.step();
        let mut again = fed.put_chunk(&text).to_vec();
        again.extend_from_slice(fed.end());
        prop_assert_eq!(again, slow);
        let firsts = (chunks() >> upper().boxed() >> take(3).boxed() >> id().boxed()).collect();
        prop_assert_eq!(firsts, (chunks() >> upper() >> take(3)).collect());
        let sections = foreach(line().boxed(), substitute(b"x").boxed(), id().boxed());
        prop_assert_eq!((chunks() >> sections).collect(), (chunks() >> foreach(line(), substitute(b"x"), id())).collect());
    }
}

#[test]
fn single_items_are_gathered() {
    let mut stage = filter(|n: &u64| !n.is_multiple_of(3)).boxed().into_stage();
    let (chunk, mut calls) = ((0..3000).collect::<Vec<u64>>(), Calls::default());
    assert!(stage.put_chunk(&chunk, &mut calls).is_continue());
    assert_eq!((calls.items, calls.calls), (2000, 2));
    let chunk: Vec<Number> = chunk.into_iter().map(Number::from).collect();
    let large = Number::from(1000_u64);
    let mut stage = DynStage::new(filter(move |n: &Number| *n >= large));
    stage = stage.then(DynStage::new(id::<Number>())).unwrap();
    let mut stage = stage.transducer::<Number, Number>().unwrap().into_stage();
    let mut calls = Calls::default();
    let flow = Transduce::<Number, Number>::put_chunk(&mut stage, &chunk, &mut calls);
    assert_eq!((flow.is_continue(), calls.items, calls.calls), (true, 2000, 2));
}

/// A sink that notes where the lists lie that it takes.
#[derive(Default)]
struct Places(Vec<*const u8>);

impl Sink<[u8]> for Places {
    const CHUNKS: bool = true;

    fn put(&mut self, item: &[u8]) -> Flow {
        self.0.push(item.as_ptr());
        ControlFlow::Continue(())
    }
}

#[test]
fn a_long_list_goes_through_the_box_without_a_copy() {
    let mut stage = filter(|_: &[u8]| true).boxed().into_stage();
    let (long, short) = (vec![b'a'; 1 << 20], vec![b'b'; 10]);
    let mut places = Places::default();
    // Lists one by one, in their order.
    for list in [&short, &long, &short] {
        assert!(stage.put(list, &mut places).is_continue());
    }
    assert!(stage.flush(&mut places).is_continue());
    assert_eq!(places.0.len(), 3);
    assert_eq!(places.0[1], long.as_ptr());
    assert_ne!(places.0[0], short.as_ptr());
}

#[test]
fn a_break_and_a_failure_come_through_the_box() {
    let chunk: Vec<u64> = (0..5000).collect();
    let mut stage = filter(|_: &u64| true).boxed().into_stage();
    let mut calls = Calls { most: Some(100), ..Calls::default() };
    assert!(stage.put_chunk(&chunk, &mut calls).is_break());
    assert_eq!(calls.items, 1024);
    let small = || try_lift121(|n: &u64| if *n < 2000 { Ok(*n) } else { Err("too large") });
    let told = |failure: Option<&StageError>| failure.unwrap().to_string();
    let mut fed = (small().boxed() >> id()).step();
    assert_eq!(fed.put_chunk(&chunk).len(), 2000);
    assert_eq!(told(fed.failure()), "try_lift121: item 2001, offset 2000: too large");
    let count_at_the_end = lift_stateful(|(): &mut (), _: &u8| None, |()| [7u8], ());
    let letters = try_lift121(|byte: &u8| if *byte < b'z' { Ok(*byte) } else { Err("too large") });
    let kinds = DynStage::new(letters).then(DynStage::new(count_at_the_end)).unwrap();
    let mut fed = kinds.transducer::<u8, u8>().unwrap().step();
    assert_eq!(fed.put_chunk(b"aaz"), [0; 0]);
    assert_eq!(told(fed.failure()), "try_lift121: item 3, offset 2: too large");
    assert_eq!(fed.end(), [0; 0]);
}

#[test]
fn kinds_that_do_not_fit_are_refused() {
    let lines = || DynStage::new(group_by(line()));
    assert_eq!(
        lines().then(lines()).unwrap_err(),
        MisfitError { yields: ItemKind::Lists, takes: ItemKind::Bytes }
    );
    assert_eq!(
        lines().transducer::<u8, u8>().unwrap_err(),
        MisfitError { yields: ItemKind::Lists, takes: ItemKind::Bytes }
    );
    assert_eq!(
        lines().transducer::<Number, [u8]>().unwrap_err(),
        MisfitError { yields: ItemKind::Numbers, takes: ItemKind::Bytes }
    );
}
