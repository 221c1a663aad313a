//! Models of an item's slot: puts, gets, takes, waits, and places that are used again.

use crate::in_use::{InUse, InUseWaiters};
use crate::slot::{GetCount, ItemSlot, Left, Look};
use crate::storage::{Shape, Storage};
use crate::waiters::{WaiterMemory, WaiterPool};
use loom::thread;
use std::sync::Arc;

type ModelSlot = ItemSlot<Box<u32>, u32>;

/// Looks for an item that is kept, and waits for it. Tells whether it is there, or is being put.
/// Otherwise the put has the waiter.
fn get_or_wait(memory: &WaiterMemory<u32>, slot: &ModelSlot, name: u32) -> bool {
    if slot.state.look() == Look::Kept {
        // SAFETY: the item is kept.
        assert_eq!(**unsafe { slot.value() }, 7);
        return true;
    }
    slot.state.wait(name, &WaiterPool::new(memory)).is_err()
}

/// Puts the item, and counts the waiters that it wakes.
fn put_and_wake(memory: &WaiterMemory<u32>, slot: &ModelSlot) -> u32 {
    let mut waiters = slot.put(Box::new(7), GetCount::Kept, 3, 5).expect("the first put");
    let pool = WaiterPool::new(memory);
    let woken = std::iter::from_fn(|| waiters.pop(&pool)).count() as u32;
    assert_eq!(slot.state.maker(), Some((3, Some(5))));
    woken
}

/// One OS thread puts an item while two get it, or wait for it. Each gets it, or is told of the
/// put, or is woken once.
pub fn a_put_and_two_waiters() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let getters: Vec<_> = (0..2)
        .map(|name| {
            let (memory, slot) = (memory.clone(), slot.clone());
            thread::spawn(move || u32::from(get_or_wait(&memory, &slot, name)))
        })
        .collect();
    let woken = put_and_wake(&memory, &slot);
    let told: u32 = getters.into_iter().map(|getter| getter.join().unwrap()).sum();
    assert_eq!(woken + told, 2);
    empty(slot);
}

/// An OS thread that is told of a put lets the put end, and then finds the item.
pub fn a_put_that_has_begun() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let getter = {
        let (memory, slot) = (memory.clone(), slot.clone());
        thread::spawn(move || {
            let told = get_or_wait(&memory, &slot, 0);
            if told {
                slot.state.until_full();
                assert!(get_or_wait(&memory, &slot, 0));
            }
            u32::from(told)
        })
    };
    let woken = put_and_wake(&memory, &slot);
    assert_eq!(woken + getter.join().unwrap(), 1);
    empty(slot);
}

/// A count in one of the two words of a slot.
fn times(times: u16, is_large: bool) -> GetCount {
    if is_large { GetCount::Large(times.into()) } else { GetCount::Times(times) }
}

/// Of two puts, one is told.
pub fn two_puts() {
    let slot = Arc::new(ModelSlot::new());
    let other = {
        let slot = slot.clone();
        thread::spawn(move || slot.put(Box::new(1), GetCount::Kept, 1, 1).map(drop).is_ok())
    };
    let mine = slot.put(Box::new(2), GetCount::Kept, 2, 2).map(drop).is_ok();
    assert!(mine != other.join().unwrap());
    empty(slot);
}

/// Two steps get an item with a count of two and return it, while it is put; a third one comes too
/// late or is told. The value is dropped once, by the last one.
pub fn counted_gets(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let getter = |slot: Arc<ModelSlot>| {
        move || match slot.state.look() {
            Look::Claimed => {
                // SAFETY: the item is claimed until `give_back`.
                assert_eq!(**unsafe { slot.value() }, 7);
                if slot.state.give_back().0 == Left::None {
                    // SAFETY: this caller has made the item gone.
                    unsafe { slot.drop_value() };
                }
                1
            }
            Look::AllClaimed | Look::Exhausted => 0,
            look => panic!("{look:?}"),
        }
    };
    let others = [thread::spawn(getter(slot.clone())), thread::spawn(getter(slot.clone()))];
    let got: u32 = getter(slot.clone())() + others.map(|other| other.join().unwrap()).iter().sum::<u32>();
    assert_eq!(got, 2);
    assert!(!slot.state.has_value());
}

