//! Datagrams, pipes and signals in a simulated world.

use selvedge_core::{Time, sleep, spawn_local};
use selvedge_io::fs;
use selvedge_io::net::{UdpSocket, UnixDatagram};
use selvedge_io::pipe::{Receiver, Sender, pipe};
use selvedge_io::process::Command;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;
use selvedge_sim::each_seed;
use selvedge_sim::{Conditions, Disk, World, raise, simulate};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1), port).into()
}

/// Sends numbered datagrams, and returns the numbers of the datagrams that arrive.
async fn numbers(sent: u8) -> Vec<u8> {
    let receiver = UdpSocket::bind(address(7)).unwrap();
    let receiver = spawn_local(async move {
        let mut numbers = Vec::new();
        let mut buffer = [0; 16];
        while let Ok(received) = timeout(Duration::from_secs(60), receiver.recv_from(&mut buffer)).await {
            let (length, from) = received.unwrap();
            assert_eq!((length, from.port()), (3, 9));
            assert_eq!(buffer[0], buffer[2]);
            numbers.push(buffer[0]);
        }
        numbers
    });
    let sender = UdpSocket::bind(address(9)).unwrap();
    for number in 0..sent {
        assert_eq!(sender.send_to(&[number; 3], address(7)).await.unwrap(), 3);
    }
    receiver.await.unwrap()
}

#[test]
fn in_good_conditions_datagrams_only_overtake_each_other() {
    let mut orders = BTreeSet::new();
    each_seed(0..50, |seed| {
        let ended = World::new(seed).run(numbers(20)).unwrap();
        let mut numbers = ended.output;
        orders.insert(numbers.clone());
        numbers.sort();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>());
        assert_eq!(ended.descriptors, 0);
    });
    assert!(orders.len() > 45);
}

#[test]
fn in_bad_conditions_they_are_lost_and_doubled() {
    let (mut lost, mut doubled, mut digests) = (0, 0, BTreeSet::new());
    each_seed(0..50, |seed| {
        let run = || World::new(seed).conditions(Conditions::bad()).run(numbers(40)).unwrap();
        let (one, same) = (run(), run());
        assert_eq!((one.digest, one.steps, &one.output), (same.digest, same.steps, &same.output));
        digests.insert(one.digest);
        let different: BTreeSet<_> = one.output.iter().collect();
        lost += 40 - different.len();
        doubled += one.output.len() - different.len();
    });
    assert!(
        (100..400).contains(&lost) && (50..200).contains(&doubled),
        "{lost} lost, {doubled} doubled of 2000"
    );
    assert_eq!(digests.len(), 50);
}

