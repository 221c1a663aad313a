//! The calls of `Tree` on names: creating, linking, removing and renaming, with Linux's errors.
//! `kernel/files.rs` makes them for programs, and `Disk` makes them for tests.
//!
//! Each call changes `entries` at once and notes a `Change` (`journal.rs`). `durable`, the names on
//! the disk, is changed in `journal.rs` alone.

use super::journal::Change;
use super::tree::{Directory, From, Ino, Inode, Kind, Last, PATH_MAX, ROOT, Tree, Walked};
use rustix::io::{Errno, Result};

/// The permissions that a new file does not get.
const UMASK: u32 = 0o022;

impl Tree {
    fn add(&mut self, kind: Kind, permissions: u32) -> Ino {
        let (ino, now) = (self.next, self.now);
        self.next += 1;
        let permissions = permissions & !UMASK & 0o7777;
        let inode = Inode {
            kind,
            permissions,
            links: 0,
            opens: 0,
            kept: 0,
            modified: now,
            changed: now,
            created: now,
        };
        self.inodes.insert(ino, inode);
        ino
    }

    fn touch(&mut self, directory: Ino) {
        let now = self.now;
        let inode = self.inode_mut(directory);
        (inode.modified, inode.changed) = (now, now);
    }

    /// Gives a file its name.
    fn enter(&mut self, directory: Ino, name: Vec<u8>, ino: Ino) {
        let now = self.now;
        let inode = self.inode_mut(ino);
        inode.links += 1;
        inode.changed = now;
        if let Kind::Directory(inside) = &mut inode.kind {
            inside.parent = directory;
        }
        self.entries(directory).insert(name, ino);
        self.touch(directory);
    }

    /// Removes a name.
    fn leave(&mut self, directory: Ino, name: &[u8]) -> Ino {
        let ino = self.entries(directory).remove(name).expect("it was looked up");
        let now = self.now;
        let inode = self.inode_mut(ino);
        inode.links -= 1;
        inode.changed = now;
        self.touch(directory);
        ino
    }

    /// Frees the pages of a file that has no name left and is not open.
    pub(super) fn settle(&mut self, ino: Ino) {
        let inode = self.inode(ino);
        if inode.links == 0 && inode.opens == 0 {
            if let Kind::File(content) = &inode.kind {
                self.pages -= content.pages();
            }
            self.tidy(ino);
        }
    }

    /// The place of a new name: the name is free, and its directory exists.
    pub(super) fn vacant(&self, walked: Walked) -> Result<(Ino, Vec<u8>)> {
        if walked.inode.is_some() {
            return Err(Errno::EXIST);
        }
        if self.inode(walked.parent).links == 0 {
            return Err(Errno::NOENT);
        }
        Ok((walked.parent, walked.name.expect("what is not there has a name")))
    }

    pub(super) fn create_at(
        &mut self,
        (directory, name): (Ino, Vec<u8>),
        kind: Kind,
        permissions: u32,
    ) -> Ino {
        let is_directory = matches!(kind, Kind::Directory(_));
        let inode = self.add(kind, permissions);
        self.enter(directory, name.clone(), inode);
        let adds = Some((directory, name));
        self.note_change(Change { inode, is_directory, removes: None, adds, replaces: None });
        inode
    }

    pub(crate) fn create_directory(&mut self, path: &[u8], permissions: u32) -> Result<Ino> {
        let place = self.vacant(self.walk(From::ROOT, path, Last::Change)?)?;
        Ok(self.create_at(place, Kind::Directory(Directory::default()), permissions))
    }

    /// Creates a file that is no directory.
    fn create_other(&mut self, path: &[u8], kind: Kind, permissions: u32) -> Result<Ino> {
        let walked = self.walk(From::ROOT, path, Last::Change)?;
        if walked.slash && walked.inode.is_none() {
            return Err(Errno::NOENT);
        }
        let place = self.vacant(walked)?;
        Ok(self.create_at(place, kind, permissions))
    }

    pub(crate) fn create_link(&mut self, target: &[u8], path: &[u8]) -> Result<Ino> {
        match target.len() {
            0 => Err(Errno::NOENT),
            PATH_MAX.. => Err(Errno::NAMETOOLONG),
            _ => self.create_other(path, Kind::Link(target.to_vec()), 0o777 | UMASK),
        }
    }

    pub(crate) fn create_fifo(&mut self, path: &[u8], permissions: u32) -> Result<Ino> {
        self.create_other(path, Kind::Fifo, permissions)
    }

    /// Gives a file one more name.
    pub(crate) fn link(&mut self, from: &[u8], to: &[u8]) -> Result<Ino> {
        let inode = self.find(From::ROOT, from, Last::Keep)?;
        let walked = self.walk(From::ROOT, to, Last::Change)?;
        if walked.slash && walked.inode.is_none() {
            return Err(Errno::NOENT);
        }
        let (directory, name) = self.vacant(walked)?;
        if self.is_directory(inode) {
            return Err(Errno::PERM);
        }
        self.enter(directory, name.clone(), inode);
        let adds = Some((directory, name));
        self.note_change(Change { inode, is_directory: false, removes: None, adds, replaces: None });
        Ok(inode)
    }

