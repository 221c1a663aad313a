//! One listening socket, or one port, and several event loops.

mod common;

use common::{listen, localhost, run};
use selvedge_io::net::{ListenOptions, TcpListener};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const CONNECTIONS: usize = 200;

/// Accepts on each listener in an OS thread of its own until all connections have come; says how many each took.
fn serve(address: SocketAddr, listeners: Vec<TcpListener>) -> Vec<usize> {
    let total = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let total = total.clone();
            std::thread::spawn(move || {
                run(async move {
                    let mut taken = 0;
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        let mut byte = [0];
                        stream.read_exact(&mut byte).await.unwrap();
                        if byte == *b"q" {
                            return taken;
                        }
                        taken += 1;
                        total.fetch_add(1, SeqCst);
                        stream.write_all(b"x").await.unwrap();
                    }
                })
            })
        })
        .collect();
    for _ in 0..CONNECTIONS {
        let mut stream = StdStream::connect(address).unwrap();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(total.load(SeqCst), CONNECTIONS);
    while workers.iter().any(|worker| !worker.is_finished()) {
        if let Ok(mut stream) = StdStream::connect(address) {
            let _ = stream.write_all(b"q");
        }
    }
    workers.into_iter().map(|worker| worker.join().unwrap()).collect()
}

#[test]
fn handles_of_one_socket() {
    let listener = listen();
    let address = listener.local_addr();
    let shares = vec![listener.share().unwrap(), listener.share().unwrap(), listener];
    let taken = serve(address, shares);
    assert_eq!(taken.iter().sum::<usize>(), CONNECTIONS);
}

#[test]
fn sockets_of_one_port() {
    let options = ListenOptions::new().reuse_port(true);
    let first = options.bind(localhost(0)).unwrap();
    let address = first.local_addr();
    let second = options.bind(address).unwrap();
    let taken = serve(address, vec![first, second]);
    assert_eq!(taken.iter().sum::<usize>(), CONNECTIONS);
    assert!(taken.iter().all(|&n| n > CONNECTIONS / 10), "the kernel spreads them: {taken:?}");
}
