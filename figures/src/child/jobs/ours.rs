//! The queue of jobs as threads and transactions of ours. `jobs.rs` has the protocol.
//!
//! A connection is a thread. Its transactions move jobs between the variables, and wait for a job
//! by `retry`. One more thread waits for records by `retry`, writes the log, and tells each
//! connection that the log has its record: a connection waits for that at its `MVar`, because one
//! connection alone is to be woken.
//!
//! As in `theirs.rs`, an OS thread of the pool writes and syncs, in one call for a group; and the
//! thread writes by itself where nothing is synced.

use super::{
    BUFFER, Job, Record, Recovered, Request, anywhere, first, recover, reply_job, reply_left, reply_ok,
    say_port,
};
use crate::child::runtime::{Ours, Runtime, Waits};
use selvedge_core::spawn;
use selvedge_io::blocking;
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_stm::{TMap, TQueue, TWord, Tried, Tx, atomically};
use selvedge_sync::MVar;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

/// The variables of the server.
struct OurJobs {
    /// The number of the next job.
    next: TWord<u64>,
    /// The jobs that no connection has taken.
    waiting: TQueue<Job>,
    /// The jobs that a connection has taken.
    taken: TMap<u64, Arc<str>>,
    /// The records that the log lacks.
    records: TQueue<Unlogged>,
}

/// A record that the log lacks.
#[derive(Clone)]
struct Unlogged {
    record: Record,
    /// Filled when the log has the record. The connection waits for that, with no other record on
    /// the way.
    logged: Arc<MVar<()>>,
}

impl OurJobs {
    fn new(recovered: &Recovered) -> OurJobs {
        OurJobs {
            next: TWord::new(recovered.next),
            waiting: TQueue::new(),
            taken: TMap::new(),
            records: TQueue::new(),
        }
    }

    fn record(&self, tx: &Tx, record: Record, logged: &Arc<MVar<()>>) -> Tried<()> {
        self.records.push(tx, Unlogged { record, logged: logged.clone() })
    }

    /// Lets the jobs be taken.
    fn wait(&self, tx: &Tx, jobs: &[Job]) -> Tried<()> {
        self.waiting.push_all(tx, jobs.iter().cloned())
    }

    /// Puts a job. The thread of the log lets it be taken.
    async fn put(&self, logged: &Arc<MVar<()>>, payload: &str) -> u64 {
        let payload: Arc<str> = payload.into();
        let id = atomically(|tx| {
            let id = self.next.read(tx)?;
            self.next.write(tx, id + 1);
            self.record(tx, Record::Put(Job { id, payload: payload.clone() }), logged)?;
            Ok(id)
        })
        .await;
        logged.take().await;
        id
    }

    async fn take(&self) -> Job {
        atomically(|tx| {
            let job = self.waiting.pop(tx)?;
            self.taken.insert(tx, job.id, job.payload.clone())?;
            Ok(job)
        })
        .await
    }

    /// Whether the job was taken before.
    async fn done(&self, logged: &Arc<MVar<()>>, id: u64) -> bool {
        let was_taken = atomically(|tx| match self.taken.remove(tx, &id)? {
            Some(_) => self.record(tx, Record::Done(id), logged).map(|()| true),
            None => Ok(false),
        })
        .await;
        if was_taken {
            logged.take().await;
        }
        was_taken
    }

    /// Writes the records that come to the end of the log.
    async fn log(&self, mut file: File, sync: bool) -> io::Result<()> {
        let (mut buffer, mut jobs, mut records) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            atomically(|tx| {
                self.records.flush_into(tx, &mut records)?;
                tx.check(!records.is_empty())
            })
            .await;
            for Unlogged { record, .. } in &records {
                record.write(&mut buffer);
                if let Record::Put(job) = record {
                    jobs.push(job.clone());
                }
            }
            if sync {
                let both = move || {
                    file.write_all(&buffer)?;
                    file.sync_data()?;
                    io::Result::Ok((file, buffer))
                };
                (file, buffer) = blocking(both).await.expect("no panic")?;
            } else {
                file.write_all(&buffer)?;
            }
            buffer.clear();
            if !jobs.is_empty() {
                atomically(|tx| self.wait(tx, &jobs)).await;
                jobs.clear();
            }
            for Unlogged { logged, .. } in records.drain(..) {
                logged.try_put(()).expect("the connection has one record on the way");
            }
        }
    }

    async fn connection(&self, stream: TcpStream) -> io::Result<()> {
        let logged = Arc::new(MVar::empty());
        let (mut received, mut reply) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
        while stream.read_to_spare(&mut received).await? > 0 {
            let mut begin = 0;
            while let Some((request, length)) = first(&received[begin..]) {
                reply.clear();
                match request {
                    Some(Request::Put(payload)) => reply_ok(&mut reply, self.put(&logged, payload).await),
                    Some(Request::Take) => reply_job(&mut reply, &self.take().await),
                    Some(Request::Done(id)) if self.done(&logged, id).await => reply_ok(&mut reply, id),
                    Some(Request::Left) => {
                        let left = atomically(|tx| self.waiting.len(tx)).await;
                        reply_left(&mut reply, left);
                    }
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
    Ours::run(workers as usize, Waits::World, async move {
        let recovered = recover(number).expect("the log is readable");
        let jobs = Arc::new(OurJobs::new(&recovered));
        atomically(|tx| jobs.wait(tx, &recovered.jobs)).await;
        let mut file = OpenOptions::new().write(true).open(&recovered.path).expect("the log is writable");
        file.seek(SeekFrom::Start(recovered.length)).expect("a file has places");
        let log = jobs.clone();
        drop(spawn(async move {
            let stopped = log.log(file, sync).await;
            eprintln!("the log: {stopped:?}");
            std::process::exit(1);
        }));
        let listener = TcpListener::bind(anywhere()).expect("a port is free");
        say_port(listener.local_addr());
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            let jobs = jobs.clone();
            drop(spawn(async move { jobs.connection(stream).await }));
        }
    })
}
