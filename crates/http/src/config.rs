//! [`Config`]: limits, times and sizes of a site. `apps/httpd` fills it from its command line,
//! other programs take the default; `WorkerContext` (`worker.rs`) has it for the connections, and
//! `files.rs` reads the sizes of the cache.

use crate::block_cache::BlockCache;
use crate::request::Limits;
use std::time::Duration;

/// How a site is served: limits, times and sizes.
#[derive(Clone, Debug)]
pub struct Config {
    /// The sizes that a request may have.
    pub limits: Limits,
    /// How long a connection may be open between two requests.
    pub idle: Duration,
    /// How long a request head may take from its first byte to its last. After that the client is
    /// answered with 408.
    pub head: Duration,
    /// How long a request body may take. After that the connection is closed.
    pub body: Duration,
    /// How long a client may leave a reply unread, without taking a byte of it. After that the
    /// connection is closed.
    pub write: Duration,
    /// For how long a file is served before the server looks again whether the file has changed.
    /// The clock for this is exact to some milliseconds.
    pub validity: Duration,
    /// The most files that one worker keeps.
    pub cache_files: usize,
    /// The most bytes that one worker keeps of files, heads included.
    pub cache_bytes: usize,
    /// The largest size of a file that the cache keeps in memory. Such a file is sent with its head
    /// in one `send`. Of a larger file the cache keeps the descriptor, and the file is sent with
    /// `sendfile`. (Measured on Linux 6.18 over loopback: at 8 KB both cost the same. At 4 KB
    /// memory is 7 % cheaper, and at 16 KiB `sendfile` is 13 % cheaper.)
    pub memory_bytes: u64,
    /// The cache from which the content of files is sent, in place of the kernel's page cache:
    /// `None` by default. A handler answers for files then, which costs more instructions, so this
    /// is for sites that are larger than memory. Then `memory_bytes` means nothing, and
    /// `cache_files` bounds the files that are open.
    pub blocks: Option<BlockCache>,
    /// The limits of requests that [handlers](selvedge_handler::Handler) answer.
    pub handlers: HandlerLimits,
    /// The most connections of one worker. At this number the worker closes the connections that
    /// have been idle for longest, to make room for new ones. If no connection is idle, the new
    /// ones wait in the kernel's queue.
    pub connections: usize,
}

/// The part of a [`Config`] that holds for each connection. It may change while a site serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTerms {
    pub(crate) limits: Limits,
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) body: Duration,
    pub(crate) write: Duration,
    pub(crate) handlers: HandlerLimits,
}

impl ConnectionTerms {
    pub(crate) fn of(config: &Config) -> ConnectionTerms {
        let Config { limits, idle, head, body, write, handlers, .. } = *config;
        ConnectionTerms { limits, idle, head, body, write, handlers }
    }
}

impl Default for Config {
    /// 60 s idle, 10 s for a head, 30 s for a body and for writing, files valid for 2 s, 1,024
    /// files and 64 MiB in a worker's cache, contents up to 8 KiB in memory, no bound on
    /// connections.
    fn default() -> Config {
        Config {
            limits: Limits::default(),
            idle: Duration::from_secs(60),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            validity: Duration::from_secs(2),
            cache_files: 1024,
            cache_bytes: 64 << 20,
            memory_bytes: 8 << 10,
            blocks: None,
            handlers: HandlerLimits::default(),
            connections: usize::MAX,
        }
    }
}

/// What a request may take that a [handler](selvedge_handler::Handler) answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerLimits {
    /// How long a handler may take from the request's head to its response. After that the future
    /// of the handler is dropped, and the client is answered with 503. `None` for no limit. The
    /// body of the response is not counted.
    pub time: Option<Duration>,
    /// How long the client may send nothing while the handler waits for a piece of the body.
    pub body: Duration,
    /// Longest body content in bytes; beyond it 413, or an error of the body if its length is not
    /// known at first. A handler that keeps a body in memory has a limit of its own.
    pub body_bytes: u64,
    /// How much of a body that the handler has not read is read and dropped, so that the connection
    /// can be kept for further requests.
    pub unread_bytes: u64,
}

impl Default for HandlerLimits {
    /// No limit on the time of a handler nor on the length of a body, 30 s for a piece of a body,
    /// and 256 KiB that are dropped.
    fn default() -> HandlerLimits {
        HandlerLimits {
            time: None,
            body: Duration::from_secs(30),
            body_bytes: u64::MAX,
            unread_bytes: 256 << 10,
        }
    }
}
