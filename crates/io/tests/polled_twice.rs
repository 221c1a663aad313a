//! A wait that ends before the event loop has been told of it. (The test is about the numbers of
//! descriptors, so it has a file of its own.)

mod common;

use common::{ms, run};
use selvedge_core::spawn;
use selvedge_io::net::UnixStream;
use selvedge_io::time::timeout;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// A wait that is polled twice in a step may never reach the loop. A later waiter must not rely on
/// it.
#[test]
fn a_wait_that_ends_in_its_own_step_has_registered_nothing() {
    run(async {
        // The loop knows another file under the number.
        let (old, _old_peer) = UnixStream::pair().unwrap();
        let number = old.as_fd().as_raw_fd();
        assert!(timeout(ms(2), old.read(&mut [0])).await.is_err());
        drop(old);
        let (new, new_peer) = UnixStream::pair().unwrap();
        let (new, new_peer) =
            if new.as_fd().as_raw_fd() == number { (new, new_peer) } else { (new_peer, new) };
        assert_eq!(new.as_fd().as_raw_fd(), number);
        let new = Arc::new(new);
        let polled_twice = new.clone();
        spawn(async move {
            let mut readable = pin!(polled_twice.readable());
            std::future::poll_fn(|cx| {
                let _ = readable.as_mut().poll(cx);
                readable.as_mut().poll(cx)
            })
            .await
            .unwrap();
        })
        .await
        .unwrap();
        new_peer.write_all(b"x").await.unwrap();
        let start = Instant::now();
        timeout(ms(5000), new.readable()).await.unwrap().unwrap();
        // A time-out that is over polls its read once more.
        assert!(start.elapsed() < ms(4000), "it is registered anew");
    });
}
