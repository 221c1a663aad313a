//! Copies of vtables that lie too far from the anchor for an offset of 32 bits.
//!
//! `body.rs` calls [`offset`] for such a vtable. When this crate is part of a shared library, the
//! vtable of a future may lie in another image: in the program, or in another library. The system
//! maps these terabytes away. A copy in a table of this image serves as well, because a vtable is
//! data that never changes. The table takes no room in the program's file, and no memory before it
//! is used.

use crate::vtable::{self, VTable};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The largest number of kinds of threads in other images.
const KINDS_MAX: usize = if cfg!(miri) { 64 } else { 1 << 14 };

struct VTableCopy {
    /// The vtable that is copied here. Null if there is no copy yet.
    of: AtomicPtr<VTable>,
    copy: UnsafeCell<MaybeUninit<VTable>>,
}

// SAFETY: `copy`, the function, writes the copy under `ADDING`, before it sets `of`. From then on
// the copy is only read.
unsafe impl Sync for VTableCopy {}

impl VTableCopy {
    /// The copy, if it is a copy of this vtable.
    fn get(&'static self, vtable: &'static VTable) -> Option<&'static VTable> {
        let found = ptr::eq(self.of.load(Ordering::Acquire), vtable);
        // SAFETY: `of` was written with Release after the copy, which never changes again.
        found.then(|| unsafe { (*self.copy.get()).assume_init_ref() })
    }
}

static PLACES: [VTableCopy; KINDS_MAX] = [const {
    VTableCopy { of: AtomicPtr::new(ptr::null_mut()), copy: UnsafeCell::new(MaybeUninit::uninit()) }
}; KINDS_MAX];

/// The lock under which `copy` adds a copy.
static ADDING: Mutex<()> = Mutex::new(());

/// The distance of a vtable's copy from the anchor.
///
/// # Panics
/// If other images have more than 16,384 kinds of threads.
#[cold]
pub(crate) fn offset(vtable: &'static VTable) -> u32 {
    vtable::offset(copy(vtable)).expect("the table of copies is in the anchor's image")
}

fn copy(vtable: &'static VTable) -> &'static VTable {
    // Vtables are aligned to 32 bytes.
    let start = ptr::from_ref(vtable).addr() / 32;
    let places = || (0..KINDS_MAX).map(|i| &PLACES[(start + i) % KINDS_MAX]);
    let is_free = |place: &&VTableCopy| place.of.load(Ordering::Acquire).is_null();
    if let Some(copy) = places().take_while(|place| !is_free(place)).find_map(|place| place.get(vtable)) {
        return copy;
    }
    let _adding = ADDING.lock().expect("no panic under this lock but of a full table");
    let place = places().find(|place| is_free(place) || place.get(vtable).is_some());
    let place = place.expect("no room for the vtable of another kind of thread in a shared library");
    place.get(vtable).unwrap_or_else(|| {
        // SAFETY: no reader reads the copy before `of` is set, and the lock `ADDING` keeps every
        // other writer out.
        unsafe { (*place.copy.get()).write(*vtable) };
        place.of.store(ptr::from_ref(vtable).cast_mut(), Ordering::Release);
        place.get(vtable).expect("just written")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vtable in a large allocation, which the system maps far from the program.
    fn far(granules: u16) -> &'static VTable {
        let room: &'static mut [MaybeUninit<VTable>] = Box::leak(Box::new_uninit_slice(64 << 10));
        room[17].write(vtable::vtable_of_nothing(granules))
    }

    #[test]
    #[cfg_attr(miri, ignore = "its addresses are not those of a system")]
    fn a_far_vtable_is_found_by_an_offset() {
        let (one, other) = (far(3), far(4));
        if vtable::offset(one).is_some() || vtable::offset(other).is_some() {
            return; // the system has mapped the program near its heap
        }
        for _ in 0..2 {
            assert_eq!(vtable::vtable(offset(one)).granules, 3);
            assert_eq!(vtable::vtable(offset(other)).granules, 4);
        }
        assert_eq!(offset(one), offset(one));
        assert_ne!(offset(one), offset(other));
    }

    #[test]
    fn each_vtable_has_one_copy_though_many_os_threads_ask() {
        let vtable: &'static VTable = Box::leak(Box::new(vtable::vtable_of_nothing(5)));
        let ask = || std::thread::spawn(move || ptr::from_ref(copy(vtable)).addr());
        let copies: Vec<usize> = [ask(), ask(), ask()].map(|asks| asks.join().unwrap()).into();
        assert!(copies.iter().all(|copy| *copy == copies[0]));
    }
}
