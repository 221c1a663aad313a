//! The directory that is served. A [`DocumentRoot`] looks up names below it, and nothing outside.
//! `files.rs` calls it for names that are not in the cache.
//!
//! A name is opened relative to a descriptor of the root with `openat2(RESOLVE_BENEATH |
//! RESOLVE_NO_MAGICLINKS)`. So a relative symbolic link is followed as long as it stays below the
//! root. A link that is absolute, or that climbs out and comes back, makes the kernel refuse the
//! name. The look-up then asks the kernel for the place that the name leads to, without opening the
//! file (`O_PATH`). If that place is below the root, the look-up opens the place's own path from
//! the root, again beneath it. A name that leads elsewhere is answered 404, whatever is renamed
//! meanwhile. Some kernels have no `openat2` (before Linux 5.6, or where a sandbox denies it).
//! There the look-up walks the name one component at a time with `O_NOFOLLOW`, and follows no
//! symbolic link.
//!
//! Only regular files are opened for reading. The look-up asks for the kind of the file first,
//! because opening a FIFO or a device has an effect on it.
//!
//! The worker itself makes a look-up first in a way that does not wait for the disk
//! (`RESOLVE_CACHED`, `RWF_NOWAIT`). With the path and the content in memory this costs some
//! microseconds, less than the way to another OS thread and back. If the look-up would have to
//! wait, its result is [`LookUpError::Cold`], and the connection has it made again on the blocking
//! pool.

use crate::status::Status;
use rustix::fs::{CWD, Dir, FileType, OFlags, ResolveFlags};
use rustix::io::Errno;
use selvedge_io::fs::{FileStatus, Handle};
use selvedge_site::listing::ListedEntry;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// The file that stands for its directory.
const INDEX: &[u8] = b"index.html";

/// The most names that the list of a directory has.
const LISTED_MAX: usize = 20_000;

/// How often a look-up is repeated if it fails because a file was renamed meanwhile.
const RACES_MAX: u32 = 8;

/// The path of a directory with the files that are served.
///
/// It is opened anew for look-ups that come later, so that a directory put in its place, or a
/// symbolic link turned to another one, is seen.
#[derive(Clone, Debug)]
pub struct DocumentRoot {
    path: PathBuf,
    /// Whether the kernel can keep a look-up below a directory.
    beneath: bool,
}

/// Whether a look-up may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Disk,
}

/// Why a look-up gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUpError {
    /// It would have to wait for the disk.
    Cold,
    /// The status of the reply.
    Refused(Status),
}

/// What a name stands for.
#[derive(Debug)]
pub(crate) enum Found {
    File(OpenedFile),
    /// A directory, named without the `/` at its end.
    Directory,
}

/// A regular file, as it was when it was looked up.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) identity: Identity,
    pub(crate) body: Backing,
}

/// The content of a file.
#[derive(Debug)]
pub(crate) enum Backing {
    Memory(Box<[u8]>),
    Open(Handle),
}

/// The numbers that distinguish a file and its state from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) len: u64,
    /// Seconds and nanoseconds of Unix time.
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
}

impl Identity {
    /// `None` if `file` is not a regular file.
    pub(crate) fn of(file: &Handle) -> Result<Option<Identity>, Errno> {
        let FileStatus { device, inode, mode, len, modified, changed } = file.status()?;
        let is_file = FileType::from_raw_mode(mode) == FileType::RegularFile;
        Ok(is_file.then_some(Identity { device, inode, len, modified, changed }))
    }

    /// The same file with content of this length.
    pub(crate) fn with_len(self, len: u64) -> Identity {
        Identity { len, ..self }
    }

