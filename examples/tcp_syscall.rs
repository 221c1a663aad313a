//! A TCP stack in the application, as in the paper: the scheduler gets one more system call,
//! `SYS_TCP`, and two more event loops, `worker_tcp_input` and `worker_tcp_timer`. The threads, and
//! the rest of the scheduler, do not change.
//!
//! The logic of TCP is smoltcp's. `selvedge::stack` is such a stack for programs that need one.

use selvedge::{Answer, Cpu, Syscall, Thread, Trace, call, fork};
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Loopback, Medium};
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

const CLIENTS: u16 = 5;
const SERVER: (IpAddress, u16) = (IpAddress::v4(127, 0, 0, 1), 80);

/// `SYS_TCP`: what a thread asks of the stack.
enum SysTcp {
    /// Waits for the next connection to the server's port.
    Accept,
    /// Connects to the server from a port.
    Connect(u16),
    /// Sends some bytes.
    Send(SocketHandle, Vec<u8>),
    /// Waits for bytes; none are the end.
    Receive(SocketHandle),
    /// Ends the sending.
    Close(SocketHandle),
}

/// What the stack answers.
enum TcpReply {
    Connection(SocketHandle),
    Bytes(Vec<u8>),
    Done,
}

impl Syscall for SysTcp {
    type Reply = TcpReply;
}

async fn accept() -> SocketHandle {
    let TcpReply::Connection(connection) = call(SysTcp::Accept).await else { unreachable!() };
    connection
}

async fn connect(from: u16) -> SocketHandle {
    let TcpReply::Connection(connection) = call(SysTcp::Connect(from)).await else { unreachable!() };
    connection
}

async fn receive(connection: SocketHandle) -> Vec<u8> {
    let TcpReply::Bytes(bytes) = call(SysTcp::Receive(connection)).await else { unreachable!() };
    bytes
}

async fn send(connection: SocketHandle, bytes: &[u8]) {
    call(SysTcp::Send(connection, bytes.into())).await;
}

/// The stack, and the threads that wait for it.
struct TcpStack {
    interface: Interface,
    device: Loopback,
    sockets: SocketSet<'static>,
    listening: Vec<SocketHandle>,
    waiting: Vec<(SysTcp, Answer<SysTcp>)>,
}

impl TcpStack {
    fn new() -> TcpStack {
        let mut device = Loopback::new(Medium::Ip);
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::now());
        // There is room for an address.
        interface.update_ip_addrs(|own| own.push(IpCidr::new(SERVER.0, 8)).unwrap());
        let (sockets, waiting) = (SocketSet::new(Vec::new()), Vec::new());
        let mut tcp = TcpStack { interface, device, sockets, listening: Vec::new(), waiting };
        for _ in 0..CLIENTS {
            tcp.listen();
        }
        tcp
    }

    /// Makes a socket that takes the next connection to the server's port.
    fn listen(&mut self) {
        let handle = self.new_socket();
        self.sockets.get_mut::<Socket<'_>>(handle).listen(SERVER).expect("a port that is not 0");
        self.listening.push(handle);
    }

    fn new_socket(&mut self) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; 4096]);
        self.sockets.add(Socket::new(buffer(), buffer()))
    }

    /// What a request comes to, if the stack can do it now.
    fn perform(&mut self, request: &SysTcp) -> Option<TcpReply> {
        match request {
            SysTcp::Accept => {
                let connected = |handle: &SocketHandle| self.sockets.get::<Socket<'_>>(*handle).may_recv();
                let place = self.listening.iter().position(connected)?;
                let connection = self.listening.remove(place);
                self.listen();
                Some(TcpReply::Connection(connection))
            }
            SysTcp::Connect(from) => {
                let handle = self.new_socket();
                let socket = self.sockets.get_mut::<Socket<'_>>(handle);
                socket.connect(self.interface.context(), SERVER, *from).expect("a free port");
                Some(TcpReply::Connection(handle))
            }
            SysTcp::Send(connection, bytes) => {
                let socket = self.sockets.get_mut::<Socket<'_>>(*connection);
                let room = socket.may_send() && socket.send_capacity() - socket.send_queue() >= bytes.len();
                room.then(|| {
                    socket.send_slice(bytes).expect("an open connection");
                    TcpReply::Done
                })
            }
            SysTcp::Receive(connection) => {
                let socket = self.sockets.get_mut::<Socket<'_>>(*connection);
                match socket.recv(|bytes| (bytes.len(), bytes.to_vec())) {
                    Ok(bytes) if !bytes.is_empty() => Some(TcpReply::Bytes(bytes)),
                    Err(RecvError::Finished) => Some(TcpReply::Bytes(Vec::new())),
                    // Nothing has come yet, or the handshake goes on.
                    Ok(_) | Err(RecvError::InvalidState) => None,
                }
            }
            SysTcp::Close(connection) => {
                self.sockets.get_mut::<Socket<'_>>(*connection).close();
                Some(TcpReply::Done)
            }
        }
    }

    /// The threads with requests that the stack can perform now.
    fn answered(&mut self) -> Vec<Thread> {
        let mut ready = Vec::new();
        for (request, answer) in std::mem::take(&mut self.waiting) {
            match self.perform(&request) {
                Some(reply) => ready.extend(answer.reply(reply)),
                None => self.waiting.push((request, answer)),
            }
        }
        ready
    }
}

