//! Datagrams: UDP and Unix.

use crate::common::{localhost, ms, run};
use selvedge_core::{Time, spawn, spawn_local};
use selvedge_io::faults::{Call, Fault, Faults};
use selvedge_io::net::{UdpSocket, UnixDatagram};
use selvedge_io::time::{sleep, timeout};
use std::cell::Cell;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::rc::Rc;

fn udp() -> UdpSocket {
    UdpSocket::bind(localhost(0)).unwrap()
}

#[test]
fn datagrams_keep_their_bounds_and_name_their_sender() {
    run(async {
        let (one, other) = (udp(), udp());
        let (here, there) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let receiver = spawn(async move {
            let mut buffer = [0; 100];
            for i in 0..100 {
                let (length, from) = other.recv_from(&mut buffer).await.unwrap();
                assert_eq!((&buffer[..length], from), (&vec![i as u8; i][..], here));
            }
        });
        for i in 0..100 {
            assert_eq!(one.send_to(&vec![i as u8; i], there).await.unwrap(), i);
            if i % 10 == 0 {
                sleep(ms(1)).await;
            }
        }
        receiver.await.unwrap();
    });
}

#[test]
fn a_datagram_that_was_looked_at_is_still_there_and_one_that_is_too_long_is_cut() {
    run(async {
        let (one, other) = (udp(), udp());
        one.send_to(b"a long one", other.local_addr().unwrap()).await.unwrap();
        one.send_to(b"next", other.local_addr().unwrap()).await.unwrap();
        let mut buffer = [0; 6];
        for _ in 0..2 {
            assert_eq!(other.peek_from(&mut buffer).await.unwrap(), (6, one.local_addr().unwrap()));
        }
        assert_eq!(other.recv_from(&mut buffer).await.unwrap().0, 6);
        assert_eq!(&buffer, b"a long");
        assert_eq!(other.recv_from(&mut buffer).await.unwrap().0, 4);
        assert_eq!(other.try_recv_from(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_connected_socket_hears_only_its_peer_and_of_its_absence() {
    run(async {
        let (one, other, third) = (udp(), udp(), udp());
        let (here, there) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        assert_eq!(one.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        one.connect(there).unwrap();
        assert_eq!(one.peer_addr().unwrap(), there);
        third.send_to(b"not for you", here).await.unwrap();
        other.send_to(b"for you", here).await.unwrap();
        let mut buffer = [0; 20];
        assert_eq!(one.recv(&mut buffer).await.unwrap(), 7);
        assert_eq!(one.send(b"back").await.unwrap(), 4);
        assert_eq!(other.recv_from(&mut buffer).await.unwrap(), (4, here));
        drop(other);
        one.send(b"into the void").await.unwrap();
        let error = timeout(ms(5000), one.recv(&mut buffer)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn one_thread_sends_while_another_receives() {
    run(async {
        let (one, other) = (Rc::new(udp()), Rc::new(udp()));
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        let echo = {
            let other = other.clone();
            spawn_local(async move {
                let mut buffer = [0; 10];
                for _ in 0..500 {
                    let length = other.recv(&mut buffer).await.unwrap();
                    other.send(&buffer[..length]).await.unwrap();
                }
            })
        };
        // Counts the replies that have come, so that no buffer overflows.
        let permit = Rc::new(Cell::new(0));
        let replies = {
            let (one, permit) = (one.clone(), permit.clone());
            spawn_local(async move {
                for i in 0..500u16 {
                    let mut buffer = [0; 2];
                    one.recv(&mut buffer).await.unwrap();
                    assert_eq!(u16::from_ne_bytes(buffer), i);
                    permit.set(permit.get() + 1);
                }
            })
        };
        for i in 0..500u16 {
            one.send(&i.to_ne_bytes()).await.unwrap();
            while permit.get() + 50 < i32::from(i) {
                sleep(ms(1)).await;
            }
        }
        echo.await.unwrap();
        replies.await.unwrap();
    });
}

#[test]
fn errors_name_the_address_and_deadlines_hold() {
    run(async {
        let one = udp();
        let taken = one.local_addr().unwrap();
        let error = UdpSocket::bind(taken).unwrap_err();
        assert_eq!(error.to_string(), format!("bind {taken}: Address already in use"));
        let error = one.send_to(&[0; 70_000], localhost(9)).await.unwrap_err();
        assert_eq!(error.to_string(), "send to 127.0.0.1:9: Message too long");
        let error = one.send_to(b"", "255.255.255.255:9".parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        one.set_broadcast(true).unwrap();
        one.set_read_deadline(Some(Time::now() + ms(10)));
        assert_eq!(one.recv_from(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        // A receive that is given up takes no datagram away.
        one.set_read_deadline(None);
        assert!(timeout(ms(5), one.recv_from(&mut [0])).await.is_err());
        one.send_to(b"x", taken).await.unwrap();
        assert_eq!(one.recv_from(&mut [0]).await.unwrap(), (1, taken));
    });
}

#[test]
fn a_group_hears_what_is_sent_to_it() {
    run(async {
        let group = Ipv4Addr::new(239, 255, 77, 1);
        let any = "0.0.0.0:0".parse().unwrap();
        let one = UdpSocket::bind_shared(any).unwrap();
        let port = one.local_addr().unwrap().port();
        let other = UdpSocket::bind_shared(([0, 0, 0, 0], port).into()).unwrap();
        for member in [&one, &other] {
            member.join_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        }
        let error = one.join_multicast_v4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).unwrap_err();
        assert!(error.to_string().starts_with("join 127.0.0.1: "), "{error}");
        let sender = udp();
        sender.set_multicast_ttl(1).unwrap();
        sender.set_multicast_loop(true).unwrap();
        sender.send_to(b"all", (group, port).into()).await.unwrap();
        for member in [&one, &other] {
            let mut buffer = [0; 10];
            let received = timeout(ms(5000), member.recv_from(&mut buffer)).await.unwrap().unwrap();
            assert_eq!(received, (3, sender.local_addr().unwrap()));
        }
        one.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        assert!(one.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).is_err());
    });
}

#[test]
fn unix_datagrams_wait_for_room_and_come_in_order() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let receiver = spawn(async move {
            for i in 0..2000u32 {
                let mut buffer = [0; 1000];
                assert_eq!(other.recv(&mut buffer).await.unwrap(), 1000);
                assert_eq!(buffer[..4], i.to_ne_bytes());
                if i % 300 == 0 {
                    sleep(ms(1)).await;
                }
            }
        });
        for i in 0..2000u32 {
            let mut message = [7; 1000];
            message[..4].copy_from_slice(&i.to_ne_bytes());
            one.send(&message).await.unwrap();
        }
        receiver.await.unwrap();
    });
}

#[test]
fn unix_datagrams_go_to_paths() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    run(async move {
        let receiver = UnixDatagram::bind(&path).unwrap();
        let error = UnixDatagram::bind(&path).unwrap_err();
        assert!(error.to_string().starts_with(&format!("bind {}: ", path.display())), "{error}");
        let named = UnixDatagram::bind(path.with_extension("2")).unwrap();
        let unnamed = UnixDatagram::unbound().unwrap();
        // These are more datagrams than the receiver's queue takes.
        let to = path.clone();
        let sender = spawn(async move {
            named.send_to(b"named", &to).await.unwrap();
            for i in 0..300u16 {
                unnamed.send_to(&i.to_ne_bytes(), &to).await.unwrap();
            }
            unnamed.connect(&to).unwrap();
            for i in 300..600u16 {
                unnamed.send(&i.to_ne_bytes()).await.unwrap();
            }
            unnamed
        });
        sleep(ms(20)).await;
        let mut buffer = [0; 10];
        let from = receiver.recv_from(&mut buffer).await.unwrap();
        assert_eq!(from, (5, Some(path.with_extension("2"))));
        for i in 0..600u16 {
            assert_eq!(receiver.recv_from(&mut buffer).await.unwrap(), (2, None));
            assert_eq!(buffer[..2], i.to_ne_bytes());
        }
        let unnamed = sender.await.unwrap();
        drop(receiver);
        std::fs::remove_file(&path).unwrap();
        let error = unnamed.send_to(b"x", &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(unnamed.send(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        unnamed.set_read_deadline(Some(Time::now() + ms(5)));
        assert_eq!(unnamed.recv(&mut buffer).await.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn interruptions_reach_no_caller() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    run(async move {
        let (one, other) = (udp(), udp());
        let (sender, socket) = (UnixDatagram::unbound().unwrap(), UnixDatagram::bind(&path).unwrap());
        let wanted = [Call::Connect, Call::Send, Call::Recv];
        let _interrupted = Faults::here(move |call, nth| {
            (wanted.contains(&call) && nth % 2 == 0).then_some(Fault::INTERRUPTED)
        });
        let mut buffer = [0; 10];
        one.connect(other.local_addr().unwrap()).unwrap();
        one.send(b"one").await.unwrap();
        let (length, from) = other.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..length], from), (&b"one"[..], one.local_addr().unwrap()));
        other.send_to(b"two", from).await.unwrap();
        assert_eq!(one.recv(&mut buffer).await.unwrap(), 3);
        sender.send_to(b"three", &path).await.unwrap();
        sender.connect(&path).unwrap();
        sender.send(b"four").await.unwrap();
        assert_eq!(socket.recv_from(&mut buffer).await.unwrap(), (5, None));
        assert_eq!(socket.recv(&mut buffer).await.unwrap(), 4);
    });
}
