//! Objects that threads share: locks, queues, and other objects that a thread can wait for.
//!
//! | | a thread waits for | the object |
//! |---|---|---|
//! | [`MVar`] | a value, or room for one | a variable that is full or empty |
//! | [`Fifo`] | a value | an unbounded queue |
//! | [`BoundedFifo`] | a value, or room for one | a queue with a limit, and ends that close it |
//! | [`Mutex`] | its turn | one thread at a time |
//! | [`RwLock`] | its turn | many readers or one writer |
//! | [`Semaphore`] | permits | a number of permits |
//! | [`Condition`] | a notification | a value in a mutex may have changed |
//! | [`Barrier`] | the other threads | all go on together |
//! | [`Event`], [`Latch`] | an event, once or a number of times | a thread does not wait after it |
//! | [`OnceCell`] | the value, or its turn to make it | the first thread that needs it makes it |
//! | [`Promise`] | a value | given once, for any number of readers |
//! | [`one_shot`] | a value | given once, to a taker that owns it |
//! | [`broadcast`] | the next value | every listener gets every value |
//! | [`watch`] | a change | every watcher sees the latest value |
//!
//! Each object is a [`WaitQueue`](selvedge_core::WaitQueue) with its own
//! [`Role`](selvedge_core::Role)s. The object hands the thing that threads wait for directly to the
//! thread that has waited longest. That thread finds it when it runs. So no other thread can come
//! in between, and all objects serve first come, first served. There is one exception: a running
//! thread may lock a [`Mutex`] once before the first waiter, while that waiter still sleeps.
//!
//! # Cancellation
//! A wait is given up when its future is dropped: within a `select!`, by a time-out, or with its
//! thread. Its waiter leaves the queue in constant time. A thing that it had been handed but has
//! not collected goes to the next waiter, or back to the object. So the object is then as it would
//! be without that waiter. The docs of each type say what that means for it.
//!
//! # Where they work
//! The objects work in Selvedge threads under every scheduler, and under foreign executors. For
//! ordinary OS threads, which cannot await, each object has blocking operations as well.
//! [`wait_blocking`] blocks for any future, and [`wait_blocking_for`] does so with a time limit.
//!
//! Objects may be shared between OS threads unless their names say `local`. `MVar::new_local` and
//! so on make objects that stay on one OS thread and use no atomic operation.

// # For readers of the source
//
// One file for each object that blocks. Each object is a state and one wait queue of `core`:
// variables and queues (`mvar.rs`, `fifo.rs`, `bounded_fifo.rs`, `one_shot.rs`), locks (`mutex.rs`,
// `rw_lock.rs`, `semaphore.rs`, `condition.rs`), objects for one event (`event.rs`, `once_cell.rs`,
// `promise.rs`, `barrier.rs`), and news for many (`broadcast.rs`, `watch.rs`). `holder.rs` has the
// names of holders, `owner.rs` recursion, and `blocking_guard.rs` guards for OS threads. An OS
// thread that blocks (`blocking.rs`, and the file of that name in `core`) looks for a few
// microseconds before it queues, and again before it sleeps.
//
// Invariant: `sync` contains no scheduler and runs under any executor. A thread of ours or a
// foreign task may poll the future that waits.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

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
pub use bounded_fifo::{BoundedFifo, ClosedError, Putter, Taker, TryPutError, TryTakeError};
pub use broadcast::{Broadcaster, ListenError, Listener, TryListenError, broadcast, broadcast_local};
pub use condition::Condition;
pub use event::{Event, Latch};
pub use fifo::Fifo;
pub use holder::{Holder, RecursionError};
pub use mutex::{Guard, Mutex, OwnedGuard};
pub use mvar::MVar;
pub use once_cell::OnceCell;
pub use one_shot::{NoReplyError, Replier, Reply, one_shot, one_shot_local};
pub use owner::Owner;
pub use promise::{BrokenPromiseError, Fulfiller, Promise};
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};
pub use selvedge_core::{Local, Shared};
pub use semaphore::{OwnedPermit, Permit, Semaphore};
pub use watch::{Setter, WatchError, Watcher, watch, watch_local};
