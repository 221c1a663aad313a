//! A port scanner of this machine: it tries many ports at once, each for 200 ms at most.
//!
//! # Prints
//! ```text
//! of 64 ports both that are open were found, and nothing at the one that was closed
//! ```

use selvedge::net::{TcpListener, TcpStream};
use selvedge::scope::join_all;
use selvedge::time::timeout;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

async fn is_open(port: u16) -> Option<u16> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    match timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        Ok(Ok(_)) => Some(port),
        _ => None,
    }
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let any = || TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (one, other, closed) = (any()?, any()?, any()?);
        let [one_port, other_port, closed_port] = [&one, &other, &closed].map(|l| l.local_addr().port());
        drop(closed);
        // The three ports, and others at which most likely no program listens.
        let mut ports: BTreeSet<u16> = [one_port, other_port, closed_port].into();
        ports.extend((1..).take(64 - ports.len()));
        let open: Vec<u16> =
            join_all(ports.iter().map(|port| is_open(*port))).await.into_iter().flatten().collect();
        let both = if open.contains(&one_port) && open.contains(&other_port) { "both" } else { "not all" };
        let closed = if open.contains(&closed_port) { "something" } else { "nothing" };
        println!(
            "of {} ports {both} that are open were found, and {closed} at the one that was closed",
            ports.len()
        );
        Ok(())
    })
}
