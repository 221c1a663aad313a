//! All interleavings of the two sides of a reply: a waiter that has polled is woken once, a reply
//! comes to one side only, and no waker is left behind.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};
use selvedge_core::internal::ReplyCell;
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

static COUNTING: RawWakerVTable = RawWakerVTable::new(
    |_| unreachable!("a cell clones no waker"),
    |data| {
        // SAFETY: the data is from `Arc::into_raw` in `counting`, and waking consumes the waker.
        unsafe { Arc::from_raw(data.cast::<AtomicUsize>()) }.fetch_add(1, Ordering::Relaxed);
    },
    |_| unreachable!("the waiter is woken by value"),
    // SAFETY: as above; dropping consumes the waker.
    |data| drop(unsafe { Arc::from_raw(data.cast::<AtomicUsize>()) }),
);

/// A waker that counts. Loom reports a leak if the cell neither wakes nor drops it.
fn counting(count: &Arc<AtomicUsize>) -> Waker {
    let data = Arc::into_raw(count.clone()).cast();
    // SAFETY: the functions of COUNTING take the pointer that `Arc::into_raw` gave, and take it
    // once.
    unsafe { Waker::from_raw(RawWaker::new(data, &COUNTING)) }
}

type Cell = Arc<ReplyCell<Box<u32>>>;

fn replier<T: 'static>(cell: &Cell, does: impl FnOnce(&Cell) -> T + 'static) -> JoinHandle<T> {
    let cell = cell.clone();
    thread::spawn(move || does(&cell))
}

#[test]
fn a_waiter_sees_the_reply_or_is_woken() {
    loom::model(|| {
        let (cell, woken) = (Cell::default(), Arc::new(AtomicUsize::new(0)));
        let replier = replier(&cell, |cell| cell.put(Box::new(7)).is_ok());
        let first = cell.poll(counting(&woken));
        // The second waker replaces the first one, unless the first one has been woken.
        let second = if first.is_pending() { cell.poll(counting(&woken)) } else { Poll::Pending };
        assert!(replier.join().unwrap());
        let reply = match (first, second) {
            (Poll::Ready(reply), _) => {
                assert_eq!(woken.load(Ordering::Relaxed), 0);
                reply
            }
            (Poll::Pending, Poll::Ready(reply)) => {
                assert_eq!(woken.load(Ordering::Relaxed), 1);
                reply
            }
            (Poll::Pending, Poll::Pending) => {
                assert_eq!(woken.load(Ordering::Relaxed), 1);
                cell.take()
            }
        };
        assert_eq!(reply, Some(Box::new(7)));
        assert_eq!(cell.take(), None);
    });
}

#[test]
fn a_replier_that_closes_wakes_the_waiter() {
    loom::model(|| {
        let (cell, woken) = (Cell::default(), Arc::new(AtomicUsize::new(0)));
        let replier = replier(&cell, |cell| cell.close(|_| unreachable!("no reply was put")));
        let polled = cell.poll(counting(&woken));
        replier.join().unwrap();
        assert_eq!(woken.load(Ordering::Relaxed), usize::from(polled.is_pending()));
        assert!(cell.is_over(|_| false));
        assert_eq!(cell.poll(counting(&woken)), Poll::Ready(None));
    });
}

#[test]
fn one_side_has_the_reply_to_a_waiter_that_gives_up() {
    loom::model(|| {
        let (cell, woken) = (Cell::default(), Arc::new(AtomicUsize::new(0)));
        assert!(cell.poll(counting(&woken)).is_pending());
        let replier = replier(&cell, |cell| cell.put(Box::new(7)).err());
        let abandoned = cell.abandon();
        let given_back = replier.join().unwrap();
        assert!(abandoned.is_some() != given_back.is_some());
        // The waiter is woken if the reply came first.
        assert_eq!(woken.load(Ordering::Relaxed), usize::from(abandoned.is_some()));
    });
}

/// As a thread that is cancelled from outside while its scheduler creates it.
#[test]
fn a_canceller_sees_the_reply_or_prevents_it() {
    loom::model(|| {
        let cell = Cell::default();
        let replier = replier(&cell, |cell| cell.put(Box::new(7)).is_err());
        let mut seen = false;
        cell.close(|_| seen = true);
        assert!(seen != replier.join().unwrap());
        assert_eq!(cell.take().is_some(), seen);
    });
}
