//! Thunks in a region, under each engine.

use selvedge_lazy::{
    ClaimAtYield, Grey, GreyClaimAtYield, LazyList, LockFree, Nursery, OneCas, Region, Thunk, ThunkEntry,
    TwoCas, Unsynchronised,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

const MANY: u64 = if cfg!(miri) { 8 } else { 2_000 };

fn fibs<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.unfold((0, 1), |(a, b): (u64, u64)| Some((a, (b, a.wrapping_add(b)))))
}

/// A binary tree of thunks, summed.
fn tree<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, depth: u32) -> Thunk<'r, u64, E> {
    nursery.thunk(move |nursery| match depth {
        0 => 1,
        _ => {
            let (left, right) = (tree(nursery, depth - 1), tree(nursery, depth - 1));
            left.force(nursery) + right.force(nursery)
        }
    })
}

fn lists_and_trees<E: ThunkEntry>(region: &Region<E>) {
    let nursery = region.nursery();
    let list = fibs(&nursery);
    assert_eq!(list.get(&nursery).map(|_| ()), None);
    let tenth: Vec<u64> = list.iter(&nursery).take(10).collect();
    assert_eq!(tenth, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
    let squares = list.map(&nursery, |n| n * n).filter(&nursery, |n| n % 2 == 1);
    let sums = squares.zip_with(list, &nursery, |a, b| a + b);
    assert_eq!(sums.iter(&nursery).take(4).collect::<Vec<_>>(), [1, 2, 10, 27]);
    let depth = if cfg!(miri) { 2 } else { 12 };
    assert_eq!(tree(&nursery, depth).force(&nursery), 1 << depth);
    assert_eq!(nursery.ready(7u8).force(&nursery), 7);
    drop(nursery);
    let counts = region.counts();
    assert!(counts.evaluated >= (2 << depth) - 1);
    assert_eq!((counts.duplicates, counts.holes_met), (0, 0));
}

/// Results of which the bits might be taken for a mark of the thunk.
fn results_of_all_bits<E: ThunkEntry>(region: &Region<E>) {
    let nursery = region.nursery();
    let numbers = [0, 1, 2, 3, 5, u64::MAX, u64::MAX - 1, -0x6b8f_52d3i64 as u64];
    for number in numbers {
        let (made, ready) = (nursery.thunk(move |_| number), nursery.ready(number));
        assert_eq!(made.get(&nursery), None);
        assert_eq!([made.force(&nursery), made.force(&nursery), ready.force(&nursery)], [number; 3]);
        assert_eq!([made.get(&nursery), ready.get(&nursery)], [Some(number); 2]);
    }
    let bytes: &[u8; 4] = nursery.put([1, 2, 3, 4]);
    for byte in bytes {
        let (made, ready) = (nursery.thunk(move |_| byte), nursery.ready(byte));
        assert!(
            [made.force(&nursery), made.force(&nursery), ready.force(&nursery)].map(|at| *at) == [*byte; 3]
        );
    }
    let (pair, none) = (nursery.put((7u16, 8u16)), nursery.ready(None::<&u16>));
    let second = nursery.thunk(move |_| Some(&pair.1));
    assert_eq!((second.force(&nursery), second.get(&nursery)), (Some(&8), Some(Some(&8))));
    assert_eq!((none.force(&nursery), none.get(&nursery)), (None, Some(None)));
    let inner = nursery.thunk(|nursery| nursery.thunk(|_| 9u64));
    assert_eq!(inner.force(&nursery).force(&nursery), 9);
    assert_eq!(nursery.ready(inner).force(&nursery).force(&nursery).force(&nursery), 9);
}

fn a_panic_leaves_the_thunk_as_it_was<E: ThunkEntry>() {
    let attempts = AtomicUsize::new(0);
    let attempts = &attempts;
    let region = Region::<E>::new();
    let nursery = region.nursery();
    let thunk = nursery.thunk(move |nursery| {
        // Under an engine that claims at the end of a quantum, the thunk is claimed here.
        (0..2 * QUANTUM).for_each(|_| nursery.safe_point());
        assert!(attempts.fetch_add(1, Ordering::Relaxed) > 0, "the first time");
        5
    });
    assert!(catch_unwind(AssertUnwindSafe(|| thunk.force(&nursery))).is_err());
    assert_eq!((thunk.force(&nursery), attempts.load(Ordering::Relaxed)), (5, 2));
}

#[test]
fn each_engine_gives_results_of_all_bits() {
    Region::<Unsynchronised>::with(results_of_all_bits);
    results_of_all_bits(&Region::<LockFree>::new());
    results_of_all_bits(&Region::<ClaimAtYield>::new());
    results_of_all_bits(&Region::<Grey>::new());
    results_of_all_bits(&Region::<TwoCas>::new());
}

#[test]
fn each_engine_evaluates_lists_and_trees() {
    Region::<Unsynchronised>::with(lists_and_trees);
    lists_and_trees(&Region::<LockFree>::new());
    lists_and_trees(&Region::<ClaimAtYield>::new());
    lists_and_trees(&Region::<Grey>::new());
    lists_and_trees(&Region::<GreyClaimAtYield>::new());
    lists_and_trees(&Region::<OneCas>::new());
    lists_and_trees(&Region::<TwoCas>::new());
    a_panic_leaves_the_thunk_as_it_was::<LockFree>();
    a_panic_leaves_the_thunk_as_it_was::<ClaimAtYield>();
    a_panic_leaves_the_thunk_as_it_was::<Grey>();
    a_panic_leaves_the_thunk_as_it_was::<GreyClaimAtYield>();
    a_panic_leaves_the_thunk_as_it_was::<OneCas>();
    a_panic_leaves_the_thunk_as_it_was::<TwoCas>();
}

/// Two OS threads walk one list of which no cell is there.
fn two_walk_one_list<E: ThunkEntry>() -> u64
where
    Region<E>: Sync,
{
    let region = Region::<E>::new();
    let nursery = region.nursery();
    let list = nursery.unfold(0, |n| (n < MANY).then_some((n, n + 1)));
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let nursery = region.nursery();
                start.wait();
                assert_eq!(list.iter(&nursery).sum::<u64>(), MANY * (MANY - 1) / 2);
            });
        }
    });
    assert_eq!(list.iter(&nursery).count() as u64, MANY);
    let counts = region.counts();
    assert!(counts.evaluated > MANY);
    counts.evaluated - MANY - 1
}

