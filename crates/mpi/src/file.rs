//! [`SharedFile`]: a file that the ranks of a communicator have open together.
//!
//! It is made of the file calls of `selvedge_io` and of collective operations, so it works on every
//! engine: the ranks have one file system, and agree by messages.
//!
//! | File | |
//! |---|---|
//! | `file.rs` | the handle, and what concerns the file as a whole |
//! | `file/options.rs` | how the ranks open a file |
//! | `file/view.rs` | which elements a rank sees, and in which bytes they lie |
//! | `file/access.rs` | reads and writes of one rank |
//! | `file/collective.rs` | reads and writes of all ranks together |
//! | `file/ordered.rs` | reads and writes at the position that the ranks share |
//! | `file/transfer.rs` | how one rank transfers pieces |
//! | `file/two_phase.rs` | how some ranks transfer the pieces of all |

mod access;
mod collective;
mod options;
mod ordered;
mod transfer;
mod two_phase;
mod view;

use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::Value;
use bytemuck::Pod;
pub use options::SharedFileOptions;
use selvedge_io::fs;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use transfer::{FileFault, FileInside, agreed, failed, fault};
pub use view::FileView;
use view::ViewTiles;

/// A file that the ranks of a communicator have open together: MPI-IO.
///
/// The elements are of the type `T`, any type of plain data; a file that has been opened is one of
/// bytes, and [`view`](SharedFile::view) makes it one of other elements. Each rank has a view,
/// which says which elements of the file it sees. Every place and count is one of elements of the
/// view.
///
/// | | of one rank | of all ranks together | started, of one or all |
/// |---|---|---|---|
/// | at a place that the call names | [`read_at`](SharedFile::read_at), [`write_at`](SharedFile::write_at) | [`read_at_all`](SharedFile::read_at_all), [`write_at_all`](SharedFile::write_at_all) | [`iread_at`](SharedFile::iread_at), [`iwrite_at_all`](SharedFile::iwrite_at_all) and so on |
/// | from the rank's position on | [`read`](SharedFile::read), [`write`](SharedFile::write), [`seek`](SharedFile::seek) | [`read_all`](SharedFile::read_all), [`write_all`](SharedFile::write_all) | [`iread`](SharedFile::iread), [`iwrite`](SharedFile::iwrite) |
/// | from the position on that the ranks share | [`read_shared`](SharedFile::read_shared), [`write_shared`](SharedFile::write_shared) | [`read_ordered`](SharedFile::read_ordered), [`write_ordered`](SharedFile::write_ordered) | |
///
/// A read gives fewer elements than it asks for if the file ends before.
///
/// The operations of all ranks together are collectives: every rank makes the same calls in the
/// same order, each with its own place and elements. They are fast where the elements of the ranks
/// lie between one another: some ranks write for the others, so a large piece is one call of the
/// system.
///
/// # What the other ranks see
/// The ranks of one machine see at once what another rank has written. Between machines a file
/// system may keep data for itself; [`sync`](SharedFile::sync) on the writer, a message, and then
/// the read is right on all. If two ranks write the same bytes at the same time, the bytes of
/// either may be there. [`set_atomic`](SharedFile::set_atomic) makes each operation one whole.
/// In [`write_at_all`](SharedFile::write_at_all) the bytes of the highest rank stay.
///
/// # Cancellation
/// A write that is dropped has written all of its bytes, some or none. A collective that is dropped
/// half-way leaves the other ranks without its messages, as every collective does.
///
/// # Examples
/// A vector that the ranks write in parts, and read in another way:
/// ```
/// use selvedge::mpi::{self, FileView, Layout, SharedFile};
///
/// # selvedge::run_local(async {
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("vector");
/// # let at = path.clone();
/// mpi::run(3, move |world| {
///     let path = path.clone();
///     async move {
///         let (rank, size) = (world.rank(), world.size());
///         // A header of 8 bytes, and then one part after the other.
///         let file = SharedFile::create(&world, path).await?;
///         let file = file.view::<u32>(FileView::whole().after(8)).await?;
///         let part: Vec<u32> = (0..4).map(|number| (10 * rank + number) as u32).collect();
///         file.write_at_all(4 * rank as u64, &part).await?;
///
///         // Each rank reads every third element, beginning with its own number.
///         let every_third = FileView::new(Layout::contiguous(1).shifted(rank), size).after(8);
///         let file = file.view::<u32>(every_third).await?;
///         let mine = file.read_at_all(0, 4).await?;
///         assert_eq!(mine, [[0, 3, 12, 21], [1, 10, 13, 22], [2, 11, 20, 23]][rank]);
///         file.close().await
///     }
/// })
/// .await
/// .map_err(|failure| failure.to_string())?;
/// # assert_eq!(std::fs::metadata(at)?.len(), 8 + 12 * 4);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
/// # Paper
/// [HMPI "Conclusion"]: of what Haskell-MPI lacks, parallel input and output is named as the most
/// significant part.
#[doc(alias = "MPI_File")]
#[doc(alias = "MPI-IO")]
pub struct SharedFile<T = u8> {
    inside: Arc<FileInside>,
    tiles: Arc<ViewTiles>,
    /// The place of this rank's next read or write, in elements of the view.
    position: u64,
    elements: PhantomData<fn(T) -> T>,
}

