//! `axum::serve` and `hyper::serve`: limits, errors and stopping, in a simulated world, where time
//! passes only when all threads wait.

use crate::common::ms;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::routing::get;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper::{Request, Response};
use selvedge_compat::axum::{PeerAddr, ServeError};
use selvedge_core::{JoinHandle, Time, spawn, spawn_local, yield_now};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::{sleep, timeout};
use selvedge_scope::CancelToken;
use selvedge_sim::{Conditions, World};
use selvedge_stm::{TVar, atomically};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The heads that a test sends end their connections, so that a test reads to the end.
const HELLO: &[u8] = b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// Runs a program under a few seeds, and expects that it leaves no descriptor open.
fn in_worlds<F: Future<Output = ()> + 'static>(conditions: Conditions, main: impl Fn() -> F) {
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let ended = World::new(seed).conditions(conditions.clone()).run(main());
        let ended = ended.unwrap_or_else(|failed| panic!("{failed}"));
        assert_eq!(ended.descriptors, 0, "they are closed");
    }
}

/// The errors that a server has told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<ServeError>>>);

impl Told {
    fn handler(&self) -> impl Fn(ServeError) + Send + Sync + 'static {
        let told = self.0.clone();
        move |error| told.lock().unwrap().push(error)
    }

    fn count(&self, of: impl Fn(&ServeError) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|error| of(error)).count()
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

/// Counts its drops.
#[derive(Clone)]
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn router(dropped: &Arc<AtomicUsize>) -> Router {
    let dropped = dropped.clone();
    let never = move || async move {
        let _guard = Guard(dropped);
        std::future::pending::<String>().await
    };
    let slow = async || {
        sleep(ms(100)).await;
        "at last"
    };
    let broken = async || {
        let pieces = [Ok("a piece"), Err(io::Error::other("the well is dry"))];
        Body::from_stream(futures::stream::iter(pieces))
    };
    let mine = async |Extension(PeerAddr(peer)): Extension<PeerAddr>| peer.to_string();
    Router::new()
        .route("/hello", get(async || "hello"))
        .route("/slow", get(slow))
        .route("/never", get(never))
        .route("/broken", get(broken))
        .route("/mine", get(mine))
}

/// A server, the token that stops it, and what it told.
fn start(
    router: Router,
    set: impl FnOnce(Server) -> Server + 'static,
) -> (JoinHandle<io::Result<()>>, CancelToken, Told) {
    let (stop, told) = (CancelToken::new(), Told::default());
    let listener = TcpListener::bind(address()).unwrap();
    let server = set(selvedge_compat::axum::serve(listener, router)).on_error(told.handler());
    let stopped = stop.clone();
    let server =
        spawn(async move { server.with_graceful_shutdown(async move { stopped.cancelled().await }).await });
    (server, stop, told)
}

type Server = selvedge_compat::axum::Serve<selvedge_compat::axum::RouterService, std::future::Pending<()>>;

