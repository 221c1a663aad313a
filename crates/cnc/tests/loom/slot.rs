//! The interleavings of puts, gets, waits and takes of one item.

use selvedge_cnc::models;

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

#[test]
fn every_waiter_is_woken_or_finds_the_item() {
    model(models::a_put_and_two_waiters);
}

#[test]
fn a_step_that_is_told_of_a_put_finds_the_item() {
    model(models::a_put_that_has_begun);
}

#[test]
fn of_two_puts_one_is_told() {
    model(models::two_puts);
}

#[test]
fn the_last_counted_get_drops_the_item() {
    for is_large in [false, true] {
        model(move || models::counted_gets(is_large));
    }
}

#[test]
fn a_take_waits_for_the_other_get() {
    for is_large in [false, true] {
        model(move || models::a_take_and_a_get(is_large));
    }
}

#[test]
fn a_take_that_waits_is_woken_or_told() {
    for is_large in [false, true] {
        model(move || models::a_take_that_waits(is_large));
    }
}

#[test]
fn a_late_get_is_woken_or_told() {
    for is_large in [false, true] {
        model(move || models::a_get_that_is_late(is_large));
    }
}

#[test]
fn the_value_of_a_claim_that_is_given_back_is_dropped_after_the_read() {
    for is_large in [false, true] {
        model(move || models::a_claim_given_back(is_large));
    }
}

#[test]
fn a_step_that_waits_for_a_counted_item_gets_it_once() {
    model(models::a_counted_get_that_waits);
}

#[test]
fn a_step_never_waits_for_another_key_of_its_page() {
    model(|| models::a_missed_get_and_a_place_that_is_used_again(false));
}

#[test]
fn a_step_never_waits_for_another_key_of_a_stream() {
    model(|| models::a_missed_get_and_a_place_that_is_used_again(true));
}
