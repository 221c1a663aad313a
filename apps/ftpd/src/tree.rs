//! [`Tree`]: the directory that is an account's root, and every change of names below it.
//!
//! A path is opened relative to a descriptor of the root with `openat2(RESOLVE_BENEATH |
//! RESOLVE_NO_MAGICLINKS)`. So a symbolic link is followed as long as it stays below the root, and
//! the kernel refuses each name that leads out, whatever is renamed meanwhile. A change opens the
//! directory in this way, and changes one name in it, which has no `/` and is not `..`.
//!
//! All methods block: the session calls them on the blocking pool.

use crate::path::{VirtualPath, is_shown};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use selvedge::fs::{FileStatus, Handle};
use std::fmt;
use std::io;
use std::path::Path;

/// How often a look-up is repeated if it fails because a file was renamed meanwhile.
const RACES_MAX: u32 = 8;

/// The most names that a list has: a list is made in memory.
const LISTED_MAX: usize = 100_000;

/// The directory of an account.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Handle,
}

/// A name in a directory, and the file that it leads to.
#[derive(Debug)]
pub(crate) struct TreeEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) status: FileStatus,
}

/// Why something could not be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeError {
    /// There is no such file, or the path leads out of the root.
    Missing,
    Denied,
    NotDirectory,
    /// A directory, or something that is neither a file nor a directory.
    NotFile,
    Exists,
    NotEmpty,
    /// The file system does not take the name, or a directory would be moved into itself.
    Name,
    /// The directory has more names than a list may have.
    TooMany,
    /// A transfer would begin behind the end of the file, or within a line end.
    Restart,
    /// The file would be cut, and the account may not delete.
    Kept,
    Full,
    /// The file is larger than the file system, a quota or the process allows.
    Quota,
    /// It may be possible later.
    Busy,
    /// The disk or the system has failed.
    Broken,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TreeError::Missing => "There is no such file or directory.",
            TreeError::Denied => "Permission denied.",
            TreeError::NotDirectory => "It is no directory.",
            TreeError::NotFile => "It is no file.",
            TreeError::Exists => "There is a file or a directory with that name.",
            TreeError::NotEmpty => "The directory is not empty.",
            TreeError::Name => "That name cannot be used.",
            TreeError::TooMany => "The directory has too many names for a list.",
            TreeError::Restart => "The file has no place where REST points to.",
            TreeError::Kept => "This account may not overwrite what is stored.",
            TreeError::Full => "There is no room left.",
            TreeError::Quota => "The file is larger than is allowed.",
            TreeError::Busy => "Try again later.",
            TreeError::Broken => "The disk or the system has failed.",
        })
    }
}

impl std::error::Error for TreeError {}

impl From<Errno> for TreeError {
    fn from(errno: Errno) -> TreeError {
        match errno {
            Errno::NOENT | Errno::XDEV | Errno::LOOP => TreeError::Missing,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => TreeError::Denied,
            Errno::NOTDIR => TreeError::NotDirectory,
            Errno::ISDIR | Errno::NXIO => TreeError::NotFile,
            Errno::EXIST => TreeError::Exists,
            Errno::NOTEMPTY => TreeError::NotEmpty,
            Errno::INVAL | Errno::NAMETOOLONG | Errno::ILSEQ => TreeError::Name,
            Errno::NOSPC => TreeError::Full,
            Errno::FBIG | Errno::DQUOT => TreeError::Quota,
            Errno::AGAIN | Errno::BUSY | Errno::TXTBSY | Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
                TreeError::Busy
            }
            _ => TreeError::Broken,
        }
    }
}

impl From<io::Error> for TreeError {
    fn from(error: io::Error) -> TreeError {
        Errno::from_io_error(&error).map_or(TreeError::Broken, TreeError::from)
    }
}

impl Tree {
    /// The directory at `path`.
    ///
    /// # Errors
    /// With the path in the message: it is not there, no directory, must not be searched; or the
    /// kernel has no `openat2` (before Linux 5.6, or where a sandbox denies it).
    pub(crate) fn open(path: &Path) -> io::Result<Tree> {
        let naming = |errno: Errno| {
            let error = io::Error::from(errno);
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tree = Tree { root: Handle::open(CWD, path, flags).map_err(naming)? };
        match tree.open_at(&VirtualPath::default(), OFlags::PATH) {
            Ok(_) => Ok(tree),
            Err(Errno::NOSYS | Errno::PERM) => {
                Err(io::Error::other("this server needs the system call openat2, of Linux 5.6"))
            }
            Err(errno) => Err(naming(errno)),
        }
    }

    fn open_at(&self, path: &VirtualPath, flags: OFlags) -> Result<Handle, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut races = 0;
        loop {
            match Handle::open_within(&self.root, path.relative(), flags | OFlags::CLOEXEC, resolve) {
                Err(Errno::AGAIN) if races < RACES_MAX => races += 1,
                result => return result,
            }
        }
    }

