//! Sparks, joins and strategies, under several schedulers.

use selvedge_core::{NoEvents, in_thread, round_robin, spawn, yield_now};
use selvedge_direct::{direct, spawn as spawn_direct};
use selvedge_lazy::{
    Deep, Lazy, Strategy, in_turn, join, par, par_ahead, par_buffer, par_chunk, par_chunks, par_list,
    par_map, rdeepseq, rpar, rseq, spark_counts,
};
use selvedge_sched::work_stealing;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

const DEEP: u32 = if cfg!(miri) { 5 } else { 20 };
const FIB: u64 = if cfg!(miri) { 5 } else { 6765 };

const SPARKS: u64 = if cfg!(miri) { 8 } else { 500 };
const ROW: u64 = if cfg!(miri) { 4 } else { 100 };
const ITEMS: u32 = if cfg!(miri) { 6 } else { 100 };

fn on_workers<T: Send>(workers: usize, main: impl Future<Output = T> + Send + 'static) -> T {
    work_stealing(workers, |_| Ok(NoEvents::new()), main).unwrap()
}

#[test]
fn join_gives_both_results_everywhere() {
    assert_eq!(fib(DEEP), FIB, "outside of a scheduler");
    assert_eq!(round_robin(async { fib(DEEP) }).unwrap(), FIB);
    for &workers in if cfg!(miri) { &[2][..] } else { &[1, 2, 4] } {
        assert_eq!(on_workers(workers, async { fib(DEEP) }), FIB);
    }
}

#[test]
fn an_idle_worker_takes_the_second_half_of_a_long_step() {
    if cfg!(miri) {
        return;
    }
    let before = spark_counts().halves_taken;
    let both = on_workers(2, async {
        // Each half waits until the other has begun: one OS thread alone would wait for ever.
        let begun = [const { std::sync::atomic::AtomicBool::new(false) }; 2];
        let meet = |mine: usize| {
            begun[mine].store(true, std::sync::atomic::Ordering::Relaxed);
            let limit = Instant::now() + Duration::from_secs(20);
            while !begun[1 - mine].load(std::sync::atomic::Ordering::Relaxed) {
                assert!(Instant::now() < limit, "the other half has not begun");
                std::thread::yield_now();
            }
            fib(DEEP)
        };
        join(|| meet(0), || meet(1))
    });
    assert_eq!(both, (FIB, FIB));
    assert!(spark_counts().halves_taken > before);
}

#[test]
fn a_panic_of_either_half_comes_after_the_other_has_ended() {
    for workers in if cfg!(miri) { 2..3 } else { 1..3 } {
        on_workers(workers, async {
            for _ in 0..if cfg!(miri) { 1 } else { 100 } {
                let mut ended = false;
                let first = catch_unwind(AssertUnwindSafe(|| {
                    join(|| std::panic::resume_unwind(Box::new("first")), || fib(5));
                }));
                assert_eq!(*first.unwrap_err().downcast::<&str>().unwrap(), "first");
                let second = catch_unwind(AssertUnwindSafe(|| {
                    join(|| ended = true, || -> () { std::panic::resume_unwind(Box::new("second")) });
                }));
                assert_eq!(*second.unwrap_err().downcast::<&str>().unwrap(), "second");
                assert!(ended);
            }
        });
    }
}

#[test]
fn threads_in_direct_style_leave_their_joins_in_any_order() {
    let sum = round_robin(direct(|| {
        let threads: Vec<_> = (0..10u32)
            .map(|n| {
                spawn_direct(move || {
                    let wait = move || (0..n % 4).for_each(|_| selvedge_direct::yield_now());
                    let (a, b) = join(
                        || {
                            wait();
                            1
                        },
                        || 2,
                    );
                    a + b
                })
            })
            .collect();
        threads.into_iter().map(|thread| selvedge_direct::wait(thread).unwrap()).sum::<u32>()
    }));
    assert_eq!(sum.unwrap(), 30);
}

