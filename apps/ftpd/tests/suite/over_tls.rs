//! FTP over TLS: a client of rustls that sees each reply; curl, lftp and openssl if they are
//! installed.

use crate::harness::{Server, bytes, files, server, start, users};
use futures_rustls::rustls::crypto::ring::default_provider;
use futures_rustls::rustls::pki_types::CertificateDer;
use futures_rustls::rustls::pki_types::ServerName;
use futures_rustls::rustls::pki_types::pem::PemObject;
use futures_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A server with a certificate of `localhost`, and the directory that it serves.
struct Fixture {
    server: Server,
    root: tempfile::TempDir,
    certificate: PathBuf,
    key: PathBuf,
    _users: tempfile::NamedTempFile,
    _private: tempfile::TempDir,
}

fn write_identity(certificate: &Path, key: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    fs::write(key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
}

/// Bytes as PEM (RFC 7468).
fn pem(label: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() { '=' } else { digit.into() });
        }
    }
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn fixture(options: &[&str]) -> Fixture {
    let (root, private) = (files(), tempfile::tempdir().unwrap());
    let (certificate, key) = (private.path().join("certificate.pem"), private.path().join("key.pem"));
    write_identity(&certificate, &key);
    let users = users(root.path(), "r");
    let mut command = server();
    command.arg("--certificate").arg(&certificate).arg("--key").arg(&key);
    command.arg("--users").arg(users.path()).args(options).arg(root.path());
    Fixture { server: start(command), root, certificate, key, _users: users, _private: private }
}

/// Shakes hands over a connection.
fn secure(stream: TcpStream, certificate: &Path) -> Secure {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

/// A client with a control connection over TLS.
struct SecureClient<'a> {
    fixture: &'a Fixture,
    reader: BufReader<Secure>,
}

impl Fixture {
    /// A client that has sent `opening` in the clear, and goes over to TLS.
    fn auth(&self, opening: &[u8]) -> SecureClient<'_> {
        let mut client = self.server.connect();
        client.write(opening);
        assert_eq!(client.reply().0, 234);
        let stream = client.stream().try_clone().unwrap();
        SecureClient { fixture: self, reader: BufReader::new(secure(stream, &self.certificate)) }
    }

    /// A client that has logged in and has private data connections.
    fn ada(&self) -> SecureClient<'_> {
        let mut client = self.auth(b"AUTH TLS\r\n");
        let login =
            [("PBSZ 0", 200), ("PROT P", 200), ("USER ada", 331), ("PASS secret", 230), ("TYPE I", 200)];
        client.expect(&login);
        client
    }
}

