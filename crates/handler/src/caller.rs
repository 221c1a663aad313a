//! [`Caller`]: the client of a request, as a handler sees it; [`LazyCaller`], which makes one on
//! demand.

use http::{HeaderMap, StatusCode};
use std::cell::OnceCell;
use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

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
    talk: Mutex<CallerTalk>,
}

impl CallerState {
    fn new(peer: Option<IpAddr>) -> CallerState {
        CallerState { peer, talk: Mutex::default() }
    }
}

/// What a handler and an engine tell each other.
#[derive(Default)]
struct CallerTalk {
    interims: Vec<Interim>,
    /// The engine's waker, if the engine waits for something to do.
    engine: Option<Waker>,
    /// Whether the client has left, as far as the engine knows.
    has_left: bool,
    /// The wakers of the futures that wait until the client has left.
    waiting: Vec<Waker>,
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
        Caller(Arc::new(CallerState::new(peer)))
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
        let mut talk = self.talk();
        talk.interims.push(Interim { status, fields });
        let waker = talk.engine.take();
        drop(talk);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits until the client has left: it has closed its connection, or its direction of it, or
    /// has vanished. A handler that works long for one client has a reason to stop then. It waits
    /// for ever if the client stays, or if the engine does not look: behind a long row of requests
    /// that the client has sent in advance, and while a body is to be read, of which the handler
    /// learns the same.
    ///
    /// A client that closes only its direction, and still reads, counts as a client that has left.
    /// Few clients do, and the two are not to be told apart.
    ///
    /// # Examples
    /// ```
    /// use selvedge::scope::{Selected, select};
    /// use selvedge_handler::{Caller, Request};
    /// use std::time::Duration;
    ///
    /// async fn tide(request: Request) -> &'static str {
    ///     let caller = request.extensions().get::<Caller>().cloned().expect("engines add it");
    ///     let turn = selvedge::time::sleep(Duration::from_secs(6 * 3600));
    ///     match select((turn, caller.left())).await {
    ///         Selected::First(()) => "It turns.\n",
    ///         // The connection's end is not read.
    ///         Selected::Second(()) => "",
    ///     }
    /// }
    /// ```
    pub async fn left(&self) {
        let mut is_asked = false;
        poll_fn(|cx| {
            let mut talk = self.talk();
            if talk.has_left {
                return Poll::Ready(());
            }
            if !talk.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                talk.waiting.push(cx.waker().clone());
            }
            let engine = if std::mem::replace(&mut is_asked, true) { None } else { talk.engine.take() };
            drop(talk);
            engine.into_iter().for_each(Waker::wake);
            Poll::Pending
        })
        .await;
    }

    /// For an engine: waits until a handler wants to know whether the client has left.
    pub fn poll_watched(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut talk = self.talk();
        if talk.waiting.is_empty() || talk.has_left {
            talk.engine = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// For an engine: the client has left.
    pub fn tell_left(&self) {
        let mut talk = self.talk();
        talk.has_left = true;
        let waiting = std::mem::take(&mut talk.waiting);
        drop(talk);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn talk(&self) -> MutexGuard<'_, CallerTalk> {
        self.0.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an engine: waits for interim responses that are to be sent.
    pub fn poll_interims(&self, cx: &mut Context<'_>) -> Poll<Vec<Interim>> {
        let mut talk = self.talk();
        if talk.interims.is_empty() {
            talk.engine = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut talk.interims))
    }

    /// For an engine: interim responses that are to be sent, if there are any now.
    pub fn take_interims(&self) -> Vec<Interim> {
        let mut talk = self.talk();
        std::mem::take(&mut talk.interims)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.peer()).finish()
    }
}

/// A client of which the [`Caller`] is made when a handler asks for it: most handlers do not.
#[derive(Debug)]
pub struct LazyCaller {
    peer: Option<IpAddr>,
    made: OnceCell<Caller>,
}

impl LazyCaller {
    /// As [`Caller::new`].
    pub fn new(peer: Option<IpAddr>) -> LazyCaller {
        LazyCaller { peer, made: OnceCell::new() }
    }

    /// As [`Caller::peer`].
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The caller.
    pub fn get(&self) -> &Caller {
        self.made.get_or_init(|| Caller::new(self.peer))
    }

    /// The caller, if it has been made.
    pub fn made(&self) -> Option<&Caller> {
        self.made.get()
    }

    /// Makes it the client of another request, with this address. A [`Caller`] that no code holds
    /// any more gives its memory to the next one.
    pub fn renew(&mut self, peer: Option<IpAddr>) {
        self.peer = peer;
        if let Some(made) = self.made.get_mut() {
            match Arc::get_mut(&mut made.0) {
                Some(state) => *state = CallerState::new(peer),
                None => self.made = OnceCell::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_client_knows_nothing_of_the_one_before() {
        let mut lazy = LazyCaller::new(None);
        lazy.get().tell_left();
        lazy.get().inform(StatusCode::EARLY_HINTS, HeaderMap::new());
        let place = Arc::as_ptr(&lazy.get().0);
        let peer = Some(IpAddr::from([127, 0, 0, 1]));
        lazy.renew(peer);
        assert_eq!(Arc::as_ptr(&lazy.get().0), place);
        assert_eq!((lazy.peer(), lazy.get().peer()), (peer, peer));
        assert!(lazy.get().take_interims().is_empty() && !lazy.get().talk().has_left);

        // A handler may keep its client for longer than its request.
        let kept = lazy.get().clone();
        kept.tell_left();
        lazy.renew(None);
        assert!(!Arc::ptr_eq(&lazy.get().0, &kept.0));
        assert!(kept.peer().is_some() && kept.talk().has_left && !lazy.get().talk().has_left);
    }
}
