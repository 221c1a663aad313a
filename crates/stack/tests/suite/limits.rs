//! Limits of listeners and of addresses.

use crate::{address, options};
use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpStream, UdpSocket, Weather};
use std::io::ErrorKind;
use std::time::Duration;

#[test]
fn a_full_backlog_makes_connections_wait() {
    simulate(0..10, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let client = Stack::start(options(1), left);
        let server = Stack::start(options(2).backlog(2), right);
        let at = address("10.0.0.2:80");
        let listener = TcpListener::bind(&server, at).unwrap();
        let connecting: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                spawn(async move { TcpStream::connect(&client, at).await.unwrap() })
            })
            .collect();
        sleep(Duration::from_secs(8)).await;
        assert_eq!(connecting.iter().filter(|thread| thread.is_finished()).count(), 2);
        let mut accepted = Vec::new();
        for _ in 0..4 {
            accepted.push(listener.accept().await.unwrap());
        }
        for thread in connecting {
            thread.await.unwrap();
        }
    });
}

#[test]
fn a_listener_without_a_backlog_answers_none() {
    simulate(0..2, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let client = Stack::start(options(1), left);
        let server = Stack::start(options(2).backlog(0), right);
        let _listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        assert!(TcpStream::connect(&client, address("10.0.0.2:80")).await.is_err());
    });
}

#[test]
fn an_address_is_bound_once_and_is_the_stacks() {
    simulate(0..2, || async {
        let (_left, right) = SimulatedWire::pair(1, Weather::default());
        let server = Stack::start(options(2), right);
        let at = address("10.0.0.2:80");
        let listener = TcpListener::bind(&server, at).unwrap();
        assert_eq!(TcpListener::bind(&server, at).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(listener);
        TcpListener::bind(&server, at).unwrap();
        let foreign = UdpSocket::bind(&server, address("10.0.0.3:80")).unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        let picked = TcpListener::bind(&server, address("10.0.0.2:0")).unwrap().local_addr();
        assert!(picked.port() >= 49152);
    });
    assert!(StackOptions::new().address([10, 0, 0, 1].into(), 33).is_err());
    assert!(StackOptions::new().address([224, 0, 0, 1].into(), 24).is_err());
}
