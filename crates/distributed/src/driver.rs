//! [`RankDriver`]: the scheduler of a rank's graph. It runs the steps of the rank one by one on the
//! rank's thread, and between two of them it sends and receives.
//!
//! ```text
//! a turn     run steps ─▶ send what is unsent ─▶ open what has come ─▶ let other threads run ─▶ ..
//! no step    send, open ─▶ settle ─▶ passive: pass the token on, wait for a message ─▶ ..
//! ```
//!
//! The thread is one in direct style, so the driver waits for a message in the middle of
//! `Graph::run`, and other threads of the OS thread run meanwhile. The run lives on while the
//! driver has its `LiveEnvironment`, with which it puts what it has received.
//!
//! **When a rank is passive.** `job.start()` and the worker have no step, nothing is unsent, no
//! message is there, and the graph was settled since the last step. To settle it, the driver rings
//! with an empty put and returns: `cnc` then has late steps look for their items again, and calls
//! the driver once more. A message may come between the look and the wait; the wait ends at once
//! then.
//!
//! **The end.** Rank 0 finds it (`termination.rs`) and tells the others. Each driver drops its
//! environment and returns, and its run ends. A rank with a fault tells the others to stop. A rank
//! that can reach another one no more revokes the communicator, so that no rank waits for it.

use crate::outbox::{Outbox, UnsentBatch};
use crate::ports::{DRIVERS, Ports, ReceivedQueue};
use crate::telling::tell;
use crate::termination::{PassiveMove, RankTermination, TerminationToken};
use selvedge_cnc::schedulers::{GraphJob, Scheduler};
use selvedge_cnc::{Canceller, LiveEnvironment, ReadyStep, TagCol};
use selvedge_core::Time;
use selvedge_direct::{wait, yield_now};
use selvedge_mpi::{ANY, Communicator, Error, Matched};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::iter;
use std::time::Duration;

/// After this time a turn ends: a put for another rank waits no longer, if no single step does.
const TURN: Duration = Duration::from_micros(50);

/// With this number of puts that are not sent, a turn ends.
const UNSENT_MAX: usize = 256;

/// What one driver tells another: its kind, and the count and the colour of a token.
type DriverMessage = (u8, i64, bool);

/// The token.
const TOKEN: u8 = 0;
/// The run has ended well.
const OVER: u8 = 1;
/// A rank has a fault, so no other step is to begin.
const STOP: u8 = 2;

/// What a driver needs of its rank.
pub(crate) struct DriverParts<'a, 'g> {
    pub(crate) comm: &'a Communicator,
    pub(crate) ports: &'a Ports<'g>,
    pub(crate) outbox: &'a Outbox,
    pub(crate) queue: &'a ReceivedQueue<'g>,
    /// The tags of the step "received".
    pub(crate) received: TagCol<'g, u32>,
    pub(crate) canceller: Canceller,
    /// The most steps of a turn.
    pub(crate) turn_steps: u32,
}

/// The scheduler of one rank, for one run.
pub(crate) struct RankDriver<'a, 'g> {
    parts: DriverParts<'a, 'g>,
    /// `None` when the run is over for this rank.
    live: RefCell<Option<LiveEnvironment<'g>>>,
    termination: RefCell<RankTermination>,
    /// The graph was settled since its last step.
    is_settled: Cell<bool>,
    /// Why this rank can go on no more.
    error: RefCell<Option<Error>>,
    traffic: Cell<RankTraffic>,
}

/// What a rank has sent to other ranks, in all runs of a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankTraffic {
    /// The items, tags and fetches.
    pub puts: u64,
    /// The messages in which they went. The messages that find the end of a run are not among them.
    pub messages: u64,
}

/// What the driver does without a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleMove {
    /// It looks for a step again.
    Look,
    /// It returns: the run is over, or `cnc` is to settle the graph.
    Return,
}

impl<'a, 'g> RankDriver<'a, 'g> {
    pub(crate) fn new(parts: DriverParts<'a, 'g>, live: LiveEnvironment<'g>) -> RankDriver<'a, 'g> {
        let termination = RankTermination::new(parts.comm.rank(), parts.comm.size());
        RankDriver {
            parts,
            live: RefCell::new(Some(live)),
            termination: RefCell::new(termination),
            is_settled: Cell::new(false),
            error: RefCell::new(None),
            traffic: Cell::default(),
        }
    }

    /// What the rank has sent, and why it could go on no more, if it could not.
    pub(crate) fn end(self) -> (RankTraffic, Option<Error>) {
        (self.traffic.get(), self.error.into_inner())
    }

    fn is_over(&self) -> bool {
        self.live.borrow().is_none()
    }

    /// The run is over for this rank.
    fn finish(&self) {
        let live = self.live.take();
        drop(live);
    }

    /// Tells all other ranks.
    fn tell_others(&self, kind: u8) -> Result<(), Error> {
        let comm = self.parts.comm;
        let others = (0..comm.size()).filter(|&rank| rank != comm.rank());
        others.map(|rank| self.tell(rank, (kind, 0, false))).fold(Ok(()), Result::and)
    }

    fn tell(&self, rank: usize, message: DriverMessage) -> Result<(), Error> {
        tell(self.parts.comm, rank, DRIVERS, message)
    }

    /// Stops the run on all ranks.
    fn stop_all(&self) {
        self.finish();
        self.parts.canceller.cancel();
        // A rank that has ended need not hear of it.
        let _ = self.tell_others(STOP);
    }

