//! The bytes that connections at rest take, 100,000 of them, and the bytes that a flood makes a
//! stack keep. (The bytes of the process are counted, so the tests have a file of their own.)

#[path = "frames/mod.rs"]
mod frames;

use frames::{ACK, PSH, SYN, Segment, told_address};
use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The tests count the same bytes, so one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

const CONNECTIONS: isize = 200;
/// The most bytes of a connection at rest.
const AT_REST: isize = 2048;

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
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    simulate(0..1, || async {
        let (fresh, rested) = at_rest(TcpOptions::new().first_buffer(512)).await;
        println!("with buffers of 512 bytes: {fresh} bytes an end, and {rested} after a load");
        assert!(fresh <= 3072 && rested <= AT_REST, "{fresh} and {rested} bytes");
        let (fresh, rested) = at_rest(TcpOptions::new()).await;
        println!("as they are by default: {fresh} bytes an end, and {rested} after a load");
        assert!(fresh <= 4096 && rested <= AT_REST, "{fresh} and {rested} bytes");
    });
}

const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const CLIENTS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MANY: usize = 100_000;
/// The handshakes that go on at once.
const GROUP: usize = 500;

/// The address of a client: 100 hosts with 1000 ports.
fn client(number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 10 + (number / 1000) as u8), 2000 + (number % 1000) as u16)
}

/// The number of the client with this address.
fn number_of(address: SocketAddr) -> usize {
    let IpAddr::V4(host) = address.ip() else { panic!("{address}") };
    usize::from(host.octets()[3] - 10) * 1000 + usize::from(address.port() - 2000)
}

/// The number of a client's first segment.
fn first(number: usize) -> u32 {
    (number as u32).wrapping_mul(0x9E37_79B9)
}

/// A segment of a client, which expects the byte `expects` of the server.
fn from_client(number: usize, flags: u8, expects: u32, contents: &[u8]) -> Vec<u8> {
    let segment = Segment::new(client(number), SocketAddrV4::new([10, 0, 0, 2].into(), 80), flags);
    let sequence = first(number).wrapping_add(u32::from(flags & SYN == 0));
    let contents = contents.to_vec();
    Segment { sequence, acknowledges: expects, contents, ..segment }.frame(CLIENTS, SERVER)
}

/// Takes the frames of the server, and answers its questions for Ethernet addresses.
async fn segments(wire: &SimulatedWire) -> Vec<Segment> {
    let mut found = Vec::new();
    for frame in wire.receive().await.unwrap() {
        let asked: [u8; 4] = frame[38..42].try_into().unwrap();
        match told_address(&frame, asked.into(), CLIENTS) {
            Some(told) => wire.send(&told),
            None => found.extend(Segment::of(&frame)),
        }
    }
    found
}

/// Handshakes of clients `from..from + GROUP`. Notes what each expects of the server then.
async fn shake_hands(wire: &SimulatedWire, from: usize, expects: &mut [u32]) {
    for number in from..from + GROUP {
        wire.send(&from_client(number, SYN, 0, b""));
    }
    let mut left = GROUP;
    while left > 0 {
        for segment in segments(wire).await {
            let number = number_of(segment.to.into());
            if segment.flags == SYN | ACK {
                // It may have come again.
                left -= usize::from(expects[number] == 0);
                expects[number] = segment.end();
                wire.send(&from_client(number, ACK, segment.end(), b""));
            }
        }
    }
}

#[test]
fn a_hundred_thousand_connections_at_rest_are_small_and_alive() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    simulate(0..1, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let server = stack(2, right, &TcpOptions::new());
        let listener = TcpListener::bind(&server, "10.0.0.2:80".parse().unwrap()).unwrap();
        let mut expects = vec![0; MANY];
        let mut streams: Vec<TcpStream> = Vec::with_capacity(MANY);
        sleep(Duration::from_secs(1)).await;
        let before = BYTES.load(Relaxed);
        for from in (0..MANY).step_by(GROUP) {
            shake_hands(&left, from, &mut expects).await;
            for _ in 0..GROUP {
                streams.push(listener.accept().await.unwrap().0);
            }
        }
        // Each tells of its smaller room then.
        sleep(Duration::from_secs(20)).await;
        drop(segments(&left).await);
        let each = (BYTES.load(Relaxed) - before) / MANY as isize;
        println!("{MANY} connections at rest: {each} bytes each");
        assert!(each <= AT_REST, "{each} bytes");
        for (place, stream) in streams.iter().enumerate().step_by(997) {
            let number = number_of(stream.peer_addr().unwrap());
            left.send(&from_client(number, ACK | PSH, expects[number], b"warp"));
            let mut four = [0; 4];
            stream.read_exact(&mut four).await.unwrap();
            assert_eq!(&four, b"warp", "{place}");
            stream.write_all(b"weft").await.unwrap();
            let mut answered = false;
            while !answered {
                let came = segments(&left).await;
                answered =
                    came.iter().any(|segment| segment.contents == b"weft" && segment.to == client(number));
            }
        }
    });
}

#[test]
fn a_flood_of_first_segments_leaves_little() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    simulate(0..1, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let options = StackOptions::new().hardware(SERVER).address([10, 0, 0, 2].into(), 24).unwrap();
        let server = Stack::start(options, right);
        let _listener = TcpListener::bind(&server, "10.0.0.2:80".parse().unwrap()).unwrap();
        sleep(Duration::from_secs(1)).await;
        let before = BYTES.load(Relaxed);
        for number in 0..MANY {
            left.send(&from_client(number, SYN, 0, b""));
            if number % GROUP == 0 {
                sleep(Duration::from_millis(1)).await;
                drop(left.receive().await);
            }
        }
        sleep(Duration::from_millis(1)).await;
        drop(left.receive().await);
        let kept = BYTES.load(Relaxed) - before;
        println!("after {MANY} first segments the stack keeps {kept} bytes");
        // 64 connections that are half open, and what the wire has.
        assert!(kept < 512 << 10, "{kept} bytes");
    });
}
