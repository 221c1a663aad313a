//! A served directory, as one worker serves it. [`Site`] is the public type: it puts files
//! (`files.rs`), connections (`connection.rs`) and log together, and accepts connections.
//!
//! `apps/httpd` and programs make one for each worker, and call `serve_tcp` or `serve_unix` until
//! the [`Stop`], then `drain`. A `Site` stays on its OS thread, so its state is in cells: no borrow
//! of it may live across an `.await`. `connection` and `files` know nothing of this file.

use crate::access_log::{LogFile, WorkerLog};
use crate::config::{Config, ConnectionTerms};
use crate::connection::{Connecting, Link};
use crate::counted::Counted;
use crate::document_root::DocumentRoot;
use crate::front::Front;
use crate::gate::ConnectionGate;
use crate::lost_lines::LossesOfLogs;
use crate::metrics::{Metrics, WorkerMetrics, add};
use crate::routed::{MakeHandler, Routed};
use crate::routing::Routing;
use crate::stop::Stop;
use crate::worker::WorkerContext;
use selvedge_core::{Local, Queue, Role, Time, WaitQueue, detach_local, now, yield_now};
use selvedge_handler::{Handler, Severity, report};
use selvedge_io::net::{Stream, TcpListener, UnixListener};
use selvedge_io::time::{sleep, timeout};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A directory and everything that one worker needs to serve it: configuration, cache, buffers,
/// clock, log, and the list of its connections. It stays on its OS thread, so nothing in it is
/// locked.
///
/// # Paper
/// \[Mighty\] "Conclusion": one lightweight thread for each connection, plain sequential code;
/// "Tuning": as few system calls for a request as possible, and a cache of file statuses.
///
/// # Differences
/// 1. The cache holds the reply's head and the content or the descriptor too, so that a request
///    makes two system calls; and an entry is valid for a stated time, where the paper states none.
///
/// # Examples
/// ```
/// use selvedge::{round_robin_over, spawn_local};
/// use selvedge::http::{Config, Site, Stop, DocumentRoot};
/// use selvedge::EventLoop;
/// use selvedge::net::{TcpListener, TcpStream};
///
/// round_robin_over(&mut EventLoop::new()?, async {
///     let site = Site::new(DocumentRoot::new("src").unwrap(), Config::default(), None);
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
///     let (address, stop) = (listener.local_addr(), Stop::new());
///     let server = spawn_local({
///         let (site, stop) = (site.clone(), stop.clone());
///         async move { site.serve_tcp(listener, &stop).await }
///     });
///     let client = TcpStream::connect(address).await.unwrap();
///     client.write_all(b"GET /lib.rs HTTP/1.1\r\nHost: example.org\r\n\r\n").await.unwrap();
///     let mut reply = Vec::with_capacity(4096);
///     client.read_to_spare(&mut reply).await.unwrap();
///     assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"));
///     stop.request();
///     server.await.unwrap().unwrap();
///     site.drain().await;
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Site {
    connecting: Connecting<Front>,
    /// `None` for a site without routes.
    routes: Option<RefCell<Routes>>,
    /// `None` for a site that counts nothing.
    counters: Option<Arc<WorkerMetrics>>,
    /// Where its counters have the losses of its logs.
    losses: Option<Arc<LossesOfLogs>>,
    links: RefCell<Vec<Rc<Link>>>,
    /// By which its caches are made and its connections bounded. At first it is the configuration
    /// of `connecting`.
    sizes: RefCell<Config>,
    /// Former logs, of which lines may still be on their way to the disk.
    old_logs: RefCell<Vec<Rc<WorkerLog>>>,
    /// The number of connections that have not passed the gate yet.
    at_gate: Cell<usize>,
    /// The time before which the worker does not report again that it is full.
    quiet_until: Cell<Time>,
    /// The number of connections, and the threads that wait until there is none.
    connections: WaitQueue<usize, (), Local>,
}

