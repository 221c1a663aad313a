//! [`SharedFileOptions`]: how the ranks open a file together.

use super::SharedFile;
use super::transfer::{FileFault, FileHints, FileInside, agreed, failed, fault};
use crate::collective::{CollectiveKind, CollectiveRound};
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::info::Info;
use crate::payload::Value;
use selvedge_io::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How the ranks of a communicator open a [`SharedFile`]. Each rank gives the same options.
///
/// # Examples
/// See [`SharedFile`].
#[derive(Debug, Clone, Default)]
#[doc(alias = "MPI_File_open")]
#[must_use = "the options open nothing until `open` is called"]
pub struct SharedFileOptions {
    read: bool,
    write: bool,
    create: bool,
    create_new: bool,
    truncate: bool,
    append: bool,
    delete_on_close: bool,
    info: Info,
}

impl SharedFileOptions {
    /// Whether the ranks may read.
    #[doc(alias = "MPI_MODE_RDONLY")]
    #[doc(alias = "MPI_MODE_RDWR")]
    pub fn read(self, read: bool) -> SharedFileOptions {
        SharedFileOptions { read, ..self }
    }

    /// Whether the ranks may write.
    #[doc(alias = "MPI_MODE_WRONLY")]
    pub fn write(self, write: bool) -> SharedFileOptions {
        SharedFileOptions { write, ..self }
    }

    /// Whether rank 0 creates the file if it is not there.
    #[doc(alias = "MPI_MODE_CREATE")]
    pub fn create(self, create: bool) -> SharedFileOptions {
        SharedFileOptions { create, ..self }
    }

    /// Whether rank 0 creates the file, which must not be there before.
    #[doc(alias = "MPI_MODE_EXCL")]
    pub fn create_new(self, create_new: bool) -> SharedFileOptions {
        SharedFileOptions { create_new, ..self }
    }

    /// Whether rank 0 empties the file.
    pub fn truncate(self, truncate: bool) -> SharedFileOptions {
        SharedFileOptions { truncate, ..self }
    }

    /// Whether the positions of all ranks begin at the end of the file.
    #[doc(alias = "MPI_MODE_APPEND")]
    pub fn append(self, append: bool) -> SharedFileOptions {
        SharedFileOptions { append, ..self }
    }

    /// Whether [`SharedFile::close`] removes the file.
    #[doc(alias = "MPI_MODE_DELETE_ON_CLOSE")]
    pub fn delete_on_close(self, delete_on_close: bool) -> SharedFileOptions {
        SharedFileOptions { delete_on_close, ..self }
    }

    /// Hints for collective operations: `cb_nodes` is the largest number of ranks that read and
    /// write for the others, which is the number of ranks without the hint. `cb_buffer_size` is the
    /// number of bytes that one of them reads or writes in a round, 16 MiB without the hint.
    ///
    /// The hints of rank 0 hold. Other names are ignored.
    #[doc(alias = "MPI_File_set_info")]
    pub fn info(self, info: &Info) -> SharedFileOptions {
        SharedFileOptions { info: info.clone(), ..self }
    }

    /// Opens a file. Every rank of the communicator calls it, with a path to the same file.
    ///
    /// Rank 0 opens the file first, and creates or empties it. A rank that creates a file in
    /// another process, or on another machine with the same file system, is seen by the others.
    ///
    /// # Errors
    /// On every rank, if the file cannot be opened on one: the error names that rank and the path.
    /// A file that rank 0 has created stays then. If a hint is no number from 1 on. As for
    /// [`barrier`](Communicator::barrier).
    ///
    /// # Complexity
    /// Three collective operations. Each rank has a descriptor, and a thread for the position that
    /// the ranks share.
    #[track_caller]
    pub fn open(
        &self,
        communicator: &Communicator,
        path: impl Into<PathBuf>,
    ) -> impl Future<Output = Result<SharedFile, Error>> + Send {
        let (call, path) = (communicator.call("open"), path.into());
        async move { self.opened(communicator, call, path).await }
    }

