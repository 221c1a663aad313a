//! Interoperation: crates that know nothing of Selvedge, on its threads and sockets.
//!
//! Futures need no adapter: any future runs as a Selvedge thread, and Selvedge's system calls work
//! within any executor. But each library has its own *traits* by which it reaches a connection, a
//! timer and an executor. [`Compat`] implements these traits for our streams, with a Cargo feature
//! for each library:
//!
//! | feature | traits | for |
//! |---|---|---|
//! | `futures-io` (default) | `futures_io::{AsyncRead, AsyncWrite}` | rustls through `futures-rustls`, `async-tungstenite`, ... |
//! | `hyper` | [`hyper::rt`](https://docs.rs/hyper/1/hyper/rt/): `Read`, `Write`, `Timer`, `Sleep`, `Executor` | hyper, as server and client, of HTTP/1 and HTTP/2 |
//! | `rustls` | `rustls::ServerConfig` | the certificate of a server, from its files: `rustls::server_config` |
//! | `hyper-server` | hyper's `Service` | a whole server of a service of hyper's: `hyper::serve` |
//! | `axum` | axum's `Router`; of axum nothing else but what the program asks for | a whole server of a router: `axum::serve` |
//! | `tower` | tower's `Service`, and handlers of ours | an axum router on our connections, a handler of ours under hyper: `tower::FromTower`, `tower::ToTower` |
//! | `tokio` | `tokio::io::{AsyncRead, AsyncWrite}`; of tokio nothing else is compiled | `tokio-rustls`, `h2`, database drivers, ... |
//! | `tokio-runtime` | tokio's runtime, beside our schedulers | `reqwest`, and whatever calls tokio's sockets, timers and tasks: `tokio::within` |
//!
//! All of it works under every scheduler of ours that is driven with an
//! [`EventLoop`](selvedge_io::EventLoop), and under foreign executors.
//!
//! # TLS
//! `futures-rustls` makes a TLS connection of any stream that has `futures_io`'s traits, and so of
//! a [`Compat`]:
//!

// # For readers of the source
//
// An adapter is a stream and two places to wait (`Compat`), and one file for each library. Futures
// need no adapter. Besides the adapters there are a clock and two executors for hyper, a whole
// server for hyper's services and axum's routers (`Serve`), and a future that is polled in the
// context of a tokio runtime (`Within`).
//
// Invariants:
// - An adapter has no buffer. It reads into the caller's memory, and writes from it.
// - No runtime but ours is compiled in, unless a program asks for tokio's with the feature
//   `tokio-runtime`: of tokio and hyper the traits alone, and of axum the parts that need no
//   runtime.

#![cfg_attr(
    feature = "futures-io",
    doc = r##"
```
use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector};
use selvedge_compat::Compat;
use selvedge_core::{round_robin_over, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use std::sync::Arc;

// A certificate that the client is told to trust.
let made = rcgen::generate_simple_self_signed(["localhost".to_string()])?;
let mut trusted = RootCertStore::empty();
trusted.add(made.cert.der().clone())?;
let client = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
let server =
    ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)?;

round_robin_over(&mut EventLoop::new()?, async move {
    let (here, there) = UnixStream::pair().unwrap();
    let echo = spawn_local(async move {
        let mut tls = TlsAcceptor::from(Arc::new(server)).accept(Compat::new(there)).await?;
        let mut line = [0; 5];
        tls.read_exact(&mut line).await?;
        tls.write_all(&line).await?;
        tls.close().await
    });
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = TlsConnector::from(Arc::new(client)).connect(name, Compat::new(here)).await.unwrap();
    tls.write_all(b"hello").await.unwrap();
    tls.flush().await.unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "hello");
    echo.await.unwrap().unwrap();
})?;
# Ok::<(), Box<dyn std::error::Error>>(())
```
"##
)]
//!
//! # What it costs
//! An adapter adds no buffer and copies nothing: a read goes into the caller's memory, initialised
//! or not, and writes are vectored. The first wait in a direction allocates 40 bytes, which all
//! later waits use. A poll after the awaited event costs as much as an `.await`. A poll for another
//! reason makes one call that would block.
#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[cfg(feature = "axum")]
pub mod axum;
mod compat;
#[cfg(feature = "futures-io")]
mod futures_io;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "tower")]
pub mod tower;

pub use compat::{Compat, PollRead, PollWrite};

/// The programs of the guide's page for tokio's users run as printed.
#[cfg(all(doctest, feature = "axum", feature = "tokio-runtime"))]
#[doc = include_str!("../../../docs/guide/from-tokio.md")]
pub struct FromTokio;
