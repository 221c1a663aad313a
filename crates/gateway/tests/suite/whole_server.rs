//! A server with files, a proxy, an application and an access log in simulated worlds: the network
//! breaks connections and brings bytes late, the server behind the proxy dies within its answers,
//! and the disk is full. A reply that comes whole is right, the log has whole lines, nothing is
//! left behind, and a seed replays it all.

use crate::proxy::{proxy, read_until};
use selvedge_core::{Time, sleep, spawn_local};
use selvedge_gateway::Proxy;
use selvedge_http::{
    Config, DynHandler, LogFile, Metrics, Request, Rotation, Routes, Routing, Site, StatusCode, Stop,
};
use selvedge_io::blocking;
use selvedge_io::fs::{self, File};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Disk, Ended, Random, World, each_seed};
use selvedge_site::{Host, Route, RouteAction, RouteTable, Rules, ServedDirectory};
use std::collections::BTreeMap;
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

/// The most bytes of a client's name. A line that is so long is cut by a disk that takes less than
/// it was given, or has no page left.
const NAME_MAX: u64 = 3_000;

/// The end of a client's name, and so of each line of the log.
const LINE_END: &str = "-end\"";

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
    let path = format!("/srv/stored/{}", parts.uri.query().expect("the client's number"));
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

impl Outcomes {
    fn add(&mut self, others: Outcomes) {
        self.whole += others.whole;
        self.cut += others.cut;
        self.full += others.full;
        self.failed += others.failed;
    }
}

/// What a client has seen.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    number: u64,
    outcomes: Outcomes,
    /// The status of the answer, if that came whole.
    status: Option<u16>,
    /// The length of the upload, if the server has confirmed it.
    stored: Option<usize>,
    /// When the client had its answer.
    at: Time,
}

/// When the clients come, and when the log is renamed.
#[derive(Clone, Copy, Debug)]
struct Plan {
    clients: u64,
    /// All clients have come after this time.
    spread: Duration,
    rotation: Rotation,
}

impl Plan {
    /// All come within half a second.
    fn together() -> Plan {
        Plan { clients: CLIENTS, spread: Duration::from_millis(500), rotation: Rotation::default() }
    }

    /// They come in the course of a night, so that each line is written by itself.
    fn in_hours(rotation: Rotation) -> Plan {
        Plan { clients: 20, spread: Duration::from_secs(8 * 3600), rotation }
    }
}

/// A run at its end.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    seen: Vec<Seen>,
    /// The lines that the log says are lost.
    lost: u64,
}