/// What a site with [routes](Site::with_routes) is made of. Each worker has one; they share what is
/// behind the pointers.
pub struct Routes {
    /// The routes with their directories.
    pub routing: Arc<Routing>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What connections pass before their first request.
    pub gate: Option<Arc<ConnectionGate>>,
    /// Makes the handlers of routes that are neither files nor an answer of the server's own.
    pub handlers: Box<MakeHandler>,
}

impl Routes {
    fn responder(&self, config: &Config, counters: Arc<WorkerMetrics>) -> Routed {
        Routed::new(self.routing.clone(), config, self.metrics.clone(), counters, &self.handlers)
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes")
            .field("routing", &self.routing)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

/// Waits until there is no connection left.
enum Gone {}

impl Role<usize, ()> for Gone {
    type Output = ();

    fn attempt(connections: &mut usize, _: &mut Queue<()>, (): &mut ()) -> Option<()> {
        (*connections == 0).then_some(())
    }

    fn granted((): &mut ()) {}

    fn abandoned(_: &mut usize, _: &mut Queue<()>, (): &mut ()) {}
}

/// How long a full worker pauses before it looks again for room: the first if it has closed idle
/// connections, the second if all connections are in use.
const FULL_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));

/// How long a full worker waits until the connections that it closes have ended. After that it
/// closes others.
const CLOSING: Duration = Duration::from_millis(100);

/// A full worker closes one in this number of connections at a time.
const CLOSED_SHARE: usize = 32;

/// The time between two reports that a worker is full.
const FULL_REPORT: Duration = Duration::from_secs(60);

/// How long [`Site::break_off`] waits for the threads of the connections.
const BROKEN_OFF: Duration = Duration::from_secs(1);

impl Site {
    /// A site that serves `directory`, and logs to `log` if there is one.
    pub fn new(directory: DocumentRoot, config: Config, log: Option<Arc<LogFile>>) -> Rc<Site> {
        let front = Front::of_files(directory, &config);
        Site::over(front, config, log)
    }

    /// A site of which `handler` answers all requests. It logs to `log` if there is one.
    ///
    /// # Examples
    /// ```
    /// use selvedge::{round_robin_over, spawn_local};
    /// use selvedge::http::{Body, Config, Request, Response, Site};
    /// use selvedge::EventLoop;
    /// use selvedge::net::UnixStream;
    ///
    /// async fn hello(request: Request) -> Response {
    ///     Response::new(Body::from(format!("hello, {}", request.uri().path())))
    /// }
    ///
    /// round_robin_over(&mut EventLoop::new()?, async {
    ///     let site = Site::with_handler(hello, Config::default(), None);
    ///     let (client, server) = UnixStream::pair().unwrap();
    ///     let server = spawn_local(site.serve(server.into(), None));
    ///     let request = b"GET /loom HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    ///     client.write_all(request).await.unwrap();
    ///     assert!(client.read_to_end().await.unwrap().ends_with(b"hello, /loom"));
    ///     server.await.unwrap();
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_handler(handler: impl Handler, config: Config, log: Option<Arc<LogFile>>) -> Rc<Site> {
        Site::over(Front::of_handler(Rc::new(handler)), config, log)
    }

