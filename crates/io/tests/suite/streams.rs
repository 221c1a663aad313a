//! The behaviour of streams besides carrying bytes: ends, resets, full buffers.

use crate::common::{listen, localhost, ms, run, tcp_pair};
use selvedge_core::{Time, spawn, spawn_local};
use selvedge_io::net::{TcpListener, TcpStream, UnixStream, resolve};
use selvedge_io::time::sleep;
use std::io::{ErrorKind, IoSlice};
use std::net::Shutdown;

#[test]
fn half_closed_connections_still_answer() {
    run(async {
        let (client, server) = tcp_pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut question = Vec::with_capacity(100);
        while server.read_to_spare(&mut question).await.unwrap() > 0 {}
        assert_eq!(question, b"question");
        sleep(ms(5)).await;
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answer = Vec::with_capacity(100);
        while client.read_to_spare(&mut answer).await.unwrap() > 0 {}
        assert_eq!(answer, b"answer");
    });
}

/// Data and the end come in one event. The read that takes the data is short, so the next read
/// waits first.
#[test]
fn an_end_that_comes_with_data_is_seen() {
    run(async {
        for _ in 0..50 {
            let (client, server) = tcp_pair().await;
            let reader = spawn(async move {
                let mut buffer = [0; 100];
                let mut reads = Vec::new();
                loop {
                    match server.read(&mut buffer).await.unwrap() {
                        0 => return reads,
                        n => reads.push(n),
                    }
                }
            });
            sleep(ms(1)).await; // the reader waits
            client.write_all(b"the last words").await.unwrap();
            drop(client);
            assert_eq!(reader.await.unwrap(), [14]);
        }
    });
}

