//! rustls on our streams, through `futures-rustls`.
#![cfg(feature = "futures-io")]

use crate::common::{listen, ms, noise, run, run_on_tokio, tcp_pair};
use futures::future::join;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector, client, server};
use selvedge_compat::Compat;
use selvedge_core::{Time, spawn_local};
use selvedge_io::net::{TcpStream, UnixStream};
use selvedge_io::time::timeout;
use std::io::ErrorKind;
use std::sync::Arc;

/// A server and a client that trusts it.
fn parties() -> (TlsAcceptor, TlsConnector) {
    let (certificate, key) = certificate();
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    let server =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)))
}

fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.der().clone(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()))
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

type Ends<S> = (server::TlsStream<Compat<S>>, client::TlsStream<Compat<S>>);

/// Both ends of a TLS connection, shaken hands.
async fn shake<S>(here: S, there: S) -> Ends<S>
where
    Compat<S>: futures::AsyncRead + futures::AsyncWrite + Unpin,
{
    let (acceptor, connector) = parties();
    let client = connector.connect(localhost(), Compat::new(here));
    let (server, client) = join(acceptor.accept(Compat::new(there)), client).await;
    (server.unwrap(), client.unwrap())
}

/// A large transfer in each direction, one after the other, each to its end.
async fn exchange<S>((mut server, mut client): Ends<S>)
where
    Compat<S>: futures::AsyncRead + futures::AsyncWrite + Unpin,
{
    let bytes = noise(2_000_000);
    let serve = async {
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.expect("the client has said that this is the end");
        assert!(received == bytes);
        server.write_all(&received).await.unwrap();
        server.close().await.unwrap();
    };
    let ask = async {
        client.write_all(&bytes).await.unwrap();
        client.close().await.unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.expect("the server has said that this is the end");
        assert!(received == bytes);
    };
    join(serve, ask).await;
}

#[test]
fn large_transfers_and_their_ends() {
    run(async {
        let (here, there) = tcp_pair().await;
        exchange(shake(here, there).await).await;
        let (here, there) = UnixStream::pair().unwrap();
        exchange(shake(here, there).await).await;
    });
}

#[test]
fn large_transfers_on_tokio() {
    run_on_tokio(async {
        let (listener, address) = listen();
        let (here, there) = join(TcpStream::connect(address), listener.accept()).await;
        exchange(shake(here.unwrap(), there.unwrap().0).await).await;
    });
}

#[test]
fn both_directions_at_once() {
    run(async {
        let (here, there) = tcp_pair().await;
        let (server, client) = shake(here, there).await;
        let echo = spawn_local(async move {
            let (reader, mut writer) = server.split();
            futures::io::copy(reader, &mut writer).await.unwrap();
            writer.close().await.unwrap();
        });
        let bytes = noise(1_000_000);
        let (mut reader, mut writer) = client.split();
        let write = async {
            writer.write_all(&bytes).await.unwrap();
            writer.close().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, read) = join(write, reader.read_to_end(&mut received)).await;
        read.unwrap();
        assert!(received == bytes);
        echo.await.unwrap();
    });
}

#[test]
fn an_end_without_close_notify_is_no_end() {
    run(async {
        let (here, there) = tcp_pair().await;
        let (mut server, mut client) = shake(here, there).await;
        server.write_all(b"half a mess").await.unwrap();
        server.flush().await.unwrap();
        // Cut off: the connection beneath ends, and TLS does not.
        drop(server.into_inner());
        let mut received = Vec::new();
        let error = client.read_to_end(&mut received).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
        assert_eq!(received, b"half a mess");
    });
}

#[test]
fn a_stranger_is_refused_on_both_sides() {
    run(async {
        let (here, there) = tcp_pair().await;
        let ((acceptor, _), (_, connector)) = (parties(), parties());
        let client = connector.connect(localhost(), Compat::new(here));
        let (server, client) = join(acceptor.accept(Compat::new(there)), client).await;
        assert_eq!(client.unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(server.unwrap_err().kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn a_handshake_that_does_not_come_is_given_up() {
    run(async {
        let (acceptor, _) = parties();
        let (there, _silent) = tcp_pair().await;
        assert!(timeout(ms(20), acceptor.accept(Compat::new(there))).await.is_err());
        // Or by the stream's own deadline, without a timer.
        let (there, _silent) = tcp_pair().await;
        there.set_read_deadline(Some(Time::now() + ms(20)));
        assert_eq!(acceptor.accept(Compat::new(there)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[cfg(feature = "hyper")]
#[test]
fn hyper_over_tls() {
    use http_body_util::{BodyExt, Empty, Full};
    use hyper::body::Bytes;
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use selvedge_compat::hyper::FuturesIo;
    run(async {
        let (here, there) = tcp_pair().await;
        let (server, client) = shake(here, there).await;
        drop(spawn_local(async move {
            let large = service_fn(|_| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(noise(1_000_000))))
            });
            hyper::server::conn::http1::Builder::new()
                .serve_connection(FuturesIo::new(server), large)
                .await
                .unwrap();
        }));
        let (mut client, connection) =
            hyper::client::conn::http1::handshake(FuturesIo::new(client)).await.unwrap();
        let connection = spawn_local(connection);
        for _ in 0..3 {
            let request = Request::get("/").header("host", "localhost").body(Empty::<Bytes>::new()).unwrap();
            let answer = client.send_request(request).await.unwrap();
            assert!(answer.into_body().collect().await.unwrap().to_bytes() == noise(1_000_000));
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}