impl SecureClient<'_> {
    fn reply(&mut self) -> (u16, String) {
        let mut text = String::new();
        loop {
            let start = text.len();
            assert_ne!(self.reader.read_line(&mut text).unwrap(), 0, "the server has closed: {text}");
            let line = &text.as_bytes()[start..];
            if line[0].is_ascii_digit() && line[3] == b' ' {
                return (text[start..start + 3].parse().unwrap(), text);
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, exchanges: &[(&str, u16)]) {
        for &(line, code) in exchanges {
            self.reader.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
            let (said, text) = self.reply();
            assert_eq!(said, code, "{line}: {text}");
        }
    }

    /// The connection that EPSV offers, without a handshake.
    fn passive(&mut self) -> TcpStream {
        self.reader.get_mut().write_all(b"EPSV\r\n").unwrap();
        let (code, text) = self.reply();
        assert_eq!(code, 229, "{text}");
        let port: u16 = text.split('|').nth(3).unwrap().parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap()
    }

    fn secure_passive(&mut self) -> Secure {
        let stream = self.passive();
        secure(stream, &self.fixture.certificate)
    }

    fn fetch(&mut self, line: &str) -> Vec<u8> {
        let mut data = self.secure_passive();
        self.expect(&[(line, 150)]);
        let mut content = Vec::new();
        data.read_to_end(&mut content).expect("the server has said that this is the end");
        assert_eq!(self.reply().0, 226);
        content
    }
}

#[test]
fn commands_and_files_go_over_tls() {
    let fixture = fixture(&[]);
    let big = bytes(3_000_000);
    fs::write(fixture.root.path().join("big"), &big).unwrap();
    let mut client = fixture.ada();
    assert!(client.fetch("RETR big") == big);
    client.expect(&[("REST 2999990", 350)]);
    assert_eq!(client.fetch("RETR big"), big[2_999_990..]);
    assert!(String::from_utf8(client.fetch("MLSD")).unwrap().contains("ten.txt"));
    client.expect(&[("TYPE A", 200)]);
    assert_eq!(client.fetch("RETR lines.txt"), b"warp\r\nweft\r\n");
    client.expect(&[("TYPE I", 200)]);
    let mut data = client.secure_passive();
    client.expect(&[("STOR new", 150)]);
    data.write_all(&big).unwrap();
    data.conn.send_close_notify();
    data.flush().unwrap();
    assert_eq!(client.reply().0, 226);
    assert!(fs::read(fixture.root.path().join("new")).unwrap() == big);
    client.expect(&[("QUIT", 221)]);
    assert_eq!(client.reader.read(&mut [0]).expect("the server has said that this is the end"), 0);
}

/// An end that TLS does not tell may be an attacker's.
#[test]
fn an_upload_that_is_cut_off_is_not_stored() {
    let fixture = fixture(&[]);
    let mut client = fixture.ada();
    let mut data = client.secure_passive();
    client.expect(&[("STOR half", 150)]);
    data.write_all(b"half of it").unwrap();
    data.flush().unwrap();
    drop(data);
    assert_eq!(client.reply().0, 426);
    assert!(!fixture.root.path().join("half").exists());
}

#[test]
fn a_data_connection_without_tls_is_none() {
    let fixture = fixture(&[]);
    let mut client = fixture.ada();
    let mut data = client.passive();
    client.expect(&[("RETR ten.txt", 150)]);
    data.write_all(b"this is no handshake").unwrap();
    assert_eq!(client.reply().0, 425);
    client.expect(&[("PROT C", 200)]);
    let mut data = client.passive();
    client.expect(&[("RETR ten.txt", 150)]);
    let mut content = String::new();
    data.read_to_string(&mut content).unwrap();
    assert_eq!((content.as_str(), client.reply().0), ("0123456789", 226));
}

#[test]
fn the_order_of_the_commands() {
    let fixture = fixture(&[]);
    let mut client = fixture.server.connect();
    client.expect(&[("PBSZ 0", 503), ("PROT P", 503), ("AUTH GSSAPI", 504), ("AUTH", 501)]);
    assert!(client.say("FEAT").1.contains("\r\n AUTH TLS\r\n PBSZ\r\n PROT\r\n"));
    let mut client = fixture.auth(b"AUTH TLS\r\n");
    client.expect(&[("AUTH TLS", 503), ("PROT P", 503), ("PBSZ x", 501), ("PBSZ 0", 200), ("PROT S", 536)]);
    client.expect(&[("PROT X", 504), ("PROT P", 200), ("REIN", 502), ("PWD", 530), ("CCC", 502)]);
}

/// What came in the clear behind AUTH is not taken for the client's (CVE-2011-0411).
#[test]
fn commands_in_the_clear_do_not_reach_the_secure_session() {
    let fixture = fixture(&[]);
    let mut client = fixture.auth(b"AUTH TLS\r\nUSER anonymous\r\nPASS x\r\nDELE ");
    client.expect(&[("NOOP", 200), ("PWD", 530)]);
    // A login in the clear is void too.
    let mut before = fixture.server.anonymous();
    assert_eq!(before.say("AUTH TLS").0, 234);
    let stream = before.stream().try_clone().unwrap();
    let reader = BufReader::new(secure(stream, &fixture.certificate));
    SecureClient { fixture: &fixture, reader }.expect(&[("PWD", 530)]);
}

#[test]
fn clear_text_is_refused_where_tls_is_required() {
    let fixture = fixture(&["--require-tls"]);
    let mut client = fixture.server.connect();
    client.expect(&[("USER ada", 530), ("USER anonymous", 530), ("PASS secret", 530), ("FEAT", 211)]);
    let mut client = fixture.auth(b"AUTH TLS\r\n");
    client.expect(&[("USER ada", 331), ("PASS secret", 230), ("PBSZ 0", 200), ("PROT C", 534)]);
    let _data = client.passive();
    client.expect(&[("RETR ten.txt", 521), ("PROT P", 200), ("TYPE I", 200)]);
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789");
}

#[test]
fn a_silent_client_does_not_stay() {
    let fixture = fixture(&["--stall", "0.2"]);
    let mut client = fixture.server.connect();
    client.expect(&[("AUTH TLS", 234)]);
    assert!(client.is_closed());
}

#[test]
fn a_certificate_is_read_again() {
    let fixture = fixture(&[]);
    fixture.ada().expect(&[("PWD", 257)]);
    write_identity(&fixture.certificate, &fixture.key);
    fixture.server.signal(Signal::HUP);
    // The new certificate is the only one that the client trusts.
    crate::harness::eventually("the certificate is read", || {
        let mut client = fixture.server.connect();
        client.expect(&[("AUTH TLS", 234)]);
        let mut secure = secure(client.stream().try_clone().unwrap(), &fixture.certificate);
        secure.write_all(b"NOOP\r\n").is_ok()
    });
}

#[test]
fn what_is_no_certificate_is_told() {
    let directory = files();
    let path = directory.path().join("ten.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge-ftpd"))
        .arg("--certificate")
        .arg(&path)
        .arg("--key")
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with(&format!("selvedge-ftpd: {}: ", path.display())), "{message}");
}

