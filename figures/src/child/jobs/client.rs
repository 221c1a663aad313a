//! The client of a queue of jobs. It has blocking sockets and no runtime, so that it is the same
//! beside every server. `load` measures; `interrupted` and `recovered` show that a server that is
//! killed keeps what it has acknowledged.

use crate::machine::tasks_cpu_ns;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::Instant;

/// The payload with this number: 64 bytes, from which the number can be told.
fn payload(number: u64) -> String {
    format!("{number:<32}{:>32}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The number of a payload, if it is one.
fn number_of(text: &str) -> Option<u64> {
    let number = text.split(' ').next()?.parse().ok()?;
    (payload(number) == text).then_some(number)
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Put(u64),
    Take,
    Done { id: u64, number: u64 },
}

struct JobConnection {
    stream: BufReader<TcpStream>,
    stage: Stage,
    line: String,
}

impl JobConnection {
    fn open(port: u16) -> io::Result<JobConnection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(JobConnection { stream: BufReader::new(stream), stage: Stage::Take, line: String::new() })
    }

    fn send(&mut self, stage: Stage) -> io::Result<()> {
        self.stage = stage;
        let request = match stage {
            Stage::Put(number) => format!("put {}\n", payload(number)),
            Stage::Take => "take\n".to_owned(),
            Stage::Done { id, .. } => format!("done {id}\n"),
        };
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Reads a reply line: its first word and the rest.
    fn reply(&mut self) -> io::Result<(&str, &str)> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            return Err(io::Error::other("the server has closed a connection"));
        }
        let line = self.line.trim_end_matches('\n');
        line.split_once(' ').ok_or_else(|| io::Error::other(format!("no reply: {line:?}")))
    }

    /// Reads the number of a reply that must have this first word.
    fn number(&mut self, expected: &str) -> io::Result<u64> {
        match self.reply()? {
            (word, number) if word == expected => number.parse().map_err(io::Error::other),
            (word, rest) => Err(io::Error::other(format!("not {expected}: {word} {rest}"))),
        }
    }

    /// Reads a job: its number in the server, and that of its payload if the payload is one.
    fn job(&mut self) -> io::Result<(u64, Option<u64>)> {
        let (word, rest) = self.reply()?;
        let (id, text) = rest.split_once(' ').filter(|_| word == "job").ok_or(io::ErrorKind::InvalidData)?;
        Ok((id.parse().map_err(io::Error::other)?, number_of(text)))
    }
}

/// Puts, takes and finishes `jobs` jobs over `connections`, each with one request in flight, and
/// prints how many came back as they were put, and the server's CPU time for a job.
///
/// # Errors
///
/// The fault: a connection that broke, or a reply that is none.
pub(crate) fn load(port: u64, process: u64, connections: u64, jobs: u64) -> Result<(), String> {
    run(port as u16, process, connections, jobs).map_err(|error| error.to_string())
}

fn run(port: u16, process: u64, connections: u64, jobs: u64) -> io::Result<()> {
    let mut all = (0..connections).map(|_| JobConnection::open(port)).collect::<io::Result<Vec<_>>>()?;
    let process = format!("/proc/{process}");
    let process = Path::new(&process);
    let mut taken = vec![false; jobs as usize];
    let (mut put, mut done, mut wrong) = (0, 0, 0);
    let (begin, before) = (Instant::now(), tasks_cpu_ns(process));
    let mut active: Vec<usize> = Vec::new();
    for (place, connection) in all.iter_mut().enumerate().take(jobs as usize) {
        connection.send(Stage::Put(put))?;
        put += 1;
        active.push(place);
    }
    // In turn, so that the server has had all other requests by the time a connection's next is
    // sent.
    while !active.is_empty() {
        let mut left = Vec::with_capacity(active.len());
        for place in active {
            let connection = &mut all[place];
            match connection.stage {
                Stage::Put(_) => {
                    connection.number("ok")?;
                    connection.send(Stage::Take)?;
                }
                Stage::Take => {
                    let (id, number) = connection.job()?;
                    let slot = number.and_then(|number| taken.get_mut(number as usize));
                    wrong += u64::from(slot.is_none_or(|taken| std::mem::replace(taken, true)));
                    connection.send(Stage::Done { id, number: number.unwrap_or(0) })?;
                }
                Stage::Done { id, .. } => {
                    wrong += u64::from(connection.number("ok")? != id);
                    done += 1;
                    if put == jobs {
                        continue;
                    }
                    connection.send(Stage::Put(put))?;
                    put += 1;
                }
            }
            left.push(place);
        }
        active = left;
    }
    let (took, used) = (begin.elapsed(), tasks_cpu_ns(process) - before);
    println!("jobs {done}");
    println!("wrong {wrong}");
    println!("taken {}", taken.iter().filter(|taken| **taken).count());
    println!("rate {:.3}", jobs as f64 / took.as_secs_f64());
    println!("cpu {:.4}", used as f64 / 1e3 / jobs as f64);
    Ok(())
}