    /// Sends what is unsent, and opens what has come. True if there is something to put.
    fn exchange(&self) -> bool {
        self.try_exchange().unwrap_or_else(|error| self.fail(error))
    }

    /// This rank can go on no more, and says so to the ranks that wait for it.
    fn fail(&self, error: Error) -> bool {
        self.error.borrow_mut().get_or_insert(error);
        self.finish();
        self.parts.canceller.cancel();
        self.parts.comm.revoke();
        false
    }

    fn try_exchange(&self) -> Result<bool, Error> {
        let is_cancelled = self.live.borrow().as_ref().map(LiveEnvironment::is_cancelled);
        match is_cancelled {
            None => return Ok(false),
            Some(true) => {
                self.stop_all();
                return Ok(false);
            }
            Some(false) => {}
        }
        for UnsentBatch { to, tag, batch } in self.parts.outbox.take() {
            self.termination.borrow_mut().sent();
            let RankTraffic { puts, messages } = self.traffic.get();
            let traffic = RankTraffic { puts: puts + batch.puts() as u64, messages: messages + 1 };
            self.traffic.set(traffic);
            batch.send(self.parts.comm, to, tag)?;
        }
        let mut senders = Vec::new();
        while let Some(message) = self.parts.comm.improbe(ANY, ANY)? {
            senders.extend(self.open(message)?);
        }
        self.put_received(&senders);
        Ok(!senders.is_empty())
    }

    /// Opens a message. The sender, if there is something to put.
    fn open(&self, message: Matched) -> Result<Option<u32>, Error> {
        let status = message.status();
        if status.tag != DRIVERS {
            self.termination.borrow_mut().received();
            self.parts.queue.push(status.source, self.parts.ports.open(message)?);
            return Ok(Some(status.source as u32));
        }
        match message.recv::<DriverMessage>()? {
            (TOKEN, count, is_black) => {
                self.termination.borrow_mut().take(TerminationToken { count, is_black })
            }
            (OVER, ..) => self.finish(),
            _ => {
                self.finish();
                self.parts.canceller.cancel();
            }
        }
        Ok(None)
    }

    /// Gives the graph what was received from these ranks, to put it.
    fn put_received(&self, senders: &[u32]) {
        if let Some(live) = &*self.live.borrow()
            && !senders.is_empty()
        {
            let received = self.parts.received;
            // An error says that the run was stopped, and the next look at it tells the others.
            let _ = live.puts(|env| senders.iter().try_for_each(|&from| env.put_tag(received, from)));
        }
    }

    /// Acts when no step is ready.
    fn idle(&self) -> IdleMove {
        if self.exchange() {
            return IdleMove::Look;
        }
        if self.is_over() {
            return IdleMove::Return;
        }
        if !self.is_settled.replace(true) {
            if let Some(live) = &*self.live.borrow() {
                let _ = live.puts(|_| Ok(()));
            }
            return IdleMove::Return;
        }
        match self.rest() {
            Ok(next) => next,
            Err(error) => {
                self.fail(error);
                IdleMove::Return
            }
        }
    }

    /// The rank is passive: passes the token on, and waits for a message.
    fn rest(&self) -> Result<IdleMove, Error> {
        let next = self.termination.borrow_mut().passive();
        match next {
            PassiveMove::Wait => {}
            PassiveMove::Pass(to, TerminationToken { count, is_black }) => {
                self.tell(to, (TOKEN, count, is_black))?;
            }
            PassiveMove::Over => {
                self.finish();
                self.tell_others(OVER)?;
                return Ok(IdleMove::Return);
            }
        }
        let message = wait(self.parts.comm.mprobe(ANY, ANY))?;
        let sender = self.open(message)?;
        self.put_received(sender.as_slice());
        Ok(IdleMove::Look)
    }
}

impl Scheduler for RankDriver<'_, '_> {
    fn run<'j>(&self, job: &GraphJob<'j>) {
        let mut worker = job.worker();
        let mut first: VecDeque<ReadyStep<'j>> = job.start().into();
        let mut turn = RankTurn::new(self.parts.turn_steps);
        loop {
            // Also the steps of a run that was stopped are run: the worker drops them.
            match worker.newest().or_else(|| first.pop_front()) {
                Some(ready) => {
                    worker.run(ready);
                    self.is_settled.set(false);
                    if !turn.ends_after_step(self.parts.outbox.unsent()) {
                        continue;
                    }
                    self.exchange();
                    yield_now();
                }
                None if self.idle() == IdleMove::Return => return,
                None => {}
            }
            // What was received is put at once, so that the steps that wait for it are the next
            // ones.
            for ready in iter::from_fn(|| Some(job.start()).filter(|steps| !steps.is_empty())).flatten() {
                worker.run(ready);
                self.is_settled.set(false);
            }
            turn = RankTurn::new(self.parts.turn_steps);
        }
    }
}

/// A part of a run in which the rank neither sends nor receives.
struct RankTurn {
    /// The steps that are left of it.
    steps: u32,
    ends: Time,
}

impl RankTurn {
    fn new(steps: u32) -> RankTurn {
        RankTurn { steps, ends: Time::now() + TURN }
    }

    /// Whether the turn ends after another step, with this number of puts that are not sent.
    fn ends_after_step(&mut self, unsent: usize) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps == 0 || unsent >= UNSENT_MAX || Time::now() >= self.ends
    }
}
