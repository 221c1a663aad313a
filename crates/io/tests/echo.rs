//! Many connections at once: every byte comes back, in whatever order the scheduler and the event
//! loop run them. (They take thousands of descriptors and all CPUs, so they have a file of their
//! own.)

mod common;

use common::{listen, run};
use selvedge_core::{JoinHandle, spawn, spawn_local};
use selvedge_io::net::{Stream, TcpStream, UnixListener, UnixStream};
use std::rc::Rc;

async fn echo(stream: &Stream) -> std::io::Result<usize> {
    let mut buffer = [0; 1000];
    let mut total = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(total),
            n => stream.write_all(&buffer[..n]).await?,
        }
        total += 1;
    }
}

#[test]
fn three_thousand_connections_of_twenty_messages_each() {
    const CONNECTIONS: usize = 3000;
    run(async {
        let listener = listen();
        let address = listener.local_addr();
        let server = spawn(async move {
            for _ in 0..CONNECTIONS {
                let (stream, peer) = listener.accept().await.unwrap();
                assert!(peer.ip().is_loopback());
                drop(spawn(async move { echo(&stream).await.unwrap() }));
            }
        });
        let clients: Vec<JoinHandle<()>> = (0..CONNECTIONS)
            .map(|i| {
                spawn(async move {
                    let stream = TcpStream::connect(address).await.unwrap();
                    for j in 0..20 {
                        let message = format!("message {j} of connection {i}").repeat(1 + (i + j) % 7);
                        stream.write_all(message.as_bytes()).await.unwrap();
                        let mut answer = vec![0; message.len()];
                        stream.read_exact(&mut answer).await.unwrap();
                        assert_eq!(answer, message.as_bytes());
                    }
                })
            })
            .collect();
        server.await.unwrap();
        for client in clients {
            client.await.unwrap();
        }
    });
}

#[test]
fn unix_sockets_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    run(async move {
        let listener = UnixListener::bind(&path).unwrap();
        let server = spawn(async move { echo(&listener.accept().await.unwrap()).await.unwrap() });
        let stream = UnixStream::connect(&path).await.unwrap();
        for _ in 0..3 {
            stream.write_all(b"hello").await.unwrap();
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"hello");
        }
        drop(stream);
        assert_eq!(server.await.unwrap(), 3);

        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.to_string(), format!("bind {}: Address already in use", path.display()));
        let error = UnixStream::connect("/nowhere").await.unwrap_err();
        assert_eq!(error.to_string(), "connect to /nowhere: No such file or directory");
    });
}

/// There are more connections than a Unix listener's backlog takes: the rest must wait, not fail.
#[test]
fn a_full_backlog_makes_clients_wait() {
    let directory = tempfile::tempdir().unwrap();
    let path = Rc::new(directory.path().join("socket"));
    const CLIENTS: usize = 1500;
    run(async move {
        let listener = UnixListener::bind(&*path).unwrap();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let path = path.clone();
                spawn_local(async move { UnixStream::connect(&*path).await.unwrap() })
            })
            .collect();
        selvedge_io::time::sleep(common::ms(20)).await;
        for _ in 0..CLIENTS {
            listener.accept().await.unwrap();
        }
        for client in clients {
            client.await.unwrap();
        }
    });
}

/// Several threads may accept from one listener: none of them starves, and they do not wake one
/// another for ever.
#[test]
fn threads_share_a_listener() {
    run(async {
        let listener = Rc::new(listen());
        let address = listener.local_addr();
        let acceptors: Vec<_> = (0..4)
            .map(|_| {
                let listener = listener.clone();
                spawn_local(async move {
                    let mut taken = 0;
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        let mut byte = [0];
                        stream.read_exact(&mut byte).await.unwrap();
                        if byte == [b'q'] {
                            return taken;
                        }
                        taken += 1;
                    }
                })
            })
            .collect();
        selvedge_io::time::sleep(common::ms(20)).await;
        for i in 0..104 {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(if i < 100 { b"x" } else { b"q" }).await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
        }
        let mut total = 0;
        for acceptor in acceptors {
            total += acceptor.await.unwrap();
        }
        assert_eq!(total, 100);
    });
}