    /// As [`with_handler`](Self::with_handler), and its requests and connections are counted in
    /// `metrics`, for a [`StatusPage`](crate::StatusPage) and for Prometheus.
    ///
    /// # Complexity
    /// A request takes two looks at the clock and an allocation more.
    ///
    /// # Examples
    /// ```
    /// use selvedge::http::{Config, Metrics, Site, StatusPage};
    /// use selvedge::net::UnixStream;
    /// use selvedge::spawn_local;
    ///
    /// selvedge::run_local(async {
    ///     let metrics = Metrics::new();
    ///     let page = StatusPage::new(&metrics);
    ///     let site = Site::with_counted_handler(page, Config::default(), None, &metrics);
    ///     let (client, server) = UnixStream::pair().unwrap();
    ///     let server = spawn_local(site.serve(server.into(), None));
    ///     client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    ///     let answer = client.read_to_end().await.unwrap();
    ///     assert!(answer.ends_with(b"</html>\n"));
    ///     server.await.unwrap();
    ///     assert!(metrics.prometheus().contains("selvedge_requests_total{class=\"2xx\"} 1\n"));
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn with_counted_handler(
        handler: impl Handler,
        config: Config,
        log: Option<Arc<LogFile>>,
        metrics: &Metrics,
    ) -> Rc<Site> {
        let counters = metrics.worker();
        let front = Front::of_handler(Rc::new(Counted { inner: handler, counters: counters.clone() }));
        Rc::new(Site::counted(front, config, log, counters, metrics))
    }

    /// A site with routes. It logs to `log` if there is one.
    pub fn with_routes(routes: Routes, config: Config, log: Option<Arc<LogFile>>) -> Rc<Site> {
        let counters = routes.metrics.worker();
        let front = Front::of_routes(routes.responder(&config, counters.clone()));
        let site = Site::counted(front, config, log, counters, &routes.metrics);
        Rc::new(Site { routes: Some(RefCell::new(routes)), ..site })
    }

    /// Answers later requests by `routing`. Requests that have begun end by the old one, and no
    /// connection is closed. Only for a site that was made [with routes](Self::with_routes).
    pub fn set_routing(&self, routing: Arc<Routing>) {
        let (Some(routes), Some(counters)) = (&self.routes, &self.counters) else { return };
        let mut routes = routes.borrow_mut();
        routes.routing = routing;
        let responder = routes.responder(&self.sizes.borrow(), counters.clone());
        self.connecting.worker.state.borrow_mut().handler = Front::of_routes(responder);
    }

    /// Serves by the limits and times of `config` from now on: its `limits`, `idle`, `head`,
    /// `body`, `write` and `handlers`. The rest of `config` means nothing here. No connection is
    /// closed: a request that has begun, and a connection that waits for one, has the time that it
    /// had.
    pub fn set_limits(&self, config: &Config) {
        self.connecting.worker.set_terms(ConnectionTerms::of(config));
    }

    /// Makes the caches of each later [routing](Self::set_routing) by the `cache_files`,
    /// `cache_bytes`, `memory_bytes` and `validity` of `config`, and has as many connections as its
    /// `connections` at most. The rest of `config` means nothing here: a site keeps its blocks, and
    /// [`BlockCache::resize`](crate::BlockCache::resize) changes how many they are.
    pub fn set_caches(&self, config: &Config) {
        let mut sizes = self.sizes.borrow_mut();
        *sizes = Config { blocks: sizes.blocks.take(), ..config.clone() };
    }

    /// Sets the gate that later connections pass, or none. Only for a site that was made
    /// [with routes](Self::with_routes).
    pub fn set_gate(&self, gate: Option<Arc<ConnectionGate>>) {
        if let Some(routes) = &self.routes {
            routes.borrow_mut().gate = gate;
        }
    }

    /// Logs later replies to `log`, or nowhere, and no connection is closed. Lines that were logged
    /// before go to the former log. It waits until they are written.
    pub async fn set_log(&self, log: Option<Arc<LogFile>>) {
        if let (Some(losses), Some(log)) = (&self.losses, &log) {
            losses.tell(log.losses());
        }
        let log = log.map(WorkerLog::new);
        let former = std::mem::replace(&mut self.connecting.worker.state.borrow_mut().log, log);
        if let Some(former) = former {
            self.old_logs.borrow_mut().push(former.clone());
            former.flush().await;
            self.old_logs.borrow_mut().retain(|log| !Rc::ptr_eq(log, &former));
        }
    }

