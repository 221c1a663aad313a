//! [`notify`]: tells the other servers of a zone that it has changed (RFC 1996), so that they fetch
//! it at once. `main.rs` calls it at the start and after a reload.

use crate::record::{DomainName, NameKey};
use crate::say::complain;
use crate::zone::Zones;
use domain::base::iana::{Class, Opcode};
use domain::base::{Message, MessageBuilder, Rtype, Serial};
use selvedge::net::UdpSocket;
use selvedge::time::timeout;
use selvedge::{sleep, spawn};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How long the server waits for the first answer. Each further one has twice the time (RFC 1996
/// §3.6).
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// How often the server tells the same host.
const TRIES: u32 = 5;

/// The serial numbers of zones.
pub type Serials = HashMap<NameKey, Option<Serial>>;

/// The serial numbers of all zones.
pub fn serials(zones: &Zones) -> Serials {
    zones.all().map(|zone| (NameKey::new(zone.top().name()), zone.serial())).collect()
}

/// Starts a thread for each host and each zone with another serial number than `before`, which
/// tells the host of it. A host that does not answer is complained of.
pub fn notify(zones: &Zones, before: &Serials, hosts: &[SocketAddr]) {
    for zone in zones.all() {
        let name = zone.top().name();
        if before.get(&NameKey::new(name)) == Some(&zone.serial()) {
            continue;
        }
        for &host in hosts {
            let name = name.clone();
            drop(spawn(async move {
                if let Err(error) = tell(&name, host).await {
                    let name = name.fmt_with_dot();
                    complain(format_args!("selvedge-dns: {host} was not told of {name}: {error}"));
                }
            }));
        }
    }
}

/// Tells a host of a zone until it answers.
async fn tell(zone: &DomainName, host: SocketAddr) -> io::Result<()> {
    let any: SocketAddr = match host {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(host)?;
    let (message, mut wait) = (message(zone, host), FIRST_WAIT);
    let mut last = io::ErrorKind::TimedOut.into();
    for _ in 0..TRIES {
        match timeout(wait, exchange(&socket, &message)).await {
            Ok(Ok(())) => return Ok(()),
            // A host that is not there refuses at once, and may be there later.
            Ok(Err(error)) => {
                last = error;
                sleep(wait).await;
            }
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
        wait *= 2;
    }
    Err(last)
}

/// Sends the message and waits for its answer. Other datagrams do not count.
async fn exchange(socket: &UdpSocket, message: &[u8]) -> io::Result<()> {
    socket.send(message).await?;
    let mut buffer = [0; 512];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let Ok(answer) = Message::from_slice(&buffer[..length]) else { continue };
        let header = answer.header();
        let is_answer = header.qr() && header.opcode() == Opcode::NOTIFY && buffer[..2] == message[..2];
        if is_answer {
            return Ok(());
        }
    }
}

fn message(zone: &DomainName, host: SocketAddr) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    let header = builder.header_mut();
    // A forger has to guess the id, or the host counts as told.
    header.set_id(RandomState::new().hash_one(host) as u16);
    header.set_opcode(Opcode::NOTIFY);
    header.set_aa(true);
    let mut builder = builder.question();
    builder.push((zone, Rtype::SOA, Class::IN)).expect("a vector has room");
    builder.finish()
}