/// Takes packets from the device to their connections, and sends the packets that answer them.
fn worker_tcp_input(tcp: &mut TcpStack) {
    let now = Instant::now();
    while tcp.interface.poll_egress(now, &mut tcp.device, &mut tcp.sockets) == PollResult::SocketStateChanged
        || tcp.interface.poll_ingress_single(now, &mut tcp.device, &mut tcp.sockets)
            != PollIngressSingleResult::None
    {}
}

/// Waits for the next timer of a connection.
fn worker_tcp_timer(tcp: &mut TcpStack) {
    let delay = tcp.interface.poll_delay(Instant::now(), &tcp.sockets);
    std::thread::sleep(delay.map_or(Duration::ZERO, Duration::from));
}

/// Runs threads until all have ended. In the paper each event loop has an OS thread of its own;
/// here the two of the stack take turns with the scheduler.
fn worker_main(cpu: &mut Cpu, tcp: &mut TcpStack, first: Thread) -> Result<(), Box<dyn Error>> {
    let mut ready_queue = VecDeque::from([first]);
    loop {
        while let Some(thread) = ready_queue.pop_front() {
            match thread.step(cpu) {
                Trace::Yield(rest) => ready_queue.push_back(rest),
                Trace::Fork { child, parent } => ready_queue.extend([child, parent]),
                Trace::Call(node) => tcp.waiting.push(node.take().map_err(|other| other.to_string())?),
                Trace::Ret => {}
                other => return Err(format!("unexpected: {other:?}").into()),
            }
        }
        ready_queue.extend(tcp.answered());
        worker_tcp_input(tcp);
        if ready_queue.is_empty() {
            if tcp.waiting.is_empty() {
                return Ok(());
            }
            worker_tcp_timer(tcp);
        }
    }
}

async fn server() {
    for _ in 0..CLIENTS {
        let connection = accept().await;
        fork(async move {
            loop {
                let bytes = receive(connection).await;
                if bytes.is_empty() {
                    break;
                }
                send(connection, &bytes.to_ascii_uppercase()).await;
            }
            call(SysTcp::Close(connection)).await;
        })
        .await;
    }
}

async fn client(number: u16) {
    let connection = connect(50_000 + number).await;
    send(connection, format!("thread {number}").as_bytes()).await;
    let mut answer = receive(connection).await;
    call(SysTcp::Close(connection)).await;
    loop {
        let more = receive(connection).await;
        if more.is_empty() {
            break;
        }
        answer.extend(more);
    }
    assert_eq!(answer, format!("THREAD {number}").into_bytes());
    println!("client {number} has its answer");
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut cpu, mut tcp) = (Cpu::new()?, TcpStack::new());
    let program = async {
        fork(server()).await;
        for number in 1..=CLIENTS {
            fork(client(number)).await;
        }
    };
    let first = cpu.thread(program)?;
    worker_main(&mut cpu, &mut tcp, first)
}