#[test]
fn two_threads_walk_one_list_under_each_engine() {
    two_walk_one_list::<LockFree>();
    two_walk_one_list::<ClaimAtYield>();
    two_walk_one_list::<Grey>();
    two_walk_one_list::<GreyClaimAtYield>();
    assert_eq!(two_walk_one_list::<OneCas>(), 0, "a claimed thunk is evaluated once");
    assert_eq!(two_walk_one_list::<TwoCas>(), 0);
}

#[test]
fn a_just_once_thunk_runs_once_also_under_an_engine_without_claims() {
    for _ in 0..if cfg!(miri) { 1 } else { 200 } {
        let runs = AtomicUsize::new(0);
        let runs = &runs;
        let region = Region::<LockFree>::new();
        let nursery = region.nursery();
        let thunk = nursery.just_once(move |_| runs.fetch_add(1, Ordering::Relaxed) as u64 + 1);
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let nursery = region.nursery();
                    start.wait();
                    assert_eq!(thunk.force(&nursery), 1);
                });
            }
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

/// A thunk that finds itself in a place that is filled later.
fn knot<E: ThunkEntry>() {
    struct Place<'r, E: ThunkEntry>(OnceLock<Thunk<'r, u64, E>>);
    let region = Region::<E>::new();
    let place = Place(OnceLock::new());
    let nursery = region.nursery();
    // The place is read through a number, because it refers to the region that refers to it.
    let address = std::ptr::from_ref(&place).expose_provenance();
    let thunk = nursery.thunk(move |nursery| {
        // SAFETY: the place is there until this function returns, and is not moved.
        let found = unsafe { &*std::ptr::with_exposed_provenance::<Place<'_, E>>(address) };
        found.0.get().unwrap().force(nursery) + 1
    });
    place.0.set(thunk).ok().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| thunk.force(&nursery))).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("<<loop>>") && message.contains("suite/regions.rs:"), "{message}");
}

/// Thunks that find one another in places that are filled later.
struct Circle<'r, E: ThunkEntry>(Vec<OnceLock<Thunk<'r, u64, E>>>);

