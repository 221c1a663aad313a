//! Programs on a simulated network, in every order of their threads' steps and of the arrivals on
//! the network.
//!
//! The conditions are [prompt](Conditions::prompt), so all that was sent is due at once. A release
//! build, which `cargo xtask ci` makes, tries every order of each program without a bound; the test
//! fails if there are more orders than the test says. A debug build is some 20 times slower: where a
//! program has more than 3,000 orders, the debug build tries all orders with one preemption.

use selvedge_core::{JoinError, sleep, spawn_local, yield_now};
use selvedge_io::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use selvedge_io::pipe::pipe;
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Explorer, Simulation, Why, World};
use selvedge_sync::MVar;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

fn world() -> World {
    World::new(1).conditions(Conditions::prompt())
}

/// Runs a program in every order, of which there are at most so many.
fn check<F: Future<Output = ()> + 'static>(orders_max: u64, program: impl Fn() -> F) {
    let bound = if cfg!(debug_assertions) { 3_000 } else { orders_max };
    let explored = Explorer::new().schedules_max(bound).check_world(&world(), &program).unwrap();
    if explored.complete {
        return;
    }
    assert!(bound < orders_max, "there are more than {orders_max} orders");
    let few = Explorer::new().preemptions_max(1).schedules_max(orders_max);
    let explored = few.check_world(&world(), &program).unwrap();
    assert!(explored.complete, "more than {orders_max} orders have one preemption");
}

/// A listener on a port of its own, with its address.
fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr();
    (listener, address)
}

/// Two ends of a TCP connection.
async fn connection() -> (TcpStream, TcpStream) {
    let (listener, address) = listener();
    let client = spawn_local(async move { TcpStream::connect(address).await.unwrap() });
    let (server, _) = listener.accept().await.unwrap();
    (client.await.unwrap(), server)
}

#[test]
fn datagrams_are_met_in_every_order() {
    let orders = Rc::new(RefCell::new(BTreeSet::new()));
    let explored = Explorer::new().check_world(&world(), || {
        let orders = orders.clone();
        async move {
            let receiver = UdpSocket::bind("127.0.0.1:53".parse().unwrap()).unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            for number in 0..3 {
                sender.send_to(&[number], receiver.local_addr().unwrap()).await.unwrap();
            }
            let mut order = [0; 3];
            for number in &mut order {
                receiver.recv_from(std::slice::from_mut(number)).await.unwrap();
            }
            orders.borrow_mut().insert(order);
        }
    });
    assert!(explored.unwrap().complete);
    assert_eq!(orders.take().len(), 6);
}

#[test]
fn bytes_of_one_connection_keep_their_order_and_come_back() {
    check(100_000, || async {
        let (client, server) = connection().await;
        let echo = spawn_local(async move {
            let mut byte = [0];
            while server.read(&mut byte).await.unwrap() > 0 {
                server.write_all(&byte).await.unwrap();
            }
        });
        for word in [b"a", b"b"] {
            client.write_all(word).await.unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.read_to_end().await.unwrap(), b"ab");
        echo.await.unwrap();
    });
}

/// A server that adds the numbers of two clients. With `wrong` it keeps a sum while it waits.
async fn sum(wrong: bool) {
    let (listener, address) = listener();
    let total = Rc::new(Cell::new(0));
    let clients = [1, 2].map(|number| {
        spawn_local(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&[number]).await.unwrap();
        })
    });
    let mut handlers = Vec::new();
    for _ in 0..2 {
        let (stream, _) = listener.accept().await.unwrap();
        let total = total.clone();
        handlers.push(spawn_local(async move {
            let before = total.get();
            let mut number = [0];
            stream.read_exact(&mut number).await.unwrap();
            total.set(number[0] + if wrong { before } else { total.get() });
        }));
    }
    for thread in handlers.into_iter().chain(clients) {
        thread.await.unwrap();
    }
    assert_eq!(total.get(), 3, "a number is lost");
}

#[test]
fn a_bug_that_needs_an_order_of_arrivals_is_found_and_replayed() {
    check(1_000_000, || sum(false));
    let failed = Explorer::new().check_world(&world(), || sum(true)).unwrap_err();
    assert!(matches!(failed.why(), Why::Panic { message, .. } if message.contains("is lost")), "{failed}");
    let again = world().order(Simulation::replay(&failed.schedule())).run(sum(true)).unwrap_err();
    assert_eq!((again.schedule(), again.steps()), (failed.schedule(), failed.steps()));
}

