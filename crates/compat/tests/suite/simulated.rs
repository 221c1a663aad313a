//! hyper, which knows nothing of it, on a simulated network that delays, cuts and loses: under many
//! seeds.
#![cfg(feature = "hyper")]

use crate::common::noise;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use selvedge_compat::Compat;
use selvedge_compat::hyper::Clock;
use selvedge_core::spawn_local;
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::each_seed;
use selvedge_sim::{Conditions, World};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, hyper::Error> {
    Ok(Response::new(request.into_body()))
}

async fn serve(listener: TcpListener) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(Clock).header_read_timeout(Duration::from_secs(5));
    while let Ok((stream, _)) = listener.accept().await {
        let connection = http.serve_connection(Compat::new(stream), service_fn(echo));
        drop(spawn_local(async move { drop(connection.await) }));
    }
}

async fn ask() -> Result<usize, Error> {
    let stream = TcpStream::connect(address()).await?;
    let (mut client, connection) = hyper::client::conn::http1::handshake(Compat::new(stream)).await?;
    drop(spawn_local(async move { drop(connection.await) }));
    let mut answered = 0;
    for length in LENGTHS {
        let sent = noise(length);
        let body = Full::<Bytes>::from(sent.clone());
        let request = Request::post("/").header("host", "simulated").body(body)?;
        let received = client.send_request(request).await?.into_body().collect().await?.to_bytes();
        assert!(received == sent, "what comes whole is what was sent");
        answered += 1;
    }
    Ok(answered)
}

/// Miri takes a minute for one client.
const CLIENTS: usize = if cfg!(miri) { 1 } else { 3 };
/// The bytes of the bodies that a client sends.
const LENGTHS: [usize; 3] = if cfg!(miri) { [10, 1_000, 5_000] } else { [10, 5_000, 60_000] };
const SEEDS: u64 = if cfg!(miri) { 1 } else { 50 };

/// The answers that clients got, of three each.
async fn program(clients: usize) -> usize {
    let server = spawn_local(serve(TcpListener::bind(address()).unwrap()));
    let clients: Vec<_> =
        (0..clients).map(|_| spawn_local(timeout(Duration::from_secs(600), ask()))).collect();
    let mut answered = 0;
    for client in clients {
        // A connection that has met an error counts for nothing.
        answered += client.await.unwrap().expect("it ends, well or badly").unwrap_or_default();
    }
    server.cancel();
    answered
}

fn run(seed: u64, conditions: Conditions) -> usize {
    let ended = World::new(seed).conditions(conditions).run(program(CLIENTS));
    let ended = ended.unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(ended.descriptors, 0, "they are closed");
    ended.output
}

#[test]
fn on_a_good_network_every_request_is_answered() {
    each_seed(0..SEEDS, |seed| {
        assert_eq!(run(seed, Conditions::good()), 3 * CLIENTS);
    });
}

#[test]
#[cfg_attr(miri, ignore = "it needs many seeds, of which Miri has no time for one")]
fn on_a_bad_network_what_is_answered_is_right_and_nothing_hangs() {
    let answered = AtomicUsize::new(0);
    each_seed(0..200, |seed| {
        answered.fetch_add(run(seed, Conditions::bad()), Ordering::Relaxed);
    });
    let answered = answered.into_inner();
    assert!(answered > 0 && answered < 200 * 9, "{answered} of 1,800: some are lost, and some are not");
}
