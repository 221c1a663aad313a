//! `Tree`, its `Inode`s, and the look-up of names (`walk`), with Linux's errors. The other files of
//! `disk` add calls to `Tree`; `Kernel` owns one during a run, and `Disk` owns one outside runs.
//!
//! A directory has its names twice: `entries` as programs see them, and `durable` as a crash leaves
//! them. An inode is freed (`tidy`) when no name leads to it, it is not open, and nothing on the
//! disk or in the journal needs it (`kept`).

use super::content::{FileContent, PAGE};
use super::journal::Pending;
use rustix::io::{Errno, Result};
use std::collections::BTreeMap;

/// A file's number.
pub(crate) type Ino = u64;

pub(crate) const ROOT: Ino = 1;

/// The longest name, the longest path, and how many symbolic links one look-up follows.
const NAME_MAX: usize = 255;
pub(super) const PATH_MAX: usize = 4096;
const LINKS_MAX: u32 = 40;

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) next: Ino,
    /// The changes of names that are not on the disk.
    pub(super) pending: Pending,
    /// How many pages the files take that a name or an open file leads to.
    pub(super) pages: u64,
    pub(super) pages_max: u64,
    /// The disk's clock, in nanoseconds of Unix time.
    pub(super) now: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) kind: Kind,
    pub(super) permissions: u32,
    /// How many names the file has.
    pub(super) links: u32,
    /// How often the file is open.
    pub(super) opens: u32,
    /// How many names on the disk the file has, plus how many changes that are not on the disk name
    /// it.
    pub(super) kept: u32,
    pub(super) modified: u64,
    pub(super) changed: u64,
    pub(super) created: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    File(FileContent),
    Directory(Directory),
    Link(Vec<u8>),
    Fifo,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    pub(super) parent: Ino,
    pub(super) entries: BTreeMap<Vec<u8>, Ino>,
    /// The names on the disk.
    pub(super) durable: BTreeMap<Vec<u8>, Ino>,
}

/// How a look-up treats the last name of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// A symbolic link is followed.
    Follow,
    /// A symbolic link is not followed, unless a `/` is behind it.
    Keep,
    /// The caller opens a file, and creates it if it is not there. No `/` may be behind the name.
    Create { follow: bool },
    /// The caller creates, removes or renames the name. A symbolic link is never followed.
    Change,
}

/// The place that a path leads to.
pub(super) struct Walked {
    pub(super) parent: Ino,
    /// The last name; `None` for `.`, `..` and `/`.
    pub(super) name: Option<Vec<u8>>,
    pub(super) inode: Option<Ino>,
    /// A `/` is behind the last name.
    pub(super) slash: bool,
    /// The last component is `..`.
    pub(super) up: bool,
}

/// The directory in which a look-up begins.
#[derive(Clone, Copy)]
pub(crate) struct From {
    pub(crate) directory: Ino,
    /// Whether the look-up must stay in that directory.
    pub(crate) beneath: bool,
}

impl From {
    pub(crate) const ROOT: From = From { directory: ROOT, beneath: false };
}

impl Tree {
    pub(super) fn new() -> Tree {
        let root = Inode {
            kind: Kind::Directory(Directory { parent: ROOT, ..Directory::default() }),
            permissions: 0o755,
            links: 1,
            opens: 0,
            kept: 1,
            modified: EPOCH,
            changed: EPOCH,
            created: EPOCH,
        };
        Tree {
            inodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
            pending: Pending::new(),
            pages: 0,
            pages_max: u64::MAX,
            now: EPOCH,
        }
    }

