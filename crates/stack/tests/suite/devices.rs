//! The stack and the kernel's own, over a TAP device, and over a packet socket at one end of a pair
//! of interfaces. The tests need `/dev/net/tun`, the right to make devices, and the program `ip`.
//! Where one of them is missing, they say so and test nothing.

use selvedge_core::spawn;
use selvedge_io::{EventLoop, blocking};
use selvedge_sched::work_stealing;
use selvedge_stack::{
    FlowWire, PacketSocket, Stack, StackOptions, Tap, TcpListener, TcpStream, UdpSocket, Wire,
};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, id};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const LENGTH: usize = 300_000;

/// The addresses of the host with this number in a network, one for each family. The kernel is the
/// host 1, and the stack the host 2.
fn hosts(network: u8, host: u8) -> [IpAddr; 2] {
    let (net, host_six) = (u16::from(network), u16::from(host));
    [[10, 213, network, host].into(), [0xfd2d, 0, 0, net, 0, 0, 0, host_six].into()]
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {words:?}: {message}")) }
}

/// Gives the kernel's end of a wire its addresses.
fn begin(device: &str, network: u8) -> Result<(), String> {
    let [four, six] = hosts(network, 1);
    ip(&["addr", "add", &format!("{four}/24"), "dev", device])?;
    ip(&["-6", "addr", "add", &format!("{six}/64"), "dev", device, "nodad"])?;
    ip(&["link", "set", device, "up"])
}

/// A TAP device, with addresses at the kernel's end; or why there is none.
fn tap() -> Result<Tap, String> {
    let name = format!("selv{}", id() % 1_000_000);
    let tap = Tap::open(&name).map_err(|error| error.to_string())?;
    begin(&name, 7)?;
    Ok(tap)
}

/// A pair of interfaces of the kernel, which goes with this value.
struct Pair(String);

impl Pair {
    fn new() -> Result<Pair, String> {
        let pair = Pair(format!("sel{}", id() % 1_000_000));
        let Pair(near) = &pair;
        let far = pair.far();
        ip(&["link", "add", near, "type", "veth", "peer", "name", &far])?;
        begin(near, 8)?;
        ip(&["link", "set", &far, "up"])?;
        Ok(pair)
    }

    fn far(&self) -> String {
        format!("{}f", self.0)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.0]);
    }
}

fn pattern() -> Vec<u8> {
    (0..LENGTH).map(|place| (place % 251) as u8).collect()
}

/// A client of the kernel: what it writes comes back, and then the end.
fn ask(at: SocketAddr) {
    let mut stream = std::net::TcpStream::connect_timeout(&at, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        writing.write_all(&pattern()).unwrap();
        writing.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    writer.join().unwrap();
    assert!(came == pattern(), "{} bytes", came.len());
}

async fn echo(stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        stream.write_all(&buffer[..read]).await.unwrap();
    }
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(spawn(echo(stream)));
    }
}

/// Both directions over one family.
async fn over(stack: &Stack, kernel: IpAddr, own: IpAddr) {
    let at = SocketAddr::new(own, 7);
    let server = spawn(serve(TcpListener::bind(stack, at).unwrap()));
    let clients: Vec<_> =
        (0..4).map(|_| spawn(async move { blocking(move || ask(at)).await.unwrap() })).collect();
    for client in clients {
        client.await.unwrap();
    }
    server.cancel();

    // The stack is the client, and the kernel the server.
    let listener = std::net::TcpListener::bind((kernel, 0)).unwrap();
    let there = listener.local_addr().unwrap();
    let serving = spawn(blocking(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).unwrap();
        assert!(came == pattern(), "{} bytes", came.len());
    }));
    let stream = TcpStream::connect(stack, there).await.unwrap();
    stream.write_all(&pattern()).await.unwrap();
    drop(stream);
    serving.await.unwrap().unwrap();

    let socket = UdpSocket::bind(stack, SocketAddr::new(own, 53)).unwrap();
    let answering = spawn(async move {
        let mut buffer = [0; 1500];
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        socket.send_to(&buffer[..length], from).await.unwrap();
    });
    blocking(move || {
        let socket = std::net::UdpSocket::bind((kernel, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"thread", (own, 53)).unwrap();
        let mut buffer = [0; 100];
        let (length, _) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"thread");
    })
    .await
    .unwrap();
    answering.await.unwrap();
}

/// The stack at one end of the wire, and the kernel at the other.
async fn over_both_families(wire: impl Wire, network: u8) {
    let mut options = StackOptions::new();
    for (own, prefix) in hosts(network, 2).into_iter().zip([24, 64]) {
        options = options.address(own, prefix).unwrap();
    }
    let stack = Stack::start(options, wire);
    for (kernel, own) in hosts(network, 1).into_iter().zip(hosts(network, 2)) {
        over(&stack, kernel, own).await;
    }
}

#[test]
fn the_kernel_and_the_stack_talk_over_a_tap_device() {
    let main = async {
        match tap() {
            Ok(tap) => over_both_families(tap, 7).await,
            Err(why) => println!("there is no TAP device here, so nothing is tested: {why}"),
        }
    };
    work_stealing(2, |_| EventLoop::new(), main).unwrap();
}

/// The clients of the kernel that the stacks of several queues have.
const CLIENTS: usize = 8;

#[test]
fn two_stacks_share_the_queues_of_a_tap_device() {
    let main = async {
        let name = format!("selq{}", id() % 1_000_000);
        let queues = match Tap::open_queues(&name, 2) {
            Ok(queues) => queues,
            Err(why) => return println!("there is no TAP device here, so nothing is tested: {why}"),
        };
        if let Err(why) = begin(&name, 9) {
            return println!("there is no TAP device here, so nothing is tested: {why}");
        }
        let [own, _] = hosts(9, 2);
        let at = SocketAddr::new(own, 7);
        let mut servers = Vec::new();
        for share in FlowWire::share(queues, 2) {
            let stack = Stack::start(StackOptions::new().address(own, 24).unwrap(), share);
            servers.push(spawn(serve(TcpListener::bind(&stack, at).unwrap())));
        }
        let ask = || spawn(async move { blocking(move || ask(at)).await.unwrap() });
        let clients: Vec<_> = (0..CLIENTS).map(|_| ask()).collect();
        for client in clients {
            client.await.unwrap();
        }
        servers.iter().for_each(|server| server.cancel());
    };
    work_stealing(2, |_| EventLoop::new(), main).unwrap();
}

#[test]
fn the_kernel_and_the_stack_talk_over_a_packet_socket() {
    let main = async {
        let pair = match Pair::new() {
            Ok(pair) => pair,
            Err(why) => return println!("there are no pairs here, so nothing is tested: {why}"),
        };
        match PacketSocket::open(&pair.far()) {
            Ok(socket) => over_both_families(socket, 8).await,
            Err(why) => println!("there is no packet socket here, so nothing is tested: {why}"),
        }
    };
    work_stealing(2, |_| EventLoop::new(), main).unwrap();
}

#[test]
fn an_interface_that_is_missing_is_named() {
    let open = async { PacketSocket::open("selvedge-none").unwrap_err().to_string() };
    let message = work_stealing(1, |_| EventLoop::new(), open).unwrap();
    assert!(message.contains("selvedge-none"), "{message}");
}
