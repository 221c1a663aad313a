//! [`SpareMemory`]: the memory of long messages that have been received or sent, for the next ones.
//!
//! A slice that is sent within a process is copied into memory of the message, and from there into
//! the slice of the receiver. Between processes a message is copied so if no thread waits for it.
//! The system takes longer to give new memory than such a copy takes, so the last user of a piece
//! leaves it here. The process has one store of them ([`spare`]).

use bytemuck::Pod;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory that was of messages.
pub(crate) struct SpareMemory {
    pieces: Mutex<SpareStock>,
}

struct SpareStock {
    /// Each is a vector of elements, with its length in bytes. The last one is at the end.
    all: VecDeque<(usize, Box<dyn Any + Send>)>,
    /// The sum of their lengths.
    bytes: usize,
}

/// The shortest message of which memory is kept: for a shorter one it is never new.
pub(crate) const SPARE_MIN: usize = 32 << 10;

/// The memory that is kept in all. A piece that is longer is kept alone.
const SPARE_MAX: usize = 16 << 20;

/// The longest piece that is kept. The system has a longer one back at once, so that one very long
/// message does not make the process large until its end.
const PIECE_MAX: usize = 64 << 20;

static SPARE: SpareMemory = SpareMemory::new();

/// The spare memory of this process.
pub(crate) fn spare() -> &'static SpareMemory {
    &SPARE
}

impl SpareMemory {
    const fn new() -> SpareMemory {
        SpareMemory { pieces: Mutex::new(SpareStock { all: VecDeque::new(), bytes: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, SpareStock> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The elements in memory that is here, or that is new.
    pub(crate) fn filled<T: Pod + Send>(&self, elements: &[T]) -> Vec<T> {
        let mut filled = self.room(elements.len());
        filled.extend_from_slice(elements);
        filled
    }

    /// An empty vector with room for this number of elements, if memory for it is here. Else it has
    /// no memory.
    pub(crate) fn room<T: Pod + Send>(&self, elements: usize) -> Vec<T> {
        match elements.saturating_mul(size_of::<T>()) >= SPARE_MIN {
            true => self.take(elements).unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// The last piece that has the room, because the cache may have it.
    fn take<T: Pod + Send>(&self, room: usize) -> Option<Vec<T>> {
        let mut pieces = self.lock();
        let fits = |(_, piece): &(usize, Box<dyn Any + Send>)| {
            piece.downcast_ref::<Vec<T>>().is_some_and(|piece| piece.capacity() >= room)
        };
        let place = pieces.all.iter().rposition(fits)?;
        let (bytes, piece) = pieces.all.remove(place)?;
        pieces.bytes -= bytes;
        drop(pieces);
        let mut piece: Vec<T> = *piece.downcast().ok()?;
        piece.clear();
        Some(piece)
    }

    /// Keeps the memory of a vector, in place of earlier ones if there is too much. Memory that is
    /// very short or very long is not kept.
    pub(crate) fn keep<T: Pod + Send>(&self, piece: Vec<T>) {
        let bytes = piece.capacity() * size_of::<T>();
        if !(SPARE_MIN..=PIECE_MAX).contains(&bytes) {
            return;
        }
        let mut given_up = Vec::new();
        let mut pieces = self.lock();
        while pieces.bytes + bytes > SPARE_MAX
            && let Some((bytes, piece)) = pieces.all.pop_front()
        {
            pieces.bytes -= bytes;
            given_up.push(piece);
        }
        pieces.bytes += bytes;
        pieces.all.push_back((bytes, Box::new(piece)));
        // The system takes its memory back after the lock.
        drop(pieces);
        drop(given_up);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn lengths(spare: &SpareMemory) -> Vec<usize> {
        let pieces = spare.lock();
        let lengths: Vec<usize> = pieces.all.iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(lengths.iter().sum::<usize>(), pieces.bytes);
        lengths
    }

    #[test]
    fn memory_serves_again_for_elements_of_its_type_that_fit() {
        let spare = SpareMemory::new();
        let piece = spare.filled(&[7_u32; 10_000]);
        let place = piece.as_ptr();
        spare.keep(piece);
        let other = spare.filled(&[1_u64; 5_000]);
        assert_ne!(other.as_ptr().addr(), place.addr());
        assert_eq!(spare.room::<u32>(10_001).capacity(), 0);
        assert_eq!(spare.room::<u32>(8_000).capacity(), 0);
        assert_eq!(lengths(&spare), [40_000]);
        let again = spare.filled(&[8_u32; 9_000]);
        assert_eq!((again.as_ptr(), &again[..]), (place, &[8_u32; 9_000][..]));
        assert_eq!(lengths(&spare), []);
    }

    #[test]
    fn the_last_pieces_are_kept_up_to_a_limit() {
        let spare = SpareMemory::new();
        for megabytes in [4, 5, 6, 7, 64, 1] {
            spare.keep(Vec::<u8>::with_capacity(megabytes << 20));
            if megabytes == 7 {
                assert_eq!(lengths(&spare), [6 << 20, 7 << 20]);
            }
        }
        assert_eq!(lengths(&spare), [1 << 20]);
        // It is too short.
        spare.keep(vec![7_u8; 100]);
        assert_eq!(lengths(&spare), [1 << 20]);
    }

    #[test]
    fn memory_of_a_very_long_message_is_not_kept() {
        let spare = SpareMemory::new();
        spare.keep(Vec::<u64>::with_capacity(PIECE_MAX / 8));
        assert_eq!(lengths(&spare), [PIECE_MAX]);
        // The piece that is longer goes, and no piece goes because of it.
        spare.keep(Vec::<u64>::with_capacity(PIECE_MAX / 8 + 1));
        assert_eq!(lengths(&spare), [PIECE_MAX]);
    }
}
