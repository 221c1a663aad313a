//! Clients over TLS: one of rustls, kdig if it is installed, and clients that are none.

use crate::common::*;
use domain::base::Rtype;
use domain::utils::base64;
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use futures_rustls::rustls::crypto::ring::default_provider;
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use futures_util::io::{AsyncReadExt, AsyncWriteExt};
use selvedge::net::TcpStream;
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::server::{Server, Settings};
use selvedge_dns::tls::{Identity, IdentityCell};
use selvedge_dns::wire::heard;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A certificate of `localhost`, made now, with its key.
fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.der().clone(), PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()))
}

/// Bytes as PEM (RFC 7468).
fn pem(label: &str, bytes: &[u8]) -> String {
    let text = base64::encode_string(bytes);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Starts a server for clients over TLS, and returns where it listens, and its cell.
fn serve_tls(settings: Settings, at: &str, identity: Identity) -> (SocketAddr, IdentityCell) {
    let mut server = Server::bind(settings, &[]).unwrap();
    let cell = IdentityCell::new(Mutex::new(Arc::new(identity)));
    let listens = server.bind_tls(cell.clone(), address(at)).unwrap();
    drop(selvedge::spawn(server.serve()));
    (listens, cell)
}

fn small() -> Settings {
    settings(zones(&[("example.org", "www A 192.0.2.1\n")]), None)
}

async fn connect(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<Compat<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols.push(b"dot".to_vec());
    let stream = TcpStream::connect(server).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, Compat::new(stream)).await
}

async fn ask_over(link: &mut TlsStream<Compat<TcpStream>>, id: u16) -> usize {
    let asked = key("www.example.org");
    frame::write(&mut *link, &heard::question(id, &asked, Rtype::A, true, true)).await.unwrap();
    let answer = frame::read(&mut *link).await.unwrap().unwrap();
    heard::read(&answer, id, &asked, Rtype::A).unwrap().answer.len()
}

#[selvedge::test]
async fn queries_are_answered_over_tls() {
    let (trusted, private) = certificate();
    let identity = Identity::new(vec![trusted.clone()], private).unwrap();
    let (server, cell) = serve_tls(small(), "127.0.0.1:0", identity);
    let mut link = connect(server, &trusted).await.unwrap();
    assert_eq!(link.get_ref().1.alpn_protocol(), Some(&b"dot"[..]));
    for id in [1, 2, 3] {
        assert_eq!(ask_over(&mut link, id).await, 1);
    }
    // The client says that it ends, and so does the server.
    link.close().await.unwrap();
    assert_eq!(link.read(&mut [0]).await.unwrap(), 0);
    // Another certificate holds for new clients.
    let (other, private) = certificate();
    let identity = Identity::new(vec![other.clone()], private).unwrap();
    *cell.lock().unwrap() = Arc::new(identity);
    assert!(connect(server, &trusted).await.is_err());
    assert_eq!(ask_over(&mut connect(server, &other).await.unwrap(), 4).await, 1);
}

#[selvedge::test]
async fn what_is_no_tls_is_closed() {
    let (trusted, private) = certificate();
    let limited = Settings { tcp_clients: 2, idle: std::time::Duration::from_millis(300), ..small() };
    let identity = Identity::new(vec![trusted.clone()], private).unwrap();
    let (server, _) = serve_tls(limited, "127.0.0.1:0", identity);
    // A query without TLS; a client that says nothing; one that goes on too slowly.
    let stream = TcpStream::connect(server).await.unwrap();
    let query = heard::question(1, &key("www.example.org"), Rtype::A, true, true);
    frame::write(Compat::new(&stream), &query).await.unwrap();
    let mut rest = Vec::new();
    let _ = Compat::new(&stream).read_to_end(&mut rest).await;
    assert!(!rest.windows(3).any(|window| window == b"www"), "{rest:?}");
    let silent = TcpStream::connect(server).await.unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    let slow = TcpStream::connect(server).await.unwrap();
    slow.write_all(&[22, 3, 1]).await.unwrap();
    assert_eq!(slow.read(&mut [0]).await.unwrap_or(0), 0);
    assert_eq!(ask_over(&mut connect(server, &trusted).await.unwrap(), 1).await, 1);
}

#[test]
fn files_of_a_certificate_are_read_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("certificate"), directory.path().join("key"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let read = || Identity::read(&certificate, &key).map(drop).map_err(|error| error.to_string());
    let missing = read().unwrap_err();
    assert!(missing.starts_with(&format!("{}: ", certificate.display())), "{missing}");
    std::fs::write(&certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    std::fs::write(&key, "no key\n").unwrap();
    assert!(read().unwrap_err().starts_with(&format!("{}: ", key.display())));
    std::fs::write(&key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
    read().unwrap();
    std::fs::write(&key, pem("PRIVATE KEY", &other.signing_key.serialize_der())).unwrap();
    assert!(read().unwrap_err().starts_with("the certificate cannot be used: "));
}

/// Whether a program is installed. One that is missing is told, because the test does less then.
fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("-V").output().is_ok();
    if !is_there {
        eprintln!("{program} is not installed");
    }
    is_there
}

#[selvedge::test]
async fn kdig_is_a_client() {
    if !is_there("kdig") {
        return;
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("certificate"), directory.path().join("key"));
    std::fs::write(&certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    std::fs::write(&key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
    let (server, _) = serve_tls(small(), "127.0.0.1:0", Identity::read(&certificate, &key).unwrap());
    let trusted = certificate.clone();
    let output = selvedge::blocking(move || kdig(server, &trusted)).await.unwrap();
    assert!(output.contains("www.example.org.") && output.contains("192.0.2.1"), "{output}");
}

fn kdig(server: SocketAddr, trusted: &Path) -> String {
    let output = Command::new("kdig")
        .args(["@127.0.0.1", "-p", &server.port().to_string(), "+tls", "+tls-hostname=localhost"])
        .arg(format!("+tls-ca={}", trusted.display()))
        .args(["www.example.org", "A"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}