async fn open(bytes: &[u8]) -> TcpStream {
    let stream = TcpStream::connect(address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

fn get_path(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").into_bytes()
}

async fn answer(stream: &TcpStream) -> String {
    String::from_utf8(stream.read_to_end().await.unwrap()).unwrap()
}

#[test]
fn a_router_with_state_is_served() {
    async fn add(State(sum): State<TVar<u64>>, Path(n): Path<u64>) -> String {
        let sum = atomically(|tx| {
            let sum_now = sum.read(tx)? + n;
            sum.write(tx, sum_now);
            Ok(sum_now)
        });
        sum.await.to_string()
    }
    in_worlds(Conditions::good(), || async {
        let sum = TVar::new(0);
        let router = Router::new().route("/add/{n}", get(add)).with_state(sum.clone());
        let (server, stop, told) = start(router, |server| server);
        let clients = (1..=10)
            .map(|n| spawn_local(async move { answer(&open(&get_path(&format!("/add/{n}"))).await).await }));
        for client in clients.collect::<Vec<_>>() {
            let answer = client.await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        assert!(answer(&open(&get_path("/add/0")).await).await.ends_with("\r\n\r\n55"));
        assert!(answer(&open(&get_path("/nothing")).await).await.starts_with("HTTP/1.1 404 "));
        stop.cancel();
        server.await.unwrap().unwrap();
        assert_eq!(told.all(), [""; 0]);
    });
}

#[test]
fn a_handler_knows_its_peer() {
    in_worlds(Conditions::good(), || async {
        let (server, stop, _) = start(router(&Arc::default()), |server| server);
        let client = open(&get_path("/mine")).await;
        let here = client.local_addr().unwrap().to_string();
        let answer = answer(&client).await;
        assert!(answer.ends_with(&format!("\r\n\r\n{here}")), "{answer} to {here}");
        stop.cancel();
        server.await.unwrap().unwrap();
    });
}

#[test]
fn connections_beyond_the_limit_wait_until_others_have_ended() {
    in_worlds(Conditions::good(), || async {
        let (server, stop, told) = start(router(&Arc::default()), |server| server.max_connections(2));
        let first = [open(b"").await, open(b"").await];
        // Both are accepted before the third comes: they can be used.
        for stream in &first {
            stream.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            assert!(stream.read(&mut [0; 1_000]).await.unwrap() > 0);
        }
        let third = open(HELLO).await;
        assert!(timeout(ms(5_000), answer(&third)).await.is_err(), "there are two already");
        let [one, two] = first;
        drop(one);
        assert!(answer(&third).await.ends_with("hello"));
        drop(two);
        stop.cancel();
        server.await.unwrap().unwrap();
        assert_eq!(told.all(), [""; 0]);
    });
}

/// Many come while the limit is reached: each is served, and none is forgotten.
#[test]
fn a_limit_of_one_serves_all() {
    in_worlds(Conditions::good(), || async {
        let (server, stop, _) = start(router(&Arc::default()), |server| server.max_connections(1));
        let clients: Vec<_> =
            (0..20).map(|_| spawn_local(async { answer(&open(HELLO).await).await })).collect();
        for client in clients {
            assert!(client.await.unwrap().ends_with("hello"));
        }
        stop.cancel();
        server.await.unwrap().unwrap();
    });
}

#[test]
fn a_head_that_takes_too_long_ends_its_connection_and_is_told() {
    in_worlds(Conditions::good(), || async {
        let limit = ms(700);
        let (server, stop, told) =
            start(router(&Arc::default()), move |server| server.header_read_timeout(limit));
        let start = Time::now();
        let stream = open(b"GET /hello HTTP/1.1\r\n").await;
        let _ = answer(&stream).await;
        let waited = Time::now().since(start);
        assert!(waited >= limit && waited < limit + ms(100), "{waited:?}");
        stop.cancel();
        server.await.unwrap().unwrap();
        let timeouts =
            |error: &ServeError| matches!(error, ServeError::Connection { error, .. } if error.is_timeout());
        assert_eq!(told.count(timeouts), 1, "{:?}", told.all());
        assert_eq!(told.count(ServeError::is_ours), 0, "a peer caused it");
    });
}

#[test]
fn errors_of_peers_and_of_the_program_are_told_apart() {
    in_worlds(Conditions::good(), || async {
        let (server, stop, told) = start(router(&Arc::default()), |server| server);
        let garbage = open(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await;
        let here = garbage.local_addr().unwrap();
        let _ = answer(&garbage).await;
        let from = |error: &ServeError| matches!(error, ServeError::Connection { peer, .. } if *peer == here);
        assert_eq!(told.count(from), 1, "{:?}", told.all());
        assert_eq!(told.count(ServeError::is_ours), 0, "{:?}", told.all());
        // A body that fails is the program's fault.
        let _ = open(&get_path("/broken")).await.read_to_end().await;
        stop.cancel();
        server.await.unwrap().unwrap();
        assert_eq!(told.count(ServeError::is_ours), 1, "{:?}", told.all());
    });
}

#[test]
fn a_pause_for_want_of_descriptors_is_told() {
    let conditions = Conditions { accept_fails: 300_000, ..Conditions::good() };
    let paused = Arc::new(AtomicUsize::new(0));
    let sum = paused.clone();
    in_worlds(conditions, move || {
        let sum = sum.clone();
        async move {
            let (server, stop, told) = start(router(&Arc::default()), |server| server);
            for _ in 0..10 {
                // The connection may have been broken off in the queue.
                let answer: io::Result<Vec<u8>> = async {
                    let stream = TcpStream::connect(address()).await?;
                    stream.write_all(HELLO).await?;
                    stream.read_to_end().await
                }
                .await;
                assert!(answer.is_err() || answer.is_ok_and(|a| a.is_empty() || a.ends_with(b"hello")));
            }
            stop.cancel();
            server.await.unwrap().unwrap();
            let pauses = told.count(|error| matches!(error, ServeError::Paused { times } if *times > 0));
            assert_eq!(pauses, told.count(ServeError::is_ours), "{:?}", told.all());
            sum.fetch_add(pauses, Ordering::Relaxed);
        }
    });
    assert!(paused.load(Ordering::Relaxed) > 0, "accepting pauses in three of ten calls or so");
}

#[test]
fn what_is_under_way_is_answered_within_the_grace_period() {
    in_worlds(Conditions::good(), || async {
        let grace = ms(60_000);
        let (server, stop, told) = start(router(&Arc::default()), move |server| server.grace_period(grace));
        let slow = open(&get_path("/slow")).await;
        let idle = open(b"").await;
        sleep(ms(50)).await;
        let start = Time::now();
        stop.cancel();
        assert!(answer(&slow).await.ends_with("at last"));
        assert_eq!(answer(&idle).await, "", "it is closed, because nothing is under way");
        server.await.unwrap().unwrap();
        assert!(Time::now().since(start) < ms(1_000), "it does not wait for longer than it must");
        assert!(TcpStream::connect(address()).await.is_err());
        assert_eq!(told.all(), [""; 0]);
    });
}

#[test]
fn what_is_left_behind_the_grace_period_is_cancelled() {
    in_worlds(Conditions::good(), || async {
        let grace = ms(2_000);
        let dropped = Arc::new(AtomicUsize::new(0));
        let (server, stop, told) = start(router(&dropped), move |server| server.grace_period(grace));
        let never = [open(&get_path("/never")).await, open(&get_path("/never")).await];
        sleep(ms(50)).await;
        let start = Time::now();
        stop.cancel();
        // The router, and with it the guard of the handler that each request copies, is dropped
        // with the server.
        server.await.unwrap().unwrap();
        let waited = Time::now().since(start);
        assert!(waited >= grace && waited < grace + ms(50), "{waited:?}");
        assert_eq!(
            dropped.load(Ordering::Relaxed),
            2,
            "the handlers are dropped when the server has returned"
        );
        for stream in never {
            let _ = stream.read_to_end().await;
        }
        let ended = |error: &ServeError| matches!(error, ServeError::GraceEnded { connections: 2 });
        assert_eq!(told.count(ended), 1, "{:?}", told.all());
    });
}

#[test]
fn a_server_that_is_dropped_cancels_its_connections() {
    in_worlds(Conditions::good(), || async {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (server, _stop, _) = start(router(&dropped), |server| server);
        let never = open(&get_path("/never")).await;
        sleep(ms(50)).await;
        server.cancel();
        assert!(server.await.is_err());
        let _ = never.read_to_end().await;
        while dropped.load(Ordering::Relaxed) == 0 {
            yield_now().await;
        }
    });
}

#[test]
fn a_handler_that_panics_ends_its_connection_alone() {
    in_worlds(Conditions::good(), || async {
        let panics = async || -> String { std::panic::resume_unwind(Box::new("on purpose")) };
        let (server, stop, _) = start(router(&Arc::default()).route("/panics", get(panics)), |server| server);
        let _ = open(&get_path("/panics")).await.read_to_end().await;
        assert!(answer(&open(HELLO).await).await.ends_with("hello"));
        stop.cancel();
        server.await.unwrap().unwrap();
    });
}

/// A service of hyper's has the same limits, and its failure is told as the program's.
#[test]
fn a_service_that_fails_is_told() {
    in_worlds(Conditions::good(), || async {
        let (stop, told) = (CancelToken::new(), Told::default());
        let listener = TcpListener::bind(address()).unwrap();
        let service = service_fn(async |request: Request<_>| -> Result<Response<Full<Bytes>>, io::Error> {
            let _: Request<hyper::body::Incoming> = request;
            Err(io::Error::other("no such table"))
        });
        let (stopped, handler) = (stop.clone(), told.handler());
        let server = spawn(async move {
            let stopped = async move { stopped.cancelled().await };
            let server = selvedge_compat::hyper::serve(listener, service, stopped);
            server.grace_period(Duration::from_secs(1)).on_error(handler).await
        });
        assert_eq!(answer(&open(HELLO).await).await, "");
        stop.cancel();
        server.await.unwrap().unwrap();
        assert_eq!(told.count(ServeError::is_ours), 1, "{:?}", told.all());
    });
}
