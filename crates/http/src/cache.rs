//! The files that a worker has looked up lately: status, prebuilt heads, and the content or an open
//! descriptor.
//!
//! Each worker has its own cache, so that a look-up is one hash and no lock. It is bounded in
//! number and in bytes. The file to leave is found by the second-chance rule: a hand goes round,
//! takes a file that was not used since it last came by, and takes the mark from one that was.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use selvedge_core::Time;

use crate::conditional::{ETag, is_settled};
use crate::document_root::{Body, Identity, OpenedFile};
use crate::mime;
use crate::representation::Representation;
use crate::target;

/// What a cached file costs besides its content and its name, roughly.
const OVERHEAD_BYTES: usize = 1024;

/// The file that stands for its directory, for its type.
const INDEX: &[u8] = b"index.html";

/// One file as it is served.
#[derive(Debug)]
pub(crate) struct CachedFile {
    pub(crate) representation: Representation,
    pub(crate) body: Body,
    pub(crate) identity: Identity,
    /// What it is called in the cache, and in messages.
    pub(crate) name: Rc<[u8]>,
    /// Whether the file was left alone long enough for its times to tell of every change.
    settled: bool,
    /// Until when it is served without looking whether it has changed.
    fresh_until: Cell<Time>,
    /// Until when its pages are taken to be in memory.
    pub(crate) resident_until: Cell<Time>,
    used: Cell<bool>,
    /// Whether its name behind a `/` is a path that leads to it.
    plain: bool,
}

impl CachedFile {
    /// `file`, found under `name` at `second` (Unix time).
    pub(crate) fn new(name: &[u8], file: OpenedFile, second: u64) -> CachedFile {
        let OpenedFile { identity, body } = file;
        let named = if name.is_empty() || name.ends_with(b"/") { INDEX } else { name };
        let Identity { inode, len, modified, changed, .. } = identity;
        let etag = ETag::of_file(inode, changed, len, second);
        CachedFile {
            representation: Representation::new(mime::by_name(named), len, modified.0, etag, second),
            body,
            identity,
            name: name.into(),
            settled: is_settled(changed.0, second),
            fresh_until: Cell::new(Time::default()),
            resident_until: Cell::new(Time::default()),
            used: Cell::new(false),
            plain: target::plain(&[b"/", name].concat()).is_some(),
        }
    }

    /// Whether a path that is a `/` and its name leads to it, with nothing to be decoded or
    /// removed.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it may be served at `now` without looking again.
    #[inline]
    fn is_fresh(&self, now: Time) -> bool {
        now < self.fresh_until.get()
    }

    /// Whether head and content still belong together: what is in memory always does, an open file
    /// may have been written to.
    #[inline]
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.body {
            Body::Memory(_) => true,
            Body::Open(fd) => Identity::of(fd).is_ok_and(|found| found == Some(self.identity)),
        }
    }

    /// It has just been seen in this state.
    pub(crate) fn refresh(&self, until: Time) {
        self.fresh_until.set(until);
    }

    fn bytes(&self) -> usize {
        let content = match &self.body {
            Body::Memory(content) => content.len(),
            Body::Open(_) => 0,
        };
        content + self.name.len() + OVERHEAD_BYTES
    }
}

#[derive(Debug)]
struct Held {
    file: Rc<CachedFile>,
    /// Its place in `order`.
    place: usize,
}

/// The cache. Names are as [`target::resolve`](crate::target::resolve) gives them.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Seeded at random for each cache, and quick: the usual request is one look-up and not much
    /// else.
    held: HashMap<Rc<[u8]>, Held, foldhash::fast::RandomState>,
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

    /// The file called `name`, if it may be served at `now` without looking again.
    #[inline]
    pub(crate) fn fresh(&self, name: &[u8], now: Time) -> Option<&Rc<CachedFile>> {
        let file = &self.held.get(name)?.file;
        file.used.set(true);
        file.is_fresh(now).then_some(file)
    }

    /// The file called `name`, if its times will tell whether it is still the same.
    pub(crate) fn comparable(&self, name: &[u8]) -> Option<&Rc<CachedFile>> {
        self.held.get(name).map(|held| &held.file).filter(|file| file.settled)
    }

    /// Takes in a file, in the place of an earlier one of its name.
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
        self.held.insert(name.clone(), Held { file, place: self.order.len() });
        self.order.push(name);
    }

    /// Forgets the file called `name`.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let Some(Held { file, place }) = self.held.remove(name) else { return };
        self.bytes -= file.bytes();
        self.order.swap_remove(place);
        if let Some(moved) = self.order.get(place)
            && let Some(held) = self.held.get_mut(moved)
        {
            held.place = place;
        }
    }

    /// Forgets all files that hold a descriptor. Whether there were any.
    pub(crate) fn close_files(&mut self) -> bool {
        let open = |name: &&Rc<[u8]>| matches!(self.held[&name[..]].file.body, Body::Open(_));
        let open: Vec<Rc<[u8]>> = self.order.iter().filter(open).cloned().collect();
        open.iter().for_each(|name| self.remove(name));
        !open.is_empty()
    }

    /// Forgets all files.
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
    fn what_is_used_stays() {
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
    fn descriptors_can_be_given_up() {
        let mut cache = Cache::new(10, 1 << 20);
        cache.insert(file(b"memory", 10, 100));
        cache.insert(file(b"open", 10, 5));
        assert!(cache.close_files());
        assert_eq!(names(&cache), ["memory"]);
        assert!(!cache.close_files());
    }
}
