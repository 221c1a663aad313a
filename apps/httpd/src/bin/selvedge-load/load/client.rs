//! The clients: one thread for each connection, all on one OS thread.
//!
//! A client's turn is one `send` with its requests and, when the replies have come, one `recv` into
//! a buffer that all share, since no client keeps anything in it from one turn to the next.
//!
//! `selvedge-load`'s `main` calls [`run`] with the plan.

use super::plan::Plan;
use super::reply::{Known, Replies};
use super::report::{Report, Tally};
use super::sleepless::Sleepless;
use selvedge_core::{Time, round_robin_over, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::TcpStream;
use selvedge_io::time::sleep;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// As much as one `recv` takes.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long a client waits after a connection that brought no reply, before it tries again.
const PAUSE: Duration = Duration::from_millis(10);

/// What all clients share.
struct Shared {
    plan: Plan,
    known: RefCell<Vec<Known>>,
    tally: RefCell<Tally>,
    buffer: RefCell<Box<[u8]>>,
    over: Cell<bool>,
}

/// Carries out a plan.
///
/// # Errors
/// If the event loop cannot be set up. What goes wrong between client and server is in the report.
pub(crate) fn run(plan: Plan) -> Result<Report, Box<dyn Error>> {
    let busy_poll = plan.busy_poll;
    let shared = Rc::new(Shared {
        known: RefCell::new(plan.requests.iter().map(|_| Known::default()).collect()),
        tally: RefCell::default(),
        buffer: RefCell::new(vec![0; BUFFER_BYTES].into()),
        over: Cell::new(false),
        plan,
    });
    let all = clients(Rc::clone(&shared));
    let events = EventLoop::new()?;
    let elapsed = if busy_poll {
        round_robin_over(&mut Sleepless(events), all)
    } else {
        round_robin_over(&mut { events }, all)
    }?;
    let shared = Rc::into_inner(shared).ok_or("a client is left over")?;
    Ok(Report::new(shared.plan, shared.tally.into_inner(), elapsed))
}

/// Starts the clients, ends them when the time is over, and returns how long they have worked.
async fn clients(shared: Rc<Shared>) -> Duration {
    let start = Time::now();
    let seeds = 1..=shared.plan.connections as u64;
    let clients: Vec<_> =
        seeds.map(|seed| spawn_local(client(Rc::clone(&shared), Random::new(seed)))).collect();
    sleep(shared.plan.duration).await;
    shared.over.set(true);
    for client in clients {
        if let Err(error) = client.await {
            shared.tally.borrow_mut().failed(&error);
        }
    }
    Time::now().since(start)
}

/// One client: connection after connection, until the time is over.
async fn client(shared: Rc<Shared>, mut random: Random) {
    while !shared.over.get() {
        let mut replied = false;
        if let Err(error) = converse(&shared, &mut random, &mut replied).await {
            shared.tally.borrow_mut().failed(&error);
        }
        if !shared.over.get() {
            shared.tally.borrow_mut().reconnects += 1;
            if !replied {
                sleep(PAUSE).await;
            }
        }
    }
}

/// One connection, until the time is over or the server closes it properly: after the reply with
/// which it has said so, or between replies.
async fn converse(shared: &Shared, random: &mut Random, replied: &mut bool) -> Result<(), Box<dyn Error>> {
    let plan = &shared.plan;
    let stream = TcpStream::connect_before(plan.address, Time::now() + plan.timeout).await?;
    let pages = plan.requests.len() as u32;
    let mut replies = Replies::default();
    let mut batch = Vec::new();
    let mut asked = Time::now();
    while !shared.over.get() {
        replies.ask((0..plan.pipeline).map(|_| if pages == 1 { 0 } else { random.below(pages) }));
        // The same batch again needs not be put together again.
        if pages > 1 || batch.is_empty() {
            batch.clear();
            replies.pages().for_each(|page| batch.extend_from_slice(&plan.requests[page as usize]));
        }
        stream.set_write_deadline(Some(asked + plan.timeout));
        stream.set_read_deadline(Some(asked + plan.timeout));
        stream.write_all(&batch).await?;
        while !replies.all_answered() {
            stream.readable().await?;
            match receive(shared, &stream, &mut replies, asked)? {
                Received::Replies(now) => {
                    *replied = true;
                    asked = now;
                }
                Received::Nothing => {}
                Received::End if replies.is_last() || (replies.is_fresh() && *replied) => return Ok(()),
                Received::End => return Err("the server closed the connection before it had replied".into()),
            }
            if replies.is_last() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What was there to receive.
enum Received {
    /// At least a part of a reply, at this time.
    Replies(Time),
    /// Nothing yet.
    Nothing,
    /// The end of the connection.
    End,
}

/// Receives all that is there, and counts the replies that it completes.
fn receive(
    shared: &Shared,
    stream: &TcpStream,
    replies: &mut Replies,
    asked: Time,
) -> Result<Received, Box<dyn Error>> {
    let buffer = &mut **shared.buffer.borrow_mut();
    let mut received = Received::Nothing;
    loop {
        let bytes = match stream.try_read(buffer) {
            Ok(0) => return Ok(Received::End),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(received),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let now = Time::now();
        let completed = replies.receive(&buffer[..bytes], &mut shared.known.borrow_mut())?;
        shared.tally.borrow_mut().completed(completed, now.since(asked));
        received = Received::Replies(now);
        // A short read has emptied the socket.
        if bytes < buffer.len() {
            return Ok(received);
        }
    }
}

/// A stream of numbers that need only be spread evenly (xorshift64*), the same in every run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // Neighbouring seeds give unrelated streams only when their bits are spread; an odd factor
        // never gives 0.
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((high * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::{Arc, Mutex};

    /// A server that answers each request with `reply(path, number of the request on its
    /// connection)`, and ends the connection when there is none.
    fn serve(reply: impl Fn(&str, u32) -> Option<String> + Send + Sync + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let reply = Arc::clone(&reply);
                std::thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    let mut number = 0;
                    while let Some(line) = lines.next() {
                        let path = line.split(' ').nth(1).unwrap().to_owned();
                        assert!(
                            lines.by_ref().any(|line| line.is_empty()),
                            "a request ends with an empty line"
                        );
                        let Some(text) = reply(&path, number) else { return };
                        // The client may be gone: its time is over.
                        if (&stream).write_all(text.as_bytes()).is_err() {
                            return;
                        }
                        number += 1;
                    }
                });
            }
        });
        address
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn plan(address: SocketAddr, paths: &[&str]) -> Plan {
        let request = |path: &&str| format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").into_bytes().into();
        Plan {
            url: format!("http://{address}/"),
            address,
            requests: paths.iter().map(request).collect(),
            connections: 3,
            pipeline: 4,
            duration: Duration::from_millis(100),
            timeout: Duration::from_secs(5),
            busy_poll: false,
            json: false,
        }
    }

    #[test]
    fn all_pages_are_asked_for_and_all_replies_counted() {
        let seen = Arc::new(Mutex::new(HashSet::new()));
        let paths = Arc::clone(&seen);
        let address = serve(move |path, _| {
            paths.lock().unwrap().insert(path.to_owned());
            Some(ok(if path == "/a" { "12345" } else { "123" }))
        });
        for busy_poll in [false, true] {
            let report = run(Plan { busy_poll, ..plan(address, &["/a", "/b"]) }).unwrap();
            assert!(report.is_good(), "{:?}", report.first_error());
            assert_eq!(report.requests() % 4, 0, "every batch was answered");
            assert!(
                report.body_bytes() > 3 * report.requests() && report.body_bytes() < 5 * report.requests()
            );
        }
        assert_eq!(*seen.lock().unwrap(), HashSet::from(["/a".to_owned(), "/b".to_owned()]));
    }

    #[test]
    fn a_server_that_closes_after_a_reply_is_connected_to_again() {
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
        let address = serve(move |_, number| match number {
            0 => Some(ok("x")),
            1 => Some(closing.to_owned()),
            _ => None,
        });
        let report = run(Plan { pipeline: 2, ..plan(address, &["/"]) }).unwrap();
        assert!(report.is_good(), "{:?}", report.first_error());
        assert!(report.reconnects() > 0);
    }

    #[test]
    fn wrong_replies_make_a_bad_report() {
        let address = serve(|_, number| Some(ok(if number == 7 { "four" } else { "three" })));
        let report = run(plan(address, &["/"])).unwrap();
        assert!(!report.is_good());
        assert_eq!(report.first_error(), Some("a reply has 4 bytes of body, the page's first had 5"));
        let address = serve(|_, _| None);
        let report = run(plan(address, &["/"])).unwrap();
        assert!(!report.is_good());
    }

    #[test]
    fn a_server_that_does_not_answer_is_an_error_in_time() {
        // It listens, and no program accepts.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let timeout = Duration::from_millis(50);
        let report = run(Plan { timeout, ..plan(listener.local_addr().unwrap(), &["/"]) }).unwrap();
        assert!(!report.is_good() && report.first_error().is_some());
    }

    #[test]
    fn every_page_gets_its_share() {
        let mut counts = [0_u32; 7];
        let mut random = Random::new(3);
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }
}
