//! All interleavings of the owner of a ring of sparks and of thieves: each item has one taker.

use loom::thread;
use selvedge_lazy::SparkRing;
use std::sync::Arc;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(f);
}

fn check(pushes: usize, steals: usize) {
    model(move || {
        let ring = Arc::new(SparkRing::new());
        let thief = {
            let ring = ring.clone();
            thread::spawn(move || (0..steals).filter_map(|_| ring.steal()).collect::<Vec<_>>())
        };
        let mut taken = Vec::new();
        for item in 1..=pushes {
            if !ring.push(item) {
                taken.push(item);
            }
        }
        taken.extend((0..2).filter_map(|_| ring.pop()));
        taken.extend(thief.join().unwrap());
        taken.extend(std::iter::from_fn(|| ring.pop()));
        taken.sort_unstable();
        assert_eq!(taken, (1..=pushes).collect::<Vec<_>>());
    });
}

#[test]
fn the_last_item_has_one_taker() {
    check(1, 2);
}

#[test]
fn two_items_and_a_thief() {
    check(2, 2);
}

#[test]
fn a_ring_that_turns_around() {
    check(6, 2);
}

#[test]
fn two_thieves() {
    model(|| {
        let ring = Arc::new(SparkRing::new());
        assert!(ring.push(1) && ring.push(2));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let ring = ring.clone();
                thread::spawn(move || ring.steal())
            })
            .collect();
        let mut taken: Vec<_> = ring.pop().into_iter().collect();
        taken.extend(thieves.into_iter().filter_map(|thief| thief.join().unwrap()));
        taken.extend(std::iter::from_fn(|| ring.pop()));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}
