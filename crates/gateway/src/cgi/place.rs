//! [`Place`]: which program a path names.

use super::variables::ProgramTarget;
use http::StatusCode;
use selvedge_http::target::{plain, resolve};
use selvedge_io::fs::metadata;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A directory of programs, and the front of the paths that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// Without a slash at its end; empty for the root.
    prefix: String,
    pub(crate) index: Option<String>,
}

impl Place {
    /// A relative `root` is below the current directory of now. An empty one stays empty.
    pub(crate) fn new(root: PathBuf) -> Place {
        // A program begins in a directory of its own, where a relative path leads elsewhere.
        let root = std::path::absolute(&root).unwrap_or(root);
        Place { root, prefix: String::new(), index: None }
    }

    pub(crate) fn set_prefix(&mut self, prefix: String) {
        self.prefix = prefix.trim_end_matches('/').to_owned();
    }

    /// The names below the directory that a path leads to, decoded and cleaned, without slashes at
    /// the ends.
    ///
    /// # Errors
    /// 400 or 404 if the path leads nowhere.
    pub(crate) fn names<'p>(&self, path: &'p str) -> Result<Cow<'p, [u8]>, StatusCode> {
        let mut name = match plain(path.as_bytes()) {
            Some(name) => Cow::Borrowed(name),
            None => {
                let mut name = Vec::new();
                resolve(path.as_bytes(), &mut name).map_err(|status| {
                    StatusCode::from_u16(status.code()).unwrap_or(StatusCode::BAD_REQUEST)
                })?;
                Cow::Owned(name)
            }
        };
        let prefix = self.prefix.trim_start_matches('/').as_bytes();
        if prefix.is_empty() {
            return Ok(name);
        }
        let front = match name.strip_prefix(prefix) {
            Some([b'/', ..]) => prefix.len() + 1,
            Some([]) => prefix.len(),
            _ => return Err(StatusCode::NOT_FOUND),
        };
        match &mut name {
            Cow::Borrowed(name) => *name = &name[front..],
            Cow::Owned(name) => drop(name.drain(..front)),
        }
        Ok(name)
    }

    /// The target that is no program of the directory: `names` is what an application is asked for.
    pub(crate) fn whole(&self, names: &[u8]) -> ProgramTarget {
        let root = self.root.as_os_str().as_bytes();
        ProgramTarget::new([root, b"/", b""], [self.prefix.as_bytes(), b"", b""], [b"/", names])
    }

    /// The program for the first `length` bytes of `names`.
    pub(crate) fn target(&self, names: &[u8], length: usize) -> ProgramTarget {
        let (script, info) = names.split_at(length);
        let root = self.root.as_os_str().as_bytes();
        ProgramTarget::new([root, b"/", script], [self.prefix.as_bytes(), b"/", script], [b"", info])
    }

    /// The program that a path names: the first of its names that is a file.
    ///
    /// # Errors
    /// 400 or 404 if the path names none, 403 if it may not be looked for.
    pub(crate) async fn find(&self, path: &str) -> Result<ProgramTarget, StatusCode> {
        let mut names = self.names(path)?;
        if let Some(index) = self.index.as_ref().filter(|_| names.is_empty() || names.ends_with(b"/")) {
            names.to_mut().extend_from_slice(index.as_bytes());
        }
        let ends = names.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([names.len()]).collect::<Vec<_>>() {
            let target = self.target(&names, end);
            let status = metadata(PathBuf::from(OsStr::from_bytes(target.file()))).await;
            match status.map_err(|error| status_of(&error))? {
                status if status.is_file() => return Ok(target),
                status if status.is_dir() => {}
                _ => return Err(StatusCode::NOT_FOUND),
            }
        }
        Err(StatusCode::NOT_FOUND)
    }
}

fn status_of(error: &io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            StatusCode::NOT_FOUND
        }
        io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