    /// Sets the disk's clock, which never goes back.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Sets how many bytes fit on the disk.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.pages_max = bytes / PAGE;
    }

    pub(super) fn inode(&self, ino: Ino) -> &Inode {
        self.inodes.get(&ino).expect("what has a name, or is open, is there")
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        self.inodes.get_mut(&ino).expect("what has a name, or is open, is there")
    }

    pub(super) fn directory(&self, ino: Ino) -> Result<&Directory> {
        // The parent of a removed directory may be gone.
        match &self.inodes.get(&ino).ok_or(Errno::NOENT)?.kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn entries(&mut self, directory: Ino) -> &mut BTreeMap<Vec<u8>, Ino> {
        match &mut self.inode_mut(directory).kind {
            Kind::Directory(directory) => &mut directory.entries,
            _ => unreachable!("a name was looked up in it"),
        }
    }

    pub(super) fn is_directory(&self, ino: Ino) -> bool {
        matches!(self.inode(ino).kind, Kind::Directory(_))
    }

    /// Forgets a file that no name, no open file and no change leads to.
    pub(super) fn tidy(&mut self, ino: Ino) {
        let inode = self.inode(ino);
        if inode.links == 0 && inode.opens == 0 && inode.kept == 0 {
            self.inodes.remove(&ino);
        }
    }

    /// Counts the pages of a tree in which a name leads to every file.
    pub(super) fn count_pages(&mut self) {
        let pages = |inode: &Inode| if let Kind::File(content) = &inode.kind { content.pages() } else { 0 };
        self.pages = self.inodes.values().map(pages).sum();
    }

    pub(super) fn walk(&self, from: From, path: &[u8], last: Last) -> Result<Walked> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        if path.len() >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let names = |path: &[u8]| -> Vec<Vec<u8>> {
            path.split(|&byte| byte == b'/')
                .filter(|name| !name.is_empty())
                .rev()
                .map(<[u8]>::to_vec)
                .collect()
        };
        let root = |path: &[u8]| match path.first() {
            Some(b'/') if from.beneath => Err(Errno::XDEV),
            Some(b'/') => Ok(Some(ROOT)),
            _ => Ok(None),
        };
        let mut left = names(path);
        let mut slash = path.ends_with(b"/");
        let mut at = root(path)?.unwrap_or(from.directory);
        let mut links = 0;
        let mut up = false;
        while let Some(name) = left.pop() {
            let directory = self.directory(at)?;
            up = &*name == b"..";
            match &*name {
                b"." => continue,
                b".." if from.beneath && at == from.directory => return Err(Errno::XDEV),
                b".." => {
                    at = directory.parent;
                    continue;
                }
                name if name.len() > NAME_MAX => return Err(Errno::NAMETOOLONG),
                _ => {}
            }
            let is_last = left.is_empty();
            if is_last && slash && matches!(last, Last::Create { .. }) {
                return Err(Errno::ISDIR);
            }
            let Some(&inode) = directory.entries.get(&name) else {
                return match is_last {
                    true => Ok(Walked { parent: at, name: Some(name), inode: None, slash, up }),
                    false => Err(Errno::NOENT),
                };
            };
            let follows = !is_last
                || match last {
                    Last::Follow => true,
                    Last::Keep => slash,
                    Last::Create { follow } => follow,
                    Last::Change => false,
                };
            if let Kind::Link(target) = &self.inode(inode).kind
                && follows
            {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                at = root(target)?.unwrap_or(at);
                slash |= is_last && target.ends_with(b"/");
                left.extend(names(target));
                continue;
            }
            if is_last {
                return Ok(Walked { parent: at, name: Some(name), inode: Some(inode), slash, up });
            }
            at = inode;
        }
        self.directory(at)?;
        Ok(Walked { parent: at, name: None, inode: Some(at), slash, up })
    }

    /// The file at a path.
    pub(crate) fn find(&self, from: From, path: &[u8], last: Last) -> Result<Ino> {
        let walked = self.walk(from, path, last)?;
        let inode = walked.inode.ok_or(Errno::NOENT)?;
        if walked.slash && !self.is_directory(inode) {
            return Err(Errno::NOTDIR);
        }
        Ok(inode)
    }
}

/// The Unix time at which a simulation begins, in nanoseconds: in September 2020.
const EPOCH: u64 = 1_600_000_000 * 1_000_000_000;
