//! Reads and writes of all ranks together.

use super::SharedFile;
use super::access::whole_elements;
use super::transfer::FileInside;
use super::two_phase::{BegunTransfer, CollectiveTransfer};
use super::view::ViewTiles;
use crate::collective::CollectiveKind;
use crate::error::{CallSite, Error};
use crate::request::Request;
use bytemuck::Pod;
use selvedge_core::spawn;

/// # Reads and writes of all ranks together
/// Every rank calls them, each with a place and elements of its own, or none. If the system fails
/// on one rank, every rank gets an error that names that rank.
///
/// # Complexity
/// Where the elements of the ranks lie between one another, some ranks transfer for the others, in
/// rounds: each rank sends each of them a message in a round and gets one or two. What lies
/// together is one call of the system in a round. Where each rank has one piece, it makes one call.
impl<T: Pod + Send> SharedFile<T> {
    /// Reads this number of elements of each rank's view, from the place `at` on; fewer if the file
    /// ends before.
    ///
    /// # Errors
    /// On every rank, if the system fails on one, or the elements of one lie beyond the largest
    /// file. As for [`barrier`](crate::Communicator::barrier).
    ///
    /// # Examples
    /// See [`SharedFile`].
    #[doc(alias = "MPI_File_read_at_all")]
    #[track_caller]
    pub fn read_at_all(
        &self,
        at: u64,
        count: usize,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send + use<T> {
        self.reading_all(self.inside.comm.call("read_at_all"), at, count)
    }

    /// Writes the elements of each rank to its view, from the place `at` on. Where elements of
    /// several ranks lie in the same place, those of the highest rank stay.
    ///
    /// # Errors
    /// As for [`read_at_all`](Self::read_at_all). Some of the elements may have been written.
    ///
    /// # Examples
    /// See [`SharedFile`].
    #[doc(alias = "MPI_File_write_at_all")]
    #[track_caller]
    pub fn write_at_all(
        &self,
        at: u64,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        self.writing_all(self.inside.comm.call("write_at_all"), at, elements)
    }

    /// Starts a [`read_at_all`](Self::read_at_all), which goes on in a thread of its own. The other
    /// ranks may start it too, or call it and wait.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iread_at_all")]
    #[track_caller]
    pub fn iread_at_all(&self, at: u64, count: usize) -> Request<Vec<T>> {
        let call = self.inside.comm.call("iread_at_all");
        let reading = self.reading_all(call, at, count);
        Request::of_collective(&self.inside.comm, call, Ok(spawn(reading)))
    }

    /// Starts a [`write_at_all`](Self::write_at_all). The elements are copied before the call
    /// returns.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iwrite_at_all")]
    #[track_caller]
    pub fn iwrite_at_all(&self, at: u64, elements: &[T]) -> Request<()> {
        let call = self.inside.comm.call("iwrite_at_all");
        let writing = self.writing_all(call, at, elements);
        Request::of_collective(&self.inside.comm, call, Ok(spawn(writing)))
    }

    /// [`read_at_all`](Self::read_at_all) from each rank's position on, which moves behind the
    /// elements that were read.
    ///
    /// # Errors
    /// As that; the position stays then.
    #[doc(alias = "MPI_File_read_all")]
    #[track_caller]
    pub fn read_all(&mut self, count: usize) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let reading = self.reading_all(self.inside.comm.call("read_all"), self.position, count);
        async move {
            let elements = reading.await?;
            self.position += elements.len() as u64;
            Ok(elements)
        }
    }

    /// [`write_at_all`](Self::write_at_all) from each rank's position on, which moves behind the
    /// elements.
    ///
    /// # Errors
    /// As that; the position stays then.
    #[doc(alias = "MPI_File_write_all")]
    #[track_caller]
    pub fn write_all(&mut self, elements: &[T]) -> impl Future<Output = Result<(), Error>> + Send {
        let writing = self.writing_all(self.inside.comm.call("write_all"), self.position, elements);
        let count = elements.len() as u64;
        async move {
            writing.await?;
            self.position += count;
            Ok(())
        }
    }

    /// The operation takes its number among the collectives in this call, so that the calls of a
    /// rank have their order.
    fn reading_all(
        &self,
        call: CallSite,
        at: u64,
        count: usize,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send + use<T> {
        let begun = BegunTransfer::begin(&self.inside, call, CollectiveKind::ReadFileAll);
        let (inside, tiles) = (self.inside.clone(), self.tiles.clone());
        async move { read_in_round(begun?, &inside, &tiles, at, count).await }
    }

    fn writing_all(
        &self,
        call: CallSite,
        at: u64,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let begun = BegunTransfer::begin(&self.inside, call, CollectiveKind::WriteFileAll);
        let (inside, tiles) = (self.inside.clone(), self.tiles.clone());
        let bytes = bytemuck::cast_slice(elements).to_vec();
        async move { write_in_round::<T>(begun?, &inside, &tiles, at, bytes).await }
    }
}

/// The part of this rank in a collective read.
pub(super) async fn read_in_round<T: Pod>(
    begun: BegunTransfer,
    inside: &FileInside,
    tiles: &ViewTiles,
    at: u64,
    count: usize,
) -> Result<Vec<T>, Error> {
    let bytes = CollectiveTransfer::new(inside, begun, tiles.pieces(at, count)).read().await?;
    Ok(whole_elements(bytes))
}

/// The part of this rank in a collective write.
pub(super) async fn write_in_round<T: Pod>(
    begun: BegunTransfer,
    inside: &FileInside,
    tiles: &ViewTiles,
    at: u64,
    bytes: Vec<u8>,
) -> Result<(), Error> {
    let pieces = tiles.pieces(at, bytes.len() / size_of::<T>());
    CollectiveTransfer::new(inside, begun, pieces).write(bytes).await
}
