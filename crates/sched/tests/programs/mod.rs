//! The programs that run under every scheduler. `suite/every_scheduler.rs` beside this directory
//! runs them under the schedulers of this crate, and the test of the same name in `selvedge-sim`
//! under the simulated scheduler, which stands above this crate.

use crate::schedulers::{Scheduler, run};
use proptest::prelude::*;
use selvedge_core::{
    JoinError, RunError, SleepUntil, catch, exit, fork, nbio, park, shield, sleep, spawn, spawn_local, throw,
    yield_now,
};
use selvedge_direct::{direct, wait};
use selvedge_sched::{Handle, Spawned, block_on};
use selvedge_sync::{Fifo, MVar};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

const MANY: usize = if cfg!(miri) { 20 } else { 10_000 };

/// Counts how often a guard of it is dropped.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Guard(Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn tree(depth: u32) -> Boxed<u64> {
    Box::pin(async move {
        if depth == 0 {
            return 1;
        }
        let branches: Vec<_> = (0..3).map(|_| spawn(tree(depth - 1))).collect();
        let mut leaves = 0;
        for branch in branches {
            leaves += branch.await.unwrap();
        }
        leaves
    })
}

pub(crate) fn a_tree_of_threads_is_joined(scheduler: Scheduler) {
    let depth = if cfg!(miri) { 2 } else { 8 };
    assert_eq!(run(scheduler, tree(depth)).unwrap(), 3u64.pow(depth));
}

pub(crate) fn a_panic_in_an_action_is_its_threads_alone(scheduler: Scheduler) {
    let drops = Drops::default();
    let ended = drops.clone();
    let lives = run(scheduler, async move {
        let acts = |guard: Guard| async move {
            let _guard = guard;
            nbio(|| {
                if true {
                    throw("of the action")
                }
            })
            .await;
        };
        let joined = spawn(acts(drops.guard()));
        drop(spawn(acts(drops.guard())));
        fork(acts(drops.guard())).await;
        let within = spawn(async { catch(nbio(|| throw(7))).await.map(|never: ()| never) });
        let Err(JoinError::Panicked(panic)) = joined.await else { panic!("it has a result") };
        assert_eq!(panic.downcast::<&str>().unwrap(), "of the action");
        assert_eq!(within.await.unwrap().unwrap_err().downcast::<i32>().unwrap(), 7);
        while drops.count() < 3 {
            yield_now().await;
        }
        "it lives"
    });
    assert_eq!((lives.unwrap(), ended.count()), ("it lives", 3));
}

/// Panics when it is woken, and when it is dropped.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("as it should, when it is woken");
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("as it should, when it is dropped");
        }
    }
}

pub(crate) fn a_foreign_waker_that_panics_harms_no_other_thread(scheduler: Scheduler) {
    // Polls the sleep once, with a waker that panics when it is woken and when it is dropped.
    fn polled(mut sleep: Pin<Box<SleepUntil>>) -> Pin<Box<SleepUntil>> {
        let waker = std::mem::ManuallyDrop::new(Waker::from(Arc::new(Panics)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(std::mem::ManuallyDrop::into_inner(waker))));
        assert!(dropped.is_ok(), "the event source has one");
        sleep
    }
    let lives = run(scheduler, async {
        let other = spawn(async {
            sleep(Duration::from_millis(30)).await;
            "it lives"
        });
        drop(spawn(async {
            // The loop wakes the waker of the first sleep, and drops the waker of the second sleep,
            // which is given up.
            let rings = polled(Box::pin(sleep(Duration::from_millis(5))));
            drop(polled(Box::pin(sleep(Duration::from_millis(10)))));
            sleep(Duration::from_millis(100)).await;
            drop(rings);
        }));
        other.await.unwrap()
    });
    assert_eq!(lives.unwrap(), "it lives");
}