    fn over(front: Front, config: Config, log: Option<Arc<LogFile>>) -> Rc<Site> {
        let connecting = Connecting::new(WorkerContext::new(config, log.map(WorkerLog::new), front));
        Rc::new(Site::connecting(connecting))
    }

    fn counted(
        front: Front,
        config: Config,
        log: Option<Arc<LogFile>>,
        counters: Arc<WorkerMetrics>,
        metrics: &Metrics,
    ) -> Site {
        let losses = metrics.losses();
        log.iter().for_each(|log| losses.tell(log.losses()));
        let worker = WorkerContext::new(config, log.map(WorkerLog::new), front).counted(counters.clone());
        Site { counters: Some(counters), losses: Some(losses), ..Site::connecting(Connecting::new(worker)) }
    }

    fn connecting(connecting: Connecting<Front>) -> Site {
        Site {
            sizes: RefCell::new(connecting.worker.config.clone()),
            connecting,
            routes: None,
            counters: None,
            losses: None,
            links: RefCell::default(),
            old_logs: RefCell::default(),
            at_gate: Cell::new(0),
            quiet_until: Cell::new(Time::default()),
            connections: WaitQueue::new(0),
        }
    }

    /// Serves one connection to its end. The future is the body of a connection thread. `peer` is
    /// the address for the log. The connection counts from the call on, not from the first poll.
    pub fn serve(self: &Rc<Site>, stream: Stream, peer: Option<IpAddr>) -> impl Future<Output = ()> + use<> {
        // Not an `async fn`: that would keep its arguments in the thread, beside `admitted`.
        let admitted = self.admit(stream, peer);
        async move { admitted.link.converse(&admitted.site.connecting).await }
    }

    /// Accepts connections, each with a thread of its own, until `stop` is requested. Then it takes
    /// over the connections that the kernel has accepted by that time, and returns.
    ///
    /// # Errors
    /// The listener's error, if the listener cannot go on after it.
    pub async fn serve_tcp(self: &Rc<Site>, listener: TcpListener, stop: &Stop) -> io::Result<()> {
        let accept = async || {
            let (stream, peer) = listener.accept().await?;
            Ok((stream.into(), Some(peer.ip())))
        };
        self.serve_by(accept, stop).await
    }

    /// As [`serve_tcp`](Self::serve_tcp), for a Unix socket.
    ///
    /// # Errors
    /// The listener's error, if the listener cannot go on after it.
    pub async fn serve_unix(self: &Rc<Site>, listener: UnixListener, stop: &Stop) -> io::Result<()> {
        self.serve_by(async || Ok((listener.accept().await?.into(), None)), stop).await
    }

    /// As [`serve_tcp`](Self::serve_tcp), for connections that `accept` gives, each with the
    /// address of its client if that is known: for example one end of a pair of sockets, at the
    /// other end of which a thread carries the bytes of another kind of stream.
    ///
    /// # Errors
    /// Those of `accept`.
    pub async fn serve_by(
        self: &Rc<Site>,
        accept: impl AsyncFn() -> io::Result<(Stream, Option<IpAddr>)>,
        stop: &Stop,
    ) -> io::Result<()> {
        while let Some(accepted) = before(accept(), stop.requested()).await {
            let (stream, peer) = accepted?;
            while self.connections() >= self.sizes.borrow().connections && !stop.is_requested() {
                let closed = self.close_idle();
                self.report_full(closed > 0);
                // A connection that is closed while it answers a request ends after the reply, so
                // the wait has a limit.
                let (left, until) = (self.connections() - closed, now() + CLOSING);
                while closed > 0 && self.connections() > left && now() < until {
                    sleep(FULL_PAUSES.0).await;
                }
                if closed == 0 {
                    sleep(FULL_PAUSES.1).await;
                }
            }
            self.start(stream, peer);
        }
        // The kernel has accepted these connections, so their clients may have sent requests.
        yield_now().await;
        while let Some(accepted) = before(accept(), std::future::ready(())).await {
            let (stream, peer) = accepted?;
            self.start(stream, peer);
        }
        Ok(())
    }

