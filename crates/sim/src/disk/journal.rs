//! `Change`: a change of names that is not on the disk yet, and the calls of `Tree` that keep these
//! changes in order, write them, and choose which of them a crash leaves.
//!
//! `names.rs` notes a change for each creation, removal and renaming; `files.rs` calls
//! `sync_directory`; `Disk::after_crash` calls `after_crash`. `Change::needs` says which earlier
//! change must be on the disk before a later one. Without one of its cases a crash could lose a
//! file that no call has removed, or make a circle of directories.

use super::tree::{Ino, Kind, ROOT, Tree};
use crate::Random;
use std::collections::{BTreeMap, VecDeque};

/// How many changes of names are not on the disk at most. Before one more, the disk writes the
/// oldest.
const PENDING_MAX: usize = 1024;

/// A name in a directory.
type DirectoryName = (Ino, Vec<u8>);

/// One change of names, which is on the disk as a whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) inode: Ino,
    pub(super) is_directory: bool,
    /// The name that the file loses.
    pub(super) removes: Option<DirectoryName>,
    /// The name that the file gets.
    pub(super) adds: Option<DirectoryName>,
    /// The file that had that name before.
    pub(super) replaces: Option<Ino>,
}

impl Change {
    fn places(&self) -> impl Iterator<Item = &DirectoryName> {
        self.removes.iter().chain(&self.adds)
    }

    fn concerns(&self, directory: Ino) -> bool {
        self.places().any(|(d, _)| *d == directory)
    }

    fn moves_directory(&self) -> bool {
        self.is_directory && self.removes.is_some() && self.adds.is_some()
    }

    /// Whether an earlier change must be on the disk if this change is.
    fn needs(&self, earlier: &Change) -> bool {
        let gone = if self.adds.is_none() { Some(self.inode) } else { self.replaces };
        let to = self.adds.as_ref().filter(|_| self.removes.is_some()).map(|(directory, _)| *directory);
        self.inode == earlier.inode
            || self.places().any(|place| earlier.places().any(|other| other == place))
            // Without the earlier change, a file that was moved away from a removed directory would
            // be lost.
            || gone.is_some_and(|gone| earlier.concerns(gone))
            // Likewise a file that is moved into a directory that is not there.
            || to == Some(earlier.inode)
            // Otherwise two directories could be moved into each other.
            || self.moves_directory() && earlier.moves_directory()
    }
}

pub(super) type Pending = VecDeque<Change>;

impl Tree {
    /// Notes a change of names, which the disk writes at some time.
    pub(super) fn note_change(&mut self, change: Change) {
        self.inode_mut(change.inode).kept += 1;
        self.pending.push_back(change);
        if self.pending.len() > PENDING_MAX {
            let oldest = self.pending.pop_front().expect("it is full");
            self.write_change(oldest);
        }
    }

    /// Writes a change to the disk.
    fn write_change(&mut self, change: Change) {
        if let Some((directory, name)) = change.removes {
            let before = self.durable(directory).and_then(|durable| durable.remove(&name));
            self.let_go(before);
        }
        if let Some((directory, name)) = change.adds
            && let Some(durable) = self.durable(directory)
        {
            let before = durable.insert(name, change.inode);
            self.inode_mut(change.inode).kept += 1;
            self.let_go(before);
        }
        self.let_go(Some(change.inode));
    }

    fn durable(&mut self, directory: Ino) -> Option<&mut BTreeMap<Vec<u8>, Ino>> {
        match &mut self.inodes.get_mut(&directory)?.kind {
            Kind::Directory(directory) => Some(&mut directory.durable),
            _ => None,
        }
    }

    fn let_go(&mut self, inode: Option<Ino>) {
        if let Some(inode) = inode {
            self.inode_mut(inode).kept -= 1;
            self.tidy(inode);
        }
    }

    /// Writes all changes of names in a directory to the disk, with the changes that they need.
    pub(super) fn sync_directory(&mut self, directory: Ino) {
        let mut needed: Vec<bool> = self.pending.iter().map(|change| change.concerns(directory)).collect();
        for later in (0..needed.len()).rev() {
            if needed[later] {
                for (earlier, needed) in needed[..later].iter_mut().enumerate() {
                    *needed |= self.pending[later].needs(&self.pending[earlier]);
                }
            }
        }
        let mut needed = needed.into_iter();
        let pending = std::mem::take(&mut self.pending);
        let (now, later): (Pending, Pending) = pending.into_iter().partition(|_| needed.next() == Some(true));
        now.into_iter().for_each(|change| self.write_change(change));
        self.pending = later;
    }

    /// The tree that a crash leaves. All of it is on the disk, and no file is open.
    pub(super) fn after_crash(mut self, random: &mut Random) -> Tree {
        let pending = std::mem::take(&mut self.pending);
        let luck = random.below(4);
        let up_to = random.below(pending.len() as u64 + 1) as usize;
        let mut lost: Vec<Change> = Vec::new();
        for (number, change) in pending.into_iter().enumerate() {
            let kept = match luck {
                0 => false,
                1 => true,
                2 => number < up_to,
                _ => random.below(2) == 0,
            };
            if kept && !lost.iter().any(|lost| change.needs(lost)) {
                self.write_change(change);
            } else {
                self.let_go(Some(change.inode));
                lost.push(change);
            }
        }
        self.reachable(random)
    }

    /// The tree of the files that the names on the disk lead to.
    fn reachable(mut self, random: &mut Random) -> Tree {
        let mut left = std::mem::take(&mut self.inodes);
        let mut found = vec![(ROOT, ROOT)];
        while let Some((ino, parent)) = found.pop() {
            if let Some(known) = self.inodes.get_mut(&ino) {
                known.links += 1;
                known.kept += 1;
                continue;
            }
            let mut inode = left.remove(&ino).expect("what has a name is there");
            match &mut inode.kind {
                Kind::Directory(directory) => {
                    directory.parent = parent;
                    directory.entries = directory.durable.clone();
                    found.extend(directory.entries.values().map(|&child| (child, ino)));
                }
                Kind::File(content) => *content = std::mem::take(content).after_crash(random),
                Kind::Link(_) | Kind::Fifo => {}
            }
            (inode.links, inode.kept, inode.opens) = (1, 1, 0);
            self.inodes.insert(ino, inode);
        }
        self.count_pages();
        self
    }
}
