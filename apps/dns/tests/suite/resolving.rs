//! The resolver and the faults of the servers that it asks, in simulated worlds: time passes at
//! once there.

use crate::common::*;
use domain::base::Rtype;
use domain::base::iana::{OptRcode, Rcode};
use selvedge::net::{TcpListener, UdpSocket};
use selvedge::sim::{Conditions, World};
use selvedge::{Time, sleep, spawn_local};
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::wire::answer::{Answer, compose};
use selvedge_dns::wire::asked::{Asked, read};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

const RESOLVER: &str = "10.0.0.1:53";

/// Starts another server, which sends what `reply` makes of each query, and counts the queries.
fn other(at: &str, reply: impl Fn(&Asked) -> Vec<Vec<u8>> + 'static) -> Rc<Cell<u32>> {
    let socket = UdpSocket::bind(address(at)).unwrap();
    let queries = Rc::new(Cell::new(0));
    let counted = queries.clone();
    drop(spawn_local(async move {
        let mut buffer = [0; 512];
        loop {
            let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
            counted.set(counted.get() + 1);
            for datagram in reply(&read(&buffer[..length]).unwrap()) {
                socket.send_to(&datagram, client).await.unwrap();
            }
        }
    }));
    queries
}

/// The same over TCP, with one answer for each connection.
fn other_tcp(at: &str, reply: impl Fn(&Asked) -> Vec<u8> + 'static) {
    let listener = TcpListener::bind(address(at)).unwrap();
    drop(spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let query = frame::read(Compat::new(&stream)).await.unwrap().unwrap();
            frame::write(Compat::new(&stream), &reply(&read(&query).unwrap())).await.unwrap();
        }
    }));
}

fn right(asked: &Asked) -> Vec<u8> {
    compose(asked, &answer(vec![a(&asked.name.to_string(), 1)]), 1232)
}

fn wrong(asked: &Asked) -> Vec<u8> {
    compose(asked, &answer(vec![a(&asked.name.to_string(), 66)]), 1232)
}

fn resolver(servers: &[&str]) -> SocketAddr {
    serve(settings(zones(&[]), Some(forwarder(servers))), RESOLVER)
}

#[selvedge::test(seeds = 0..20)]
async fn a_silent_server_is_passed_over() {
    let silent = other("10.0.0.2:53", |_| vec![]);
    let good = other("10.0.0.3:53", |asked| vec![right(asked)]);
    let server = resolver(&["10.0.0.2:53", "10.0.0.4:53", "10.0.0.3:53"]);
    let begin = Time::now();
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().answer, [a("www.example.org", 1)]);
    assert!(Time::now().since(begin) < Duration::from_secs(4));
    // The next question goes to the server that answers.
    assert_eq!(ask(server, "b.example.org", Rtype::A).await.unwrap().answer, [a("b.example.org", 1)]);
    assert_eq!((silent.get(), good.get()), (1, 2));
}

#[selvedge::test(seeds = 0..20)]
async fn silence_everywhere_is_a_failure_in_time() {
    let one = other("10.0.0.2:53", |_| vec![]);
    let server = resolver(&["10.0.0.2:53"]);
    let begin = Time::now();
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().rcode, Rcode::SERVFAIL);
    assert!(Time::now().since(begin) < Duration::from_secs(6));
    let asked = one.get();
    // The failure is kept for a moment.
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().rcode, Rcode::SERVFAIL);
    assert_eq!(one.get(), asked);
    sleep(Duration::from_secs(6)).await;
    ask(server, "www.example.org", Rtype::A).await.unwrap();
    assert!(one.get() > asked);
}

#[selvedge::test(seeds = 0..20)]
async fn answers_to_other_questions_are_not_heard() {
    other("10.0.0.2:53", |asked| {
        let mut id = wrong(asked);
        id[1] ^= 1;
        let mut question = wrong(asked);
        question[2] &= 0x7f;
        let mut spelling = wrong(asked);
        spelling[13] ^= 0x20;
        let mut cut = wrong(asked);
        cut.truncate(40);
        let name = Asked { name: name("evil.example.org"), ..asked.clone() };
        let rtype = Asked { rtype: Rtype::TXT, ..asked.clone() };
        vec![id, question, spelling, cut, wrong(&name), wrong(&rtype), vec![], right(asked)]
    });
    // Datagrams overtake each other, so any of them may be the first.
    let server = resolver(&["10.0.0.2:53"]);
    let heard = ask(server, "www.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [a("www.example.org", 1)]);
}

#[selvedge::test(seeds = 0..20)]
async fn a_forger_at_another_address_is_not_heard() {
    let socket = UdpSocket::bind(address("10.0.0.2:53")).unwrap();
    let forger = UdpSocket::bind(address("10.0.0.66:53")).unwrap();
    drop(spawn_local(async move {
        let mut buffer = [0; 512];
        let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
        let asked = read(&buffer[..length]).unwrap();
        // It knows the port and the id.
        forger.send_to(&wrong(&asked), client).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        socket.send_to(&right(&asked), client).await.unwrap();
        std::future::pending::<()>().await;
    }));
    let heard = ask(resolver(&["10.0.0.2:53"]), "www.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [a("www.example.org", 1)]);
}

#[selvedge::test(seeds = 0..20)]
async fn a_guesser_drives_the_question_to_tcp() {
    other("10.0.0.2:53", |asked| {
        let guess = |bits| {
            let mut guess = wrong(asked);
            guess[0] ^= bits;
            guess
        };
        (1..=20).map(guess).collect()
    });
    other_tcp("10.0.0.2:53", right);
    let heard = ask(resolver(&["10.0.0.2:53"]), "www.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [a("www.example.org", 1)]);
}

#[selvedge::test(seeds = 0..20)]
async fn a_cut_answer_is_fetched_over_tcp() {
    let cut = |asked: &Asked| Answer { is_truncated: true, ..answer(vec![a(&asked.name.to_string(), 66)]) };
    other("10.0.0.2:53", move |asked| vec![compose(asked, &cut(asked), 1232)]);
    other_tcp("10.0.0.2:53", right);
    let server = resolver(&["10.0.0.2:53"]);
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().answer, [a("www.example.org", 1)]);
}

#[selvedge::test(seeds = 0..20)]
async fn a_cut_answer_over_tcp_is_a_failure() {
    let cut = |asked: &Asked| {
        let answer = Answer { is_truncated: true, ..answer(vec![a(&asked.name.to_string(), 66)]) };
        compose(asked, &answer, 1232)
    };
    other("10.0.0.2:53", move |asked| vec![cut(asked)]);
    other_tcp("10.0.0.2:53", cut);
    let server = resolver(&["10.0.0.2:53"]);
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().rcode, Rcode::SERVFAIL);
}

#[selvedge::test(seeds = 0..20)]
async fn a_server_without_edns_is_asked_without_it() {
    let queries = other("10.0.0.2:53", |asked| match asked.edns {
        Some(_) => {
            let old = Asked { edns: None, ..asked.clone() };
            vec![compose(&old, &Answer::empty(OptRcode::FORMERR), 512)]
        }
        None => vec![right(asked)],
    });
    let server = resolver(&["10.0.0.2:53"]);
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().answer, [a("www.example.org", 1)]);
    assert_eq!(queries.get(), 2);
}