/// A step takes an item of which another step has a get. It gets the value by value, or is told
/// that the other one has not ended.
pub fn a_take_and_a_get(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let other = {
        let slot = slot.clone();
        thread::spawn(move || {
            assert_eq!(slot.state.look(), Look::Claimed);
            // SAFETY: the item is claimed until `give_back`.
            assert_eq!(**unsafe { slot.value() }, 7);
            assert_eq!(slot.state.give_back().0, Left::One);
        })
    };
    let mut taken = slot.state.take();
    other.join().unwrap();
    if taken == Look::InUse {
        taken = slot.state.take();
    }
    assert_eq!(taken, Look::Claimed);
    // SAFETY: `take` has said `Claimed`.
    assert_eq!(*unsafe { slot.move_out() }, 7);
    assert!(!slot.state.has_value());
}

/// A step waits to be the last one with a get, while the other one ends. It is woken, or it is told
/// that it need not wait. Then it takes the item.
pub fn a_take_that_waits(is_large: bool) {
    let (slot, waiters) = (Arc::new(ModelSlot::new()), Arc::new(InUseWaiters::new()));
    drop(slot.put(Box::new(7), times(2, is_large), 1, 1).expect("the first put"));
    let other = {
        let (slot, waiters) = (slot.clone(), waiters.clone());
        thread::spawn(move || {
            assert_eq!(slot.state.look(), Look::Claimed);
            let (left, is_waited) = slot.state.give_back();
            assert_eq!(left, Left::One);
            if is_waited { waiters.of_slot(5) } else { Vec::new() }
        })
    };
    let mut taken = slot.state.take();
    let waits = taken == Look::InUse && waiters.wait(5, &slot.state, 9, InUse::ToBeLast).is_ok();
    if taken == Look::InUse && !waits {
        taken = slot.state.take();
    }
    let woken = other.join().unwrap();
    assert_eq!(woken, if waits { vec![9] } else { vec![] });
    if waits {
        taken = slot.state.take();
    }
    assert_eq!(taken, Look::Claimed);
    // SAFETY: `take` has said `Claimed`.
    assert_eq!(*unsafe { slot.move_out() }, 7);
}

/// Of two steps with a get of an item with a count of one, one is late. It is woken when the other
/// one has ended, or it sees that the item is gone.
pub fn a_get_that_is_late(is_large: bool) {
    let (slot, waiters) = (Arc::new(ModelSlot::new()), Arc::new(InUseWaiters::new()));
    drop(slot.put(Box::new(7), times(1, is_large), 1, 1).expect("the first put"));
    // The steps that this one wakes, and whether this one waits.
    let get = |name: u32, slot: &ModelSlot, waiters: &InUseWaiters<u32>| match slot.state.look() {
        Look::Claimed => {
            let (left, is_waited) = slot.state.give_back();
            assert_eq!(left, Left::None);
            // SAFETY: this caller has made the item gone.
            unsafe { slot.drop_value() };
            (if is_waited { waiters.of_slot(5) } else { Vec::new() }, false)
        }
        Look::AllClaimed => {
            let waits = waiters.wait(5, &slot.state, name, InUse::ForAGet).is_ok();
            assert!(waits || slot.state.look() == Look::Exhausted);
            (Vec::new(), waits)
        }
        Look::Exhausted => (Vec::new(), false),
        look => panic!("{look:?}"),
    };
    let other = {
        let (slot, waiters) = (slot.clone(), waiters.clone());
        thread::spawn(move || get(1, &slot, &waiters))
    };
    let (woken, waits) = get(2, &slot, &waiters);
    let (woken_there, waits_there) = other.join().unwrap();
    assert_eq!(woken, if waits_there { vec![1] } else { vec![] });
    assert_eq!(woken_there, if waits { vec![2] } else { vec![] });
    assert!(!slot.state.has_value());
}

