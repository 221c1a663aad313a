//! All interleavings of an owner that falls asleep and wakes up, and of OS threads that rouse it:
//! no reason is lost, and each sleep is ended by one rouser at most.

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Notify};
use loom::thread::{self, JoinHandle};

type Parker = selvedge_core::internal::Parker<()>;

const CALLED: u8 = Parker::CALLED;
const MAIL: u8 = 4;

/// A parker, and the means by which a sleep ends: an eventfd, or the token of `park`.
struct Sleeper {
    parker: Parker,
    ended: Notify,
    /// How many sleeps have begun, and how many rousers were told to end one.
    sleeps: AtomicU32,
    endings: AtomicU32,
    /// The work that the rousers give.
    work: AtomicU32,
}

impl Sleeper {
    fn new() -> Arc<Sleeper> {
        let (ended, parker) = (Notify::new(), Parker::default());
        let [sleeps, endings, work] = std::array::from_fn(|_| AtomicU32::new(0));
        Arc::new(Sleeper { parker, ended, sleeps, endings, work })
    }

    fn give(&self, why: u8) {
        self.work.fetch_add(1, Relaxed);
        if self.parker.rouse(why) {
            self.endings.fetch_add(1, Relaxed);
            self.ended.notify();
        }
    }

    /// An OS thread that gives work for each of these reasons.
    fn rouser(sleeper: &Arc<Sleeper>, reasons: &'static [u8]) -> JoinHandle<()> {
        let sleeper = sleeper.clone();
        thread::spawn(move || reasons.iter().for_each(|&why| sleeper.give(why)))
    }

    fn sleep(&self) -> bool {
        let asleep = self.parker.sleep();
        self.sleeps.fetch_add(asleep.into(), Relaxed);
        asleep
    }

    /// One turn of the owner, which sleeps if it may. Reasons that stay are taken away.
    fn turn(&self, declares: bool) {
        if self.sleep() {
            if declares {
                self.parker.declare(|| ());
            }
            self.ended.wait();
            self.parker.wake();
        }
        self.parker.take(MAIL);
    }

    /// Turns until all is there. With a lost reason the owner sleeps for ever, and loom reports a
    /// deadlock.
    fn until(&self, work: u32, declares: bool, rousers: impl IntoIterator<Item = JoinHandle<()>>) {
        while self.work.load(Relaxed) < work {
            self.turn(declares);
        }
        rousers.into_iter().for_each(|rouser| rouser.join().unwrap());
        assert!(self.endings.load(Relaxed) <= self.sleeps.load(Relaxed), "a sleep was ended twice");
    }
}

/// With two rousers all interleavings are too many: of those, the ones with three preemptions at
/// most.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(f);
}

#[test]
fn no_call_is_lost_and_one_rouser_ends_a_sleep() {
    model(|| {
        let sleeper = Sleeper::new();
        let rousers = [Sleeper::rouser(&sleeper, &[CALLED]), Sleeper::rouser(&sleeper, &[CALLED])];
        sleeper.until(2, false, rousers);
    });
}

#[test]
fn reasons_of_both_kinds_are_not_lost() {
    model(|| {
        let sleeper = Sleeper::new();
        let rousers = [Sleeper::rouser(&sleeper, &[MAIL]), Sleeper::rouser(&sleeper, &[CALLED])];
        sleeper.until(2, false, rousers);
    });
}

#[test]
fn one_rouser_calls_again_and_again() {
    model(|| {
        let sleeper = Sleeper::new();
        let rouser = Sleeper::rouser(&sleeper, &[CALLED, MAIL, CALLED]);
        sleeper.until(3, true, [rouser]);
    });
}

/// The owner's sleep ends for another reason, as a wait in the kernel does by an event or at its
/// time limit.
#[test]
fn a_call_into_the_end_of_a_sleep_is_told_or_ends_the_next_one() {
    model(|| {
        let sleeper = Sleeper::new();
        let rouser = Sleeper::rouser(&sleeper, &[CALLED]);
        if !sleeper.sleep() || sleeper.parker.wake() {
            assert_eq!(sleeper.work.load(Relaxed), 1, "the owner sees what was written before the call");
        }
        sleeper.until(1, true, [rouser]);
    });
}

#[test]
fn a_reason_that_stays_lets_no_sleep_begin() {
    model(|| {
        let sleeper = Sleeper::new();
        let rouser = Sleeper::rouser(&sleeper, &[MAIL, CALLED]);
        if sleeper.parker.sleep() {
            sleeper.parker.wake();
        }
        rouser.join().unwrap();
        assert!(sleeper.parker.has(MAIL) && !sleeper.parker.sleep());
        assert!(!sleeper.parker.has(CALLED) && !sleeper.parker.sleep(), "the call is gone, the mail is not");
        sleeper.parker.take(MAIL);
        assert!(sleeper.parker.sleep());
    });
}
