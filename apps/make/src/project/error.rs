//! [`ProjectError`]: what is wrong with a graph, or with a file that its edges name.
//!
//! The functions of `project` make it. `build/records.rs` makes the errors of a depfile that a
//! command has just written.

use crate::depfile::DepfileError;
use crate::dyndep::DyndepError;
use crate::evaluate::RuleError;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// What is wrong with a graph, or with a file that its edges name. The text is for the user.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProjectError {
    /// A file cannot be looked at. What the system said names the file.
    Look(io::Error),
    /// A depfile or a dyndep file cannot be read.
    Load {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A variable of an edge has no value, or a value without a meaning.
    Rule(RuleError),
    /// A depfile is not understood.
    Depfile {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        error: DepfileError,
    },
    /// An edge has `deps = gcc` and names no depfile.
    NoDepfile,
    /// A depfile names no output.
    NoOutput(PathBuf),
    /// A depfile names an output that its edge does not have.
    NotAnOutput {
        /// The path of the depfile.
        path: PathBuf,
        /// The output.
        mentioned: String,
    },
    /// A dyndep file is not understood, or does not fit the graph.
    Dyndep(DyndepError),
    /// Files that need one another: the first one stands at the end again.
    Circle(Vec<String>),
    /// A file is not there, and no edge makes it.
    Missing {
        /// Its path.
        path: String,
        /// An output that needs it; `None` if the user named it.
        user: Option<String>,
    },
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProjectError::Look(error) => error.fmt(f),
            ProjectError::Load { path, error } => write!(f, "loading '{}': {error}", path.display()),
            ProjectError::Rule(error) => error.fmt(f),
            ProjectError::Depfile { path, error } => write!(f, "{}: {error}", path.display()),
            ProjectError::NoDepfile => f.write_str("edge with deps=gcc but no depfile makes no sense"),
            ProjectError::NoOutput(path) => write!(f, "{}: no outputs declared", path.display()),
            ProjectError::NotAnOutput { path, mentioned } => write!(
                f,
                "{}: depfile mentions '{mentioned}' as an output, but no such output was declared",
                path.display()
            ),
            ProjectError::Dyndep(error) => error.fmt(f),
            ProjectError::Circle(paths) => write!(f, "dependency cycle: {}", paths.join(" -> ")),
            ProjectError::Missing { path, user } => {
                write!(f, "'{path}'")?;
                if let Some(user) = user {
                    write!(f, ", needed by '{user}',")?;
                }
                f.write_str(" missing and no known rule to make it")
            }
        }
    }
}

impl Error for ProjectError {}

impl From<io::Error> for ProjectError {
    fn from(error: io::Error) -> ProjectError {
        ProjectError::Look(error)
    }
}

impl From<RuleError> for ProjectError {
    fn from(error: RuleError) -> ProjectError {
        ProjectError::Rule(error)
    }
}

impl From<DyndepError> for ProjectError {
    fn from(error: DyndepError) -> ProjectError {
        ProjectError::Dyndep(error)
    }
}