    /// Whether it is one file, in whatever state.
    fn is_same_file(&self, other: &Identity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl DocumentRoot {
    /// The directory at `path`.
    ///
    /// # Errors
    /// With the path in the message: it is not there, no directory, or must not be searched.
    pub fn new(path: impl AsRef<Path>) -> io::Result<DocumentRoot> {
        let path = path.as_ref();
        let naming = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let absolute = std::path::absolute(path).map_err(naming)?;
        let mut tree = DocumentRoot { path: absolute, beneath: true };
        let root = tree.root(Patience::Disk).map_err(|errno| naming(errno.into()))?;
        match tree.open(root.as_fd(), b".", OFlags::PATH, Patience::Disk) {
            Err(Errno::NOSYS | Errno::PERM) => tree.beneath = false,
            Err(errno) => return Err(naming(errno.into())),
            Ok(_) => {}
        }
        Ok(tree)
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the root itself.
    pub(crate) fn root(&self, patience: Patience) -> Result<Handle, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match patience {
            Patience::None if self.beneath => {
                Handle::open_within(CWD, &self.path, flags, ResolveFlags::CACHED)
            }
            Patience::None => Err(Errno::AGAIN),
            Patience::Disk => Handle::open(CWD, &self.path, flags),
        }
    }

    /// Looks up `name`, as [`target::resolve`](crate::target::resolve) gives names, and reads the
    /// content if it is not longer than `memory_max`.
    pub(crate) fn find(
        &self,
        root: BorrowedFd<'_>,
        name: &[u8],
        memory_max: u64,
        patience: Patience,
    ) -> Result<Found, LookUpError> {
        let mut indexed;
        let is_directory = name.is_empty() || name.ends_with(b"/");
        let path = match is_directory {
            true => {
                indexed = name.to_vec();
                indexed.extend_from_slice(INDEX);
                &indexed[..]
            }
            false => name,
        };
        let there = match self.open(root, path, OFlags::PATH, patience) {
            Err(Errno::NOENT) if is_directory => {
                return Err(self.without_index(root, name, patience));
            }
            there => there.map_err(missed)?,
        };
        let Some(identity) = Identity::of(&there).map_err(missed)? else {
            let mode = there.status().map_err(missed)?.mode;
            return match (is_directory, FileType::from_raw_mode(mode)) {
                (false, FileType::Directory) => Ok(Found::Directory),
                (false, _) => Err(LookUpError::Refused(Status::NOT_FOUND)),
                (true, _) => Err(LookUpError::Refused(Status::FORBIDDEN)),
            };
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open(root, path, flags, patience).map_err(missed)?;
        let opened = Identity::of(&file).map_err(missed)?;
        let Some(identity) = opened.filter(|opened| opened.is_same_file(&identity)) else {
            // Another file was put in its place between the two calls.
            return Err(LookUpError::Cold);
        };
        let body = match read_whole(&file, identity, memory_max, patience)? {
            Some(content) => Backing::Memory(content),
            None => Backing::Open(file),
        };
        Ok(Found::File(OpenedFile { identity, body }))
    }

    /// Why a directory, named with a `/` at its end or not at all, gave nothing when it has no
    /// index.
    fn without_index(&self, root: BorrowedFd<'_>, name: &[u8], patience: Patience) -> LookUpError {
        let directory = if name.is_empty() { b"." } else { name };
        match self.open(root, directory, OFlags::PATH | OFlags::DIRECTORY, patience) {
            Ok(_) => LookUpError::Refused(Status::FORBIDDEN),
            Err(errno) => missed(errno),
        }
    }

    /// What the directory `name` contains; with `shows` unset, nothing, if it is there. A symbolic
    /// link is shown as the file that it leads to, if that is below the root. The call blocks.
    pub(crate) fn list(
        &self,
        root: BorrowedFd<'_>,
        name: &[u8],
        shows: bool,
    ) -> Result<Vec<ListedEntry>, LookUpError> {
        let path = if name.is_empty() { b"." } else { name };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        if !shows {
            self.open(root, path, OFlags::PATH | OFlags::DIRECTORY, Patience::Disk).map_err(missed)?;
            return Ok(Vec::new());
        }
        let directory = self.open(root, path, flags, Patience::Disk).map_err(missed)?;
        let mut entries = Vec::new();
        for found in Dir::read_from(&directory).map_err(missed)? {
            let found = found.map_err(missed)?;
            let name = found.file_name().to_bytes();
            if name.starts_with(b".") {
                continue;
            }
            let below = match path {
                b"." => name.to_vec(),
                path => [path.strip_suffix(b"/").unwrap_or(path), b"/", name].concat(),
            };
            // A link that leads out is left out, as are files that were removed meanwhile.
            let Ok(there) = self.open(root, &below, OFlags::PATH, Patience::Disk) else { continue };
            let FileStatus { mode, len, modified, .. } = there.status().map_err(missed)?;
            let is_directory = match FileType::from_raw_mode(mode) {
                FileType::Directory => true,
                FileType::RegularFile => false,
                _ => continue,
            };
            if entries.len() == LISTED_MAX {
                break;
            }
            entries.push(ListedEntry { name: name.to_vec(), is_directory, bytes: len, modified: modified.0 });
        }
        Ok(entries)
    }

    /// The state of what `name` stands for now, without opening it for reading.
    pub(crate) fn identify(
        &self,
        root: BorrowedFd<'_>,
        name: &[u8],
        patience: Patience,
    ) -> Result<Option<Identity>, LookUpError> {
        let indexed;
        let path = match name.is_empty() || name.ends_with(b"/") {
            true => {
                indexed = [name, INDEX].concat();
                &indexed[..]
            }
            false => name,
        };
        let fd = self.open(root, path, OFlags::PATH, patience).map_err(missed)?;
        Identity::of(&fd).map_err(missed)
    }

    fn open(
        &self,
        root: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        patience: Patience,
    ) -> Result<Handle, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        if !self.beneath {
            return if patience == Patience::None { Err(Errno::AGAIN) } else { walk(root, path, flags) };
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if patience == Patience::None {
            let resolve = resolve | ResolveFlags::CACHED;
            return match Handle::open_within(root, path, flags, resolve) {
                // `open_by_place` makes calls that may wait.
                Err(Errno::XDEV) => Err(Errno::AGAIN),
                result => result,
            };
        }
        let mut races = 0;
        loop {
            match Handle::open_within(root, path, flags, resolve) {
                Err(Errno::AGAIN) if races < RACES_MAX => races += 1,
                Err(Errno::XDEV) => return open_by_place(root, path, flags),
                result => return result,
            }
        }
    }
}

/// Opens what `path` leads to through links that are absolute, or that leave the root and come
/// back, if that is below the root after all.
fn open_by_place(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<Handle, Errno> {
    let look = OFlags::PATH | OFlags::CLOEXEC;
    let there = Handle::open_within(root, path, look, ResolveFlags::NO_MAGICLINKS)?;
    let path_of = |fd| Handle::path_of(fd).map_err(|_| Errno::XDEV);
    let (there, root_path) = (path_of(there.as_fd())?, path_of(root)?);
    let below = there.strip_prefix(&root_path).map_err(|_| Errno::XDEV)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    // The place may have been renamed or replaced meanwhile. It is opened as any name is, beneath
    // the root, and has no links.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Handle::open_within(root, below, flags, resolve)
}

/// Opens `path` one component at a time without following any symbolic link.
fn walk(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<Handle, Errno> {
    let mut components = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    let mut directory: Option<Handle> = None;
    while let Some(name) = components.next() {
        let at = directory.as_ref().map_or(root, |fd| fd.as_fd());
        let flags = match components.peek() {
            Some(_) => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        let opened = Handle::open(at, name, flags | OFlags::NOFOLLOW)?;
        if components.peek().is_none() {
            return Ok(opened);
        }
        directory = Some(opened);
    }
    Err(Errno::NOENT)
}

/// The content of a file if it is not longer than `memory_max` and stood still while it was read.
fn read_whole(
    file: &Handle,
    identity: Identity,
    memory_max: u64,
    patience: Patience,
) -> Result<Option<Box<[u8]>>, LookUpError> {
    if identity.len > memory_max {
        return Ok(None);
    }
    let mut content = vec![0; identity.len as usize].into_boxed_slice();
    let mut at = 0;
    while at < content.len() {
        let rest = &mut content[at..];
        let read = match patience {
            Patience::None => file.read_cached_at(rest, at as u64),
            Patience::Disk => file.read_at(rest, at as u64),
        };
        match read {
            Ok(0) => return Ok(None),
            Ok(n) => at += n,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Err(LookUpError::Cold),
            Err(errno) => return Err(missed(errno)),
        }
    }
    let stood_still = Identity::of(file).map_err(missed)? == Some(identity);
    Ok(stood_still.then_some(content))
}

/// Reads a stretch of a file on the blocking pool, so that it is in memory when it is sent.
pub(crate) fn warm(file: &Handle, offset: u64, len: usize) {
    let mut scratch = vec![0; len.min(64 << 10)];
    let mut done = 0;
    while done < len {
        let take = scratch.len().min(len - done);
        match file.read_at(&mut scratch[..take], offset + done as u64) {
            Ok(n) if n > 0 => done += n,
            // Sending the file meets any error again, and reports it.
            _ => return,
        }
    }
}

fn missed(errno: Errno) -> LookUpError {
    LookUpError::Refused(match errno {
        Errno::AGAIN => return LookUpError::Cold,
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::NAMETOOLONG
        | Errno::LOOP
        | Errno::XDEV
        | Errno::NXIO
        | Errno::INVAL => Status::NOT_FOUND,
        Errno::ACCESS | Errno::PERM => Status::FORBIDDEN,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Status::SERVICE_UNAVAILABLE,
        _ => Status::INTERNAL_SERVER_ERROR,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, DocumentRoot) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("root/deep/er")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::write(home.path().join("root/file"), "content").unwrap();
        fs::write(home.path().join("root/deep/er/index.html"), "index").unwrap();
        symlink("file", home.path().join("root/inside")).unwrap();
        symlink("deep", home.path().join("root/through")).unwrap();
        symlink("../secret", home.path().join("root/outside")).unwrap();
        symlink("..", home.path().join("root/up")).unwrap();
        let tree = DocumentRoot::new(home.path().join("root")).unwrap();
        (home, tree)
    }

    fn found(tree: &DocumentRoot, name: &str, patience: Patience) -> Result<String, LookUpError> {
        let root = tree.root(Patience::Disk).unwrap();
        Ok(match tree.find(root.as_fd(), name.as_bytes(), 100, patience)? {
            Found::Directory => "a directory".into(),
            Found::File(OpenedFile { body: Backing::Memory(content), .. }) => {
                String::from_utf8(content.into()).unwrap()
            }
            Found::File(_) => "an open file".into(),
        })
    }

    const NOT_FOUND: Result<String, LookUpError> = Err(LookUpError::Refused(Status::NOT_FOUND));

    /// Both ways of looking up agree but for symbolic links, which only one of them follows.
    #[test]
    fn with_and_without_openat2() {
        let (_home, kernel) = tree();
        assert!(kernel.beneath, "this test wants a kernel with openat2");
        let walking = DocumentRoot { beneath: false, ..kernel.clone() };
        for tree in [&kernel, &walking] {
            let find = |name| found(tree, name, Patience::Disk);
            assert_eq!(find("file"), Ok("content".into()));
            assert_eq!(find("deep/er/"), Ok("index".into()));
            assert_eq!(find("deep/er/index.html"), Ok("index".into()));
            assert_eq!(find("deep/er"), Ok("a directory".into()));
            for name in ["", "deep/"] {
                let refused = Err(LookUpError::Refused(Status::FORBIDDEN));
                assert_eq!(find(name), refused, "{name} {}", tree.beneath);
            }
            for name in ["none", "none/", "none/file", "file/", "file/more", "outside", "up/secret"] {
                assert_eq!(find(name), NOT_FOUND, "{name} {}", tree.beneath);
            }
        }
        assert_eq!(found(&kernel, "inside", Patience::Disk), Ok("content".into()));
        assert_eq!(found(&kernel, "through/er/", Patience::Disk), Ok("index".into()));
        assert_eq!(found(&walking, "inside", Patience::Disk), NOT_FOUND);
        assert_eq!(found(&walking, "through/er/", Patience::Disk), NOT_FOUND);
    }

    #[test]
    fn what_is_in_memory_is_found_without_waiting() {
        let (_home, kernel) = tree();
        found(&kernel, "file", Patience::Disk).unwrap();
        assert_eq!(found(&kernel, "file", Patience::None), Ok("content".into()));
        let walking = DocumentRoot { beneath: false, ..kernel };
        assert_eq!(found(&walking, "file", Patience::None), Err(LookUpError::Cold), "a walk may wait");
        assert!(walking.root(Patience::None).is_err());
    }

    #[test]
    fn identities_tell_states_apart() {
        let (home, tree) = tree();
        let root = tree.root(Patience::Disk).unwrap();
        let identity = || tree.identify(root.as_fd(), b"file", Patience::Disk).unwrap().unwrap();
        let first = identity();
        assert_eq!(first, identity());
        let path = home.path().join("root/file");
        fs::hard_link(&path, home.path().join("root/link")).unwrap();
        assert_eq!(identity().inode, first.inode, "another name is no other file");
        fs::write(&path, "other content").unwrap();
        assert_ne!(identity(), first);
        fs::rename(home.path().join("secret"), &path).unwrap();
        assert_ne!(identity(), first);
        assert_eq!(tree.identify(root.as_fd(), b"deep", Patience::Disk), Ok(None));
    }

    #[test]
    fn a_tree_is_a_directory() {
        let (home, _) = tree();
        for (name, text) in [("none", "No such file or directory"), ("secret", "Not a directory")] {
            let path = home.path().join(name);
            let error = DocumentRoot::new(&path).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{}: {text}", path.display())), "{error}");
        }
    }
}
