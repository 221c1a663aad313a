//! When descriptors run out, accepting slows down and recovers. (The limit belongs to the process,
//! so this file has one test.)

mod common;

use common::{listen, ms, open_descriptors, run};
use selvedge_io::net::TcpStream;
use selvedge_io::time::{sleep, timeout};
use std::net::TcpStream as StdStream;

#[test]
fn accepting_slows_down_and_recovers() {
    run(async {
        let listener = std::rc::Rc::new(listen());
        let address = listener.local_addr();
        // The kernel has completed these connections, and no thread has accepted them yet.
        let clients: Vec<StdStream> = (0..10).map(|_| StdStream::connect(address).unwrap()).collect();
        let accepting = {
            let listener = listener.clone();
            selvedge_core::spawn_local(async move {
                let mut accepted = Vec::new();
                while accepted.len() < 10 {
                    accepted.push(listener.accept().await.unwrap());
                }
                accepted.len()
            })
        };
        // The limit leaves room for three more descriptors.
        let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let few = rustix::process::Rlimit { current: Some(open_descriptors() as u64 - 1 + 3), ..before };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();

        let cpu_before = cpu_time();
        sleep(ms(500)).await;
        let spent = cpu_time() - cpu_before;
        assert!((3..100).contains(&listener.pauses()), "{} pauses in half a second", listener.pauses());
        assert!(spent < ms(250), "it spins: {spent:?} of CPU in 500 ms");
        let error = TcpStream::connect(address).await.unwrap_err();
        assert!(error.to_string().ends_with("Too many open files"), "{error}");

        rustix::process::setrlimit(rustix::process::Resource::Nofile, before).unwrap();
        assert_eq!(timeout(ms(5000), accepting).await.expect("it recovers").unwrap(), 10);
        drop(clients);
    });
}

fn cpu_time() -> std::time::Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap().into()
}
