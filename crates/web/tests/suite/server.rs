//! A server on several processors.

use selvedge_http::Stop;
use selvedge_io::time::sleep;
use selvedge_web::{Metrics, PrometheusText, Router, Server};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    reply.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn router() -> Router {
    Router::new().get("/where", async || format!("{:?}", thread::current().id())).get("/slow", async || {
        sleep(Duration::from_millis(300)).await;
        "woven"
    })
}

#[test]
fn every_worker_serves_and_requests_in_flight_are_finished() {
    let server = Server::bind("127.0.0.1:0").unwrap().workers(3);
    let (address, stop) = (server.address(), Stop::new());
    let told = stop.clone();
    let running = thread::spawn(move || server.run_unless_stopped(&told, router));
    // Each request has a connection of its own, and the kernel spreads them.
    let mut seen = HashSet::new();
    for _ in 0..1000 {
        seen.insert(ask(address, "/where"));
        if seen.len() == 3 {
            break;
        }
    }
    assert_eq!(seen.len(), 3);
    let slow = thread::spawn(move || ask(address, "/slow"));
    thread::sleep(Duration::from_millis(100));
    stop.request();
    assert_eq!(slow.join().unwrap(), "woven");
    running.join().unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_signal_ends_it() {
    let server = Server::bind("127.0.0.1:0").unwrap().workers(2).drain_limit(Duration::from_secs(5));
    let address = server.address();
    let running = thread::spawn(move || server.run(router));
    let slow = thread::spawn(move || ask(address, "/slow"));
    thread::sleep(Duration::from_millis(100));
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
    assert_eq!(slow.join().unwrap(), "woven");
    running.join().unwrap().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let first = Server::bind("127.0.0.1:0").unwrap();
    let taken = Server::bind(first.address()).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    assert!(Server::bind("no such name:80").is_err());
}

#[test]
fn the_workers_count_together() {
    let metrics = Metrics::new();
    let server = Server::bind("127.0.0.1:0").unwrap().workers(2).metrics(&metrics);
    let (address, stop) = (server.address(), Stop::new());
    let (told, counted) = (stop.clone(), metrics.clone());
    let running = thread::spawn(move || {
        server.run_unless_stopped(&told, || router().nest("/metrics", PrometheusText::new(&counted)))
    });
    for _ in 0..20 {
        ask(address, "/where");
    }
    let text = ask(address, "/metrics");
    assert!(text.contains("selvedge_requests_total{class=\"2xx\"} 20\n"), "{text}");
    assert!(text.contains("selvedge_connections_total 21\n"), "{text}");
    stop.request();
    running.join().unwrap().unwrap();
    assert!(metrics.prometheus().contains("selvedge_requests_total{class=\"2xx\"} 21\n"));
}