/// What a server had answered, and what it was asked, when it was killed.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// Every payload that was sent.
    sent: BTreeSet<u64>,
    /// The payloads of each `put` that was answered.
    put: BTreeSet<u64>,
    /// The payloads of each `done` that was sent.
    ending: BTreeSet<u64>,
    /// The payloads of each `done` that was answered.
    done: BTreeSet<u64>,
}

/// Makes requests over some connections and calls `kill` while each has one in flight.
pub(crate) fn interrupted(port: u16, kill: impl FnOnce()) -> io::Result<Acknowledged> {
    const CONNECTIONS: u64 = 8;
    const REPLIES: u64 = 400;
    let mut all = (0..CONNECTIONS).map(|_| JobConnection::open(port)).collect::<io::Result<Vec<_>>>()?;
    let mut known = Acknowledged::default();
    let mut next = 0;
    let mut put = |connection: &mut JobConnection, known: &mut Acknowledged| {
        known.sent.insert(next);
        next += 1;
        connection.send(Stage::Put(next - 1))
    };
    for connection in &mut all {
        put(connection, &mut known)?;
    }
    for turn in 0..REPLIES {
        let connection = &mut all[(turn % CONNECTIONS) as usize];
        match connection.stage {
            Stage::Put(number) => {
                connection.number("ok")?;
                known.put.insert(number);
                // Every third job is left to wait.
                if number % 3 == 0 { put(connection, &mut known)? } else { connection.send(Stage::Take)? }
            }
            Stage::Take => {
                let (id, number) = connection.job()?;
                let number = number.ok_or(io::ErrorKind::InvalidData)?;
                // Every fifth job is taken, and never done.
                if number % 5 == 0 {
                    put(connection, &mut known)?;
                } else {
                    known.ending.insert(number);
                    connection.send(Stage::Done { id, number })?;
                }
            }
            Stage::Done { number, .. } => {
                connection.number("ok")?;
                known.done.insert(number);
                put(connection, &mut known)?;
            }
        }
    }
    kill();
    Ok(known)
}

/// Takes all jobs of a server that was started again.
///
/// # Errors
///
/// What the server has lost, doubled, or made up.
pub(crate) fn recovered(port: u16, known: &Acknowledged) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let mut connection = JobConnection::open(port).map_err(told)?;
    connection.stream.get_mut().write_all(b"left\n").map_err(told)?;
    let left = connection.number("left").map_err(told)?;
    let mut found = BTreeSet::new();
    for _ in 0..left {
        connection.send(Stage::Take).map_err(told)?;
        let number = connection.job().map_err(told)?.1.ok_or("a payload was never put")?;
        if !found.insert(number) {
            return Err(format!("job {number} was there twice"));
        }
    }
    let must = known.put.difference(&known.ending);
    let lost: Vec<_> = must.filter(|number| !found.contains(number)).collect();
    let undone: Vec<_> = known.done.intersection(&found).collect();
    let unknown: Vec<_> = found.difference(&known.sent).collect();
    match (&lost[..], &undone[..], &unknown[..]) {
        ([], [], []) => Ok(()),
        _ => Err(format!("lost {lost:?}, not done any more {undone:?}, never put {unknown:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_tells_its_number_and_a_changed_one_does_not() {
        assert_eq!(payload(7).len(), 64);
        assert_eq!(number_of(&payload(7)), Some(7));
        assert_eq!(number_of(&format!("{}x", payload(7))), None);
    }
}