/// Each of two OS threads has entered a thunk, and needs that of the other.
fn circle_of_two<E: ThunkEntry>()
where
    Region<E>: Sync,
{
    let meet = Barrier::new(2);
    let meet = &meet;
    let region = Region::<E>::new();
    let places = Circle(vec![OnceLock::new(), OnceLock::new()]);
    // The places are read through a number, because they refer to the region that refers to them.
    let address = std::ptr::from_ref(&places).expose_provenance();
    let nursery = region.nursery();
    for mine in 0..2 {
        let thunk = nursery.just_once(move |nursery| {
            meet.wait();
            // SAFETY: the places are there until this function returns, and are not moved.
            let found = unsafe { &*std::ptr::with_exposed_provenance::<Circle<'_, E>>(address) };
            found.0[1 - mine].get().unwrap().force(nursery) + 1
        });
        places.0[mine].set(thunk).ok().unwrap();
    }
    let thunks: Vec<_> = places.0.iter().map(|place| *place.get().unwrap()).collect();
    let begun = Instant::now();
    let region = &region;
    let messages: Vec<String> = thread::scope(|scope| {
        let forcers = thunks.iter().map(|&thunk| {
            scope.spawn(move || {
                let force = AssertUnwindSafe(|| thunk.force(&region.nursery()));
                let payload = catch_unwind(force).unwrap_err();
                let text = payload.downcast_ref::<String>().cloned();
                text.unwrap_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).into())
            })
        });
        let forcers: Vec<_> = forcers.collect();
        forcers.into_iter().map(|forcer| forcer.join().unwrap()).collect()
    });
    // One finds the circle. The other finds that the thunk of the first has failed.
    let found = messages.iter().filter(|message| message.starts_with("<<loop>>"));
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{messages:?}");
    assert_eq!(found[0].matches("suite/regions.rs:").count(), 2, "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("has panicked")), "{messages:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn two_os_threads_find_a_circle_between_them_and_name_its_forces() {
    circle_of_two::<LockFree>();
    circle_of_two::<ClaimAtYield>();
    circle_of_two::<Grey>();
    circle_of_two::<GreyClaimAtYield>();
    circle_of_two::<OneCas>();
}

/// As [`circle_of_two`], of thunks that both OS threads may enter at the same moment.
fn circle_of_two_pure<E: ThunkEntry>()
where
    Region<E>: Sync,
{
    let region = Region::<E>::new();
    let places = Circle(vec![OnceLock::new(), OnceLock::new()]);
    let address = std::ptr::from_ref(&places).expose_provenance();
    let nursery = region.nursery();
    for mine in 0..2 {
        let thunk = nursery.thunk(move |nursery| {
            // SAFETY: as above.
            let found = unsafe { &*std::ptr::with_exposed_provenance::<Circle<'_, E>>(address) };
            found.0[1 - mine].get().unwrap().force(nursery) + 1
        });
        places.0[mine].set(thunk).ok().unwrap();
    }
    let thunks: Vec<_> = places.0.iter().map(|place| *place.get().unwrap()).collect();
    let (start, region) = (Barrier::new(2), &region);
    thread::scope(|scope| {
        for thunk in thunks {
            let start = &start;
            scope.spawn(move || {
                let nursery = region.nursery();
                start.wait();
                let payload = catch_unwind(AssertUnwindSafe(|| thunk.force(&nursery))).unwrap_err();
                let message = payload.downcast_ref::<String>().unwrap();
                assert!(message.starts_with("<<loop>>"), "{message}");
            });
        }
    });
}

#[test]
fn each_of_two_os_threads_in_one_circle_fails() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        circle_of_two_pure::<Grey>();
        circle_of_two_pure::<GreyClaimAtYield>();
        circle_of_two_pure::<OneCas>();
    }
}

#[test]
fn a_just_once_thunk_takes_what_its_closure_moves_and_fails_for_ever_after_a_panic() {
    fn under<E: ThunkEntry>() {
        let mut counts = [0u32; 2];
        let region = Region::<E>::new();
        let nursery = region.nursery();
        let [good, bad] = &mut counts;
        let sum = nursery.just_once(move |_| {
            *good += 1;
            *good
        });
        assert_eq!((sum.force(&nursery), sum.force(&nursery)), (1, 1));
        let fails = nursery.just_once(move |_| -> u32 {
            *bad += 1;
            std::panic::resume_unwind(Box::new(*bad));
        });
        let thrown = || catch_unwind(AssertUnwindSafe(|| fails.force(&nursery))).unwrap_err();
        assert_eq!(*thrown().downcast::<u32>().unwrap(), 1);
        for _ in 0..2 {
            assert!(thrown().downcast_ref::<&str>().unwrap().contains("has panicked"));
        }
        assert_eq!(fails.get(&nursery), None);
    }
    under::<LockFree>();
    under::<ClaimAtYield>();
    under::<Grey>();
    under::<GreyClaimAtYield>();
    under::<OneCas>();
    under::<TwoCas>();
}

#[test]
fn threads_in_direct_style_that_share_a_nursery_leave_their_thunks_in_any_order() {
    use selvedge_direct::{direct, spawn, wait, yield_now};
    selvedge_core::round_robin(direct(|| {
        let region: &'static Region<ClaimAtYield> = Box::leak(Box::new(Region::new()));
        let leaked: *mut Nursery<'static, ClaimAtYield> = Box::into_raw(Box::new(region.nursery()));
        // SAFETY: it is freed below, when no thread uses it any more.
        let nursery: &'static Nursery<'static, ClaimAtYield> = unsafe { &*leaked };
        let thread = |turns: u64| {
            spawn(move || {
                let thunk = nursery.thunk(move |nursery| {
                    (0..turns).for_each(|_| yield_now());
                    (0..QUANTUM).for_each(|_| nursery.safe_point());
                    turns
                });
                thunk.force(nursery)
            })
        };
        // The first ends before the second and after the third, and so on.
        let threads: Vec<_> = [2, 3, 1, 5, 4].map(thread).into();
        let sum: u64 = threads.into_iter().map(|thread| wait(thread).unwrap()).sum();
        assert_eq!(sum, 15);
        // A list of frames that had one of an ended thread would be read here.
        let after = nursery.thunk(|nursery| {
            (0..3 * QUANTUM).for_each(|_| nursery.safe_point());
            7u64
        });
        assert_eq!(after.force(nursery), 7);
        // SAFETY: as above. It asserts that no frame is left.
        drop(unsafe { Box::from_raw(leaked) });
    }))
    .unwrap();
}

#[test]
fn a_thread_in_direct_style_does_not_unwind_to_the_thunk_of_another() {
    use selvedge_direct::{direct, spawn, wait, yield_now};
    selvedge_core::round_robin(direct(|| {
        let region: &'static Region<ClaimAtYield> = Box::leak(Box::new(Region::new()));
        let nursery: &'static Nursery<'static, ClaimAtYield> = Box::leak(Box::new(region.nursery()));
        let shared = nursery.thunk(|_| {
            yield_now();
            5u64
        });
        let first = spawn(move || shared.force(nursery));
        yield_now();
        // Another OS thread updates the thunk that the first thread is in.
        let other = thread::spawn(move || {
            let nursery = region.nursery();
            selvedge_core::round_robin(direct(move || shared.force(&nursery))).unwrap()
        });
        assert_eq!(other.join().unwrap(), 5);
        // This thread looks at its frames, and finds none that is redundant.
        let mine = nursery.thunk(|nursery| {
            (0..QUANTUM).for_each(|_| nursery.safe_point());
            2u64
        });
        assert_eq!(mine.force(nursery), 2);
        assert_eq!(wait(first).unwrap(), 5);
    }))
    .unwrap();
}

#[test]
fn a_thunk_that_waits_in_direct_style_fails_with_the_reason_for_other_threads_there() {
    use selvedge_direct::{direct, spawn, wait, yield_now};
    let message = selvedge_core::round_robin(direct(|| {
        let region: &'static Region = Box::leak(Box::new(Region::new()));
        let thunk = region.nursery().thunk(|_| {
            yield_now();
            5u64
        });
        let first = spawn(move || thunk.force(&region.nursery()));
        yield_now();
        let second = catch_unwind(AssertUnwindSafe(|| thunk.force(&region.nursery()))).unwrap_err();
        assert_eq!(wait(first).unwrap(), 5);
        assert_eq!(thunk.force(&region.nursery()), 5);
        *second.downcast::<String>().unwrap()
    }));
    assert!(message.unwrap().contains("waits in direct style"));
}

#[test]
fn a_thunk_that_waits_in_direct_style_fails_with_the_reason_under_a_foreign_executor() {
    use selvedge_direct::{direct, wait};
    let region: &'static Region = Box::leak(Box::new(Region::new()));
    let (go, gone) = futures::channel::oneshot::channel::<u64>();
    // A closure that may be called again does not own the receiver.
    let gone: &'static _ = Box::leak(Box::new(std::sync::Mutex::new(Some(gone))));
    let thunk = region.nursery().thunk(move |_| {
        let gone = gone.lock().unwrap().take();
        wait(gone.expect("it is called once")).unwrap()
    });
    let first = direct(move || thunk.force(&region.nursery()));
    let second = direct(move || {
        let failed = catch_unwind(AssertUnwindSafe(|| thunk.force(&region.nursery()))).unwrap_err();
        go.send(5).unwrap();
        *failed.downcast::<String>().unwrap()
    });
    let (value, message) = futures::executor::block_on(futures::future::join(first, second));
    assert_eq!(value, 5);
    assert!(message.contains("<<loop>>") && message.contains("waits in direct style"), "{message}");
}

#[test]
fn a_thunk_that_needs_itself_is_found_where_holes_are_left() {
    knot::<ClaimAtYield>();
    knot::<Grey>();
    knot::<GreyClaimAtYield>();
    knot::<OneCas>();
    knot::<TwoCas>();
}

#[test]
fn a_hole_is_told_from_one_of_another_os_thread_also_by_a_nursery_of_another_region() {
    let meet = Barrier::new(2);
    let (first, second): (Region, Region) = (Region::new(), Region::new());
    let thunk = first.nursery().thunk(|_| {
        meet.wait();
        meet.wait();
        7
    });
    drop(second.nursery());
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(thunk.force(&first.nursery()), 7));
        meet.wait();
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            meet.wait();
        });
        assert_eq!(thunk.force(&second.nursery()), 7);
    });
}

