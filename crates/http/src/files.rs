//! The files of a directory, with the worker's cache of them, and the replies that are files.
//!
//! [`Files`] answers from the cache if it can. Otherwise it looks up the name in the
//! [`DocumentRoot`] without waiting for the disk. If that is not possible, it asks the connection
//! for a search: the same look-up on the blocking pool. `front.rs` serves one directory so;
//! `routed.rs` serves several, and looks up names that differ from the request's.

use crate::cache::{Cache, CachedFile, split_key};
use crate::config::Config;
use crate::document_root::{Backing, DocumentRoot, Found, LookUpError, Patience};
use crate::error_page::{self, Extra};
use crate::metrics::{WorkerMetrics, add};
use crate::representation::{Answer, Content};
use crate::request::Request;
use crate::responder::{Handled, Reply, Rest, Terms};
use crate::status::Status;
use crate::target;
use rustix::io::Errno;
use selvedge_core::Time;
use selvedge_io::fs::Handle;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The files of a directory, as one worker serves them.
pub(crate) struct Files {
    directory: DocumentRoot,
    cache: Cache,
    /// The opened root, and the time until which it may be used.
    root: Option<(Handle, Time)>,
    /// For how long a file is served without a look at the directory.
    validity: Duration,
    /// Files up to this length are kept in memory.
    memory_bytes: u64,
    /// Scratch for names that have to be decoded.
    name: Vec<u8>,
    /// Where it is counted what the cache does, and the size of the cache that was told there.
    counters: Option<(Arc<WorkerMetrics>, (u64, u64))>,
}

/// The name of a file that has to be looked up on the blocking pool.
pub(crate) type FileName = Vec<u8>;

/// A name and the result of its look-up.
pub(crate) type LookedUp = (FileName, Result<Found, LookUpError>);

/// The result of a look-up for one request.
pub(crate) enum Resource {
    File(Rc<CachedFile>),
    Directory,
}

/// The result of a look at the directory.
enum FileState {
    /// The name still stands for the cached file.
    Unchanged(Rc<CachedFile>),
    Found(Found),
}

impl Files {
    pub(crate) fn new(directory: DocumentRoot, config: &Config) -> Files {
        Files {
            directory,
            cache: Cache::new(config.cache_files, config.cache_bytes),
            root: None,
            validity: config.validity,
            // With a cache of blocks, only files without a byte are read when they are looked up.
            memory_bytes: if config.blocks.is_some() { 0 } else { config.memory_bytes },
            name: Vec::new(),
            counters: None,
        }
    }

    /// Counts from now on what the cache does.
    pub(crate) fn count(&mut self, counters: Arc<WorkerMetrics>) {
        self.counters = Some((counters, (0, 0)));
    }

    /// Counts a reply from the cache.
    #[inline]
    pub(crate) fn count_hit(&self) {
        if let Some((counters, _)) = &self.counters {
            add(&counters.cached.hits, 1);
        }
    }

    /// Tells the counters how large the cache is.
    fn tell_size(&mut self) {
        if let Some((counters, told)) = &mut self.counters {
            let size = self.cache.size();
            add(&counters.cached.files, size.0.wrapping_sub(told.0));
            add(&counters.cached.bytes, size.1.wrapping_sub(told.1));
            *told = size;
        }
    }

    /// The served directory.
    pub(crate) fn directory(&self) -> &DocumentRoot {
        &self.directory
    }

    /// Empties the cache and closes the root.
    pub(crate) fn forget(&mut self) {
        self.cache.clear();
        self.root = None;
        self.tell_size();
    }

