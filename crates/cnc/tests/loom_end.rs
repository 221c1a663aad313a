//! The interleavings of workers that steal, sleep, are called, and end.
#![cfg(loom)]

use selvedge_cnc::models::workers_end_together;

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

#[test]
fn two_workers_with_items_in_a_ring() {
    model(|| workers_end_together(2, &[0, 0]));
}

#[test]
fn two_workers_with_items_that_make_others() {
    model(|| workers_end_together(2, &[2]));
}

#[test]
fn two_workers_without_items() {
    model(|| workers_end_together(2, &[]));
}
