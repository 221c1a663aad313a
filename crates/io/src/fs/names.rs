//! Names: creating directories, and changing the names in them. [OS threads](crate::pool) of this
//! crate make these calls.
//!
//! Every program sees a change at once. The change survives a crash of the system only after the
//! directory was [synced](super::File::sync_all).
//!
//! Programs call them. `directory.rs`, `file.rs` and `tree.rs` use [`made`], which runs a call on
//! the lane for files.

use super::answer::at;
use super::operation::c_path;
use crate::error::doing;
use crate::pool::Lane;
use crate::sys;
use rustix::fs::Mode;
use rustix::io::retry_on_intr;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
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
/// async fn replace(content: &[u8]) -> io::Result<()> {
///     let mut file = File::create("/etc/motd.new").await?;
///     file.write_all(content).await?;
///     file.sync_all().await?; // before it has its name
///     fs::rename("/etc/motd.new", "/etc/motd").await?;
///     File::open("/etc").await?.sync_all().await // and now nothing can undo it
/// }
/// # let mut disk = selvedge::sim::Disk::new();
/// # disk.write("/etc/motd", "old").unwrap();
/// # for seed in 0..50 {
/// #     let world = selvedge::sim::World::new(seed).disk(disk.clone());
/// #     let run = world.run(replace(b"new")).unwrap();
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

/// Sets the permissions of a file or a directory. A symbolic link is followed.
///
/// # Errors
/// With the path in the message: not there, not the file's owner.
///
/// # Examples
/// ```
/// use selvedge::fs::{self, Permissions};
/// use std::os::unix::fs::PermissionsExt;
///
/// async fn keep_from_others(path: &str) -> std::io::Result<()> {
///     fs::set_permissions(path, Permissions::from_mode(0o600)).await
/// }
/// # let mut disk = selvedge::sim::Disk::new();
/// # disk.write("/key", "secret").unwrap();
/// # let world = selvedge::sim::World::new(0).disk(disk);
/// # let mode = world.run(async {
/// #     keep_from_others("/key").await?;
/// #     Ok::<_, std::io::Error>(fs::metadata("/key").await?.permissions().mode())
/// # });
/// # assert_eq!(mode.unwrap().output.unwrap() & 0o777, 0o600);
/// ```
#[doc(alias = "chmod")]
pub async fn set_permissions(path: impl Into<PathBuf>, permissions: Permissions) -> io::Result<()> {
    let path = path.into();
    let (name, mode) = (c_path(&path)?, Mode::from_raw_mode(permissions.mode() & 0o7777));
    made(move || sys::set_mode(&name, mode)).await.map_err(at("set the permissions of", &path))
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
