//! The client of the echo servers of `echo.rs` and of the HTTP servers of `hello.rs`: each
//! connection sends a message, waits for the answer, compares it, and sends the next.
//! `child.rs` calls `load` for the figures in `figures/src/echo.rs`.
//!
//! The client is one OS thread and one epoll set, without any runtime, so that it is the same
//! beside every server. It measures nothing until every connection has had its first answer.

use super::hello;
use crate::machine::tasks_cpu_ns;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a message to an echo server.
const MESSAGE: usize = 64;
/// Bytes of a reply of an HTTP server at most.
const REPLY: usize = 512;

/// What a connection sends, and which answer it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    /// A message, which is to come back.
    Echo,
    /// A request of HTTP, which `hello.rs` answers.
    Http,
}

impl Talk {
    /// The first message of the connection with this number.
    fn message(self, number: u64) -> Vec<u8> {
        match self {
            Talk::Echo => (number..).take(MESSAGE).map(|byte| byte as u8).collect(),
            Talk::Http => hello::REQUEST.to_vec(),
        }
    }

    /// The room for an answer.
    fn room(self) -> usize {
        match self {
            Talk::Echo => MESSAGE,
            Talk::Http => REPLY,
        }
    }

    /// Whether the bytes that have come are a whole answer.
    fn is_whole(self, back: &[u8]) -> bool {
        match self {
            Talk::Echo => back.len() == MESSAGE,
            Talk::Http => hello::is_whole(back) || back.len() == REPLY,
        }
    }

    /// Whether a whole answer is the right one.
    fn is_right(self, sent: &[u8], back: &[u8]) -> bool {
        match self {
            Talk::Echo => back == sent,
            Talk::Http => hello::is_right(back),
        }
    }
}

struct Connection {
    stream: TcpStream,
    talk: Talk,
    /// The message that it has sent.
    sent: Vec<u8>,
    /// The bytes that have come back so far are at its begin.
    back: Vec<u8>,
    got: usize,
    messages: u64,
    /// How many answers were not the right one.
    wrong: u64,
    since: Instant,
}

impl Connection {
    fn open(port: u16, talk: Talk, number: u64) -> io::Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            talk,
            sent: talk.message(number),
            back: vec![0; talk.room()],
            got: 0,
            messages: 0,
            wrong: 0,
            since: Instant::now(),
        })
    }

    fn send(&mut self) -> io::Result<()> {
        if self.talk == Talk::Echo {
            self.sent[..8].copy_from_slice(&self.messages.to_ne_bytes());
        }
        self.since = Instant::now();
        self.got = 0;
        // There is always room for a message: the one before has come back.
        self.stream.write_all(&self.sent)
    }

    /// Reads what has come; the time the message took once it is complete.
    fn receive(&mut self) -> io::Result<Option<Duration>> {
        match self.stream.read(&mut self.back[self.got..]) {
            Ok(0) => return Err(io::Error::other("the server has closed a connection")),
            Ok(read) => self.got += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let back = &self.back[..self.got];
        if !self.talk.is_whole(back) {
            return Ok(None);
        }
        self.wrong += u64::from(!self.talk.is_right(&self.sent, back));
        self.messages += 1;
        Ok(Some(self.since.elapsed()))
    }
}

/// Times of messages, counted in steps of about 3 %.
struct Latencies([u64; 64 * 32]);

impl Latencies {
    fn add(&mut self, time: Duration) {
        self.0[Self::step(time.as_nanos() as u64)] += 1;
    }

    /// The power of two, and the five bits behind it.
    fn step(ns: u64) -> usize {
        let ns = ns.max(32);
        let power = ns.ilog2();
        (power as usize) * 32 + ((ns >> (power - 5)) & 31) as usize
    }

    /// The time that this number of a thousand messages did not exceed, in microseconds.
    fn quantile(&self, of_a_thousand: u64) -> f64 {
        let total: u64 = self.0.iter().sum();
        let mut left = total * of_a_thousand / 1000;
        let at = self.0.iter().position(|count| {
            let found = left < *count;
            left = left.saturating_sub(*count);
            found
        });
        let (power, part) = (at.unwrap_or(0) / 32, at.unwrap_or(0) % 32);
        (1.0 + (part as f64 + 0.5) / 32.0) * 2_f64.powi(power as i32) / 1e3
    }
}

/// This time is not measured, nor is the time until every connection has had its first answer.
const WARM_UP: Duration = Duration::from_millis(200);
/// How long a connection may wait for its first answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the server with the given port and process over `connections` for `millis`, polling
/// without sleeping if `busy`.
///
/// # Errors
///
/// The fault: a connection that broke or was not answered.
pub(super) fn load(
    talk: Talk,
    port: u64,
    process: u64,
    connections: u64,
    millis: u64,
    busy: u64,
) -> Result<(), String> {
    run(talk, port as u16, process, connections, Duration::from_millis(millis), busy != 0)
        .map_err(|error| error.to_string())
}

fn run(talk: Talk, port: u16, process: u64, connections: u64, time: Duration, busy: bool) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut all = Vec::new();
    for number in 0..connections {
        let connection = Connection::open(port, talk, number)?;
        let data = epoll::EventData::new_u64(number);
        epoll::add(&epoll, &connection.stream, data, epoll::EventFlags::IN)?;
        all.push(connection);
    }
    let process = format!("/proc/{process}");
    let process = Path::new(&process);
    let mut latencies = Box::new(Latencies([0; 64 * 32]));
    let mut messages = 0_u64;
    let mut unanswered = connections;
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let wait = Timespec { tv_sec: 0, tv_nsec: if busy { 0 } else { 100_000_000 } };
    for connection in &mut all {
        connection.send()?;
    }
    let begin = Instant::now();
    // When measuring began, and the CPU time of the server until then.
    let mut measured: Option<(Instant, u64)> = None;
    let mut last = begin;
    while measured.is_none_or(|(first, _)| last < first + time) {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&wait))?;
        for event in &events {
            let connection = &mut all[event.data.u64() as usize];
            if let Some(took) = connection.receive()? {
                unanswered -= u64::from(connection.messages == 1);
                if measured.is_some() {
                    latencies.add(took);
                    messages += 1;
                }
                connection.send()?;
            }
        }
        last = Instant::now();
        if measured.is_none() && last >= begin + WARM_UP && unanswered == 0 {
            measured = Some((last, tasks_cpu_ns(process)));
        }
        if unanswered > 0 && last >= begin + PATIENCE {
            let what = format!("{unanswered} connections had no answer in {} s", PATIENCE.as_secs());
            return Err(io::Error::other(what));
        }
    }
    let used = tasks_cpu_ns(process);
    let (first, before) = measured.ok_or_else(|| io::Error::other("the run was too short"))?;
    println!("messages {messages}");
    println!("unanswered {unanswered}");
    println!("wrong {}", all.iter().map(|connection| connection.wrong).sum::<u64>());
    println!("rate {:.3}", messages as f64 / (last - first).as_secs_f64());
    println!("cpu {:.4}", (used - before) as f64 / 1e3 / messages as f64);
    println!("p50 {:.3}", latencies.quantile(500));
    println!("p99 {:.3}", latencies.quantile(990));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_step() {
        let mut latencies = Latencies([0; 64 * 32]);
        for us in 1..=1000 {
            latencies.add(Duration::from_micros(us));
        }
        for (of_a_thousand, expected) in [(500, 500.0), (990, 990.0)] {
            let found = latencies.quantile(of_a_thousand);
            assert!((found / expected - 1.0_f64).abs() < 0.04, "{found} for {expected}");
        }
    }
}
