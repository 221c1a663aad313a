//! One listening socket, or one port, with several event loops.

use crate::common::{listen, localhost, ms, run};
use selvedge_io::net::{ListenOptions, TcpListener};
use selvedge_io::time::{sleep, timeout};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;

const CONNECTIONS: usize = 200;

/// Accepts on each listener in an OS thread of its own until all connections have come. Returns the
/// number of connections that each listener took.
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

/// Runs `wait` on an OS thread with an event loop, which lives until `over` is set. Returns when
/// `wait` has ended.
fn wait_in_a_loop_that_stays(
    over: &Arc<AtomicBool>,
    wait: impl Future<Output = ()> + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let over = over.clone();
    let (has_ended, ended) = channel();
    let os_thread = std::thread::spawn(move || {
        run(async move {
            wait.await;
            has_ended.send(()).unwrap();
            while !over.load(SeqCst) {
                sleep(ms(100)).await;
            }
        });
    });
    ended.recv().unwrap();
    os_thread
}

/// The thread that accepts on a share goes to another loop. The first loop still knows the
/// descriptor, and sleeps.
#[test]
fn a_share_hears_of_connections_after_its_thread_has_gone_to_another_loop() {
    let listener = listen();
    let address = listener.local_addr();
    let _other = listener.share().unwrap();
    let listener = Arc::new(listener);
    let over = Arc::new(AtomicBool::new(false));
    let share = listener.clone();
    let first = wait_in_a_loop_that_stays(&over, async move {
        assert!(timeout(ms(1), share.accept()).await.is_err());
    });
    let (is_next, next) = channel();
    let second = std::thread::spawn(move || {
        run(async move {
            for _ in 0..2 {
                // This time-out is later than the test's.
                is_next.send(timeout(ms(20_000), listener.accept()).await.is_ok()).unwrap();
            }
        });
    });
    let heard: Vec<bool> = (0..2)
        .map(|_| {
            std::thread::sleep(ms(50));
            let _client = StdStream::connect(address).unwrap();
            next.recv_timeout(ms(5_000)).unwrap_or(false)
        })
        .collect();
    over.store(true, SeqCst);
    assert_eq!(heard, [true, true]);
    first.join().unwrap();
    second.join().unwrap();
}

/// A closed share stays in no epoll set, though the socket is still open.
#[test]
fn a_share_that_is_closed_keeps_no_connection_from_the_others() {
    let listener = listen();
    let address = listener.local_addr();
    let share = listener.share().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let first = wait_in_a_loop_that_stays(&over, async move {
        assert!(timeout(ms(1), share.accept()).await.is_err());
        drop(share);
    });
    let (is_accepted, accepted) = channel();
    let second = std::thread::spawn(move || {
        run(async move {
            let accept = timeout(ms(20_000), listener.accept());
            is_accepted.send(accept.await.is_ok()).unwrap();
        });
    });
    std::thread::sleep(ms(50));
    let _client = StdStream::connect(address).unwrap();
    let heard = accepted.recv_timeout(ms(5_000)).unwrap_or(false);
    over.store(true, SeqCst);
    assert!(heard);
    first.join().unwrap();
    second.join().unwrap();
}
