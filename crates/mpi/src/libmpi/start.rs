//! [`StartError`]: why MPI could not be started; and the start itself, which recognises the
//! library.
//!
//! `message_loop.rs` calls [`start`] on the OS thread that will make all calls.

use super::calls::Mpi;
use super::error::MpiError;
use super::family::{AbiTable, MpiFamily, MpiHandle, MpiPointer, mpich, open_mpi, standard};
use super::functions::MpiFunctions;
use super::launcher::{Launched, MpiLauncher};
use super::library::{Library, LoadError};
use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// MPI, with one of the two types of handles.
#[derive(Debug)]
pub(super) enum AnyMpi {
    Integers(Mpi<c_int>),
    Pointers(Mpi<MpiPointer>),
}

/// Whether this process has started MPI. It can do so once.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Loads the library, recognises it, and starts MPI.
///
/// # Errors
/// When there is no library, it is not of a known family, or MPI fails.
pub(super) fn start(launched: Option<Launched>) -> Result<(AnyMpi, MpiFamily, String), StartError> {
    let library = Library::load(launched).map_err(StartError::NotLoaded)?;
    let Some(family) = MpiFamily::of(&library) else {
        return Err(StartError::Unknown { library: library.name });
    };
    let lacks =
        |symbol: &str| StartError::Lacks { library: library.name.clone(), symbol: symbol.to_string() };
    let mpi = match family {
        // SAFETY: `MpiFamily::of` has recognised the library, here and below.
        MpiFamily::Mpich => AnyMpi::Integers(unsafe { start_with(&library, mpich(), lacks) }?),
        MpiFamily::OpenMpi => {
            let table = open_mpi(&library).map_err(|symbol| lacks(&symbol))?;
            // SAFETY: as above.
            AnyMpi::Pointers(unsafe { start_with(&library, table, lacks) }?)
        }
        // SAFETY: as above.
        MpiFamily::Standard => AnyMpi::Pointers(unsafe { start_with(&library, standard(), lacks) }?),
    };
    Ok((mpi, family, library.name))
}

/// Starts MPI with the table of the library's family.
///
/// # Safety
/// The library is of the family of which the table is.
unsafe fn start_with<H: MpiHandle>(
    library: &Library,
    table: AbiTable<H>,
    lacks: impl FnOnce(&str) -> StartError,
) -> Result<Mpi<H>, StartError> {
    // SAFETY: the table says that handles of this library are of the type `H`.
    let functions = unsafe { MpiFunctions::of(library) }.map_err(lacks)?;
    if HAS_STARTED.swap(true, Ordering::Relaxed) {
        return Err(StartError::Twice);
    }
    // SAFETY: both are of this library.
    unsafe { Mpi::start(functions, table) }.map_err(StartError::Failed)
}

/// MPI could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// No library can be loaded.
    NotLoaded(LoadError),
    /// The library is of none of the known families.
    Unknown {
        /// The library's name or path.
        library: String,
    },
    /// The library lacks a function or an object of MPI 3.1.
    Lacks {
        /// The library's name or path.
        library: String,
        /// The function or object.
        symbol: String,
    },
    /// This process has started MPI before.
    Twice,
    /// MPI failed.
    Failed(MpiError),
    /// The launcher has started a job of several ranks, and the library knows nothing of it:
    /// launcher and library are of different MPIs.
    OtherMpi {
        /// The library's name or path.
        library: String,
        /// The program that started the job.
        launcher: MpiLauncher,
        /// The ranks that the launcher told of.
        announced: usize,
        /// The ranks that the library knows.
        found: usize,
    },
    /// The system has started no OS thread.
    NoOsThread(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NotLoaded(error) => error.fmt(f),
            StartError::Unknown { library } => {
                write!(f, "{library} is neither Open MPI nor MPICH, and has no standard interface")
            }
            StartError::Lacks { library, symbol } => write!(f, "{library} lacks {symbol}"),
            StartError::Twice => f.write_str("a process can start MPI only once"),
            StartError::Failed(error) => write!(f, "MPI cannot be started: {error}"),
            StartError::OtherMpi { library, launcher, announced, found } => write!(
                f,
                "{launcher} has started {announced} ranks, and {library} knows {found}: it is the library of \
                 another MPI. Set {} to the library of the launcher",
                super::library::PATH_VARIABLE
            ),
            StartError::NoOsThread(error) => write!(f, "the system starts no OS thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