/// The times that an OS thread has gone to sleep. The path is that of the thread below `/proc`.
#[cfg(target_os = "linux")]
fn sleeps(thread: &Path) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(thread).join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// The evaluation lasts until both OS threads that wait for it sleep.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "it reads a file of the kernel")]
fn an_os_thread_that_waits_sleeps_until_the_update() {
    let (meet, woken) = (Barrier::new(2), AtomicUsize::new(0));
    // Each waiter, and the times that it had slept before.
    let waiters: [OnceLock<(PathBuf, u64)>; 2] = [const { OnceLock::new() }; 2];
    let sleeps_now = |waiter: &OnceLock<(PathBuf, u64)>| {
        waiter.get().is_some_and(|(thread, before)| sleeps(thread) > *before)
    };
    let (meet, waiters) = (&meet, &waiters);
    let region: Region = Region::new();
    let thunk = region.nursery().thunk(move |_| {
        meet.wait();
        let limit = Instant::now() + Duration::from_secs(20);
        while !waiters.iter().all(sleeps_now) && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        7
    });
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(thunk.force(&region.nursery()), 7));
        meet.wait();
        for waiter in waiters {
            let (thunk, region, woken) = (&thunk, &region, &woken);
            scope.spawn(move || {
                let thread = std::fs::read_link("/proc/thread-self").unwrap();
                let before = sleeps(&thread);
                waiter.set((thread.clone(), before)).unwrap();
                assert_eq!(thunk.force(&region.nursery()), 7);
                woken.fetch_add(1, Ordering::Relaxed);
                let slept = sleeps(&thread) - before;
                assert!((1..100).contains(&slept), "it went to sleep {slept} times");
            });
        }
    });
    assert_eq!((woken.into_inner(), region.counts().holes_met), (2, 2));
}

