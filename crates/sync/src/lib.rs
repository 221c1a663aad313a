//! What threads share.
//!
//! | | waits for | |
//! |---|---|---|
//! | [`MVar`] | a value, or room for one | a variable that is full or empty |
//! | [`Fifo`] | a value | an unbounded queue |
//! | [`BoundedFifo`] | a value, or room for one | a queue with back-pressure, and ends that close it |
//! | [`Mutex`] | its turn | one at a time |
//! | [`RwLock`] | its turn | many readers or one writer |
//! | [`Semaphore`] | permits | a number of them |
//! | [`Condition`] | a notification | what is then looked at with the mutex |
//! | [`Barrier`] | the others | all go on together |
//! | [`Event`], [`Latch`] | something to happen, once or so many times | until it has, and not after |
//! | [`OnceCell`] | who makes the value | made once, by whoever needs it first |
//! | [`Promise`] | a value | given once, for any number of readers |
//! | [`one_shot`] | a value | given once, to one that owns it |
//! | [`broadcast`] | the next value | every listener gets every value |
//! | [`watch`] | a change | whoever looks sees the latest |
//!
//! Each is a [`WaitQueue`](selvedge_core::WaitQueue) with its own [`Role`](selvedge_core::Role)s: what a thread waits for is handed
//! directly to the one that has waited longest, which finds it when it goes on. So nobody can come in between, and all are
//! served first come, first served; but for the [`Mutex`], which somebody who runs may lock once before one who still sleeps.
//!
//! # Cancellation
//! A wait is given up by dropping its future, within a `select!`, by a time-out, or with its thread. The object is then as it would be without that
//! waiter: it has left the queue in constant time, and what it had been handed but not collected goes to the next, or back. Each type says
//! what that means for it.
//!
//! # Where they work
//! In threads of ours under every scheduler, and under foreign executors. From ordinary OS threads, where nothing can be awaited, each
//! has blocking operations as well; [`wait_blocking`] does it for any future, [`wait_blocking_for`] with a time limit.
//!
//! Unless they say `local` they may be shared between OS threads. `MVar::new_local` and so on make objects that stay on one
//! and use no atomic operation.

mod barrier;
mod blocking;
mod blocking_guard;
mod bounded_fifo;
mod broadcast;
mod condition;
mod event;
mod fifo;
mod holder;
mod mutex;
mod mvar;
mod once_cell;
mod one_shot;
mod owner;
mod promise;
mod rw_lock;
mod semaphore;
mod watch;

pub use barrier::{Barrier, Passed};
pub use blocking::{wait_blocking, wait_blocking_for};
pub use blocking_guard::BlockingGuard;
#[doc(hidden)]
pub use blocking_guard::Recorded;
pub use bounded_fifo::{BoundedFifo, Closed, Putter, Taker, TryPutError, TryTakeError};
pub use broadcast::{Broadcaster, ListenError, Listener, TryListenError, broadcast, broadcast_local};
pub use condition::Condition;
pub use event::{Event, Latch};
pub use fifo::Fifo;
pub use holder::{Holder, Recursion};
pub use mutex::{Guard, Mutex, OwnedGuard};
pub use mvar::MVar;
pub use once_cell::OnceCell;
pub use one_shot::{NoReply, Replier, Reply, one_shot, one_shot_local};
pub use owner::Owner;
pub use promise::{Broken, Fulfiller, Promise};
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
pub use selvedge_core::{Local, Shared};
pub use semaphore::{OwnedPermit, Permit, Semaphore};
pub use watch::{Setter, Unwatchable, Watcher, watch, watch_local};
