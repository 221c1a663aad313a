//! The programs about pipes: pairs of threads talk over pipes of 4 KB, beside threads that wait
//! where nothing comes. `child.rs` calls `fifo` and `fifo_mvars` for the figures in
//! `figures/src/pipes.rs`. The paper's measurement is [LZ07 §5.1].
//!
//! `Pipes` is the trait through which both runtimes run one text. Every message has labels, and the
//! reader checks each of them. The process ends with the idle threads alive, because their end is
//! no part of the figure.

use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use selvedge_sync::MVar;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// Runs the program `name` with its numbers. `false` if it is no program about pipes.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("fifo", &[w, pairs, idle, times]) => fifo::<Ours>(w, pairs, idle, times),
        ("fifo-mvars", &[w, pairs, idle, times]) => fifo_mvars(w, pairs, idle, times),
        ("tokio-fifo", &[w, pairs, idle, times]) => fifo::<Tokio>(w, pairs, idle, times),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Bytes of a message.
const MESSAGE: usize = 32 * 1024;
/// Bytes that a pipe holds.
const PIPE: usize = 4096;

/// A runtime's pipes.
pub(super) trait Pipes: Runtime {
    /// The end that is read.
    type Receiver: Send + 'static;
    /// The end that is written.
    type Sender: Send + 'static;

