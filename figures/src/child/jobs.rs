//! A queue of jobs behind TCP, with a log on disk: what two servers have in common, which is the
//! protocol and the format of the log. `ours.rs` and `theirs.rs` are the servers, and `client.rs`
//! uses either. The figure is in `figures/src/jobs.rs`.
//!
//! A request is a line, and so is its reply:
//!
//! | request | reply | when |
//! |---|---|---|
//! | `put PAYLOAD` | `ok ID` | the log has the job |
//! | `take` | `job ID PAYLOAD` | there is a job; until then the reply waits |
//! | `done ID` | `ok ID` | the log has the end of the job |
//! | `left` | `left NUMBER` | at once: the number of jobs that a `take` would get |
//!
//! A job that was taken and not done waits again after the server's next start. So each job is
//! done at least once after the reply to its `put`, also if the server is killed.
//!
//! Both servers commit in groups: one thread writes all records that have come since its last
//! write, and syncs the file once for all of them.

mod client;
mod ours;
mod theirs;

use super::fault;
use client::load;
pub(crate) use client::{interrupted, recovered};
use ours::serve as ours;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use theirs::serve as theirs;

/// Runs the program `name` with its numbers. `false` if it is no program about the queue of jobs.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("jobs", &[w, number, sync]) => ours(w, number, sync != 0),
        ("tokio-jobs", &[w, number, sync]) => theirs(w, number, sync != 0),
        ("jobs-load", &[port, process, connections, jobs]) => {
            load(port, process, connections, jobs)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Bytes that a connection reads at once at most.
const BUFFER: usize = 1024;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request<'a> {
    Put(&'a str),
    Take,
    Done(u64),
    Left,
}

/// The first line of the bytes that a connection has sent, and its length with its end. `None`
/// while the line is not complete. The request is `None` if the line is none.
fn first(bytes: &[u8]) -> Option<(Option<Request<'_>>, usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let request = std::str::from_utf8(&bytes[..end]).ok().and_then(|line| match line.split_once(' ') {
        // A server with a fault gives a payload that was never put.
        Some(("put", payload)) if is_faulty() => Some(Request::Put(&payload[1..])),
        Some(("put", payload)) => Some(Request::Put(payload)),
        Some(("done", id)) => id.parse().ok().map(Request::Done),
        None if line == "take" => Some(Request::Take),
        None if line == "left" => Some(Request::Left),
        _ => None,
    });
    Some((request, end + 1))
}

/// A job that waits or was taken.
#[derive(Clone, Debug)]
struct Job {
    id: u64,
    payload: Arc<str>,
}

/// A line of the log.
#[derive(Clone, Debug)]
enum Record {
    Put(Job),
    Done(u64),
}

impl Record {
    fn write(&self, log: &mut Vec<u8>) {
        match self {
            Record::Put(Job { id, payload }) => writeln!(log, "put {id} {payload}"),
            Record::Done(id) => writeln!(log, "done {id}"),
        }
        .expect("a vector takes every byte");
    }
}

fn is_faulty() -> bool {
    static FAULTY: LazyLock<bool> = LazyLock::new(|| fault() == 1);
    *FAULTY
}

fn reply_ok(reply: &mut Vec<u8>, id: u64) {
    writeln!(reply, "ok {id}").expect("a vector takes every byte");
}

fn reply_job(reply: &mut Vec<u8>, job: &Job) {
    writeln!(reply, "job {} {}", job.id, job.payload).expect("a vector takes every byte");
}

fn reply_left(reply: &mut Vec<u8>, jobs: usize) {
    writeln!(reply, "left {jobs}").expect("a vector takes every byte");
}

/// The log of the queue with this number.
pub(crate) fn log_file(number: u64) -> PathBuf {
    std::env::temp_dir().join(format!("selvedge-figures-jobs-{number}.log"))
}

/// What a log says at the start of a server.
#[derive(Debug)]
struct Recovered {
    path: PathBuf,
    /// The length of the log up to its last whole line. What follows is a record that no reply
    /// acknowledges, so the recovery cuts it off.
    length: u64,
    /// The next job's number.
    next: u64,
    /// The jobs that are not done, in the order of their numbers.
    jobs: Vec<Job>,
}

/// Reads the log of a queue, which may be absent, and makes it ready for more records.
fn recover(number: u64) -> io::Result<Recovered> {
    let path = log_file(number);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
    let text = fs::read_to_string(&path)?;
    let length = text.rfind('\n').map_or(0, |end| end + 1);
    let (mut next, mut jobs) = (0, BTreeMap::new());
    for line in text[..length].lines() {
        let mut words = line.splitn(3, ' ');
        let kind = words.next();
        let id = words.next().and_then(|id| id.parse::<u64>().ok());
        match (kind, id, words.next()) {
            (Some("put"), Some(id), Some(payload)) => {
                next = next.max(id + 1);
                jobs.insert(id, Arc::from(payload));
            }
            (Some("done"), Some(id), None) => {
                jobs.remove(&id);
            }
            _ => return Err(io::Error::other(format!("no record of a log: {line:?}"))),
        }
    }
    file.set_len(length as u64)?;
    file.sync_all()?;
    let jobs = jobs.into_iter().map(|(id, payload)| Job { id, payload }).collect();
    Ok(Recovered { path, length: length as u64, next, jobs })
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn say_port(address: SocketAddr) {
    println!("port {}", address.port());
    io::stdout().flush().expect("the parent process reads the port");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        assert_eq!(first(b"put a b\ntake\n"), Some((Some(Request::Put("a b")), 8)));
        assert_eq!(first(b"take\n"), Some((Some(Request::Take), 5)));
        assert_eq!(first(b"done 7\n"), Some((Some(Request::Done(7)), 7)));
        assert_eq!(first(b"left\n"), Some((Some(Request::Left), 5)));
        assert_eq!(first(b"done x\n"), Some((None, 7)));
        assert_eq!(first(b"put a"), None);
    }

    #[test]
    fn a_log_gives_back_what_is_not_done_and_loses_half_a_record() {
        let number = u64::from(std::process::id()) << 8;
        let path = log_file(number);
        let mut log = Vec::new();
        for id in 0..3 {
            Record::Put(Job { id, payload: "p q".into() }).write(&mut log);
        }
        Record::Done(1).write(&mut log);
        let whole = log.len() as u64;
        log.extend_from_slice(b"put 3 p");
        fs::write(&path, log).unwrap();
        let recovered = recover(number).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        fs::remove_file(&path).unwrap();
        assert_eq!(recovered.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((recovered.next, recovered.length, length), (3, whole, whole));
        assert_eq!(&*recovered.jobs[0].payload, "p q");
    }
}
