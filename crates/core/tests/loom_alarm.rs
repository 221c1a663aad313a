//! All interleavings of the asker of a sleep and the event source that keeps the alarm, and of the
//! later users of the bell.
#![cfg(loom)]

use loom::thread;
use selvedge_core::{Alarm, Asker, GivenUp, Time};

fn counter() -> &'static GivenUp {
    Box::leak(Box::default())
}

fn alarm(counter: &'static GivenUp) -> (Alarm, Asker) {
    Alarm::new(Time::from_nanos(7), counter)
}

#[test]
fn both_let_go_and_the_next_alarm_has_a_bell_of_its_own() {
    loom::model(|| {
        let (first, next) = (counter(), counter());
        let (ringing, asker) = alarm(first);
        let source = thread::spawn(move || {
            let gone = !ringing.is_wanted();
            drop(ringing);
            (gone, alarm(next))
        });
        drop(asker);
        let mine = alarm(next);
        let (gone, theirs) = source.join().unwrap();
        for (alarm, asker) in [&mine, &theirs] {
            assert!(alarm.is_wanted() && !asker.is_over(), "a bell that another alarm has too");
        }
        let given_up = first.count();
        assert!(given_up <= 1 && (!gone || given_up == 1), "counted once if it was given up first");
        drop(theirs.1);
        assert_eq!(next.count(), 1);
        assert!(!theirs.0.is_wanted() && mine.0.is_wanted());
        drop(mine.0);
        assert!(mine.1.is_over());
        drop(mine.1);
        assert_eq!(next.count(), 1, "what is over is not given up");
    });
}

#[test]
fn a_source_that_looks_finds_the_counter_or_that_no_sleeper_waits() {
    loom::model(|| {
        let first = counter();
        let (ringing, asker) = alarm(first);
        let the_bell = asker.bell();
        let asks = thread::spawn(move || {
            let over = asker.is_over();
            drop(asker);
            over
        });
        let (_, bell) = ringing.into_parts();
        match bell.counter() {
            Some(known) => assert!(std::ptr::eq(known, first)),
            None => assert!(!bell.is_wanted()),
        }
        drop(bell);
        let over = asks.join().unwrap();
        assert!(!over || first.count() == 0, "what has rung was not given up");
        assert!(first.count() <= 1);
        let (one, other) = (alarm(first), alarm(first));
        assert_eq!(one.1.bell(), the_bell, "it has come back");
        assert_ne!(other.1.bell(), the_bell, "and only once");
        drop(one.1);
        assert!(other.0.is_wanted());
        drop(one.0);
        assert!(other.0.is_wanted() && !other.1.is_over());
    });
}
