//! The program keeps the handle of an async step after the step has ended.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{GraphJob, OneByOne, Scheduler};
use selvedge_cnc::{AsyncStep, FaultCause, Graph, GraphError, ItemCol, Items, StepResult, graph};
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;

type Kept<'g> = Arc<Mutex<Option<AsyncStep<'g>>>>;

/// Adds a step "keep", which puts item 0 and keeps its handle, and has the environment run it.
fn keep<'g>(graph: &'g Graph<'g, '_>, items: ItemCol<'g, u32, u32>) -> Kept<'g> {
    let tags = graph.tags::<u32>("tags");
    let kept = Kept::default();
    let keeper = kept.clone();
    graph.prescribe_async(tags, "keep", move |n, step| {
        let kept = keeper.clone();
        async move {
            step.put(items, n, 10)?;
            *kept.lock().unwrap() = Some(step);
            Ok(())
        }
    });
    graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
    kept
}

const MESSAGE: &str = "the handle of an async step \"keep\" was used outside of the step";

fn text(end: thread::Result<()>) -> String {
    *end.unwrap_err().downcast::<String>().unwrap()
}

/// The later step has the memory of the step that has kept its handle, if both run on one worker.
fn used_by_a_later_step(scheduler: &dyn Scheduler, gets: bool) -> Vec<String> {
    graph(|graph| {
        let items = graph.items("items");
        let kept = keep(graph, items);
        graph.run(scheduler).unwrap();
        let later = graph.tags::<u32>("later");
        graph.prescribe_async(later, "later", move |_, step| {
            let kept = kept.clone();
            async move {
                let handle = kept.lock().unwrap().take().unwrap();
                // The item is missing, so a handle that is taken for this step's would wait.
                let result =
                    if gets { handle.get(items, 9).await.map(|_| ()) } else { handle.put(items, 1, 1) };
                drop(step);
                result
            }
        });
        graph.initialize(|env| env.put_tag(later, 5)).unwrap();
        let end = graph.run(scheduler).map(|_| ());
        let Err(GraphError::Failed(faults)) = end else { panic!("the later step fails: {end:?}") };
        faults.iter().map(ToString::to_string).collect()
    })
}

#[test]
fn a_later_step_is_not_taken_for_the_one_that_has_ended() {
    each(|name, scheduler| {
        for gets in [false, true] {
            let faults = used_by_a_later_step(scheduler, gets);
            assert_eq!(faults, [format!("step later(5) panicked: {MESSAGE}")], "{name}");
        }
    });
}

#[test]
fn a_handle_is_refused_by_the_environment_and_on_other_os_threads() {
    graph(|graph| {
        let items = graph.items("items");
        let kept = keep(graph, items);
        graph.run(&OneByOne).unwrap();
        let handle = kept.lock().unwrap().take().unwrap();
        let use_it = || catch_unwind(AssertUnwindSafe(|| handle.put(items, 1, 1).unwrap()));
        assert_eq!(text(use_it()), MESSAGE);
        let end = thread::scope(|scope| scope.spawn(use_it).join().unwrap());
        assert_eq!(text(end), MESSAGE);
        thread::scope(|scope| scope.spawn(|| drop(handle)).join().unwrap());
        graph.run(&OneByOne).unwrap().finalize(|view| {
            assert_eq!(view.get(items, 0), Some(&10));
            assert_eq!(view.get(items, 1), None);
        });
    });
}

/// The only get of the item belongs to the step that keeps its handle.
#[test]
fn a_counted_item_stays_until_an_async_step_drops_the_handle_of_its_get() {
    graph(|graph| {
        let (first, second) = (graph.tags::<u32>("first"), graph.tags::<u32>("second"));
        let texts = graph.items_in("texts", Items::<u32, String>::hashed().counted(|_| Some(1)));
        let kept = Kept::default();
        let (keeper, dropper) = (kept.clone(), kept);
        graph.prescribe_async(first, "keep", move |n, step| {
            let kept = keeper.clone();
            async move {
                assert_eq!(step.get(texts, n).await?, "selvedge");
                *kept.lock().unwrap() = Some(step);
                Ok(())
            }
        });
        graph.prescribe_async(second, "drop", move |_, _| {
            let kept = dropper.clone();
            async move {
                drop(kept.lock().unwrap().take());
                Ok(())
            }
        });
        let there = |tags| {
            graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
            graph.run(&OneByOne).unwrap().statistics().items[0].there
        };
        graph.initialize(|env| env.put(texts, 0, "selvedge".to_owned())).unwrap();
        assert_eq!(there(first), 1);
        assert_eq!(there(second), 0);
    });
}

