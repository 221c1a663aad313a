//! `--stack`: the server over TCP of the program itself, beside the kernel's.
//!
//! [`StackChoice`] is the option (`stack_choice.rs`). `running.rs` calls [`listen`] once, which
//! opens the device, and each worker gets its [`WorkerStack`]. A worker starts a stack of its own
//! and listens there. The stacks have the same addresses, and each flow is one worker's. The site
//! gets each connection of the stack as a descriptor of the worker ([`SocketDescriptors`]): so all
//! that the site knows of the streams of its clients stays true, and the kernel's connections pay
//! nothing.

use crate::options::Address;
use crate::stack_choice::{StackChoice, StackDevice};
use selvedge_core::{JoinHandle, spawn_local};
use selvedge_http::{Severity, Site, Stop, report};
use selvedge_io::time::sleep;
use selvedge_stack::{
    FlowWire, PacketSocket, SocketDescriptors, Stack, StackOptions, Tap, TcpListener, TcpOptions, Wire,
};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::Duration;

/// The connections of a listener that wait for `accept`, and the half-open connections.
const BACKLOG: (usize, usize) = (1024, 256);

/// The largest buffers of a connection. They begin smaller, and grow while they are used.
const BUFFER: usize = 0xFFFF;

/// How long a worker without descriptors waits before it accepts again.
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

/// The ports of which one stands for port 0.
const PICKED: u16 = 49152;

impl StackChoice {
    /// The options of the stacks.
    fn options(&self) -> io::Result<StackOptions> {
        let tcp = TcpOptions::new().buffer(BUFFER).nodelay(true).congestion(self.congestion);
        let mut options = StackOptions::new().hardware(self.hardware()).tcp(tcp);
        options = options.backlog(BACKLOG.0).half_open(BACKLOG.1);
        for &(address, prefix) in &self.addresses {
            options = options.address(address, prefix)?;
        }
        Ok(self.gateways.iter().fold(options, |options, gateway| options.gateway(*gateway)))
    }

    /// An Ethernet address that no other stack of the network has, because it is made of the first
    /// IP address.
    fn hardware(&self) -> [u8; 6] {
        let [a, b, c, d] = match self.addresses[0].0 {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(address) => (address.to_bits() as u32).to_be_bytes(),
        };
        [2, 0, a, b, c, d]
    }

    /// The stack's addresses for an address to listen at.
    ///
    /// # Errors
    /// The stack does not have it.
    fn resolve(&self, address: &Address) -> io::Result<Vec<SocketAddr>> {
        let everywhere = |port| {
            let has = |four: bool| self.addresses.iter().any(|(own, _)| own.is_ipv4() == four);
            let four = has(true).then_some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            let six = has(false).then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
            four.into_iter().chain(six).map(|all| SocketAddr::new(all, port)).collect()
        };
        let mut found: Vec<SocketAddr> = match address {
            Address::Unix(_) => Vec::new(),
            Address::Port(port) => everywhere(*port),
            Address::Tcp(address) if address.ip().is_unspecified() => everywhere(address.port()),
            Address::Tcp(address) => vec![*address],
            Address::Name(host, port) => (host.as_str(), *port).to_socket_addrs()?.collect(),
        };
        for at in &mut found {
            let own = self.addresses.iter().any(|(own, _)| *own == at.ip());
            if !own && !at.ip().is_unspecified() {
                let message = format!("{at} is no address of the stack");
                return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
            }
            // No other program has ports of the stack.
            if at.port() == 0 {
                at.set_port(PICKED);
            }
        }
        Ok(found)
    }

    /// Where a browser reaches what listens at `address`.
    fn reached(&self, address: SocketAddr) -> Vec<SocketAddr> {
        let ips = match address.ip() {
            all if all.is_unspecified() => {
                let own = self.addresses.iter().map(|(own, _)| *own);
                own.filter(|own| own.is_ipv4() == all.is_ipv4()).collect()
            }
            ip => vec![ip],
        };
        ips.into_iter().map(|ip| SocketAddr::new(ip, address.port())).collect()
    }
}

/// What a worker makes its stack of.
pub(crate) struct WorkerStack {
    options: StackOptions,
    wire: Box<dyn Wire>,
    listening: Vec<SocketAddr>,
}

impl fmt::Debug for WorkerStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerStack").field("listening", &self.listening).finish_non_exhaustive()
    }
}

/// Opens the device for `workers` workers, which listen at the TCP addresses among `addresses`.
/// Returns the stack of each, and where they are reached.
///
/// # Errors
/// The device cannot be opened, or the stack does not have an address.
pub(crate) fn listen(
    choice: &StackChoice,
    addresses: &[Address],
    workers: usize,
) -> io::Result<(Vec<WorkerStack>, Vec<SocketAddr>)> {
    let options = choice.options()?;
    let mut listening = Vec::new();
    for address in addresses {
        listening.extend(choice.resolve(address)?);
    }
    listening.sort_unstable();
    listening.dedup();
    let reached = listening.iter().flat_map(|address| choice.reached(*address)).collect();
    let wires = wires(&choice.device, workers)?;
    let stack = |wire| WorkerStack { options: options.clone(), wire, listening: listening.clone() };
    Ok((wires.into_iter().map(stack).collect(), reached))
}