impl SharedFile {
    /// Options with which the ranks open a file.
    pub fn options() -> SharedFileOptions {
        SharedFileOptions::default()
    }

    /// Opens a file for reading. Every rank calls it.
    ///
    /// # Errors
    /// As for [`SharedFileOptions::open`].
    #[track_caller]
    pub fn open(
        communicator: &Communicator,
        path: impl Into<PathBuf>,
    ) -> impl Future<Output = Result<SharedFile, Error>> + Send {
        let (call, path) = (communicator.call("open"), path.into());
        let options = SharedFile::options().read(true);
        async move { options.opened(communicator, call, path).await }
    }

    /// Creates a file, or empties it, for reading and writing. Every rank calls it.
    ///
    /// # Errors
    /// As for [`SharedFileOptions::open`].
    #[track_caller]
    pub fn create(
        communicator: &Communicator,
        path: impl Into<PathBuf>,
    ) -> impl Future<Output = Result<SharedFile, Error>> + Send {
        let (call, path) = (communicator.call("create"), path.into());
        let options = SharedFile::options().read(true).write(true).create(true).truncate(true);
        async move { options.opened(communicator, call, path).await }
    }

    fn of(inside: Arc<FileInside>, position: u64) -> SharedFile {
        let tiles = Arc::new(ViewTiles::new(&FileView::whole(), 1));
        SharedFile { inside, tiles, position, elements: PhantomData }
    }
}

impl<T: Pod + Send> SharedFile<T> {
    /// Gives each rank a view of elements of type `U`, and sets all positions to 0. Every rank
    /// calls it, with the same type and a view of its own.
    ///
    /// A type without a size does not compile.
    ///
    /// # Errors
    /// If a rank names elements of another size, or has ended.
    ///
    /// # Examples
    /// See [`SharedFile`]. A type that has no bytes is no element:
    /// ```compile_fail,E0080
    /// use selvedge::mpi::{Error, FileView, SharedFile};
    ///
    /// async fn nothing(file: SharedFile) -> Result<SharedFile<()>, Error> {
    ///     file.view::<()>(FileView::whole()).await
    /// }
    /// # fn main() {
    /// #     let file: Option<SharedFile> = None;
    /// #     drop(file.map(|file| selvedge::spawn(nothing(file))));
    /// # }
    /// ```
    #[doc(alias = "MPI_File_set_view")]
    #[track_caller]
    pub fn view<U: Pod + Send>(
        self,
        view: FileView,
    ) -> impl Future<Output = Result<SharedFile<U>, Error>> + Send {
        const { assert!(size_of::<U>() > 0, "an element of a file has at least one byte") };
        let call = self.inside.comm.call("view");
        async move {
            let mut round = CollectiveRound::begin(&self.inside.comm, call, CollectiveKind::ViewFile, 0)?;
            let sizes = round.allgather(Value(size_of::<U>() as u64)).await?;
            let mine = size_of::<U>();
            let other = sizes.iter().position(|Value(size)| *size != mine as u64);
            if let Some(rank) = other {
                let Value(size) = &sizes[rank];
                let text = format!("rank {rank} names elements of {size} bytes, and this rank of {mine}");
                return Err(call.error(ErrorClass::Mismatch, text));
            }
            self.put_shared_position(call, &mut round, 0).await?;
            round.end().await?;
            let tiles = Arc::new(ViewTiles::new(&view, size_of::<U>()));
            Ok(SharedFile { inside: self.inside, tiles, position: 0, elements: PhantomData })
        }
    }

    /// The path with which this rank has opened the file.
    pub fn path(&self) -> &Path {
        &self.inside.path
    }

    /// The communicator of the ranks that have the file open, for their number and group.
    #[doc(alias = "MPI_File_get_group")]
    pub fn communicator(&self) -> &Communicator {
        &self.inside.comm
    }

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// If the system tells none.
    #[doc(alias = "MPI_File_get_size")]
    #[track_caller]
    pub fn len(&self) -> impl Future<Output = Result<u64, Error>> + Send {
        let call = self.inside.comm.call("len");
        async move {
            let length = self.inside.file.len().await;
            length.map_err(|error| failed(call, call.rank, fault(&error)))
        }
    }

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// As for [`len`](Self::len).
    #[track_caller]
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send {
        let length = self.len();
        async move { Ok(length.await? == 0) }
    }