#[test]
fn a_connected_socket_receives_from_its_peer_alone_and_learns_that_there_is_no_peer() {
    simulate(0..50, || async {
        let one = UdpSocket::bind(address(1)).unwrap();
        assert_eq!(one.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        one.connect(address(2)).unwrap();
        assert_eq!(one.peer_addr().unwrap(), address(2));
        one.send(b"a peer?").await.unwrap();
        assert_eq!(one.recv(&mut [0; 9]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let two = UdpSocket::bind(address(2)).unwrap();
        let stranger = UdpSocket::bind(address(3)).unwrap();
        stranger.send_to(b"pssst", address(1)).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(one.try_recv_from(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
        one.send(b"hello").await.unwrap();
        let mut buffer = [0; 3];
        assert_eq!(two.peek_from(&mut buffer).await.unwrap(), (3, address(1)));
        assert_eq!(two.recv_from(&mut buffer).await.unwrap(), (3, address(1)), "the rest is lost");
        assert_eq!(&buffer, b"hel");
        two.send_to(b"", address(1)).await.unwrap();
        assert_eq!(one.recv(&mut buffer).await.unwrap(), 0);
        // A socket that is not connected is not told that its datagram found no receiver.
        stranger.send_to(b"x", address(99)).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        stranger.send_to(b"x", address(99)).await.unwrap();
    });
}

#[test]
fn addresses_sizes_and_groups() {
    simulate(0..20, || async {
        let one = UdpSocket::bind(address(1)).unwrap();
        assert_eq!(UdpSocket::bind(address(1)).unwrap_err().kind(), ErrorKind::AddrInUse);
        let error = one.send_to(&vec![0; 65_508], address(1)).await.unwrap_err();
        assert!(error.to_string().contains("Message too long"), "{error}");
        let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 5));
        assert_eq!(one.send_to(b"all", everybody).await.unwrap_err().kind(), ErrorKind::PermissionDenied);
        one.set_broadcast(true).unwrap();
        one.set_ttl(0).unwrap_err();
        let group = Ipv4Addr::new(239, 1, 1, 1);
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 5));
        let members: Vec<_> = (0..3).map(|_| UdpSocket::bind_shared(any).unwrap()).collect();
        members[0].join_multicast_v4(group, Ipv4Addr::UNSPECIFIED).unwrap();
        members[1].join_multicast_v4(group, Ipv4Addr::UNSPECIFIED).unwrap();
        one.send_to(b"group", (group, 5).into()).await.unwrap();
        one.send_to(b"all", everybody).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let mut buffer = [0; 9];
        let mut counts = [0; 3];
        for (member, count) in members.iter().zip(&mut counts) {
            while let Ok((_, from)) = member.try_recv_from(&mut buffer) {
                assert_eq!(from, address(1));
                *count += 1;
            }
        }
        assert_eq!(counts, [2, 2, 1]);
        let chosen = UdpSocket::bind("[::1]:0".parse().unwrap()).unwrap();
        assert_ne!(chosen.local_addr().unwrap().port(), 0);
        chosen.send_to(b"self", chosen.local_addr().unwrap()).await.unwrap();
        assert_eq!(chosen.recv_from(&mut buffer).await.unwrap(), (4, chosen.local_addr().unwrap()));
    });
}

#[test]
fn unix_datagrams_come_all_and_in_order_and_a_full_queue_waits() {
    each_seed(0..100, |seed| {
        let main = async {
            let server = UnixDatagram::bind("/run/log").unwrap();
            let reader = spawn_local(async move {
                let mut numbers = Vec::new();
                let mut buffer = [0; 8];
                for _ in 0..100 {
                    let (length, from) = server.recv_from(&mut buffer).await.unwrap();
                    assert_eq!((length, from), (2, None));
                    numbers.push(buffer[0]);
                    if buffer[0] % 10 == 0 {
                        sleep(Duration::from_millis(5)).await;
                    }
                }
                numbers
            });
            let client = UnixDatagram::unbound().unwrap();
            assert_eq!(client.send(b"x").await.unwrap_err().kind(), ErrorKind::NotConnected);
            client.connect("/run/log").unwrap();
            for number in 0..50 {
                client.send(&[number, 0]).await.unwrap();
            }
            // A sender that is not connected sends too. It pauses between its attempts.
            let other = UnixDatagram::unbound().unwrap();
            for number in 50..100 {
                other.send_to(&[number, 0], "/run/log").await.unwrap();
            }
            let numbers = reader.await.unwrap();
            assert_eq!(client.send(b"gone").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
            assert_eq!(
                other.send_to(b"x", "/run/log").await.unwrap_err().kind(),
                ErrorKind::ConnectionRefused
            );
            assert_eq!(other.send_to(b"x", "/never").await.unwrap_err().kind(), ErrorKind::NotFound);
            numbers
        };
        let ended = World::new(seed).conditions(Conditions::bad()).run(main).unwrap();
        assert_eq!(ended.output, (0..100).collect::<Vec<_>>());
        assert_eq!(ended.descriptors, 0);
    });
    simulate(0..20, || async {
        let (one, other) = UnixDatagram::pair().unwrap();
        one.send(b"first").await.unwrap();
        one.send(b"").await.unwrap();
        let mut buffer = [0; 9];
        assert_eq!((other.recv(&mut buffer).await.unwrap(), other.recv(&mut buffer).await.unwrap()), (5, 0));
        drop(other);
        assert_eq!(one.send(b"gone").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn what_is_written_to_a_pipe_is_read_from_it_in_pieces() {
    let mut waits = 0;
    each_seed(0..100, |seed| {
        let main = async move {
            let content: Vec<u8> = (0..200_000u32).map(|i| (i * 31 / 7) as u8).collect();
            let (sender, receiver) = pipe().unwrap();
            let sent = content.clone();
            let writer = spawn_local(async move {
                let start = Time::now();
                sender.write_all(&sent).await.unwrap();
                Time::now() > start
            });
            let mut all = Vec::new();
            let mut buffer = vec![0; 100 + (seed as usize * 97) % 9000];
            loop {
                match receiver.read(&mut buffer).await.unwrap() {
                    0 => break,
                    read => all.extend_from_slice(&buffer[..read]),
                }
            }
            assert!(all == content);
            writer.await.unwrap()
        };
        let conditions = if seed < 50 { Conditions::good() } else { Conditions::bad() };
        let ended = World::new(seed).conditions(conditions).run(main).unwrap();
        assert_eq!(ended.descriptors, 0);
        waits += usize::from(ended.output);
    });
    assert!(waits > 10, "writes are cut short in bad conditions");
}

#[test]
fn a_pipe_holds_so_much_and_small_writes_are_whole() {
    simulate(0..50, || async {
        let (sender, receiver) = pipe().unwrap();
        let mut written = 0;
        let error = loop {
            match sender.try_write(&[1; 3000]) {
                Ok(3000) => written += 3000,
                Ok(some) => panic!("{some} of 3000 bytes are written"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!((3000..70_000).contains(&written));
        sender.set_deadline(Some(Time::now() + Duration::from_secs(1)));
        assert_eq!(sender.write_all(&[2; 4000]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        sender.set_deadline(None);
        let sender = Rc::new(sender);
        let writer = {
            let sender = sender.clone();
            spawn_local(async move { sender.write_all(&[2; 4000]).await })
        };
        let mut all = vec![0; written + 4000];
        receiver.read_exact(&mut all).await.unwrap();
        assert_eq!((all[written - 1], all[written]), (1, 2));
        writer.await.unwrap().unwrap();
        drop(receiver);
        assert_eq!(sender.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        let (sender, receiver) = pipe().unwrap();
        drop(sender);
        assert_eq!(receiver.read(&mut [0; 1]).await.unwrap(), 0);
    });
}

#[test]
fn the_ends_of_a_fifo_find_each_other() {
    let mut disk = Disk::new();
    disk.fifo("/run/fifo").unwrap();
    disk.write("/run/file", b"").unwrap();
    each_seed(0..100, |seed| {
        let main = async {
            let writers: Vec<_> = (0..2)
                .map(|number| {
                    spawn_local(async move {
                        let sender = Sender::open("/run/fifo").await.unwrap();
                        sender.write_all(&[number; 100]).await.unwrap();
                    })
                })
                .collect();
            sleep(Duration::from_millis(20)).await;
            let receiver = Receiver::open("/run/fifo").await.unwrap();
            let mut all = Vec::new();
            while all.len() < 200 {
                all.extend(receiver.read_to_end().await.unwrap());
                // While there is no writer, reading finds an end.
                sleep(Duration::from_millis(1)).await;
            }
            assert!(all.chunks(100).all(|chunk| chunk == [chunk[0]; 100]), "small writes are whole");
            for writer in writers {
                writer.await.unwrap();
            }
            let error = Receiver::open("/run/file").await.unwrap_err();
            assert!(error.to_string().contains("not a FIFO"), "{error}");
            assert!(!fs::metadata("/run/fifo").await.unwrap().is_file());
        };
        assert_eq!(World::new(seed).disk(disk.clone()).run(main).unwrap().descriptors, 0);
    });
}

#[test]
fn signals_are_raised_for_their_subscribers() {
    simulate(0..50, || async {
        assert_eq!(raise(Signal::TERM), 0);
        let mut one = signals(&[Signal::TERM, Signal::HUP]).unwrap();
        let mut other = signals(&[Signal::HUP]).unwrap();
        assert_eq!(one.try_next(), None);
        let waiter = spawn_local(async move {
            let first = one.next().await.unwrap();
            (first, one.next().await.unwrap(), one)
        });
        sleep(Duration::from_secs(1)).await;
        assert_eq!((raise(Signal::HUP), raise(Signal::HUP)), (2, 2));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(raise(Signal::TERM), 1);
        let (first, second, mut one) = waiter.await.unwrap();
        assert_eq!((first, second, one.try_next()), (Signal::HUP, Signal::TERM, None));
        assert_eq!(other.try_next(), Some(Signal::HUP), "several of a kind are one");
        assert_eq!(other.try_next(), None);
        drop((one, other));
        assert_eq!(raise(Signal::HUP), 0);
    });
}

#[test]
#[should_panic(expected = "SIGTERM is raised in no simulated world")]
fn outside_a_world_no_signal_is_raised() {
    raise(Signal::TERM);
}

#[test]
fn there_are_no_child_processes() {
    simulate(0..3, || async {
        let error = Command::new("true").status().await.unwrap_err();
        assert_eq!(error.to_string(), "start true: a simulated world has no child processes");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}
