//! Several stacks that share a device.

use crate::{address, options};
use selvedge_core::spawn;
use selvedge_io::time::{sleep, timeout};
use selvedge_sim::simulate;
use selvedge_stack::{FlowWire, SimulatedWire, Stack, TcpListener, TcpStream, UdpSocket, Weather};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

const STACKS: usize = 3;

/// A stack, and three that share the other end of its wire.
fn one_and_three(weather: Weather) -> (Stack, Vec<Stack>) {
    let (left, right) = SimulatedWire::pair(1, weather);
    let shares = FlowWire::share(vec![right], STACKS);
    let three = shares.into_iter().map(|share| Stack::start(options(2), share)).collect();
    (Stack::start(options(1), left), three)
}

#[test]
fn each_flow_has_a_stack_and_each_stack_has_flows() {
    simulate(0..10, || async {
        let storm = Weather { lost: 30, doubled: 30, delay: Duration::from_millis(5) };
        let (client, three) = one_and_three(storm);
        let counts: Vec<Arc<AtomicUsize>> = three.iter().map(|_| Arc::default()).collect();
        for (stack, count) in three.iter().zip(&counts) {
            let (listener, count) =
                (TcpListener::bind(stack, address("10.0.0.2:80")).unwrap(), count.clone());
            drop(spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    count.fetch_add(1, Relaxed);
                    drop(spawn(async move {
                        let mut buffer = [0; 2000];
                        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                            stream.write_all(&buffer[..read]).await.unwrap();
                        }
                    }));
                }
            }));
        }
        for _ in 0..30 {
            let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
            stream.write_all(&[7; 2000]).await.unwrap();
            stream.read_exact(&mut [0; 2000]).await.unwrap();
        }
        let counts: Vec<usize> = counts.iter().map(|count| count.load(Relaxed)).collect();
        assert_eq!(counts.iter().sum::<usize>(), 30);
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    });
}

#[test]
fn what_a_stack_asks_comes_back_to_it() {
    simulate(0..10, || async {
        let (other, three) = one_and_three(Weather::default());
        let listener = TcpListener::bind(&other, address("10.0.0.1:80")).unwrap();
        let socket = UdpSocket::bind(&other, address("10.0.0.1:53")).unwrap();
        drop(spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.write_all(b"weft").await.unwrap();
            }
        }));
        drop(spawn(async move {
            let mut buffer = [0; 10];
            while let Ok((read, from)) = socket.recv_from(&mut buffer).await {
                socket.send_to(&buffer[..read], from).await.unwrap();
            }
        }));
        for stack in three.iter().cycle().take(12) {
            let stream = TcpStream::connect(stack, address("10.0.0.1:80")).await.unwrap();
            stream.read_exact(&mut [0; 4]).await.unwrap();
            let asking = UdpSocket::bind(stack, address("10.0.0.2:0")).unwrap();
            asking.send_to(b"warp", address("10.0.0.1:53")).await.unwrap();
            let mut answer = [0; 10];
            let answer = timeout(Duration::from_secs(5), asking.recv_from(&mut answer)).await;
            assert_eq!(answer.unwrap().unwrap().0, 4);
        }
    });
}

/// A host that has asked one stack for its address is known to all, and none of them has to ask:
/// smoltcp does that once a second at most.
#[test]
fn no_stack_waits_for_the_address_of_a_host_that_has_asked() {
    simulate(0..20, || async {
        let both = |last: u8| {
            let six = format!("fd00::{last}").parse().unwrap();
            options(last).address(six, 64).unwrap()
        };
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let shares = FlowWire::share(vec![right], STACKS).into_iter();
        let three: Vec<Stack> = shares.map(|share| Stack::start(both(2), share)).collect();
        let client = Stack::start(both(1), left);
        let served = Arc::new(AtomicUsize::new(0));
        for (number, stack) in three.iter().enumerate() {
            for at in ["10.0.0.2:80", "[fd00::2]:80"] {
                let (listener, served) = (TcpListener::bind(stack, address(at)).unwrap(), served.clone());
                drop(spawn(async move {
                    while listener.accept().await.is_ok() {
                        served.fetch_or(1 << number, Relaxed);
                    }
                }));
            }
        }
        // The client is a stack too, and asks for each of both addresses once. If its first
        // connections come to the first stack, the others have to know it without an answer.
        let both = ["10.0.0.2:80", "[fd00::2]:80"];
        TcpStream::connect(&client, address(both[0])).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        TcpStream::connect(&client, address(both[1])).await.unwrap();
        served.store(0, Relaxed);
        for at in both.into_iter().cycle().take(60) {
            let connecting = TcpStream::connect(&client, address(at));
            assert!(timeout(Duration::from_millis(50), connecting).await.is_ok(), "{at}");
        }
        assert_eq!(served.load(Relaxed), (1 << STACKS) - 1, "each stack has served");
    });
}
