//! [`Disk`], the disk of a simulated world for tests: a file tree in memory, and the tree that a
//! crash leaves.
//!
//! Tests fill and read it; `world.rs` moves its `Tree` into the kernel before a run and out of it
//! afterwards. The files below: `tree.rs` has the tree and the look-up of names, `files.rs` and
//! `names.rs` the calls on files and on names, `content.rs` the bytes of a file, `journal.rs` the
//! names as a crash may leave them. The documentation of [`Disk`] promises what a crash leaves;
//! `after_crash` in `content.rs` and `journal.rs` must keep that promise.

mod content;
pub(crate) mod files;
mod journal;
mod names;
pub(crate) mod tree;

use crate::Random;
use rustix::fs::OFlags;
use rustix::io::Result;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use tree::{From, Last, Tree};

/// The disk of a [`World`](super::World). A test fills it before a run
/// ([`World::disk`](super::World::disk)), reads it after the run
/// ([`Ended::disk`](super::Ended::disk)), and can start another run from the disk that a power
/// failure leaves.
///
/// Each path begins at the root of the disk, a relative path too. The disk keeps permissions, but
/// no call fails because of them. The changes that the functions of this type make are on the disk
/// at once: a crash can lose only changes that a program made in a world. Clones share the content
/// of files until it is changed, so one loaded disk serves thousands of runs.
///
/// # What a crash leaves
/// [`after_crash`](Self::after_crash) is the disk after the power has failed:
///
/// 1. **A file's content** is the content at its last successful sync
///    ([`sync_all`](selvedge_io::fs::File::sync_all) or
///    [`sync_data`](selvedge_io::fs::File::sync_data), or a write to a file that was opened with
///    `O_SYNC` or `O_DSYNC`), with any part of the later writes: a written page of 4096 bytes is
///    there, or is not, or only some of its sectors of 512 bytes are. A sector is never torn. The
///    length is the old one, the new one, or one in between; bytes that were not written are zeros.
///    Cutting a file short has happened or has not.
/// 2. **A name** is where it was when its directory was last synced (`File::open(directory)`, then
///    `sync_all`); each later change has happened or has not. Syncing a file does not sync its
///    name, and syncing a directory does not sync the directory's own name.
/// 3. Creating, removing and renaming have each happened as a whole or not at all: if a file is
///    renamed onto another, one of the two is at that name.
/// 4. Changes of the same name or of the same file have happened in their order. If a file was
///    moved away from a directory that was then removed, the file is at its new place whenever the
///    directory is gone. All other changes may have overtaken each other; above all, a name may be
///    there without the content of the file, which then is shorter, or zeros.
/// 5. After a failed sync the bytes that it did not write count as written, as in Linux: a later
///    sync does not write them; another write and then a sync do.
/// 6. At most 1,024 changes of names are not on the disk; then the oldest gets there.
///
/// # Examples
/// ```
/// use selvedge::fs;
/// use selvedge::sim::{Disk, World};
///
/// let mut disk = Disk::new();
/// disk.write("/etc/motd", b"hello")?;
/// let ended = World::new(7).disk(disk).run(async {
///     let greeting = fs::read("/etc/motd").await?;
///     fs::write("/copy", greeting).await
/// });
/// let ended = ended?;
/// ended.output?;
/// assert_eq!(ended.disk.read("/copy")?, b"hello");
/// // The program has not synced it.
/// assert!((0..20).any(|seed| ended.disk.after_crash(seed).read("/copy").is_err()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Disk {
    tree: Tree,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("files", &self.tree.inodes.len()).finish_non_exhaustive()
    }
}

impl Disk {
    /// A disk with an empty directory, its root.
    pub fn new() -> Disk {
        Disk { tree: Tree::new() }
    }

    /// The disk of a world that has ended.
    pub(super) fn of(mut tree: Tree) -> Disk {
        tree.close_all();
        Disk { tree }
    }

    pub(super) fn into_tree(self) -> Tree {
        self.tree
    }

