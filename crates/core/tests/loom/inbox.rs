//! All interleavings of posting to a CPU's inbox and going to sleep: no post is lost.

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;

/// The owner declares no quiet.
type Inbox = selvedge_core::internal::Inbox<()>;

/// The owner's loop: it takes mail, and sleeps when there is none, until it has `wanted` keys.
fn receive(inbox: &Inbox, parked: &Notify, wanted: usize) -> Vec<u32> {
    let mut seen = Vec::new();
    while seen.len() < wanted {
        if inbox.has_mail() {
            seen.extend(inbox.open());
        } else if inbox.sleep() {
            // After a lost post the model would wait here for ever, and loom reports that as a
            // deadlock.
            parked.wait();
            inbox.wake();
        }
    }
    seen
}

#[test]
fn a_sleeper_is_woken_by_every_first_post() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::default());
        let parked = Arc::new(Notify::new());
        let posters: Vec<_> = (1..=2)
            .map(|key| {
                let (inbox, parked) = (inbox.clone(), parked.clone());
                thread::spawn(move || {
                    if inbox.post(key) {
                        parked.notify();
                    }
                })
            })
            .collect();
        let mut seen = receive(&inbox, &parked, 2);
        seen.sort();
        assert_eq!(seen, [1, 2]);
        for poster in posters {
            poster.join().unwrap();
        }
    });
}

/// The owner opens its inbox between a call and its next sleep. That must not take the call away.
#[test]
fn a_call_ends_the_next_sleep_or_the_present_one() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::default());
        let parked = Arc::new(Notify::new());
        let caller = {
            let (inbox, parked) = (inbox.clone(), parked.clone());
            thread::spawn(move || {
                if inbox.call() {
                    parked.notify();
                }
            })
        };
        assert!(inbox.open().is_empty());
        if inbox.sleep() {
            parked.wait();
            inbox.wake();
        }
        caller.join().unwrap();
        assert!(inbox.sleep() || inbox.sleep(), "one call ends one sleep");
    });
}

#[test]
fn what_was_written_before_a_post_is_seen_after_it() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::default());
        let parked = Arc::new(Notify::new());
        let ready = Arc::new(AtomicBool::new(false));
        let poster = {
            let (inbox, parked, ready) = (inbox.clone(), parked.clone(), ready.clone());
            thread::spawn(move || {
                ready.store(true, Ordering::Relaxed);
                if inbox.post(7) {
                    parked.notify();
                }
            })
        };
        assert_eq!(receive(&inbox, &parked, 1), [7]);
        assert!(ready.load(Ordering::Relaxed));
        poster.join().unwrap();
    });
}

#[test]
fn a_post_to_one_that_was_woken_by_something_else_is_kept() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::default());
        let poster = {
            let inbox = inbox.clone();
            thread::spawn(move || inbox.post(3))
        };
        // An event of the owner's, and not the post, ends this sleep.
        if inbox.sleep() {
            inbox.wake();
        }
        poster.join().unwrap();
        assert!(inbox.has_mail());
        assert!(!inbox.sleep());
        assert_eq!(inbox.open(), [3]);
    });
}

/// In a model the list has room for one key before duplicates are removed.
#[test]
fn what_was_written_before_a_post_that_is_struck_out_is_seen() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::default());
        let parked = Arc::new(Notify::new());
        let written = Arc::new(AtomicUsize::new(0));
        let poster = {
            let (inbox, parked, written) = (inbox.clone(), parked.clone(), written.clone());
            thread::spawn(move || {
                for round in 1..=2 {
                    written.store(round, Ordering::Relaxed);
                    if inbox.post(7) {
                        parked.notify();
                    }
                }
            })
        };
        // Each time the thread is told, it reads the value, and waits on if that is not the last
        // one.
        while written.load(Ordering::Relaxed) < 2 {
            let told = receive(&inbox, &parked, 1);
            assert!(told.iter().all(|&key| key == 7));
        }
        poster.join().unwrap();
    });
}
