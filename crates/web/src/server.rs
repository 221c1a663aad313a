//! [`Server`]: a handler on all processors of the machine, until the process is told to end.

use selvedge_core::round_robin_over;
use selvedge_handler::Handler;
use selvedge_http::{Config, Metrics, Site, Stop};
use selvedge_io::EventLoop;
use selvedge_io::net::{ListenOptions, TcpListener};
use selvedge_io::signal::{Signal, Signals, signals};
use selvedge_io::time::timeout;
use selvedge_sched::per_core;
use selvedge_scope::{Selected, select};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the server waits for requests in flight when it ends, if not set.
const DRAIN: Duration = Duration::from_secs(10);

/// A server on several processors: a worker on each, with a socket, an event loop and a handler of
/// its own. The kernel spreads the connections over the workers, and a connection stays with its
/// worker. So a handler may keep an `Rc`, and what the workers share is behind an `Arc`.
///
/// # Paper
/// \[Mighty\] "Scaling": processes that share nothing make use of all cores.
///
/// # Examples
/// ```no_run
/// use selvedge::web::{Router, Server};
///
/// fn main() -> std::io::Result<()> {
///     let server = Server::bind("127.0.0.1:8080")?;
///     println!("http://{}", server.address());
///     // Until SIGTERM or Ctrl-C.
///     server.run(|| Router::new().get("/", async || "woven"))
/// }
/// ```
///
/// A test ends it by itself:
/// ```
/// use selvedge::http::Stop;
/// use selvedge::web::{Router, Server};
///
/// let server = Server::bind("127.0.0.1:0")?.workers(2);
/// let (address, stop) = (server.address(), Stop::new());
/// let told = stop.clone();
/// let running = std::thread::spawn(move || {
///     server.run_unless_stopped(&told, || Router::new().get("/", async || "woven"))
/// });
/// let answer = selvedge::run_local(async move {
///     let client = selvedge::client::Client::new();
///     client.get(format!("http://{address}/")).await?.into_body().text(100).await
/// })?;
/// assert_eq!(answer?, "woven");
/// stop.request();
/// running.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    first: TcpListener,
    workers: NonZeroUsize,
    config: Config,
    drain: Duration,
    metrics: Option<Arc<Metrics>>,
}

impl Server {
    /// A server at `address`, with a worker on each processor that this process may use. From now
    /// on the kernel accepts connections. With port 0 the system chooses a port.
    ///
    /// # Errors
    /// The address has no meaning here, or is in use.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Server> {
        let none = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
        let address = address.to_socket_addrs()?.next().ok_or(none)?;
        if address.port() != 0 {
            // Several servers may share such a port, and this one must find it free.
            drop(ListenOptions::new().bind(address)?);
        }
        let first = ListenOptions::new().reuse_port(true).bind(address)?;
        let workers = thread::available_parallelism()?;
        Ok(Server { first, workers, config: Config::default(), drain: DRAIN, metrics: None })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.first.local_addr()
    }

    /// The number of workers, each on an OS thread; at least 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Server {
        self.workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// The limits of requests and connections. Those of connections are for each worker.
    #[must_use]
    pub fn config(mut self, config: Config) -> Server {
        self.config = config;
        self
    }

    /// Counts the requests and connections of all workers in `metrics`. The application may tell
    /// them with a [`StatusPage`](selvedge_http::StatusPage), and to Prometheus.
    #[must_use]
    pub fn metrics(mut self, metrics: &Arc<Metrics>) -> Server {
        self.metrics = Some(metrics.clone());
        self
    }

    /// How long it waits for requests in flight when it ends. After it they are broken off. 10 s if
    /// not set.
    #[must_use]
    pub fn drain_limit(mut self, limit: Duration) -> Server {
        self.drain = limit;
        self
    }

    /// Serves until SIGTERM or SIGINT. Then it accepts no more connections, finishes the requests
    /// in flight, and returns. A second signal ends the process at once. Each worker calls `make`
    /// once.
    ///
    /// # Errors
    /// The system's, if a worker cannot start or cannot accept.
    ///
    /// # Panics
    /// If a worker panics outside of a connection: in `make`.
    pub fn run<H: Handler>(self, make: impl Fn() -> H + Sync) -> io::Result<()> {
        let signals = signals(&[Signal::TERM, Signal::INT])?;
        let (stop, over) = (Stop::new(), Stop::new());
        thread::scope(|scope| {
            let (told, end) = (stop.clone(), over.clone());
            let hearing = scope.spawn(move || -> io::Result<()> {
                let heard = round_robin_over(&mut EventLoop::new()?, hear(signals, told.clone(), end));
                // Without ears the server could not be ended.
                told.request();
                heard.map_err(io::Error::other)
            });
            let served = self.run_unless_stopped(&stop, make);
            over.request();
            let heard = hearing.join().unwrap_or_else(|_| Err(io::Error::other("signals: a panic")));
            served.and(heard)
        })
    }

    /// Serves until `stop` is requested, and hears no signals. Otherwise as [`run`](Self::run).
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    pub fn run_unless_stopped<H: Handler>(self, stop: &Stop, make: impl Fn() -> H + Sync) -> io::Result<()> {
        let Server { first, workers, config, drain, metrics } = self;
        let address = first.local_addr();
        let more = (1..workers.get()).map(|_| ListenOptions::new().reuse_port(true).bind(address));
        let listeners: io::Result<Vec<TcpListener>> = std::iter::once(Ok(first)).chain(more).collect();
        let listeners: Vec<_> = listeners?.into_iter().map(|one| Mutex::new(Some(one))).collect();
        let worker = |index: usize| {
            let slot: &Mutex<Option<TcpListener>> = &listeners[index];
            let listener = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            let site = match &metrics {
                Some(metrics) => Site::with_counted_handler(make(), config.clone(), None, metrics),
                None => Site::with_handler(make(), config.clone(), None),
            };
            let stop = stop.clone();
            async move {
                let listener = listener.expect("each worker takes its own");
                let accepted = site.serve_tcp(listener, &stop).await;
                // A worker that cannot accept is no reason to serve by halves.
                stop.request();
                if timeout(drain, site.drain()).await.is_err() {
                    site.break_off().await;
                }
                accepted
            }
        };
        let ended = per_core(workers.get(), |_| EventLoop::new(), worker);
        ended.map_err(io::Error::other)?.into_iter().collect()
    }
}

/// Stops the server at the first signal, and ends the process at the second, until `over`.
async fn hear(mut signals: Signals, stop: Stop, over: Stop) {
    loop {
        match select((signals.next(), over.requested())).await {
            Selected::First(Ok(_)) if stop.is_requested() => std::process::exit(1),
            Selected::First(Ok(_)) => stop.request(),
            Selected::First(Err(_)) | Selected::Second(()) => return,
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address())
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
