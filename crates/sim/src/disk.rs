//! The disk of a simulated world: a file tree in memory, and what a crash leaves of it.

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

/// The disk of a [`World`](super::World): what a test puts there before a run ([`World::disk`](super::World::disk)), finds there
/// behind it ([`Ended::disk`](super::Ended::disk)), and starts again from when the power has failed in between.
///
/// Paths begin at its root, relative ones too. Permissions are kept, but hold nobody back. What the functions here do is on
/// the disk at once: only what a program does in a world can be lost. Clones share the content of files until it is changed, so a
/// disk that is loaded once serves thousands of runs.
///
/// # What a crash leaves
/// [`after_crash`](Self::after_crash) is the disk after the power has failed:
///
/// 1. **A file's content** is what it was at its last successful sync ([`sync_all`](selvedge_io::fs::File::sync_all) or
///    [`sync_data`](selvedge_io::fs::File::sync_data), or a write to a file opened with `O_SYNC` or `O_DSYNC`), with any part of what was written
///    since: each page of 4096 bytes is there, or not, or only some of its sectors of 512 bytes are, which
///    are never torn. The length is the old one, the new one, or one in between; what was not written is zeros. Cutting a file short
///    has happened or has not.
/// 2. **A name** is where it was when its directory was last synced (`File::open(directory)`, then `sync_all`), and any of the changes
///    since have happened or have not. Syncing a file does not sync its name, nor a directory its own.
/// 3. Creating, removing and renaming have each happened as a whole or not at all: a file that is renamed onto another
///    leaves the one or the other at that name, and never neither.
/// 4. Changes of the same name or of the same file have happened in their order, and nothing is moved away from a directory that
///    is removed without being where it was moved to. All others may have overtaken each other; above all,
///    a name may be there without the content of the file, which then is shorter, or zeros.
/// 5. After a sync that failed, what it was to write counts as written, as in Linux: a later sync does not make up for it, only
///    writing again and then a sync do.
/// 6. No more than 1,024 changes of names are outstanding; then the oldest gets to the disk.
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
/// // Nobody has synced it.
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

    /// That of a world that has ended.
    pub(super) fn of(mut tree: Tree) -> Disk {
        tree.close_all();
        Disk { tree }
    }

    pub(super) fn into_tree(self) -> Tree {
        self.tree
    }

    /// Makes something the whole content of a file, which is created if it is not there, with the directories above it.
    ///
    /// # Errors
    /// A directory is in the way, or something else is in that of one.
    pub fn write(&mut self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        let (path, content) = (path.as_ref(), content.as_ref());
        self.create_parent(path)?;
        self.settled(path, |tree| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let file = tree.open(From::ROOT, bytes(path), flags, 0o666)?;
            // Whatever the limit, which is one of the world's.
            let limit = std::mem::replace(&mut tree.pages_max, u64::MAX);
            let written = tree.write(file, 0, content);
            tree.pages_max = limit;
            tree.close(file);
            written.map(drop)
        })
    }

    /// The content of a file, symbolic links followed: that which programs see, on the disk or not.
    ///
    /// # Errors
    /// Not there, a directory; `OutOfMemory` if it is longer than what there is to hold it.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let file = self.tree.find(From::ROOT, bytes(path.as_ref()), Last::Follow)?;
        let length = self.tree.len(file) as usize;
        let mut content = Vec::new();
        content.try_reserve_exact(length)?;
        content.resize(length, 0);
        self.tree.read(file, 0, &mut content)?;
        Ok(content)
    }

    /// What a symbolic link leads to.
    ///
    /// # Errors
    /// Not there; `InvalidInput` if it is no symbolic link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let link = self.tree.find(From::ROOT, bytes(path.as_ref()), Last::Keep)?;
        Ok(OsString::from_vec(self.tree.target(link)?.to_vec()).into())
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Not there, no directory.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let named = self.tree.names(bytes(path.as_ref()))?.into_iter();
        Ok(named.map(|(name, _)| OsString::from_vec(name)).collect())
    }

    /// Creates a directory with those above it, as far as they are not there.
    ///
    /// # Errors
    /// Something else is in the way.
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
    /// Something is there already, or in the way.
    pub fn symlink(&mut self, target: impl AsRef<Path>, path: impl AsRef<Path>) -> io::Result<()> {
        let (target, path) = (target.as_ref(), path.as_ref());
        self.create_parent(path)?;
        self.settled(path, |tree| tree.create_link(bytes(target), bytes(path)).map(drop))
    }

    /// Creates a FIFO, with the directories above it: see [`pipe::Sender::open`](selvedge_io::pipe::Sender::open).
    ///
    /// # Errors
    /// Something is there already, or in the way.
    pub fn fifo(&mut self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        self.create_parent(path)?;
        self.settled(path, |tree| tree.create_fifo(bytes(path), 0o666).map(drop))
    }

    /// Copies a file of the real disk, or a directory with all that is in it; symbolic links are copied as they are, and what is
    /// neither is left out.
    ///
    /// # Errors
    /// Those of reading the real disk; as for [`write`](Self::write).
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
            // So that it is the same disk whatever order the real one has them in.
            names.sort();
            for name in names {
                self.load(real.join(&name), path.join(&name))?;
            }
        }
        Ok(())
    }

    /// The disk after the power has failed, with what is left by the [rules](Self#what-a-crash-leaves), drawn from a seed. Everything on it
    /// is synced.
    pub fn after_crash(&self, seed: u64) -> Disk {
        Disk { tree: self.tree.clone().after_crash(&mut Random::new(seed)) }
    }

    fn create_parent(&mut self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if parent != Path::new("") => self.create_dir_all(parent),
            _ => Ok(()),
        }
    }

    /// Makes a change at a path, and brings it to the disk.
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