/// Whether this process has one test only, so that the counts of sparks are those of the test. If
/// not, runs the test in a process of its own.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "SPARK_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn each_spark_is_counted_as_what_became_of_it() {
    if !is_alone("sparks::each_spark_is_counted_as_what_became_of_it") {
        return;
    }
    const SLOTS: u64 = 4096;
    let runs = Arc::new(AtomicU64::new(0));
    let make = |count: u64| -> Vec<Lazy<u64>> {
        let value = |n| {
            let runs = runs.clone();
            Lazy::new(move || {
                runs.fetch_add(1, Ordering::Relaxed);
                n
            })
        };
        (0..count).map(value).collect()
    };
    let (many, few, outside) = (make(SLOTS + 5), make(10), make(1));
    round_robin(async move {
        // No other thread runs before this one yields.
        many.iter().for_each(par);
        for value in &many {
            value.force().await;
        }
        let limit = Instant::now() + Duration::from_secs(20);
        while spark_counts().fizzled < SLOTS {
            assert!(Instant::now() < limit, "{:?}", spark_counts());
            yield_now().await;
        }
        // This thread forces none of them.
        few.iter().for_each(par);
        while !few.iter().all(Lazy::is_ready) {
            assert!(Instant::now() < limit, "{:?}", spark_counts());
            yield_now().await;
        }
        few.iter().for_each(par);
    })
    .unwrap();
    outside.iter().for_each(par);
    let counts = spark_counts();
    assert_eq!((counts.created, counts.converted, counts.fizzled), (SLOTS + 10, 10, SLOTS), "{counts:?}");
    assert_eq!((counts.overflowed, counts.dud, counts.halves_taken), (5 + 1, 10, 0), "{counts:?}");
    assert_eq!(runs.load(Ordering::Relaxed), SLOTS + 5 + 10);
}

#[test]
fn what_an_os_thread_outside_of_a_scheduler_sparks_or_joins_stays_there() {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let elsewhere = std::thread::spawn(move || {
        on_workers(2, async move {
            while !stopped.load(Ordering::Relaxed) {
                // A converter is there all the time.
                let spark = Lazy::new(|| 1);
                par(&spark);
                join(|| (), || ());
                yield_now().await;
            }
        });
    });
    let value = Lazy::new(|| 7);
    for _ in 0..if cfg!(miri) { 1 } else { 30 } {
        let pause = || std::thread::sleep(Duration::from_millis(1));
        // Within a step `force_blocking` panics.
        let sparked = Lazy::new({
            let value = value.clone();
            move || value.map(|n| n * 2).force_blocking() + u64::from(in_thread())
        });
        par(&sparked);
        let ((), joined) = join(pause, || value.map(|n| n * 3).force_blocking() + u64::from(in_thread()));
        assert_eq!((*sparked.force_blocking(), joined), (14, 21));
    }
    stop.store(true, Ordering::Relaxed);
    elsewhere.join().unwrap();
}

#[test]
fn each_value_of_a_spark_is_made_once_also_if_it_is_forced_at_once() {
    let before = spark_counts();
    let runs = Arc::new(AtomicU64::new(0));
    let counter = runs.clone();
    let sum = on_workers(2, async move {
        let value = |n| {
            let runs = counter.clone();
            Lazy::new(move || {
                runs.fetch_add(1, Ordering::Relaxed);
                n
            })
        };
        let values: Vec<_> = (0..SPARKS).map(value).collect();
        values.iter().for_each(par);
        let mut sum = 0;
        for value in &values {
            yield_now().await;
            sum += value.force().await;
        }
        values.iter().for_each(par);
        sum
    });
    assert_eq!(sum, SPARKS * (SPARKS - 1) / 2);
    assert_eq!(runs.load(Ordering::Relaxed), SPARKS);
    let now = spark_counts();
    assert!(now.dud - before.dud >= SPARKS);
    assert!(now.created + now.overflowed - before.created - before.overflowed >= SPARKS);
}

#[test]
fn a_sparked_body_may_wait_and_may_need_other_sparked_values() {
    for workers in if cfg!(miri) { 2..3 } else { 1..3 } {
        let total = on_workers(workers, async {
            let mut row = vec![Lazy::ready(1u64)];
            for _ in 0..ROW {
                let before = row.last().unwrap().clone();
                row.push(Lazy::future(async move {
                    yield_now().await;
                    (before.force().await + 1) % 1000
                }));
            }
            row.iter().rev().for_each(par);
            let forcers: Vec<_> =
                row.into_iter().map(|value| spawn(async move { *value.force().await })).collect();
            let mut total = 0;
            for forcer in forcers {
                total += forcer.await.unwrap();
            }
            total
        });
        assert_eq!(total, (1..=ROW + 1).sum::<u64>());
    }
}

#[test]
fn maps_keep_the_order_for_each_grain() {
    let items: Vec<u32> = (0..ITEMS).collect();
    let expected: Vec<u32> = items.iter().map(|n| n * 2).collect();
    for grain in [1, 3, ITEMS as usize, 1000] {
        let items = items.clone();
        assert_eq!(on_workers(2, async move { par_map(&items, grain, |n| n * 2) }), expected);
    }
    let numbers: Vec<u32> = (0..10).collect();
    assert_eq!(par_chunks(&numbers, 3, |chunk| chunk.len()), [3, 3, 3, 1]);
    assert_eq!(par_map(&[], 5, |n: &u32| *n), []);
}

