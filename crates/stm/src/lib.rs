//! Software transactional memory: several shared variables, read and written at one moment.
//!
//! A transaction is a closure that reads and writes variables. [`atomically`] runs it, with its
//! effect as a whole or not at all; there are no locks to order, and no conditions to notify. A
//! transaction that cannot go on [retries](Tx::retry): its thread is parked, and another
//! transaction that writes a variable that it has read wakes it.
//!
//! A transfer that waits until the account has enough:
//! ```
//! use selvedge::stm::{TVar, Tried, Tx, atomically};
//!
//! fn transfer(tx: &Tx, from: &TVar<u32>, to: &TVar<u32>, sum: u32) -> Tried<()> {
//!     let there = *from.read(tx)?;
//!     tx.check(there >= sum)?;
//!     from.write(tx, there - sum);
//!     to.modify(tx, |there| there + sum)
//! }
//!
//! selvedge::run(async {
//!     let (ann, bob) = (TVar::new(1), TVar::new(9));
//!     let (a, b) = (ann.clone(), bob.clone());
//!     let later = selvedge::spawn(atomically(move |tx| transfer(tx, &a, &b, 5)));
//!     atomically(|tx| transfer(tx, &bob, &ann, 4)).await;
//!     later.await.unwrap();
//!     assert_eq!((ann.read_now(|n| *n), bob.read_now(|n| *n)), (0, 10));
//! })?;
//! # Ok::<(), selvedge::SchedulerError>(())
//! ```
//!
//! # What there is
//! | | |
//! |---|---|
//! | variables | [`TVar`], and [`TWord`] for [numbers and flags](#a-variable-for-numbers-and-flags) |
//! | running a transaction | [`atomically`], [`try_atomically`], [`atomically_blocking`], [`wait_for`] |
//! | within it | [`Tx::retry`], [`Tx::check`], [`Tx::wait_for`], [`Tx::or_else`], [`Tx::or_else_all`], [`Tx::atomically`], [`Tx::after_commit`], [`Tx::on_abort`] |
//! | made of variables | [`TMVar`], [`TSem`], [`TQueue`], [`TBQueue`], [`TChan`] |
//! | with many parts | [`TArray`], [`TWordArray`], [`TMap`], [`TSet`], [`TCounter`] |
//! | to build structures of | [`TNode`], [`TNodeRef`], [`TLink`], [`TLinkRef`] |
//! | weak handles to variables | [`WeakTVar`], [`WeakTWord`] |
//! | the hasher of maps | [`HashState`], [`KeyHasher`] |
//!
//! # A variable for numbers and flags
//! [`TVar`] is right for each type. A variable that holds a number, a flag or a character, and that
//! many transactions write, is better a [`TWord`], which keeps the value in the variable itself.
//! Both have the same operations, and a transaction uses both.
//!
//! | | [`TVar<T>`](TVar) | [`TWord<T>`](TWord) |
//! |---|---|---|
//! | values | of any type that is `Send + Sync` | of at most 64 bits, which are [`Word`]s |
//! | `read` gives | a reference: `*var.read(tx)?` | the value: `var.read(tx)?` |
//! | memory | 48 bytes, and a node with the value | 48 bytes |
//! | a read | a load from the node more, which may miss the cache | as it is |
//! | a write | takes a node: from the OS thread's spare ones, or from the allocator | allocates nothing |
//! | the old value | is freed later, when no transaction can have a reference to it | is overwritten |
//! | outside of transactions | [`read_now`](TVar::read_now) | [`read_now`](TWord::read_now), [`write_now`](TWord::write_now) |
//!
//! Where two OS threads write different variables all the time, the memory of the nodes is what
//! costs: the figures `stm-size` and `stm-disjoint` measure both types side by side. Take a `TVar`
//! first, and change it to a `TWord` where a measurement asks for it.
//!
//! # Where they work
//! Transactions work in Selvedge threads under every scheduler, under foreign executors, and on
//! ordinary OS threads with [`atomically_blocking`]. Time limits need an event loop, so they are in
//! the module `selvedge::stm`, which has all of this crate too.
//!
//! # Reclamation
//! A transaction announces its begin and its end, so that no value is freed while it can be read
//! (epochs: `epochs.rs`). That costs two stores and no fence, because a session that frees values
//! has the kernel make the fence for all others, once for 256 values.

// # For readers of the source
//
// An attempt is a call of an ordinary function (`body.rs`, `attempt.rs`). It has a session with a
// log (`session.rs`, `log.rs`, `reads.rs`), and ends by a commit, an error, a conflict, or a
// registration in the variables that it has read. Only a transaction that waits, or gives way, is a
// pending future.
//
// A file names files below it alone. From the top:
//
//    run  body                         a transaction until it commits; its body, once
//    evaluate                          the predicates for which others wait, evaluated by a commit
//    transaction  access               what a body calls; what the operations of variables call
//    attempt                           one attempt, from its begin to its end
//    registration  describe            how a transaction waits, and why no wake-up is lost
//    engine  engine/versioned          how an attempt reads and commits, and why it sees one moment
//    turn                              how a transaction becomes irrevocable after many conflicts
//    locks  waking                     the locks of variables; what a commit does with waiters
//    variable  waiters  condition      a variable, its waiters, and their predicates: one circle
//    nodes  session  waiter            values in nodes; the log of an OS thread; a waiting thread
//    epochs  spare  log  reads         why no memory is freed that an attempt can reach
//    address  garbage  names  weak     what is below all of them
//
// The engines beside `Versioned` are there for comparison, behind the feature `engines`, with their
// constructors in `with_engine.rs`. `Figure3` may show an attempt several moments.
//
// The structures are made of variables, and know nothing of engines, logs or sessions. A structure
// with many variables has them in blocks (`cells.rs`). The values of cells are raw pointers, and
// each kind of value says how it is freed and seen (`CellValue`, in `cells/value.rs`,
// `tmap/node.rs` and `tnode.rs`). Below `tmap.rs`, `tqueue.rs` and the like, no other code is
// unsafe.
//
// Invariants:
// - No code of the program runs while a commit has a variable locked. In a turn, the body alone
//   does.
// - A predicate runs in the commits of other transactions, after they have unlocked everything.
// - A body runs at a stretch. Nothing waits in it, and no other transaction begins in it. So a
//   turn, a lock and a pinned session never belong to a parked thread.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod access;
mod address;
mod attempt;
mod body;
mod cells;
mod condition;
mod describe;
mod engine;
mod epochs;
mod evaluate;
mod garbage;
mod hasher;
mod locks;
mod log;
mod names;
mod nodes;
mod primitives;
mod queues;
mod reads;
mod registration;
mod run;
mod session;
mod spare;
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
mod waiter;
mod waiters;
mod waking;
mod weak;
#[cfg(feature = "engines")]
mod with_engine;
mod word;
mod world;

pub use engine::{Engine, Versioned};
#[cfg(feature = "engines")]
pub use engine::{Figure3, GlobalLock, NOrec};
pub use hasher::{HashState, KeyHasher};
pub use run::{atomically, atomically_blocking, try_atomically, wait_for};
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
#[cfg(feature = "engines")]
pub use with_engine::{atomically_under, try_atomically_under};
pub use word::{TWord, WeakTWord, Word};