    /// The file that `request` names. If it is not in the cache, its name is left in `self.name`.
    #[inline]
    fn find(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        found: impl FnOnce() -> Option<LookedUp>,
    ) -> Result<Resource, LookUpError> {
        let now = terms.now;
        // The usual path is the name of a cached file. Then there is nothing to decode in the path.
        if let Some((_, name)) = request.path.split_first()
            && let Some(file) = self.cache.fresh(name, now)
            && file.is_plain()
            && file.is_unchanged()
        {
            return Ok(Resource::File(file.clone()));
        }
        target::resolve(request.path, &mut self.name).map_err(LookUpError::Refused)?;
        if let Some(file) = self.cached(&self.name, now) {
            return Ok(Resource::File(file.clone()));
        }
        let name = std::mem::take(&mut self.name);
        let found = found().filter(|found| found.0 == name).map(|found| found.1);
        let target = self.look_up(&name, terms, found);
        self.name = name;
        target
    }

    /// The file with the key `key` (see [`split_key`]). `found` is the result of a search for it,
    /// if one was made.
    pub(crate) fn find_key(
        &mut self,
        key: &[u8],
        terms: &Terms<'_>,
        found: impl FnOnce() -> Option<Result<Found, LookUpError>>,
    ) -> Result<Resource, LookUpError> {
        if let Some(file) = self.cached(key, terms.now) {
            self.count_hit();
            return Ok(Resource::File(file.clone()));
        }
        let found = found();
        if let (Some((counters, _)), None) = (&self.counters, &found) {
            add(&counters.cached.misses, 1);
        }
        let target = self.look_up(key, terms, found);
        self.tell_size();
        target
    }

    /// The file with the key `key`, if it is in the cache and may be served without a look at the
    /// directory.
    #[inline]
    pub(crate) fn cached(&self, key: &[u8], now: Time) -> Option<&Rc<CachedFile>> {
        self.cache.fresh(key, now).filter(|file| file.is_unchanged())
    }

    /// The files up to this length are kept in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Looks up `name`, a key that is not fresh in the cache, without waiting for the disk. `found`
    /// is the result of a search for it, if one was made.
    #[cold]
    fn look_up(
        &mut self,
        name: &[u8],
        terms: &Terms<'_>,
        found: Option<Result<Found, LookUpError>>,
    ) -> Result<Resource, LookUpError> {
        let now = terms.now;
        let seen = match found {
            Some(found) => found.map(|found| (FileState::Found(found), now + self.validity)),
            None => match self.look(name, now) {
                // The process has no descriptors left. The cache can do without those of its files.
                Err(LookUpError::Refused(Status::SERVICE_UNAVAILABLE)) if self.cache.close_files() => {
                    self.look(name, now)
                }
                seen => seen,
            },
        };
        match seen {
            Ok((FileState::Unchanged(file), until)) => {
                file.refresh(until);
                Ok(Resource::File(file))
            }
            Ok((FileState::Found(Found::File(file)), until)) => {
                let file = Rc::new(CachedFile::new(name, file, terms.clock.second()));
                file.refresh(until);
                self.cache.insert(file.clone());
                Ok(Resource::File(file))
            }
            Ok((FileState::Found(Found::Directory), _)) => {
                self.cache.remove(name);
                Ok(Resource::Directory)
            }
            Err(missed) => {
                if missed != LookUpError::Cold {
                    self.cache.remove(name);
                }
                Err(missed)
            }
        }
    }

    /// Looks at the file that `name` stands for now. Also returns the time until which the result
    /// holds: that of the root below which the file was found.
    fn look(&mut self, name: &[u8], now: Time) -> Result<(FileState, Time), LookUpError> {
        if self.root.as_ref().is_none_or(|(_, until)| now >= *until) {
            let root = self.directory.root(Patience::None).map_err(missing_root)?;
            self.root = Some((root, now + self.validity));
        }
        let (root, until) = self.root.as_ref().expect("just opened");
        if let Some(file) = self.cache.comparable(name)
            && self.directory.identify(root.as_fd(), split_key(name).0, Patience::None)?
                == Some(file.identity)
        {
            return Ok((FileState::Unchanged(file.clone()), *until));
        }
        let path = split_key(name).0;
        let found = self.directory.find(root.as_fd(), path, self.memory_bytes, Patience::None)?;
        Ok((FileState::Found(found), *until))
    }

