//! The ranks that have died: [`Mpi::dead_ranks`], by the functions of ULFM, the part of MPI about
//! failures that Open MPI 5 has.
//!
//! The library knows of a death when its launcher does. From then on a receive from any rank is
//! [`MpiErrorClass::ProcFailedPending`], and is under way all the same, until the caller says that
//! it knows of the dead. A call that needs a dead rank is [`MpiErrorClass::ProcFailed`].
//!
//! [`MpiErrorClass::ProcFailed`]: crate::libmpi::MpiErrorClass::ProcFailed
//! [`MpiErrorClass::ProcFailedPending`]: crate::libmpi::MpiErrorClass::ProcFailedPending

use super::{CommHandle, Mpi, int};
use crate::libmpi::error::MpiError;
use crate::libmpi::family::MpiHandle;

impl<H: MpiHandle> Mpi<H> {
    /// Whether MPI goes on when a rank has died, and tells of it. Otherwise the launcher ends the
    /// job.
    pub(in crate::libmpi) fn bears_deaths(&self) -> Result<bool, MpiError> {
        let Some(key) = self.table.numbers.bears_deaths else { return Ok(false) };
        // Open MPI 4 does not have the attribute, and another one may have the number there.
        if self.functions.comm_failure_ack.is_none() {
            return Ok(false);
        }
        Ok(self.attribute(key)?.is_some_and(|bears| bears != 0))
    }

    /// The ranks of a communicator of which the library knows that they are dead. From now on it
    /// receives messages of any rank again. There are none where the library does not tell.
    pub(in crate::libmpi) fn dead_ranks(&self, comm: &CommHandle<H>) -> Result<Vec<i32>, MpiError> {
        let functions = &self.functions;
        let (Some(ack), Some(acked)) = (&functions.comm_failure_ack, &functions.comm_failure_get_acked)
        else {
            return Ok(Vec::new());
        };
        let (mut dead, mut all) = (self.table.no_comm, self.table.no_comm);
        // SAFETY: MPI is started, the handle is of a communicator, and the places can be written.
        unsafe {
            self.check(ack.name, (ack.function)(comm.0))?;
            self.check(acked.name, (acked.function)(comm.0, &mut dead))?;
            ask!(self.comm_group(comm.0, &mut all))?;
        }
        let mut count = 0;
        // SAFETY: MPI is started, and `dead` is a group that was just made.
        unsafe { ask!(self.group_size(dead, &mut count)) }?;
        let ranks: Vec<i32> = (0..count).collect();
        let mut found = vec![0; ranks.len()];
        let name = functions.group_translate_ranks.name;
        let count = int(name, ranks.len())?;
        // SAFETY: MPI is started, the groups were just made, and both arrays have this length. The
        // groups are freed once, and not used afterwards.
        unsafe {
            ask!(self.group_translate_ranks(dead, count, ranks.as_ptr(), all, found.as_mut_ptr()))?;
            ask!(self.group_free(&mut dead))?;
            ask!(self.group_free(&mut all))?;
        }
        Ok(found)
    }
}
