//! Reads and writes of one rank: at a place that the call names, or from the rank's position on.

use super::SharedFile;
use super::transfer::{failed, fault};
use super::view::{FilePiece, ViewTiles};
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::elements_of;
use crate::request::Request;
use crate::window::WindowLock;
use bytemuck::Pod;
use selvedge_core::spawn;

/// # Reads and writes of one rank
/// No other rank takes part. Where the view has gaps, a read also reads small gaps, and a write
/// makes a call for each piece that lies together; the collective forms are faster there.
impl<T: Pod + Send> SharedFile<T> {
    /// Reads this number of elements from the place `at` on; fewer if the file ends before.
    ///
    /// # Errors
    /// If the system fails, or the place lies beyond the largest file.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, SharedFile};
    ///
    /// # selvedge::run_local(async {
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("letters");
    /// mpi::run(2, move |world| {
    ///     let path = path.clone();
    ///     async move {
    ///         let file = SharedFile::create(&world, path).await?;
    ///         file.write_at(3 * world.rank() as u64, [b"abc", b"def"][world.rank()]).await?;
    ///         world.barrier().await?; // the other rank has written
    ///         assert_eq!(file.read_at(2, 100).await?, b"cdef");
    ///         file.close().await
    ///     }
    /// })
    /// .await
    /// .map_err(|failure| failure.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_File_read_at")]
    #[track_caller]
    pub fn read_at(
        &self,
        at: u64,
        count: usize,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send + use<T> {
        self.reading(self.inside.comm.call("read_at"), at, count)
    }

    /// Writes elements from the place `at` on.
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at). Some of the elements may have been written.
    ///
    /// # Complexity
    /// One copy of the elements, which the system reads from.
    #[doc(alias = "MPI_File_write_at")]
    #[track_caller]
    pub fn write_at(
        &self,
        at: u64,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        self.writing(self.inside.comm.call("write_at"), at, elements)
    }

    /// Starts a [`read_at`](Self::read_at), which goes on in a thread of its own.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iread_at")]
    #[track_caller]
    pub fn iread_at(&self, at: u64, count: usize) -> Request<Vec<T>> {
        let call = self.inside.comm.call("iread_at");
        let reading = self.reading(call, at, count);
        Request::of_collective(&self.inside.comm, call, Ok(spawn(reading)))
    }

    /// Starts a [`write_at`](Self::write_at). The elements are copied before the call returns.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iwrite_at")]
    #[track_caller]
    pub fn iwrite_at(&self, at: u64, elements: &[T]) -> Request<()> {
        let call = self.inside.comm.call("iwrite_at");
        let writing = self.writing(call, at, elements);
        Request::of_collective(&self.inside.comm, call, Ok(spawn(writing)))
    }

    /// The place of the next element that [`read`](Self::read) or [`write`](Self::write) of this
    /// rank takes.
    #[doc(alias = "MPI_File_get_position")]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves the position of this rank.
    #[doc(alias = "MPI_File_seek")]
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Reads this number of elements from the position on; fewer if the file ends before. The
    /// position moves behind the elements that were read.
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at); the position stays then.
    #[doc(alias = "MPI_File_read")]
    #[track_caller]
    pub fn read(&mut self, count: usize) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let reading = self.reading(self.inside.comm.call("read"), self.position, count);
        async move {
            let elements = reading.await?;
            self.position += elements.len() as u64;
            Ok(elements)
        }
    }

    /// Writes elements from the position on, which moves behind them.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at); the position stays then.
    #[doc(alias = "MPI_File_write")]
    #[track_caller]
    pub fn write(&mut self, elements: &[T]) -> impl Future<Output = Result<(), Error>> + Send {
        let writing = self.writing(self.inside.comm.call("write"), self.position, elements);
        let count = elements.len() as u64;
        async move {
            writing.await?;
            self.position += count;
            Ok(())
        }
    }

    /// Starts a [`read`](Self::read). The position moves at once, behind all elements that are
    /// asked for.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iread")]
    #[track_caller]
    pub fn iread(&mut self, count: usize) -> Request<Vec<T>> {
        let request = self.iread_at(self.position, count);
        self.position = self.position.saturating_add(count as u64);
        request
    }

    /// Starts a [`write`](Self::write). The position moves at once.
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    #[doc(alias = "MPI_File_iwrite")]
    #[track_caller]
    pub fn iwrite(&mut self, elements: &[T]) -> Request<()> {
        let request = self.iwrite_at(self.position, elements);
        self.position = self.position.saturating_add(elements.len() as u64);
        request
    }

    pub(super) fn reading(
        &self,
        call: CallSite,
        at: u64,
        count: usize,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send + use<T> {
        let (inside, tiles) = (self.inside.clone(), self.tiles.clone());
        let is_atomic = inside.is_atomic();
        async move {
            let pieces = pieces(call, &tiles, at, count)?;
            let _locked = inside.lock_if(is_atomic, call, WindowLock::Shared).await?;
            let bytes = inside.read(&pieces).await;
            let bytes = bytes.map_err(|error| failed(call, call.rank, fault(&error)))?;
            Ok(whole_elements(bytes))
        }
    }

    fn writing(
        &self,
        call: CallSite,
        at: u64,
        elements: &[T],
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        self.writing_bytes(call, at, bytemuck::cast_slice(elements).to_vec())
    }

    pub(super) fn writing_bytes(
        &self,
        call: CallSite,
        at: u64,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let (inside, tiles) = (self.inside.clone(), self.tiles.clone());
        let is_atomic = inside.is_atomic();
        async move {
            let pieces = pieces(call, &tiles, at, bytes.len() / size_of::<T>())?;
            let _locked = inside.lock_if(is_atomic, call, WindowLock::Exclusive).await?;
            let written = inside.write(&pieces, bytes).await;
            written.map_err(|error| failed(call, call.rank, fault(&error)))
        }
    }
}

/// # Errors
/// If the elements lie beyond the largest file.
fn pieces(call: CallSite, tiles: &ViewTiles, at: u64, count: usize) -> Result<Vec<FilePiece>, Error> {
    tiles.pieces(at, count).ok_or_else(|| {
        let text = format!("{count} elements from {at} on lie beyond the largest file");
        call.error(ErrorClass::File, text)
    })
}

/// The elements of these bytes, without the beginning of one that the end of the file cuts off.
pub(super) fn whole_elements<T: Pod>(mut bytes: Vec<u8>) -> Vec<T> {
    bytes.truncate(bytes.len() - bytes.len() % size_of::<T>());
    elements_of(&bytes).expect("the bytes are a whole number of elements")
}
