//! The files that a worker has looked up lately: status, prebuilt heads, and the content or an open
//! descriptor.
//!
//! Each worker has its own cache, so that a look-up is one hash and no lock. The cache has a limit
//! on the number of files and on the bytes. The second-chance rule selects the file that has to
//! leave. A hand goes through the files in a circle. A file that was used since the hand passed it
//! has a mark: the hand removes the mark, and goes on. The first file without a mark leaves.
//!
//! `Files` (`files.rs`) owns the [`Cache`] and fills it. A connection that sends a file holds its
//! [`CachedFile`], so a file that has left the cache stays open until it is sent.

use crate::conditional::{ETag, is_settled};
use crate::document_root::{Backing, Identity, OpenedFile};
use crate::mime;
use crate::representation::Representation;
use crate::target;
use selvedge_core::Time;
use selvedge_io::fs::File;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Roughly the bytes that a cached file takes besides its content and its name.
const OVERHEAD_BYTES: usize = 1024;

/// The file that stands for its directory, for its type.
const INDEX: &[u8] = b"index.html";

/// The key of a file that is called `name` and has the media type of a file called `typed`: the two
/// with a NUL, which no name contains, between them.
pub(crate) fn typed_key(name: &[u8], typed: &[u8]) -> Vec<u8> {
    [name, b"\0", typed].concat()
}

/// The name of the file with the key `key`, and the name that its media type is taken of. Most keys
/// are a name alone, which is both.
pub(crate) fn split_key(key: &[u8]) -> (&[u8], &[u8]) {
    match key.iter().position(|&byte| byte == 0) {
        Some(nul) => (&key[..nul], &key[nul + 1..]),
        None => (key, key),
    }
}

/// One file as it is served.
#[derive(Debug)]
pub(crate) struct CachedFile {
    pub(crate) representation: Representation,
    pub(crate) body: Backing,
    /// The file once more, opened for direct access when its first block was read
    /// (`block_cache/reading.rs`).
    pub(crate) direct: OnceCell<File>,
    pub(crate) identity: Identity,
    /// Its name in the cache, and in messages.
    pub(crate) name: Rc<[u8]>,
    /// Whether each later change of the file gives it another time.
    settled: bool,
    /// The time until which it is served without a look at the disk.
    fresh_until: Cell<Time>,
    /// The time until which the server assumes that its pages are in memory.
    pub(crate) resident_until: Cell<Time>,
    used: Cell<bool>,
    /// Whether a `/` and its name are together a path that resolves to its name.
    plain: bool,
}

impl CachedFile {
    /// `file`, found under the key `name` (see [`split_key`]) at `second` (Unix time).
    pub(crate) fn new(name: &[u8], file: OpenedFile, second: u64) -> CachedFile {
        let OpenedFile { identity, body } = file;
        let typed = split_key(name).1;
        let named = if typed.is_empty() || typed.ends_with(b"/") { INDEX } else { typed };
        let Identity { inode, len, modified, changed, .. } = identity;
        let etag = ETag::of_file(inode, changed, len, second);
        CachedFile {
            representation: Representation::new(mime::by_name(named), len, modified.0, etag, second),
            body,
            direct: OnceCell::new(),
            identity,
            name: name.into(),
            settled: is_settled(changed.0, second),
            fresh_until: Cell::new(Time::default()),
            resident_until: Cell::new(Time::default()),
            used: Cell::new(false),
            plain: target::plain(&[b"/", name].concat()).is_some(),
        }
    }

    /// The file with `content` in place of its own: its content in the coding number `coding`. Its
    /// entity tag is another one, because its bytes are.
    pub(crate) fn packed(
        &self,
        content: Box<[u8]>,
        kind: &'static str,
        coding: u64,
        second: u64,
    ) -> CachedFile {
        let Identity { inode, modified, changed, .. } = self.identity;
        let len = content.len() as u64;
        let etag = ETag::of_file(inode ^ coding << 60, changed, len, second);
        CachedFile {
            representation: Representation::new(kind, len, modified.0, etag, second),
            body: Backing::Memory(content),
            direct: OnceCell::new(),
            identity: self.identity.with_len(len),
            name: self.name.clone(),
            settled: self.settled,
            fresh_until: Cell::new(Time::default()),
            resident_until: Cell::new(Time::default()),
            used: Cell::new(false),
            plain: false,
        }
    }

    /// Whether each later change of the file gives it another time.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether a `/` and its name are together a path that resolves to its name, without a byte to
    /// decode or a component to remove.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it may be served at `now` without a look at the disk.
    #[inline]
    fn is_fresh(&self, now: Time) -> bool {
        now < self.fresh_until.get()
    }

    /// Whether head and content still belong together. They do if the content is in memory. An open
    /// file may have been written to.
    #[inline]
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.body {
            Backing::Memory(_) => true,
            Backing::Open(fd) => Identity::of(fd).is_ok_and(|found| found == Some(self.identity)),
        }
    }

    /// Notes that a look at the disk has just found the file in this state.
    pub(crate) fn refresh(&self, until: Time) {
        self.fresh_until.set(until);
    }

    fn bytes(&self) -> usize {
        let content = match &self.body {
            Backing::Memory(content) => content.len(),
            Backing::Open(_) => 0,
        };
        content + self.name.len() + OVERHEAD_BYTES
    }
}

#[derive(Debug)]
struct CachedPlace {
    file: Rc<CachedFile>,
    /// Its place in `order`.
    place: usize,
}