/// A wire for each of the workers. Several share the device.
fn wires(device: &StackDevice, workers: usize) -> io::Result<Vec<Box<dyn Wire>>> {
    match device {
        StackDevice::Tap(name) => Ok(shared(taps(name, workers)?, workers)),
        StackDevice::Packet(name) => Ok(shared(vec![PacketSocket::open(name)?], workers)),
    }
}

/// The queues of a TAP device, one for each worker. A device that exists was made with one queue or
/// for several.
fn taps(name: &str, workers: usize) -> io::Result<Vec<Tap>> {
    let one = || Tap::open(name).map(|tap| vec![tap]);
    let several = || Tap::open_queues(name, workers);
    let opened = if workers == 1 { one() } else { several() };
    match opened {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && workers == 1 => several(),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => one(),
        opened => opened,
    }
}

fn boxed(wire: impl Wire) -> Box<dyn Wire> {
    Box::new(wire)
}

/// The workers' shares of a device.
fn shared(queues: Vec<impl Wire>, workers: usize) -> Vec<Box<dyn Wire>> {
    match workers {
        1 => queues.into_iter().map(boxed).collect(),
        _ => FlowWire::share(queues, workers).into_iter().map(boxed).collect(),
    }
}

/// The stack of a worker that runs.
pub(crate) struct RunningStack {
    stack: Stack,
    _descriptors: Rc<SocketDescriptors>,
}

impl WorkerStack {
    /// Starts the stack, and a thread for each listener that brings its connections to `site`.
    ///
    /// # Errors
    /// Two of the addresses are the same, or the process has no descriptors left.
    pub(crate) fn start(self, site: &Rc<Site>, stop: &Stop) -> io::Result<(RunningStack, Vec<Acceptor>)> {
        let stack = Stack::start(self.options, self.wire);
        let descriptors = Rc::new(SocketDescriptors::new()?);
        let mut acceptors = Vec::new();
        for address in self.listening {
            let listener = TcpListener::bind(&stack, address)?;
            let (site, stop, descriptors) = (site.clone(), stop.clone(), descriptors.clone());
            acceptors.push(spawn_local(async move {
                site.serve_by(async || accept(&listener, &descriptors).await, &stop).await
            }));
        }
        Ok((RunningStack { stack, _descriptors: descriptors }, acceptors))
    }
}

/// A thread that accepts connections until the server stops.
pub(crate) type Acceptor = JoinHandle<io::Result<()>>;

/// The next connection, as the site takes it.
async fn accept(
    listener: &TcpListener,
    descriptors: &SocketDescriptors,
) -> io::Result<(selvedge_io::net::Stream, Option<IpAddr>)> {
    loop {
        let (stream, peer) = listener.accept().await?;
        match descriptors.describe(stream) {
            Ok(stream) => return Ok((stream.into(), Some(peer.ip()))),
            Err(error) => {
                report(Severity::Warning, format_args!("a connection of {peer} was refused: {error}"));
                sleep(NO_DESCRIPTORS).await;
            }
        }
    }
}

impl RunningStack {
    /// Waits until what the site has written has come to its clients, for `limit` at most.
    pub(crate) async fn finish(self, limit: Duration) {
        let lost = self.stack.finish(limit).await;
        if lost > 0 {
            report(Severity::Warning, format_args!("{lost} bytes did not come to their clients"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> StackChoice {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_those_of_the_stack() {
        let at = |text: &str, address: &str| {
            let found = choice(text).resolve(&address.parse().unwrap());
            found.map(|found| found.iter().map(SocketAddr::to_string).collect::<Vec<_>>())
        };
        let both = "tap0,10.0.0.2/24,fd00::2/64";
        assert_eq!(at(both, ":80").unwrap(), ["0.0.0.0:80", "[::]:80"]);
        assert_eq!(at("tap0,10.0.0.2/24", ":80").unwrap(), ["0.0.0.0:80"]);
        assert_eq!(at(both, "[fd00::2]:0").unwrap(), ["[fd00::2]:49152"]);
        assert!(at(both, "unix:/run/s").unwrap().is_empty());
        let foreign = at(both, "127.0.0.1:80").unwrap_err();
        assert_eq!(foreign.kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(choice(both).hardware(), [2, 0, 10, 0, 0, 2]);
        let reached = choice(both).reached("[::]:80".parse().unwrap());
        assert_eq!(reached, ["[fd00::2]:80".parse().unwrap()]);
    }
}
