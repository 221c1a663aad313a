//! Every fault at every point of a pipeline of four stages: what is passed on, where the failure
//! is, and in which order the stages are given up.

use selvedge_pipeline::*;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// What a stage does at its fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Fails,
    Panics,
    /// It takes no more.
    Finishes,
    /// It fails when its input has ended.
    FailsAtTheEnd,
}

/// A stage that passes items on until its fault.
struct Faulty {
    name: &'static str,
    fault: Option<(Fault, u64)>,
    taken: u64,
    failure: Option<StageError>,
    ended: bool,
    log: Rc<RefCell<Vec<String>>>,
}

impl Faulty {
    fn new(name: &'static str, fault: Option<(Fault, u64)>, log: &Rc<RefCell<Vec<String>>>) -> Faulty {
        Faulty { name, fault, taken: 0, failure: None, ended: false, log: log.clone() }
    }

    fn fail(&mut self) -> Flow {
        let place = StreamPlace { items: self.taken, elements: self.taken };
        self.failure = Some(StageError::new(self.name, place, "a fault"));
        Break(())
    }

    /// Whether the item comes through.
    fn take(&mut self) -> Flow {
        assert!(!self.ended && self.failure.is_none(), "{} is fed after its end", self.name);
        match self.fault {
            Some((fault, at)) if at == self.taken => match fault {
                Fault::Fails => return self.fail(),
                Fault::Panics => panic!("a panic in {}", self.name),
                Fault::Finishes => {
                    self.ended = true;
                    return Break(());
                }
                Fault::FailsAtTheEnd => {}
            },
            _ => {}
        }
        self.taken += 1;
        Continue(())
    }

    fn end(&mut self) -> Flow {
        assert!(!self.ended && self.failure.is_none(), "{} is ended after its end", self.name);
        self.ended = true;
        self.log.borrow_mut().push(format!("end {}", self.name));
        match self.fault {
            Some((Fault::FailsAtTheEnd, _)) => self.fail(),
            _ => Continue(()),
        }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.log.borrow_mut().push(format!("drop {}", self.name));
    }
}

impl Transduce<u64, u64> for Faulty {
    fn put<S: Sink<u64>>(&mut self, item: &u64, out: &mut S) -> Flow {
        self.take()?;
        out.put(item)
    }

