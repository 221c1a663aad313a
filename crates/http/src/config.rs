//! The settings of a site: limits, times and sizes.

use std::time::Duration;

use crate::request::Limits;

/// How a site is served: limits, times and sizes.
#[derive(Clone, Debug)]
pub struct Config {
    /// What a request may cost.
    pub limits: Limits,
    /// How long a connection may be open between two requests.
    pub idle: Duration,
    /// How long a request head may take from its first byte to its last; beyond it 408.
    pub head: Duration,
    /// How long a request body may take; beyond it the connection is closed.
    pub body: Duration,
    /// How long a client may take no byte of a reply that waits for it; beyond it the connection is
    /// closed.
    pub write: Duration,
    /// For how long a file is served without looking whether it has changed. A clock of some
    /// milliseconds tells.
    pub validity: Duration,
    /// The most files that one worker keeps.
    pub cache_files: usize,
    /// The most bytes that one worker keeps of files, heads included.
    pub cache_bytes: usize,
    /// Files up to this many bytes are kept in memory and sent with their heads in one `send`; of
    /// longer ones the descriptor is kept, and they are sent with `sendfile`. (On Linux 6.18 over
    /// loopback both cost the same at 8 KB; at 4 KB memory is 7 % cheaper, at 16 KiB `sendfile` is
    /// 13 %.)
    pub memory_bytes: u64,
    /// The most connections of one worker. At this number those that have been idle for some time
    /// are closed in favour of new ones; if there are none, new ones wait in the kernel's queue.
    pub connections: usize,
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
            connections: usize::MAX,
        }
    }
}
