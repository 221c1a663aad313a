//! Stages written as coroutines: what a body is told does not depend on the cuts of its input.
//!
//! A body follows a script of operations on its handle, and reports what each of them tells it. The
//! slow version follows the script over a queue of all items.

use proptest::prelude::*;
use selvedge_pipeline::{
    Io, SectionPart, Transduce, Transducer, collect, count, each_chunk, filter, fold, from_chunks, from_fn,
    from_iter, iteratee, select, splitter, transducer,
};
use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::ControlFlow::Continue;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An operation of a body.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Next,
    Peek,
    /// Asks for an item, and drops the future that has not been polled.
    NextUnawaited,
    /// Gives back this number of the items that were taken last.
    Unread(usize),
    /// Takes a chunk, and gives back all but its first item, because the cuts decide its length.
    Chunk,
    /// Puts this number of items, one by one.
    Put(usize),
    /// Puts this number of items, and awaits nothing.
    PutUnawaited(usize),
    PutChunk(usize),
}

/// What a body reports.
#[derive(Debug, Clone, PartialEq)]
enum Told<A> {
    Taken(Option<A>),
    Peeked(Option<A>),
    Filler(usize),
}

/// Follows the script with the handle `io`. The reports go to `log`, or to the next stage.
struct Scripted<A> {
    taken: Vec<A>,
    /// How many items were given back and not taken again.
    given_back: usize,
    log: Vec<Told<A>>,
}

impl<A: Clone + 'static> Scripted<A> {
    fn new() -> Self {
        Scripted { taken: Vec::new(), given_back: 0, log: Vec::new() }
    }

    fn take(&mut self, item: Option<A>) {
        self.given_back = self.given_back.saturating_sub(1);
        self.taken.extend(item.clone());
        self.log.push(Told::Taken(item));
    }

    async fn follow<B>(&mut self, io: &mut Io<A, B>, deed: Deed) {
        match deed {
            Deed::Next => self.take(io.next().await),
            Deed::Peek => self.log.push(Told::Peeked(io.peek().await.cloned())),
            Deed::NextUnawaited => drop(io.next()),
            Deed::Unread(count) => {
                for _ in 0..count {
                    let Some(item) = self.taken.pop() else { return };
                    io.unread(item);
                    self.given_back += 1;
                }
            }
            Deed::Chunk => {
                let mut items = io.chunk().await.into_iter();
                self.take(items.next());
                for item in items.rev() {
                    io.unread(item);
                    self.given_back += 1;
                }
            }
            Deed::Put(_) | Deed::PutUnawaited(_) | Deed::PutChunk(_) => {}
        }
    }

    /// Passes the reports on, and what the deed puts.
    async fn report(&mut self, io: &mut Io<A, Told<A>>, deed: Deed) {
        for told in self.log.drain(..) {
            io.put(told).await;
        }
        match deed {
            Deed::Put(count) => {
                for number in 0..count {
                    io.put(Told::Filler(number)).await;
                }
            }
            Deed::PutUnawaited(count) => (0..count).for_each(|number| drop(io.put(Told::Filler(number)))),
            Deed::PutChunk(count) => {
                let items: Vec<_> = (0..count).map(Told::Filler).collect();
                io.put_chunk(&items).await;
            }
            _ => {}
        }
    }
}

/// What the body is told over the queue of all items. Returns also the items that are left.
fn slow<A: Clone>(items: &[A], script: &[Deed]) -> (Vec<Told<A>>, Vec<A>) {
    let mut queue: VecDeque<A> = items.iter().cloned().collect();
    let (mut taken, mut told) = (Vec::new(), Vec::new());
    for deed in script {
        match *deed {
            Deed::Next | Deed::Chunk => {
                let item = queue.pop_front();
                taken.extend(item.clone());
                told.push(Told::Taken(item));
            }
            Deed::Peek => told.push(Told::Peeked(queue.front().cloned())),
            Deed::NextUnawaited => {}
            Deed::Unread(count) => {
                let first = taken.len() - count.min(taken.len());
                taken.drain(first..).rev().for_each(|item| queue.push_front(item));
            }
            Deed::Put(count) | Deed::PutUnawaited(count) | Deed::PutChunk(count) => {
                told.extend((0..count).map(Told::Filler));
            }
        }
    }
    (told, queue.into())
}

