//! All interleavings of a thread's end with the await and the drop of its handle: the joiner is
//! told, and exactly one of the two sides frees the cell.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_core::{Joiner, Meeting};
use std::task::{RawWaker, RawWakerVTable, Waker};

static COUNTING: RawWakerVTable = RawWakerVTable::new(
    |_| unreachable!("the meeting clones no waker"),
    |data| {
        // SAFETY: the data is from `Arc::into_raw` in `counting`, and waking consumes the waker.
        unsafe { Arc::from_raw(data.cast::<AtomicUsize>()) }.fetch_add(1, Ordering::Relaxed);
    },
    |_| unreachable!("the meeting wakes by value"),
    // SAFETY: as above; dropping consumes the waker.
    |data| drop(unsafe { Arc::from_raw(data.cast::<AtomicUsize>()) }),
);

fn counting(count: &Arc<AtomicUsize>) -> Waker {
    let data = Arc::into_raw(count.clone()).cast();
    // SAFETY: the functions of COUNTING take the pointer that `Arc::into_raw` gave, and take it
    // once.
    unsafe { Waker::from_raw(RawWaker::new(data, &COUNTING)) }
}

#[test]
fn a_joiner_is_told_or_sees_the_end() {
    loom::model(|| {
        let (meeting, told) = (Arc::new(Meeting::default()), Arc::new(AtomicUsize::new(0)));
        let ends = meeting.clone();
        let thread = thread::spawn(move || {
            if let Joiner::Waits(joiner) = ends.end() {
                joiner.wake();
            }
        });
        let waits = meeting.join(counting(&told));
        if waits {
            // The handle is polled again with another waker. That waker replaces the first, unless
            // the first has been woken.
            meeting.join(counting(&told));
        }
        thread.join().unwrap();
        assert!(meeting.is_over());
        assert_eq!(told.load(Ordering::Relaxed), usize::from(waits));
        assert!(meeting.leave());
    });
}

#[test]
fn one_of_the_two_frees_the_cell() {
    loom::model(|| {
        let (meeting, told) = (Arc::new(Meeting::default()), Arc::new(AtomicUsize::new(0)));
        let ends = meeting.clone();
        let thread = thread::spawn(move || match ends.end() {
            Joiner::Waits(joiner) => {
                joiner.wake();
                false
            }
            Joiner::None => false,
            Joiner::Gone => true,
        });
        meeting.join(counting(&told));
        let by_handle = meeting.leave();
        let by_thread = thread.join().unwrap();
        assert!(by_handle != by_thread);
    });
}