#[test]
fn a_read_that_is_given_up_takes_no_bytes() {
    check(100_000, || async {
        let (client, server) = connection().await;
        let reader = Rc::new(server);
        let victim = {
            let reader = reader.clone();
            spawn_local(async move {
                let mut word = [0; 2];
                reader.read(&mut word).await.unwrap();
                word
            })
        };
        let writer = spawn_local(async move {
            client.write_all(b"ab").await.unwrap();
            client
        });
        yield_now().await;
        victim.cancel();
        match victim.await {
            Ok(word) => assert_eq!(&word, b"ab"),
            Err(JoinError::Cancelled) => {
                let mut word = [0; 2];
                reader.read_exact(&mut word).await.unwrap();
                assert_eq!(&word, b"ab");
            }
            Err(error) => panic!("{error}"),
        }
        drop(writer.await.unwrap());
    });
}

#[test]
fn a_reader_and_a_writer_share_a_connection() {
    check(1_000_000, || async {
        let (client, server) = connection().await;
        let client = Rc::new(client);
        let reader = {
            let client = client.clone();
            spawn_local(async move { client.read_to_end().await.unwrap() })
        };
        let writer = spawn_local(async move {
            client.write_all(b"x").await.unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        assert_eq!(server.read_to_end().await.unwrap(), b"x");
        server.write_all(b"yz").await.unwrap();
        drop(server);
        assert_eq!(reader.await.unwrap(), b"yz");
        writer.await.unwrap();
    });
}

#[test]
fn two_threads_accept_from_one_listener() {
    check(1_000_000, || async {
        let (listener, address) = listener();
        let listener = Rc::new(listener);
        let acceptors = [0, 1].map(|_| {
            let listener = listener.clone();
            spawn_local(async move { listener.accept().await.unwrap() })
        });
        let clients = [0, 1].map(|_| spawn_local(async move { TcpStream::connect(address).await.unwrap() }));
        for client in clients {
            client.await.unwrap();
        }
        for acceptor in acceptors {
            acceptor.await.unwrap();
        }
    });
}

#[test]
fn a_cancelled_accept_leaves_the_connection_to_the_next() {
    check(1_000_000, || async {
        let (listener, address) = listener();
        let listener = Rc::new(listener);
        let victim = {
            let listener = listener.clone();
            spawn_local(async move { listener.accept().await.unwrap() })
        };
        let client = spawn_local(async move { TcpStream::connect(address).await.unwrap() });
        yield_now().await;
        victim.cancel();
        if let Err(JoinError::Cancelled) = victim.await {
            listener.accept().await.unwrap();
        }
        client.await.unwrap();
    });
}

#[test]
fn a_time_limit_meets_an_answer() {
    check(100_000, || async {
        let (client, server) = connection().await;
        let server = spawn_local(async move {
            sleep(Duration::from_millis(1)).await;
            server.write_all(b"x").await.unwrap();
            server
        });
        let mut byte = [0];
        let read = timeout(Duration::from_millis(1), client.read(&mut byte)).await;
        if read.is_err() {
            assert_eq!(client.read(&mut byte).await.unwrap(), 1);
        }
        assert_eq!(&byte, b"x");
        drop(server.await.unwrap());
    });
}

#[test]
fn pipes_and_socket_pairs_pass_a_word_round() {
    check(100_000, || async {
        let (sender, receiver) = pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let done = Rc::new(MVar::new_local(0));
        let relay = spawn_local(async move {
            let mut byte = [0];
            receiver.read(&mut byte).await.unwrap();
            one.write_all(&byte).await.unwrap();
        });
        let end = {
            let done = done.clone();
            spawn_local(async move {
                let mut byte = [0];
                other.read_exact(&mut byte).await.unwrap();
                done.take().await;
                done.put(byte[0]).await;
            })
        };
        sender.write(b"x").await.unwrap();
        relay.await.unwrap();
        end.await.unwrap();
        assert_eq!(done.take().await, b'x');
    });
}
