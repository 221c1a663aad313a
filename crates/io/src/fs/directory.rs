//! `read_dir` and `DirEntry`: the names in a directory.
//!
//! Programs call `read_dir`. One job of the blocking pool reads the whole directory (`made`, in
//! `names.rs`), so a `DirEntry` needs no open directory.

use super::answer::at;
use super::metadata::{FileType, Metadata};
use super::names::made;
use super::operation::c_path;
use super::symlink_metadata;
use crate::sys;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name in a directory, and the kind of its file, as in [`std::fs::DirEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The directory's path, which all entries of one reading share.
    directory: Arc<Path>,
    name: OsString,
    file_type: FileType,
}

impl DirEntry {
    /// The name, without the directory.
    pub fn file_name(&self) -> OsString {
        self.name.clone()
    }

    /// The path: the path that [`read_dir`] was given, and the name behind it.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The kind of the file with this name, when the directory was read. A symbolic link is not
    /// followed.
    ///
    /// # Errors
    /// None. A `Result` is what the standard library's method of this name returns.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(self.file_type)
    }

    /// The status of the file with this name now. A symbolic link is not followed.
    ///
    /// # Errors
    /// With the path in the message: removed meanwhile, not permitted.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        symlink_metadata(self.path()).await
    }
}

/// The names in a directory, sorted, without `.` and `..`, each with the kind of its file.
///
/// # Errors
/// With the path in the message: not there, no directory, not permitted.
///
/// # Complexity
/// The whole directory is read at once, and kept. On file systems that keep the kind in the
/// directory, such as ext4, xfs, btrfs and tmpfs, the kind costs no further system call.
///
/// # Differences
/// The standard library returns an iterator of results. Here the call returns the error, and then
/// a vector of entries.
///
/// # Examples
/// ```
/// use selvedge::fs;
///
/// selvedge::run_local(async {
///     for entry in fs::read_dir("src").await? {
///         if entry.file_type()?.is_file() {
///             println!("{} {}", entry.path().display(), entry.metadata().await?.len());
///         }
///     }
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn read_dir(path: impl Into<PathBuf>) -> io::Result<Vec<DirEntry>> {
    let path = path.into();
    let name = c_path(&path)?;
    let mut found =
        made(move || sys::read_directory(&name)).await.map_err(at("read the directory", &path))?;
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let directory: Arc<Path> = path.into();
    let entry = |(name, kind)| DirEntry { directory: directory.clone(), name, file_type: FileType::of(kind) };
    Ok(found.into_iter().map(entry).collect())
}