    /// Starts the thread of a connection.
    fn start(self: &Rc<Site>, stream: Stream, peer: Option<IpAddr>) {
        let gate = self.routes.as_ref().and_then(|routes| routes.borrow().gate.clone());
        match gate {
            None => detach_local(self.serve(stream, peer)),
            Some(gate) => detach_local(AtGate::new(self).serve(gate, stream, peer)),
        }
    }

    /// The number of open connections. A connection that has not passed the gate yet counts too.
    pub fn connections(&self) -> usize {
        self.links.borrow().len() + self.at_gate.get()
    }

    /// Closes the connections that have been idle for longest, one in [`CLOSED_SHARE`] of all.
    /// Returns how many.
    ///
    /// # Complexity
    /// Linear in the number of all connections.
    fn close_idle(&self) -> usize {
        let (links, now) = (self.links.borrow(), now());
        let mut idle: Vec<(Time, &Rc<Link>)> =
            links.iter().filter_map(|link| Some((link.idle_until(now)?, link))).collect();
        if idle.is_empty() {
            return 0;
        }
        let closed = links.len().div_ceil(CLOSED_SHARE).min(idle.len());
        idle.select_nth_unstable_by_key(closed - 1, |(until, _)| *until);
        idle[..closed].iter().for_each(|(_, link)| link.end_if_idle());
        closed
    }

    /// Reports that the worker is full, once in [`FULL_REPORT`] at most.
    fn report_full(&self, closed: bool) {
        if now() < self.quiet_until.get() {
            return;
        }
        self.quiet_until.set(now() + FULL_REPORT);
        let most = self.sizes.borrow().connections;
        let then = if closed { "idle ones are closed for new ones" } else { "new ones wait" };
        report(Severity::Warning, format_args!("a worker has {most} connections, as many as it may: {then}"));
    }

    /// Empties the cache, so that the next request for a file looks at the file again.
    pub fn forget(&self) {
        self.connecting.worker.state.borrow_mut().handler.forget();
    }

    /// Breaks off the connections that are left. Call it when [`drain`](Self::drain) has taken too
    /// long. It waits until the threads of the connections have ended, so that their last requests
    /// are in the log, but for a second at most.
    pub async fn break_off(&self) {
        let links = self.links.borrow().clone();
        links.iter().for_each(|link| link.break_off());
        // A thread that waits for the disk may take longer, so the result does not matter.
        let _ = timeout(BROKEN_OFF, self.connections.wait::<Gone>(())).await;
    }

    /// Ends the site gracefully. It closes idle connections at once, and each other connection
    /// after its next reply. It waits until all connections are gone. Give it a time limit, and
    /// [break off](Self::break_off) the connections that are left then. After it, call
    /// [`flush_log`](Self::flush_log).
    pub async fn drain(&self) {
        self.connecting.worker.begin_draining();
        let links = self.links.borrow().clone();
        for link in links {
            // The thread of an idle connection reads the end of its input, and ends. If a request
            // has come in meanwhile, the thread reads that before the end.
            link.end_if_idle();
        }
        self.connections.wait::<Gone>(()).await;
    }

    /// Ends the site when its clients have ended. Each connection is closed after its next reply,
    /// which says so to the client. An idle connection stays open until then, or until its time is
    /// up: a client that is about to send a request on it does not lose the request, as it may when
    /// the site [drains](Self::drain). It waits until all connections are gone.
    pub async fn retire(&self) {
        self.connecting.worker.begin_retiring();
        self.connections.wait::<Gone>(()).await;
    }

    /// Waits until all lines of the log are written.
    pub async fn flush_log(&self) {
        let mut logs = self.old_logs.borrow().clone();
        logs.extend(self.connecting.worker.state.borrow().log.clone());
        for log in logs {
            log.flush().await;
        }
    }

