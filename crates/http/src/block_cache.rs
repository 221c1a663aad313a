//! [`BlockCache`]: blocks of files in memory, read past the kernel's page cache. It is for a site
//! that is larger than memory (`cache.direct` in the server's configuration).
//!
//! All workers of a process share one, because each byte in it is memory that a site larger than
//! memory lacks. A lock guards the [`Shelf`] and the reads under way. A worker holds it for a
//! look-up, and never while it reads.
//!
//! ```text
//!   block ─▶ on the shelf? ─▶ the block
//!                │ no
//!                ▼
//!            read already? ─▶ wait for that `BlockRead`
//!                │ no
//!                ▼
//!            a thread of its own reads it (`reading.rs`) ─▶ shelf ─▶ all that wait
//! ```
//!
//! So a block is read once, however many replies ask for it meanwhile, and a client that leaves
//! takes no read from the others. `file_body.rs` makes bodies of the blocks.
//!
//! The key of a block has the [`Identity`] of its file: device, number, length and times. A file
//! that was changed has other keys, so a reply never gets a block of an earlier state from here. A
//! file that was changed within the last second may change again without another time. Its blocks
//! are read for one reply, and not kept. After each read the file is looked at once more: the block
//! is kept only if the file is as its key says.

mod reading;
mod shelf;

use self::shelf::Shelf;
use crate::cache::{CachedFile, split_key};
use crate::document_root::Identity;
use bytes::Bytes;
use selvedge_core::{Queue, Role, Shared, WaitQueue, detach_local};
use selvedge_handler::{Severity, report};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The length of a block in bytes. The last block of a file is shorter.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;

/// Roughly the bytes that a block takes besides its content.
const OVERHEAD_BYTES: usize = 256;

/// The part of the cache that reads ahead may fill at a time: one in this number.
const AHEAD_SHARE: usize = 8;

/// How often a reply asks for a block, if the thread that reads it ends without an answer.
const TRIES: u32 = 3;

/// Blocks of files in memory, for all workers of a process. Clones are the same cache.
///
/// With one in its [`Config`](crate::Config) a site reads files past the kernel's page cache
/// (`O_DIRECT`), by asynchronous reads of the worker's event loop, and keeps blocks of 64 KiB here.
/// A client that reads everything once does not drive out the blocks that others ask for again. A
/// block that several replies need is read once. Where the file system takes no such reads, the
/// files are sent from the page cache as without it, and the server reports so once.
///
/// # Paper
/// \[LZ07 §5.2\]: the web server reads by AIO, past the kernel's cache, and has a file cache of a
/// fixed size that all threads share.
///
/// # Differences
/// 1. It holds blocks, so a file that is longer than memory streams through it.
/// 2. A scan does not defeat the rule by which blocks leave. The paper names no rule.
///
/// # Examples
/// ```
/// use selvedge::http::{BlockCache, Config};
///
/// // 512 MiB, for all workers that get a clone of this configuration.
/// let config = Config { blocks: Some(BlockCache::new(512 << 20)), ..Config::default() };
/// assert_eq!(config.blocks.unwrap().counts().bytes, 0);
/// ```
#[derive(Clone)]
pub struct BlockCache(Arc<SharedBlocks>);

struct SharedBlocks {
    state: Mutex<BlockState>,
    bytes_max: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
    reads: AtomicU64,
    evicted: AtomicU64,
    /// The reads under way that no reply has asked for yet.
    ahead: AtomicUsize,
    /// The devices with a file system that takes no direct reads.
    refused: Mutex<HashSet<u64>>,
}

struct BlockState {
    shelf: Shelf<BlockKey, Bytes>,
    reading: HashMap<BlockKey, Arc<BlockRead>>,
}

/// A block of a file in one state of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    file: Identity,
    number: u64,
}

/// What a [`BlockCache`] has counted since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Blocks that were in memory when a reply asked for them.
    pub hits: u64,
    /// Blocks that a reply had to wait for.
    pub misses: u64,
    /// Reads from the disk: less than the misses if several replies have waited for one, more if
    /// blocks were read ahead.
    pub reads: u64,
    /// Blocks that have left for others.
    pub evicted: u64,
    /// The bytes of the blocks that are in memory now.
    pub bytes: u64,
}