/// A step gives its claim back, to run again, and another step has the get instead of it. The drop
/// of the value by the second one comes after the read by the first one.
pub fn a_claim_given_back(is_large: bool) {
    let slot = Arc::new(ModelSlot::new());
    drop(slot.put(Box::new(7), times(1, is_large), 1, 1).expect("the first put"));
    let end = |slot: &ModelSlot| match slot.state.look() {
        Look::Claimed => {
            assert_eq!(slot.state.give_back().0, Left::None);
            // SAFETY: this caller has made the item gone.
            unsafe { slot.drop_value() };
            true
        }
        Look::AllClaimed | Look::Exhausted => false,
        look => panic!("{look:?}"),
    };
    let other = {
        let slot = slot.clone();
        thread::spawn(move || {
            if slot.state.look() != Look::Claimed {
                return;
            }
            // SAFETY: the item is claimed until `unclaim`.
            assert_eq!(**unsafe { slot.value() }, 7);
            slot.state.unclaim();
        })
    };
    let ended = end(&slot);
    other.join().unwrap();
    assert!(ended || end(&slot));
    assert!(!slot.state.has_value());
}

/// A step gets a counted item or waits for it, while it is put. It gets the item once, by itself or
/// after it was woken, and the value is dropped.
pub fn a_counted_get_that_waits() {
    let memory = Arc::new(WaiterMemory::new());
    let slot = Arc::new(ModelSlot::new());
    let get = |slot: &ModelSlot| {
        assert_eq!(slot.state.look(), Look::Claimed);
        // SAFETY: the item is claimed until `give_back`.
        assert_eq!(**unsafe { slot.value() }, 7);
        assert_eq!(slot.state.give_back().0, Left::None);
        // SAFETY: this caller has made the item gone.
        unsafe { slot.drop_value() };
    };
    let getter = {
        let (memory, slot) = (memory.clone(), slot.clone());
        thread::spawn(move || {
            if slot.state.wait(9, &WaiterPool::new(&memory)).is_err() {
                slot.state.until_full();
                get(&slot);
            }
        })
    };
    let mut woken = slot.put(Box::new(7), GetCount::Times(1), 1, 1).expect("the first put");
    if let Some(step) = woken.pop(&WaiterPool::new(&memory)) {
        assert_eq!(step, 9);
        get(&slot);
    }
    assert!(woken.is_empty());
    getter.join().unwrap();
    assert!(slot.state.was_put() && !slot.state.has_value());
}

/// A step misses an item and waits for it, while the item and others are put and go, and their
/// places are used for other keys: a page, or the places of a stream. The step does not wait for
/// another key: the put of its item wakes it, or it sees that the item was put.
pub fn a_missed_get_and_a_place_that_is_used_again(is_stream: bool) {
    // A page has two items in these models.
    let items = if is_stream { Storage::streamed() } else { Storage::paged(Shape::new(&4)) };
    let items = Arc::new(items);
    let memory = Arc::new(WaiterMemory::new());
    let getter = {
        let (items, memory) = (items.clone(), memory.clone());
        thread::spawn(move || {
            let Ok(found) = items.find(&0_u32) else { return 0 };
            if found.slot.state.was_put() {
                return 0;
            }
            let state = &found.slot.state;
            let _page = found.into_page_use();
            u32::from(state.wait(9, &WaiterPool::new(&memory)).is_ok())
        })
    };
    let pool = WaiterPool::new(&memory);
    let put = |key: u32| {
        let place = items.find(&key).expect("the place was not given up");
        let mut woken = place.slot.put(key, GetCount::Times(0), 1, 1).expect("the first put");
        let woken = std::iter::from_fn(|| woken.pop(&pool)).count() as u32;
        items.note_gone(place.place);
        woken
    };
    let woken = put(0);
    assert_eq!(put(1) + put(2), 0);
    assert_eq!(getter.join().unwrap(), woken);
}

fn empty(slot: Arc<ModelSlot>) {
    drop(slot.state.take_waiters());
    let slot = Arc::try_unwrap(slot).ok().expect("the other OS threads have ended");
    // SAFETY: the slot is owned here, so no other OS thread uses it.
    unsafe { slot.empty() };
}
