//! Random coroutines, against the paper's listings written down once more in the slow and obvious
//! way: a resumption is a boxed closure, and `resume` calls it.

use futures::executor::block_on;
use proptest::prelude::*;
use selvedge_coroutine::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// What the parts of a pipeline do, in the order in which they do it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Say,
    /// Yields the sum of what was awaited, and its own place.
    Yield,
    Await,
}

/// A coroutine with a name, which does the operations, and returns the sum of what it awaited.
#[derive(Debug, Clone)]
struct Script {
    name: char,
    ops: Vec<Op>,
}

/// The slow version: [Pipes, Listing 9] with the suspension of a transducer.
struct Slow(Box<dyn FnOnce() -> Left>);

/// What `resume` returns.
enum Left {
    Awaits(Box<dyn FnOnce(Option<i64>) -> Slow>),
    Yields(i64, Slow),
    /// `Right`: the results of the parts.
    Ends(Vec<i64>),
}

impl Slow {
    fn ret(results: Vec<i64>) -> Slow {
        Slow(Box::new(move || Left::Ends(results)))
    }

    fn resumed(left: Left) -> Slow {
        Slow(Box::new(move || left))
    }

    fn resume(self) -> Left {
        self.0()
    }
}

impl Script {
    fn slow(self, at: usize, sum: i64, log: Log) -> Slow {
        Slow(Box::new(move || match self.ops.get(at) {
            None => Left::Ends(vec![sum]),
            Some(Op::Say) => {
                log.say(format!("{} at {at}", self.name));
                self.slow(at + 1, sum, log).resume()
            }
            Some(Op::Yield) => Left::Yields(sum + at as i64, self.slow(at + 1, sum, log)),
            Some(Op::Await) => Left::Awaits(Box::new(move |value| {
                let sum = sum + value.unwrap_or(-1);
                self.slow(at + 1, sum, log)
            })),
        }))
    }

    fn generator<'a>(self, log: Log) -> Generator<'a, i64, i64> {
        Generator::new(|mut co| async move {
            for (at, op) in self.ops.into_iter().enumerate() {
                match op {
                    Op::Say => log.say(format!("{} at {at}", self.name)),
                    Op::Yield => co.yield_(at as i64).await,
                    Op::Await => unreachable!("a generator awaits nothing"),
                }
            }
            0
        })
    }

    fn iteratee<'a>(self, log: Log) -> Iteratee<'a, Option<i64>, i64> {
        Iteratee::new(|mut co: Co<Await<Option<i64>>>| async move {
            let mut sum = 0;
            for (at, op) in self.ops.into_iter().enumerate() {
                match op {
                    Op::Say => log.say(format!("{} at {at}", self.name)),
                    Op::Yield => unreachable!("an iteratee yields nothing"),
                    Op::Await => sum += co.await_().await.unwrap_or(-1),
                }
            }
            sum
        })
    }

    fn transducer<'a>(self, log: Log) -> Transducer<'a, i64, i64, i64> {
        Transducer::new(|mut co| async move {
            let mut sum = 0;
            for (at, op) in self.ops.into_iter().enumerate() {
                match op {
                    Op::Say => log.say(format!("{} at {at}", self.name)),
                    Op::Yield => co.yield_(sum + at as i64).await,
                    Op::Await => sum += co.await_().await.unwrap_or(-1),
                }
            }
            sum
        })
    }
}

/// [Pipes, Listing 11] `pipe2`.
fn slow_pipe2(g: Slow, i: Slow) -> (Vec<i64>, Vec<i64>) {
    let (g, i) = (g.resume(), i.resume());
    match (g, i) {
        (Left::Yields(a, c), Left::Awaits(f)) => slow_pipe2(c, f(Some(a))),
        (Left::Yields(_, c), Left::Ends(y)) => slow_pipe2(c, Slow::ret(y)),
        (Left::Ends(x), Left::Awaits(f)) => slow_pipe2(Slow::ret(x), f(None)),
        (Left::Ends(x), Left::Ends(y)) => (x, y),
        _ => unreachable!("a generator and an iteratee"),
    }
}

/// [Pipes, Listing 12] `=>=`.
fn slow_pipe(t1: Slow, t2: Slow) -> Slow {
    Slow(Box::new(move || {
        let (first, second) = (t1.resume(), t2.resume());
        match (first, second) {
            (Left::Awaits(s), c) => {
                Left::Awaits(Box::new(move |value| slow_pipe(s(value), Slow::resumed(c))))
            }
            (c, Left::Yields(b, s)) => Left::Yields(b, slow_pipe(Slow::resumed(c), s)),
            (Left::Yields(b, c1), Left::Awaits(f)) => slow_pipe(c1, f(Some(b))).resume(),
            (Left::Yields(_, c1), Left::Ends(y)) => slow_pipe(c1, Slow::ret(y)).resume(),
            (Left::Ends(x), Left::Awaits(f)) => slow_pipe(Slow::ret(x), f(None)).resume(),
            (Left::Ends(x), Left::Ends(y)) => Left::Ends([x, y].concat()),
        }
    }))
}

