//! All interleavings of two threads that force thunks of a region: entry, update, holes, and the
//! claim at the end of a quantum, with at most three preemptions.

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_lazy::{
    ClaimAtYield, Grey, GreyClaimAtYield, LockFree, Nursery, OneCas, Region, RegionCounts, Thunk, ThunkEntry,
    TwoCas,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(f);
}

/// Two threads force the thunk that `make` gives; gives what they see, and the counts.
fn by_two<E: ThunkEntry>(
    make: impl FnOnce(&Nursery<'static, E>) -> Thunk<'static, u64, E>,
) -> ([u64; 2], RegionCounts)
where
    Region<E>: Sync,
{
    let memory = Box::into_raw(Box::new(Region::<E>::new()));
    // SAFETY: the region is freed below, when both threads have ended and no thunk is used.
    let region: &'static Region<E> = unsafe { &*memory };
    let thunk = make(&region.nursery());
    let other = thread::spawn(move || thunk.force(&region.nursery()));
    let mine = thunk.force(&region.nursery());
    let both = [mine, other.join().unwrap()];
    let counts = region.counts();
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(memory) });
    (both, counts)
}

/// A thunk that needs another one.
fn two_thunks<E: ThunkEntry>(nursery: &Nursery<'static, E>) -> Thunk<'static, u64, E> {
    let six = nursery.thunk(|_| 6);
    nursery.thunk(move |nursery| six.force(nursery) + 1)
}

fn one_evaluates_each<E: ThunkEntry>()
where
    Region<E>: Sync,
{
    model(|| {
        let (both, counts) = by_two::<E>(two_thunks);
        assert_eq!(both, [7, 7]);
        assert_eq!((counts.evaluated, counts.duplicates), (2, 0));
    });
}

#[test]
fn both_see_the_value_lock_free() {
    model(|| assert_eq!(by_two::<LockFree>(two_thunks).0, [7, 7]));
}

#[test]
fn both_see_the_value_with_grey_holes() {
    model(|| assert_eq!(by_two::<Grey>(two_thunks).0, [7, 7]));
    model(|| assert_eq!(by_two::<GreyClaimAtYield>(two_thunks).0, [7, 7]));
}

#[test]
fn both_see_the_value_and_one_evaluates_it_with_exchanges() {
    one_evaluates_each::<OneCas>();
    one_evaluates_each::<TwoCas>();
}

#[test]
fn a_just_once_thunk_has_one_evaluation() {
    model(|| {
        let runs = Arc::new(AtomicUsize::new(0));
        let count: *const AtomicUsize = Arc::as_ptr(&runs);
        let address = count.expose_provenance();
        let (both, _) = by_two::<LockFree>(|nursery| {
            nursery.just_once(move |_| {
                // SAFETY: `runs` is there until both threads have ended.
                unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(address) }
                    .fetch_add(1, Ordering::Relaxed);
                7
            })
        });
        assert_eq!(both, [7, 7]);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

/// The thunk goes on for a quantum, so that its frame is looked at while the other thread may have
/// entered, claimed or updated it.
fn a_quantum_long<E: ThunkEntry>(nursery: &Nursery<'static, E>) -> Thunk<'static, u64, E> {
    nursery.thunk(|nursery| {
        for _ in 0..Nursery::<'_, E>::QUANTUM {
            nursery.safe_point();
        }
        7
    })
}

#[test]
fn a_duplicate_ends_with_its_quantum() {
    static LEFT: Mutex<usize> = Mutex::new(0);
    model(|| {
        let (both, counts) = by_two::<ClaimAtYield>(a_quantum_long);
        assert_eq!(both, [7, 7]);
        assert!(counts.longest_duplicate <= Nursery::<'_, ClaimAtYield>::QUANTUM);
        *LEFT.lock().unwrap() += usize::from(counts.duplicates > 0);
    });
    assert!(*LEFT.lock().unwrap() > 0, "in some order there is a duplicate");
}

#[test]
fn grey_holes_are_claimed_and_a_duplicate_is_rare() {
    static SEEN: Mutex<[usize; 2]> = Mutex::new([0; 2]);
    model(|| {
        let (both, counts) = by_two::<GreyClaimAtYield>(a_quantum_long);
        assert_eq!(both, [7, 7]);
        SEEN.lock().unwrap()[usize::from(counts.duplicates > 0)] += 1;
    });
    let [none, some] = *SEEN.lock().unwrap();
    assert!(0 < some && some < none, "{none} orders without a duplicate, and {some} with one");
}

#[test]
fn a_thread_that_waits_is_woken_after_a_panic() {
    static PANICS: Mutex<usize> = Mutex::new(0);
    model(|| {
        let memory = Box::into_raw(Box::new(Region::<OneCas>::new()));
        // SAFETY: the region is freed below, when both threads have ended and no thunk is used.
        let region: &'static Region<OneCas> = unsafe { &*memory };
        let attempts = Arc::new(AtomicUsize::new(0));
        let address = Arc::as_ptr(&attempts).expose_provenance();
        let thunk = region.nursery().thunk(move |_| {
            // SAFETY: `attempts` is there until both threads have ended.
            let attempts = unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(address) };
            if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                std::panic::resume_unwind(Box::new("the first time"));
            }
            7
        });
        let force = move || catch_unwind(AssertUnwindSafe(|| thunk.force(&region.nursery())));
        let other = thread::spawn(force);
        let both = [force(), other.join().unwrap()];
        let panics = both.iter().filter(|result| result.is_err()).count();
        assert_eq!((panics, attempts.load(Ordering::Relaxed)), (1, 2));
        assert!(both.into_iter().flatten().all(|value| value == 7));
        *PANICS.lock().unwrap() += 1;
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(memory) });
    });
    assert!(*PANICS.lock().unwrap() > 1);
}

