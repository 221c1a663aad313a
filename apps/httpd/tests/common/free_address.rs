//! [`free_address`]: where a server under test may listen. The tests of `programs` have this file
//! too.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address of this machine at which nothing listens. Linux gives ports from 32,768 on to sockets
/// that ask for any port, so no other test gets this one before it is used.
pub(crate) fn free_address() -> SocketAddr {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        // Each process begins elsewhere.
        let at = std::process::id().wrapping_mul(101).wrapping_add(ASKED.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::from(([127, 0, 0, 1], (FIRST + at % COUNT) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
