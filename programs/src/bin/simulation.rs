//! A program under test: the network delays and loses connections as a seed says, and time is
//! virtual, so that hours pass at once.
//!
//! # Prints
//! ```text
//! in 20 orders and weathers each of 5 philosophers ate 3 times
//! a client waited for a day in less than a second
//! ```

use selvedge::net::{TcpListener, TcpStream};
use selvedge::sync::Mutex;
use selvedge::{sim, sleep, spawn_local};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

const SEATS: usize = 5;

/// Philosophers that take their forks in the order of the forks' numbers, so that they never wait
/// in a circle.
async fn dine() {
    let forks: Rc<[Mutex<u32, _>]> = (0..SEATS).map(|_| Mutex::new_local(0)).collect();
    let seated: Vec<_> = (0..SEATS)
        .map(|seat| {
            let forks = forks.clone();
            spawn_local(async move {
                let (one, other) = (seat.min((seat + 1) % SEATS), seat.max((seat + 1) % SEATS));
                for _ in 0..3 {
                    let (mut one, mut other) = (forks[one].lock().await, forks[other].lock().await);
                    sleep(Duration::from_secs(60)).await; // virtual
                    *one += 1;
                    *other += 1;
                }
            })
        })
        .collect();
    for philosopher in seated {
        philosopher.await.expect("no philosopher panics");
    }
    for fork in &*forks {
        assert_eq!(*fork.lock().await, 6, "each fork is used by two philosophers, three times each");
    }
}

async fn wait_for_a_day() {
    let address = "127.0.0.1:80".parse().expect("an address");
    let listener = TcpListener::bind(address).expect("nothing else listens");
    drop(spawn_local(async move {
        let (stream, _) = listener.accept().await?;
        sleep(Duration::from_secs(24 * 3600)).await;
        stream.write_all(b"patience").await
    }));
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let mut word = [0; 8];
    stream.read_exact(&mut word).await.expect("the server answers");
}

fn main() -> ExitCode {
    sim::simulate(0..20, dine);
    println!("in 20 orders and weathers each of {SEATS} philosophers ate 3 times");
    let begun = Instant::now();
    sim::simulate(0..1, wait_for_a_day);
    let time = if begun.elapsed() < Duration::from_secs(1) { "less than a second" } else { "real time" };
    println!("a client waited for a day in {time}");
    ExitCode::SUCCESS
}
