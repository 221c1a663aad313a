//! The queue of jobs as threads and transactions of ours. `mod.rs` has the protocol.
//!
//! A connection is a thread. Its transactions move jobs between the variables, and wait for a job,
//! or for the log, by `retry`. One more thread writes the log.

use std::io;
use std::sync::Arc;

use selvedge_core::spawn;
use selvedge_io::fs::File;
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_stm::{TMap, TQueue, TWord, Tried, Tx, atomically};

use super::{
    BUFFER, Job, Record, Recovered, Request, anywhere, first, recover, reply_job, reply_left, reply_ok,
    say_port,
};
use crate::child::runtime::{Ours, Runtime, Waits};

/// The variables of the server.
struct OurJobs {
    /// The number of the next job.
    next: TWord<u64>,
    /// The jobs that no connection has taken, and their number.
    waiting: TQueue<Job>,
    waiting_count: TWord<u64>,
    /// The jobs that a connection has taken.
    taken: TMap<u64, Arc<str>>,
    /// The records that the log lacks.
    records: TQueue<Record>,
    /// How many records there have been.
    recorded: TWord<u64>,
    /// How many of them the log has.
    logged: TWord<u64>,
}

impl OurJobs {
    fn new(recovered: &Recovered) -> OurJobs {
        OurJobs {
            next: TWord::new(recovered.next),
            waiting: TQueue::new(),
            waiting_count: TWord::new(0),
            taken: TMap::new(),
            records: TQueue::new(),
            recorded: TWord::new(0),
            logged: TWord::new(0),
        }
    }

    fn record(&self, tx: &Tx, record: Record) -> Tried<u64> {
        self.records.push(tx, record)?;
        let place = self.recorded.read(tx)? + 1;
        self.recorded.write(tx, place);
        Ok(place)
    }

    /// Lets the jobs be taken.
    fn wait(&self, tx: &Tx, jobs: &[Job]) -> Tried<()> {
        for job in jobs {
            self.waiting.push(tx, job.clone())?;
        }
        self.waiting_count.modify(tx, |count| count + jobs.len() as u64)
    }

    /// Waits until the log has the record with this place.
    async fn logged(&self, place: u64) {
        atomically(|tx| tx.check(self.logged.read(tx)? >= place)).await;
    }

    /// Puts a job. The thread of the log lets it be taken.
    async fn put(&self, payload: &str) -> u64 {
        let payload: Arc<str> = payload.into();
        let (id, place) = atomically(|tx| {
            let id = self.next.read(tx)?;
            self.next.write(tx, id + 1);
            Ok((id, self.record(tx, Record::Put(Job { id, payload: payload.clone() }))?))
        })
        .await;
        self.logged(place).await;
        id
    }

    async fn take(&self) -> Job {
        atomically(|tx| {
            let job = self.waiting.pop(tx)?;
            self.waiting_count.modify(tx, |count| count - 1)?;
            self.taken.insert(tx, job.id, job.payload.clone())?;
            Ok(job)
        })
        .await
    }

    /// Whether the job was taken before.
    async fn done(&self, id: u64) -> bool {
        let place = atomically(|tx| match self.taken.remove(tx, &id)? {
            Some(_) => Ok(Some(self.record(tx, Record::Done(id))?)),
            None => Ok(None),
        })
        .await;
        let Some(place) = place else { return false };
        self.logged(place).await;
        true
    }

    /// Writes the records that come into the log, from `offset` on.
    async fn log(&self, file: File, mut offset: u64, sync: bool) -> io::Result<()> {
        let (mut buffer, mut jobs, mut logged) = (Vec::new(), Vec::new(), 0);
        loop {
            let records = atomically(|tx| {
                tx.check(!self.records.is_empty(tx)?)?;
                self.records.flush(tx)
            })
            .await;
            buffer.clear();
            jobs.clear();
            for record in &records {
                record.write(&mut buffer);
                if let Record::Put(job) = record {
                    jobs.push(job.clone());
                }
            }
            let (written, back) = file.write_all_at(buffer, offset).await;
            written?;
            buffer = back;
            offset += buffer.len() as u64;
            if sync {
                file.sync_data().await?;
            }
            logged += records.len() as u64;
            atomically(|tx| {
                self.logged.write(tx, logged);
                self.wait(tx, &jobs)
            })
            .await;
        }
    }

    async fn connection(&self, stream: TcpStream) -> io::Result<()> {
        let (mut received, mut reply) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
        while stream.read_to_spare(&mut received).await? > 0 {
            let mut begin = 0;
            while let Some((request, length)) = first(&received[begin..]) {
                reply.clear();
                match request {
                    Some(Request::Put(payload)) => reply_ok(&mut reply, self.put(payload).await),
                    Some(Request::Take) => reply_job(&mut reply, &self.take().await),
                    Some(Request::Done(id)) if self.done(id).await => reply_ok(&mut reply, id),
                    Some(Request::Left) => {
                        let left = atomically(|tx| self.waiting_count.read(tx)).await;
                        reply_left(&mut reply, left as usize);
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
        let file = File::options().write(true).open(&recovered.path).await.expect("the log is writable");
        let log = jobs.clone();
        drop(spawn(async move {
            let stopped = log.log(file, recovered.length, sync).await;
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
