//! [`SharedDriver`]: the driver of MPI, which the OS threads of the process hold in turn, and the
//! message loop among them.
//!
//! `comm.rs` makes calls through it, and `message_loop.rs` looks through it when no thread does.
//!
//! # Which OS thread makes a call of MPI
//! The holder of the driver makes it, and the driver lies in a [`MailLock`]. If the library allows
//! that all OS threads make calls, one at a time, the thread that asks for a call tries to hold the
//! driver, and makes the call itself. So a short message costs no hand-over to another OS thread.
//! If another OS thread holds the driver, the order stays in the queue, and the holder carries it
//! out before it is done with the driver. No thread waits for the driver, and a holder waits for
//! nothing, but for a split (`driver.rs`). If the library wants one OS thread to make all calls, it
//! is the message loop's, and each order rouses it.
//!
//! # The order of calls
//! A holder carries out the orders in the queue before any call of its own. So calls of one thread
//! reach MPI in their order, also if one of them went through the queue and the next one did not;
//! and so do calls of two threads, if the first call was made before the second by an event that
//! both know of.
//!
//! # Which OS thread looks
//! MPI moves messages only while it is called. A thread that is about to park
//! [watches](SharedDriver::watch): it looks by itself for a short time. There are three states:
//!
//! - *Watched*: threads watch, or have done so lately. The bell of this rank is not armed, because
//!   that would cost each message a line of memory that two CPUs write in turn. The message loop
//!   takes short naps, and looks after each.
//! - *Rung*: no thread has watched during a nap. The message loop arms the bell, looks, and sleeps
//!   at the bell.
//! - *Not rung*: no bell tells of all that can happen. The message loop looks at its own pace.
//!
//! A watch that has not found its message, or has while other threads wait for theirs, arms the
//! bell and looks once more. What comes after the bell was armed rings, and the message loop looks.
//! If no bell tells of all, this watch rouses the message loop. So does a call that is not done at
//! once, whatever thread has begun it. Another watch that has found its message leaves the bell as
//! it is: a thread of this process that wants a message looks itself, and the message loop looks
//! after its nap. If the watch has disarmed the bell, the message loop may be in its long sleep, so
//! the watch rouses it to the short one.
//!
//! While no call is under way, a watch holds the driver for several looks. An order that comes
//! meanwhile ends them, so its thread waits for one look at most.
//!
//! # A message for the thread that looks
//! A frame that a watch finds is [offered](OfferedFrames) to its thread before its bytes are
//! copied. `job.rs` takes it if the thread asks for it, and if no receive that waits in the
//! mailbox, and no message that lies there, is before it. So the message meets no lock of the
//! mailbox and no table. The mailbox gets messages of other ranks under the driver alone, so the
//! answer holds until the message is taken. A frame behind a message that has begun to come is not
//! offered.
//!
//! # Calls back
//! Listeners, ends of calls and wakers run while their OS thread holds the driver. If one of them
//! asks for a call, it finds the driver held, and the order stays in the queue.
//!
//! # A future that is dropped
//! What MPI reads and writes belongs to the list of calls in the driver. The future has a handle of
//! the answer alone, so dropping it changes nothing there.
//!
//! # Panics
//! A panic while the driver is held ends the process: MPI may still write to memory of the calls,
//! and the other ranks must not wait for this one for ever. A launcher ends the job then. Foreign
//! code runs in `quietly`, which ends a panic before.

use super::driver::{Drive, DriverStanding};
use super::error::MpiError;
use super::frames::OfferedFrames;
use super::mail_lock::MailLock;
use super::orders::{CommId, LoopOrder, LoopOrders, LoopSleep};
use crate::patience::WatchPatience;
use crate::processes::Doorbells;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The driver, and what its holders have in common.
#[derive(Debug)]
pub(super) struct SharedDriver {
    /// `None` when MPI has ended.
    driver: MailLock<Option<Box<dyn Drive>>>,
    /// Whether OS threads other than the message loop's may hold the driver.
    is_serialized: bool,
    orders: LoopOrders,
    sleep: LoopSleep,
    patience: WatchPatience,
    /// Whether a thread has watched since the message loop asked last.
    has_watched: AtomicBool,
}

/// A watch lets other OS threads have its CPU after this number times [`HELD_LOOKS`]: some
/// microseconds.
const LOOKS: u32 = 1;

/// The looks of a watch for which it holds the driver once, because to hold it takes as long as a
/// look.
const HELD_LOOKS: u32 = 8;

/// The messages that a watch takes before it asks whether that of its thread is among them.
const WATCHED_MAX: usize = 1;

/// The messages that the message loop takes from one communicator at most, so that orders are not
/// delayed.
const FOUND_MAX: usize = 64;

/// Ends the process if it is dropped, in a panic.
struct EndsProcess;

impl Drop for EndsProcess {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Runs code of a holder, of which a panic ends the process.
fn held<R>(work: impl FnOnce() -> R) -> R {
    let guard = EndsProcess;
    let result = work();
    std::mem::forget(guard);
    result
}

impl SharedDriver {
    /// `is_serialized` says that the library allows calls by all OS threads, one at a time.
    pub(super) fn new(driver: Box<dyn Drive>, is_serialized: bool) -> SharedDriver {
        SharedDriver {
            driver: MailLock::new(Some(driver)),
            is_serialized,
            orders: LoopOrders::default(),
            sleep: LoopSleep::default(),
            patience: WatchPatience::new(LOOKS),
            has_watched: AtomicBool::new(false),
        }
    }

    /// Asks for a call. When MPI has ended the order is dropped, which its waiter notices.
    pub(super) fn put(&self, order: LoopOrder) {
        if !self.orders.put(order) {
            return;
        }
        if self.is_serialized {
            self.driver.post(|driver| self.serve(driver));
        } else {
            self.driver.mark();
            self.sleep.rouse();
        }
    }