    /// The status of a file or a directory.
    ///
    /// # Errors
    /// `Missing`, `Denied`, `NotFile` for anything else.
    pub(crate) fn look(&self, path: &VirtualPath) -> Result<FileStatus, TreeError> {
        let status = self.open_at(path, OFlags::PATH)?.status()?;
        match FileType::from_raw_mode(status.mode) {
            FileType::RegularFile | FileType::Directory => Ok(status),
            _ => Err(TreeError::NotFile),
        }
    }

    /// Opens a regular file, for what `flags` say. It looks at the kind first, because opening a
    /// FIFO or a device has an effect on it.
    ///
    /// # Errors
    /// As for [`look`](Self::look), and `NotFile` for a directory.
    pub(crate) fn open_file(
        &self,
        path: &VirtualPath,
        flags: OFlags,
    ) -> Result<(Handle, FileStatus), TreeError> {
        if is_directory(&self.look(path)?) {
            return Err(TreeError::NotFile);
        }
        let file = self.open_at(path, flags | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let status = file.status()?;
        // Another file may have been put in its place between the two calls.
        match FileType::from_raw_mode(status.mode) {
            FileType::RegularFile => Ok((file, status)),
            _ => Err(TreeError::NotFile),
        }
    }

    /// The directory that a path lies in, for changes of the name that comes with it.
    ///
    /// # Errors
    /// `Missing`, `Denied`, `NotDirectory`; `Name` for the root.
    pub(crate) fn parent<'a>(&self, path: &'a VirtualPath) -> Result<(Handle, &'a [u8]), TreeError> {
        let (directory, name) = path.split().ok_or(TreeError::Name)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok((self.open_at(&directory, flags)?, name))
    }

