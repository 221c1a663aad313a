//! [`Upload`]: a file that is being stored.
//!
//! A whole file is written under a name that no client sees, and gets its own name by one rename.
//! So each reader sees the old file or the new one, and an upload that fails leaves nothing. A file
//! that is appended to, or stored from REST's place on, is written where it lies.

use crate::ascii;
use crate::path::{RESERVED, VirtualPath};
use crate::tree::{Tree, TreeError, is_directory, place};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use selvedge::fs::Handle;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a file is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UploadPlan {
    /// As a whole. `replaces` says whether there may be a file with that name.
    Whole { replaces: bool },
    /// Behind the file's end.
    Append,
    /// From a place on, as REST says. What lay behind it is cut off, if `cuts` allows that.
    Resume { place: RestartPlace, cuts: bool },
}

/// The place where a transfer begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestartPlace {
    /// The argument of REST.
    pub(crate) bytes: u64,
    /// Whether these are bytes of TYPE A, in which each line end counts as two.
    pub(crate) is_ascii: bool,
}

impl RestartPlace {
    /// The place as an offset in a file of `len` bytes. It blocks.
    ///
    /// # Errors
    /// `Restart`, and those of reading.
    pub(crate) fn offset(self, file: &Handle, len: u64) -> Result<u64, TreeError> {
        if !self.is_ascii || self.bytes == 0 {
            return if self.bytes <= len { Ok(self.bytes) } else { Err(TreeError::Restart) };
        }
        let file = File::from(file.as_fd().try_clone_to_owned()?);
        ascii::file_offset(file, self.bytes)?.ok_or(TreeError::Restart)
    }
}

/// A file that is being stored. Its methods block. If it is given up, or dropped before
/// [`complete`](Self::complete), a whole file leaves nothing.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Locked for each write: the write of a transfer that was dropped may still be under way.
    target: Mutex<Target>,
    staged: Option<Staged>,
}

/// What an upload writes to.
#[derive(Debug)]
struct Target {
    file: File,
    /// Where the file is cut off by the first write. A transfer that never begins cuts nothing.
    cut: Option<u64>,
}

impl Target {
    /// The file, cut off where the plan says.
    fn ready(&mut self) -> io::Result<&mut File> {
        if let Some(offset) = self.cut.take() {
            self.file.set_len(offset)?;
            self.file.seek(SeekFrom::Start(offset))?;
        }
        Ok(&mut self.file)
    }
}

/// The name that a whole file has until it is complete.
#[derive(Debug)]
struct Staged {
    parent: Handle,
    temporary: String,
    name: Vec<u8>,
    replaces: bool,
    /// Whether the name is gone: the file has its own, or was given up.
    is_settled: AtomicBool,
}

/// Numbers the names of this process.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl Upload {
    /// Begins to store a file.
    ///
    /// # Errors
    /// `Exists` or `Kept` if the plan does not allow what would happen, `NotFile` if the name is
    /// that of something else, `Restart`; and those of opening and creating a file.
    pub(crate) fn begin(tree: &Tree, path: &VirtualPath, plan: UploadPlan) -> Result<Upload, TreeError> {
        match plan {
            UploadPlan::Whole { replaces } => {
                match tree.look(path) {
                    Ok(status) if is_directory(&status) => return Err(TreeError::NotFile),
                    Ok(_) if !replaces => return Err(TreeError::Exists),
                    Err(TreeError::NotFile) => return Err(TreeError::NotFile),
                    _ => {}
                }
                Upload::staged(tree, path, replaces)
            }
            UploadPlan::Append => match tree.open_file(path, OFlags::WRONLY | OFlags::APPEND) {
                Ok((file, _)) => Upload::in_place(&file),
                Err(TreeError::Missing) => {
                    let (parent, name) = tree.parent(path)?;
                    let file = create(&parent, name, OFlags::APPEND)?;
                    Ok(Upload::new(file, None))
                }
                Err(error) => Err(error),
            },
            UploadPlan::Resume { place, cuts } => {
                let (file, status) = tree.open_file(path, OFlags::RDWR)?;
                let offset = place.offset(&file, status.len)?;
                if offset < status.len && !cuts {
                    return Err(TreeError::Kept);
                }
                let upload = Upload::in_place(&file)?;
                upload.target().cut = Some(offset);
                Ok(upload)
            }
        }
    }

    fn new(file: File, staged: Option<Staged>) -> Upload {
        Upload { target: Mutex::new(Target { file, cut: None }), staged }
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_place(file: &Handle) -> Result<Upload, TreeError> {
        Ok(Upload::new(File::from(file.as_fd().try_clone_to_owned()?), None))
    }

    fn staged(tree: &Tree, path: &VirtualPath, replaces: bool) -> Result<Upload, TreeError> {
        let (parent, name) = tree.parent(path)?;
        loop {
            let prefix = String::from_utf8_lossy(RESERVED);
            let temporary = format!("{prefix}{}.{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
            let file = match create(&parent, temporary.as_bytes(), OFlags::empty()) {
                // A process that had this number has left it.
                Err(TreeError::Exists) => continue,
                created => created?,
            };
            let is_settled = AtomicBool::new(false);
            let staged = Staged { parent, temporary, name: name.to_vec(), replaces, is_settled };
            return Ok(Upload::new(file, Some(staged)));
        }
    }

    /// Writes bytes behind those written before.
    ///
    /// # Errors
    /// `Full`, `Quota`, `Broken`.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), TreeError> {
        Ok(self.target().ready()?.write_all(bytes)?)
    }

    /// Gives a whole file its name: all bytes are written. They are on the disk before the name is
    /// there, so that a crash of the machine leaves the old file or the new one.
    ///
    /// # Errors
    /// `Exists` if there is such a file by now, and the plan was not to replace it; `Full`, `Quota`
    /// or `Broken` if the bytes do not reach the disk.
    pub(crate) fn complete(&self) -> Result<(), TreeError> {
        self.target().ready()?.sync_all()?;
        let Some(staged) = &self.staged else { return Ok(()) };
        let from = staged.temporary.as_bytes();
        place(&staged.parent, from, &staged.parent, &staged.name, staged.replaces)?;
        staged.is_settled.store(true, Relaxed);
        sync_names(&staged.parent);
        Ok(())
    }

    /// Waits for a write that is still under way, and leaves nothing of a whole file.
    pub(crate) fn give_up(&self) {
        let _no_write = self.target();
        self.staged.iter().for_each(Staged::remove);
    }
}