/// Feeds 100, 101, ..; after `count` of them, the end. Says what goes in and comes out.
fn drive_slow(mut slow: Slow, count: i64, log: &Log) -> Vec<i64> {
    let mut fed = 0;
    loop {
        slow = match slow.resume() {
            Left::Awaits(f) => {
                let value = (fed < count).then_some(100 + fed);
                fed += 1;
                log.say(format!("in {value:?}"));
                f(value)
            }
            Left::Yields(value, rest) => {
                log.say(format!("out {value}"));
                rest
            }
            Left::Ends(results) => return results,
        }
    }
}

async fn drive<R: Send>(mut transducer: Transducer<'_, i64, i64, R>, count: i64, log: &Log) -> R {
    let mut fed = 0;
    loop {
        transducer = match transducer.resume().await {
            Resumed::Suspended(Either::Left(demand)) => {
                let value = (fed < count).then_some(100 + fed);
                fed += 1;
                log.say(format!("in {value:?}"));
                demand.feed(value)
            }
            Resumed::Suspended(Either::Right((value, rest))) => {
                log.say(format!("out {value}"));
                rest
            }
            Resumed::Done(result) => return result,
        }
    }
}

fn script(name: char, ops: &'static [Op]) -> impl Strategy<Value = Script> {
    prop::collection::vec(prop::sample::select(ops), 0..8).prop_map(move |ops| Script { name, ops })
}

fn generator() -> impl Strategy<Value = Script> {
    script('g', &[Op::Say, Op::Yield])
}

fn iteratee() -> impl Strategy<Value = Script> {
    script('i', &[Op::Say, Op::Await])
}

fn transducer(name: char) -> impl Strategy<Value = Script> {
    script(name, &[Op::Say, Op::Yield, Op::Await])
}

