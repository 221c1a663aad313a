//! The calls of `Tree` on files: opening, reading, writing, truncating, syncing, with Linux's
//! errors. `kernel/files.rs` makes them for programs, and `Disk` makes them for tests.
//!
//! An open file is counted in its inode (`opens`), so each `open` needs one `close`; an inode
//! without a name lives until then. Chance is not drawn here but in `kernel/files.rs`, because a
//! `Disk` in a test's hands never fails.

use super::content::{FileContent, PAGE};
use super::tree::{From, Ino, Kind, Last, Tree};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use selvedge_io::sys::kernel::Known;

/// The alignments of transfers with direct access: of the offset and the length, and of the
/// address.
const BLOCK: u64 = 512;
const ADDRESS: usize = 4096;

impl Tree {
    /// Opens a file. The file exists until it is [closed](Self::close).
    pub(crate) fn open(&mut self, from: From, path: &[u8], flags: OFlags, permissions: u32) -> Result<Ino> {
        let reaches_only = flags.contains(OFlags::PATH);
        let creates = flags.contains(OFlags::CREATE) && !reaches_only;
        let exclusive = creates && flags.contains(OFlags::EXCL);
        if creates && flags.contains(OFlags::DIRECTORY) {
            return Err(Errno::INVAL);
        }
        let follow = !flags.contains(OFlags::NOFOLLOW) && !exclusive;
        let last = match (creates, follow) {
            (true, follow) => Last::Create { follow },
            (false, true) => Last::Follow,
            (false, false) => Last::Keep,
        };
        let walked = self.walk(from, path, last)?;
        let Some(inode) = walked.inode else {
            if !creates {
                return Err(Errno::NOENT);
            }
            let place = self.vacant(walked)?;
            let inode = self.create_at(place, Kind::File(FileContent::default()), permissions);
            self.inode_mut(inode).opens += 1;
            return Ok(inode);
        };
        if exclusive {
            return Err(Errno::EXIST);
        }
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR) || flags.contains(OFlags::TRUNC);
        match &self.inode(inode).kind {
            Kind::Directory(_) if creates || writes && !reaches_only => return Err(Errno::ISDIR),
            Kind::Directory(_) => {}
            _ if walked.slash || flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR),
            Kind::Link(_) if !reaches_only => return Err(Errno::LOOP),
            Kind::File(_) if flags.contains(OFlags::TRUNC) && !reaches_only => self.truncate(inode, 0)?,
            _ => {}
        }
        self.inode_mut(inode).opens += 1;
        Ok(inode)
    }

    pub(crate) fn close(&mut self, ino: Ino) {
        self.inode_mut(ino).opens -= 1;
        self.settle(ino);
    }

    /// Closes all files, because the world has ended.
    pub(super) fn close_all(&mut self) {
        let open: Vec<Ino> =
            self.inodes.iter().filter(|(_, inode)| inode.opens > 0).map(|(&ino, _)| ino).collect();
        for ino in open {
            self.inode_mut(ino).opens = 0;
            self.settle(ino);
        }
    }

    pub(crate) fn is_fifo(&self, ino: Ino) -> bool {
        matches!(self.inode(ino).kind, Kind::Fifo)
    }

    fn content(&self, ino: Ino) -> Result<&FileContent> {
        match &self.inode(ino).kind {
            Kind::File(content) => Ok(content),
            Kind::Directory(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn len(&self, ino: Ino) -> u64 {
        self.content(ino).map_or(0, FileContent::len)
    }

    pub(crate) fn read(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let content = self.content(ino)?;
        if i64::try_from(offset).is_err() {
            return Err(Errno::INVAL);
        }
        Ok(content.read(offset, buffer))
    }

    /// Writes as many bytes as there is room for.
    pub(crate) fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<usize> {
        let (left, now) = (self.pages_max.saturating_sub(self.pages), self.now);
        let content = self.content(ino)?;
        let end = i64::try_from(offset).map_err(|_| Errno::INVAL)?.checked_add_unsigned(bytes.len() as u64);
        if end.is_none() {
            return Err(Errno::FBIG);
        }
        let fitting = content.fits(offset, bytes.len(), left);
        if fitting == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC);
        }
        let before = content.pages();
        let inode = self.inode_mut(ino);
        let Kind::File(content) = &mut inode.kind else { unreachable!("looked at above") };
        content.write(offset, &bytes[..fitting]);
        let after = content.pages();
        if fitting > 0 {
            (inode.modified, inode.changed) = (now, now);
        }
        self.pages += after - before;
        Ok(fitting)
    }

    pub(crate) fn truncate(&mut self, ino: Ino, len: u64) -> Result<()> {
        if i64::try_from(len).is_err() {
            return Err(Errno::INVAL);
        }
        let now = self.now;
        let inode = self.inode_mut(ino);
        let Kind::File(content) = &mut inode.kind else { return Err(Errno::INVAL) };
        let before = content.pages();
        content.truncate(len);
        let cut = before - content.pages();
        (inode.modified, inode.changed) = (now, now);
        self.pages -= cut;
        Ok(())
    }

    pub(crate) fn sync(&mut self, ino: Ino) {
        match &mut self.inode_mut(ino).kind {
            Kind::File(content) => content.sync(),
            Kind::Directory(_) => self.sync_directory(ino),
            Kind::Link(_) | Kind::Fifo => {}
        }
    }

    pub(crate) fn fail_to_sync(&mut self, ino: Ino) {
        if let Kind::File(content) = &mut self.inode_mut(ino).kind {
            content.fail_to_sync();
        }
    }

    /// The target of a symbolic link.
    pub(crate) fn target(&self, ino: Ino) -> Result<&[u8]> {
        match &self.inode(ino).kind {
            Kind::Link(target) => Ok(target),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn known(&self, ino: Ino) -> Known {
        let inode = self.inode(ino);
        let (kind, links, len, blocks) = match &inode.kind {
            Kind::File(content) => (0o100_000, inode.links, content.len(), content.pages() * (PAGE / 512)),
            Kind::Directory(directory) => {
                let inside =
                    directory.entries.values().filter(|&&child| self.is_directory(child)).count() as u32;
                (0o040_000, if inode.links == 0 { 0 } else { 2 + inside }, PAGE, PAGE / 512)
            }
            Kind::Link(target) => (0o120_000, inode.links, target.len() as u64, 0),
            Kind::Fifo => (0o010_000, inode.links, 0, 0),
        };
        Known {
            ino,
            mode: kind | inode.permissions,
            links,
            len,
            blocks,
            modified: inode.modified,
            changed: inode.changed,
            created: inode.created,
        }
    }
}

/// Whether a transfer with direct access has the alignment that the disk wants.
pub(crate) fn is_aligned(offset: u64, buffer: &[u8]) -> bool {
    offset.is_multiple_of(BLOCK)
        && (buffer.len() as u64).is_multiple_of(BLOCK)
        && buffer.as_ptr().addr().is_multiple_of(ADDRESS)
}