    /// A connection has ended.
    fn count_out(&self) {
        self.connections.with(|connections, queue| {
            *connections -= 1;
            while *connections == 0 && !queue.is_empty() {
                queue.grant();
            }
        });
    }

    fn admit(self: &Rc<Site>, stream: Stream, peer: Option<IpAddr>) -> Admitted {
        let mut links = self.links.borrow_mut();
        let link = Rc::new(Link::new(stream, peer, links.len()));
        links.push(link.clone());
        self.connections.with(|connections, _| *connections += 1);
        if let Some(counters) = &self.counters {
            counters.opened();
        }
        Admitted { site: self.clone(), link }
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("front", &self.connecting.worker.state.borrow().handler)
            .field("config", &self.sizes.borrow())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}

/// A connection's entry in the list. Its destructor takes the connection out of the list, also if
/// the thread panics.
struct Admitted {
    site: Rc<Site>,
    link: Rc<Link>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut links = self.site.links.borrow_mut();
        let place = self.link.place();
        links.swap_remove(place);
        if let Some(moved) = links.get(place) {
            moved.set_place(place);
        }
        drop(links);
        if let Some(counters) = &self.site.counters {
            counters.closed();
        }
        self.site.count_out();
    }
}

/// A connection that has not passed the gate yet. It counts until the value is dropped.
struct AtGate(Rc<Site>);

impl AtGate {
    fn new(site: &Rc<Site>) -> AtGate {
        site.at_gate.set(site.at_gate.get() + 1);
        site.connections.with(|connections, _| *connections += 1);
        AtGate(site.clone())
    }

    /// Serves the connection if it passes the gate, and closes it otherwise.
    async fn serve(self, gate: Arc<ConnectionGate>, stream: Stream, peer: Option<IpAddr>) {
        let site = self.0.clone();
        match gate.pass(&stream, peer, site.connecting.worker.terms().head).await {
            Ok((_passed, client)) => {
                let served = site.serve(stream, client);
                // From here on the connection counts as served.
                drop(self);
                served.await;
            }
            Err(_) => {
                if let Some(counters) = &site.counters {
                    add(&counters.refused.connections, 1);
                }
            }
        }
    }
}

impl Drop for AtGate {
    fn drop(&mut self) {
        self.0.at_gate.set(self.0.at_gate.get() - 1);
        self.0.count_out();
    }
}

/// The output of `work`, or `None` if `end` is ready first. `work` is polled first.
async fn before<T>(work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|cx| {
        if let Poll::Ready(output) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        end.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that comes while the site is drained is answered if its request is there. The
    /// site does not wait for a request on it.
    #[test]
    fn a_late_connection_is_answered_if_its_request_is_there() {
        let text = selvedge_core::round_robin_over(&mut selvedge_io::EventLoop::new().unwrap(), async {
            let site = Site::new(DocumentRoot::new(".").unwrap(), Config::default(), None);
            site.drain().await;
            let mut read = Vec::with_capacity(4096);
            for request in ["", "GET /Cargo.toml HTTP/1.1\r\nHost: a\r\n\r\n"] {
                let (client, server) = selvedge_io::net::UnixStream::pair().unwrap();
                client.write_all(request.as_bytes()).await.unwrap();
                site.serve(server.into(), None).await;
                while client.read_to_spare(&mut read).await.unwrap() > 0 {}
            }
            String::from_utf8(read).unwrap()
        });
        let text = text.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("Connection: close\r\n"), "{text}");
    }

    #[test]
    fn a_connection_thread_is_small() {
        let site = Site::new(DocumentRoot::new(".").unwrap(), Config::default(), None);
        let (stream, _) = selvedge_io::net::UnixStream::pair().unwrap();
        let thread = site.serve(stream.into(), None);
        assert!(size_of_val(&thread) <= 152, "{}", size_of_val(&thread));
        assert!(size_of::<Link>() <= 64, "{}", size_of::<Link>());
    }
}
