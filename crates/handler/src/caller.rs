//! [`Caller`]: the client of a request, as a handler sees it.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, StatusCode};

/// The client of a request: an extension of each request that an engine hands to a handler.
///
/// # Examples
/// ```
/// use selvedge_handler::{Caller, Request};
///
/// async fn address(request: Request) -> String {
///     let caller = request.extensions().get::<Caller>();
///     match caller.and_then(Caller::peer) {
///         Some(address) => format!("You are {address}\n"),
///         None => "You came by a Unix socket\n".into(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Caller(Arc<CallerState>);

struct CallerState {
    peer: Option<IpAddr>,
    queue: Mutex<InterimQueue>,
}

#[derive(Default)]
struct InterimQueue {
    interims: Vec<Interim>,
    engine: Option<Waker>,
}

/// An interim response: a status from 102 to 199, and fields.
#[derive(Clone, Debug)]
pub struct Interim {
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub fields: HeaderMap,
}

impl Caller {
    /// A client with this address; `None` if it came by a Unix socket.
    pub fn new(peer: Option<IpAddr>) -> Caller {
        Caller(Arc::new(CallerState { peer, queue: Mutex::default() }))
    }

    /// The address from which the client came, as the server sees it: that of a proxy, if one is
    /// before the server. `None` for a Unix socket.
    pub fn peer(&self) -> Option<IpAddr> {
        self.0.peer
    }

    /// Sends an interim response, such as `103 Early Hints`, before the response. An engine, or a
    /// client, that has no interim responses (HTTP/1.0) ignores it.
    ///
    /// # Panics
    /// If `status` is not from 102 to 199: the engine itself sends 100, and 101 ends the exchange.
    pub fn inform(&self, status: StatusCode, fields: HeaderMap) {
        assert!(status.is_informational() && status.as_u16() >= 102, "{status} is no interim response");
        let mut queued = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queued.interims.push(Interim { status, fields });
        let waker = queued.engine.take();
        drop(queued);
        waker.into_iter().for_each(Waker::wake);
    }

    /// For an engine: waits for interim responses that are to be sent.
    pub fn poll_interims(&self, cx: &mut Context<'_>) -> Poll<Vec<Interim>> {
        let mut queued = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queued.interims.is_empty() {
            queued.engine = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut queued.interims))
    }

    /// For an engine: interim responses that are to be sent, if there are any now.
    pub fn take_interims(&self) -> Vec<Interim> {
        let mut queued = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queued.interims)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.peer()).finish()
    }
}