impl Run {
    fn outcomes(&self) -> Outcomes {
        let mut all = Outcomes::default();
        self.seen.iter().for_each(|seen| all.add(seen.outcomes));
        all
    }
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
async fn client(number: u64, spread: Duration, mut random: Random) -> Seen {
    sleep(Duration::from_millis(random.below(spread.as_millis() as u64))).await;
    let name = "x".repeat(random.below(NAME_MAX) as usize);
    let end = format!("HTTP/1.1\r\nHost: a\r\nUser-Agent: {name}-end\r\nConnection: close\r\n");
    let length = random.below(UPLOAD_MAX) as usize;
    let (mut request, expected, right) = match number % 3 {
        0 => (format!("GET /files/file?{number} {end}\r\n").into_bytes(), 200, content(FILE)),
        1 => (format!("GET /behind/answer?{number} {end}\r\n").into_bytes(), 200, content(ANSWER)),
        _ => (format!("PUT /?{number} {end}Content-Length: {length}\r\n\r\n").into_bytes(), 201, Vec::new()),
    };
    if expected == 201 {
        request.extend(content(length));
    }
    let answer = exchange(&request).await;
    let (mut outcomes, mut stored) = (Outcomes::default(), None);
    let status = answer.as_ref().ok().map(|(status, _)| *status);
    match answer {
        Ok((status, content)) if status == expected => {
            assert!(content == right, "client {number} got {} other bytes", content.len());
            outcomes.whole += 1;
            stored = (status == 201).then_some(length);
        }
        Ok((507, _)) => outcomes.full += 1,
        Ok((status, _)) => {
            assert!([408, 500, 502, 503, 504].contains(&status), "client {number} got {status}");
            outcomes.failed += 1;
        }
        Err(_) => outcomes.cut += 1,
    }
    Seen { number, outcomes, status, stored, at: Time::now() }
}

/// The log on the simulated disk, which may fail at first.
async fn open_log(rotation: Rotation) -> Arc<LogFile> {
    loop {
        if let Ok(log) = blocking(|| LogFile::open("/srv/log")).await.unwrap() {
            return Arc::new(log.with_rotation(rotation));
        }
    }
}

/// A run with all that the clients have seen.
async fn run(seed: u64, plan: Plan) -> Run {
    let mut random = Random::new(seed);
    let routes = (0..100).find_map(|_| routes()).expect("the directory can be opened some time");
    let log = open_log(plan.rotation).await;
    let site = Site::with_routes(routes, Config::default(), Some(log.clone()));
    let (listener, stop) = (TcpListener::bind(front()).unwrap(), Stop::new());
    let server = {
        let (site, stop) = (site.clone(), stop.clone());
        spawn_local(async move { site.serve_tcp(listener, &stop).await })
    };
    let upstream = TcpListener::bind("127.0.0.1:8001".parse().unwrap()).unwrap();
    let upstream = spawn_local(behind(upstream, random.branch()));
    let clients: Vec<_> =
        (0..plan.clients).map(|number| spawn_local(client(number, plan.spread, random.branch()))).collect();
    let mut seen = Vec::new();
    for client in clients {
        seen.push(client.await.unwrap());
    }
    stop.request();
    server.await.unwrap().unwrap();
    timeout(Duration::from_secs(3600), site.drain()).await.expect("connections end in an hour");
    site.flush_log().await;
    assert_eq!((site.connections(), Rc::strong_count(&site)), (0, 1));
    upstream.cancel();
    sleep(Duration::from_secs(3600)).await;
    Run { seen, lost: log.lost_lines() }
}

/// The room on the disk in most tests: not all uploads fit.
const ROOM: u64 = FILE as u64 + 100_000;

fn world(seed: u64, disk: &Disk) -> Ended<Run> {
    let conditions = if seed.is_multiple_of(4) { Conditions::good() } else { Conditions::bad() };
    let world = World::new(seed).conditions(Conditions { disk_bytes: ROOM, ..conditions });
    world.disk(disk.clone()).run(run(seed, Plan::together())).unwrap()
}

/// The files of the log, the oldest first.
fn logs(disk: &Disk) -> Vec<Vec<u8>> {
    let backups = (1..).map_while(|n| disk.read(format!("/srv/log.{n}")).ok());
    let mut logs: Vec<_> = backups.collect();
    logs.reverse();
    logs.push(disk.read("/srv/log").unwrap_or_default());
    logs
}

/// The lines of a file of the log, by the numbers of the clients; `None` for a request that was
/// not there in time, of which the server knows less. Half a line at its end is none: the disk has
/// failed when it was to be taken back, and `halves` counts it.
fn lines(file: &[u8], halves: &mut usize) -> Vec<(Option<u64>, String)> {
    let text = std::str::from_utf8(file).unwrap();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    *halves += usize::from(whole < text.len());
    let line = |line: &str| {
        let is_late = line.contains("\" 408 ") && line.ends_with(" \"-\" \"-\"");
        let is_whole = line.matches(" - - [").count() == 1 && (is_late || line.ends_with(LINE_END));
        assert!(is_whole, "{line}");
        let number = line.split('?').nth(1).and_then(|rest| rest.split(' ').next());
        (number.filter(|_| !is_late).map(|number| number.parse().unwrap()), line.to_owned())
    };
    text[..whole].lines().map(line).collect()
}

/// Checks the log of a run: whole lines, at most one for each client, and no answer without a line
/// that is not counted as lost. Returns the number of lines, and of halves at the end.
fn check_log(ended: &Ended<Run>) -> (u64, usize) {
    let (mut count, mut halves) = (0, 0);
    let mut by_number = BTreeMap::new();
    for file in logs(&ended.disk) {
        assert_eq!(halves, 0, "half a line at the end of a file that is not the last");
        for (number, line) in lines(&file, &mut halves) {
            count += 1;
            let former = number.and_then(|number| by_number.insert(number, line));
            assert_eq!(former, None, "client {number:?} has two lines");
        }
    }
    let run = &ended.output;
    let mut missing = 0;
    let answers = run.seen.iter().filter_map(|seen| Some((seen.number, seen.status?)));
    for (number, status) in answers.filter(|(_, status)| *status != 408) {
        match by_number.get(&number) {
            Some(line) => assert!(line.contains(&format!("HTTP/1.1\" {status} ")), "{status}: {line}"),
            None => missing += 1,
        }
    }
    assert!(missing <= run.lost, "{missing} lines are missing, and {} are counted", run.lost);
    assert!(count <= run.seen.len() as u64);
    (count, halves)
}

#[test]
fn whatever_fails_a_whole_reply_is_right_and_a_confirmed_upload_is_there() {
    let disk = disk();
    let mut all = Outcomes::default();
    each_seed(0..200, |seed| {
        let ended = world(seed, &disk);
        assert_eq!((ended.descriptors, ended.left.len()), (0, 0), "{:?}", ended.left);
        for (number, length) in ended.output.seen.iter().filter_map(|seen| Some((seen.number, seen.stored?)))
        {
            let file = ended.disk.read(format!("/srv/stored/{number}")).unwrap();
            assert!(file == content(length), "upload {number}");
        }
        check_log(&ended);
        all.add(ended.output.outcomes());
    });
    assert!(all.whole > 500 && all.cut > 50 && all.full > 20 && all.failed > 5, "{all:?}");
}

#[test]
fn a_seed_replays_all_of_it() {
    let disk = disk();
    for seed in 0..12 {
        let told =
            |ended: Ended<Run>| (logs(&ended.disk), ended.digest, ended.steps, ended.time, ended.output);
        assert_eq!(told(world(seed, &disk)), told(world(seed, &disk)));
    }
}

#[test]
fn an_answered_request_has_one_line_in_the_log() {
    let disk = disk();
    each_seed(0..200, |seed| {
        let ended = World::new(seed).disk(disk.clone()).run(run(seed, Plan::together())).unwrap();
        assert_eq!((check_log(&ended), ended.output.lost), ((CLIENTS, 0), 0));
    });
}

/// What becomes of the log of a night on a disk that takes less than it was given, fails in one
/// call of ten if it `fails`, and has no room for all if it `fills`. The network has no faults, so
/// each request is logged. Returns the numbers of lines that are lost, and of halves at an end.
fn on_a_bad_disk(fails: bool, fills: bool) -> (u64, usize) {
    let disk = disk();
    let conditions = Conditions {
        disk_bytes: if fills { ROOM } else { u64::MAX },
        disk_error: if fails { 100_000 } else { 0 },
        disk_short: 300_000,
        ..Conditions::good()
    };
    let by_size = Rotation { bytes: 8192, period: Duration::ZERO, backups: 100 };
    let (mut all_lost, mut all_halves) = (0, 0);
    each_seed(0..200, |seed| {
        let plan = Plan::in_hours(if seed.is_multiple_of(2) { by_size } else { Rotation::default() });
        let world = World::new(seed).conditions(conditions.clone()).disk(disk.clone());
        let ended = world.run(run(seed, plan)).unwrap();
        let (lines, halves) = check_log(&ended);
        assert_eq!(lines + ended.output.lost, plan.clients);
        all_lost += ended.output.lost;
        all_halves += halves;
    });
    (all_lost, all_halves)
}

#[test]
fn a_line_is_whole_in_the_log_or_counted_as_lost_on_a_full_disk() {
    let (lost, halves) = on_a_bad_disk(false, true);
    assert!(lost > 50 && halves == 0, "{lost} {halves}");
}

/// Half a line may be at the end, because the disk may fail when it is to be taken back. The log
/// tries that again before the next line.
#[test]
fn a_line_is_whole_in_the_log_or_counted_as_lost_on_a_disk_that_fails() {
    let (lost, halves) = on_a_bad_disk(true, false);
    assert!(lost > 50 && halves < 50, "{lost} {halves}");
}

#[test]
fn a_line_is_whole_in_the_log_or_counted_as_lost_on_a_full_disk_that_fails() {
    let (lost, halves) = on_a_bad_disk(true, true);
    assert!(lost > 50 && halves < 50, "{lost} {halves}");
}

#[test]
fn files_of_the_log_are_renamed_at_their_size_and_at_their_age() {
    let disk = disk();
    let (hour, backups) = (Duration::from_secs(3600), 100);
    let by_size = Rotation { bytes: 8192, period: Duration::ZERO, backups };
    let by_age = Rotation { bytes: 0, period: hour, backups };
    let mut files = [0, 0];
    each_seed(0..100, |seed| {
        for (rotation, count) in [by_size, by_age].into_iter().zip(&mut files) {
            let plan = Plan::in_hours(rotation);
            let ended = World::new(seed).disk(disk.clone()).run(run(seed, plan)).unwrap();
            assert_eq!((check_log(&ended), ended.output.lost), ((plan.clients, 0), 0));
            let logs = logs(&ended.disk);
            for renamed in &logs[..logs.len() - 1] {
                let at = |number: Option<u64>| ended.output.seen[number.unwrap() as usize].at;
                let times: Vec<_> =
                    lines(renamed, &mut 0).into_iter().map(|(number, _)| at(number)).collect();
                let age = times.iter().max().unwrap().since(*times.iter().min().unwrap());
                let is_right = match rotation.period {
                    Duration::ZERO => renamed.len() >= 8192 && renamed.len() < 3 * 8192,
                    period => age < period + Duration::from_secs(2),
                };
                assert!(is_right, "{} bytes, {age:?}", renamed.len());
            }
            *count += logs.len();
        }
    });
    assert!(files[0] > 3 * 100 && files[1] > 5 * 100, "{files:?}");
}
