//! A foreign waker that polls at once, in the middle of a turn of the event loop.

use crate::common::{disk, ms};
use selvedge_io::fs::{Driver, File};
use selvedge_io::net::UnixStream;
use selvedge_io::time::{sleep, timeout};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

/// A waker that reads when it is woken, finds nothing, and makes the peer send.
struct Reads {
    read: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
    peer: UnixStream,
    has: AtomicBool,
}

impl Wake for Reads {
    fn wake(self: Arc<Self>) {
        let mut read = self.read.lock().unwrap();
        assert!(read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        self.peer.try_write(b"x").unwrap();
        self.has.store(true, SeqCst);
    }
}

/// The loop tells the outcomes of the disk before it takes the events. A descriptor that a waker
/// then finds drained may be ready by one of those events.
#[test]
fn an_edge_that_comes_after_a_call_of_a_waker_is_kept() {
    disk::run(Driver::Ring, async {
        let (one, peer) = UnixStream::pair().unwrap();
        let one = Arc::new(one);
        assert!(timeout(ms(1), one.read(&mut [0])).await.is_err());
        let foreign = one.clone();
        let read = async move { foreign.read_exact(&mut [0; 2]).await.unwrap() };
        let reads = Arc::new(Reads { read: Mutex::new(Box::pin(read)), peer, has: false.into() });
        let file = File::open("Cargo.toml").await.unwrap();
        let mut operation = pin!(file.read_aligned_at(0, 9));
        let waker = Waker::from(reads.clone());
        assert!(operation.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        while !reads.has.load(SeqCst) {
            sleep(ms(1)).await;
        }
        let start = Instant::now();
        timeout(ms(5_000), one.read(&mut [0])).await.unwrap().unwrap();
        // A time-out that is over polls its read once more.
        assert!(start.elapsed() < ms(4_000), "it is there");
    });
}
