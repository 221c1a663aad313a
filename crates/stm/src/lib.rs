//! Software transactional memory: several shared variables, read and written at one moment.
//!
//! A transaction is a closure that reads and writes variables. [`atomically`] runs it, with its
//! effect as a whole or not at all; there are no locks to order, and no conditions to notify. A
//! transaction that cannot go on [retries](Tx::retry): its thread is parked, and another
//! transaction that writes a variable that it has read wakes it.
//!
//! | | |
//! |---|---|
//! | variables | [`TVar`] for any type, [`TWord`] for numbers, flags and the like |
//! | weak handles to them | [`WeakTVar`], [`WeakTWord`] |
//! | running a transaction | [`atomically`], [`try_atomically`], [`atomically_blocking`], [`wait_for`] |
//! | within it | [`Tx::retry`], [`Tx::check`], [`Tx::wait_for`], [`Tx::or_else`], [`Tx::or_else_all`], [`Tx::atomically`], [`Tx::after_commit`], [`Tx::on_abort`] |
//! | made of them | [`TMVar`], [`TSem`], [`TQueue`], [`TBQueue`], [`TChan`] |
//! | with many parts | [`TArray`], [`TWordArray`], [`TMap`], [`TSet`], [`TCounter`] |
//! | to build structures of | [`TNode`], [`TNodeRef`], [`TLink`], [`TLinkRef`] |
//! | the hasher of maps | [`HashState`], [`KeyHasher`] |
//! | engines | [`Versioned`], [`Figure3`], [`NOrec`], [`GlobalLock`] |
//!
//! # Where they work
//! Transactions work in Selvedge threads under every scheduler, under foreign executors, and on
//! ordinary OS threads with [`atomically_blocking`]. Time limits need an event loop, so they are in
//! the module `selvedge::stm`, which has all of this crate too.
//!
//! # Reclamation
//! A transaction announces its begin and its end, so that no value is freed while it can be read
//! (epochs: `session.rs`). That costs two stores and no fence, because a session that frees values
//! has the kernel make the fence for all others, once for 256 values.
//!
//! # Examples
//! A transfer that waits until the account has enough:
//! ```
//! use selvedge::stm::{TWord, Tried, Tx, atomically};
//!
//! fn transfer(tx: &Tx, from: &TWord<u32>, to: &TWord<u32>, sum: u32) -> Tried<()> {
//!     let there = from.read(tx)?;
//!     tx.check(there >= sum)?;
//!     from.write(tx, there - sum);
//!     to.modify(tx, |there| there + sum)
//! }
//!
//! selvedge::run(async {
//!     let (ann, bob) = (TWord::new(1), TWord::new(9));
//!     let (a, b) = (ann.clone(), bob.clone());
//!     let later = selvedge::spawn(atomically(move |tx| transfer(tx, &a, &b, 5)));
//!     atomically(|tx| transfer(tx, &bob, &ann, 4)).await;
//!     later.await.unwrap();
//!     assert_eq!((ann.read_now(), bob.read_now()), (0, 10));
//! })?;
//! # Ok::<(), selvedge::SchedulerError>(())
//! ```

// # For readers of the source
//
// An attempt is a call of an ordinary function (`attempt.rs`). It has a session with a log
// (`session.rs`, `log.rs`, `reads.rs`), and ends by a commit, an error, a conflict, or a
// registration in the variables that it has read. Only a transaction that waits, or gives way, is a
// pending future. Read `engine.rs` with `engine/versioned.rs` (how an attempt reads and commits,
// and why it sees one moment; the engines beside it are there for comparison, and `Figure3` may
// show an attempt several moments), `waiting.rs` (why no wake-up is lost), `condition.rs` (how a
// commit evaluates the predicates for which others wait), `session.rs` (why no memory is freed that
// an attempt can reach), `turn.rs` (how a transaction becomes irrevocable after many conflicts),
// `variable.rs` (the word of a variable). `nodes.rs` keeps the memory of freed values for later
// values, and `names.rs` has the names of variables in a table of their own. The shared part of
// weak handles lies with the waiters of a variable (`weak.rs`).
//
// The structures are made of variables, and know nothing of engines, logs or sessions. A structure
// with many variables has them in blocks (`cells.rs`). The values of cells are raw pointers, and
// each kind of value says how it is freed and seen (`CellValue`, in `cells.rs`, `tmap/node.rs` and
// `tnode.rs`). Below `tmap.rs`, `tqueue.rs` and the like, no other code is unsafe.
//
// Invariants:
// - No code of the program runs while a commit has a variable locked. In a turn, the body alone
//   does.
// - A predicate runs in the commits of other transactions, after they have unlocked everything.
// - A body runs at a stretch. Nothing waits in it, and no other transaction begins in it. So a
//   turn, a lock and a pinned session never belong to a parked thread.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod attempt;
mod cells;
mod condition;
mod engine;
mod hasher;
mod log;
mod names;
mod nodes;
mod primitives;
mod reads;
mod run;
mod session;
mod stop;
mod tarray;
mod tbqueue;
mod tchan;
mod tcounter;
#[cfg(not(feature = "testing"))]
mod testing;
#[cfg(feature = "testing")]
pub mod testing;
mod tmap;
mod tmvar;
mod tnode;
mod tqueue;
mod transaction;
mod tsem;
mod tset;
mod turn;
mod tword_array;
mod var;
mod variable;
mod wait;
mod weak;
mod word;
mod world;

pub use engine::{Engine, Figure3, GlobalLock, NOrec, Versioned};
pub use hasher::{HashState, KeyHasher};
pub use run::{
    atomically, atomically_blocking, atomically_with, try_atomically, try_atomically_with, wait_for,
};
pub use session::reclaim;
pub use stop::{Abort, Ending, Stop, Tried};
pub use tarray::TArray;
pub use tbqueue::TBQueue;
pub use tchan::TChan;
pub use tcounter::TCounter;
pub use tmap::{TMap, TMapIter};
pub use tmvar::TMVar;
pub use tnode::{TLink, TLinkRef, TNode, TNodeRef};
pub use tqueue::TQueue;
pub use transaction::Tx;
pub use tsem::TSem;
pub use tset::TSet;
pub use tword_array::TWordArray;
pub use var::{TVar, WeakTVar};
pub use word::{TWord, WeakTWord, Word};
