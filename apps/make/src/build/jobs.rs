//! What a command needs before it starts: room in its pool, one of the `-j` permits, a token of the
//! job server, and a load that is low enough.
//!
//! `Runner::run` calls `Jobs::wait`, and holds the `Job` until the command has ended. A drop of the
//! `Job` gives everything back.
//!
//! A command takes the room in its pool before a permit, so a command that waits for its pool keeps
//! no permit from others. It takes a token when the load is low, and gives the token back if the
//! load has risen meanwhile, because other builds wait for tokens.

use super::Settings;
use super::jobserver::Jobserver;
use crate::graph::{Graph, PoolId};
use selvedge_core::Local;
use selvedge_io::pipe::Receiver;
use selvedge_io::time::sleep;
use selvedge_scope::{Selected, select};
use selvedge_sync::{Permit, Semaphore};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a command waits before it looks at the load again.
const LOAD_LOOKS: Duration = Duration::from_millis(200);

/// The semaphores of a build.
#[derive(Debug)]
pub(super) struct Jobs {
    permits: Semaphore<Local>,
    /// By the numbers of pools; `None` is a pool without limit.
    pools: Vec<Option<Semaphore<Local>>>,
    tokens: Option<Tokens>,
    load: Option<f64>,
    running: Cell<u32>,
}

#[derive(Debug)]
struct Tokens {
    server: Arc<Jobserver>,
    pipe: Receiver,
    /// The right to run one command, which each build has without a token.
    first: Semaphore<Local>,
}

/// The permits that a command holds while it runs.
#[derive(Debug)]
pub(super) struct Job<'a> {
    jobs: &'a Jobs,
    _pool: Option<Permit<'a, Local>>,
    _permit: Permit<'a, Local>,
    _token: Option<Grant<'a>>,
}

/// A token, which goes back when it is dropped.
#[derive(Debug)]
enum Grant<'a> {
    First(#[expect(dead_code, reason = "held until the command ends")] Permit<'a, Local>),
    FromPipe(&'a Jobserver, u8),
}

impl Jobs {
    pub(super) fn new(graph: &Graph, options: &Settings) -> io::Result<Jobs> {
        let permits = options.jobs.unwrap_or(u32::MAX).min(<Semaphore>::PERMITS_MAX);
        let pool =
            |depth: u32| (depth > 0).then(|| Semaphore::new_local(depth.min(<Semaphore>::PERMITS_MAX)));
        let tokens = match &options.jobserver {
            Some(server) => {
                let (server, pipe) = (server.clone(), server.tokens()?);
                Some(Tokens { server, pipe, first: Semaphore::new_local(1) })
            }
            None => None,
        };
        Ok(Jobs {
            permits: Semaphore::new_local(permits),
            pools: graph.pools.iter().map(|entry| pool(entry.depth)).collect(),
            tokens,
            load: options.load,
            running: Cell::new(0),
        })
    }

    /// Waits until a command of this pool may start. The room in the pool comes first, so that a
    /// command that waits for it takes no permit from others.
    pub(super) async fn wait(&self, pool: PoolId) -> io::Result<Job<'_>> {
        let room = match &self.pools[pool.index()] {
            Some(pool) => Some(pool.acquire().await),
            None => None,
        };
        let permit = self.permits.acquire().await;
        let token = loop {
            while self.is_loaded() {
                sleep(LOAD_LOOKS).await;
            }
            let Some(tokens) = &self.tokens else { break None };
            let token = tokens.take().await?;
            // Other commands may have begun meanwhile. If the load is too high now, then this drops
            // the token, because other builds wait for it.
            if !self.is_loaded() {
                break Some(token);
            }
        };
        self.running.set(self.running.get() + 1);
        Ok(Job { jobs: self, _pool: room, _permit: permit, _token: token })
    }

    /// Whether the load is too high for another command. The commands that run count too, because
    /// the machine's load is a mean of the last minute, and a command that has just begun is not in
    /// it yet. One command may always run, however high the load is.
    fn is_loaded(&self) -> bool {
        let running = self.running.get();
        let is_above = |most: f64| f64::from(running) >= most || load() > most;
        running > 0 && self.load.is_some_and(is_above)
    }
}

impl Tokens {
    async fn take(&self) -> io::Result<Grant<'_>> {
        let mut token = [0];
        match select((self.first.acquire(), self.pipe.read_exact(&mut token))).await {
            Selected::First(permit) => Ok(Grant::First(permit)),
            Selected::Second(read) => read.map(|()| Grant::FromPipe(&self.server, token[0])),
            _ => unreachable!("two branches"),
        }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.jobs.running.set(self.jobs.running.get() - 1);
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        if let Grant::FromPipe(server, token) = self {
            server.give_back(*token);
        }
    }
}

/// The number of processes that wanted a CPU in the last minute.
fn load() -> f64 {
    // The kernel counts in parts of 65,536.
    rustix::system::sysinfo().loads[0] as f64 / 65_536.0
}
