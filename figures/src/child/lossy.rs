//! A way that loses packets, between two TAP devices or between one and a stack of ours, and the
//! servers behind it. The figure in `figures/src/stacks.rs` starts them through `child.rs`, and
//! reads what they send.
//!
//! Both servers send the same bytes over the same relay: what the relay loses depends on the number
//! of frames that have passed, and on nothing of the server's.

use super::numbers::Numbers;
use selvedge_core::spawn;
use selvedge_io::EventLoop;
use selvedge_io::time::sleep;
use selvedge_sched::work_stealing;
use selvedge_stack::{
    Congestion, SimulatedWire, Stack, StackOptions, Tap, TcpListener, TcpOptions, Weather, Wire,
};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as KernelsListener};
use std::sync::Arc;
use std::time::Duration;

/// How long a packet takes in each direction.
const WAY: Duration = Duration::from_millis(5);
/// The largest buffer of a connection of ours: the kernel's grow to more.
const BUFFER: usize = 1 << 20;
/// The port of both servers.
const PORT: u16 = 7000;

fn say_port() {
    println!("port {PORT}");
    std::io::stdout().flush().expect("the parent process reads the port");
}

/// The bytes that a server sends, the last one wrong if there is to be a fault.
fn bytes(count: u64, fault: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count).map(|place| (place % 251) as u8).collect();
    if fault > 0
        && let Some(last) = bytes.last_mut()
    {
        *last ^= 1;
    }
    bytes
}

/// The name of a device of the figure.
fn device(number: u64, end: char) -> String {
    format!("sf{number}{end}")
}

fn tap(number: u64, end: char) -> Result<Arc<Tap>, String> {
    Tap::open(&device(number, end)).map(Arc::new).map_err(|error| error.to_string())
}

/// Carries frames in order, and loses this many of a thousand.
async fn carry(from: Arc<dyn Wire>, to: Arc<dyn Wire>, lost: u64, seed: u64) {
    let mut numbers = Numbers::new(seed);
    let mut before = spawn(async {});
    while let Ok(mut frames) = from.receive().await {
        frames.retain(|_| numbers.word() % 1000 >= lost);
        let to = to.clone();
        before = spawn(async move {
            sleep(WAY).await;
            // Threads that sleep until the same time wake in any order.
            drop(before.await);
            frames.iter().for_each(|frame| to.send(frame));
        });
    }
}

/// Relays between the device of the clients and `servers`, which loses frames on their way to the
/// clients.
async fn relay(clients: Arc<Tap>, servers: Arc<dyn Wire>, lost: u64, seed: u64) {
    let back = spawn(carry(clients.clone(), servers.clone(), 0, seed));
    carry(servers, clients, lost, seed).await;
    drop(back);
}

/// A relay between two devices, until it is killed.
pub(super) fn between(number: u64, lost: u64, seed: u64) -> Result<(), String> {
    let (clients, servers) = (tap(number, 'a')?, tap(number, 'b')?);
    say_port();
    let main = async move { relay(clients, servers, lost, seed).await };
    work_stealing(1, |_| EventLoop::new(), main).map_err(|error| error.to_string())
}

/// A relay between a device and a stack of ours, which sends `count` bytes to each client.
pub(super) fn ours(number: u64, lost: u64, seed: u64, count: u64, fault: u64) -> Result<(), String> {
    let clients = tap(number, 'a')?;
    let main = async move {
        let (near, far) = SimulatedWire::pair(seed, Weather::default());
        let tcp = TcpOptions::new().congestion(Congestion::Bbr).buffer(BUFFER).nodelay(true);
        let options = StackOptions::new().tcp(tcp).address([10, 217, 3, 2].into(), 24);
        let stack = Stack::start(options.expect("an address of a host"), near);
        let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let listener = TcpListener::bind(&stack, all).expect("no other socket is there");
        drop(spawn(async move {
            let bytes: Arc<[u8]> = bytes(count, fault).into();
            while let Ok((stream, _)) = listener.accept().await {
                let bytes = bytes.clone();
                // A client that has gone says so itself.
                drop(spawn(async move { drop(stream.write_all(&bytes).await) }));
            }
        }));
        say_port();
        relay(clients, Arc::new(far), lost, seed).await;
    };
    work_stealing(1, |_| EventLoop::new(), main).map_err(|error| error.to_string())
}

/// A server over the kernel's TCP, which sends `count` bytes to each client.
pub(super) fn theirs(count: u64) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let listener = KernelsListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(told)?;
    say_port();
    let bytes = bytes(count, 0);
    loop {
        let (mut stream, _) = listener.accept().map_err(told)?;
        // A client that has gone says so itself.
        drop(stream.write_all(&bytes));
    }
}
