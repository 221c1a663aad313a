//! An application in simulated worlds: clients that are slow, that cut their bodies, and that leave
//! within a reply. Whatever they do, a reply that comes whole is right, the handler is dropped, and
//! nothing hangs or is left behind.

use selvedge_core::{Time, sleep, spawn_local};
use selvedge_http::{Config, Site, Stop};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Random, Simulation, World, each_seed};
use selvedge_web::{Body, BodyError, Multipart, Rejection, Router, State};
use std::cell::Cell;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

fn address() -> SocketAddr {
    "10.0.0.1:80".parse().unwrap()
}

/// Handlers that run, and how many of them ran to their ends.
#[derive(Clone, Default)]
struct Counts {
    running: Rc<Cell<u32>>,
    ended: Rc<Cell<u32>>,
}

struct Running(Counts);

impl Counts {
    fn begin(&self) -> Running {
        self.running.set(self.running.get() + 1);
        Running(self.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

/// Sends each piece back, and waits now and then.
async fn echo(State(counts): State<Counts>, mut body: Body) -> Body {
    let running = counts.begin();
    Body::produce(async move |mut out| {
        let running = running;
        while let Some(piece) = body.next().await.transpose()? {
            sleep(Duration::from_millis(piece.len() as u64 % 7)).await;
            out.put(piece).await;
        }
        running.0.ended.set(running.0.ended.get() + 1);
        Ok::<(), BodyError>(())
    })
}

/// The sum of the bytes of each part.
async fn sum(State(counts): State<Counts>, mut form: Multipart) -> Result<String, Rejection> {
    let running = counts.begin();
    let mut sums = Vec::new();
    while let Some(mut part) = form.next().await? {
        let mut sum = 0u64;
        while let Some(piece) = part.next().await? {
            sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        }
        sums.push(sum.to_string());
    }
    running.0.ended.set(running.0.ended.get() + 1);
    Ok(sums.join(" "))
}

/// The request of a client, and the content of the reply that it must get.
fn question(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let content: Vec<u8> = (0..random.below(60_000)).map(|i| (i * 31 / 7) as u8).collect();
    if random.below(3) == 0 {
        let (one, two) = content.split_at(content.len() / 3);
        let mut body = Vec::new();
        for part in [one, two] {
            body.extend_from_slice(b"--loom\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
            body.extend_from_slice(part);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--loom--\r\n");
        let head = format!(
            "POST /sum HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=loom\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let sum = |part: &[u8]| part.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        return ([head.as_bytes(), &body].concat(), format!("{} {}", sum(one), sum(two)).into());
    }
    let mut request = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut rest = &content[..];
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(rest.len().min(1 + random.below(20_000) as usize));
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
        rest = behind;
    }
    request.extend_from_slice(b"0\r\n\r\n");
    (request, content)
}

/// The content of the reply at the front of `input`, if it is whole, and its length.
fn reply(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let head = input.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&input[..head]).unwrap();
    if !text.starts_with("HTTP/1.1 200 OK\r\n") {
        return Some((b"refused".to_vec(), input.len()));
    }
    if let Some(len) = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
        let end = head + len.parse::<usize>().unwrap();
        return (end <= input.len()).then(|| (input[head..end].to_vec(), end));
    }
    let mut decoder =
        selvedge_http::body::Decoder::new(selvedge_http::body::Framing::Chunked, 1 << 20).unwrap();
    let (mut content, mut at) = (Vec::new(), head);
    while at < input.len() && !decoder.is_done() {
        let piece = decoder.decode(&input[at..]).unwrap();
        content.extend_from_slice(piece.content);
        at += piece.consumed;
    }
    decoder.is_done().then_some((content, at))
}

/// Asks in pieces of any size, and reads meanwhile. Sometimes it leaves half-way.
async fn client(mut random: Random, bad: bool) -> io::Result<bool> {
    sleep(Duration::from_micros(random.below(5000))).await;
    let stream = Rc::new(TcpStream::connect(address()).await?);
    stream.set_read_deadline(Some(Time::now() + Duration::from_secs(600)));
    stream.set_write_deadline(Some(Time::now() + Duration::from_secs(600)));
    let (request, expected) = question(&mut random);
    let leaves = (bad && random.below(3) == 0).then(|| random.below(request.len() as u64) as usize);
    let mut branch = random.branch();
    let writer = spawn_local({
        let stream = stream.clone();
        async move {
            let mut rest = &request[..leaves.unwrap_or(request.len())];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(1 + branch.below(30_000) as usize));
                stream.write_all(piece).await?;
                rest = behind;
                if branch.below(3) == 0 {
                    sleep(Duration::from_millis(branch.below(if bad { 40_000 } else { 500 }))).await;
                }
            }
            if leaves.is_some() {
                stream.shutdown(Shutdown::Both)?;
            }
            Ok::<(), io::Error>(())
        }
    });
    let mut input = Vec::new();
    let content = loop {
        if let Some((content, _)) = reply(&input) {
            break content;
        }
        input.reserve(1 + random.below(30_000) as usize);
        let read = stream.read_to_spare(&mut input).await;
        if !matches!(read, Ok(1..)) {
            // The writer finds the connection broken.
            let _ = stream.shutdown(Shutdown::Both);
            let _ = writer.await.unwrap();
            return read.map(|_| false);
        }
    };
    let _ = writer.await.unwrap();
    if content == b"refused" {
        assert!(bad);
        return Ok(false);
    }
    assert!(content == expected, "{} bytes in place of {}", content.len(), expected.len());
    Ok(true)
}

async fn serve(seed: u64, bad: bool) -> u32 {
    let mut random = Random::new(seed);
    let counts = Counts::default();
    let router = Router::with_state(counts.clone()).post("/echo", echo).post("/sum", sum);
    let site = Site::with_handler(router, Config::default(), None);
    let (listener, stop) = (TcpListener::bind(address()).unwrap(), Stop::new());
    let server = {
        let (site, stop) = (site.clone(), stop.clone());
        spawn_local(async move { site.serve_tcp(listener, &stop).await })
    };
    let clients: Vec<_> = (0..4).map(|_| spawn_local(client(random.branch(), bad))).collect();
    let mut answered = 0;
    for client in clients {
        match client.await.unwrap() {
            Ok(whole) => answered += u32::from(whole),
            Err(error) => assert!(bad, "{error}"),
        }
    }
    stop.request();
    server.await.unwrap().unwrap();
    timeout(Duration::from_secs(3600), site.drain()).await.expect("connections end in an hour");
    assert_eq!((site.connections(), Rc::strong_count(&site), counts.running.get()), (0, 1, 0));
    assert!(bad || (answered, counts.ended.get()) == (4, 4), "{answered} answers");
    answered
}

#[test]
fn whatever_clients_do_a_whole_reply_is_right_and_no_handler_is_left() {
    let mut answered = 0;
    each_seed(0..100, |seed| {
        let bad = seed % 3 != 0;
        let conditions = if bad { Conditions::bad() } else { Conditions::good() };
        let world = World::new(seed).conditions(conditions).order(Simulation::new(seed));
        let ended = world.run(serve(seed, bad)).unwrap();
        assert_eq!((ended.descriptors, ended.left.len()), (0, 0), "{:?}", ended.left);
        answered += ended.output;
    });
    assert!(answered > 200, "{answered} answers");
}
