//! All interleavings of two threads that force thunks of a region: entry, update, holes, and the
//! claim at the end of a quantum, with at most three preemptions.
#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_lazy::{
    ClaimAtYield, Grey, LockFree, Nursery, OneCas, Region, RegionCounts, Thunk, ThunkEntry, TwoCas,
};
use std::sync::{Arc, Mutex};

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
fn a_quantum_long(nursery: &Nursery<'static, ClaimAtYield>) -> Thunk<'static, u64, ClaimAtYield> {
    nursery.thunk(|nursery| {
        for _ in 0..Nursery::<'_, ClaimAtYield>::QUANTUM {
            nursery.safe_point();
        }
        7
    })
}

#[test]
fn a_duplicate_ends_with_its_quantum() {
    static LEFT: Mutex<usize> = Mutex::new(0);
    model(|| {
        let (both, counts) = by_two(a_quantum_long);
        assert_eq!(both, [7, 7]);
        assert!(counts.longest_duplicate <= Nursery::<'_, ClaimAtYield>::QUANTUM);
        *LEFT.lock().unwrap() += usize::from(counts.duplicates > 0);
    });
    assert!(*LEFT.lock().unwrap() > 0, "in some order there is a duplicate");
}
