//! Structured concurrency: threads that cannot outlive what started them, and futures that are
//! waited for together.
//!
//! | for | there is |
//! |---|---|
//! | threads that belong together | [`scope()`], [`try_scope`], [`collect_scope`] |
//! | threads with results that come as they end | [`Threads`] |
//! | ending them before their time | dropping the scope, [`Child::cancel`], [`CancelToken`], [`shield`] |
//! | several futures in one thread, until all are ready | [`join`], [`try_join`], [`join_all`] |
//! | until one is | [`select()`], [`select!`], [`race`] |
//!
//! ```
//! use selvedge::{round_robin, yield_now};
//! use selvedge::scope::{join, scope};
//!
//! let sum = round_robin(async {
//!     scope(async |s| {
//!         let warp = s.spawn(async { yield_now().await; 20 });
//!         let weft = s.spawn(async { 22 });
//!         let (warp, weft) = join((warp, weft)).await;
//!         warp.unwrap() + weft.unwrap()
//!     })
//!     .await // here every child is over
//! })?;
//! assert_eq!(sum, 42);
//! # Ok::<(), selvedge::RunError>(())
//! ```
//!
//! # Cancellation
//! There is one kind of cancellation: a future is dropped, so its destructors run and no other code
//! of it. A cancelled thread becomes ready, and its scheduler drops its future when its turn comes.
//! A thread that is running on another CPU finishes its step before. A scope that is awaited waits
//! for all of that. If the future of a scope is dropped, it cannot wait. Its children are cancelled
//! all the same. If that scope lies within the body or a child of another scope, the other scope
//! waits for them.
//!
//! [`shield`] defers the cancellation of the thread that awaits it. A panic in a destructor ends
//! there: the panic hook reports it, and the other destructors run.
//!
//! # Children that borrow
//! A child owns its data, or shares them in an `Arc`. It cannot borrow from the function that
//! spawns it. OS threads can ([`std::thread::scope`]), because the function that calls it cannot
//! end before the OS threads have ended. But the future of a scope can be forgotten
//! (`std::mem::forget`, a circle of `Rc`s) after its children have begun. Then the borrowed data
//! can go while the children run, and no destructor waits for them. A destructor that waited would
//! not help: it would block the OS thread on which the children have to run, and it would not run
//! in a forgotten future. So no signature with `Child<'a>` is sound, whatever its bounds.
//!
//! Futures in one thread can borrow: [`join`], [`join_all`], [`try_join`] and [`select()`] take
//! such futures, because these are parts of the future that owns the data. If the parts have to run
//! on several cores, an `Arc` around the data costs two atomic operations for each child.
//!
//! # Exceptions
//! An exception that a child [throws](selvedge_core::throw), or a panic in a child, cancels the
//! child's siblings and the scope's body. When all of them are over, the scope throws it on. A
//! [`catch()`](selvedge_core::catch()) around the scope gets it with its type.

// # For readers of the source
//
// A scope counts each of its children from before the child is created until after its future is
// dropped. A scope that is dropped half-way passes the remaining children on to the scope around
// it. `join`, `select` and `race` are futures over tuples, in one thread. The macro `select!` makes
// a list of branches (`branches.rs`), and begins each poll with a branch that it draws at random
// (`core`'s `draw.rs`); in a simulated run the seed determines the draw. Read `state.rs` first:
// which children are counted, and what the last child does.
//
// Invariant: when a scope has returned, no thread below it has anything left to run, not even a
// destructor.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[doc(hidden)]
pub mod branches;
mod child;
mod join;
mod maybe_done;
mod scope;
mod select;
mod state;
mod threads;
mod token;

pub use child::Child;
pub use join::{Join, JoinAll, Joining, TryJoin, TryJoining, join, join_all, try_join};
pub use scope::{CollectScope, Scope, TryScope, collect_scope, scope, try_scope};
pub use select::{Race, Racing, Select, Selected, Selecting, race, select};
pub use selvedge_core::{Shield, shield};
pub use threads::Threads;
pub use token::{CancelToken, Cancelled};