/// Two threads force two thunks that need one another. Gives what each of them panics with.
fn circle_of_two<E: ThunkEntry>() -> [String; 2]
where
    Region<E>: Sync,
{
    type Places<E> = [OnceLock<Thunk<'static, u64, E>>; 2];
    let memory = Box::into_raw(Box::new(Region::<E>::new()));
    // SAFETY: the region is freed below, when both threads have ended and no thunk is used.
    let region: &'static Region<E> = unsafe { &*memory };
    let places = Arc::new([OnceLock::new(), OnceLock::new()]);
    let address = Arc::as_ptr(&places).expose_provenance();
    let nursery = region.nursery();
    let thunks = [0, 1].map(|mine| {
        let thunk = nursery.thunk(move |nursery| {
            // SAFETY: the places are there until both threads have ended.
            let places = unsafe { &*std::ptr::with_exposed_provenance::<Places<E>>(address) };
            places[1 - mine].get().unwrap().force(nursery) + 1
        });
        places[mine].set(thunk).ok().unwrap();
        thunk
    });
    drop(nursery);
    let fail = move |mine: usize| {
        let force = AssertUnwindSafe(|| thunks[mine].force(&region.nursery()));
        *catch_unwind(force).unwrap_err().downcast::<String>().unwrap()
    };
    let other = thread::spawn(move || fail(1));
    let both = [fail(0), other.join().unwrap()];
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(memory) });
    both
}

#[test]
fn a_circle_between_two_threads_is_found_by_each_of_them() {
    static BETWEEN: Mutex<usize> = Mutex::new(0);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains("<<loop>>") {
            hook(panic);
        }
    }));
    for engine in [circle_of_two::<Grey>, circle_of_two::<OneCas>, circle_of_two::<TwoCas>] {
        *BETWEEN.lock().unwrap() = 0;
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            for message in engine() {
                assert!(message.starts_with("<<loop>>"), "{message}");
                // The message of a circle between the two has the places of both forces.
                *BETWEEN.lock().unwrap() += usize::from(message.contains(" waits for "));
            }
        });
        assert!(*BETWEEN.lock().unwrap() > 0, "in some order each has entered one");
    }
}
