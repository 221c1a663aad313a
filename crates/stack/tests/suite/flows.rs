//! Several stacks that share a device.

use crate::{address, options};
use selvedge_core::spawn;
use selvedge_io::time::timeout;
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
