//! The web server on a simulated network and disk, under thousands of seeds: whatever goes wrong, a
//! reply that comes whole is right, and nothing hangs or is left behind.

use selvedge_core::{Time, sleep, spawn_local};
use selvedge_http::{Config, DocumentRoot, Site, Stop};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Disk, World};
use selvedge_sim::{Random, Simulation, each_seed};
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

const SMALL: usize = 600;
const LARGE: usize = 150_000;

fn content(len: usize) -> &'static [u8] {
    static LONGEST: LazyLock<Vec<u8>> = LazyLock::new(|| (0..LARGE).map(|i| (i * 31 / 7) as u8).collect());
    &LONGEST[..len]
}

/// What is served, as the real disk has it.
fn site() -> Disk {
    let directory = tempfile::tempdir().unwrap();
    for (name, len) in [("small", SMALL), ("large", LARGE), ("empty", 0)] {
        std::fs::write(directory.path().join(name), content(len)).unwrap();
    }
    let mut disk = Disk::new();
    disk.load(directory.path(), "/srv/www").unwrap();
    disk
}

/// The tree in a world with a disk that may fail.
fn tree() -> DocumentRoot {
    (0..100).find_map(|_| DocumentRoot::new("/srv/www").ok()).expect("it can be opened some time")
}

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// One end of a connection, with what was read beyond a reply.
struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    eats: usize,
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Client {
    async fn more(&mut self) -> io::Result<()> {
        self.input.reserve(self.eats);
        let read = self.stream.read_to_spare(&mut self.input).await?;
        if read == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// The next reply; an error if it does not come whole.
    async fn reply(&mut self, has_body: bool) -> io::Result<Reply> {
        let head = loop {
            match self.input.windows(4).position(|end| end == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.more().await?,
            }
        };
        let text = String::from_utf8(take(&mut self.input, head)).expect("a head is text");
        let mut lines = text.lines();
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line");
        let status: u16 = status[..3].parse().expect("a status");
        let len = lines.find_map(|line| line.strip_prefix("Content-Length: "));
        let len: usize = len.map_or(0, |len| len.parse().expect("a length"));
        let len = if has_body && status != 304 { len } else { 0 };
        while self.input.len() < len {
            self.more().await?;
        }
        Ok(Reply { status, head: text, body: take(&mut self.input, len) })
    }
}

fn take(input: &mut Vec<u8>, len: usize) -> Vec<u8> {
    let rest = input.split_off(len);
    std::mem::replace(input, rest)
}

/// What a client asks, and what it must be answered.
#[derive(Clone, Copy, Debug)]
struct Question {
    name: &'static str,
    len: usize,
    head_only: bool,
    range: Option<(usize, usize)>,
}

impl Question {
    fn drawn(random: &mut Random) -> Question {
        let (name, len) = [("small", SMALL), ("large", LARGE), ("empty", 0), ("missing", 0)]
            [[0, 0, 0, 1, 1, 2, 3][random.below(7) as usize]];
        let first = random.below(len.max(1) as u64) as usize;
        let range = (random.below(4) == 0 && len > 0).then(|| (first, len - 1));
        Question { name, len, head_only: random.below(8) == 0, range }
    }

    fn text(&self) -> String {
        let method = if self.head_only { "HEAD" } else { "GET" };
        let range = self.range.map_or(String::new(), |(a, b)| format!("Range: bytes={a}-{b}\r\n"));
        format!("{method} /{} HTTP/1.1\r\nHost: a\r\n{range}\r\n", self.name)
    }

    fn check(&self, reply: &Reply, bad: bool) {
        let Reply { status, head, body } = reply;
        if bad && [500, 503, 408].contains(status) {
            return; // the disk failed, or the client was too slow
        }
        let all = content(self.len);
        let (expected, right): (u16, &[u8]) = match (self.name, self.range) {
            ("missing", _) => (404, &[]),
            // A range says what it is only if it is asked for with GET.
            (_, Some((a, b))) if !self.head_only => (206, &all[a..=b]),
            _ => (200, all),
        };
        assert_eq!(*status, expected, "{self:?}: {head}");
        if !self.head_only && expected != 404 {
            assert!(body == right, "{self:?}: another body\n{head}");
        }
    }
}

/// Asks some questions on one connection, each in one piece or several, one at a time or all at
/// once; sometimes it goes away in between.
async fn ask(mut random: Random, bad: bool) -> io::Result<u32> {
    sleep(Duration::from_micros(random.below(5000))).await;
    let stream = TcpStream::connect(address()).await?;
    stream.set_read_deadline(Some(Time::now() + Duration::from_secs(600)));
    stream.set_write_deadline(Some(Time::now() + Duration::from_secs(600)));
    let mut client = Client { stream, input: Vec::new(), eats: 1 + random.below(30_000) as usize };
    let questions: Vec<_> = (0..1 + random.below(6)).map(|_| Question::drawn(&mut random)).collect();
    let at_once = random.below(3) == 0;
    let mut answered = 0;
    if at_once {
        let all: String = questions.iter().map(Question::text).collect();
        client.stream.write_all(all.as_bytes()).await?;
    }
    for question in &questions {
        if bad && random.below(30) == 0 {
            client.stream.shutdown(Shutdown::Both)?;
        }
        if !at_once {
            let text = question.text();
            let (one, other) = text.split_at(random.below(text.len() as u64) as usize);
            client.stream.write_all(one.as_bytes()).await?;
            if random.below(4) == 0 {
                sleep(Duration::from_millis(random.below(if bad { 20_000 } else { 500 }))).await;
            }
            client.stream.write_all(other.as_bytes()).await?;
        }
        let reply = client.reply(!question.head_only).await?;
        question.check(&reply, bad);
        answered += 1;
        if reply.head.contains("Connection: close") {
            break;
        }
    }
    Ok(answered)
}

/// A server, and clients that come all at once; how many questions were answered.
async fn serve(seed: u64, bad: bool) -> u32 {
    let mut random = Random::new(seed);
    let stop = Stop::new();
    let config = Config { memory_bytes: 1000, ..Config::default() };
    let site = Site::new(tree(), config, None);
    let listener = TcpListener::bind(address()).unwrap();
    let server = {
        let (site, stop) = (site.clone(), stop.clone());
        spawn_local(async move { site.serve_tcp(listener, &stop).await })
    };
    let clients: Vec<_> = (0..6).map(|_| spawn_local(ask(random.branch(), bad))).collect();
    let mut answered = 0;
    for client in clients {
        match client.await.unwrap() {
            Ok(answers) => answered += answers,
            Err(error) => assert!(bad, "{error}"),
        }
    }
    stop.request();
    server.await.unwrap().unwrap();
    timeout(Duration::from_secs(3600), site.drain()).await.expect("connections end in an hour");
    assert_eq!((site.connections(), Rc::strong_count(&site)), (0, 1));
    answered
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The tests of this file count the process's descriptors, and run one after the other.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn whatever_goes_wrong_a_whole_reply_is_right_and_nothing_is_left_behind() {
    let _one = ONE.lock();
    let disk = site();
    let before = descriptors();
    let mut answered = [0, 0];
    each_seed(0..2000, |seed| {
        let bad = seed % 4 != 0;
        let conditions = if bad { Conditions::bad() } else { Conditions::good() };
        let order = if seed % 8 < 4 { Simulation::new(seed) } else { Simulation::pct(seed, 4, 2000) };
        let world = World::new(seed).conditions(conditions).order(order).disk(disk.clone());
        let ended = world.run(serve(seed, bad)).unwrap();
        assert_eq!((ended.descriptors, ended.left.len()), (0, 0), "{:?}", ended.left);
        answered[usize::from(bad)] += ended.output;
    });
    assert_eq!(descriptors(), before);
    assert!(answered[0] > 8000 && answered[1] > 10_000, "{answered:?} answers in good and bad conditions");
}

/// The status and the length of the answer's body, and how long it took.
async fn timed(name: &str) -> (u16, usize, Duration) {
    let began = Time::now();
    let stream = TcpStream::connect(address()).await.unwrap();
    let mut client = Client { stream, input: Vec::new(), eats: 30_000 };
    let request = format!("GET /{name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.stream.write_all(request.as_bytes()).await.unwrap();
    let reply = client.reply(true).await.unwrap();
    (reply.status, reply.body.len(), Time::now().since(began))
}

/// Each part of a file that is not in memory takes ten seconds to come. Meanwhile the one worker
/// answers with what is in memory.
#[test]
fn a_slow_disk_holds_up_no_other_client() {
    let _one = ONE.lock();
    let disk = site();
    each_seed(0..20, |seed| {
        let slow = Duration::from_secs(10)..Duration::from_secs(11);
        let conditions = Conditions { disk_delay: slow, disk_cold: 1_000_000, ..Conditions::good() };
        let world = World::new(seed).conditions(conditions).disk(disk.clone());
        let served = async {
            let config =
                Config { memory_bytes: 1000, validity: Duration::from_secs(3600), ..Config::default() };
            let (site, stop) = (Site::new(tree(), config, None), Stop::new());
            let listener = TcpListener::bind(address()).unwrap();
            let server = {
                let (site, stop) = (site.clone(), stop.clone());
                spawn_local(async move { site.serve_tcp(listener, &stop).await })
            };
            // From here on the small file is in memory.
            assert_eq!(timed("small").await.0, 200);
            let large = spawn_local(timed("large"));
            let mut answers = 0;
            while !large.is_finished() {
                let (status, len, took) = timed("small").await;
                assert_eq!((status, len), (200, SMALL));
                assert!(took < Duration::from_secs(1), "answer {answers} took {took:?}");
                answers += 1;
                sleep(Duration::from_millis(100)).await;
            }
            let (status, len, took) = large.await.unwrap();
            assert_eq!((status, len), (200, LARGE));
            assert!(took > Duration::from_secs(10) && answers > 50, "{answers} in {took:?}");
            stop.request();
            server.await.unwrap().unwrap();
            site.drain().await;
        };
        world.run(served).unwrap();
    });
}

#[test]
fn the_same_seed_is_the_same_run() {
    let _one = ONE.lock();
    let disk = site();
    let run = |seed| {
        let world = World::new(seed).conditions(Conditions::bad()).disk(disk.clone());
        let ended = world.run(serve(seed, true)).unwrap();
        (ended.digest, ended.steps, ended.time, ended.output)
    };
    for seed in 0..30 {
        assert_eq!(run(seed), run(seed));
    }
}