    /// Cuts the file off after this number of bytes, or lengthens it with zeros. Every rank calls
    /// it, with the same length.
    ///
    /// # Errors
    /// On every rank, if rank 0 cannot do it, or the ranks name different lengths.
    #[doc(alias = "MPI_File_set_size")]
    #[track_caller]
    pub fn set_len(&self, bytes: u64) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("set_len");
        async move { self.whole(call, bytes, async || self.inside.file.set_len(bytes).await).await }
    }

    /// Makes the file at least this long: rank 0 writes zeros behind its end, so that the disk has
    /// room for later writes of these bytes. Holes of the file from before stay holes. Every rank
    /// calls it, with the same length.
    ///
    /// # Errors
    /// As for [`set_len`](Self::set_len). Some of the zeros may have been written.
    #[doc(alias = "MPI_File_preallocate")]
    #[track_caller]
    pub fn preallocate(&self, bytes: u64) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("preallocate");
        async move { self.whole(call, bytes, async || self.write_zeros(bytes).await).await }
    }

    async fn write_zeros(&self, upto: u64) -> io::Result<()> {
        const CHUNK: u64 = 1 << 20;
        let file = &self.inside.file;
        let mut from = file.len().await?;
        let mut zeros = vec![0; upto.saturating_sub(from).min(CHUNK) as usize];
        while from < upto {
            zeros.truncate((upto - from).min(CHUNK) as usize);
            let written;
            (written, zeros) = file.write_all_at(zeros, from).await;
            written?;
            from += zeros.len() as u64;
        }
        Ok(())
    }

    /// Waits until all that the ranks have written is on the disk. Every rank calls it, and what
    /// any rank has written before is seen by every rank afterwards.
    ///
    /// # Errors
    /// On every rank, if the system has failed on one.
    #[doc(alias = "MPI_File_sync")]
    #[track_caller]
    pub fn sync(&self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("sync");
        async move {
            let mut round = CollectiveRound::begin(&self.inside.comm, call, CollectiveKind::WholeFile, 0)?;
            let fault = self.inside.file.sync_all().await.err().map(|error| fault(&error));
            let all = round.allgather(Value(fault)).await?;
            round.end().await?;
            agreed(call, all.into_iter().map(|Value(fault)| fault).collect())
        }
    }

    /// Says whether each read and write is one whole: an operation on bytes that another rank
    /// writes at the same time comes before or after that write. Each operation then has a lock of
    /// the file. Every rank calls it, and says the same.
    ///
    /// The lock is one between the ranks that have opened this file together, and between no other
    /// programs.
    ///
    /// # Errors
    /// If the ranks say different things, or one has ended.
    ///
    /// # Complexity
    /// In atomic mode each operation of one rank costs two messages more to rank 0.
    #[doc(alias = "MPI_File_set_atomicity")]
    #[track_caller]
    pub fn set_atomic(&self, is_atomic: bool) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("set_atomic");
        async move {
            self.whole(call, u64::from(is_atomic), async || Ok(())).await?;
            self.inside.is_atomic.store(is_atomic, Ordering::Relaxed);
            Ok(())
        }
    }

    /// Whether each operation is one whole: see [`set_atomic`](Self::set_atomic).
    #[doc(alias = "MPI_File_get_atomicity")]
    pub fn is_atomic(&self) -> bool {
        self.inside.is_atomic()
    }

    /// Closes the file on every rank, which all call it, and removes it if the
    /// [options](SharedFileOptions::delete_on_close) say so. Operations that have been started are
    /// over before.
    ///
    /// A handle that is dropped closes the descriptor of its rank too. The thread for the shared
    /// position then stays until the rank has ended, and the file is not removed.
    ///
    /// # Errors
    /// If a rank has ended, and if the file cannot be removed.
    #[doc(alias = "MPI_File_close")]
    #[track_caller]
    pub fn close(self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.inside.comm.call("close");
        async move {
            self.inside.shared_position.end(call).await.map_err(|error| error.in_call(call))?;
            let remove = async || match self.inside.delete_on_close {
                true => fs::remove_file(&self.inside.path).await,
                false => Ok(()),
            };
            self.whole(call, 0, remove).await
        }
    }

    /// What rank 0 does for all, when all have called it with the same number.
    async fn whole(
        &self,
        call: CallSite,
        number: u64,
        act: impl AsyncFnOnce() -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut round = CollectiveRound::begin(&self.inside.comm, call, CollectiveKind::WholeFile, 0)?;
        let all = round.allgather(Value((call.name.to_string(), number))).await?;
        let mine = (call.name, number);
        for (rank, Value((name, number))) in all.iter().enumerate() {
            if (name.as_str(), *number) != mine {
                let text = format!(
                    "rank {rank} calls {name} with {number} where this rank calls {} with {}",
                    mine.0, mine.1
                );
                return Err(call.error(ErrorClass::Mismatch, text));
            }
        }
        let mut own: Option<Value<Option<FileFault>>> = None;
        if round.rank() == 0 {
            own = Some(Value(act().await.err().map(|error| fault(&error))));
        }
        let Value(told) = round.bcast(0, own).await?;
        round.end().await?;
        told.map_or(Ok(()), |told| Err(failed(call, 0, told)))
    }
}

impl<T> fmt::Debug for SharedFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedFile({}, {:?})", self.inside.path.display(), self.inside.comm)
    }
}