/// Why there is no block.
#[derive(Clone, Debug)]
pub(crate) enum BlockError {
    /// The file ends at this byte, before the end of the block.
    Shorter(u64),
    /// The file system takes no direct reads.
    Refused,
    /// The bytes from this one on cannot be read.
    Failed(u64, Arc<str>),
    /// The thread that has read it has ended without an answer.
    Abandoned,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockError::Shorter(end) => write!(f, "it ends at byte {end}"),
            BlockError::Refused => f.write_str("its file system takes no direct reads"),
            BlockError::Failed(at, text) => write!(f, "byte {at} and what follows cannot be read: {text}"),
            BlockError::Abandoned => f.write_str("the thread that has read it has ended"),
        }
    }
}

impl Error for BlockError {}

/// A read under way: the answer, when it has come, and the replies that wait for it.
struct BlockRead(WaitQueue<BlockAnswer, (), Shared>);

type BlockAnswer = Option<Result<Bytes, BlockError>>;

/// Waits until the answer is there, and leaves it there.
enum ReadAnswer {}

impl Role<BlockAnswer, ()> for ReadAnswer {
    type Output = ();

    fn attempt(answer: &mut BlockAnswer, _: &mut Queue<()>, (): &mut ()) -> Option<()> {
        answer.is_some().then_some(())
    }

    fn granted((): &mut ()) {}

    fn abandoned(_: &mut BlockAnswer, _: &mut Queue<()>, (): &mut ()) {}
}

impl BlockRead {
    async fn answer(&self) -> Result<Bytes, BlockError> {
        self.0.wait::<ReadAnswer>(()).await;
        self.0.with(|answer, _| answer.clone()).unwrap_or(Err(BlockError::Abandoned))
    }

    fn give(&self, answer: Result<Bytes, BlockError>) {
        self.0.with(|held, queue| {
            *held = Some(answer);
            while !queue.is_empty() {
                queue.grant();
            }
        });
    }
}

/// Where a block is when a reply asks for it.
enum BlockPlace {
    Held(Bytes),
    Coming(Arc<BlockRead>),
}

impl BlockCache {
    /// A cache of at most `bytes_max` bytes. Blocks that are being read or sent come on top of
    /// them.
    pub fn new(bytes_max: usize) -> BlockCache {
        let state = BlockState { shelf: Shelf::new(bytes_max), reading: HashMap::new() };
        BlockCache(Arc::new(SharedBlocks {
            state: Mutex::new(state),
            bytes_max: AtomicUsize::new(bytes_max),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            ahead: AtomicUsize::new(0),
            refused: Mutex::default(),
        }))
    }

    /// Makes the room `bytes_max` bytes large. The blocks that have no room any more leave, as for
    /// others that come. Replies that send them go on.
    ///
    /// # Examples
    /// ```
    /// use selvedge::http::BlockCache;
    ///
    /// let blocks = BlockCache::new(512 << 20);
    /// blocks.resize(256 << 20);
    /// ```
    pub fn resize(&self, bytes_max: usize) {
        let mut evicted = Vec::new();
        self.0.bytes_max.store(bytes_max, Relaxed);
        self.state().shelf.resize(bytes_max, &mut evicted);
        self.0.evicted.fetch_add(evicted.len() as u64, Relaxed);
    }

    /// What it has counted.
    pub fn counts(&self) -> BlockCounts {
        let SharedBlocks { hits, misses, reads, evicted, .. } = &*self.0;
        let [hits, misses, reads, evicted] = [hits, misses, reads, evicted].map(|count| count.load(Relaxed));
        BlockCounts { hits, misses, reads, evicted, bytes: self.state().shelf.bytes() as u64 }
    }

