//! [`ReadRoom`]: room for an answer that comes as a whole, which the OS thread uses again.
//!
//! `exchange.rs` takes it when a connection may have bytes, and `plain.rs` makes the answer of it.
//! A client of another protocol does the same. An allocation of this size has the allocator join
//! its free pieces, which costs more than the read of a short head.

use bytes::Bytes;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// The room for the head of an answer, and for a small body behind it.
pub(crate) const ROOM_BYTES: usize = 4 << 10;

/// Room that has grown beyond this is not kept.
const KEPT_BYTES_MAX: usize = 16 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes that were read of a connection. When the last part of them is dropped, its OS thread keeps
/// their room for the next ones.
///
/// # Examples
/// ```
/// use selvedge::client::{Bytes, ReadRoom};
///
/// let mut room = ReadRoom::empty();
/// assert!(room.capacity() >= 4096);
/// room.extend_from_slice(b"head and content");
/// assert_eq!(&Bytes::from(room)[9..], b"content");
/// ```
#[derive(Debug)]
pub struct ReadRoom(pub(crate) Vec<u8>);

impl ReadRoom {
    /// Room for 4 KiB at least.
    pub fn empty() -> ReadRoom {
        ReadRoom(room())
    }
}

impl Deref for ReadRoom {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for ReadRoom {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl From<ReadRoom> for Bytes {
    fn from(room: ReadRoom) -> Bytes {
        Bytes::from_owner(room)
    }
}

/// An empty vector with at least [`ROOM_BYTES`] of room.
pub(crate) fn room() -> Vec<u8> {
    let mut room = SPARE.take();
    room.reserve(ROOM_BYTES);
    room
}

impl AsRef<[u8]> for ReadRoom {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ReadRoom {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.0);
        room.clear();
        if room.capacity() <= KEPT_BYTES_MAX {
            // An error says that the OS thread ends.
            let _ = SPARE.try_with(|spare| spare.set(room));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_when_the_last_part_is_dropped() {
        let mut read = room();
        let place = read.as_ptr();
        read.extend_from_slice(b"head and content");
        let mut head = Bytes::from_owner(ReadRoom(read));
        let content = head.split_off(9);
        drop(head);
        let other = room();
        assert_ne!(other.as_ptr(), place, "a part of it is in use");
        assert_eq!(content, &b"content"[..]);
        drop(content);
        let again = room();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
    }

    #[test]
    fn room_for_a_long_answer_is_not_kept() {
        drop(ReadRoom(Vec::with_capacity(KEPT_BYTES_MAX + 1)));
        assert!(room().capacity() <= KEPT_BYTES_MAX);
    }
}
