//! One connection: a thread that reads requests and sends replies.
//!
//! ```text
//!              readable                      head incomplete, or body to come
//!   idle ────────────────▶ exchange: recv ◀──────────────────────────────────┐
//!    ▲  no buffers held        │                                             │
//!    │                         ▼                                             │
//!    │                      advance: parse, answer into `out` ───────▶ send ─┤
//!    │                         │  a large file: send head, sendfile          │
//!    │                         │  a cold file: look it up on the pool        │
//!    └─────────────────────────┴──────────────────────── nothing is pending ─┘
//! ```
//!
//! `Site` calls [`Link::converse`] in the connection's thread. An [`Exchange`] has the buffers and
//! the protocol's state. The thread borrows it from [`Connecting`] when bytes come in, and gives it
//! back when all of them are dealt with. So an idle connection is its [`Link`] and its thread. All
//! bytes that one call has read are answered with one `send`. Where a call cannot go on at once, a
//! boxed future takes over. That keeps the thread small and the usual request free of allocation.
//!
//! | file | what it knows |
//! |---|---|
//! | `client.rs` | the stream, and the client's address for the log |
//! | `outgoing.rs` | bytes and spans of files on their way to the client |
//! | `unlogged.rs` | answered requests that are not logged yet |
//! | `exchange.rs` | the protocol: reading, parsing, answering by a responder |
//! | `at_once.rs` | a handler's answer to a request that stays bytes, if the handler does not wait |
//! | `call.rs` | a request that a handler answers, as the handler sees it |
//! | `attendant.rs` | the connection's work while a handler waits: bodies in, interim responses out |
//! | `run.rs` | the run of a handler, from its request to the end of its response |
//! | `response_head.rs` | how a handler's response is framed, and its head |

mod at_once;
mod attendant;
mod call;
mod client;
mod exchange;
mod outgoing;
mod response_head;
mod run;
mod unlogged;

use selvedge_core::{Deadline, Time, now, yield_now};
use selvedge_io::net::Stream;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, Shutdown};
use std::rc::Rc;
use std::task::Poll;

pub(crate) use self::client::ClientSide;
use self::exchange::{Exchange, Pause};
use crate::responder::Responder;
use crate::worker::WorkerContext;

/// The most exchanges that are kept for reuse; each has buffers of some 30 KiB.
const EXCHANGES_MAX: usize = 256;

/// The things that the connections of one worker take from: the worker, and exchanges for reuse.
pub(crate) struct Connecting<H: Responder> {
    pub(crate) worker: WorkerContext<H>,
    #[expect(clippy::vec_box, reason = "a thread that holds one is to hold a pointer, not all its fields")]
    exchanges: RefCell<Vec<Box<Exchange<H>>>>,
}

impl<H: Responder> Connecting<H> {
    pub(crate) fn new(worker: WorkerContext<H>) -> Connecting<H> {
        Connecting { worker, exchanges: RefCell::default() }
    }

    /// Buffers and state for requests on the way.
    #[inline]
    fn take_exchange(&self) -> Box<Exchange<H>> {
        let pooled = self.exchanges.borrow_mut().pop();
        pooled.unwrap_or_else(|| Box::new(Exchange::new(&self.worker.terms().limits)))
    }

    #[inline]
    fn give_back(&self, mut exchange: Box<Exchange<H>>) {
        let exchanges = &mut self.exchanges.borrow_mut();
        if exchanges.len() < EXCHANGES_MAX && exchange.reset() {
            exchanges.push(exchange);
        }
    }
}

/// A connection as the list of connections has it.
pub(crate) struct Link {
    client: ClientSide,
    /// Until when the connection may wait for a request of which no byte has come; never, if it
    /// does not wait for one.
    idle: Cell<Deadline>,
    /// Its place in the list.
    place: Cell<u32>,
}

impl Link {
    pub(crate) fn new(stream: Stream, peer: Option<IpAddr>, place: usize) -> Link {
        let client = ClientSide::new(stream, peer);
        let link = Link { client, idle: Cell::new(Deadline::NEVER), place: Cell::new(0) };
        link.set_place(place);
        link
    }

    /// Its place in the list.
    pub(crate) fn place(&self) -> usize {
        self.place.get() as usize
    }

    pub(crate) fn set_place(&self, place: usize) {
        self.place.set(place.try_into().expect("there are fewer connections than descriptors"));
    }

    /// Makes an idle connection read the end of its input.
    pub(crate) fn end_if_idle(&self) {
        if !self.idle.replace(Deadline::NEVER).is_never() {
            // An error says that the connection is broken. Its thread will find that out.
            let _ = self.client.stream.shutdown(Shutdown::Read);
        }
    }

