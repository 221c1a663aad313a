//! [`ClaimedLength`] holds a program's answer to the length that the program has claimed.

use bytes::Bytes;
use std::io;

/// Counts the content of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimedLength {
    /// Content that is still to come, if the program has said how much there is.
    left: Option<u64>,
}

impl ClaimedLength {
    pub(crate) fn new(length: Option<u64>) -> ClaimedLength {
        ClaimedLength { left: length }
    }

    /// The part of a piece that belongs to the answer: what is beyond the claimed length does not.
    pub(crate) fn take(&mut self, mut piece: Bytes) -> Bytes {
        if let Some(left) = &mut self.left {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
        }
        piece
    }

    /// The end of the answer.
    ///
    /// # Errors
    /// If content is missing, so that the client must not take the part for the whole.
    pub(crate) fn end(self) -> io::Result<()> {
        match self.left {
            Some(1..) => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the program wrote less than it said"))
            }
            _ => Ok(()),
        }
    }
}