/// Whether a program is installed. One that is missing is told, because the test does less then.
fn is_there(program: &str, version: &str) -> bool {
    let is_there = Command::new(program).arg(version).stdout(Stdio::null()).status().is_ok();
    if !is_there {
        eprintln!("{program} is not installed");
    }
    is_there
}

#[test]
fn curl_is_a_client() {
    let fixture = fixture(&["--require-tls"]);
    let port = fixture.server.address.port();
    let curl = |words: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "--ssl-reqd", "--resolve", &format!("localhost:{port}:127.0.0.1"), "--cacert"]);
        command.arg(&fixture.certificate).args(["-u", "ada:secret"]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let url = |path: &str| format!("ftp://localhost:{port}/{path}");
    assert_eq!(curl(&[&url("ten.txt")]), "0123456789");
    assert!(curl(&[&url("")]).contains("lines.txt"));
    let upload = fixture.root.path().join("lines.txt");
    curl(&["-T", upload.to_str().unwrap(), &url("stored")]);
    assert_eq!(fs::read(fixture.root.path().join("stored")).unwrap(), b"warp\nweft\n");
}

#[test]
fn lftp_is_a_client() {
    if !is_there("lftp", "--version") {
        return;
    }
    let fixture = fixture(&["--require-tls"]);
    let settings = format!(
        "set ssl:ca-file {}; set ftp:ssl-force true; set ftp:ssl-protect-data true; set net:max-retries 1; \
         open -u ada,secret ftp://localhost:{}; cat ten.txt; mput -O sub {}",
        fixture.certificate.display(),
        fixture.server.address.port(),
        fixture.root.path().join("lines.txt").display(),
    );
    let output = Command::new("lftp").args(["-c", &settings]).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("0123456789"), "{out}{errors}");
    assert_eq!(
        fs::read(fixture.root.path().join("sub/lines.txt")).unwrap(),
        b"warp\nweft\n",
        "{out}{errors}"
    );
}

#[test]
fn openssl_is_a_client() {
    if !is_there("openssl", "version") {
        return;
    }
    let fixture = fixture(&[]);
    let mut child = Command::new("openssl")
        .args(["s_client", "-starttls", "ftp", "-quiet", "-verify_return_error", "-CAfile"])
        .arg(&fixture.certificate)
        .args(["-connect", &fixture.server.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"SYST\r\nQUIT\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("215 UNIX Type: L8") && text.contains("221 Goodbye."), "{text}");
}
