//! A server with files, a proxy and an application in simulated worlds: the network breaks
//! connections and brings bytes late, the server behind the proxy dies within its answers, and the
//! disk is full. A reply that comes whole is right, nothing is left behind, and a seed replays it
//! all.

use crate::proxy::{proxy, read_until};
use selvedge_core::{Time, sleep, spawn_local};
use selvedge_gateway::Proxy;
use selvedge_http::{Config, DynHandler, Metrics, Request, Routes, Routing, Site, StatusCode, Stop};
use selvedge_io::fs::{self, File};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Disk, Ended, Random, World, each_seed};
use selvedge_site::{Host, Route, RouteAction, RouteTable, Rules, ServedDirectory};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: u64 = 9;
const FILE: usize = 90_000;
const ANSWER: usize = 70_000;

/// The most bytes of an upload. Not all of them find room on the disk.
const UPLOAD_MAX: u64 = 60_000;

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 / 7) as u8).collect()
}

fn front() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// The disk with the file that is served.
fn disk() -> Disk {
    let mut disk = Disk::new();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), content(FILE)).unwrap();
    disk.load(directory.path(), "/srv/www").unwrap();
    disk.create_dir_all("/srv/stored").unwrap();
    disk
}

/// The application: puts a body into a file, piece by piece.
async fn store(request: Request) -> StatusCode {
    let (parts, mut body) = request.into_parts();
    let path = format!("/srv/stored{}", parts.uri.path());
    let stored = async {
        let mut file = File::create(path.clone()).await?;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| io::Error::new(ErrorKind::UnexpectedEof, error.to_string()))?;
            file.write_all(&piece).await?;
        }
        Ok::<(), io::Error>(())
    };
    let Err(error) = stored.await else { return StatusCode::CREATED };
    // What is there is no whole body.
    while let Err(error) = fs::remove_file(path.clone()).await
        && error.kind() != ErrorKind::NotFound
    {}
    match error.kind() {
        ErrorKind::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The routes: files below `/files/`, the server behind below `/behind/`, else the application.
fn routes() -> Option<Routes> {
    let files = RouteAction::Directory(ServedDirectory::new("/srv/www".into()));
    let actions =
        [("/files/", files), ("/behind/", RouteAction::Answer(501)), ("/", RouteAction::Answer(501))];
    let route = |(line, (pattern, action)): (usize, (&str, RouteAction))| Route {
        pattern: pattern.parse().unwrap(),
        action,
        rules: Rules::default(),
        line,
    };
    let routes = actions.into_iter().enumerate().map(route).collect();
    let table = RouteTable { hosts: vec![Host { names: Vec::new(), routes }], unmatched: 404 };
    // The disk may fail.
    let routing: Arc<Routing> = Routing::new(table).ok()?;
    let handlers = |route: &Route| -> Option<Rc<dyn DynHandler>> {
        let behind: Proxy = proxy(&[8001]);
        match route.line {
            0 => None,
            1 => Some(Rc::new(behind)),
            _ => Some(Rc::new(store)),
        }
    };
    Some(Routes { routing, metrics: Metrics::new(), gate: None, handlers: Box::new(handlers) })
}

/// The server behind the proxy, which dies within one of three answers.
async fn behind(listener: TcpListener, mut random: Random) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let dies_at = (random.below(3) == 0).then(|| random.below(ANSWER as u64) as usize);
        drop(spawn_local(async move {
            let _ = read_until(&stream, "\r\n\r\n").await;
            let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {ANSWER}\r\n\r\n").into_bytes();
            answer.extend(content(ANSWER));
            let _ = stream.write_all(&answer[..dies_at.unwrap_or(answer.len())]).await;
        }));
    }
}

/// What became of the requests of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcomes {
    whole: u32,
    cut: u32,
    full: u32,
    failed: u32,
}

/// The status and the content of the answer, if it came whole.
async fn exchange(request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let stream = TcpStream::connect(front()).await?;
    stream.set_read_deadline(Some(Time::now() + Duration::from_secs(600)));
    stream.set_write_deadline(Some(Time::now() + Duration::from_secs(600)));
    // A server that refuses a body reads no more of it, and its answer is there all the same.
    let _ = stream.write_all(request).await;
    let all = stream.read_to_end().await?;
    let cut = || io::Error::from(ErrorKind::UnexpectedEof);
    let head = all.windows(4).position(|end| end == b"\r\n\r\n").ok_or_else(cut)? + 4;
    let text = String::from_utf8_lossy(&all[..head]);
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    let length: usize = length.parse().expect("a number");
    if all.len() < head + length {
        Err(cut())
    } else {
        Ok((text[9..12].parse().unwrap(), all[head..].to_vec()))
    }
}