    /// Sends a frame of these parts, if that is possible at once. `false` if nothing was sent.
    pub(super) fn send_frame(&self, comm: CommId, dest: i32, parts: &[&[u8]]) -> bool {
        let send = |driver: &mut dyn Drive| {
            let is_sent = driver.send_frame(comm, dest, parts);
            if driver.has_begun() {
                self.sleep.rouse();
            }
            is_sent
        };
        self.is_serialized && self.hold(send) == Some(true)
    }

    /// Looks for messages for a short time, or for `limit`, until `until` is true. It is asked when
    /// something has happened: here, or by what `has_changed` says. `others_wait` says that other
    /// threads of this process wait for messages.
    pub(super) fn watch(
        &self,
        others_wait: bool,
        limit: Option<Duration>,
        offered: &mut OfferedFrames<'_, '_>,
        has_changed: &dyn Fn() -> bool,
        until: &mut dyn FnMut() -> bool,
    ) {
        if !self.is_serialized {
            return;
        }
        let doorbells = self.sleep.doorbells();
        // Mostly it is true, and then the line of memory stays with all CPUs.
        if !self.has_watched.load(Ordering::Relaxed) {
            self.has_watched.store(true, Ordering::Relaxed);
        }
        let was_armed = doorbells.is_some_and(|doorbells| doorbells.disarm());
        let mut has_requests = false;
        let mut hold_for = |looks: u32| {
            let look = |driver: &mut dyn Drive| {
                let has_happened = (0..looks).any(|_| {
                    hint::spin_loop();
                    // A thread with an order does not wait until all looks are over.
                    driver.look(WATCHED_MAX, Some(offered)) || self.driver.is_marked() || has_changed()
                });
                has_requests = driver.has_requests();
                has_happened
            };
            (self.hold(look) == Some(true), has_requests)
        };
        let mut is_alone = true;
        let look = || {
            // The message loop looks too while a call is under way, and finds the driver free.
            let (holds, looks) = if is_alone { (1, HELD_LOOKS) } else { (HELD_LOOKS, 1) };
            (0..holds).any(|_| {
                let (has_happened, has_requests) = hold_for(looks);
                is_alone = !has_requests;
                has_happened
            })
        };
        let has_come = self.patience.look(limit, look, until);
        match has_come && !others_wait {
            true if has_requests => self.sleep.rouse(),
            // It sleeps at the bell for long.
            true if was_armed => self.sleep.rouse_to_choose(),
            true => {}
            false => self.leave(has_come),
        }
    }

    /// A watch is over, and threads wait for messages.
    fn leave(&self, has_come: bool) {
        // The message loop arms the bell too from now on, if it should have disarmed it.
        self.has_watched.store(false, Ordering::SeqCst);
        if let Some(doorbells) = self.sleep.doorbells() {
            doorbells.arm();
        }
        let look = |driver: &mut dyn Drive| {
            driver.look(FOUND_MAX, None);
            (driver.has_requests(), driver.standing())
        };
        let is_left = match self.hold(look) {
            // The holder may have looked before the bell was armed.
            None => true,
            Some((has_requests, _)) if has_come => has_requests,
            Some((_, standing)) => standing.is_outstanding && !standing.is_rung_for_all,
        };
        if is_left {
            self.sleep.rouse();
        }
    }

    /// Works with the driver, after the orders that are there. `None` if it is held, or MPI has
    /// ended.
    fn hold<R>(&self, work: impl FnOnce(&mut dyn Drive) -> R) -> Option<R> {
        let work = |driver: &mut Option<Box<dyn Drive>>| {
            let driver = driver.as_mut()?;
            Some(held(|| work(driver.as_mut())))
        };
        self.driver.hold(work, |driver| self.serve(driver)).flatten()
    }

    /// Carries out the orders in the queue.
    fn serve(&self, driver: &mut Option<Box<dyn Drive>>) {
        let Some(driver) = driver else { return };
        let has_begun = held(|| {
            driver.carry_out_all(&self.orders);
            driver.has_begun()
        });
        if has_begun {
            self.sleep.rouse();
        }
    }
}

/// The side of the message loop: its OS thread alone calls these.
impl SharedDriver {
    /// Where the loop sleeps.
    pub(super) fn sleep(&self) -> &LoopSleep {
        &self.sleep
    }

    /// The loop sleeps at this bell from now on, when it naps.
    pub(super) fn sleep_at(&self, doorbells: Arc<Doorbells>) {
        self.sleep.sleep_at(doorbells);
    }

    /// Looks once: whether something has happened, and how the driver stands then. `None` if
    /// another OS thread holds the driver.
    pub(super) fn look(&self) -> Option<(bool, DriverStanding)> {
        self.hold(|driver| (driver.look(FOUND_MAX, None), driver.standing()))
    }

    /// Whether a thread has begun to watch since the last call. One that began earlier and still
    /// watches leaves the bell as it is.
    pub(super) fn is_watched(&self) -> bool {
        self.has_watched.swap(false, Ordering::SeqCst)
    }

    /// Ends MPI, if nothing is under way. `None` if something is.
    pub(super) fn finish(&self) -> Option<Result<(), MpiError>> {
        let take = |driver: &mut Option<Box<dyn Drive>>| {
            let finished = driver.take_if(|driver| driver.standing().is_finished);
            if finished.is_some() {
                self.orders.close();
            }
            finished
        };
        // Not under the lock, because the call waits for the other ranks.
        self.driver.hold(take, |driver| self.serve(driver)).flatten().map(Drive::finish)
    }
}
