//! The `FileCalls` of `Kernel`: the system calls on files, which `selvedge-io`'s `sys/file.rs`
//! makes.
//!
//! The file tree does the work (`disk/`). Added here are chance (errors, short transfers, parts
//! that are not in memory), the check of the descriptor's flags, and the digest. An error is drawn
//! before the tree is changed, so a call that fails has changed nothing; `sync` is the exception.

use super::*;
use crate::disk::files::is_aligned;
use crate::disk::tree::{From, Last};
use rustix::fs::{CWD, OFlags, ResolveFlags};
use rustix::io::ReadWriteFlags;
use selvedge_io::sys::kernel::{Known, NameChange};

/// The kinds of the numbers that calls on files add to the digest.
#[derive(Clone, Copy)]
enum Noted {
    Opened,
    Read,
    Written,
    Truncated,
    Synced,
    Named,
}

impl Kernel {
    /// The disk, with its clock set to the present.
    fn disk_now(&mut self) -> &mut Tree {
        let now = self.boot + Time::now().as_nanos();
        self.disk.set_now(now);
        &mut self.disk
    }

    fn note_file(&mut self, what: Noted, ino: Ino, count: u64) {
        self.note((5 + what as u64) << 40 | ino);
        self.note(count);
    }

    /// Draws how many bytes of a file a call transfers at most.
    fn drawn_limit(&mut self) -> usize {
        let short = self.random.happens(self.conditions.disk_short);
        if short { 1 + self.random.below(4096) as usize } else { usize::MAX }
    }

    /// Draws whether a call on files fails. A call that `takes_room` may fail because the disk is
    /// full.
    fn may_fail(&mut self, takes_room: bool) -> Result<()> {
        if !self.random.happens(self.conditions.disk_error) {
            return Ok(());
        }
        Err(if takes_room && self.random.below(2) == 0 { Errno::NOSPC } else { Errno::IO })
    }

    fn file_at(&mut self, fd: RawFd) -> Result<&OpenInode> {
        let id = self.id(fd)?;
        match self.object(id) {
            Some(KernelObject { kind: ObjectKind::File(opened), .. }) => Ok(opened),
            _ => Err(Errno::SPIPE),
        }
    }

    /// The directory in which a path begins: an open one, or the root, which is the working
    /// directory.
    fn from(&mut self, directory: RawFd, beneath: bool) -> Result<From> {
        let directory = match directory {
            cwd if cwd == CWD.as_raw_fd() => From::ROOT.directory,
            opened => self.file_at(opened).map_err(|_| Errno::BADF)?.ino,
        };
        Ok(From { directory, beneath })
    }

    pub(super) fn close_file(&mut self, opened: &OpenInode) {
        self.disk_now().close(opened.ino);
    }

    /// Draws whether the wanted part of a file is not in memory.
    fn is_cold(&mut self) -> bool {
        self.random.happens(self.conditions.disk_cold)
    }
}

impl FileCalls for Kernel {
    /// Draws how long a call takes that can block.
    fn disk_delay(&mut self) -> Duration {
        let range = self.conditions.disk_delay.clone();
        self.drawn(range)
    }

    /// Draws whether an operation is performed although its caller has given it up.
    fn goes_on(&mut self) -> bool {
        self.random.below(2) == 0
    }

    fn open(
        &mut self,
        directory: RawFd,
        path: &[u8],
        flags: OFlags,
        permissions: u32,
        resolve: ResolveFlags,
    ) -> Result<RawFd> {
        if resolve.contains(ResolveFlags::CACHED) && self.is_cold() {
            return Err(Errno::AGAIN);
        }
        self.may_fail(flags.contains(OFlags::CREATE))?;
        self.has_descriptor_left()?;
        if flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        let from = self.from(directory, resolve.contains(ResolveFlags::BENEATH))?;
        let ino = self.disk_now().open(from, path, flags, permissions)?;
        let opened = OpenInode { ino, flags };
        self.note_file(Noted::Opened, ino, u64::from(flags.bits()));
        if self.disk.is_fifo(ino) && !opened.reaches_only() {
            return self.open_fifo(ino, opened.reads(), opened.writes());
        }
        let id = self.add(ObjectKind::File(opened));
        Ok(self.describe(id))
    }

    /// The status of an open file, or of the file at a path.
    fn stat(&mut self, directory: RawFd, path: &[u8], follow: bool) -> Result<Known> {
        self.may_fail(false)?;
        if path.is_empty() {
            let id = self.id(directory)?;
            let ino = match &self.object(id).expect("a descriptor's object is there").kind {
                ObjectKind::File(opened) => opened.ino,
                ObjectKind::Pipe(PipeEnd { fifo: Some(ino), .. }) => *ino,
                _ => return Err(Errno::OPNOTSUPP),
            };
            return Ok(self.disk.known(ino));
        }
        let from = self.from(directory, false)?;
        let ino = self.disk.find(from, path, if follow { Last::Follow } else { Last::Keep })?;
        Ok(self.disk.known(ino))
    }

