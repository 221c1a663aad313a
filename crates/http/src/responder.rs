//! The border between a connection and the content that it serves: a [`Responder`] takes a
//! [`Request`] and gives a [`Reply`].
//!
//! `connection` calls a handler for each request that it has parsed, and sends the reply. It knows
//! the protocol and no directory. `files.rs` has the handler that serves a directory.

use crate::cache::CachedFile;
use crate::connection::ClientSide;
use crate::date::Clock;
use crate::range::{Parts, Span};
use crate::request::Request;
use crate::response::Persistence;
use crate::status::Status;
use selvedge_core::Time;
use selvedge_handler::DynHandler;
use selvedge_io::pool::Pool;
use std::rc::Rc;

/// Answers the requests of all connections of one worker.
pub(crate) trait Responder {
    /// A question about the disk. The call that answers it may block.
    type Search;

    /// The answer to such a question.
    type Found: Send + 'static;

    /// The handler that is to answer `request`, if the responder itself does not.
    fn route(&mut self, request: &Request<'_>) -> Option<Rc<dyn DynHandler>>;

    /// Answers `request`: appends the head of the reply to `out`, and its content if that is in
    /// memory. It must not wait.
    ///
    /// If the answer takes a [`Search`](Self::Search), `out` is left as it was. The connection has
    /// the search made and then asks again with its result in `found`.
    fn answer(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        found: &mut Option<Box<Self::Found>>,
        out: &mut Vec<u8>,
    ) -> Handled<Self::Search>;

    /// The pool on which the connection makes the call that answers `search`, if it is not the
    /// blocking pool of the process.
    fn pool(&self, search: &Self::Search) -> Option<&'static Pool> {
        let _ = search;
        None
    }

    /// The call that answers `search`.
    fn search(&self, search: Self::Search) -> impl FnOnce() -> Box<Self::Found> + Send + use<Self> + 'static;
}

/// The parts of a reply that do not depend on its content.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The time at which the request is answered.
    pub(crate) now: Time,
    /// The date for the reply.
    pub(crate) clock: &'a Clock,
    /// Whether the connection stays open after the reply.
    pub(crate) persistence: Persistence,
    /// The client, for its address; `None` if no connection asks.
    pub(crate) client: Option<&'a ClientSide>,
}

/// The result of [`Responder::answer`].
pub(crate) enum Handled<S> {
    /// The reply.
    Reply(Reply),
    /// No reply yet: the handler needs the answer to this question first.
    Search(S),
}

/// A reply of which the beginning is in the write buffer.
pub(crate) struct Reply {
    /// The status, for the log.
    pub(crate) status: Status,
    /// Bytes of content of the whole reply, for the log.
    pub(crate) content_bytes: u64,
    /// The part of the reply that is not in the write buffer.
    pub(crate) rest: Rest,
}

/// The part of a reply that the connection sends behind the bytes in the write buffer.
pub(crate) enum Rest {
    /// None: the write buffer has the whole reply.
    Nothing,
    /// A span of an open file.
    Span(Rc<CachedFile>, Span),
    /// Several spans of a file, each behind its part head.
    Parts(Rc<CachedFile>, Box<Parts>),
}
