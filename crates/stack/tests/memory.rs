//! The bytes that connections at rest take.

use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpOptions, TcpStream, Weather};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::time::Duration;

struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: each method hands its arguments on to `System`, which keeps the promises of the trait.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller of this method promises what `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller of this method promises what `System` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: isize = 200;

fn stack(number: u8, wire: SimulatedWire, tcp: &TcpOptions) -> Stack {
    let options = StackOptions::new().hardware([2, 0, 0, 0, 0, number]).backlog(1000).half_open(1000);
    let options = options.address([10, 0, 0, number].into(), 24).unwrap();
    Stack::start(options.tcp(tcp.clone()), wire)
}

/// The bytes of one end of a connection at rest: before anything was sent, and after a load.
async fn at_rest(tcp: TcpOptions) -> (isize, isize) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (client, server) = (stack(1, left, &tcp), stack(2, right, &tcp));
    let at = "10.0.0.2:80".parse().unwrap();
    let listener = TcpListener::bind(&server, at).unwrap();
    let before = BYTES.load(Relaxed);
    let mut pairs = Vec::with_capacity(CONNECTIONS as usize);
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(&client, at).await.unwrap();
        pairs.push((Arc::new(stream), listener.accept().await.unwrap().0));
    }
    let each = || (BYTES.load(Relaxed) - before) / (2 * CONNECTIONS);
    sleep(Duration::from_secs(1)).await;
    let fresh = each();
    for (stream, accepted) in &pairs {
        let stream = stream.clone();
        let loading = spawn(async move { stream.write_all(&[7; 60_000]).await.unwrap() });
        accepted.read_exact(&mut vec![0; 60_000]).await.unwrap();
        loading.await.unwrap();
    }
    assert!(each() > fresh, "the buffers grew");
    sleep(Duration::from_secs(100)).await;
    let rested = each();
    drop((pairs, listener));
    // The next measurement finds none of these connections.
    sleep(Duration::from_secs(1000)).await;
    (fresh, rested)
}

#[test]
fn a_connection_at_rest_is_small() {
    simulate(0..1, || async {
        let (fresh, rested) = at_rest(TcpOptions::new().first_buffer(512)).await;
        println!("with buffers of 512 bytes: {fresh} bytes an end, and {rested} after a load");
        assert!(fresh <= 3072 && rested <= 3072, "{fresh} and {rested} bytes");
        let (fresh, rested) = at_rest(TcpOptions::new()).await;
        println!("as they are by default: {fresh} bytes an end, and {rested} after a load");
        assert!(fresh <= 4096 && rested <= 4096, "{fresh} and {rested} bytes");
    });
}