    /// Until when the connection may be idle, if it is idle at `now`.
    pub(crate) fn idle_until(&self, now: Time) -> Option<Time> {
        self.idle.get().time(now)
    }

    /// Makes the connection's thread find the connection broken, whatever the thread waits for.
    pub(crate) fn break_off(&self) {
        // As above.
        let _ = self.client.stream.shutdown(Shutdown::Both);
    }

    /// The connection thread. All of its waiting is here, and it keeps a pointer or two meanwhile:
    /// a connection that waits costs little memory.
    pub(crate) async fn converse<H: Responder>(self: &Rc<Link>, connecting: &Connecting<H>) {
        // A variable that lives across a wait would take room in the thread.
        let mut due = Deadline::after(now(), connecting.worker.terms().idle);
        loop {
            self.idle.set(due);
            if connecting.worker.ends_idle() {
                self.end_if_idle();
            }
            self.client.stream.set_read_deadline(due.time(now()));
            let readable = self.client.stream.readable().await;
            self.idle.set(Deadline::NEVER);
            if readable.is_err() {
                return;
            }
            let mut exchange = connecting.take_exchange();
            let end = loop {
                let proceed =
                    poll_fn(|cx| Poll::Ready(exchange.proceed(&self.client, &connecting.worker, cx)));
                match proceed.await {
                    Pause::More => {
                        if self.client.stream.readable().await.is_err() {
                            exchange.give_up(&self.client, &connecting.worker);
                            break Pause::Over;
                        }
                    }
                    // There may be more to read already, of which no event tells.
                    Pause::Turn => yield_now().await,
                    Pause::Slow(next) => {
                        if Box::pin(exchange.finish(&self.client, &connecting.worker, next)).await.is_err() {
                            break Pause::Over;
                        }
                    }
                    Pause::Run => {
                        if exchange.call(self, &connecting.worker).await.is_err() {
                            break Pause::Over;
                        }
                    }
                    Pause::Linger => {
                        Box::pin(exchange.linger(&self.client, &connecting.worker)).await;
                        break Pause::Over;
                    }
                    end => break end,
                }
            };
            connecting.give_back(exchange);
            match end {
                Pause::Idle if !connecting.worker.is_draining() => {
                    due = Deadline::after(now(), connecting.worker.terms().idle)
                }
                // The stream was not readable after all, or the time is up, which the next wait
                // will say.
                Pause::Untouched => {}
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::{LogFile, WorkerLog};
    use crate::config::Config;
    use crate::request::Request;
    use crate::responder::{Handled, Reply, Rest, Terms};
    use crate::status::Status;
    use selvedge_core::{round_robin_over, spawn_local};
    use selvedge_handler::DynHandler;
    use selvedge_io::EventLoop;
    use selvedge_io::net::UnixStream;
    use std::rc::Rc;
    use std::sync::Arc;

    /// It answers `/`, and panics at any other path.
    struct PanicsBelowRoot;

    impl Responder for PanicsBelowRoot {
        type Search = ();
        type Found = ();

        fn route(&mut self, _: &Request<'_>) -> Option<Rc<dyn DynHandler>> {
            None
        }

        fn answer(
            &mut self,
            request: &Request<'_>,
            _: &Terms<'_>,
            _: &mut Option<Box<()>>,
            out: &mut Vec<u8>,
        ) -> Handled<()> {
            assert_eq!(request.path, b"/", "the test wants this panic");
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            Handled::Reply(Reply { status: Status::OK, content_bytes: 0, rest: Rest::Nothing })
        }

        fn search(&self, (): ()) -> impl FnOnce() -> Box<()> + Send + use<> + 'static {
            || unreachable!("no reply needs a search")
        }
    }

    #[test]
    fn a_panic_of_the_handler_leaves_no_line_to_the_next_connection() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let file = Arc::new(LogFile::open(&path).unwrap());
        let main = async {
            let log = WorkerLog::new(file);
            let worker = WorkerContext::new(Config::default(), Some(log.clone()), PanicsBelowRoot);
            let connecting = Rc::new(Connecting::new(worker));
            for (targets, panics) in [(&["/?unsent", "/panics"][..], true), (&["/?sent"], false)] {
                let (client, server) = UnixStream::pair().unwrap();
                for target in targets {
                    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
                    client.write_all(request.as_bytes()).await.unwrap();
                }
                client.shutdown(Shutdown::Write).unwrap();
                let connecting = connecting.clone();
                let link = Rc::new(Link::new(server.into(), None, 0));
                let thread = spawn_local(async move { link.converse(&connecting).await });
                assert_eq!(thread.await.is_err(), panics);
            }
            log.flush().await;
        };
        round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
        let logged = std::fs::read_to_string(path).unwrap();
        assert!(logged.contains("/?sent") && logged.lines().count() == 1, "{logged}");
    }
}
