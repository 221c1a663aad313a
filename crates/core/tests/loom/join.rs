//! All interleavings of a thread's end with the await and the drop of its handle: the joiner is
//! told, and exactly one of the two sides frees the cell.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_core::internal::{JoinState, Joiner};
use std::task::{RawWaker, RawWakerVTable, Waker};

static COUNTING: RawWakerVTable = RawWakerVTable::new(
    |_| unreachable!("`JoinState` clones no waker"),
    |data| {
        // SAFETY: the data is from `Arc::into_raw` in `counting`, and waking consumes the waker.
        unsafe { Arc::from_raw(data.cast::<AtomicUsize>()) }.fetch_add(1, Ordering::Relaxed);
    },
    |_| unreachable!("the joiner is woken by value"),
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
        let (state, told) = (Arc::new(JoinState::default()), Arc::new(AtomicUsize::new(0)));
        let ends = state.clone();
        let thread = thread::spawn(move || {
            if let Joiner::Waiting(joiner) = ends.finish() {
                joiner.wake();
            }
        });
        let waits = state.set_joiner(counting(&told));
        if waits {
            // The handle is polled again with another waker. That waker replaces the first, unless
            // the first has been woken.
            state.set_joiner(counting(&told));
        }
        thread.join().unwrap();
        assert!(state.is_finished());
        assert_eq!(told.load(Ordering::Relaxed), usize::from(waits));
        assert!(state.drop_handle());
    });
}

#[test]
fn one_of_the_two_frees_the_cell() {
    loom::model(|| {
        let (state, told) = (Arc::new(JoinState::default()), Arc::new(AtomicUsize::new(0)));
        let ends = state.clone();
        let thread = thread::spawn(move || match ends.finish() {
            Joiner::Waiting(joiner) => {
                joiner.wake();
                false
            }
            Joiner::None => false,
            Joiner::HandleGone => true,
        });
        state.set_joiner(counting(&told));
        let by_handle = state.drop_handle();
        let by_thread = thread.join().unwrap();
        assert!(by_handle != by_thread);
    });
}
