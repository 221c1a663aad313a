//! [`BytePieces`]: the bytes of a message in two pieces, because what stands before a vector does
//! not lie where the vector lies.

use crate::spare_memory::spare;

/// The bytes of a message in two pieces, of which each may be empty.
pub type BytePieces<'a> = [&'a [u8]; 2];

/// The number of all bytes.
pub(crate) fn length_of(pieces: BytePieces<'_>) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// The bytes one after another, with room for this number of others behind them.
pub(crate) fn joined(pieces: BytePieces<'_>, further: usize) -> Vec<u8> {
    let room = length_of(pieces) + further;
    let mut bytes = spare().room(room);
    bytes.reserve_exact(room);
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes
}