    /// Reads from a place in a file; with `NOWAIT` only if the draw says that it is in memory.
    fn pread(&mut self, fd: RawFd, buffer: &mut [u8], offset: u64, flags: ReadWriteFlags) -> Result<usize> {
        self.may_fail(false)?;
        let limit = self.drawn_limit();
        let opened = self.file_at(fd)?;
        if !opened.reads() {
            return Err(Errno::BADF);
        }
        let (ino, direct) = (opened.ino, opened.flags.contains(OFlags::DIRECT));
        if direct && !is_aligned(offset, buffer) {
            return Err(Errno::INVAL);
        }
        if flags.contains(ReadWriteFlags::NOWAIT) && self.is_cold() {
            return Err(Errno::AGAIN);
        }
        let room = shortened(buffer.len(), limit, direct);
        let read = self.disk.read(ino, offset, &mut buffer[..room])?;
        self.note_file(Noted::Read, ino, offset << 20 ^ read as u64);
        Ok(read)
    }

    fn pwrite(&mut self, fd: RawFd, bytes: &[u8], offset: u64) -> Result<usize> {
        self.may_fail(true)?;
        let limit = self.drawn_limit();
        let opened = self.file_at(fd)?;
        if !opened.writes() {
            return Err(Errno::BADF);
        }
        let (ino, flags) = (opened.ino, opened.flags);
        let offset = if flags.contains(OFlags::APPEND) { self.disk.len(ino) } else { offset };
        let direct = flags.contains(OFlags::DIRECT);
        if direct && !is_aligned(offset, bytes) {
            return Err(Errno::INVAL);
        }
        let part = &bytes[..shortened(bytes.len(), limit, direct)];
        let written = self.disk_now().write(ino, offset, part)?;
        self.note_file(Noted::Written, ino, offset << 20 ^ written as u64);
        if flags.intersects(OFlags::DSYNC | OFlags::SYNC) {
            self.disk.sync(ino);
        }
        Ok(written)
    }

    fn truncate(&mut self, fd: RawFd, len: u64) -> Result<()> {
        self.may_fail(false)?;
        let opened = self.file_at(fd)?;
        if !opened.writes() {
            return Err(if opened.reaches_only() { Errno::BADF } else { Errno::INVAL });
        }
        let ino = opened.ino;
        self.disk_now().truncate(ino, len)?;
        self.note_file(Noted::Truncated, ino, len);
        Ok(())
    }

    fn sync(&mut self, fd: RawFd) -> Result<()> {
        let fails = self.may_fail(false);
        let opened = self.file_at(fd)?;
        if opened.reaches_only() {
            return Err(Errno::BADF);
        }
        let ino = opened.ino;
        self.note_file(Noted::Synced, ino, u64::from(fails.is_ok()));
        match fails {
            Ok(()) => self.disk.sync(ino),
            Err(_) => self.disk.fail_to_sync(ino),
        }
        fails
    }

    fn change_names(&mut self, change: NameChange<'_>) -> Result<()> {
        use NameChange::{CreateDirectory, CreateLink, Link, Remove, RemoveTree, Rename, SetPermissions};
        let takes_room =
            matches!(change, CreateDirectory { .. } | CreateLink { .. } | Link { .. } | Rename { .. });
        self.may_fail(takes_room)?;
        let disk = self.disk_now();
        let ino = match change {
            CreateDirectory { path, permissions } => disk.create_directory(path, permissions),
            Remove { path, directory } => disk.remove(path, directory),
            Rename { from, to } => disk.rename(from, to),
            Link { from, to } => disk.link(from, to),
            CreateLink { target, path } => disk.create_link(target, path),
            RemoveTree { path } => disk.remove_tree(path),
            SetPermissions { path, permissions } => disk.set_permissions(path, permissions),
        }?;
        self.note_file(Noted::Named, ino, 0);
        Ok(())
    }

    /// The names in a directory, each with the kind and permissions of its file.
    fn names(&mut self, path: &[u8]) -> Result<Vec<(Vec<u8>, u32)>> {
        self.may_fail(false)?;
        self.disk.names(path)
    }

    fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        self.may_fail(false)?;
        let ino = self.disk.find(From::ROOT, path, Last::Keep)?;
        self.disk.target(ino).map(<[u8]>::to_vec)
    }

    fn canonical(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        self.may_fail(false)?;
        self.disk.canonical(path)
    }
}

/// How many bytes of a transfer are made: at most `limit`, and with direct access whole blocks.
fn shortened(length: usize, limit: usize, direct: bool) -> usize {
    if direct && limit < length { length.min(limit.next_multiple_of(512)) } else { length.min(limit) }
}