/// Asks for one of the three, and checks what comes whole.
async fn client(number: u64, mut random: Random) -> (Outcomes, Option<(u64, usize)>) {
    sleep(Duration::from_millis(random.below(500))).await;
    let mut outcomes = Outcomes::default();
    let end = "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let length = random.below(UPLOAD_MAX) as usize;
    let (mut request, expected, right) = match number % 3 {
        0 => (format!("GET /files/file {end}\r\n").into_bytes(), 200, content(FILE)),
        1 => (format!("GET /behind/answer {end}\r\n").into_bytes(), 200, content(ANSWER)),
        _ => (format!("PUT /{number} {end}Content-Length: {length}\r\n\r\n").into_bytes(), 201, Vec::new()),
    };
    if expected == 201 {
        request.extend(content(length));
    }
    match exchange(&request).await {
        Ok((status, content)) if status == expected => {
            assert!(content == right, "client {number} got {} other bytes", content.len());
            outcomes.whole += 1;
            return (outcomes, (status == 201).then_some((number, length)));
        }
        Ok((507, _)) => outcomes.full += 1,
        Ok((status, _)) => {
            assert!([408, 500, 502, 503, 504].contains(&status), "client {number} got {status}");
            outcomes.failed += 1;
        }
        Err(_) => outcomes.cut += 1,
    }
    (outcomes, None)
}

/// A run, with the uploads that the server has confirmed.
async fn run(seed: u64) -> (Outcomes, Vec<(u64, usize)>) {
    let mut random = Random::new(seed);
    let routes = (0..100).find_map(|_| routes()).expect("the directory can be opened some time");
    let site = Site::with_routes(routes, Config::default(), None);
    let (listener, stop) = (TcpListener::bind(front()).unwrap(), Stop::new());
    let server = {
        let (site, stop) = (site.clone(), stop.clone());
        spawn_local(async move { site.serve_tcp(listener, &stop).await })
    };
    let upstream = TcpListener::bind("127.0.0.1:8001".parse().unwrap()).unwrap();
    let upstream = spawn_local(behind(upstream, random.branch()));
    let clients: Vec<_> = (0..CLIENTS).map(|number| spawn_local(client(number, random.branch()))).collect();
    let (mut all, mut stored) = (Outcomes::default(), Vec::new());
    for client in clients {
        let (outcomes, upload) = client.await.unwrap();
        all.whole += outcomes.whole;
        all.cut += outcomes.cut;
        all.full += outcomes.full;
        all.failed += outcomes.failed;
        stored.extend(upload);
    }
    stop.request();
    server.await.unwrap().unwrap();
    timeout(Duration::from_secs(3600), site.drain()).await.expect("connections end in an hour");
    assert_eq!((site.connections(), Rc::strong_count(&site)), (0, 1));
    upstream.cancel();
    sleep(Duration::from_secs(3600)).await;
    (all, stored)
}

fn world(seed: u64, disk: &Disk) -> Ended<(Outcomes, Vec<(u64, usize)>)> {
    let conditions = if seed.is_multiple_of(4) { Conditions::good() } else { Conditions::bad() };
    let room = FILE as u64 + 100_000;
    let world = World::new(seed).conditions(Conditions { disk_bytes: room, ..conditions });
    world.disk(disk.clone()).run(run(seed)).unwrap()
}

#[test]
fn whatever_fails_a_whole_reply_is_right_and_a_confirmed_upload_is_there() {
    let disk = disk();
    let mut all = Outcomes::default();
    each_seed(0..200, |seed| {
        let ended = world(seed, &disk);
        assert_eq!((ended.descriptors, ended.left.len()), (0, 0), "{:?}", ended.left);
        let (outcomes, stored) = ended.output;
        for (number, length) in stored {
            let file = ended.disk.read(format!("/srv/stored/{number}")).unwrap();
            assert!(file == content(length), "upload {number}");
        }
        all.whole += outcomes.whole;
        all.cut += outcomes.cut;
        all.full += outcomes.full;
        all.failed += outcomes.failed;
    });
    assert!(all.whole > 500 && all.cut > 50 && all.full > 20 && all.failed > 5, "{all:?}");
}

#[test]
fn a_seed_replays_all_of_it() {
    let disk = disk();
    for seed in 0..12 {
        let told = |ended: Ended<_>| (ended.digest, ended.steps, ended.time, ended.output);
        assert_eq!(told(world(seed, &disk)), told(world(seed, &disk)));
    }
}
