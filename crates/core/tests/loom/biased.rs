//! All interleavings of an owner that leaves and enters, and of guests: never are two inside.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_core::biased;

/// Loom watches each access: two at a time, or one that does not see another, end the model.
fn add_one(count: &UnsafeCell<usize>) {
    // SAFETY: loom itself finds out whether another OS thread works on it.
    count.with_mut(|count| unsafe { *count += 1 });
}

fn count(count: &UnsafeCell<usize>) -> usize {
    // SAFETY: as for `add_one`.
    count.with(|count| unsafe { *count })
}

/// The owner counts before, between and after `absences`; each of the guests tries one visit.
fn model(absences: usize, guests: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = if guests > 1 { Some(3) } else { None };
    model.check(move || {
        let (mut owner, guest) = biased(UnsafeCell::new(0));
        let visits = Arc::new(AtomicUsize::new(0));
        let guests: Vec<_> = (0..guests)
            .map(|_| {
                let (guest, visits) = (guest.clone(), visits.clone());
                thread::spawn(move || {
                    if let Some(value) = guest.visit() {
                        add_one(&value);
                        visits.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut inside = owner.enter();
        for _ in 0..absences {
            add_one(&inside);
            drop(inside.leave());
        }
        add_one(&inside);
        drop(inside);
        guests.into_iter().for_each(|guest| guest.join().unwrap());
        assert_eq!(count(&owner.enter()), absences + 1 + visits.load(Ordering::Relaxed));
    });
}

#[test]
fn a_guest_visits_before_after_or_while_the_owner_is_outside() {
    model(1, 1);
    model(2, 1);
}

#[test]
fn two_guests_and_the_owner_are_inside_one_at_a_time() {
    model(1, 2);
}

#[test]
fn a_guest_finds_an_owner_outside_at_some_time_and_inside_at_another() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static OUTCOMES: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    loom::model(|| {
        let (mut owner, guest) = biased(());
        let guest =
            thread::spawn(move || OUTCOMES[usize::from(guest.visit().is_some())].fetch_add(1, Relaxed));
        drop(owner.enter());
        guest.join().unwrap();
    });
    assert!(OUTCOMES.iter().all(|outcome| outcome.load(Relaxed) > 0), "{OUTCOMES:?}");
}