/// The chunks into which the bits of `cuts` divide the items.
fn cut<A: Clone>(items: &[A], cuts: u64) -> Vec<Vec<A>> {
    let mut chunks = vec![Vec::new()];
    for (index, item) in items.iter().enumerate() {
        if cuts >> (index % 64) & 1 == 1 {
            chunks.push(Vec::new());
        }
        chunks.last_mut().expect("there is one at first").push(item.clone());
    }
    chunks
}

/// A transducer that follows `script`, and passes on the rest of its input.
fn transduced<A: Clone + 'static>(chunks: Vec<Vec<A>>, script: &[Deed]) -> Vec<Told<A>> {
    let script = script.to_vec();
    let body = transducer(move |mut io| {
        let script = script.clone();
        async move {
            let mut body = Scripted::new();
            for deed in script {
                body.follow(&mut io, deed).await;
                body.report(&mut io, deed).await;
            }
            while let Some(item) = io.next().await {
                io.put(Told::Taken(Some(item))).await;
            }
        }
    });
    (from_chunks(chunks) >> body >> copied()).collect()
}

/// A transducer that passes on what it takes.
fn copied<A: Clone + 'static>() -> Transducer<A, A, impl Transduce<A, A>> {
    transducer(|mut io| async move {
        while let Some(item) = io.next().await {
            io.put(item).await;
        }
    })
}

/// An iteratee that follows `script`, and the rest of the stream after it. Only the items of the
/// last chunk go back to the stream, so the body takes once more what it has given back.
fn iterated<A: Clone + 'static>(chunks: Vec<Vec<A>>, script: &[Deed]) -> (Vec<Told<A>>, Vec<A>) {
    let script = script.to_vec();
    let body = iteratee(move |mut io: Io<A, Infallible>| {
        let script = script.clone();
        async move {
            let mut body = Scripted::new();
            for deed in script {
                body.follow(&mut io, deed).await;
            }
            while body.given_back > 0 {
                body.take(io.next().await);
            }
            body.log
        }
    });
    let mut stream = from_chunks(chunks).pull();
    let log = stream.read(body).expect("no stage fails");
    (log, stream.read(collect()).expect("no stage fails"))
}

/// A splitter that follows `script`: what it takes is true, and what it leaves is false.
fn split<A: Clone + 'static>(chunks: Vec<Vec<A>>, script: &[Deed]) -> (Vec<A>, Vec<A>) {
    let script = script.to_vec();
    let body = splitter(move |mut io| {
        let script = script.clone();
        async move {
            for deed in script {
                match deed {
                    Deed::Next => {
                        let Some(item) = io.next().await else { return };
                        io.put(SectionPart::Item(true, item)).await;
                    }
                    Deed::Unread(_) => {
                        let Some(item) = io.next().await else { return };
                        io.unread(item);
                    }
                    Deed::Peek => drop(io.peek().await),
                    Deed::NextUnawaited => drop(io.next()),
                    _ => {}
                }
            }
        }
    });
    let yes = (from_chunks(chunks.clone()) >> select(body.clone())).collect();
    (yes, (from_chunks(chunks) >> select(!body)).collect())
}

