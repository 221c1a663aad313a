//! Messages with more numbers than the library's integer counts: [`Mpi::counted`].
//!
//! The calls with counts of 64 bits came with MPI 4, and Open MPI 4 lacks them. So a large message
//! is one element of a type that is as large as the message: blocks of bytes, and a rest. The count
//! is 1 then, and the library tells the length in bytes by a number of 64 bits.

use super::{Mpi, int};
use crate::libmpi::error::MpiError;
use crate::libmpi::family::MpiHandle;
use crate::libmpi::memory::MpiMemory;
use std::ffi::c_int;

/// A message of this number of bytes, or more, has a type of its own. The cost of making the type
/// is nothing beside that of moving so much.
const LARGE: usize = 1 << 28;

/// The bytes of a block.
const BLOCK: usize = 1 << 20;

impl<H: MpiHandle> Mpi<H> {
    /// Makes a call with the count and the type of what lies in a memory.
    pub(super) fn counted<R>(
        &self,
        call: &'static str,
        memory: &MpiMemory,
        make: impl FnOnce(c_int, H) -> Result<R, MpiError>,
    ) -> Result<R, MpiError> {
        if memory.bytes() < LARGE {
            return make(int(call, memory.len())?, self.moved(memory.scalar()));
        }
        let whole = self.type_of_bytes(memory.bytes())?;
        let made = make(1, whole);
        // A failure leaves the type to the end of MPI. The call that is under way keeps the type.
        let _ = self.free_type(whole);
        made
    }

    /// A type of this number of bytes.
    fn type_of_bytes(&self, bytes: usize) -> Result<H, MpiError> {
        let byte = self.table.byte;
        let (mut block, mut whole) = (byte, byte);
        let lengths = [int(self.functions.type_create_struct.name, bytes / BLOCK)?, (bytes % BLOCK) as c_int];
        let places = [0, (bytes - bytes % BLOCK) as isize];
        // SAFETY: MPI is started, and the handles are constants, or types that these calls make.
        // The three arrays have two entries each, and the places for the new types can be written.
        unsafe {
            ask!(self.type_contiguous(BLOCK as c_int, byte, &mut block))?;
            let kinds = [block, byte];
            let made = ask!(self.type_create_struct(
                2,
                lengths.as_ptr(),
                places.as_ptr(),
                kinds.as_ptr(),
                &mut whole
            ));
            // The new type keeps it.
            self.free_type(block)?;
            made?;
            ask!(self.type_commit(&mut whole))?;
        }
        Ok(whole)
    }

    fn free_type(&self, mut kind: H) -> Result<(), MpiError> {
        // SAFETY: MPI is started, and the handle is of a type that `type_of_bytes` has made and
        // that its caller has no more.
        unsafe { ask!(self.type_free(&mut kind)) }
    }
}