    pub(super) async fn opened(
        &self,
        communicator: &Communicator,
        call: CallSite,
        path: PathBuf,
    ) -> Result<SharedFile, Error> {
        let mut round = CollectiveRound::begin(communicator, call, CollectiveKind::OpenFile, 0)?;
        let hints = FileHints::of(&self.info, call, communicator.size());
        let mut file = Ok(None);
        let mut first = None;
        if communicator.rank() == 0 {
            file = self.system_options(true).open(&path).await.map(Some);
            let told: Result<(), FileFault> = match (&file, &hints) {
                (Err(error), _) => Err(fault(error)),
                (_, Err(error)) => Err((None, error.to_string())),
                _ => Ok(()),
            };
            let hints = hints.ok().map(|hints| (hints.aggregators as u64, hints.buffer));
            first = Some(Value((told, hints)));
        }
        let Value((told, hints)): Value<FirstOpen> = round.bcast(0, first).await?;
        told.map_err(|told| failed(call, 0, told))?;
        let (aggregators, buffer) = hints.expect("the hints of rank 0 are good");
        if communicator.rank() != 0 {
            file = self.system_options(false).open(&path).await.map(Some);
        }
        let own = (file.as_ref().err().map(fault), communicator.propose_context());
        let all = round.allgather(Value(own)).await?;
        round.end().await?;
        let (faults, contexts): (Vec<_>, Vec<u64>) = all.into_iter().map(|Value(told)| told).unzip();
        agreed(call, faults)?;
        let file = file.ok().flatten().expect("no rank has failed");
        let comm = communicator.made(contexts[0], communicator.group().clone());
        let comm = comm.expect("each rank is in the group of its communicator");
        self.ready(comm, call, file, path, FileHints { aggregators: aggregators as usize, buffer }).await
    }

    /// The handle, when every rank has opened the file.
    async fn ready(
        &self,
        comm: Communicator,
        call: CallSite,
        file: File,
        path: PathBuf,
        hints: FileHints,
    ) -> Result<SharedFile, Error> {
        // One length for all: no rank writes before all have the handle.
        let length = if self.append { file.len().await } else { Ok(0) };
        let own = length.as_ref().map(|length| *length).map_err(fault);
        let mut round = CollectiveRound::begin(&comm, call, CollectiveKind::OpenFile, 0)?;
        let own = (comm.rank() == 0).then_some(Value(own));
        let Value(length): Value<Result<u64, FileFault>> = round.bcast(0, own).await?;
        round.end().await?;
        let length = length.map_err(|fault| failed(call, 0, fault))?;
        let at_rank_0 = if comm.rank() == 0 { vec![length] } else { Vec::new() };
        let shared_position = comm.window_of(call, at_rank_0, u64::saturating_add).await?;
        let is_atomic = AtomicBool::new(false);
        let delete_on_close = self.delete_on_close;
        let inside = FileInside { comm, file, path, shared_position, is_atomic, hints, delete_on_close };
        Ok(SharedFile::of(Arc::new(inside), length))
    }

    /// The options for the system. Rank 0 creates and empties the file for all.
    fn system_options(&self, is_first: bool) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(self.read).write(self.write);
        if is_first {
            options.create(self.create).create_new(self.create_new).truncate(self.truncate);
        }
        options
    }
}

/// What rank 0 tells of its open: whether it has failed, and the hints, if they are good.
type FirstOpen = (Result<(), FileFault>, Option<(u64, u64)>);

/// What an aggregator reads or writes in a round, without a hint.
const BUFFER: u64 = 16 << 20;

impl FileHints {
    /// # Errors
    /// If a hint is no number from 1 on.
    fn of(info: &Info, call: CallSite, ranks: usize) -> Result<FileHints, Error> {
        let number = |name: &str, otherwise: u64| match info.get(name) {
            None => Ok(otherwise),
            Some(value) => match value.parse() {
                Ok(number @ 1..) => Ok(number),
                _ => {
                    let text = format!("the hint {name} is {value}, and no number from 1 on");
                    Err(call.error(ErrorClass::File, text))
                }
            },
        };
        let aggregators = number("cb_nodes", ranks as u64)?;
        let buffer = number("cb_buffer_size", BUFFER)?;
        Ok(FileHints { aggregators: usize::try_from(aggregators).unwrap_or(usize::MAX), buffer })
    }
}