pub(crate) fn threads_that_yield_all_come_to_their_end(scheduler: Scheduler) {
    let (threads, yields) = if cfg!(miri) { (5, 5) } else { (1_000, 100) };
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    run(scheduler, async move {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let steps = steps.clone();
                spawn(async move {
                    for _ in 0..yields {
                        steps.fetch_add(1, Ordering::Relaxed);
                        yield_now().await;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.unwrap();
        }
    })
    .unwrap();
    assert_eq!(counted.load(Ordering::Relaxed), threads * yields);
}

pub(crate) fn a_value_goes_round_a_ring(scheduler: Scheduler) {
    let (members, laps) = if cfg!(miri) { (3, 3) } else { (50, 200) };
    let end = run(scheduler, async move {
        let ring: Arc<Vec<MVar<u64>>> = Arc::new((0..members).map(|_| MVar::empty()).collect());
        for me in 1..members {
            let ring = ring.clone();
            fork(async move {
                loop {
                    let value = ring[me].take().await;
                    ring[(me + 1) % members].put(value + 1).await;
                }
            })
            .await;
        }
        let mut value = 0;
        for _ in 0..laps {
            ring[1].put(value + 1).await;
            value = ring[0].take().await;
        }
        value
    });
    assert_eq!(end.unwrap(), members as u64 * laps);
}

pub(crate) fn ten_thousand_threads_wait_and_are_woken(scheduler: Scheduler) {
    let woken = run(scheduler, async {
        let (gate, done) = (Arc::new(MVar::empty()), Arc::new(Fifo::new()));
        for _ in 0..MANY {
            let (gate, done) = (gate.clone(), done.clone());
            fork(async move {
                gate.take().await;
                done.put(());
            })
            .await;
        }
        for _ in 0..MANY {
            gate.put(()).await;
        }
        let mut woken = 0;
        for _ in 0..MANY {
            done.take().await;
            woken += 1;
        }
        woken
    });
    assert_eq!(woken.unwrap(), MANY);
}

pub(crate) fn a_panic_reaches_the_joiner_and_no_other_thread(scheduler: Scheduler) {
    run(scheduler, async {
        let before = spawn(async { 1 });
        let failing = spawn(async {
            yield_now().await;
            throw("a thread's own")
        });
        let after = spawn(async {
            yield_now().await;
            2
        });
        let Err(JoinError::Panicked(exception)) = failing.await else { panic!("it ended otherwise") };
        assert_eq!(exception.downcast::<&str>().unwrap(), "a thread's own");
        assert_eq!(before.await.unwrap() + after.await.unwrap(), 3);
    })
    .unwrap();
}

pub(crate) fn a_panic_of_main_goes_on(scheduler: Scheduler) {
    let drops = Drops::default();
    let guard = drops.guard();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        run(scheduler, async move {
            drop(spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await
            }));
            yield_now().await;
            throw("main's")
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"main's"));
    assert_eq!(drops.count(), 1);
}

pub(crate) fn a_cancelled_thread_runs_its_destructors(scheduler: Scheduler) {
    let drops = Drops::default();
    let counted = drops.clone();
    run(scheduler, async move {
        for round in 0..if cfg!(miri) { 5 } else { 200 } {
            let guard = drops.guard();
            let thread = spawn(async move {
                let _guard = guard;
                match round % 3 {
                    0 => std::future::pending().await,
                    1 => sleep(Duration::from_secs(3600)).await,
                    _ => loop {
                        yield_now().await;
                    },
                }
            });
            if round % 2 == 0 {
                yield_now().await;
            }
            thread.cancel();
            assert!(matches!(thread.await, Err(JoinError::Cancelled)));
            assert_eq!(drops.count(), round + 1);
        }
    })
    .unwrap();
    assert_eq!(Arc::strong_count(&counted.0), 1);
}

pub(crate) fn a_shielded_thread_is_cancelled_when_it_leaves_the_shield(scheduler: Scheduler) {
    run(scheduler, async {
        let (inside, goes_on) = (Arc::new(MVar::empty()), Arc::new(AtomicBool::new(false)));
        let (says, reached) = (inside.clone(), goes_on.clone());
        let thread = spawn(async move {
            shield(async {
                says.put(()).await;
                yield_now().await;
                reached.store(true, Ordering::SeqCst);
            })
            .await;
            std::future::pending::<()>().await
        });
        inside.take().await;
        thread.cancel();
        assert!(matches!(thread.await, Err(JoinError::Cancelled)));
        assert!(goes_on.load(Ordering::SeqCst));
    })
    .unwrap();
}

const LEFT: usize = if cfg!(miri) { 12 } else { 400 };

pub(crate) fn what_is_left_when_main_ends_is_cancelled(scheduler: Scheduler) {
    let drops = Drops::default();
    let given = drops.clone();
    run(scheduler, async move {
        let never = Arc::new(MVar::<()>::empty());
        for kind in 0..LEFT {
            let (guard, never) = (given.guard(), never.clone());
            let left = async move {
                let _guard = guard;
                match kind % 4 {
                    0 => never.take().await,
                    1 => sleep(Duration::from_secs(3600)).await,
                    2 => std::future::pending().await,
                    _ => loop {
                        yield_now().await;
                    },
                }
            };
            if kind % 3 == 0 { drop(spawn(left)) } else { fork(left).await }
        }
        let guard = given.guard();
        drop(spawn_local(async move {
            let _guard = guard;
            std::future::pending::<()>().await
        }));
        yield_now().await;
    })
    .unwrap();
    assert_eq!(drops.count(), LEFT + 1);
}