#[test]
fn of_two_evaluations_within_one_another_each_wakes_those_that_wait_for_it() {
    let (meet, inner_is_there, outer) = (&Barrier::new(3), &Barrier::new(2), &AtomicUsize::new(0));
    let region: Region = Region::new();
    let nursery = region.nursery();
    let within = nursery.thunk(|_| {
        meet.wait();
        thread::sleep(Duration::from_millis(20));
        3
    });
    let around = nursery.thunk(move |nursery| {
        let inner = within.force(nursery);
        // Until the thread that waits for the inner thunk has it.
        inner_is_there.wait();
        outer.fetch_add(1, Ordering::Relaxed);
        inner + 1
    });
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(around.force(&region.nursery()), 4));
        scope.spawn(|| {
            meet.wait();
            assert_eq!(around.force(&region.nursery()), 4);
            assert_eq!(outer.load(Ordering::Relaxed), 1);
        });
        meet.wait();
        assert_eq!(within.force(&region.nursery()), 3);
        inner_is_there.wait();
    });
}

#[test]
fn an_os_thread_that_waits_evaluates_the_thunk_itself_after_a_panic() {
    let (meet, attempts) = (Barrier::new(2), AtomicUsize::new(0));
    let region: Region = Region::new();
    let thunk = region.nursery().thunk(|_| {
        if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            meet.wait();
            thread::sleep(Duration::from_millis(20));
            std::panic::resume_unwind(Box::new("the first time"));
        }
        7
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            let failed = catch_unwind(AssertUnwindSafe(|| thunk.force(&region.nursery())));
            assert_eq!(*failed.unwrap_err().downcast::<&str>().unwrap(), "the first time");
        });
        meet.wait();
        assert_eq!(thunk.force(&region.nursery()), 7);
    });
    assert_eq!((attempts.into_inner(), region.counts().holes_met), (2, 1));
}

