//! A reload changes where the server listens: it binds new addresses, closes others for new
//! connections, and leaves the rest alone.

use crate::common::{Client, Server, free_address, ms, site, start};
use crate::configured::{configured, httpd};
use crate::controlled::{children_of, ctl, three_processes, until};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// The configuration of a server with these addresses and this number of workers.
fn listen_at(file: &Path, addresses: &[&str], workers: u32) {
    let text = format!(
        "listen = {addresses:?}\nunix_mode = '600'\nworkers = {workers}\ncontrol = 'control'\n\
         [[route]]\ndirectory = '.'\n"
    );
    fs::write(file, text).unwrap();
}

fn serve(site: &Path, addresses: &[&str], workers: u32) -> (Server, PathBuf) {
    let file = site.join("site.toml");
    listen_at(&file, addresses, workers);
    (start(httpd(&[file.to_str().unwrap()])), file)
}

fn get_at(address: SocketAddr) -> u16 {
    Client::new(TcpStream::connect(address).unwrap()).ask(GET).status
}

#[test]
fn addresses_come_and_go() {
    for workers in [1, 3] {
        let (site, first) = (site(), free_address().to_string());
        let (server, file) = serve(site.path(), &[&first], workers);
        let (mut kept, mut download) = (server.connect(), server.connect());
        assert_eq!(kept.ask(GET).status, 200);
        download.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        download.wait_for_reply();
        let (other, path) = (free_address(), site.path().join("socket"));
        let unix = format!("unix:{}", path.display());
        listen_at(&file, &[&first, &other.to_string(), &unix], workers);
        let answer = ctl(&file, "reload").unwrap();
        assert_eq!(answer, format!("1 routes\nnow at http://{other}/\nnow at {unix}\n"));
        // The kernel spreads connections over the workers.
        let answered = (0..20).map(|_| (get_at(other), get_at(server.address)));
        assert!(answered.into_iter().all(|statuses| statuses == (200, 200)));
        let mut by_unix = UnixStream::connect(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        by_unix.write_all(GET.as_bytes()).unwrap();
        let mut begin = [0; 12];
        by_unix.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        assert!(ctl(&file, "status").unwrap().contains(&format!("address      http://{other}/\n")));

        listen_at(&file, &[&other.to_string()], workers);
        let answer = ctl(&file, "reload").unwrap();
        assert_eq!(
            answer,
            format!("1 routes\nno longer at http://{}/\nno longer at {unix}\n", server.address)
        );
        until("no listener", || TcpStream::connect(server.address).is_err());
        assert!(UnixStream::connect(&path).is_err() && !path.exists());
        assert_eq!((kept.ask(GET).status, get_at(other)), (200, 200));
        assert_eq!(download.reply().body.len(), 3_000_000);
        assert!(!ctl(&file, "status").unwrap().contains(&server.address.to_string()));

        // The first one comes back, and a server that stops closes what came later.
        listen_at(&file, &[&first, &other.to_string()], workers);
        ctl(&file, "reload").unwrap();
        assert_eq!((get_at(server.address), get_at(other), kept.ask(GET).status), (200, 200, 200));
        server.signal(Signal::TERM);
        assert!(server.end().success());
        assert!(TcpStream::connect(other).is_err());
    }
}

#[test]
fn an_address_that_cannot_be_bound_refuses_the_reload() {
    let site = site();
    let (server, file) = serve(site.path(), &["127.0.0.1:0"], 2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken, free) = (listener.local_addr().unwrap().to_string(), free_address());
    listen_at(&file, &[&free.to_string(), &taken], 2);
    let refused = ctl(&file, "reload").unwrap_err();
    assert!(
        refused.contains(&format!("site.toml:1:{}: it cannot be bound", 15 + free.to_string().len())),
        "{refused}"
    );
    assert!(refused.contains(&taken), "{refused}");
    assert_eq!(server.get("/ten.txt").status, 200);
    // The address that could be bound is free again.
    TcpListener::bind(free).unwrap();
    listen_at(&file, &[&free.to_string()], 2);
    ctl(&file, "reload").unwrap();
    assert_eq!(get_at(free), 200);
}

/// Several reloads at one moment are made one after another: each finds what the former has bound.
#[test]
fn reloads_at_one_moment() {
    let site = site();
    let (server, file) = serve(site.path(), &["127.0.0.1:0"], 2);
    for _ in 0..10 {
        let other = free_address();
        listen_at(&file, &["127.0.0.1:0", &other.to_string()], 2);
        let answers = std::thread::scope(|scope| {
            let reloads = [(); 4].map(|()| scope.spawn(|| ctl(&file, "reload").unwrap()));
            server.signal(Signal::HUP);
            reloads.map(|reload| reload.join().unwrap())
        });
        assert!(answers.iter().all(|answer| answer.starts_with("1 routes\n")), "{answers:?}");
        assert_eq!((get_at(other), get_at(server.address)), (200, 200));
    }
}

/// The process that takes over gets the addresses of the last reload, and no other.
#[test]
fn an_upgrade_follows() {
    let site = site();
    let (mut server, file) = serve(site.path(), &["127.0.0.1:0"], 2);
    let other = free_address();
    listen_at(&file, &[&other.to_string()], 2);
    ctl(&file, "reload").unwrap();
    ctl(&file, "upgrade").unwrap();
    until("the end of the first process", || !server.is_running());
    assert_eq!(get_at(other), 200);
    assert!(TcpStream::connect(server.address).is_err());
    ctl(&file, "stop").unwrap();
    until("the end of the second process", || TcpStream::connect(other).is_err());
}

/// Several processes have sockets that their parent has bound.
#[test]
fn several_processes_need_an_upgrade() {
    let site = site();
    let (file, port) = three_processes(site.path());
    let text = format!("control = 'control'\n{}", fs::read_to_string(&file).unwrap());
    fs::write(&file, &text).unwrap();
    let server = start(httpd(&[file.to_str().unwrap()]));
    until("three processes", || children_of(&server).len() == 3);
    std::thread::sleep(ms(1200));
    let other = free_address();
    fs::write(&file, text.replace(&format!("127.0.0.1:{port}"), &other.to_string())).unwrap();
    let answer = ctl(&file, "reload").unwrap();
    assert!(answer.contains("`listen` takes an upgrade"), "{answer}");
    assert_eq!(server.get("/ten.txt").status, 200);
    assert!(TcpStream::connect(other).is_err());
    server.signal(Signal::TERM);
    assert!(server.end().success());
}

/// Addresses come and go all the time. At the address that stays, each connection is taken, and
/// none is closed.
#[test]
fn reloads_of_addresses_under_load() {
    let site = site();
    let (server, file) = serve(site.path(), &["127.0.0.1:0"], 2);
    let others = [free_address(), free_address()];
    let (done, server) = (AtomicBool::new(false), &server);
    let done = &done;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                scope.spawn(move || {
                    let (mut client, mut served) = (server.connect(), 0);
                    while !done.load(Relaxed) {
                        if n % 2 == 0 {
                            client = server.connect();
                        }
                        assert_eq!(client.ask(GET).status, 200);
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        for n in 0..20 {
            let other = others[n / 2 % 2];
            let addresses = ["127.0.0.1:0", &other.to_string()];
            listen_at(&file, &addresses[..1 + (n + 1) % 2], 2);
            let answer = ctl(&file, "reload").unwrap();
            let word = if n % 2 == 0 { "now" } else { "no longer" };
            assert_eq!(answer, format!("1 routes\n{word} at http://{other}/\n"));
            match n % 2 {
                0 => assert_eq!(get_at(other), 200),
                _ => until("no listener", || TcpStream::connect(other).is_err()),
            }
        }
        done.store(true, Relaxed);
        let served: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(served > 20, "{served}");
    });
}

/// A server that has given up root may bind no port below 1024 by a reload.
#[test]
fn a_port_that_takes_privileges() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let site = site();
    fs::set_permissions(site.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let server = configured(site.path(), "user = 'nobody'\n[[route]]\ndirectory = '.'\n");
    let file = site.path().join("site.toml");
    let before = fs::read_to_string(&file).unwrap();
    let with = |more: &str| before.replace("['127.0.0.1:0']", &format!("['127.0.0.1:0', '{more}']"));
    fs::write(&file, with("127.0.0.1:787")).unwrap();
    server.signal(Signal::HUP);
    std::thread::sleep(ms(200));
    assert!(TcpStream::connect("127.0.0.1:787").is_err());
    assert_eq!(server.get("/ten.txt").status, 200);
    let other = free_address();
    fs::write(&file, with(&other.to_string())).unwrap();
    server.signal(Signal::HUP);
    until("the other address", || TcpStream::connect(other).is_ok());
}