    /// Answers a request that is not for a file that can be served.
    fn page(&self, status: Status, request: &Request<'_>, terms: &Terms<'_>, out: &mut Vec<u8>) -> Reply {
        let content_bytes =
            error_page::put(status, Extra::None, request.method, terms.persistence, terms.clock, out);
        Reply { status, content_bytes, rest: Rest::Nothing }
    }
}

impl Files {
    /// Answers `request`; see [`Responder::answer`](crate::responder::Responder::answer). `found`
    /// is the result of a search for its file, if one was made.
    #[inline]
    pub(crate) fn answer<S: From<FileName>>(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        found: impl FnOnce() -> Option<LookedUp>,
        out: &mut Vec<u8>,
    ) -> Handled<S> {
        if let Some(status) = error_page::instead_of_file(request) {
            return Handled::Reply(self.page(status, request, terms, out));
        }
        Handled::Reply(match self.find(request, terms, found) {
            Ok(Resource::File(file)) => answer_with(file, request, terms, out),
            Ok(Resource::Directory) => redirect(&self.name, request, terms, out),
            Err(LookUpError::Refused(status)) => self.page(status, request, terms, out),
            Err(LookUpError::Cold) => return Handled::Search(std::mem::take(&mut self.name).into()),
        })
    }
}

impl Drop for Files {
    /// A reload has other files in its place, and the counters stay.
    fn drop(&mut self) {
        self.cache.clear();
        self.tell_size();
    }
}

/// Looks up the file with the key `key`. The call blocks.
pub(crate) fn search(directory: &DocumentRoot, key: &[u8], memory_bytes: u64) -> Result<Found, LookUpError> {
    let root = directory.root(Patience::Disk).map_err(missing_root);
    let path = split_key(key).0;
    let found = root.and_then(|root| directory.find(root.as_fd(), path, memory_bytes, Patience::Disk));
    match found {
        // A program renames something below the root again and again, so that each look-up fails
        // half-way.
        Err(LookUpError::Cold) => Err(LookUpError::Refused(Status::SERVICE_UNAVAILABLE)),
        found => found,
    }
}

/// Answers `request` for `file`.
#[inline]
pub(crate) fn answer_with(
    file: Rc<CachedFile>,
    request: &Request<'_>,
    Terms { persistence, clock, .. }: &Terms<'_>,
    out: &mut Vec<u8>,
) -> Reply {
    let Answer { status, content, content_bytes } =
        file.representation.answer(request, *persistence, clock, out);
    let rest = match (content, &file.body) {
        (Content::Nothing, _) => Rest::Nothing,
        (Content::Span(span), Backing::Memory(content)) => {
            out.extend_from_slice(&content[span.start as usize..span.end as usize]);
            Rest::Nothing
        }
        (Content::Span(span), Backing::Open(_)) => Rest::Span(file, span),
        (Content::Parts(parts), _) => Rest::Parts(file, Box::new(parts)),
    };
    Reply { status, content_bytes, rest }
}

/// Answers a request for the directory `name` that lacks the `/` at the end of its path.
#[cold]
fn redirect(name: &[u8], request: &Request<'_>, terms: &Terms<'_>, out: &mut Vec<u8>) -> Reply {
    let mut location = Vec::new();
    target::directory_location(name, request.query, &mut location);
    let status = Status::MOVED_PERMANENTLY;
    let extra = Extra::Location(&location);
    let content_bytes = error_page::put(status, extra, request.method, terms.persistence, terms.clock, out);
    Reply { status, content_bytes, rest: Rest::Nothing }
}

/// The status for a root that cannot be opened. The root may be missing for a moment while it is
/// replaced, so its absence says nothing about the files in it.
fn missing_root(errno: Errno) -> LookUpError {
    match errno {
        Errno::AGAIN => LookUpError::Cold,
        _ => LookUpError::Refused(Status::SERVICE_UNAVAILABLE),
    }
}
