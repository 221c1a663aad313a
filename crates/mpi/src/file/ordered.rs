//! Reads and writes at the position that the ranks share: one rank after another as they come
//! (`read_shared`), or all together in the order of the ranks (`read_ordered`).
//!
//! The position is an element of a window, on rank 0. A rank that transfers adds its count to it,
//! and gets the place from before, so no two ranks get the same elements.

use super::SharedFile;
use super::collective::{read_in_round, write_in_round};
use super::two_phase::BegunTransfer;
use crate::collective::{CollectiveKind, CollectiveRound};
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::Value;
use bytemuck::Pod;

/// # The position that the ranks share
/// Every rank has the same view, because one position is meant by all. The position moves by the
/// number of elements that a call asks for, also if the file ends before.
impl<T: Pod + Send> SharedFile<T> {
    /// Reads this number of elements from the shared position on; fewer if the file ends before.
    /// Each element is read by one rank: a list of tasks is worked off so.
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at), and if rank 0 has ended.
    ///
    /// # Complexity
    /// A message to rank 0 and one back, and the read.
    #[doc(alias = "MPI_File_read_shared")]
    #[track_caller]
    pub fn read_shared(&self, count: usize) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.inside.comm.call("read_shared");
        async move {
            let at = self.drawn(call, count as u64).await?;
            self.reading(call, at, count).await
        }
    }

    /// Writes elements from the shared position on: a log of all ranks, in the order in which they
    /// come.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at), and if rank 0 has ended.
    ///
    /// # Complexity
    /// As for [`read_shared`](Self::read_shared).
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, SharedFile};
    ///
    /// # selvedge::run_local(async {
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("log");
    /// # let at = path.clone();
    /// mpi::run(3, move |world| {
    ///     let path = path.clone();
    ///     async move {
    ///         let log = SharedFile::create(&world, path).await?;
    ///         log.write_shared(format!("rank {} is here\n", world.rank()).as_bytes()).await?;
    ///         // In the order of the ranks, each after all lines from before.
    ///         log.write_ordered(format!("rank {}\n", world.rank()).as_bytes()).await?;
    ///         log.close().await
    ///     }
    /// })
    /// .await
    /// .map_err(|failure| failure.to_string())?;
    /// let log = std::fs::read_to_string(&at)?;
    /// assert!(log.contains("rank 2 is here\n") && log.ends_with("rank 0\nrank 1\nrank 2\n"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_File_write_shared")]
    #[track_caller]
    pub fn write_shared(&self, elements: &[T]) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("write_shared");
        let (bytes, count) = (bytemuck::cast_slice(elements).to_vec(), elements.len() as u64);
        async move {
            let at = self.drawn(call, count).await?;
            self.writing_bytes(call, at, bytes).await
        }
    }

    /// Every rank reads this number of elements, from the shared position on: first those of rank
    /// 0, then those of rank 1 and so on.
    ///
    /// # Errors
    /// As for [`read_at_all`](Self::read_at_all).
    #[doc(alias = "MPI_File_read_ordered")]
    #[track_caller]
    pub fn read_ordered(&self, count: usize) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.inside.comm.call("read_ordered");
        async move {
            let mut begun = BegunTransfer::begin(&self.inside, call, CollectiveKind::ReadFileOrdered)?;
            let at = self.drawn_in_order(call, &mut begun.round, count as u64).await?;
            read_in_round(begun, &self.inside, &self.tiles, at, count).await
        }
    }

    /// Every rank writes its elements, from the shared position on: first those of rank 0, then
    /// those of rank 1 and so on.
    ///
    /// # Errors
    /// As for [`write_at_all`](Self::write_at_all).
    ///
    /// # Examples
    /// See [`write_shared`](Self::write_shared).
    #[doc(alias = "MPI_File_write_ordered")]
    #[track_caller]
    pub fn write_ordered(&self, elements: &[T]) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("write_ordered");
        let bytes = bytemuck::cast_slice(elements).to_vec();
        let count = elements.len() as u64;
        async move {
            let mut begun = BegunTransfer::begin(&self.inside, call, CollectiveKind::WriteFileOrdered)?;
            let at = self.drawn_in_order(call, &mut begun.round, count).await?;
            write_in_round::<T>(begun, &self.inside, &self.tiles, at, bytes).await
        }
    }

    /// The shared position.
    ///
    /// # Errors
    /// If rank 0 has ended.
    #[doc(alias = "MPI_File_get_position_shared")]
    #[track_caller]
    pub fn position_shared(&self) -> impl Future<Output = Result<u64, Error>> + Send {
        let call = self.inside.comm.call("position_shared");
        async move { self.drawn(call, 0).await }
    }

    /// Moves the shared position. Every rank calls it, with the same position.
    ///
    /// # Errors
    /// If the ranks name different positions, or one has ended.
    #[doc(alias = "MPI_File_seek_shared")]
    #[track_caller]
    pub fn seek_shared(&self, position: u64) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("seek_shared");
        async move {
            let mut round = CollectiveRound::begin(&self.inside.comm, call, CollectiveKind::WholeFile, 0)?;
            let all = round.allgather(Value(position)).await?;
            if let Some(rank) = all.iter().position(|Value(theirs)| *theirs != position) {
                let Value(theirs) = &all[rank];
                let text = format!("rank {rank} names the position {theirs}, and this rank {position}");
                return Err(call.error(ErrorClass::Mismatch, text));
            }
            self.put_shared_position(call, &mut round, position).await?;
            round.end().await
        }
    }

    /// Rank 0 sets the position, and the others wait until it is set.
    pub(super) async fn put_shared_position(
        &self,
        call: CallSite,
        round: &mut CollectiveRound,
        position: u64,
    ) -> Result<(), Error> {
        let mut done = None;
        if round.rank() == 0 {
            let own = &self.inside.shared_position;
            own.write(|element| element[0] = position);
            done = Some(Value(()));
        }
        round.bcast(0, done).await.map(drop).map_err(|error| error.in_call(call))
    }

    /// Adds to the shared position, and gives the one from before.
    async fn drawn(&self, call: CallSite, count: u64) -> Result<u64, Error> {
        let drawn = self.inside.shared_position.fetch_and_op(0, 0, count).await;
        drawn.map_err(|error| error.in_call(call))
    }

    /// The place of this rank, when all ranks draw in their order.
    async fn drawn_in_order(
        &self,
        call: CallSite,
        round: &mut CollectiveRound,
        count: u64,
    ) -> Result<u64, Error> {
        let counts = round.allgather(Value(count)).await?;
        let counts: Vec<u64> = counts.into_iter().map(|Value(count)| count).collect();
        let mut first = None;
        if round.rank() == 0 {
            let all = counts.iter().copied().fold(0, u64::saturating_add);
            first = Some(Value(self.drawn(call, all).await?));
        }
        let Value(first) = round.bcast(0, first).await?;
        Ok(counts[..round.rank()].iter().copied().fold(first, u64::saturating_add))
    }
}
