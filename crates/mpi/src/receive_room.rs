//! [`ReceiveRoom`]: where the thread that waits for a message wants its bytes, so that an engine
//! can put them there itself.
//!
//! A receive into a slice lends its slice. A receive of a vector of numbers makes the vector when
//! the length of the message is known (`wire/coming_vector.rs`). The engine fills the
//! [`RoomPieces`], from bytes of this process or of another one.

use bytemuck::Pod;
use std::fmt;
use std::mem::MaybeUninit;

/// Where a thread wants the elements of the message for which it waits.
pub struct ReceiveRoom<'a>(RoomKind<'a>);

enum RoomKind<'a> {
    /// Elements that are there, and the size of one in bytes.
    Elements(&'a mut [u8], usize),
    Vector(&'a mut (dyn VectorRoom + Send)),
}

/// What makes a vector for a message when its length is known.
pub(crate) trait VectorRoom {
    /// Room for a message of this number of bytes. `None` if it can be no such vector.
    fn pieces(&mut self, bytes: usize) -> Option<RoomPieces<'_>>;
}

impl<'a> ReceiveRoom<'a> {
    pub(crate) fn new<T: Pod>(elements: &'a mut [T]) -> ReceiveRoom<'a> {
        ReceiveRoom(RoomKind::Elements(bytemuck::cast_slice_mut(elements), size_of::<T>()))
    }

    pub(crate) fn of_vector(vector: &'a mut (dyn VectorRoom + Send)) -> ReceiveRoom<'a> {
        ReceiveRoom(RoomKind::Vector(vector))
    }

    /// Room for a message of this number of bytes. `None` if the bytes are no elements, or too
    /// many: the receive is to fail then, and leave the elements as they are.
    pub fn of(&mut self, bytes: usize) -> Option<RoomPieces<'_>> {
        match &mut self.0 {
            RoomKind::Elements(_, 0) => None,
            RoomKind::Elements(all, element) => {
                let room = all.get_mut(..bytes).filter(|_| bytes.is_multiple_of(*element))?;
                Some(RoomPieces::of_bytes(room))
            }
            RoomKind::Vector(vector) => vector.pieces(bytes),
        }
    }
}

impl fmt::Debug for ReceiveRoom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            RoomKind::Elements(..) => "ReceiveRoom(elements)",
            RoomKind::Vector(_) => "ReceiveRoom(a vector)",
        })
    }
}

/// The same bytes, as memory to which only [`RoomPieces`] writes.
fn as_memory(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the types have the same layout. No byte becomes uninitialised, because `RoomPieces`
    // has the memory: `copy_from` writes bytes, and so does the caller of `addresses`.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) }
}

/// Room for the bytes of one message, in two pieces of which each may be empty: the first bytes of
/// the message go to the first one. Only bytes with a value are written there.
pub struct RoomPieces<'a> {
    pieces: [&'a mut [MaybeUninit<u8>]; 2],
    /// Becomes true when all bytes have been written.
    is_filled: Option<&'a mut bool>,
}

impl<'a> RoomPieces<'a> {
    /// Bytes that are there.
    fn of_bytes(bytes: &'a mut [u8]) -> RoomPieces<'a> {
        RoomPieces { pieces: [&mut [], as_memory(bytes)], is_filled: None }
    }

    /// What stands before a vector, and the memory of its elements, which have no value yet.
    /// `is_filled` becomes true when all bytes have been written.
    pub(crate) fn of_vector(
        head: &'a mut [u8],
        elements: &'a mut [MaybeUninit<u8>],
        is_filled: &'a mut bool,
    ) -> RoomPieces<'a> {
        RoomPieces { pieces: [as_memory(head), elements], is_filled: Some(is_filled) }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Fills the room.
    ///
    /// # Panics
    /// If it is not for this number of bytes.
    pub(crate) fn copy_from(self, bytes: &[u8]) {
        let RoomPieces { pieces: [head, body], is_filled } = self;
        let (first, rest) = bytes.split_at(head.len());
        head.write_copy_of_slice(first);
        body.write_copy_of_slice(rest);
        is_filled.into_iter().for_each(|is_filled| *is_filled = true);
    }

    /// The addresses of the pieces, and their lengths. The caller writes bytes with a value to
    /// them, and nothing else.
    pub(crate) fn addresses(&mut self) -> [(*mut u8, usize); 2] {
        let [head, body] = &mut self.pieces;
        [(head.as_mut_ptr().cast(), head.len()), (body.as_mut_ptr().cast(), body.len())]
    }

    /// All bytes have been written.
    ///
    /// # Safety
    /// The caller has written all bytes by the [`addresses`](Self::addresses).
    pub(crate) unsafe fn filled(self) {
        self.is_filled.into_iter().for_each(|is_filled| *is_filled = true);
    }
}

impl fmt::Debug for RoomPieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomPieces({} bytes)", self.len())
    }
}