    fn end<S: Sink<u64>>(&mut self, _out: &mut S) -> Flow {
        Faulty::end(self)
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

struct CountingSource {
    stage: Faulty,
    made: Rc<Cell<u64>>,
}

/// How many items the source has.
const ITEMS: u64 = 4;

impl Generate<u64> for CountingSource {
    fn pump<S: Sink<u64>>(&mut self, out: &mut S) -> std::ops::ControlFlow<(), bool> {
        if self.stage.taken == ITEMS {
            let _ = self.stage.end();
            return Continue(false);
        }
        let item = self.stage.taken;
        if self.stage.take().is_break() {
            return Continue(false);
        }
        self.made.set(self.stage.taken);
        out.put(&item)?;
        Continue(true)
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure.as_ref()
    }
}

struct Consumer {
    stage: Faulty,
    items: Rc<RefCell<Vec<u64>>>,
}

impl Consume<u64> for Consumer {
    type Result = &'static str;

    fn put(&mut self, item: &u64) -> Flow {
        self.stage.take()?;
        self.items.borrow_mut().push(*item);
        Continue(())
    }

    fn finish(&mut self) -> Flow {
        if self.stage.ended || self.stage.failure.is_some() { Break(()) } else { self.stage.end() }
    }

    fn end(self) -> &'static str {
        "the result"
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure.as_ref()
    }
}

const NAMES: [&str; 4] = ["source", "second", "third", "consumer"];

#[test]
fn each_fault_stops_the_whole_pipeline_in_order() {
    let faults = [Fault::Fails, Fault::Panics, Fault::Finishes, Fault::FailsAtTheEnd];
    let mut runs = 0;
    for (stage, fault, at) in (0..4)
        .flat_map(|stage| faults.map(|fault| (stage, fault)))
        .flat_map(|(stage, fault)| (0..=ITEMS).map(move |at| (stage, fault, at)))
    {
        for nested in [false, true] {
            run(stage, fault, at, nested);
            runs += 1;
        }
    }
    assert_eq!(runs, 4 * 4 * 5 * 2);
}

fn run(stage: usize, fault: Fault, at: u64, nested: bool) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let (made, items) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let faulty = |index: usize| Faulty::new(NAMES[index], (stage == index).then_some((fault, at)), &log);
    let source = Generator::new(CountingSource { stage: faulty(0), made: made.clone() });
    let (second, third) = (Transducer::new(faulty(1)), Transducer::new(faulty(2)));
    let consumer = Iteratee::new(Consumer { stage: faulty(3), items: items.clone() });
    let result = catch_unwind(AssertUnwindSafe(|| match nested {
        false => (source >> second >> third >> consumer).try_run(),
        true => (source >> (second >> (third >> consumer))).try_run(),
    }));
    let what = format!("{fault:?} of {} at {at}, nested: {nested}", NAMES[stage]);
    // The fault of an item that does not come is none.
    let comes = fault == Fault::FailsAtTheEnd || at < ITEMS;
    // What went through all stages before the fault.
    let passed = if fault == Fault::FailsAtTheEnd { ITEMS } else { at.min(ITEMS) };
    assert_eq!(*items.borrow(), (0..passed).collect::<Vec<_>>(), "{what}");
    // The source is ahead by the one item at which a later stage has stopped.
    let ahead = u64::from(stage > 0 && comes && fault != Fault::FailsAtTheEnd);
    assert_eq!(made.get(), passed + ahead, "{what}");
    match result {
        Ok(Ok(result)) => {
            assert!(!comes || fault == Fault::Finishes, "{what}");
            assert_eq!(result, "the result");
        }
        Ok(Err(failure)) => {
            assert!(comes && matches!(fault, Fault::Fails | Fault::FailsAtTheEnd), "{what}");
            let place = (failure.stage(), failure.item(), failure.offset());
            assert_eq!(place, (NAMES[stage], passed + 1, passed), "{what}");
        }
        Err(panic) => {
            assert!(comes && fault == Fault::Panics, "{what}");
            assert_eq!(*panic.downcast::<String>().unwrap(), format!("a panic in {}", NAMES[stage]));
        }
    }
    let log = log.borrow();
    let of = |verb: &str| -> Vec<&str> {
        log.iter().filter_map(|entry| entry.strip_prefix(verb)?.strip_prefix(' ')).collect()
    };
    assert_eq!(of("drop"), NAMES, "{what}");
    // The stages after one that finishes are ended, and no stage after one that fails.
    let ended: &[&str] = match fault {
        _ if !comes => &NAMES,
        Fault::Finishes => &NAMES[stage + 1..],
        Fault::FailsAtTheEnd => &NAMES[..=stage],
        Fault::Fails | Fault::Panics => &[],
    };
    assert_eq!(of("end"), ended, "{what}");
}

#[test]
fn finalisers_run_in_order_after_each_end() {
    let order = |consumer: &dyn Fn(&u64) -> Result<(), &'static str>| {
        let log = RefCell::new(Vec::new());
        let say = |what: &'static str| {
            let log = &log;
            move || log.borrow_mut().push(what)
        };
        let told = finally(say("source"));
        let run = catch_unwind(AssertUnwindSafe(|| {
            let pipeline = from_iter(0..9) >> told >> finally(say("middle")) >> lift121(|n: &u64| *n);
            let pipeline = pipeline >> finally(say("sink")) >> try_fold((), |_: &mut (), n| consumer(n));
            let _ = pipeline.try_run();
            log.borrow_mut().push("result");
        }));
        if run.is_err() {
            log.borrow_mut().push("panic");
        }
        log.into_inner()
    };
    assert_eq!(order(&|_| Ok(())), ["source", "middle", "sink", "result"]);
    assert_eq!(
        order(&|n| if *n < 3 { Ok(()) } else { Err("three") }),
        ["source", "middle", "sink", "result"]
    );
    assert_eq!(order(&|_| panic!("at once")), ["source", "middle", "sink", "panic"]);
}