impl Staged {
    /// Removes the name, once.
    fn remove(&self) {
        if !self.is_settled.swap(true, Relaxed) {
            // Nothing can be done about a name that cannot be removed.
            let _ = rustix::fs::unlinkat(&self.parent, &*self.temporary, AtFlags::empty());
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Brings the names of a directory to the disk. The file has its name in any case, so a file system
/// that cannot do it changes nothing.
fn sync_names(directory: &Handle) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(names) = rustix::fs::openat(directory, ".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(names);
    }
}

/// Creates a file that is not there yet, for writing.
fn create(parent: &Handle, name: &[u8], flags: OFlags) -> Result<File, TreeError> {
    let always = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened: Result<_, Errno> =
        rustix::fs::openat(parent, name, always | flags, Mode::from_raw_mode(0o666));
    Ok(File::from(opened?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn begun(root: &Path, name: &str, plan: UploadPlan) -> Result<Upload, TreeError> {
        let path = VirtualPath::default().join(name.as_bytes()).unwrap();
        Upload::begin(&Tree::open(root).unwrap(), &path, plan)
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn resume(bytes: u64, is_ascii: bool, cuts: bool) -> UploadPlan {
        UploadPlan::Resume { place: RestartPlace { bytes, is_ascii }, cuts }
    }

    #[test]
    fn a_whole_file_appears_at_once_or_never() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::write(root.join("a"), "old").unwrap();
        let upload = begun(root, "a", UploadPlan::Whole { replaces: true }).unwrap();
        upload.write(b"ne").unwrap();
        assert_eq!(fs::read(root.join("a")).unwrap(), b"old");
        upload.write(b"w").unwrap();
        upload.complete().unwrap();
        drop(upload);
        assert_eq!(fs::read(root.join("a")).unwrap(), b"new");

        let upload = begun(root, "b", UploadPlan::Whole { replaces: false }).unwrap();
        upload.write(b"lost").unwrap();
        assert_eq!(names(root).len(), 2);
        drop(upload);
        assert_eq!(names(root), ["a"]);

        // The name is gone at once, also while a write still has the upload.
        let upload = begun(root, "b", UploadPlan::Whole { replaces: false }).unwrap();
        upload.give_up();
        assert_eq!(names(root), ["a"]);
        upload.write(b"late").unwrap();
        drop(upload);
        assert_eq!(names(root), ["a"]);
    }

    #[test]
    fn what_is_there_is_replaced_only_if_the_plan_says_so() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::write(root.join("a"), "old").unwrap();
        fs::create_dir(root.join("d")).unwrap();
        let kept = UploadPlan::Whole { replaces: false };
        assert_eq!(begun(root, "a", kept).unwrap_err(), TreeError::Exists);
        assert_eq!(begun(root, "d", UploadPlan::Whole { replaces: true }).unwrap_err(), TreeError::NotFile);
        assert_eq!(begun(root, "x/a", kept).unwrap_err(), TreeError::Missing);
        let upload = begun(root, "b", kept).unwrap();
        fs::write(root.join("b"), "first").unwrap();
        assert_eq!(upload.complete(), Err(TreeError::Exists));
        drop(upload);
        assert_eq!(names(root), ["a", "b", "d"]);
        assert_eq!(fs::read(root.join("b")).unwrap(), b"first");
    }

    #[test]
    fn a_file_grows_and_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let file = root.join("a");
        let store = |plan, bytes: &[u8]| {
            let upload = begun(root, "a", plan)?;
            upload.write(bytes)?;
            upload.complete()?;
            Ok(fs::read(&file).unwrap())
        };
        assert_eq!(store(UploadPlan::Append, b"ab\n"), Ok(b"ab\n".to_vec()));
        assert_eq!(store(UploadPlan::Append, b"cd\n"), Ok(b"ab\ncd\n".to_vec()));
        assert_eq!(store(resume(6, false, false), b"ef"), Ok(b"ab\ncd\nef".to_vec()));
        assert_eq!(store(resume(9, false, true), b""), Err(TreeError::Restart));
        assert_eq!(store(resume(3, false, false), b"x"), Err(TreeError::Kept));
        assert_eq!(store(resume(3, true, true), b"x"), Err(TreeError::Restart), "between CR and LF");
        assert_eq!(store(resume(4, true, true), b"x"), Ok(b"ab\nx".to_vec()));
        assert_eq!(store(resume(3, false, true), b"cd"), Ok(b"ab\ncd".to_vec()));
        drop(begun(root, "a", resume(0, false, true)).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"ab\ncd", "a transfer that never began has cut nothing");
        assert_eq!(begun(root, "none", resume(0, false, true)).unwrap_err(), TreeError::Missing);
    }
}