pub(crate) fn exit_ends_a_thread_and_main_without_a_result(scheduler: Scheduler) {
    let ended = run(scheduler, async {
        let thread = spawn(async {
            exit().await;
        });
        assert!(matches!(thread.await, Err(JoinError::Cancelled)));
        exit().await;
    });
    assert!(matches!(ended, Err(RunError::MainExited)), "{ended:?}");
}

pub(crate) fn os_threads_wake_threads(scheduler: Scheduler) {
    let rounds = if cfg!(miri) { 3 } else { 50 };
    run(scheduler, async move {
        let threads: Vec<_> = (0..4)
            .map(|me| {
                spawn(async move {
                    for round in 0..rounds {
                        let woken = Arc::new(AtomicBool::new(false));
                        while !woken.load(Ordering::Acquire) {
                            let woken = woken.clone();
                            park(move |waker| {
                                std::thread::spawn(move || {
                                    if (me + round) % 3 == 0 {
                                        std::thread::sleep(Duration::from_micros(200));
                                    }
                                    woken.store(true, Ordering::Release);
                                    waker.wake();
                                });
                            })
                            .await;
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.unwrap();
        }
    })
    .unwrap();
}

pub(crate) fn os_threads_create_threads(scheduler: Scheduler) {
    let rounds = if cfg!(miri) { 3 } else { 50 };
    let kept = Arc::new(());
    let (inside, outlived) = (kept.clone(), Arc::new(MVar::empty()));
    let late = outlived.clone();
    run(scheduler, async move {
        assert!(Handle::current().is_some());
        let outside: Vec<_> = (0..3)
            .map(|_| {
                let here = Handle::current().unwrap();
                std::thread::spawn(move || {
                    for n in 0..rounds {
                        let spawned = here.spawn(async move {
                            yield_now().await;
                            n
                        });
                        assert_eq!(block_on(spawned).unwrap(), n);
                    }
                    let panics = here.spawn(async { std::panic::resume_unwind(Box::new("as it should")) });
                    assert!(matches!(block_on::<Spawned<()>>(panics), Err(JoinError::Panicked(_))));
                    let cancelled = here.spawn(std::future::pending::<()>());
                    cancelled.cancel();
                    assert!(matches!(block_on(cancelled), Err(JoinError::Cancelled)));
                })
            })
            .collect();
        for outside in outside {
            while !outside.is_finished() {
                sleep(Duration::from_micros(50)).await;
            }
            outside.join().unwrap();
        }
        // Whether the scheduler creates this thread before it ends or never, the future is dropped.
        drop(Handle::current().unwrap().spawn(async move {
            std::future::pending::<()>().await;
            drop(inside);
        }));
        late.put(Handle::current().unwrap()).await;
    })
    .unwrap();
    assert_eq!(Arc::strong_count(&kept), 1);
    let handle = outlived.try_take().unwrap();
    assert!(matches!(block_on(handle.spawn(async {})), Err(JoinError::Cancelled)), "the scheduler has ended");
}

pub(crate) fn a_foreign_channel_carries_values_in_and_out(scheduler: Scheduler) {
    use futures::channel::mpsc;
    use futures::{SinkExt, StreamExt};
    let n = if cfg!(miri) { 10 } else { 2_000 };
    let (mut there, mut outside) = mpsc::channel::<u32>(3);
    let (mut back, mut here) = mpsc::channel::<u32>(3);
    let echo = std::thread::spawn(move || {
        selvedge_sched::block_on(async {
            while let Some(value) = outside.next().await {
                back.send(value).await.unwrap();
            }
        })
    });
    let sum = run(scheduler, async move {
        let send = spawn(async move {
            for value in 0..n {
                there.send(value).await.unwrap();
            }
        });
        let mut sum = 0;
        while let Some(value) = here.next().await {
            sum += value;
        }
        send.await.unwrap();
        sum
    });
    assert_eq!(sum.unwrap(), (0..n).sum::<u32>());
    echo.join().unwrap();
}

pub(crate) fn threads_sleep_and_time_goes_on_however_many_are_ready(scheduler: Scheduler) {
    run(scheduler, async {
        for _ in 0..8 {
            fork(async {
                loop {
                    yield_now().await;
                }
            })
            .await;
            drop(spawn_local(async {
                loop {
                    yield_now().await;
                }
            }));
        }
        // Two threads that wake one another, so that one of them is always ready, must not starve
        // the others either.
        let ball = Arc::new((MVar::empty(), MVar::empty()));
        for side in 0..2 {
            let ball = ball.clone();
            fork(async move {
                loop {
                    let (from, to) = if side == 0 { (&ball.0, &ball.1) } else { (&ball.1, &ball.0) };
                    let value: u32 = from.take().await;
                    to.put(value).await;
                }
            })
            .await;
        }
        ball.0.put(1).await;
        let sleepers: Vec<_> = (1..4).map(|ms| spawn(sleep(Duration::from_millis(ms)))).collect();
        for sleeper in sleepers {
            sleeper.await.unwrap();
        }
        let local = spawn_local(async {
            sleep(Duration::from_millis(1)).await;
            yield_now().await;
        });
        local.await.unwrap();
    })
    .unwrap();
}

pub(crate) fn a_local_thread_stays_on_its_os_thread(scheduler: Scheduler) {
    run(scheduler, async {
        let threads: Vec<_> = (0..if cfg!(miri) { 2 } else { 20 })
            .map(|_| {
                spawn(async {
                    let (home, shared) = (std::thread::current().id(), Rc::new(()));
                    let local = spawn_local(async move {
                        for _ in 0..20 {
                            yield_now().await;
                            assert_eq!(std::thread::current().id(), home);
                        }
                        drop(shared);
                    });
                    local.await.unwrap();
                })
            })
            .collect();
        for thread in threads {
            thread.await.unwrap();
        }
    })
    .unwrap();
}

pub(crate) fn threads_in_direct_style_block_like_ordinary_code(scheduler: Scheduler) {
    if cfg!(miri) {
        return; // Miri cannot switch stacks.
    }
    let sum = run(scheduler, async {
        let (asked, answered) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
        let (questions, answers) = (asked.clone(), answered.clone());
        let server = spawn(async move {
            let server = spawn_local(direct(move || {
                for _ in 0..100 {
                    let question: u64 = wait(questions.take());
                    wait(yield_now());
                    wait(answers.put(2 * question));
                }
            }));
            server.await.unwrap();
        });
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (asked, answered) = (asked.clone(), answered.clone());
                spawn(async move {
                    let client = spawn_local(direct(move || {
                        let mut sum = 0;
                        for question in 0..25 {
                            wait(asked.put(question));
                            if question % 5 == client {
                                wait(sleep(Duration::from_micros(100)));
                            }
                            sum += wait(answered.take());
                        }
                        sum
                    }));
                    client.await.unwrap()
                })
            })
            .collect();
        let mut sum = 0;
        for client in clients {
            sum += client.await.unwrap();
        }
        server.await.unwrap();
        sum
    });
    assert_eq!(sum.unwrap(), 4 * 2 * (0..25).sum::<u64>());
}

pub(crate) fn a_cancelled_thread_in_direct_style_unwinds_its_stack(scheduler: Scheduler) {
    if cfg!(miri) {
        return; // Miri cannot switch stacks.
    }
    let drops = Drops::default();
    let counted = drops.clone();
    run(scheduler, async move {
        let never = Arc::new(MVar::<()>::empty());
        for round in 0..40 {
            let (guard, never) = (drops.guard(), never.clone());
            let thread = spawn_local(direct(move || {
                let _guard = guard;
                match round % 4 {
                    0 => wait(std::future::pending()),
                    1 => wait(sleep(Duration::from_secs(3600))),
                    2 => wait(never.take()),
                    _ => loop {
                        wait(yield_now());
                    },
                }
            }));
            for _ in 0..round % 3 {
                yield_now().await;
            }
            thread.cancel();
            assert!(matches!(thread.await, Err(JoinError::Cancelled)));
            assert_eq!(drops.count(), round + 1);
        }
    })
    .unwrap();
    assert_eq!(counted.count(), 40);
}

pub(crate) fn a_panic_in_direct_style_reaches_the_thread_that_joins(scheduler: Scheduler) {
    if cfg!(miri) {
        return; // Miri cannot switch stacks.
    }
    let drops = Drops::default();
    let guard = drops.guard();
    run(scheduler, async move {
        let failing = spawn_local(direct(move || {
            let _guard = guard;
            wait(yield_now());
            throw("a stack's own");
        }));
        let after = spawn_local(direct(|| {
            wait(yield_now());
            2
        }));
        let Err(JoinError::Panicked(exception)) = failing.await else { panic!("it ended otherwise") };
        assert_eq!(exception.downcast::<&str>().unwrap(), "a stack's own");
        assert_eq!(after.await.unwrap(), 2);
    })
    .unwrap();
    assert_eq!(drops.count(), 1);
}

/// An action of a thread of a random program.
#[derive(Debug, Clone)]
enum Act {
    Yield,
    Nap,
    Work,
    /// Adds one to the count, by one of the `Ways`.
    Tell(usize),
    Spawn(Vec<Act>),
    SpawnLocal(Vec<Act>),
    /// Spawns a thread in direct style.
    SpawnDirect(Vec<Act>),
    /// Spawns a thread, and joins it before the next act.
    Call(Vec<Act>),
    /// Spawns a thread, and cancels it at once: the thread may have told nothing yet, or a part.
    Abandon,
}

/// The acts of a thread; `with_direct`, some of the threads are in direct style.
fn acts(with_direct: bool) -> impl Strategy<Value = Vec<Act>> {
    let leaf = prop_oneof![
        3 => Just(Act::Yield),
        1 => Just(Act::Nap),
        1 => Just(Act::Work),
        4 => (0..3usize).prop_map(Act::Tell),
        1 => Just(Act::Abandon),
    ];
    let spawn_direct = if with_direct { Act::SpawnDirect } else { Act::SpawnLocal };
    let act = leaf.prop_recursive(4, 60, 6, move |act| {
        let acts = proptest::collection::vec(act, 0..6);
        prop_oneof![
            acts.clone().prop_map(Act::Spawn),
            acts.clone().prop_map(Act::SpawnLocal),
            acts.clone().prop_map(spawn_direct),
            acts.prop_map(Act::Call),
        ]
    });
    proptest::collection::vec(act, 0..8)
}

fn tellings(acts: &[Act]) -> usize {
    acts.iter()
        .map(|act| match act {
            Act::Tell(_) => 1,
            Act::Spawn(acts) | Act::SpawnLocal(acts) | Act::SpawnDirect(acts) | Act::Call(acts) => {
                tellings(acts)
            }
            _ => 0,
        })
        .sum()
}

/// The ways by which the threads of a random program tell their values.
#[derive(Default)]
struct Ways {
    fifo: Fifo<()>,
    var: MVar<()>,
    slow: MVar<()>,
}

fn perform(acts: Vec<Act>, ways: Arc<Ways>) -> Boxed<()> {
    Box::pin(async move {
        for act in acts {
            match act {
                Act::Yield => yield_now().await,
                Act::Nap => sleep(Duration::from_micros(50)).await,
                Act::Work => drop((0..1000).map(std::hint::black_box).sum::<u32>()),
                Act::Tell(0) => ways.fifo.put(()),
                Act::Tell(1) => ways.var.put(()).await,
                Act::Tell(_) => ways.slow.put(()).await,
                Act::Spawn(acts) => drop(spawn(perform(acts, ways.clone()))),
                Act::SpawnLocal(acts) => drop(spawn_local(perform(acts, ways.clone()))),
                Act::SpawnDirect(acts) => {
                    let ways = ways.clone();
                    drop(spawn_local(direct(move || {
                        acts.into_iter().for_each(|act| wait(perform(vec![act], ways.clone())));
                    })));
                }
                Act::Call(acts) => spawn(perform(acts, ways.clone())).await.unwrap(),
                Act::Abandon => {
                    let thread = spawn(std::future::pending::<()>());
                    thread.cancel();
                    assert!(matches!(thread.await, Err(JoinError::Cancelled)));
                }
            }
        }
    })
}

pub(crate) fn random_programs_deliver_every_value_once(scheduler: Scheduler) {
    random_programs(scheduler, false);
}

pub(crate) fn random_programs_in_direct_style_deliver_every_value_once(scheduler: Scheduler) {
    if cfg!(miri) {
        return; // Miri cannot switch stacks.
    }
    random_programs(scheduler, true);
}

fn random_programs(scheduler: Scheduler, with_direct: bool) {
    let cases = if cfg!(miri) { 2 } else { 40 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(acts in acts(with_direct))| {
        let expected = tellings(&acts);
        let told = run(scheduler, async move {
            let ways = Arc::new(Ways::default());
            let told = Arc::new(MVar::empty());
            for way in 0..3 {
                let (ways, told) = (ways.clone(), told.clone());
                fork(async move {
                    loop {
                        match way {
                            0 => ways.fifo.take().await,
                            1 => ways.var.take().await,
                            _ => {
                                yield_now().await;
                                ways.slow.take().await
                            }
                        }
                        told.put(()).await;
                    }
                })
                .await;
            }
            drop(spawn(perform(acts, ways)));
            for _ in 0..expected {
                told.take().await;
            }
            // A value too many would mostly have come by now.
            for _ in 0..20 {
                yield_now().await;
            }
            assert!(told.try_take().is_none());
            expected
        });
        prop_assert_eq!(told.unwrap(), expected);
    });
}
