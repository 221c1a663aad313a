//! A main thread that is not `Send` stays on the OS thread that started the scheduler, under every
//! scheduler, while the threads that it creates move.

use crate::naps::Naps;
use selvedge_core::{NoEvents, RunError, exit, sleep, spawn, spawn_local, yield_now};
use selvedge_sched::{WorkStealing, per_core, priority, round_robin_over};
use selvedge_sync::{Fifo, MVar};
use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{ThreadId, current};
use std::time::Duration;

type Main = Pin<Box<dyn Future<Output = Rc<RefCell<Vec<ThreadId>>>>>>;
type Run = fn(fn() -> Main) -> Vec<ThreadId>;

fn stealing<const WORKERS: usize>(main: fn() -> Main) -> Vec<ThreadId> {
    let ended = WorkStealing::new(WORKERS).run_pinned(|_| Ok(Naps::new()), main());
    let seen = ended.unwrap().take();
    assert_eq!(seen[0], current().id());
    seen
}

const SCHEDULERS: [Run; 6] = [
    |main| round_robin_over(&mut Naps::new(), main()).unwrap().take(),
    |main| priority(&mut Naps::new(), main()).unwrap().take(),
    |main| {
        let seen = per_core(2, |_| Ok(Naps::new()), |_| async move { main().await.take() }).unwrap();
        seen.into_iter().next().unwrap()
    },
    stealing::<1>,
    stealing::<2>,
    stealing::<4>,
];

/// Notes in what is not `Send` on which OS thread it runs, after each way to wait.
fn notes() -> Main {
    Box::pin(async {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let note = || seen.borrow_mut().push(current().id());
        note();
        let (asked, answered) = (Arc::new(Fifo::new()), Arc::new(MVar::empty()));
        let echo = spawn({
            let (asked, answered) = (asked.clone(), answered.clone());
            async move {
                while let Some(number) = asked.take().await {
                    answered.put(number).await;
                }
            }
        });
        let local = spawn_local({
            let seen = seen.clone();
            async move {
                for _ in 0..10 {
                    yield_now().await;
                    seen.borrow_mut().push(current().id());
                }
            }
        });
        for round in 0..if cfg!(miri) { 3 } else { 300 } {
            yield_now().await;
            note();
            // As many as make the others take some of them, and wake main from there.
            let children: Vec<_> = (0..40)
                .map(|number| {
                    spawn(async move {
                        yield_now().await;
                        number
                    })
                })
                .collect();
            for (number, child) in children.into_iter().enumerate() {
                assert_eq!(child.await.unwrap(), number);
                note();
            }
            asked.put(Some(round));
            assert_eq!(answered.take().await, round);
            note();
            if round % 50 == 0 {
                sleep(Duration::from_millis(1)).await;
                note();
            }
        }
        asked.put(None);
        echo.await.unwrap();
        local.await.unwrap();
        note();
        seen
    })
}

#[test]
fn it_stays_on_its_os_thread_under_every_scheduler() {
    for run in SCHEDULERS {
        let seen = run(notes);
        assert!(seen.len() > 100 && seen.iter().all(|id| *id == seen[0]), "{seen:?}");
    }
}

/// What says on which OS thread it is dropped.
struct Noting(Rc<Cell<Option<ThreadId>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.set(Some(current().id()));
    }
}

fn dropped_here(run: impl FnOnce(Noting)) {
    let dropped = Rc::new(Cell::new(None));
    run(Noting(dropped.clone()));
    assert_eq!(dropped.get(), Some(current().id()));
}

#[test]
fn however_it_ends_it_is_dropped_on_its_os_thread() {
    let scheduler = || WorkStealing::new(2);
    dropped_here(|noting| {
        let returned = scheduler().run_pinned(|_| Ok(Naps::new()), async { noting });
        drop(returned.unwrap());
    });
    dropped_here(|noting| {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            scheduler().run_pinned(|_| Ok(Naps::new()), async move {
                let _noting = noting;
                yield_now().await;
                std::panic::resume_unwind(Box::new("of main"))
            })
        }));
        let payload = panicked.map(|never: Result<(), _>| never.unwrap()).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"of main"));
    });
    dropped_here(|noting| {
        let exited = scheduler().run_pinned(|_| Ok(Naps::new()), async move {
            let _noting = noting;
            yield_now().await;
            exit().await;
        });
        assert!(matches!(exited.unwrap_err().error, RunError::MainExited));
    });
    dropped_here(|noting| {
        let failed = scheduler().run_pinned(
            |worker| if worker == 0 { Ok(NoEvents::new()) } else { Err(io::ErrorKind::OutOfMemory.into()) },
            async move {
                let _noting = noting;
                pending::<()>().await;
            },
        );
        assert_eq!(failed.unwrap_err().worker, 1);
    });
    dropped_here(|noting| {
        let failed =
            scheduler().run_pinned(|_| Err::<NoEvents, _>(io::ErrorKind::OutOfMemory.into()), async move {
                let _noting = noting;
            });
        assert!(matches!(failed.unwrap_err().error, RunError::Io(_)));
    });
}

#[test]
fn a_thread_that_moved_wakes_it_while_it_waits_alone() {
    let woken = WorkStealing::new(2).run_pinned(|_| Ok(Naps::new()), async {
        let here = Rc::new(current().id());
        let rounds = if cfg!(miri) { 3 } else { 200 };
        for _ in 0..rounds {
            let (flag, done) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
            let (sender, told) = (flag.clone(), done.clone());
            let other = spawn(async move {
                sender.put(()).await;
                told.take().await;
            });
            flag.take().await;
            done.put(()).await;
            other.await.unwrap();
            if *here != current().id() {
                return false;
            }
        }
        true
    });
    assert!(woken.unwrap());
}