#[test]
fn a_reset_reaches_reader_and_writer() {
    run(async {
        let (client, server) = tcp_pair().await;
        let reader = spawn(async move {
            let error = server.read(&mut [0; 10]).await.unwrap_err();
            (error.kind(), server.write_all(b"x").await.unwrap_err().kind())
        });
        sleep(ms(5)).await;
        client.set_linger(Some(ms(0))).unwrap();
        drop(client);
        assert_eq!(reader.await.unwrap(), (ErrorKind::ConnectionReset, ErrorKind::BrokenPipe));

        let (client, server) = tcp_pair().await;
        let writer = spawn(async move {
            let megabyte = vec![0; 1 << 20];
            loop {
                if let Err(error) = server.write_all(&megabyte).await {
                    return error.kind();
                }
            }
        });
        sleep(ms(20)).await; // the writer's buffer is full: the writer waits
        client.set_linger(Some(ms(0))).unwrap();
        drop(client);
        assert_eq!(writer.await.unwrap(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_writer_waits_for_a_slow_reader_and_nothing_is_lost() {
    run(async {
        for pieces in [1, 7, 2000] {
            let (client, server) = tcp_pair().await;
            let data: Vec<u8> = (0..8_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
            let sent = data.clone();
            let writer = spawn(async move {
                if pieces == 1 {
                    client.write_all(&sent).await.unwrap();
                } else {
                    let mut parts: Vec<_> = sent.chunks(sent.len() / pieces).map(IoSlice::new).collect();
                    client.write_all_vectored(&mut parts).await.unwrap();
                }
            });
            sleep(ms(10)).await;
            let mut received = Vec::with_capacity(data.len() + 1);
            while server.read_to_spare(&mut received).await.unwrap() > 0 {}
            assert!(received == data, "{pieces} pieces: {} bytes", received.len());
            writer.await.unwrap();
        }
    });
}

#[test]
fn reader_and_writer_wait_side_by_side() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let one = std::rc::Rc::new(one);
        let reader = {
            let one = one.clone();
            spawn_local(async move {
                let mut byte = [0];
                one.read_exact(&mut byte).await.unwrap();
                byte[0]
            })
        };
        let writer = spawn_local(async move { one.write_all(&vec![7; 3_000_000]).await.unwrap() });
        sleep(ms(10)).await;
        other.write_all(b"!").await.unwrap();
        assert_eq!(reader.await.unwrap(), b'!');
        let mut received = Vec::with_capacity(3_000_001);
        while other.read_to_spare(&mut received).await.unwrap() > 0 {}
        assert_eq!(received.len(), 3_000_000);
        writer.await.unwrap();
    });
}

#[test]
fn connecting_fails_with_the_address_in_the_message() {
    run(async {
        let address = listen().local_addr(); // the listener is dropped, so the port is free
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(error.to_string(), format!("connect to {address}: Connection refused"));

        let listener = listen();
        let error = TcpListener::bind(listener.local_addr()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert_eq!(error.to_string(), format!("bind {}: Address already in use", listener.local_addr()));
        let error = TcpListener::bind("192.0.2.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "bind 192.0.2.1:80: Cannot assign requested address");
    });
}

#[test]
fn names_are_looked_up() {
    run(async {
        assert!(resolve("localhost:80").await.unwrap().contains(&localhost(80)));
        let error = resolve("localhost").await.unwrap_err();
        assert!(error.to_string().starts_with("look up localhost: "), "{error}");
    });
}

#[test]
fn ipv6_and_options() {
    run(async {
        let Ok(listener) =
            selvedge_io::net::ListenOptions::new().only_v6(true).bind("[::1]:0".parse().unwrap())
        else {
            return; // this host has no IPv6
        };
        let address = listener.local_addr();
        let client = spawn(async move { TcpStream::connect(address).await.unwrap() });
        let (server, peer) = listener.accept().await.unwrap();
        let client = client.await.unwrap();
        assert_eq!((client.local_addr().unwrap(), client.peer_addr().unwrap()), (peer, address));
        assert_eq!(server.peer_addr().unwrap(), peer);
        assert!(rustix::net::sockopt::tcp_nodelay(&server).unwrap(), "inherited from the listener");
        server.set_nodelay(false).unwrap();
        assert!(!rustix::net::sockopt::tcp_nodelay(&server).unwrap());
    });
}

/// A peer that sends faster than the thread reads must not keep the worker for itself.
#[test]
fn a_thread_that_never_waits_lets_others_run() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let (done, other_runs) =
            (std::rc::Rc::new(std::cell::Cell::new(false)), std::rc::Rc::new(std::cell::Cell::new(0)));
        let (stop, count) = (done.clone(), other_runs.clone());
        drop(spawn_local(async move {
            while !stop.get() {
                count.set(count.get() + 1);
                selvedge_core::yield_now().await;
            }
        }));
        other.write_all(&[0; 10_000]).await.unwrap();
        for _ in 0..10_000 {
            one.read_exact(&mut [0]).await.unwrap();
        }
        done.set(true);
        assert!(other_runs.get() >= 100, "{other_runs:?}");
    });
}

/// The data of more than one read, and the end, come while the thread does something else, after a
/// short read.
#[test]
fn an_end_behind_more_data_than_one_read_takes_is_seen() {
    run(async {
        let (client, server) = tcp_pair().await;
        let reader = spawn(async move {
            let mut buffer = [0; 100];
            assert_eq!(server.read(&mut buffer).await.unwrap(), 1);
            assert!(server.try_read(&mut buffer).is_err());
            sleep(ms(20)).await;
            let deadline = Time::now() + ms(5000);
            server.set_read_deadline(Some(deadline));
            let mut reads = Vec::new();
            loop {
                match server.read(&mut buffer).await.unwrap() {
                    0 if Time::now() < deadline => return reads,
                    0 => panic!("only the deadline made it look again"),
                    read => reads.push(read),
                }
            }
        });
        sleep(ms(5)).await; // the reader waits, so that the descriptor is registered
        client.write_all(b"x").await.unwrap();
        sleep(ms(5)).await;
        client.write_all(&[0; 250]).await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(reader.await.unwrap(), [100, 100, 50]);
    });
}

#[test]
fn errors_name_the_peer() {
    run(async {
        let listener = listen();
        let address = listener.local_addr();
        let client = TcpStream::connect(address).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        client.set_read_deadline(Some(Time::now() + ms(5)));
        let error = client.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), format!("read from {address}: timed out"));
        client.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(client); // dropping unread data resets the connection
        let error = server.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(error.to_string(), format!("read from {peer}: Connection reset by peer"));
        let error = server.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.to_string(), format!("write to {peer}: Broken pipe"));
    });
}