/// Fails at an item above 6.
fn small() -> Transducer<u64, u64, impl Transduce<u64, u64> + Clone> {
    try_lift121(|n: &u64| if *n <= 6 { Ok(*n) } else { Err("too large") })
}

#[test]
fn a_failure_comes_through_each_combinator() {
    let even = || satisfies(|n: &u64| n.is_multiple_of(2));
    fn failed<T: Transduce<u64, u64> + Clone>(stage: Transducer<u64, u64, T>) -> (String, Vec<u64>, bool) {
        let mut outcomes = [1, 2, 20].map(|length| {
            let mut fed = stage.clone().step();
            let mut made = Vec::new();
            for chunk in (0..20).collect::<Vec<u64>>().chunks(length) {
                made.extend_from_slice(fed.put_chunk(chunk));
            }
            made.extend_from_slice(fed.end());
            (fed.failure().expect("it fails").to_string(), made, fed.is_finished())
        });
        assert_eq!(outcomes[0], outcomes[1]);
        assert_eq!(outcomes[0], outcomes[2]);
        std::mem::take(&mut outcomes[0])
    }
    let told = |item: u64| format!("try_lift121: item {item}, offset {}: too large", item - 1);
    let after = || lift_stateful(|(): &mut (), n: &u64| [*n], |()| [99], ());
    assert_eq!(failed(small() >> after()), (told(8), (0..7).collect(), true));
    assert_eq!(failed(after() >> small()), (told(8), (0..7).collect(), true));
    assert_eq!(failed(small().named("small")).0, "small: item 8, offset 7: too large");
    assert_eq!(failed(if_then_else(even(), small(), id())), (told(5), (0..8).collect(), true));
    assert_eq!(failed(if_then_else(even(), id(), small()) >> after()), (told(4), (0..7).collect(), true));
    let ninth = "try_lift121: item 1, offset 0, in section 9 at offset 8: too large".to_string();
    assert_eq!(failed(foreach(even(), small(), id())), (ninth, (0..8).collect(), true));
    let doubled = while_(lift121(|n: &u64| n * 2) >> small(), satisfies(|n: &u64| (1..4).contains(n)));
    assert_eq!(failed(doubled >> small()).0, told(8));
    assert_eq!(
        failed(join_transduced(small(), id(), join::interleave())).1,
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    );
    assert_eq!(
        failed(join_transduced(id(), small(), join::concatenate()) >> after()).1,
        (0..20).chain(0..7).collect::<Vec<_>>()
    );
    let numbers = || from_iter(0..20) >> small();
    assert_eq!(failed(join_with(numbers(), join::zip_with(|a, b| a + b))).1, [0, 2, 4, 6, 8, 10, 12]);
    let both = join_generators(numbers(), naturals(), join::zip_with(|a, b| a + b));
    let mut pulled = (both >> after()).pull();
    let mut made = Vec::new();
    while let Some(chunk) = pulled.next_chunk() {
        made.extend_from_slice(chunk);
    }
    assert_eq!(made, [0, 2, 4, 6, 8, 10, 12]);
    assert_eq!(pulled.failure().unwrap().to_string(), told(8));
}

#[test]
fn a_source_that_fails_tells_how_far_it_came() {
    let mut reads = [Ok(3), Ok(2), Err("the disk is gone")].into_iter();
    let source = try_from_fn(4, move |block: &mut [u8]| {
        block.fill(b'x');
        reads.next().unwrap()
    });
    let failed = (source.named("disk") >> count()).try_run().unwrap_err();
    assert_eq!(failed.to_string(), "disk: item 6, offset 5: the disk is gone");
}

