//! [`MakeError`]: why a call of the program ends without a build, or a build cannot go on.
//!
//! `app.rs`, `load.rs`, `targets.rs`, `settings.rs` and `build` make it, and `main.rs` shows its
//! text. The errors of a graph and its files are [`ProjectError`], and the errors of the tools are
//! `ToolError`. A text that ninja has is ninja's, because editors and CMake look for it.

use crate::build::FormatError;
use crate::dyndep::DyndepError;
use crate::evaluate::RuleError;
use crate::manifest::ManifestError;
use crate::project::ProjectError;
use crate::tools::ToolError;
use selvedge_core::RunError;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a call of the program ends without a build, or a build cannot go on. The text is for the
/// user.
#[derive(Debug)]
#[non_exhaustive]
pub enum MakeError {
    /// A call of the system has failed that is about no file of the user.
    System(io::Error),
    /// The threads of the build cannot run.
    Run(RunError),
    /// A file or a directory that the program itself reads or makes.
    File {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The manifest cannot be read.
    NoManifest {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A line cannot be appended to the build log.
    BuildLog(io::Error),
    /// A line cannot be appended to the deps log.
    DepsLog(io::Error),
    /// The manifest, or a file that it includes, is not understood.
    Manifest(Box<ManifestError>),
    /// A phony target is its own input, and `-w phonycycle=err` makes that an error.
    PhonyCircle(String),
    /// The command that makes the manifest failed.
    ManifestFailed,
    /// The manifest is dirty after this number of rebuilds.
    StillDirty(u32),
    /// Every node of the graph is an input of another one, so there is no default target.
    NoRoot,
    /// The graph has no such target.
    UnknownTarget {
        /// The target as the user named it.
        name: String,
        /// What the user may have meant, as the end of a sentence; empty if nothing is near.
        hint: String,
    },
    /// `FILE^` names a file that is no input of an edge.
    NoUse(String),
    /// The job server that `--jobserver` asks for cannot be made.
    Jobserver(io::Error),
    /// `NINJA_STATUS` is not understood.
    Format(FormatError),
    /// The graph or one of its files.
    Project(ProjectError),
    /// A tool cannot do what it was asked for.
    Tool(ToolError),
}

impl MakeError {
    /// The function that adds the path to an error of the system.
    pub(crate) fn of_file(path: &Path) -> impl FnOnce(io::Error) -> MakeError {
        |error| MakeError::File { path: path.to_path_buf(), error }
    }
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::System(error) => error.fmt(f),
            MakeError::Run(error) => error.fmt(f),
            MakeError::File { path, error } => write!(f, "{}: {error}", path.display()),
            MakeError::NoManifest { path, error } => write!(f, "loading '{}': {error}", path.display()),
            MakeError::BuildLog(error) => write!(f, "the build log: {error}"),
            MakeError::DepsLog(error) => write!(f, "the deps log: {error}"),
            MakeError::Manifest(error) => error.fmt(f),
            MakeError::PhonyCircle(target) => {
                write!(f, "dependency cycle: {target} -> {target} [-w phonycycle=err]")
            }
            MakeError::ManifestFailed => f.write_str("rebuilding the manifest: subcommand failed"),
            MakeError::StillDirty(tries) => write!(
                f,
                "the manifest is still dirty after {tries} tries; perhaps the system's time is not set"
            ),
            MakeError::NoRoot => f.write_str("could not determine root nodes of build graph"),
            MakeError::UnknownTarget { name, hint } => write!(f, "unknown target '{name}'{hint}"),
            MakeError::NoUse(name) => write!(f, "'{name}' has no out edge"),
            MakeError::Jobserver(error) => write!(f, "--jobserver: {error}"),
            MakeError::Format(error) => error.fmt(f),
            MakeError::Project(error) => error.fmt(f),
            MakeError::Tool(error) => error.fmt(f),
        }
    }
}

impl Error for MakeError {}

impl From<io::Error> for MakeError {
    fn from(error: io::Error) -> MakeError {
        MakeError::System(error)
    }
}

impl From<RunError> for MakeError {
    fn from(error: RunError) -> MakeError {
        MakeError::Run(error)
    }
}

impl From<ManifestError> for MakeError {
    fn from(error: ManifestError) -> MakeError {
        MakeError::Manifest(Box::new(error))
    }
}

impl From<RuleError> for MakeError {
    fn from(error: RuleError) -> MakeError {
        MakeError::Project(error.into())
    }
}

impl From<DyndepError> for MakeError {
    fn from(error: DyndepError) -> MakeError {
        MakeError::Project(error.into())
    }
}

impl From<ProjectError> for MakeError {
    fn from(error: ProjectError) -> MakeError {
        MakeError::Project(error)
    }
}

impl From<FormatError> for MakeError {
    fn from(error: FormatError) -> MakeError {
        MakeError::Format(error)
    }
}

impl From<ToolError> for MakeError {
    fn from(error: ToolError) -> MakeError {
        MakeError::Tool(error)
    }
}
