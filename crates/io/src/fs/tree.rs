//! Whole trees of directories (`create_dir_all`, `remove_dir_all`) and whole files (`copy`). `fs`
//! exports them, and only programs call them.
//!
//! The first two make all their calls in one job of the blocking pool (`made`, in `names.rs`).
//! `copy` awaits operations on two `File`s, piece by piece.

use super::answer::at;
use super::buffer::zeros;
use super::names::made;
use super::operation::c_path;
use super::{File, Permissions, metadata, set_permissions};
use crate::sys;
use rustix::fs::Mode;
use rustix::io::{Errno, retry_on_intr};
use std::ffi::CString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Creates a directory, and those above it that are not there. It is no error if all are there.
///
/// # Errors
/// With the path in the message: something that is no directory is in the way, not permitted. What
/// was created before stays.
pub async fn create_dir_all(path: impl Into<PathBuf>) -> io::Result<()> {
    let path = path.into();
    let names: io::Result<Vec<CString>> =
        path.ancestors().filter(|above| *above != Path::new("")).map(c_path).collect();
    let names = names?;
    made(move || create_all(&names)).await.map_err(at("create the directory", &path))
}

/// Creates the directory of the first of `names`, each of which is above the one before.
fn create_all(names: &[CString]) -> rustix::io::Result<()> {
    let Some((name, above)) = names.split_first() else { return Ok(()) };
    let create = || retry_on_intr(|| sys::create_directory(name, Mode::from_raw_mode(0o777)));
    let created = match create() {
        Err(Errno::NOENT) if !above.is_empty() => {
            create_all(above)?;
            create()
        }
        created => created,
    };
    match created {
        // `EEXIST` says that there is something, `EISDIR` (of `/`) and `EROFS` may say it, too.
        Err(_) if sys::is_directory(name) => Ok(()),
        created => created,
    }
}

/// Removes a directory with all that is in it. A symbolic link is removed, and what it leads to is
/// left alone, even if another process puts it in the place of a directory meanwhile.
///
/// # Errors
/// With the path in the message: not there, no directory, not permitted. What was removed before is
/// gone.
pub async fn remove_dir_all(path: impl Into<PathBuf>) -> io::Result<()> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::remove_tree(&name)).await.map_err(at("remove the directory", &path))
}

/// The most bytes of a file that are copied at once.
const PIECE: usize = 256 << 10;

/// Copies the content and the permissions of a file to another, which is created, or emptied first.
/// Returns the number of bytes.
///
/// # Errors
/// With the path in the message: not there, not permitted, a directory, no room; `InvalidInput` if
/// both are one file, which is left as it is. After an error of reading or writing the
/// content of the other file is undefined.
pub async fn copy(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> io::Result<u64> {
    let to = to.into();
    let source = File::open(from).await?;
    let status = source.metadata().await?;
    if !status.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(at("copy", source.path())(error));
    }
    if let Ok(other) = metadata(to.clone()).await
        && (other.dev(), other.ino()) == (status.dev(), status.ino())
    {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is the file that is to be copied");
        return Err(at("copy to", &to)(error));
    }
    let permissions = status.mode() & 0o777;
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(permissions);
    let target = options.open(to.clone()).await?;
    set_permissions(to, Permissions::from_mode(permissions)).await?;
    let mut piece = zeros(PIECE)?;
    let mut copied = 0;
    loop {
        piece.resize(PIECE, 0);
        let read;
        (read, piece) = source.read_at(piece, copied).await;
        match read? {
            0 => return Ok(copied),
            read => piece.truncate(read),
        }
        let length = piece.len() as u64;
        let written;
        (written, piece) = target.write_all_at(piece, copied).await;
        written?;
        copied += length;
    }
}
