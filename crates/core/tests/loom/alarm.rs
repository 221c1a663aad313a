//! All interleavings of the future that sleeps and the event source that keeps the alarm, and of
//! the later users of the flag.

use loom::thread;
use selvedge_core::internal::SleepHandle;
use selvedge_core::{Alarm, CancelCount, Time};

fn counter() -> &'static CancelCount {
    Box::leak(Box::default())
}

fn alarm(counter: &'static CancelCount) -> (Alarm, SleepHandle) {
    Alarm::new(Time::from_nanos(7), counter)
}

#[test]
fn both_let_go_and_the_next_alarm_has_a_flag_of_its_own() {
    loom::model(|| {
        let (first, next) = (counter(), counter());
        let (pending, handle) = alarm(first);
        let source = thread::spawn(move || {
            let gone = pending.is_cancelled();
            drop(pending);
            (gone, alarm(next))
        });
        drop(handle);
        let mine = alarm(next);
        let (gone, theirs) = source.join().unwrap();
        for (alarm, handle) in [&mine, &theirs] {
            assert!(!alarm.is_cancelled() && !handle.is_done(), "a flag that another alarm has too");
        }
        let cancelled = first.count();
        assert!(cancelled <= 1 && (!gone || cancelled == 1), "counted once if it was cancelled first");
        drop(theirs.1);
        assert_eq!(next.count(), 1);
        assert!(theirs.0.is_cancelled() && !mine.0.is_cancelled());
        drop(mine.0);
        assert!(mine.1.is_done());
        drop(mine.1);
        assert_eq!(next.count(), 1, "an alarm that is done is not cancelled");
    });
}

#[test]
fn a_source_that_looks_finds_the_counter_or_that_no_sleeper_waits() {
    loom::model(|| {
        let first = counter();
        let (pending, handle) = alarm(first);
        let the_flag = handle.flag();
        let asks = thread::spawn(move || {
            let done = handle.is_done();
            drop(handle);
            done
        });
        let (_, flag) = pending.into_parts();
        match flag.counter() {
            Some(known) => assert!(std::ptr::eq(known, first)),
            None => assert!(flag.is_cancelled()),
        }
        drop(flag);
        let done = asks.join().unwrap();
        assert!(!done || first.count() == 0, "an alarm that has fired was not cancelled");
        assert!(first.count() <= 1);
        let (one, other) = (alarm(first), alarm(first));
        assert_eq!(one.1.flag(), the_flag, "it has come back");
        assert_ne!(other.1.flag(), the_flag, "and only once");
        drop(one.1);
        assert!(!other.0.is_cancelled());
        drop(one.0);
        assert!(!other.0.is_cancelled() && !other.1.is_done());
    });
}
