//! [`Engine`]: what carries messages between ranks. It is all that a transport has to give.
//!
//! `world.rs` starts a world over an engine, and the communicators send through it. An engine gives
//! each message that arrives to the [`Mailbox`] of the rank that it is for, which matches it with
//! the receives of that rank's threads. So an engine knows neither receives nor wildcards,
//! communicators nor collectives: these are built above it, once, out of `send`.

pub use crate::byte_pieces::BytePieces;
use crate::envelope::{Envelope, MessageKey, Status};
use crate::mailbox::Mailbox;
pub use crate::matching::Pattern;
pub use crate::receive_room::{ReceiveRoom, RoomPieces};
pub use crate::sending::{SendMode, Sending};
use std::fmt;
use std::sync::Arc;

/// What carries messages between the ranks of a world. Ranks are world ranks here.
///
/// # What an engine must keep
/// 1. `send` does not wait. Messages from one rank to another with the same context are
///    [delivered](Mailbox::deliver) in the order of the calls.
/// 2. A message is delivered once, also if no receive is there for it.
/// 3. When a rank has ended, each mailbox of this process is told so by [`Mailbox::ended`], after
///    the last message of that rank.
/// 4. What an engine waits for outside of the process, it waits for in an event source of the
///    scheduler or on an OS thread of its own, never in `send`.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Its name, for reports: `threads`.
    fn name(&self) -> &'static str;

    /// The number of ranks of the world.
    fn size(&self) -> usize;

    /// Whether the body of a message to `to` may be a value that is
    /// [moved](crate::envelope::MessageContent::Moved).
    fn moves_values(&self, to: usize) -> bool;

    /// Whether a rank runs in this process.
    fn is_here(&self, rank: usize) -> bool;

    /// The mailbox of a rank that runs in this process.
    ///
    /// # Panics
    /// If it runs elsewhere.
    fn mailbox(&self, rank: usize) -> &Arc<Mailbox>;

    /// Starts to send a message from a rank of this process to `to`. With [`SendMode::Synchronous`]
    /// the send is over when a receive has taken the message.
    fn send(&self, from: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending;

    /// As [`send`](Self::send) with [`SendMode::Standard`], of bytes that stay with the caller, if
    /// the whole message can go at once. `false` if nothing was sent: `send` then has the body in
    /// memory of its own. So a short message between processes allocates none. With `may_wait` the
    /// engine may wait for some microseconds until the receiver has copied the bytes.
    fn send_at_once(
        &self,
        _from: usize,
        _to: usize,
        _key: MessageKey,
        _bytes: BytePieces<'_>,
        _may_wait: bool,
    ) -> bool {
        false
    }

    /// Whether each collective compares what all ranks call, before it begins: see
    /// [`Ranks::checked`](crate::Ranks::checked).
    fn checks_collectives(&self) -> bool {
        false
    }

    /// Whether [`look_out`](Self::look_out) does anything.
    fn looks_out(&self) -> bool {
        false
    }

    /// A thread of this rank is about to park, until `until` is true. An engine that takes messages
    /// in by itself may do so here for some microseconds, and ask `until` after each, because a
    /// wake-up by the kernel takes longer. Other engines do nothing.
    fn look_out(&self, _rank: usize, _until: &mut dyn FnMut() -> bool) {}

    /// As [`look_out`](Self::look_out), of a thread that is about to wait for such a message. An
    /// engine may give it the message that comes, without the mailbox, if no receive that waits
    /// there, and no message that lies there, is before it. If there is room, the engine may
    /// put the bytes there.
    fn look_out_for(
        &self,
        rank: usize,
        _wanted: &Pattern,
        _room: Option<ReceiveRoom<'_>>,
        until: &mut dyn FnMut() -> bool,
    ) -> Option<PassedMessage> {
        self.look_out(rank, until);
        None
    }
}

/// A message that a thread has without the mailbox.
#[derive(Debug)]
pub enum PassedMessage {
    /// The whole message.
    Whole(Envelope),
    /// Its bytes are in the thread's [`ReceiveRoom`].
    InRoom(Status),
}