    /// The files and directories in a directory, sorted by name. A symbolic link is shown as the
    /// file that it leads to, and left out if it leads out of the root.
    ///
    /// # Errors
    /// `Missing`, `Denied`, `NotDirectory`, `TooMany`.
    pub(crate) fn list(&self, path: &VirtualPath) -> Result<Vec<TreeEntry>, TreeError> {
        let directory = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for found in Dir::read_from(&directory)? {
            let found = found?;
            let name = found.file_name().to_bytes();
            if matches!(name, b"." | b"..") || !is_shown(name) {
                continue;
            }
            // A file may have been removed meanwhile.
            let Ok(status) = path.join(name).map_err(|_| TreeError::Name).and_then(|path| self.look(&path))
            else {
                continue;
            };
            if entries.len() == LISTED_MAX {
                return Err(TreeError::TooMany);
            }
            entries.push(TreeEntry { name: name.to_vec(), status });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// # Errors
    /// `Exists`, and those of [`parent`](Self::parent).
    pub(crate) fn make_directory(&self, path: &VirtualPath) -> Result<(), TreeError> {
        // The root is there.
        let (parent, name) = self.parent(path).map_err(|error| match path.split() {
            None => TreeError::Exists,
            Some(_) => error,
        })?;
        Ok(rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777))?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDirectory`, `NotEmpty`, and those of [`parent`](Self::parent).
    pub(crate) fn remove_directory(&self, path: &VirtualPath) -> Result<(), TreeError> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// `NotFile` for a directory, and those of [`parent`](Self::parent).
    pub(crate) fn remove_file(&self, path: &VirtualPath) -> Result<(), TreeError> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
    }

    /// Gives a file or a directory another path; `replaces` says whether a file may lose that path.
    ///
    /// # Errors
    /// `Exists`, `NotEmpty`, `Name` for a directory that would be moved into itself.
    pub(crate) fn rename(
        &self,
        from: &VirtualPath,
        to: &VirtualPath,
        replaces: bool,
    ) -> Result<(), TreeError> {
        let (old_parent, old_name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        place(&old_parent, old_name, &new_parent, new_name, replaces)
    }
}

/// Moves a name to another directory.
pub(crate) fn place(
    old_parent: &Handle,
    old_name: &[u8],
    new_parent: &Handle,
    new_name: &[u8],
    replaces: bool,
) -> Result<(), TreeError> {
    let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    match rustix::fs::renameat_with(old_parent, old_name, new_parent, new_name, flags) {
        // Here it says that the two lie on different file systems.
        Err(Errno::XDEV) => Err(TreeError::Name),
        result => Ok(result?),
    }
}

/// Whether a status is that of a directory.
pub(crate) fn is_directory(status: &FileStatus) -> bool {
    FileType::from_raw_mode(status.mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> VirtualPath {
        VirtualPath::default().join(text.as_bytes()).unwrap()
    }

    fn tree() -> (tempfile::TempDir, Tree) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("root/deep/er")).unwrap();
        fs::create_dir(home.path().join("outside")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::write(home.path().join("root/file"), "content").unwrap();
        fs::write(home.path().join("root/line\nend"), "").unwrap();
        symlink("file", home.path().join("root/inside")).unwrap();
        symlink("../secret", home.path().join("root/out")).unwrap();
        symlink("..", home.path().join("root/up")).unwrap();
        symlink(home.path().join("outside"), home.path().join("root/absolute")).unwrap();
        rustix::fs::mkfifoat(CWD, home.path().join("root/fifo"), Mode::RUSR).unwrap();
        let tree = Tree::open(&home.path().join("root")).unwrap();
        (home, tree)
    }

    #[test]
    fn links_are_followed_within_the_root_only() {
        let (home, tree) = tree();
        assert_eq!(tree.look(&path("inside")).unwrap().len, 7);
        for name in ["out", "up/secret", "absolute", "absolute/x", "none"] {
            assert_eq!(tree.look(&path(name)).unwrap_err(), TreeError::Missing, "{name}");
            let flags = OFlags::RDONLY;
            assert_eq!(tree.open_file(&path(name), flags).unwrap_err(), TreeError::Missing, "{name}");
        }
        for name in ["up/new", "absolute/new"] {
            assert_eq!(tree.make_directory(&path(name)), Err(TreeError::Missing), "{name}");
            assert_eq!(tree.rename(&path("file"), &path(name), true), Err(TreeError::Missing), "{name}");
        }
        assert_eq!(tree.remove_file(&path("up/secret")), Err(TreeError::Missing));
        assert_eq!(tree.remove_file(&path("absolute")), Ok(()), "the link itself is a name in the root");
        assert!(home.path().join("outside").is_dir() && home.path().join("secret").is_file());
    }

    #[test]
    fn only_files_are_opened() {
        let (_home, tree) = tree();
        for name in ["deep", "fifo", "/"] {
            let opened = tree.open_file(&path(name), OFlags::RDONLY);
            assert_eq!(opened.unwrap_err(), TreeError::NotFile, "{name}");
        }
        assert_eq!(tree.look(&path("file/x")).unwrap_err(), TreeError::NotDirectory);
    }

    #[test]
    fn a_list_has_what_a_client_can_use() {
        let (_home, tree) = tree();
        let names: Vec<_> = tree.list(&path("/")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, [&b"deep"[..], b"file", b"inside"]);
        assert_eq!(tree.list(&path("file")).unwrap_err(), TreeError::NotDirectory);
    }

    #[test]
    fn names_change() {
        let (home, tree) = tree();
        tree.make_directory(&path("new")).unwrap();
        assert_eq!(tree.make_directory(&path("new")), Err(TreeError::Exists));
        assert_eq!(tree.make_directory(&path("/")), Err(TreeError::Exists));
        tree.rename(&path("file"), &path("new/file"), false).unwrap();
        fs::write(home.path().join("root/file"), "other").unwrap();
        assert_eq!(tree.rename(&path("file"), &path("new/file"), false), Err(TreeError::Exists));
        tree.rename(&path("file"), &path("new/file"), true).unwrap();
        assert_eq!(fs::read(home.path().join("root/new/file")).unwrap(), b"other");
        assert_eq!(tree.rename(&path("deep"), &path("deep/er/x"), true), Err(TreeError::Name));
        assert_eq!(tree.remove_directory(&path("new")), Err(TreeError::NotEmpty));
        assert_eq!(tree.remove_file(&path("new")), Err(TreeError::NotFile));
        tree.remove_file(&path("new/file")).unwrap();
        assert_eq!(tree.remove_directory(&path("inside")), Err(TreeError::NotDirectory));
        tree.remove_directory(&path("new")).unwrap();
        assert_eq!(tree.remove_directory(&path("/")), Err(TreeError::Name));
    }

    #[test]
    fn a_root_is_a_directory() {
        let (home, _) = tree();
        for (name, text) in [("none", "No such file or directory"), ("secret", "Not a directory")] {
            let path = home.path().join(name);
            let error = Tree::open(&path).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{}: {text}", path.display())), "{error}");
        }
    }
}
