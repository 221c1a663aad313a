//! A pipeline with a source, a thread that is ahead, a process and a target. If one of its parts
//! fails, panics or is cancelled, the source is closed before the pipeline gives its result, and
//! each part is dropped once.

use selvedge_core::{round_robin_over, spawn_local, yield_now};
use selvedge_flow::{FlowSource, FlowTarget, Source, Target, ahead, through};
use selvedge_io::EventLoop;
use selvedge_io::process::Command;
use selvedge_pipeline::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// How many chunks come.
const CHUNKS: u64 = 3;

/// How a part of the pipeline fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Fails,
    Panics,
    /// It waits for ever, and the pipeline is cancelled.
    Waits,
}

/// The call at which the fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FaultAt {
    Source(u64),
    /// The stages before the thread, after it, and after the process.
    Stage(usize, u64),
    FaultyTarget(u64),
    Finish,
    Nowhere,
}

#[derive(Clone)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn fault(fault: Fault) -> StageError {
    match fault {
        Fault::Fails => StageError::new("faulty", StreamPlace::default(), "as wished"),
        Fault::Panics => panic!("as wished"),
        Fault::Waits => std::future::pending().await,
    }
}

/// Says that it is dropped.
struct Says(Log, &'static str);

impl Drop for Says {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

struct Faulty {
    at: FaultAt,
    fault: Fault,
    come: u64,
    byte: [u8; 1],
    log: Log,
    _dropped: Says,
}

impl Source<u8> for Faulty {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        if self.at == FaultAt::Source(self.come) {
            return Err(fault(self.fault).await);
        }
        // A source that waits lets the threads downstream run.
        yield_now().await;
        self.come += 1;
        Ok((self.come <= CHUNKS).then_some(&self.byte))
    }

    async fn close(self) {
        yield_now().await;
        self.log.say("closed");
    }
}

struct FaultyTarget {
    at: FaultAt,
    fault: Fault,
    come: u64,
    log: Log,
    _dropped: Says,
}

impl Target<u8> for FaultyTarget {
    async fn put(&mut self, items: &mut Vec<u8>) -> Result<Flow, StageError> {
        for _ in items.drain(..) {
            if self.at == FaultAt::FaultyTarget(self.come) {
                return Err(fault(self.fault).await);
            }
            self.come += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn finish(&mut self) -> Result<(), StageError> {
        self.log.say("finishes");
        if self.at == FaultAt::Finish { Err(fault(self.fault).await) } else { Ok(()) }
    }
}

/// A stage that fails or panics at an item, and says when it is dropped.
fn stage(
    place: usize,
    at: FaultAt,
    how: Fault,
    says: Says,
) -> Transducer<u8, u8, impl Transduce<u8, u8> + Send> {
    let mut come = 0;
    try_lift121(move |byte: &u8| {
        let _kept = &says;
        come += 1;
        match (at == FaultAt::Stage(place, come - 1), how) {
            (false, _) => Ok(*byte),
            (true, Fault::Panics) => panic!("as wished"),
            (true, _) => Err("as wished"),
        }
    })
}

/// Runs the pipeline with the fault. Returns its result, the log at the moment of the result, and
/// the log at the end.
fn run(at: FaultAt, how: Fault) -> (Option<Result<(), String>>, Vec<String>, Vec<String>) {
    let log = Log(Arc::new(Mutex::new(Vec::new())));
    let (inner, seen) = (log.clone(), log.clone());
    let says = move |what| Says(inner.clone(), what);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let log = log.clone();
        let main = async move {
            let source = Faulty {
                at,
                fault: how,
                come: 0,
                byte: [b'a'],
                log: log.clone(),
                _dropped: says("source dropped"),
            };
            let target =
                FaultyTarget { at, fault: how, come: 0, log: log.clone(), _dropped: says("target dropped") };
            let pipeline = FlowSource::new(source)
                >> stage(0, at, how, says("stage 0 dropped"))
                >> ahead(1)
                >> stage(1, at, how, says("stage 1 dropped"))
                >> through(Command::new("cat"))
                >> stage(2, at, how, says("stage 2 dropped"))
                >> FlowTarget::new(target);
            let running = spawn_local(async move {
                let over = pipeline.run().await.map_err(|failure| failure.to_string());
                (over, log.all())
            });
            if how == Fault::Waits && at != FaultAt::Nowhere {
                for _ in 0..40 {
                    yield_now().await;
                }
                running.cancel();
                assert!(running.await.is_err());
                return None;
            }
            match running.await {
                Ok(over) => Some(over),
                Err(selvedge_core::JoinError::Panicked(panic)) => panic.rethrow(),
                Err(selvedge_core::JoinError::Cancelled) => None,
            }
        };
        round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
    }));
    let (result, then) = match ran {
        Ok(Some((over, then))) => (Some(over), then),
        Ok(None) | Err(_) => (None, Vec::new()),
    };
    (result, then, seen.all())
}

fn places() -> impl Iterator<Item = FaultAt> {
    let source = (0..=CHUNKS).map(FaultAt::Source);
    let stages = (0..3).flat_map(|place| (0..CHUNKS).map(move |item| FaultAt::Stage(place, item)));
    source.chain(stages).chain((0..CHUNKS).map(FaultAt::FaultyTarget)).chain([FaultAt::Finish])
}

const PARTS: [&str; 5] =
    ["source dropped", "stage 0 dropped", "stage 1 dropped", "stage 2 dropped", "target dropped"];

fn times(log: &[String], what: &str) -> usize {
    log.iter().filter(|said| *said == what).count()
}

#[test]
fn without_a_fault_the_source_is_closed_before_the_target_is_finished() {
    let (result, then, _) = run(FaultAt::Nowhere, Fault::Fails);
    assert_eq!(result, Some(Ok(())));
    let of_interest: Vec<&str> =
        then.iter().map(String::as_str).filter(|said| ["closed", "finishes"].contains(said)).collect();
    assert_eq!(of_interest, ["closed", "finishes"]);
}

#[test]
fn after_a_failure_at_any_place_the_source_is_closed_before_the_result() {
    for at in places() {
        let (result, then, end) = run(at, Fault::Fails);
        let failure = result.unwrap_or_else(|| panic!("{at:?} gave no result")).unwrap_err();
        assert!(failure.contains("as wished"), "{at:?}: {failure}");
        assert_eq!(times(&then, "closed"), 1, "{at:?}: {then:?}");
        // The stages before the thread and the process have ended with it.
        for part in &PARTS[..3] {
            assert_eq!(times(&then, part), 1, "{at:?}: {part}: {then:?}");
        }
        assert_eq!(times(&then, "finishes"), usize::from(at == FaultAt::Finish), "{at:?}");
        for part in PARTS {
            assert_eq!(times(&end, part), 1, "{at:?}: {part}: {end:?}");
        }
    }
}

#[test]
fn after_a_panic_at_any_place_each_part_is_dropped_once() {
    for at in places() {
        let (result, _, end) = run(at, Fault::Panics);
        assert_eq!(result, None, "{at:?}");
        for part in PARTS {
            assert_eq!(times(&end, part), 1, "{at:?}: {part}: {end:?}");
        }
    }
}

#[test]
fn a_pipeline_that_is_cancelled_at_any_place_drops_each_part_once() {
    for at in places().filter(|at| !matches!(at, FaultAt::Stage(..))) {
        let (result, _, end) = run(at, Fault::Waits);
        assert_eq!(result, None, "{at:?}");
        for part in PARTS {
            assert_eq!(times(&end, part), 1, "{at:?}: {part}: {end:?}");
        }
    }
}