    /// Makes `content` the whole content of a file. Creates the file if it is not there, with the
    /// directories above it.
    ///
    /// # Errors
    /// If a directory has the path, or if a part of the path before its last name is no directory.
    pub fn write(&mut self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        let (path, content) = (path.as_ref(), content.as_ref());
        self.create_parent(path)?;
        self.settled(path, |tree| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let file = tree.open(From::ROOT, bytes(path), flags, 0o666)?;
            // The limit of the world's conditions does not hold for a test.
            let limit = std::mem::replace(&mut tree.pages_max, u64::MAX);
            let written = tree.write(file, 0, content);
            tree.pages_max = limit;
            tree.close(file);
            written.map(drop)
        })
    }

    /// The content of a file as programs see it, whether it is on the disk or not. Symbolic links
    /// are followed.
    ///
    /// # Errors
    /// If the path leads to no file or to a directory; `OutOfMemory` if memory has no room for the
    /// content.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let file = self.tree.find(From::ROOT, bytes(path.as_ref()), Last::Follow)?;
        let length = self.tree.len(file) as usize;
        let mut content = Vec::new();
        content.try_reserve_exact(length)?;
        content.resize(length, 0);
        self.tree.read(file, 0, &mut content)?;
        Ok(content)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// If nothing has the path; `InvalidInput` if it is no symbolic link's.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let link = self.tree.find(From::ROOT, bytes(path.as_ref()), Last::Keep)?;
        Ok(OsString::from_vec(self.tree.target(link)?.to_vec()).into())
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// If no directory has the path.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let named = self.tree.names(bytes(path.as_ref()))?.into_iter();
        Ok(named.map(|(name, _)| OsString::from_vec(name)).collect())
    }

    /// Creates a directory, and the directories above it, unless they exist.
    ///
    /// # Errors
    /// If a part of the path is not a directory.
    pub fn create_dir_all(&mut self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        if self.tree.find(From::ROOT, bytes(path), Last::Follow).is_ok() {
            return Ok(self.tree.names(bytes(path)).map(drop)?);
        }
        self.create_parent(path)?;
        self.settled(path, |tree| tree.create_directory(bytes(path), 0o777).map(drop))
    }

    /// Creates a symbolic link, with the directories above it.
    ///
    /// # Errors
    /// If the path exists, or if a part of it before its last name is no directory.
    pub fn symlink(&mut self, target: impl AsRef<Path>, path: impl AsRef<Path>) -> io::Result<()> {
        let (target, path) = (target.as_ref(), path.as_ref());
        self.create_parent(path)?;
        self.settled(path, |tree| tree.create_link(bytes(target), bytes(path)).map(drop))
    }

    /// Creates a FIFO, with the directories above it: see
    /// [`pipe::Sender::open`](selvedge_io::pipe::Sender::open).
    ///
    /// # Errors
    /// If the path exists, or if a part of it before its last name is no directory.
    pub fn fifo(&mut self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        self.create_parent(path)?;
        self.settled(path, |tree| tree.create_fifo(bytes(path), 0o666).map(drop))
    }

    /// Copies a file of the real disk, or a directory with everything in it. Symbolic links are
    /// copied as links; sockets, FIFOs and devices are left out.
    ///
    /// # Errors
    /// The errors of reading the real disk, and those of [`write`](Self::write).
    pub fn load(&mut self, real: impl AsRef<Path>, path: impl AsRef<Path>) -> io::Result<()> {
        let (real, path) = (real.as_ref(), path.as_ref());
        let kind = std::fs::symlink_metadata(real)?.file_type();
        if kind.is_symlink() {
            return self.symlink(std::fs::read_link(real)?, path);
        }
        if kind.is_file() {
            return self.write(path, std::fs::read(real)?);
        }
        if kind.is_dir() {
            self.create_dir_all(path)?;
            let names = std::fs::read_dir(real)?.map(|entry| Ok(entry?.file_name()));
            let mut names = names.collect::<io::Result<Vec<_>>>()?;
            // The real disk may list names in any order; the simulated disk is always the same.
            names.sort();
            for name in names {
                self.load(real.join(&name), path.join(&name))?;
            }
        }
        Ok(())
    }

    /// The disk after the power has failed. A seed determines which of the states that the
    /// [rules](Self#what-a-crash-leaves) allow it has. Everything on it is synced.
    pub fn after_crash(&self, seed: u64) -> Disk {
        Disk { tree: self.tree.clone().after_crash(&mut Random::new(seed)) }
    }

    fn create_parent(&mut self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if parent != Path::new("") => self.create_dir_all(parent),
            _ => Ok(()),
        }
    }

    /// Makes a change at a path, and syncs it.
    fn settled(&mut self, path: &Path, change: impl FnOnce(&mut Tree) -> Result<()>) -> io::Result<()> {
        change(&mut self.tree)?;
        for changed in
            [path, path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("/"))]
        {
            // A symbolic link may lead nowhere.
            if let Ok(inode) = self.tree.find(From::ROOT, bytes(changed), Last::Follow) {
                self.tree.sync(inode);
            }
        }
        Ok(())
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