const QUANTUM: u64 = Nursery::<'_, ClaimAtYield>::QUANTUM;

#[test]
fn no_duplicate_is_longer_than_a_quantum() {
    let depth = if cfg!(miri) { 3 } else { 13 };
    for _ in 0..if cfg!(miri) { 1 } else { 20 } {
        let meet = Barrier::new(2);
        let region = Region::<ClaimAtYield>::new();
        // Both OS threads are in it before either goes on.
        let root = region.nursery().thunk(|nursery| {
            meet.wait();
            tree(nursery, depth).force(nursery) + tree(nursery, depth).force(nursery)
        });
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(root.force(&region.nursery()), 2 << depth));
            }
        });
        let counts = region.counts();
        assert!(counts.duplicates > 0, "{counts:?}");
        assert!((1..=QUANTUM).contains(&counts.longest_duplicate), "{counts:?}");
    }
}

#[test]
fn an_evaluation_is_not_left_while_a_just_once_thunk_is_evaluated_in_it() {
    let (meet, is_claimed, runs) = (Barrier::new(2), Barrier::new(2), AtomicUsize::new(0));
    let end_quantum = |nursery: &Nursery<'_, ClaimAtYield>| (0..QUANTUM).for_each(|_| nursery.safe_point());
    let region = Region::<ClaimAtYield>::new();
    let once = region.nursery().just_once(|nursery| {
        let run = runs.fetch_add(1, Ordering::Relaxed) as u64;
        // Another OS thread claims the thunk that demands this one.
        is_claimed.wait();
        end_quantum(nursery);
        run + 5
    });
    let root = region.nursery().thunk(|nursery| {
        let claims = meet.wait().is_leader();
        if claims {
            end_quantum(nursery);
            is_claimed.wait();
        }
        let twice = once.force(nursery) * 2;
        if !claims {
            end_quantum(nursery);
            unreachable!("it has left");
        }
        twice
    });
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(root.force(&region.nursery()), 10));
        }
    });
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert!(region.counts().duplicates > 0);
}

#[test]
fn a_thunk_of_a_left_evaluation_is_evaluated_by_the_next_thread_that_needs_it() {
    let (meet, is_claimed) = (Barrier::new(2), Barrier::new(2));
    let end_quantum = |nursery: &Nursery<'_, ClaimAtYield>| (0..QUANTUM).for_each(|_| nursery.safe_point());
    let region = Region::<ClaimAtYield>::new();
    let leaver = AtomicUsize::new(0);
    // The OS thread that leaves claims this thunk in the same look.
    let inner = region.nursery().thunk(|nursery| {
        if leaver.swap(0, Ordering::Relaxed) == 1 {
            end_quantum(nursery);
            unreachable!("it has left");
        }
        3
    });
    let root = region.nursery().thunk(|nursery| {
        if meet.wait().is_leader() {
            end_quantum(nursery);
            leaver.store(1, Ordering::Relaxed);
            is_claimed.wait();
            // Until the other has left: `inner` is as it was.
            while leaver.load(Ordering::Relaxed) == 1 {
                thread::yield_now();
            }
        } else {
            is_claimed.wait();
        }
        inner.force(nursery) + 1
    });
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(root.force(&region.nursery()), 4));
        }
    });
    assert!(region.counts().longest_duplicate > 0);
}

#[test]
fn a_ready_thunk_has_its_value_whether_it_is_shared_or_not() {
    let region: Region = Region::new();
    let nursery = region.nursery();
    for number in -300..300i64 {
        assert_eq!(nursery.ready(number).force(&nursery), number);
        assert_eq!(nursery.ready(number as u8).get(&nursery), Some(number as u8));
    }
    assert_eq!(nursery.ready(None::<&u64>).force(&nursery), None);
    assert_eq!((nursery.ready(true).force(&nursery), nursery.ready(false).force(&nursery)), (true, false));
    let inner = nursery.thunk(|_| 7u64);
    assert_eq!(nursery.ready(inner).force(&nursery).force(&nursery), 7);
}