/// What a panic carries, with a destructor that panics too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb is dropped");
    }
}

#[test]
#[cfg_attr(miri, ignore = "what the panic of a payload's destructor carries is leaked")]
fn the_payload_of_a_panic_may_panic_when_it_is_dropped() {
    each(|name, scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags::<u32>("tags");
            let missing = graph.items::<u32, u32>("missing");
            graph.prescribe(tags, "plain", |_, _| panic_any(Bomb));
            graph.prescribe_async(tags, "async", |_, _| async { panic_any(Bomb) });
            graph.prescribe(tags, "late", move |n, step| {
                step.get(missing, n).map_or_else(|_| panic_any(Bomb), |_| Ok(()))
            });
            graph.prescribe(tags, "put", move |n, step| step.put(missing, n, 1));
            graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            let end = graph.run(scheduler).map(|_| ());
            let Err(GraphError::Failed(faults)) = end else { panic!("{name}: six steps panic") };
            assert_eq!(faults.len(), 6, "{name}");
            assert!(faults.iter().all(|fault| matches!(fault.why(), FaultCause::Panicked(_))), "{name}");
        });
    });
}

/// A future that waits for item 0, and has given its handle away.
struct GivesAway<'g> {
    handle: Option<AsyncStep<'g>>,
    items: ItemCol<'g, u32, u32>,
    value: AtomicU32,
    _pinned: PhantomPinned,
}

/// The value of such a future that is pinned, and never dropped.
static PINNED: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

impl Future for GivesAway<'_> {
    type Output = StepResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StepResult> {
        PINNED.store(ptr::from_ref(&self.value).cast_mut(), Relaxed);
        // SAFETY: neither the value nor the future is moved.
        let handle = unsafe { self.get_unchecked_mut() };
        let (handle, items) = (handle.handle.take().unwrap(), handle.items);
        let mut get = handle.get(items, 0);
        assert!(Pin::new(&mut get).poll(cx).is_pending());
        mem::forget(get); // its drop would be a fault
        Poll::Pending
    }
}

/// Runs the steps that the environment has made ready, and forgets the steps that these make ready.
struct Forgets;

impl Scheduler for Forgets {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let mut worker = job.worker();
        job.start().into_iter().for_each(|ready| worker.run(ready));
        while let Some(ready) = worker.newest() {
            mem::forget(ready);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it leaks: run it with -Zmiri-ignore-leaks")]
fn a_pinned_future_that_is_never_dropped_keeps_its_memory() {
    let end = catch_unwind(|| {
        graph(|graph| {
            let (waits, puts) = (graph.tags::<u32>("waits"), graph.tags::<u32>("puts"));
            let items = graph.items::<u32, u32>("items");
            graph.prescribe_async(waits, "waits", move |_, handle| GivesAway {
                handle: Some(handle),
                items,
                value: AtomicU32::new(7),
                _pinned: PhantomPinned,
            });
            graph.prescribe(puts, "puts", move |n, step| step.put(items, n, n));
            graph
                .initialize(|env| {
                    env.put_tag(waits, 0)?;
                    env.put_tag(puts, 0)
                })
                .unwrap();
            let _ = graph.run(&Forgets);
        });
    });
    assert!(end.is_err(), "the scheduler has returned while a step is ready");
    // SAFETY: the value is pinned, and its destructor has not run, so its memory is there.
    assert_eq!(unsafe { &*PINNED.load(Relaxed) }.load(Relaxed), 7);
}