/// Holds the bodies that follow `script` against the slow version.
fn check<A: Clone + Debug + PartialEq + 'static>(items: &[A], script: &[Deed], cuts: u64) {
    let chunks = cut(items, cuts);
    let (mut told, rest) = slow(items, script);
    told.extend(rest.into_iter().map(|item| Told::Taken(Some(item))));
    assert_eq!(transduced(chunks.clone(), script), told, "{script:?} {cuts:b}");

    let is_chunk = |deed: &&Deed| !matches!(deed, Deed::Chunk);
    let takes_items =
        |deed: &&Deed| !matches!(deed, Deed::Put(_) | Deed::PutUnawaited(_) | Deed::PutChunk(_));
    let script: Vec<Deed> = script.iter().filter(is_chunk).filter(takes_items).copied().collect();
    let (mut told, mut rest) = slow(items, &script);
    let (log, left) = iterated(chunks.clone(), &script);
    let again = log.len() - told.len();
    told.extend(rest.drain(..again.min(rest.len())).map(|item| Told::Taken(Some(item))));
    assert_eq!((log, left), (told, rest), "{script:?} {cuts:b}");

    let wanted = script.iter().filter(|deed| matches!(deed, Deed::Next)).count().min(items.len());
    let (yes, no) = items.split_at(wanted);
    assert_eq!(split(chunks, &script), (yes.to_vec(), no.to_vec()), "{script:?} {cuts:b}");
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Next),
        2 => Just(Deed::Peek),
        1 => Just(Deed::NextUnawaited),
        2 => (0..6_usize).prop_map(Deed::Unread),
        1 => Just(Deed::Chunk),
        1 => (0..1500_usize).prop_map(Deed::Put),
        1 => (0..1500_usize).prop_map(Deed::PutUnawaited),
        1 => (0..1500_usize).prop_map(Deed::PutChunk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_body_sees_the_items_in_order(
        script in prop::collection::vec(deed(), 0..60), count in 0..40_u64, cuts in proptest::num::u64::ANY,
    ) {
        let numbers: Vec<u64> = (0..count).collect();
        check(&numbers, &script, cuts);
        // Items that own memory, and items that have no size.
        let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
        check(&words, &script, cuts);
        check(&vec![(); count as usize], &script, cuts);
    }

    #[test]
    fn a_body_sees_no_cut_of_a_short_input(script in prop::collection::vec(deed(), 0..14)) {
        let words: Vec<String> = (0..6).map(|number: u32| number.to_string()).collect();
        for cuts in 0..1 << words.len() {
            check(&words, &script, cuts);
            check(b"012345", &script, cuts);
        }
    }
}

/// A chunk that is given to the body in several pieces.
#[test]
fn a_large_chunk_is_one_stream() {
    let items: Vec<u32> = (0..100_000).collect();
    let from = || from_chunks([items.clone()]);
    assert_eq!((from() >> copied()).collect(), items);
    assert_eq!((from_iter(items.clone()) >> copied() >> copied()).collect(), items);
    for wanted in [1, 16_383, 16_384, 16_385, 99_999] {
        let firsts = iteratee(move |mut io: Io<u32, Infallible>| async move {
            let mut last = None;
            for _ in 0..wanted {
                last = io.next().await;
            }
            last
        });
        let mut stream = from().pull();
        assert_eq!(stream.read(firsts).unwrap(), Some(wanted - 1));
        assert_eq!(stream.read(collect()).unwrap(), items[wanted as usize..]);
        let (yes, no) = split(vec![items.clone()], &vec![Deed::Next; wanted as usize]);
        assert_eq!((yes.len(), no.first()), (wanted as usize, Some(&wanted)));
        assert_eq!(no.len() + yes.len(), items.len());
    }
}

/// Many items are given back before the first one of a chunk, at a constant cost each.
#[test]
fn items_are_given_back_without_end() {
    let body = iteratee(|mut io: Io<u64, Infallible>| async move {
        assert_eq!(io.next().await, Some(7));
        (0..200_000).for_each(|number| io.unread(number));
        for number in (0..200_000).rev() {
            assert_eq!(io.next().await, Some(number));
        }
        io.next().await
    });
    assert_eq!((from_iter([7]) >> body).run(), None);
}

/// A body that takes three numbers.
fn three() -> Transducer<u64, u64, impl Transduce<u64, u64> + Clone> {
    transducer(|mut io: Io<u64, u64>| async move {
        for _ in 0..3 {
            let Some(number) = io.next().await else { return };
            io.put(number).await;
        }
    })
}

