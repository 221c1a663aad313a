//! Names: creating directories, and changing the names in them. [OS threads](crate::pool) of this
//! crate make these calls.
//!
//! Every program sees a change at once. The change survives a crash of the system only after the
//! directory was [synced](super::File::sync_all).
//!
//! Programs call them, and `tree.rs` uses [`made`], which runs a call on the lane for files.

use super::operation::c_path;
use super::{FileKind, at};
use crate::error::doing;
use crate::pool::Lane;
use crate::sys;
use rustix::fs::Mode;
use rustix::io::retry_on_intr;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Creates a directory. All may read it, and its owner may change it.
///
/// # Errors
/// With the path in the message: something is there already, its parent is not, not permitted.
pub async fn create_dir(path: impl Into<PathBuf>) -> io::Result<()> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::create_directory(&name, Mode::from_raw_mode(0o777)))
        .await
        .map_err(at("create the directory", &path))
}

/// Removes an empty directory.
///
/// # Errors
/// With the path in the message: not there, not empty, not permitted.
pub async fn remove_dir(path: impl Into<PathBuf>) -> io::Result<()> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::remove(&name, true)).await.map_err(at("remove the directory", &path))
}

/// Removes the name of a file. The content goes when the file has no other name and is not open in
/// any process.
///
/// # Errors
/// With the path in the message: not there, a directory, not permitted.
pub async fn remove_file(path: impl Into<PathBuf>) -> io::Result<()> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::remove(&name, false)).await.map_err(at("remove", &path))
}

/// Gives a file or a directory another name on the same file system. A file that has that name is
/// replaced; at every moment the name leads to one of the two.
///
/// # Errors
/// With both paths in the message: not there, on another file system, a directory that is not empty
/// in the way, not permitted.
///
/// # Examples
/// A file that is replaced so that a crash leaves the old content or the new:
/// ```
/// use selvedge::fs::{self, File};
/// use std::io;
///
/// async fn replace(content: Vec<u8>) -> io::Result<()> {
///     let file = File::create("/etc/motd.new").await?;
///     file.write_all_at(content, 0).await.0?;
///     file.sync_all().await?; // before it has its name
///     fs::rename("/etc/motd.new", "/etc/motd").await?;
///     File::open("/etc").await?.sync_all().await // and now nothing can undo it
/// }
/// # let mut disk = selvedge::sim::Disk::new();
/// # disk.write("/etc/motd", "old").unwrap();
/// # for seed in 0..50 {
/// #     let world = selvedge::sim::World::new(seed).disk(disk.clone());
/// #     let run = world.run(replace(b"new".into())).unwrap();
/// #     run.output.unwrap();
/// #     assert_eq!(run.disk.after_crash(seed).read("/etc/motd").unwrap(), b"new");
/// # }
/// ```
pub async fn rename(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> io::Result<()> {
    let (from, to) = (from.into(), to.into());
    let (old, new) = (c_path(&from)?, c_path(&to)?);
    made(move || sys::rename(&old, &new)).await.map_err(of_two("rename", &from, &to))
}

/// Gives a file one more name on the same file system.
///
/// # Errors
/// With both paths in the message: not there, a directory, on another file system, something is
/// there already, not permitted.
pub async fn hard_link(file: impl Into<PathBuf>, name: impl Into<PathBuf>) -> io::Result<()> {
    let (from, to) = (file.into(), name.into());
    let (old, new) = (c_path(&from)?, c_path(&to)?);
    made(move || sys::link(&old, &new)).await.map_err(of_two("link", &from, &to))
}

/// Creates a symbolic link to `target`, which need not be there.
///
/// # Errors
/// With both paths in the message: something is there already, not permitted.
pub async fn symlink(target: impl Into<PathBuf>, path: impl Into<PathBuf>) -> io::Result<()> {
    let (target, path) = (target.into(), path.into());
    let (to, name) = (c_path(&target)?, c_path(&path)?);
    made(move || sys::symlink(&to, &name)).await.map_err(of_two("link", &target, &path))
}

/// The target of the symbolic link at a path.
///
/// # Errors
/// With the path in the message: not there, no symbolic link, not permitted.
pub async fn read_link(path: impl Into<PathBuf>) -> io::Result<PathBuf> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::read_link(&name)).await.map_err(at("read the link", &path))
}

/// The path of a file from the root, without symbolic links and without `.` and `..`.
///
/// # Errors
/// With the path in the message: not there, not permitted, links in a circle.
#[doc(alias = "realpath")]
pub async fn canonicalize(path: impl Into<PathBuf>) -> io::Result<PathBuf> {
    let path = path.into();
    let name = c_path(&path)?;
    made(move || sys::canonical(&name)).await.map_err(at("find", &path))
}

/// Sets the permissions of a file or a directory, as the lower twelve bits of
/// [`Metadata::mode`](super::Metadata::mode). A symbolic link is followed.
///
/// # Errors
/// With the path in the message: not there, not the file's owner.
#[doc(alias = "chmod")]
pub async fn set_permissions(path: impl Into<PathBuf>, mode: u32) -> io::Result<()> {
    let path = path.into();
    let (name, mode) = (c_path(&path)?, Mode::from_raw_mode(mode & 0o7777));
    made(move || sys::set_mode(&name, mode)).await.map_err(at("set the permissions of", &path))
}

/// A name in a directory, and the kind of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    name: OsString,
    kind: FileKind,
}

impl DirEntry {
    /// The name, without the directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The kind of the file with this name. A symbolic link is not followed.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
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
/// # Examples
/// ```
/// use selvedge::fs;
///
/// selvedge::run_local(async {
///     for entry in fs::read_dir("src").await? {
///         println!("{} {:?}", entry.name().display(), entry.kind());
///     }
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn read_dir(path: impl Into<PathBuf>) -> io::Result<Vec<DirEntry>> {
    let path = path.into();
    let name = c_path(&path)?;
    let found = made(move || sys::read_directory(&name)).await.map_err(at("read the directory", &path))?;
    let entries = found.into_iter().map(|(name, kind)| DirEntry { name, kind: FileKind::of(kind) });
    let mut entries: Vec<DirEntry> = entries.collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Makes a call on the blocking pool, and repeats it if a signal has interrupted it.
pub(super) async fn made<T: Send + 'static>(
    call: impl Fn() -> rustix::io::Result<T> + Send + 'static,
) -> io::Result<T> {
    Ok(Lane::Files.run(move || retry_on_intr(call)).await??)
}

fn of_two<'a>(what: &str, from: &'a Path, to: &'a Path) -> impl FnOnce(io::Error) -> io::Error + use<'a> {
    doing(format!("{what} {} to {}", from.display(), to.display()))
}