#[test]
#[should_panic = "a stage of a pipeline has failed: try_lift121: item 8, offset 7: too large"]
fn a_failure_that_the_caller_does_not_take_is_a_panic() {
    let _ = (from_iter(0..20) >> small()).collect();
}

#[test]
fn the_first_failure_of_the_stream_is_told() {
    // The record that is no number comes before the mistake in the form of a record. The parser has
    // gathered both records when it fails, or has passed on the first one before.
    let text = b"1,2\nx,3\n4\"\n";
    let number = || {
        try_lift121(|record: &csv::Fields| {
            String::from_utf8_lossy(record.get(0).unwrap_or_default()).parse::<u64>()
        })
        .named("number")
    };
    let add = |sum: &mut u64, record: &csv::Fields| {
        let number = String::from_utf8_lossy(record.get(0).unwrap_or_default()).parse::<u64>()?;
        *sum += number;
        Ok::<(), std::num::ParseIntError>(())
    };
    for length in 1..=text.len() {
        let chunks = || from_chunks(text.chunks(length));
        let failed = (chunks() >> csv::records(b',') >> number()).try_collect().unwrap_err();
        assert_eq!(failed.to_string(), "number: item 2, offset 1: invalid digit found in string");
        let boxed = DynStage::new(csv::records(b','))
            .then(DynStage::new(number() >> lift121(|number: &u64| Number::from(*number))))
            .unwrap();
        let failed = (chunks() >> boxed.transducer::<u8, Number>().unwrap()).try_collect().unwrap_err();
        assert_eq!(failed.stage(), "number", "in chunks of {length}");
        let failed = (chunks() >> csv::records(b',') >> try_fold(0, add)).try_run().unwrap_err();
        assert_eq!((failed.stage(), failed.item()), ("try_fold", 2), "in chunks of {length}");
        let failed = (csv::records(b',') >> try_fold(0, add)).feed();
        let failed = text.chunks(length).fold(failed, |mut feeding, chunk| {
            let _finished = feeding.put_chunk(chunk);
            feeding
        });
        assert_eq!(failed.try_end().unwrap_err().stage(), "try_fold", "in chunks of {length}");
    }
}

#[test]
fn the_section_of_a_failure_is_told_at_every_cut() {
    let text = b"10\n\n7\nx\n5";
    let number = || {
        let number = |line: &[u8]| String::from_utf8_lossy(line).parse::<u64>();
        group_by(line()) >> select(satisfies(|line: &[u8]| !line.is_empty())) >> try_lift121(number)
    };
    let place = |items, elements| Some(StreamPlace { items, elements });
    for length in 1..=text.len() {
        let chunks = || from_chunks(text.chunks(length));
        let failed = (chunks() >> located(whole_line(), number())).try_collect().unwrap_err();
        assert_eq!((failed.item(), failed.section()), (3, place(3, 6)), "in chunks of {length}");
        let each = foreach(whole_line(), number(), number());
        let failed = (chunks() >> each).try_collect().unwrap_err();
        assert_eq!((failed.item(), failed.section()), (1, place(3, 6)), "in chunks of {length}");
        // The outermost section is told, and at the end the last one.
        let wide = lift_stateful(|(): &mut (), _: &u8| None, |()| Some(b'9'), ());
        let small = || try_lift121(|byte: &u8| if *byte == b'9' { Err("a nine") } else { Ok(*byte) });
        let last = located(whole_line(), wide >> small());
        let failed = (chunks() >> last).try_collect().unwrap_err();
        assert_eq!((failed.item(), failed.section()), (1, place(4, 8)), "in chunks of {length}");
        let nested = located(everything(), foreach(whole_line(), number(), number()));
        let failed = (chunks() >> nested).try_collect().unwrap_err();
        assert_eq!(failed.section(), place(0, 0), "in chunks of {length}");
    }
}