    /// Takes the ends over.
    fn ends(reader: OwnedFd, writer: OwnedFd) -> io::Result<(Self::Receiver, Self::Sender)>;
    /// Fills the buffer.
    fn receive(from: &mut Self::Receiver, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> + Send;
    /// Writes all the bytes.
    fn send(to: &mut Self::Sender, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;
}

impl Pipes for Ours {
    type Receiver = selvedge_io::pipe::Receiver;
    type Sender = selvedge_io::pipe::Sender;

    fn ends(reader: OwnedFd, writer: OwnedFd) -> io::Result<(Self::Receiver, Self::Sender)> {
        Ok((Self::Receiver::from_fd(reader)?, Self::Sender::from_fd(writer)?))
    }

    #[inline]
    fn receive(from: &mut Self::Receiver, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> + Send {
        from.read_exact(buffer)
    }

    #[inline]
    fn send(to: &mut Self::Sender, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send {
        to.write_all(bytes)
    }
}

impl Pipes for Tokio {
    type Receiver = pipe::Receiver;
    type Sender = pipe::Sender;

    fn ends(reader: OwnedFd, writer: OwnedFd) -> io::Result<(Self::Receiver, Self::Sender)> {
        Ok((pipe::Receiver::from_owned_fd(reader)?, pipe::Sender::from_owned_fd(writer)?))
    }

    async fn receive(from: &mut Self::Receiver, buffer: &mut [u8]) -> io::Result<()> {
        from.read_exact(buffer).await.map(|_| ())
    }

    async fn send(to: &mut Self::Sender, bytes: &[u8]) -> io::Result<()> {
        to.write_all(bytes).await
    }
}

/// One of a pair.
struct Side<P: Pipes> {
    from: P::Receiver,
    to: P::Sender,
    pair: u64,
    message: Vec<u8>,
    wrong: u64,
    /// By how much its labels are off: 0 unless the run is to be wrong.
    off: u64,
}

impl<P: Pipes> Side<P> {
    fn new(from: P::Receiver, to: P::Sender, pair: u64, off: u64) -> Side<P> {
        // A message is filled with its pair's number; its first and last words name the
        // conversation.
        Side { from, to, pair, message: vec![(pair % 251) as u8; MESSAGE], wrong: 0, off }
    }

    fn label(&mut self, number: u64) {
        let label = (number + self.off).to_ne_bytes();
        self.message[..8].copy_from_slice(&label);
        self.message[MESSAGE - 8..].copy_from_slice(&label);
    }

    /// Every message's labels are looked at, and every byte of the last.
    fn check(&mut self, number: u64, last: bool) {
        let label = number.to_ne_bytes();
        let mut right = self.message[..8] == label && self.message[MESSAGE - 8..] == label;
        if last {
            let fill = (self.pair % 251) as u8;
            right &= self.message[8..MESSAGE - 8].iter().all(|byte| *byte == fill);
        }
        self.wrong += u64::from(!right);
    }

    /// Talks; returns the bytes it received and how many messages were wrong.
    async fn talk(mut self, conversations: u64, speaks_first: bool) -> (u64, u64) {
        for number in 0..conversations {
            if speaks_first {
                self.label(number);
                P::send(&mut self.to, &self.message).await.expect("the pipe is open");
            }
            P::receive(&mut self.from, &mut self.message).await.expect("the pipe is open");
            self.check(number, number + 1 == conversations);
            if !speaks_first {
                self.label(number);
                P::send(&mut self.to, &self.message).await.expect("the pipe is open");
            }
        }
        (conversations * MESSAGE as u64, self.wrong)
    }
}

fn pipe_of_4k<P: Pipes>() -> (P::Receiver, P::Sender) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("descriptors are left");
    let size = fcntl_setpipe_size(&writer, PIPE).expect("a pipe can be one page");
    assert_eq!(size, PIPE, "the pipe's size");
    P::ends(reader, writer).expect("pipes can be waited for")
}

/// As many descriptors as the system lets this process have.
fn all_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // A limit that cannot be raised shows when descriptors run out.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// How many idle threads did not stay idle.
static WOKEN: AtomicU64 = AtomicU64::new(0);

/// The pairs talk. `off` is by how much the labels of their messages are off.
async fn talkers<P: Pipes>(pairs: u64, conversations: u64, off: u64) {
    let mut sides = Vec::new();
    for pair in 0..pairs {
        let (here, there) = (pipe_of_4k::<P>(), pipe_of_4k::<P>());
        sides.push((Side::<P>::new(here.0, there.1, pair, off), true));
        sides.push((Side::<P>::new(there.0, here.1, pair, off), false));
    }
    let first = Instant::now();
    let handles: Vec<_> = sides
        .into_iter()
        .map(|(side, speaks_first)| P::spawn(side.talk(conversations, speaks_first)))
        .collect();
    let (mut bytes, mut wrong) = (0, 0);
    for handle in handles {
        let (received, not_as_sent) = handle.await;
        bytes += received;
        wrong += not_as_sent;
    }
    let seconds = first.elapsed().as_secs_f64();
    println!("bytes {bytes}");
    println!("wrong {wrong}");
    println!("woken {}", WOKEN.load(Ordering::Relaxed));
    println!("rate {:.3}", bytes as f64 / seconds / 1e6);
}

/// `pairs` pairs, beside `idle` threads that wait for empty pipes.
fn fifo<P: Pipes>(workers: u64, pairs: u64, idle: u64, conversations: u64) {
    all_descriptors();
    P::run(workers as usize, Waits::World, async move {
        let mut open = Vec::new();
        for _ in 0..idle {
            let (mut reader, writer) = pipe_of_4k::<P>();
            open.push(writer);
            P::detach(async move {
                let _ = P::receive(&mut reader, &mut [0]).await;
                WOKEN.fetch_add(1, Ordering::Relaxed);
            })
            .await;
        }
        // They run until they wait.
        P::yield_now().await;
        // A run that is to be wrong wakes an idle thread, or sends wrong messages where there is
        // none.
        let mut off = fault();
        if let (1, Some(writer)) = (off, open.first_mut()) {
            P::send(writer, &[0]).await.expect("the pipe is open");
            off = 0;
        }
        talkers::<P>(pairs, conversations, off).await;
        end(open);
    });
}

/// `pairs` pairs of ours, beside `idle` threads that each wait for an MVar.
fn fifo_mvars(workers: u64, pairs: u64, idle: u64, conversations: u64) {
    all_descriptors();
    Ours::run(workers as usize, Waits::World, async move {
        // The only pipe that has room.
        let known = Arc::new(MVar::<()>::empty());
        for i in 0..idle {
            let wait = if i == 0 { Arc::clone(&known) } else { Arc::new(MVar::empty()) };
            Ours::detach(async move {
                wait.take().await;
                WOKEN.fetch_add(1, Ordering::Relaxed);
            })
            .await;
        }
        Ours::yield_now().await;
        if fault() == 1 {
            known.put(()).await;
        }
        talkers::<Ours>(pairs, conversations, 0).await;
        end(known);
    });
}

/// Ends the process with the idle threads still there, and `open` still open, because the cost of
/// their end is no part of the figure.
fn end<T>(open: T) -> ! {
    std::mem::forget(open);
    std::process::exit(0)
}