    /// Block number `number` of `file`: from memory, or from the disk. The call must be made in a
    /// thread of a worker.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) async fn block(&self, file: &Rc<CachedFile>, number: u64) -> Result<Bytes, BlockError> {
        let answer = match file.is_settled() {
            true => self.kept_block(file, number).await,
            false => {
                self.0.misses.fetch_add(1, Relaxed);
                self.0.reads.fetch_add(1, Relaxed);
                reading::read(file, number).await
            }
        };
        answer.inspect_err(|error| self.note(file, error))
    }

    /// A block of a file that has stood still.
    async fn kept_block(&self, file: &Rc<CachedFile>, number: u64) -> Result<Bytes, BlockError> {
        let mut answer = Err(BlockError::Abandoned);
        for attempt in 0..TRIES {
            match self.place(file, number) {
                BlockPlace::Held(block) => {
                    self.0.hits.fetch_add(u64::from(attempt == 0), Relaxed);
                    return Ok(block);
                }
                BlockPlace::Coming(read) => {
                    self.0.misses.fetch_add(u64::from(attempt == 0), Relaxed);
                    answer = read.answer().await;
                }
            }
            if !matches!(answer, Err(BlockError::Abandoned)) {
                break;
            }
        }
        answer
    }

    /// Begins to read those of the blocks `numbers` of `file` that are not there, as long as the
    /// reads ahead of all replies are few. The call must be made in a thread of a worker.
    pub(crate) fn read_ahead(&self, file: &Rc<CachedFile>, numbers: RangeInclusive<u64>) {
        let most = self.0.bytes_max.load(Relaxed) / AHEAD_SHARE / BLOCK_BYTES as usize;
        // The first block opens the file.
        if !file.is_settled() || file.direct.get().is_none() {
            return;
        }
        for number in numbers {
            if self.0.ahead.load(Relaxed) >= most {
                return;
            }
            let key = BlockKey { file: file.identity, number };
            let mut state = self.state();
            if !state.shelf.has(&key) && !state.reading.contains_key(&key) {
                let read = state.begin(key);
                drop(state);
                self.0.ahead.fetch_add(1, Relaxed);
                self.start(file, key, read, true);
            }
        }
    }

    /// Whether files of this device are known to take no direct reads.
    pub(crate) fn is_refused(&self, file: &CachedFile) -> bool {
        self.refused().contains(&file.identity.device)
    }

    /// The block, or the read that brings it, which begins if it has not begun.
    fn place(&self, file: &Rc<CachedFile>, number: u64) -> BlockPlace {
        let key = BlockKey { file: file.identity, number };
        let mut state = self.state();
        if let Some(block) = state.shelf.get(&key) {
            return BlockPlace::Held(block.clone());
        }
        if let Some(read) = state.reading.get(&key) {
            return BlockPlace::Coming(read.clone());
        }
        let read = state.begin(key);
        drop(state);
        self.start(file, key, read.clone(), false);
        BlockPlace::Coming(read)
    }

    /// Starts the thread that reads a block.
    fn start(&self, file: &Rc<CachedFile>, key: BlockKey, read: Arc<BlockRead>, is_ahead: bool) {
        self.0.reads.fetch_add(1, Relaxed);
        let coming = ComingBlock { cache: self.clone(), key, read, is_ahead };
        let file = file.clone();
        detach_local(async move {
            let answer = reading::read(&file, key.number).await;
            // A block that was read while the file was changed is no block of the state in its key.
            let is_of_key = answer.is_ok() && file.is_unchanged();
            coming.end(answer, is_of_key);
        });
    }

    /// Reports an error that the operator has something to do with.
    fn note(&self, file: &CachedFile, error: &BlockError) {
        let name = split_key(&file.name).0.escape_ascii();
        match error {
            BlockError::Refused => {
                if self.refused().insert(file.identity.device) {
                    let then = "the files of this file system are sent from the page cache";
                    report(Severity::Warning, format_args!("/{name}: {error}: {then}"));
                }
            }
            BlockError::Failed(..) => report(Severity::Error, format_args!("/{name}: {error}")),
            // The reply that is cut says so.
            BlockError::Shorter(_) | BlockError::Abandoned => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, BlockState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockState {
    /// Notes a read that is to begin.
    fn begin(&mut self, key: BlockKey) -> Arc<BlockRead> {
        let read = Arc::new(BlockRead(WaitQueue::new(None)));
        self.reading.insert(key, read.clone());
        read
    }
}

/// A read in its thread. If the thread ends early, the destructor gives the replies that wait an
/// answer.
struct ComingBlock {
    cache: BlockCache,
    key: BlockKey,
    read: Arc<BlockRead>,
    is_ahead: bool,
}

impl ComingBlock {
    /// Puts the block on the shelf if it is `kept`, and gives the answer to all that wait.
    fn end(self, answer: Result<Bytes, BlockError>, kept: bool) {
        if let (Ok(block), true) = (&answer, kept) {
            let mut evicted = Vec::new();
            let bytes = reading::room(block.len()) + OVERHEAD_BYTES;
            self.cache.state().shelf.insert(self.key, block.clone(), bytes, &mut evicted);
            self.cache.0.evicted.fetch_add(evicted.len() as u64, Relaxed);
        }
        self.read.give(answer);
    }
}

impl Drop for ComingBlock {
    fn drop(&mut self) {
        // A reply that comes now finds the block on the shelf, or begins to read anew.
        self.cache.state().reading.remove(&self.key);
        self.cache.0.ahead.fetch_sub(usize::from(self.is_ahead), Relaxed);
        if self.read.0.with(|answer, _| answer.is_none()) {
            self.read.give(Err(BlockError::Abandoned));
        }
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("bytes_max", &self.0.bytes_max).finish_non_exhaustive()
    }
}