#[test]
fn a_buffer_keeps_the_order_and_ends() {
    let all = on_workers(2, async {
        let mut buffer = par_buffer(0..ITEMS, 4, |n| n + 1);
        let mut all = Vec::new();
        while let Some(n) = buffer.next().await {
            all.push(n);
        }
        all
    });
    assert_eq!(all, (1..=ITEMS).collect::<Vec<_>>());
}

#[test]
fn strategies_are_values() {
    round_robin(async {
        let nested: Vec<_> = (0..10u32).map(|n| Lazy::new(move || vec![Lazy::new(move || n)])).collect();
        par_list(rpar).apply(&nested).await;
        par_list(rseq).apply(&nested).await;
        assert!(nested.iter().all(|outer| outer.get().is_some_and(|inner| !inner[0].is_ready())));
        par_list(rdeepseq).apply(&nested).await;
        assert!(nested.iter().all(|outer| outer.get().unwrap()[0].is_ready()));
        (Some(nested[0].clone()), String::from("weft")).deep().await;
    })
    .unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn a_list_is_sparked_ahead_as_far_as_the_count_says() {
    if !is_alone("sparks::a_list_is_sparked_ahead_as_far_as_the_count_says") {
        return;
    }
    for (ahead, sparks) in [(0, 0), (1, 9), (3, 9), (usize::MAX, 9)] {
        round_robin(async move {
            let values: Vec<_> = (0..10).map(|n| Lazy::new(move || n)).collect();
            let before = spark_counts();
            par_ahead(ahead, rseq).apply(&values).await;
            let now = spark_counts();
            assert_eq!((now.created - before.created, now.dud - before.dud), (sparks, 0), "{ahead}");
            assert!(values.iter().all(Lazy::is_ready));
        })
        .unwrap();
    }
}

/// Alone, because a converter of another run may evaluate values before this thread yields.
#[test]
fn strategies_of_lists_are_made_of_others() {
    if !cfg!(miri) && !is_alone("sparks::strategies_of_lists_are_made_of_others") {
        return;
    }
    let count = if cfg!(miri) { 5 } else { 100u64 };
    round_robin(async move {
        let fresh = || -> Vec<Lazy<u64>> { (0..count).map(|n| Lazy::new(move || n)).collect() };
        let ready = |values: &[Lazy<u64>]| values.iter().filter(|value| value.is_ready()).count() as u64;
        // Nothing is evaluated before this thread yields; then all, and not by this thread.
        let chunked = fresh();
        let grain = count as usize / 3 + 1;
        par_chunk(grain, rseq).apply(&chunked).await;
        assert_eq!(ready(&chunked), 0);
        let limit = Instant::now() + Duration::from_secs(20);
        while ready(&chunked) < count {
            assert!(Instant::now() < limit, "{} of {count}", ready(&chunked));
            yield_now().await;
        }
        let in_order = fresh();
        par_ahead(3, rseq).apply(&in_order).await;
        assert_eq!(ready(&in_order), count);
        // What lies ahead is sparked: `rpar` for each would leave the last ones too.
        let first = fresh();
        in_turn(par_list(rpar), par_list(rseq)).apply(&first).await;
        assert_eq!(ready(&first), count);
    })
    .unwrap();
}

#[test]
fn a_grain_of_0_is_refused_by_its_name() {
    use selvedge_lazy::InPieces;
    let items = [1_u8];
    let refused: [&dyn Fn(); 4] = [
        &|| drop(par_map(&items, 0, |n| *n)),
        &|| drop(par_chunks(&[], 0, |chunk: &[u8]| chunk.len())),
        &|| drop(items.in_pieces(0).map(|n| *n)),
        &|| _ = par_chunk(0, rseq),
    ];
    for call in refused {
        let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        let text = payload.downcast_ref::<&str>().unwrap();
        assert!(text.starts_with("the grain is 0: "), "{text}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn what_sparks_have_captured_is_dropped_at_the_end_of_their_run() {
    if !is_alone("sparks::what_sparks_have_captured_is_dropped_at_the_end_of_their_run") {
        return;
    }
    let captured = Arc::new(());
    let spark_many = || {
        let captured = captured.clone();
        async move {
            for _ in 0..4095 {
                let captured = captured.clone();
                par(&Lazy::new(move || drop(captured)));
            }
        }
    };
    round_robin(spark_many()).unwrap();
    assert_eq!(Arc::strong_count(&captured), 1, "one OS thread");
    on_workers(2, spark_many());
    assert_eq!(Arc::strong_count(&captured), 1, "two workers");
    std::thread::spawn({
        let many = spark_many();
        move || round_robin(many).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(Arc::strong_count(&captured), 1, "an OS thread that has ended");
}

/// A run that hires a converter, keeps it from looking, and ends when the other OS thread has come
/// to the barrier twice.
fn run_with_a_converter(turns: &'static Barrier) {
    round_robin(async {
        par(&Lazy::new(|| 0));
        turns.wait();
        // No yield comes before the end, so the converter does not begin.
        turns.wait();
    })
    .unwrap();
    turns.wait();
}

/// Sparks of values that are counted when they are evaluated, and that are not kept.
fn spark_counted(number: u64, evaluated: &Arc<AtomicU64>) {
    for _ in 0..number {
        let evaluated = evaluated.clone();
        par(&Lazy::new(move || _ = evaluated.fetch_add(1, Ordering::Relaxed)));
    }
}

/// Yields until the count is there. No thread forces a value meanwhile.
async fn wait_for(count: u64, evaluated: &AtomicU64) {
    let limit = Instant::now() + Duration::from_secs(20);
    while evaluated.load(Ordering::Relaxed) < count {
        assert!(Instant::now() < limit, "{evaluated:?} of {count}");
        yield_now().await;
    }
}

#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn the_end_of_a_run_leaves_the_sparks_of_another() {
    if !is_alone("sparks::the_end_of_a_run_leaves_the_sparks_of_another") {
        return;
    }
    static TURNS: Barrier = Barrier::new(2);
    let first = std::thread::spawn(|| run_with_a_converter(&TURNS));
    TURNS.wait();
    let evaluated = Arc::new(AtomicU64::new(0));
    let counter = evaluated.clone();
    round_robin(async move {
        spark_counted(4000, &counter);
        TURNS.wait();
        // Now the first run ends. Its scheduler may step its converter some times before that.
        TURNS.wait();
        assert!(counter.load(Ordering::Relaxed) < 4000);
        wait_for(4000, &counter).await;
    })
    .unwrap();
    first.join().unwrap();
    assert_eq!((evaluated.load(Ordering::Relaxed), Arc::strong_count(&evaluated)), (4000, 1));
}

/// A run ends while another one has a converter.
#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn the_sparks_of_a_run_go_with_it_also_where_another_has_a_converter() {
    if !is_alone("sparks::the_sparks_of_a_run_go_with_it_also_where_another_has_a_converter") {
        return;
    }
    static TURNS: Barrier = Barrier::new(2);
    let first = std::thread::spawn(|| run_with_a_converter(&TURNS));
    TURNS.wait();
    let evaluated = Arc::new(AtomicU64::new(0));
    let counter = evaluated.clone();
    // The scheduler may step its converter some times after the end of main.
    round_robin(async move { spark_counted(4000, &counter) }).unwrap();
    assert!(evaluated.load(Ordering::Relaxed) < 4000);
    assert_eq!(Arc::strong_count(&evaluated), 1);
    TURNS.wait();
    TURNS.wait();
    first.join().unwrap();
}

/// Both runs push into the ring of one OS thread.
#[test]
fn a_run_within_a_step_of_another_drops_its_own_sparks_alone() {
    let [outer, inner] = [0; 2].map(|_| Arc::new(AtomicU64::new(0)));
    let (of_outer, of_inner) = (outer.clone(), inner.clone());
    round_robin(async move {
        for round in 1..3 {
            spark_counted(2, &of_outer);
            let counter = of_inner.clone();
            round_robin(async move { spark_counted(1, &counter) }).unwrap();
            assert_eq!(Arc::strong_count(&of_inner), 2, "the inner run is over");
            spark_counted(1, &of_outer);
            wait_for(3 * round, &of_outer).await;
        }
    })
    .unwrap();
    assert_eq!((outer.load(Ordering::Relaxed), Arc::strong_count(&outer)), (6, 1));
    assert_eq!(Arc::strong_count(&inner), 1);
}

/// Runs overlap at random, on as many OS threads. No run forces a value, so one that loses a spark
/// does not end.
#[test]
fn no_run_among_many_loses_a_spark() {
    const RUNS: u64 = if cfg!(miri) { 2 } else { 200 };
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            std::thread::spawn(move || {
                for run in 0..RUNS {
                    let evaluated = Arc::new(AtomicU64::new(0));
                    let counter = evaluated.clone();
                    let (count, is_awaited) = (1 + (thread + run) % 3, (thread + run) % 2 == 0);
                    let main = async move {
                        spark_counted(count, &counter);
                        if is_awaited {
                            wait_for(count, &counter).await;
                        }
                    };
                    if run % 8 == 0 {
                        on_workers(2, main)
                    } else {
                        round_robin(main).unwrap()
                    }
                    // A converter of another run may be evaluating one.
                    let limit = Instant::now() + Duration::from_secs(20);
                    while Arc::strong_count(&evaluated) > 1 {
                        assert!(Instant::now() < limit, "a spark has outlived its run");
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