#[test]
fn single_items_reach_a_body_as_chunks() {
    let polls = AtomicUsize::new(0);
    let counted = transducer(|mut io: Io<u64, u64>| {
        let polls = &polls;
        async move {
            loop {
                let chunk = io.chunk().await;
                polls.fetch_add(1, Relaxed);
                if chunk.is_empty() {
                    return;
                }
                io.put_chunk(&chunk).await;
            }
        }
    });
    let odd = from_iter(0..10_000_u64) >> filter(|n: &u64| n % 2 == 1);
    assert_eq!((odd >> counted >> count()).run(), 5_000);
    assert!(polls.load(Relaxed) < 20, "{polls:?} chunks");
}

#[test]
fn single_items_reach_a_body_before_the_holder_goes_on() {
    let mut stage = (filter(|n: &u64| n % 2 == 1) >> three()).step();
    assert_eq!(stage.put_chunk(&[1, 2]), [1]);
    assert_eq!(stage.put_chunk(&[4]), [0; 0]);
    assert_eq!(stage.put_chunk(&[5, 7, 9]), [5, 7]);
    assert!(stage.is_finished());
    let mut sum = (filter(|n: &u64| n % 2 == 1) >> three() >> fold(0, |sum, n: &u64| *sum += n)).feed();
    assert!(sum.put(&1).is_continue());
    assert!(sum.put_chunk(&[2, 3]).is_continue());
    assert!(sum.put(&5).is_break());
    assert_eq!(sum.end(), 9);
}

#[test]
fn what_follows_from_a_chunk_comes_before_the_next_chunk_is_asked_for() {
    let taken = Cell::new(0);
    let number_of = |chunk: u64| {
        // Each chunk before this one has three items, of which two are odd.
        assert_eq!(taken.get(), 2 * chunk);
        [4 * chunk + 1, 4 * chunk + 2, 4 * chunk + 3]
    };
    let odd = || filter(|n: &u64| n % 2 == 1);
    let copies = || {
        transducer(|mut io: Io<u64, u64>| async move {
            while let Some(number) = io.next().await {
                io.put(number).await;
            }
        })
    };
    let sees = || {
        each_chunk(|chunk: &[u64]| {
            taken.set(taken.get() + chunk.len() as u64);
            Continue(())
        })
    };
    (from_chunks((0..9).map(number_of)) >> odd() >> copies() >> sees()).run();
    assert_eq!(taken.take(), 18);
    (from_chunks((0..9).map(number_of)) >> odd() >> (odd() >> copies() >> odd()) >> copies() >> sees()).run();
    assert_eq!(taken.take(), 18);
    let mut chunk = 0;
    let read = |block: &mut [u64]| {
        block.copy_from_slice(&number_of(chunk));
        chunk += 1;
        if chunk < 9 { 3 } else { 0 }
    };
    (from_fn(3, read) >> odd().boxed() >> copies().boxed() >> sees()).run();
    assert_eq!(taken.take(), 16);
    (from_chunks((0..9).map(number_of)).drain().named("source") >> odd() >> copies() >> sees()).run();
    assert_eq!(taken.take(), 18);
}

#[test]
fn a_drained_generator_is_run_to_its_end_behind_a_body_that_gathers() {
    let made = Cell::new(0);
    let source = || from_iter((0..5_000_u64).inspect(|_| made.set(made.get() + 1))).drain();
    // Few items pass, so that one pump of the generator does not fill a chunk for the body.
    let few = || filter(|n: &u64| n.is_multiple_of(16));
    assert_eq!((source() >> few() >> three() >> collect()).run(), [0, 16, 32]);
    assert_eq!(made.take(), 5_000);
    let mut pulled = (source() >> few() >> three()).pull();
    assert_eq!(pulled.read(collect()).unwrap(), [0, 16, 32]);
    assert_eq!(made.take(), 5_000);
}