/// The cache. Names are as [`target::resolve`](crate::target::resolve) gives them.
#[derive(Debug)]
pub(crate) struct Cache {
    /// The hash has a random seed for each cache. It is a fast one, because the look-up is a large
    /// part of the usual request.
    held: HashMap<Rc<[u8]>, CachedPlace, foldhash::fast::RandomState>,
    order: Vec<Rc<[u8]>>,
    hand: usize,
    bytes: usize,
    files_max: usize,
    bytes_max: usize,
}

impl Cache {
    pub(crate) fn new(files_max: usize, bytes_max: usize) -> Cache {
        Cache { held: HashMap::default(), order: Vec::new(), hand: 0, bytes: 0, files_max, bytes_max }
    }

    /// The number of files, and the bytes that they take.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.order.len() as u64, self.bytes as u64)
    }

    /// The file called `name`, if it may be served at `now` without a look at the disk.
    #[inline]
    pub(crate) fn fresh(&self, name: &[u8], now: Time) -> Option<&Rc<CachedFile>> {
        let file = &self.held.get(name)?.file;
        file.used.set(true);
        file.is_fresh(now).then_some(file)
    }

    /// The file called `name`, if each change since then has given the file another time.
    pub(crate) fn comparable(&self, name: &[u8]) -> Option<&Rc<CachedFile>> {
        self.held.get(name).map(|held| &held.file).filter(|file| file.settled)
    }

    /// Adds a file. It replaces an earlier file of the same name.
    pub(crate) fn insert(&mut self, file: Rc<CachedFile>) {
        let name = file.name.clone();
        self.remove(&name);
        let bytes = file.bytes();
        if bytes > self.bytes_max || self.files_max == 0 {
            return;
        }
        while self.order.len() >= self.files_max || self.bytes + bytes > self.bytes_max {
            self.evict();
        }
        self.bytes += bytes;
        self.held.insert(name.clone(), CachedPlace { file, place: self.order.len() });
        self.order.push(name);
    }

    /// Removes the file called `name`.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let Some(CachedPlace { file, place }) = self.held.remove(name) else { return };
        self.bytes -= file.bytes();
        self.order.swap_remove(place);
        if let Some(moved) = self.order.get(place)
            && let Some(held) = self.held.get_mut(moved)
        {
            held.place = place;
        }
    }

    /// Removes all files that hold a descriptor. Returns whether there were any.
    pub(crate) fn close_files(&mut self) -> bool {
        let open = |name: &&Rc<[u8]>| matches!(self.held[&name[..]].file.body, Backing::Open(_));
        let open: Vec<Rc<[u8]>> = self.order.iter().filter(open).cloned().collect();
        open.iter().for_each(|name| self.remove(name));
        !open.is_empty()
    }

    /// Removes all files.
    pub(crate) fn clear(&mut self) {
        *self = Cache::new(self.files_max, self.bytes_max);
    }

    fn evict(&mut self) {
        loop {
            self.hand = if self.hand < self.order.len() { self.hand } else { 0 };
            let name = self.order[self.hand].clone();
            if !self.held[&name].file.used.replace(false) {
                return self.remove(&name);
            }
            self.hand += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_root::{DocumentRoot, Found, Patience};
    use std::os::fd::AsFd;

    fn names(cache: &Cache) -> Vec<String> {
        let mut names: Vec<String> =
            cache.order.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
        names.sort();
        for (at, name) in cache.order.iter().enumerate() {
            assert_eq!(cache.held[name].place, at);
        }
        assert_eq!(cache.held.len(), cache.order.len());
        assert_eq!(cache.bytes, cache.held.values().map(|held| held.file.bytes()).sum::<usize>());
        names
    }

    fn file(name: &[u8], len: usize, memory_max: u64) -> Rc<CachedFile> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), vec![b'x'; len]).unwrap();
        let tree = DocumentRoot::new(directory.path()).unwrap();
        let root = tree.root(Patience::Disk).unwrap();
        match tree.find(root.as_fd(), b"f", memory_max, Patience::Disk) {
            Ok(Found::File(file)) => Rc::new(CachedFile::new(name, file, 0)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_that_is_used_stays() {
        let mut cache = Cache::new(3, 1 << 20);
        for name in ["a", "b", "c"] {
            cache.insert(file(name.as_bytes(), 10, 100));
        }
        assert!(cache.fresh(b"a", Time::default()).is_none(), "nothing is fresh before it is said to be");
        cache.insert(file(b"d", 10, 100));
        assert_eq!(names(&cache), ["a", "c", "d"]);
        cache.insert(file(b"a", 20, 100));
        assert_eq!(names(&cache), ["a", "c", "d"]);
        cache.remove(b"c");
        cache.remove(b"c");
        assert_eq!(names(&cache), ["a", "d"]);
    }

    #[test]
    fn bytes_are_bounded() {
        let mut cache = Cache::new(100, 10 * OVERHEAD_BYTES);
        for n in 0..50u8 {
            cache.insert(file(&[b'a', n], 3000, 4000));
            assert!(cache.bytes <= 10 * OVERHEAD_BYTES);
        }
        cache.insert(file(b"huge", 20 * OVERHEAD_BYTES, 1 << 20));
        assert!(cache.held.len() >= 2 && !cache.held.contains_key(&b"huge"[..]));
    }

    #[test]
    fn files_with_descriptors_can_be_removed() {
        let mut cache = Cache::new(10, 1 << 20);
        cache.insert(file(b"memory", 10, 100));
        cache.insert(file(b"open", 10, 5));
        assert!(cache.close_files());
        assert_eq!(names(&cache), ["memory"]);
        assert!(!cache.close_files());
    }
}
