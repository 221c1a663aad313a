//! All interleavings of OS threads that free blocks of one chunk and of the owner that takes them
//! over: each block is found once, and with all that its last user wrote.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;
use selvedge_core::internal::FreedList;
use std::num::NonZeroU32;

const BLOCKS: usize = 4;

/// A chunk: for each block, by key, its link and its content. Neither is atomic, so that loom finds
/// each access that is not ordered with the others.
struct Chunk {
    freed: FreedList<AtomicU32>,
    links: [UnsafeCell<u32>; BLOCKS],
    contents: [UnsafeCell<u32>; BLOCKS],
}

impl Chunk {
    fn new() -> Arc<Chunk> {
        Arc::new(Chunk {
            freed: FreedList::default(),
            links: std::array::from_fn(|_| UnsafeCell::new(0)),
            contents: std::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    /// The last user of a block writes to it, and gives it up.
    fn free(&self, key: u32, content: u32) {
        // SAFETY: the caller alone uses this block; loom checks it.
        self.contents[key as usize].with_mut(|place| unsafe { *place = content });
        // SAFETY: as above, until the block is in the list.
        let link = |next| self.links[key as usize].with_mut(|place| unsafe { *place = next });
        self.freed.push(NonZeroU32::new(key).unwrap(), link);
    }

    /// Takes the list over. The keys of its blocks, with their contents.
    fn take(&self) -> Vec<(u32, u32)> {
        let mut taken = Vec::new();
        let mut next = self.freed.take();
        while next != 0 {
            // SAFETY: the list is the taker's; loom checks it.
            taken.push((next, self.contents[next as usize].with(|place| unsafe { *place })));
            // SAFETY: as above.
            next = self.links[next as usize].with(|place| unsafe { *place });
        }
        taken
    }
}

// SAFETY: the fields that are not atomic are what loom checks.
unsafe impl Sync for Chunk {}
// SAFETY: as above.
unsafe impl Send for Chunk {}

#[test]
fn each_block_is_found_once_with_what_was_written_to_it() {
    loom::model(|| {
        let chunk = Chunk::new();
        let others = [1, 2].map(|key| {
            let chunk = chunk.clone();
            thread::spawn(move || chunk.free(key, 10 * key))
        });
        let mut taken = chunk.take();
        others.into_iter().for_each(|other| other.join().unwrap());
        taken.extend(chunk.take());
        taken.sort();
        assert_eq!(taken, [(1, 10), (2, 20)]);
    });
}

/// Between another OS thread's look at the head and its exchange, the owner takes the list and
/// frees the same block again, so that the head is the same key as before.
#[test]
fn a_head_that_is_the_same_again_harms_nothing() {
    loom::model(|| {
        let chunk = Chunk::new();
        chunk.free(1, 10);
        let other = {
            let chunk = chunk.clone();
            thread::spawn(move || chunk.free(2, 20))
        };
        let mut taken = chunk.take();
        let found_first = taken.contains(&(1, 10));
        assert!(found_first);
        chunk.free(3, 30);
        chunk.free(1, 11);
        other.join().unwrap();
        taken.extend(chunk.take());
        taken.sort();
        assert_eq!(taken, [(1, 10), (1, 11), (2, 20), (3, 30)]);
    });
}