proptest! {

    #[test]
    fn pipe2_is_that_of_listing_11(g in generator(), i in iteratee()) {
        let log = Log::default();
        let (x, y) = slow_pipe2(g.clone().slow(0, 0, log.clone()), i.clone().slow(0, 0, log.clone()));
        let slow_log = log.take();
        // The slow generator returns the sum of what it awaited: 0.
        prop_assert_eq!(&x, &[0]);
        let (x2, y2) = block_on(pipe2(g.generator(log.clone()), i.iteratee(log.clone())));
        prop_assert_eq!((x, y), (vec![x2], vec![y2]));
        prop_assert_eq!(log.take(), slow_log);
    }

    #[test]
    fn pipe1_is_pipe2_with_an_error_for_the_end(g in generator(), i in iteratee()) {
        let log = Log::default();
        let demand = i.ops.iter().filter(|op| matches!(op, Op::Await)).count();
        let supply = g.ops.iter().filter(|op| matches!(op, Op::Yield)).count();
        let consumer = || {
            let (i, log) = (i.clone(), log.clone());
            Iteratee::new(|mut co| async move {
                let mut sum = 0;
                for (at, op) in i.ops.into_iter().enumerate() {
                    match op {
                        Op::Say => log.say(format!("{} at {at}", i.name)),
                        _ => sum += co.await_().await,
                    }
                }
                sum
            })
        };
        let piped = || block_on(pipe1(g.clone().generator(log.clone()), consumer()));
        if demand <= supply {
            let results = piped();
            let pipe1_log = log.take();
            let with_pipe2 = block_on(pipe2(g.clone().generator(log.clone()), i.clone().iteratee(log.clone())));
            prop_assert_eq!(results, with_pipe2);
            prop_assert_eq!(pipe1_log, log.take());
        } else {
            let thrown = catch_unwind(AssertUnwindSafe(piped)).unwrap_err();
            prop_assert_eq!(thrown.downcast_ref::<&str>(), Some(&"The producer ended too soon."));
        }
    }

    #[test]
    fn transducers_compose_as_in_listing_12(
        a in transducer('a'), b in transducer('b'), c in transducer('c'), count in 0..6_i64,
    ) {
        let log = Log::default();
        let slow = |script: &Script| script.clone().slow(0, 0, log.clone());
        let results = drive_slow(slow_pipe(slow_pipe(slow(&a), slow(&b)), slow(&c)), count, &log);
        let slow_log = log.take();

        let of = |script: &Script| script.clone().transducer(log.clone());
        let ((x, y), z) = block_on(drive(of(&a) >> of(&b) >> of(&c), count, &log));
        prop_assert_eq!(vec![x, y, z], results.clone());
        prop_assert_eq!(log.take(), slow_log);

        let slow_right = drive_slow(slow_pipe(slow(&a), slow_pipe(slow(&b), slow(&c))), count, &log);
        let slow_log = log.take();
        prop_assert_eq!(&slow_right, &results);
        let (x, (y, z)) = block_on(drive(of(&a) >> (of(&b) >> of(&c)), count, &log));
        prop_assert_eq!(vec![x, y, z], slow_right);
        prop_assert_eq!(log.take(), slow_log);
    }

    #[test]
    fn no_trampoline_is_a_bounce_ahead(pauses in prop::collection::vec(0..5_usize, 0..7)) {
        let log = Log::default();
        let trampolines = || {
            let trampoline = |(number, pauses): (usize, &usize)| {
                let (log, pauses) = (log.clone(), *pauses);
                Trampoline::new(move |mut co| async move {
                    for bounce in 0..pauses {
                        log.say(format!("bounce {bounce} of {number}"));
                        co.pause().await;
                    }
                    log.say(format!("bounce {pauses} of {number}"));
                    number
                })
            };
            pauses.iter().enumerate().map(trampoline).collect::<Vec<_>>()
        };
        let mut expected = Vec::new();
        for bounce in 0..=4 {
            let bounces = pauses.iter().enumerate().filter(|(_, pauses)| bounce <= **pauses);
            expected.extend(bounces.map(|(number, _)| format!("bounce {bounce} of {number}")));
        }
        let numbers: Vec<usize> = (0..pauses.len()).collect();
        for interleaved in [
            interleave(trampolines()),
            interleave_by(Sequential, trampolines()),
            interleave_by(Concurrent, trampolines()),
        ] {
            prop_assert_eq!(&block_on(run(interleaved)), &numbers);
            prop_assert_eq!(&log.take(), &expected);
        }
    }

    #[test]
    fn each_binder_gives_the_same_results(g in generator(), i in iteratee()) {
        let log = Log::default();
        let sequential = block_on(pipe2(g.clone().generator(log.clone()), i.clone().iteratee(log.clone())));
        let steps = log.take();
        let piped = pipe2_by(Concurrent, g.clone().generator(log.clone()), i.clone().iteratee(log.clone()));
        prop_assert_eq!(block_on(piped), sequential);
        prop_assert_eq!(&log.take(), &steps);
        let piped = pipe2_by(Parallel, g.generator(log.clone()), i.iteratee(log.clone()));
        prop_assert_eq!(selvedge_core::round_robin(piped).unwrap(), sequential);
        // Each says the same as before; only the order between the two is free.
        let (mut parallel, mut steps) = (log.take(), steps);
        parallel.sort();
        steps.sort();
        prop_assert_eq!(parallel, steps);
    }

    #[test]
    fn the_laws_of_a_monad_hold(m in generator(), f in generator(), h in generator()) {
        let log = Log::default();
        let of = |script: &Script| {
            let (script, log) = (script.clone(), log.clone());
            move |sum: i64| script.generator(log).and_then(move |end| Generator::done(sum + end + 1))
        };
        let seen = |generator: Generator<'_, i64, i64>| (block_on(run_generator(generator)), log.take());
        // Left identity, right identity, associativity.
        prop_assert_eq!(seen(Generator::done(5).and_then(of(&f))), seen(of(&f)(5)));
        prop_assert_eq!(seen(of(&m)(0).and_then(Generator::done)), seen(of(&m)(0)));
        let (then_f, then_h) = (of(&f), of(&h));
        let right = of(&m)(0).and_then(move |x| then_f(x).and_then(then_h));
        prop_assert_eq!(seen(of(&m)(0).and_then(of(&f)).and_then(of(&h))), seen(right));
    }

    #[test]
    fn mapped_twice_is_mapped_once_by_both(m in generator()) {
        let log = Log::default();
        let of = || m.clone().generator(log.clone());
        let seen = |generator: Generator<'_, i64, i64>| (block_on(run_generator(generator)), log.take());
        prop_assert_eq!(seen(of().map_suspension(Times(1))), seen(of()));
        prop_assert_eq!(
            seen(of().map_suspension(Times(3)).map_suspension(Times(5))),
            seen(of().map_suspension(Times(15)))
        );
    }
}

/// Multiplies what a generator yields.
struct Times(i64);

impl Natural<Yield<i64>, Yield<i64>> for Times {
    fn apply<X: Send>(&self, (value, rest): (i64, X)) -> (i64, X) {
        (self.0 * value, rest)
    }
}
