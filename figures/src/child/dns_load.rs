//! A client of a DNS server: queries over UDP, some of them in flight all the time, as fast as the
//! server answers. Each answer is compared with the address that the name has. The figure is in
//! `figures/src/dns.rs`.
//!
//! The client never sleeps, because it is alone on its CPU: no server pays for waking it.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// How long the client waits for an answer before it asks again. A datagram that the system has
/// dropped, because a socket was full, is lost.
const PATIENCE: Duration = Duration::from_millis(200);

/// Names are asked for in an order in which neighbours lie far apart.
const STEP: u64 = 7919;

/// The address of a name by its number.
pub(crate) fn address(number: u64) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001 + number as u32)
}

/// The first label of a name.
pub(crate) fn label(number: u64) -> String {
    format!("n{number:05}")
}

/// What comes behind the label in a query: the rest of the name, type A, class IN.
const REST: &[u8] = b"\x07example\x03org\0\0\x01\0\x01";

/// The queries of one run.
struct Asking {
    socket: UdpSocket,
    names: u64,
    /// The name that each query in flight asks for.
    flying: Vec<u64>,
    /// The id of the query in each place of `flying`. Modulo the length of the window an id is the
    /// place. Each query has another id than the one before in its place, because the answer to a
    /// query that was asked twice may come twice.
    ids: Vec<u16>,
    next: u64,
    answered: u64,
    wrong: u64,
}

/// Asks the server at `port` for `names` names, with `window` queries in flight, for
/// `milliseconds`; or for each name once, if that is 0.
///
/// # Errors
/// No answer came in time, or the system refuses.
pub(super) fn load(port: u64, names: u64, window: u64, milliseconds: u64) -> Result<(), String> {
    loaded(port as u16, names, window, milliseconds).map_err(|error| error.to_string())
}

fn loaded(port: u16, names: u64, window: u64, milliseconds: u64) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nonblocking(true)?;
    let flying = vec![u64::MAX; window as usize];
    let ids = (0..window as u16).collect();
    let mut asking = Asking { socket, names, flying, ids, next: 0, answered: 0, wrong: 0 };
    let begin = Instant::now();
    let limit = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
    for slot in 0..asking.flying.len() {
        asking.ask(slot)?;
    }
    asking.run(|asking| match limit {
        Some(limit) => begin.elapsed() < limit,
        None => asking.next < names,
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("answered {}", asking.answered);
    println!("wrong {}", asking.wrong);
    println!("rate {}", asking.answered as f64 / seconds);
    Ok(())
}

impl Asking {
    /// Takes answers and asks on while `goes_on`, and then waits for what is in flight.
    fn run(&mut self, goes_on: impl Fn(&Asking) -> bool) -> io::Result<()> {
        let mut buffer = [0; 1500];
        let mut last = Instant::now();
        let mut is_asking = true;
        let mut silences = 0;
        while is_asking || self.flying.iter().any(|&number| number != u64::MAX) {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    (last, silences) = (Instant::now(), 0);
                    let slot = self.take(&buffer[..length]);
                    is_asking = is_asking && goes_on(self);
                    if let (Some(slot), true) = (slot, is_asking) {
                        self.ask(slot)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if last.elapsed() > PATIENCE {
                        (last, silences) = (Instant::now(), silences + 1);
                        if silences > 20 {
                            return Err(io::Error::other("the server is silent"));
                        }
                        self.ask_again()?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks for the next name in a place of the window.
    fn ask(&mut self, slot: usize) -> io::Result<()> {
        self.flying[slot] = self.next * STEP % self.names;
        self.next += 1;
        let window = self.flying.len();
        let id = usize::from(self.ids[slot]) + window;
        self.ids[slot] = if id > usize::from(u16::MAX) { slot } else { id } as u16;
        self.send(slot)
    }

    fn ask_again(&self) -> io::Result<()> {
        let flying = self.flying.iter().enumerate().filter(|(_, number)| **number != u64::MAX);
        flying.into_iter().try_for_each(|(slot, _)| self.send(slot))
    }

    fn send(&self, slot: usize) -> io::Result<()> {
        let mut query = Vec::with_capacity(64);
        query.extend(self.ids[slot].to_be_bytes());
        query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let label = label(self.flying[slot]);
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
        query.extend(REST);
        match self.socket.send(&query) {
            // The server's socket is full: the query is asked again as one that was lost.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Checks an answer, and gives its place in the window.
    fn take(&mut self, answer: &[u8]) -> Option<usize> {
        let id = u16::from_be_bytes([*answer.first()?, *answer.get(1)?]);
        let slot = usize::from(id) % self.flying.len();
        let number = self.flying[slot];
        // An answer that came twice or too late is to no query in flight.
        if number == u64::MAX || self.ids[slot] != id {
            return None;
        }
        self.wrong += u64::from(!is_right(answer, number));
        self.answered += 1;
        self.flying[slot] = u64::MAX;
        Some(slot)
    }
}

/// Whether a message is an answer with the address of a name, without an error. The record's name
/// is a pointer to the question, and its address stands behind type, class, time and length.
fn is_right(answer: &[u8], number: u64) -> bool {
    let label = label(number);
    let end = 13 + label.len() + REST.len();
    answer.len() >= end + 16
        && answer[2] & 0x80 != 0
        && answer[3] & 15 == 0
        && answer[6..8] == [0, 1]
        && answer[13..13 + label.len()] == *label.as_bytes()
        && answer[end..end + 2] == [0xc0, 12]
        && answer[end + 12..end + 16] == address(number).octets()
}
