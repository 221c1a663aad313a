//! The event loops: readiness of descriptors, and time. This head has the vocabulary, and the
//! argument that no edge is lost. The heads of the files say only what each file has.
//!
//! | file | content |
//! |---|---|
//! | [`event_loop`] | [`EventLoop`], the event source of a scheduler |
//! | [`fallback`] | the event loop of futures outside any scheduler |
//! | [`epoll`] | [`Reactor`]: an epoll set with its table and its timers. Both loops have one |
//! | [`readiness`] | [`DescriptorState`]: what the table has of one descriptor |
//! | [`drained`] | the notes that calls leave for the loop of their OS thread |
//! | [`registrations`] | [`Registrations`]: which loops know a descriptor |
//! | [`loop_id`] | [`LoopId`], and [`Fresh`], the proof that a loop has served a wait |
//! | [`exclusive`] | the listeners for which the kernel wakes one loop alone |
//! | [`unparker`] | [`Unparker`], which ends a loop's wait from another OS thread |
//! | [`busy_poll`] | the decision to look again for a moment before a loop sleeps |
//!
//! [`Reactor`]: epoll::Reactor
//! [`DescriptorState`]: readiness::DescriptorState
//! [`Unparker`]: unparker::Unparker
//!
//! # The recipe
//!
//! 1. **System call and node.** `selvedge-core` has `wait` and `sleep`. Their nodes are
//!    [`Trace::Wait`] and [`Trace::Sleep`]. Each holds its thread. A thread that waits for several
//!    things at once gives [`Trace::Detached`] instead.
//! 2. **Interpret and register.** A scheduler passes the nodes that it does not serve itself to
//!    [`EventLoop`], which puts the thread into the table of its descriptor or into the timer
//!    wheel.
//! 3. **Event loop.** [`EventLoop`] waits for the kernel and the clock and gives the threads back
//!    to the scheduler.
//!
//! See [`crate`] for how a program adds a source of its own.
//!
//! [`Trace::Wait`]: selvedge_core::Trace::Wait
//! [`Trace::Sleep`]: selvedge_core::Trace::Sleep
//! [`Trace::Detached`]: selvedge_core::Trace::Detached
//!
//! # Vocabulary
//!
//! A *waiter* is a value of type `W`: a thread or a waker. An *edge* is one report of the kernel
//! that a descriptor has become ready in a direction. A descriptor is *drained* in a direction when
//! a call in that direction has just come back short or has found nothing. A *stray* is an edge
//! that finds no waiter. A wait is *fresh* in a loop if the descriptor's [`Registrations`] do not
//! name the loop.
//!
//! # Within one loop: no edge is lost
//!
//! The loop registers each descriptor with epoll once, edge-triggered, for both directions. The
//! kernel reports an edge once, so the table must not lose it: the edge resumes the waiter, and the
//! table keeps it as a *ready bit*.
//!
//! ```text
//!                        wait                               event
//!   without a waiter ──────────────> with a waiter ────────────────────> resumed, bit set
//!          │  event                                                        │
//!          └────────> bit set <────────────────────────────────────────────┘
//!                        │ wait: clears the bit, goes on at once
//!                        │ a call has found it drained: clears the bit
//! ```
//!
//! 1. *An edge sets the bit even if it resumes a waiter*, because that waiter may have given up
//!    meanwhile: its time-out may have passed, or its thread may be cancelled, and the table is not
//!    informed of that.
//! 2. *A call that finds the descriptor drained clears the bit.* Every edge that the loop has kept
//!    is older than the call, because the loop collects edges in `epoll_wait`, and its OS thread
//!    makes no other call meanwhile. So the call could take everything that the edges reported.
//!    The loop takes the call's [note](drained::note) before its next `epoll_wait` and before a
//!    thread waits. So in the usual case, where a call comes back short or fails and its thread
//!    then waits, the kept bit causes no call in vain.
//! 3. *An edge that a guest has collected may be younger than such a call.* While the OS thread of
//!    the loop is in a long step or sleeps, another OS thread may take events from the loop's set
//!    to the loop's table ([`Relief`]). It keeps the loop out meanwhile, and the table changes as
//!    if the loop had polled. After the visit the loop forgets the notes, which costs a call that
//!    fails, at most. A loop that sleeps has taken its notes before. The kernel may have given it
//!    events that are older than those of the guest; the loop takes them to the table after the
//!    visit. So such an edge may be older than a call of the thread that the guest has woken. It
//!    sets a bit, which costs a call that fails.
//! 4. *The end of a stream has a bit of its own.* A reader takes a short read as "nothing left" and
//!    waits before it reads again. When data and the end come together in one event, that wait
//!    would last for ever. So an event that reports an end (hang-up, error, the peer's shutdown)
//!    sets an *end bit* too. Only a wait clears the end bit, and that wait goes on at once. The
//!    ready bit lets the reader read the data, up to a short read. The end bit is for the read
//!    after the short read, which finds the end. A read at the end never blocks, so the end bit
//!    costs one call at most.
//! 5. *So have the data behind urgent data.* A read ends at the urgent mark: it comes back short
//!    and leaves data behind (see [`shorts`](crate::shorts)). From the first event on that reports
//!    urgent data, each edge sets a third bit, *left*. Only a call that has found nothing clears
//!    *left*: a call that fails, or a call that finds the end. Neither a short read nor a wait that
//!    goes on clears it.
//!
//! [`Relief`]: selvedge_core::Relief
//!
//! # Between loops: no edge is lost
//!
//! The event loop of the OS thread on which a thread runs serves that thread's waits. When threads
//! migrate, or share a descriptor, several loops serve one descriptor in turn. Each loop decides
//! for itself which descriptors are in its epoll set: it registers a descriptor when a waiter
//! comes, and takes the descriptor out after some strays in a row, because each stray costs a
//! wake-up of the loop. No loop touches the set or the table of another loop, so the loops need no
//! agreement. (Listeners with several handles are the exception: see [`exclusive`].)
//!
//! There is one thing that a loop cannot know by itself: whether the entry that its table has under
//! a number is about the present file, or about an earlier file that had the same number. A
//! descriptor's [`Registrations`] say so. In a fresh wait the loop asks the kernel by
//! `EPOLL_CTL_MOD`, because the epoll set knows its members by number and open file. If the present
//! file is a member, the entry is about this file: the waiters there go on waiting, and the kernel
//! reports once more what is ready. If the present file is not a member, the loop forgets the entry
//! and registers the descriptor anew.
//!
//! 1. The `Registrations` name a loop only when that loop has served a wait that was fresh there.
//!    The loop notes this on its own OS thread ([`loop_id::note_fresh`]), even if the wait is over
//!    or given up by then. At that moment the loop has this very file registered. The file keeps
//!    its number for as long as it has these `Registrations`. So from then on the loop's entry
//!    under that number is about this file. Either the entry is registered, and then the table has
//!    taken in every edge since, as a ready bit or as a resumed waiter; or the loop has taken the
//!    descriptor out.
//! 2. A wait for a descriptor that is not in the set registers the descriptor, whether the wait is
//!    fresh or not. `EPOLL_CTL_ADD` with `EPOLLET` reports what is ready at that moment. So the
//!    loop notices then every edge that came before and went unnoticed.
//! 3. A loop takes a descriptor out between two waits there, on its own OS thread. The next wait
//!    there is case 2.
//! 4. A loop that is *not* named is never an error: a fresh wait costs a system call, and ends no
//!    other wait. So the `Registrations` need not have room for all loops.
//! 5. The number of a loop that has ended may be given to a new loop. The `Registrations` then name
//!    the new loop before it has registered the descriptor. The new loop's table is empty, and the
//!    loop was made while this file had its number already, so point 1 holds for every entry that
//!    the table will have.
//!
//! Each statement about a loop is made on the loop's own OS thread (or, for the loop for foreign
//! executors, within its lock). So relaxed atomics are enough: a thread of a loop reads in the
//! `Registrations` only values about its own loop that a thread of the same loop wrote before, and
//! the table has that state already.
//!
//! # No call of another OS thread is lost
//!
//! A call of [`Unparker`] before the loop falls asleep keeps the loop awake, and a call after it
//! ends the loop's wait: `core`'s `parker.rs` has the argument.

mod busy_poll;
pub(crate) mod drained;
mod epoll;
mod event_loop;
mod exclusive;
pub(crate) mod fallback;
mod loop_id;
mod readiness;
mod registrations;
mod unparker;

pub use event_loop::EventLoop;
pub(crate) use exclusive::Exclusive;
pub(crate) use loop_id::{Fresh, LoopId};
pub(crate) use registrations::Registrations;
