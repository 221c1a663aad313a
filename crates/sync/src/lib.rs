//! What threads share: [`MVar`], [`Fifo`], [`Mutex`].
//!
//! Each is a [`WaitQueue`](selvedge_core::WaitQueue) with its own [`Role`](selvedge_core::Role)s: a value or the lock is handed
//! directly to the one that has waited longest, which finds it when it goes on. Any number may wait, and a waiter that gives up
//! leaves the object as it would be without it: nothing handed to it is lost.
//!
//! `MVar::new` and so on make objects that may be shared between OS threads; `MVar::new_local` those that stay on one and save the
//! lock. All of them
//! work under foreign executors too.

mod barrier;
mod blocking;
mod bounded_fifo;
mod broadcast;
mod condition;
mod event;
mod fifo;
mod holder;
mod mutex;
mod mvar;
mod once_cell;
mod promise;
mod rw_lock;
mod semaphore;
mod watch;

pub use barrier::{Barrier, Passed};
pub use blocking::{wait_blocking, wait_blocking_for};
pub use bounded_fifo::{BoundedFifo, Closed, Putter, Taker, TryPutError, TryTakeError};
pub use broadcast::{Broadcaster, ListenError, Listener, TryListenError, broadcast, broadcast_local};
pub use condition::Condition;
pub use event::{Event, Latch};
pub use fifo::Fifo;
pub use holder::{Holder, Recursion};
pub use mutex::{Guard, Mutex, OwnedGuard};
pub use mvar::MVar;
pub use once_cell::OnceCell;
pub use promise::{Broken, Fulfiller, Promise};
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
pub use selvedge_core::{Local, Shared};
pub use semaphore::{OwnedPermit, Permit, Semaphore};
pub use watch::{Setter, Unwatchable, Watcher, watch, watch_local};
