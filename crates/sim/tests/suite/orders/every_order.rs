//! Programs on a simulated network, in every order of their threads' steps and of the arrivals on
//! the network.
//!
//! The conditions are [prompt](Conditions::prompt), so all that was sent is due at once. A program
//! that `every_order` checks has at most 1,146 orders, and runs in each of them. A program that
//! `many_orders` checks has more than 200,000 orders: it runs in the first orders of the search,
//! and in orders that seeds determine.

use selvedge_core::{JoinError, sleep, spawn_local, yield_now};
use selvedge_io::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use selvedge_io::pipe::pipe;
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Explorer, Simulation, Why, World, each_seed};
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

/// Runs a program in every order.
fn every_order<F: Future<Output = ()> + 'static>(program: impl Fn() -> F) {
    let explored = Explorer::new().schedules_max(5_000).check_world(&world(), program).unwrap();
    assert!(explored.complete, "there are more than 5,000 orders");
}

/// The number of orders and seeds that `many_orders` tries. The optimized build of the proof
/// `optimized sim` is some 20 times faster.
const MANY: u64 = if cfg!(debug_assertions) { 1_000 } else { 50_000 };

/// Runs a program in the first orders of the search, and with many seeds.
fn many_orders<F: Future<Output = ()> + 'static>(program: impl Fn() -> F) {
    let explored = Explorer::new().schedules_max(MANY).check_world(&world(), &program).unwrap();
    assert!(!explored.complete, "`every_order` can check this program");
    each_seed(0..MANY / 5, |seed| {
        let order = if seed % 2 == 0 { Simulation::new(seed) } else { Simulation::pct(seed, 3, 100) };
        let conditions = if seed % 3 == 0 { Conditions::prompt() } else { Conditions::good() };
        World::new(seed).conditions(conditions).order(order).run(program()).unwrap();
    });
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
    every_order(|| async {
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
    many_orders(|| sum(false));
    let failed = Explorer::new().check_world(&world(), || sum(true)).unwrap_err();
    assert!(matches!(failed.why(), Why::Panic { message, .. } if message.contains("is lost")), "{failed}");
    let again = world().order(Simulation::replay(&failed.schedule())).run(sum(true)).unwrap_err();
    assert_eq!((again.schedule(), again.steps()), (failed.schedule(), failed.steps()));
}

#[test]
fn a_read_that_is_given_up_takes_no_bytes() {
    every_order(|| async {
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
    every_order(|| async {
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
    many_orders(|| async {
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
    every_order(|| async {
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
    every_order(|| async {
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
    every_order(|| async {
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