    /// Removes the name of a file, or a directory.
    pub(crate) fn remove(&mut self, path: &[u8], directory: bool) -> Result<Ino> {
        let walked = self.walk(From::ROOT, path, Last::Change)?;
        let Some(name) = walked.name else {
            return Err(match directory {
                false => Errno::ISDIR,
                true if walked.up => Errno::NOTEMPTY,
                true if path.iter().all(|&byte| byte == b'/') => Errno::BUSY,
                true => Errno::INVAL,
            });
        };
        let inode = walked.inode.ok_or(Errno::NOENT)?;
        let is_directory = self.is_directory(inode);
        match (directory, is_directory) {
            (true, true) if !self.directory(inode)?.entries.is_empty() => return Err(Errno::NOTEMPTY),
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            (false, false) if walked.slash => return Err(Errno::NOTDIR),
            _ => {}
        }
        self.leave(walked.parent, &name);
        let removes = Some((walked.parent, name));
        self.note_change(Change { inode, is_directory, removes, adds: None, replaces: None });
        self.settle(inode);
        Ok(inode)
    }

    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<Ino> {
        let old = self.walk(From::ROOT, from, Last::Change)?;
        let new = self.walk(From::ROOT, to, Last::Change)?;
        let (Some(old_name), Some(new_name)) = (old.name, new.name) else { return Err(Errno::BUSY) };
        let inode = old.inode.ok_or(Errno::NOENT)?;
        let is_directory = self.is_directory(inode);
        if !is_directory && (old.slash || new.slash) {
            return Err(Errno::NOTDIR);
        }
        if self.is_inside(new.parent, inode) {
            return Err(Errno::INVAL);
        }
        if self.inode(new.parent).links == 0 {
            return Err(Errno::NOENT);
        }
        if let Some(replaced) = new.inode {
            if self.is_inside(old.parent, replaced) {
                return Err(Errno::NOTEMPTY);
            }
            if replaced == inode {
                return Ok(inode);
            }
            match (is_directory, self.directory(replaced)) {
                (true, Err(_)) => return Err(Errno::NOTDIR),
                (false, Ok(_)) => return Err(Errno::ISDIR),
                (true, Ok(directory)) if !directory.entries.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            }
            self.leave(new.parent, &new_name);
        }
        self.leave(old.parent, &old_name);
        self.enter(new.parent, new_name.clone(), inode);
        let (removes, adds) = (Some((old.parent, old_name)), Some((new.parent, new_name)));
        self.note_change(Change { inode, is_directory, removes, adds, replaces: new.inode });
        new.inode.into_iter().for_each(|replaced| self.settle(replaced));
        Ok(inode)
    }

    /// Whether a directory is the same as another one, or below it.
    fn is_inside(&self, mut directory: Ino, other: Ino) -> bool {
        while directory != other && directory != ROOT {
            directory = self.directory(directory).map_or(ROOT, |directory| directory.parent);
        }
        directory == other
    }

    /// Removes a directory with everything below it, or a symbolic link.
    pub(crate) fn remove_tree(&mut self, path: &[u8]) -> Result<Ino> {
        let inode = self.find(From::ROOT, path, Last::Keep)?;
        match self.inode(inode).kind {
            Kind::Link(_) => return self.remove(path, false),
            Kind::Directory(_) => {}
            _ => return Err(Errno::NOTDIR),
        }
        // The path may lead through a directory that is removed, as `a/..` leads through `a`.
        let base = self.canonical(path)?;
        for name in self.directory(inode)?.entries.keys().cloned().collect::<Vec<_>>() {
            let below = [&base, &b"/"[..], &name].concat();
            match self.directory(inode)?.entries.get(&name) {
                Some(&child) if self.is_directory(child) => self.remove_tree(&below)?,
                _ => self.remove(&below, false)?,
            };
        }
        match self.remove(path, true) {
            Err(Errno::NOENT) => Ok(inode),
            removed => removed,
        }
    }

    /// Sets the permissions of a file.
    pub(crate) fn set_permissions(&mut self, path: &[u8], permissions: u32) -> Result<Ino> {
        let ino = self.find(From::ROOT, path, Last::Follow)?;
        let now = self.now;
        let inode = self.inode_mut(ino);
        inode.permissions = permissions & 0o7777;
        inode.changed = now;
        Ok(ino)
    }

    /// The path of a file without symbolic links, from the root.
    pub(crate) fn canonical(&self, path: &[u8]) -> Result<Vec<u8>> {
        self.find(From::ROOT, path, Last::Follow)?;
        let walked = self.walk(From::ROOT, path, Last::Follow)?;
        let mut names: Vec<Vec<u8>> = walked.name.into_iter().collect();
        let mut at = walked.parent;
        while at != ROOT {
            let parent = self.directory(at)?.parent;
            let mut entries = self.directory(parent)?.entries.iter();
            let (name, _) = entries.find(|(_, ino)| **ino == at).ok_or(Errno::NOENT)?;
            names.push(name.clone());
            at = parent;
        }
        names.push(Vec::new()); // the empty part before the first `/`
        names.reverse();
        Ok(if names.len() == 1 { b"/".to_vec() } else { names.join(&b'/') })
    }

    /// The names in a directory, each with the kind and permissions of its file.
    pub(crate) fn names(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, u32)>> {
        let inode = self.find(From::ROOT, path, Last::Follow)?;
        let entries = self.directory(inode)?.entries.iter();
        Ok(entries.map(|(name, &ino)| (name.clone(), self.known(ino).mode)).collect())
    }
}
