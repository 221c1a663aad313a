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
//! There is one way for everything: a future that is dropped runs its destructors and nothing else.
//! A thread is cancelled when its scheduler next comes to it, which is soon, because cancelling
//! makes it ready; one that is running on another CPU finishes its step before. A scope that is
//! awaited waits for that, and for the destructors. A scope that is dropped instead cannot wait:
//! its children are cancelled all the same, and if it lies within a child of another scope, or
//! within its body, that one waits for them in its place.
//!
//! [`shield`] defers the cancellation of the thread it is in. A panic in a destructor ends there:
//! the panic hook reports it, and the others run.
//!
//! # Children that borrow
//! A child owns what it uses, or shares it in an `Arc`: it cannot borrow from the function that
//! spawns it. With OS threads it can ([`std::thread::scope`]), because nothing gets past the end of
//! that function but through it. A scope's future can be forgotten (`std::mem::forget`, a circle of
//! `Rc`s) after its children have begun, and then what they borrow from goes, with no destructor
//! that could wait for them. A scope that waited in its destructor would block its OS thread, on
//! which its children are to run, and would not run at all in a future that is forgotten. So no
//! signature with `Child<'a>` is sound, whatever its bounds.
//!
//! What borrows is what runs in the same thread: [`join`], [`join_all`], [`try_join`] and
//! [`select()`] take futures that borrow, because they are parts of the future that owns what they
//! borrow. Where the parts are to run on several cores, an `Arc` around what they read costs two
//! atomic operations for each child.
//!
//! # Exceptions
//! What [`throw`](selvedge_core::throw) throws in a child, or a panic there, cancels the child's
//! siblings and the scope's body and is thrown on from the scope once all are over. A
//! [`catch()`](selvedge_core::catch()) around the scope gets it with its type.

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