#[selvedge::test(seeds = 0..50)]
async fn one_question_in_flight_is_asked_once() {
    let queries = other("10.0.0.2:53", |asked| vec![right(asked)]);
    let server = resolver(&["10.0.0.2:53"]);
    let spellings = ["www.example.org", "WWW.example.org", "www.Example.ORG"];
    let clients: Vec<_> =
        (0..15).map(|client| spawn_local(ask(server, spellings[client % 3], Rtype::A))).collect();
    for client in clients {
        // The answer comes under the name as each client spells it, which `ask` has compared.
        assert_eq!(client.await.unwrap().map(|heard| heard.answer.len()), Some(1));
    }
    assert_eq!(queries.get(), 1);
}

#[selvedge::test(seeds = 0..10)]
async fn what_is_kept_grows_old() {
    let queries = other("10.0.0.2:53", |asked| vec![right(asked)]);
    let server = resolver(&["10.0.0.2:53"]);
    let ttl = async || {
        let heard = ask(server, "www.example.org", Rtype::A).await.unwrap();
        (heard.answer[0].ttl().as_secs(), queries.get())
    };
    assert_eq!(ttl().await, (300, 1));
    sleep(Duration::from_secs(100)).await;
    assert_eq!(ttl().await, (200, 1));
    sleep(Duration::from_secs(201)).await;
    assert_eq!(ttl().await, (300, 2));
}

#[selvedge::test(seeds = 0..10)]
async fn what_is_missing_is_kept_too() {
    let queries = other("10.0.0.2:53", |asked| {
        let missing = Answer { authority: vec![soa("example.org")], ..Answer::empty(OptRcode::NXDOMAIN) };
        vec![compose(asked, &missing, 1232)]
    });
    let server = resolver(&["10.0.0.2:53"]);
    let missing = async || {
        let heard = ask(server, "www.example.org", Rtype::A).await.unwrap();
        (heard.rcode, heard.authority[0].ttl().as_secs(), queries.get())
    };
    // The record may be kept for 300 seconds, and says 60 for what is missing.
    assert_eq!(missing().await, (Rcode::NXDOMAIN, 60, 1));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(missing().await, (Rcode::NXDOMAIN, 40, 1));
    sleep(Duration::from_secs(41)).await;
    assert_eq!(missing().await, (Rcode::NXDOMAIN, 60, 2));
}

#[selvedge::test(seeds = 0..10)]
async fn an_alias_without_its_target_is_asked_on() {
    other("10.0.0.2:53", |asked| match asked.name.to_string().as_str() {
        "www.example.org" => {
            vec![compose(asked, &answer(vec![cname("www.example.org", "host.example.net")]), 1232)]
        }
        _ => vec![right(asked)],
    });
    let heard = ask(resolver(&["10.0.0.2:53"]), "www.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [cname("www.example.org", "host.example.net"), a("host.example.net", 1)]);
}

/// On a network on which everything fails now and then, an answer is right, or a failure, or
/// missing.
#[test]
fn no_answer_is_wrong_on_a_bad_network() {
    let mut right_ones = 0;
    for seed in 0..60 {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(async {
            let upstream = settings(zones(&[("example.org", "*.a A 192.0.2.1\n")]), None);
            serve(upstream, "10.0.0.2:53");
            let server = resolver(&["10.0.0.2:53"]);
            let mut right_ones = 0;
            for number in 0..6 {
                let asked = format!("n{}.a.example.org", number % 4);
                let Some(heard) = ask(server, &asked, Rtype::A).await else { continue };
                match heard.rcode {
                    Rcode::NOERROR => {
                        assert_eq!(heard.answer, [a(&asked, 1)]);
                        right_ones += 1;
                    }
                    rcode => assert_eq!(rcode, Rcode::SERVFAIL),
                }
            }
            right_ones
        });
        right_ones += ended.unwrap_or_else(|failed| panic!("{failed}")).output;
    }
    assert!(right_ones > 60, "{right_ones} of 360");
}
