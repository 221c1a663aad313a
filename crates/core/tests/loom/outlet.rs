//! All interleavings of a step that puts threads into an outlet, and a guest that takes them.

use loom::thread;
use selvedge_core::Outlet;
use selvedge_core::internal::{Inlet, Ticket, outlet};
use std::cell::Cell;
use std::num::NonZeroU32;

/// In place of a thread: a number, which counts its drop.
struct Numbered(u32);

std::thread_local! {
    /// The number of drops. Loom runs the threads of a model on one OS thread.
    static DROPS: Cell<usize> = const { Cell::new(0) };
}

impl Drop for Numbered {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + 1);
    }
}

// SAFETY: the word is the number.
unsafe impl Ticket for Numbered {
    fn into_word(self) -> NonZeroU32 {
        NonZeroU32::new(std::mem::ManuallyDrop::new(self).0).unwrap()
    }

    unsafe fn from_word(word: NonZeroU32) -> Numbered {
        Numbered(word.get())
    }
}

/// Puts `count` threads into an outlet while a guest tries to take `tries` times. Then the owner
/// takes the rest, as at the end of a step. All come once; without a full ring they
/// come in order.
fn model(count: u32, tries: usize) {
    loom::model(move || {
        let (inlet, mut outlet): (Inlet<Numbered>, Outlet<Numbered>) = outlet();
        let guest = thread::spawn(move || {
            let taken: Vec<u32> = (0..tries).filter_map(|_| outlet.take()).map(|one| one.0).collect();
            (outlet, taken)
        });
        (1..=count).for_each(|number| inlet.put(Numbered(number)));
        let (mut outlet, mut taken) = guest.join().unwrap();
        taken.extend(std::iter::from_fn(|| outlet.take()).map(|one| one.0));
        assert!(outlet.take().is_none());
        if count < 4 {
            assert!(taken.is_sorted());
        }
        taken.sort();
        assert_eq!(taken, (1..=count).collect::<Vec<_>>());
    });
}

#[test]
fn each_thread_is_taken_once_and_in_order() {
    model(2, 3);
}

/// In a model the ring has three slots for threads, and one for the mark.
#[test]
fn what_has_no_room_in_the_ring_is_taken_too() {
    model(5, 2);
}

#[test]
fn the_mark_goes_and_comes_again() {
    loom::model(|| {
        let (inlet, mut outlet): (Inlet<Numbered>, Outlet<Numbered>) = outlet();
        (1..=4).for_each(|number| inlet.put(Numbered(number)));
        let guest = thread::spawn(move || {
            let taken: Vec<u32> = (0..4).filter_map(|_| outlet.take()).map(|one| one.0).collect();
            assert_eq!(taken[..3], [1, 2, 3]);
            (outlet, taken)
        });
        (5..=7).for_each(|number| inlet.put(Numbered(number)));
        let (mut outlet, mut taken) = guest.join().unwrap();
        taken.extend(std::iter::from_fn(|| outlet.take()).map(|one| one.0));
        taken.sort();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn what_was_not_taken_is_dropped_once() {
    loom::model(|| {
        DROPS.set(0);
        let (inlet, mut outlet): (Inlet<Numbered>, Outlet<Numbered>) = outlet();
        let guest = thread::spawn(move || drop(outlet.take()));
        (1..=5).for_each(|number| inlet.put(Numbered(number)));
        guest.join().unwrap();
        drop(inlet);
        assert_eq!(DROPS.get(), 5);
    });
}
