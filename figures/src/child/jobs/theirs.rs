//! The queue of jobs as tasks of tokio, as its users write such a server: the state under a mutex
//! of std, which no task holds while it waits; a `watch` for the state of the log, and `Notify` for
//! jobs. `jobs.rs` has the protocol.
//!
//! With `sync` a thread of tokio's pool for blocking calls writes and syncs, in one call for a
//! group. Without it the task writes by itself, because a write into the page cache takes less time
//! than a hand-over.

use super::{
    BUFFER, Job, Record, Recovered, Request, anywhere, first, recover, reply_job, reply_left, reply_ok,
    say_port,
};
use crate::child::runtime::{Runtime, Tokio, Waits};
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

#[derive(Default)]
struct TheirState {
    next: u64,
    waiting: VecDeque<Job>,
    taken: HashMap<u64, Arc<str>>,
    /// The text of the records that the log lacks.
    records: Vec<u8>,
    /// How many records there have been.
    recorded: u64,
}

impl TheirState {
    fn record(&mut self, record: &Record) -> u64 {
        record.write(&mut self.records);
        self.recorded += 1;
        self.recorded
    }
}

struct TheirJobs {
    state: Mutex<TheirState>,
    /// A job waits.
    arrived: Notify,
    /// A record waits.
    recorded: Notify,
    /// How many records the log has.
    logged: watch::Sender<u64>,
}

impl TheirJobs {
    fn new(recovered: &Recovered) -> TheirJobs {
        let state = TheirState {
            next: recovered.next,
            waiting: recovered.jobs.iter().cloned().collect(),
            ..TheirState::default()
        };
        TheirJobs {
            state: Mutex::new(state),
            arrived: Notify::new(),
            recorded: Notify::new(),
            logged: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, TheirState> {
        self.state.lock().expect("no holder panics")
    }

    async fn until_logged(&self, logged: &mut watch::Receiver<u64>, place: u64) {
        self.recorded.notify_one();
        logged.wait_for(|logged| *logged >= place).await.expect("the server lives");
    }

    async fn put(&self, logged: &mut watch::Receiver<u64>, payload: &str) -> u64 {
        let (job, place) = {
            let mut state = self.state();
            let job = Job { id: state.next, payload: payload.into() };
            state.next += 1;
            let record = Record::Put(job);
            let place = state.record(&record);
            let Record::Put(job) = record else { unreachable!("it is a put") };
            (job, place)
        };
        self.until_logged(logged, place).await;
        let id = job.id;
        self.state().waiting.push_back(job);
        self.arrived.notify_one();
        id
    }

    async fn take(&self) -> Job {
        loop {
            {
                let mut state = self.state();
                if let Some(job) = state.waiting.pop_front() {
                    state.taken.insert(job.id, job.payload.clone());
                    return job;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Whether the job was taken before.
    async fn done(&self, logged: &mut watch::Receiver<u64>, id: u64) -> bool {
        let place = {
            let mut state = self.state();
            if state.taken.remove(&id).is_none() {
                return false;
            }
            state.record(&Record::Done(id))
        };
        self.until_logged(logged, place).await;
        true
    }

    /// Writes the records that come to the end of the log.
    async fn log(&self, mut file: File, sync: bool) -> io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            let recorded = {
                let mut state = self.state();
                std::mem::swap(&mut buffer, &mut state.records);
                state.recorded
            };
            if buffer.is_empty() {
                self.recorded.notified().await;
                continue;
            }
            if sync {
                let both = move || {
                    file.write_all(&buffer)?;
                    file.sync_data()?;
                    io::Result::Ok((file, buffer))
                };
                (file, buffer) = tokio::task::spawn_blocking(both).await.expect("no panic")?;
            } else {
                file.write_all(&buffer)?;
            }
            buffer.clear();
            self.logged.send_replace(recorded);
        }
    }

    async fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut logged = self.logged.subscribe();
        let (mut received, mut reply) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
        while stream.read_buf(&mut received).await? > 0 {
            let mut begin = 0;
            while let Some((request, length)) = first(&received[begin..]) {
                reply.clear();
                match request {
                    Some(Request::Put(payload)) => {
                        reply_ok(&mut reply, self.put(&mut logged, payload).await);
                    }
                    Some(Request::Take) => reply_job(&mut reply, &self.take().await),
                    Some(Request::Done(id)) if self.done(&mut logged, id).await => reply_ok(&mut reply, id),
                    Some(Request::Left) => reply_left(&mut reply, self.state().waiting.len()),
                    Some(Request::Done(_)) | None => return Ok(()),
                }
                stream.write_all(&reply).await?;
                begin += length;
            }
            received.drain(..begin);
            received.reserve(BUFFER);
        }
        Ok(())
    }
}

/// Serves the queue with this number until the process is killed. Without `sync` the log is
/// written, and not synced.
pub(crate) fn serve(workers: u64, number: u64, sync: bool) {
    Tokio::run(workers as usize, Waits::World, async move {
        let recovered = recover(number).expect("the log is readable");
        let jobs = Arc::new(TheirJobs::new(&recovered));
        let mut file = OpenOptions::new().write(true).open(&recovered.path).expect("the log is writable");
        file.seek(SeekFrom::Start(recovered.length)).expect("a file has places");
        let log = jobs.clone();
        tokio::spawn(async move {
            let stopped = log.log(file, sync).await;
            eprintln!("the log: {stopped:?}");
            std::process::exit(1);
        });
        let listener = TcpListener::bind(anywhere()).await.expect("a port is free");
        say_port(listener.local_addr().expect("it is bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            stream.set_nodelay(true).expect("it is a TCP socket");
            let jobs = jobs.clone();
            tokio::spawn(async move { jobs.connection(stream).await });
        }
    })
}
