//! A network interface of the kernel as a wire, by a packet socket.

use super::sums::words_sum;
use super::virtio::{self, HEAD};
use super::{Receiving, Wire};
use crate::outgoing::OutgoingFrame;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use selvedge_io::NonBlocking;
use std::ffi::c_int;
use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

/// The frames that one call takes at most.
const BATCH: usize = 64;
/// The kernel hands over segments of a connection in one frame, of up to 64 KiB, before it would
/// split them for the device.
const FRAME: usize = HEAD + 18 + (64 << 10);

/// A packet socket of Linux, at a network interface such as a veth pair's end or an Ethernet
/// card: it sends and takes all frames there.
///
/// The stack has its own Ethernet and IP addresses, which must be none of the kernel's at this
/// interface. The kernel sees the frames too, and drops those for other Ethernet addresses. The
/// program needs the right `CAP_NET_RAW`.
///
/// # Differences
/// A TAP device takes each frame from one program only; a packet socket gets a copy of all.
#[derive(Debug)]
pub struct PacketSocket {
    socket: NonBlocking<OwnedFd>,
    buffer: Mutex<Box<[u8]>>,
}

impl PacketSocket {
    /// Opens a socket at the interface of that name, which then takes frames for all Ethernet
    /// addresses.
    ///
    /// # Errors
    /// If there is no such interface, or if the kernel refuses.
    pub fn open(interface: &str) -> io::Result<PacketSocket> {
        PacketSocket::at(interface)
            .map_err(|error| io::Error::new(error.kind(), format!("interface {interface}: {error}")))
    }

    fn at(interface: &str) -> io::Result<PacketSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // With no protocol it takes no frames, until it is bound to one interface.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = netdevice::name_to_index(&socket, interface)? as c_int;
        set_option(&socket, libc::PACKET_VNET_HDR, &1)?;
        // SAFETY: zeroes are a value of `sockaddr_ll`, which has integers only.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `bind` reads `length` bytes at the pointer; `address` has as many, and lives
        // until the call returns. `socket` is open, by `socket_with` above.
        if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
        let all = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&socket, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        let buffer = Mutex::new(vec![0; FRAME].into());
        Ok(PacketSocket { socket: NonBlocking::new(socket)?, buffer })
    }
}

/// Sets an option of a packet socket.
fn set_option<T: Copy>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    let pointer = (&raw const *value).cast();
    // SAFETY: `setsockopt` reads `length` bytes at the pointer; `value` has as many, and is
    // borrowed until the call returns. `socket` is open, because `OwnedFd` owns it.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, pointer, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Wire for PacketSocket {
    fn send(&self, frame: &[u8]) {
        virtio::send(self.socket.get_ref(), frame);
    }

    fn send_all(&self, frames: &[OutgoingFrame]) {
        frames.iter().for_each(|frame| virtio::send_run(self.socket.get_ref(), frame));
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(self.socket.read_with(|socket| {
            let (mut frames, mut buffer) = (Vec::new(), self.buffer.lock().unwrap());
            // The bound counts what is dropped too.
            for _ in 0..BATCH {
                match rustix::io::read(socket, &mut buffer[..]) {
                    Ok(length) => frames.extend(complete(&buffer[..length])),
                    Err(_) if !frames.is_empty() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(frames)
        }))
    }
}

/// The frame in what the kernel has handed over, with the checksum that the kernel leaves to the
/// device; none if it is several datagrams in one.
fn complete(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, frame) = bytes.split_at_checked(HEAD)?;
    let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    // What the kernel has put together: nothing, or segments of TCP over IPv4 or IPv6. A bit tells
    // of congestion.
    if ![0, 1, 4].contains(&(header[1] & 0x7F)) {
        return None;
    }
    let mut frame = frame.to_vec();
    let needs_checksum = header[0] & 1 == 1;
    if needs_checksum {
        let (start, at) = (word(6), word(6) + word(8));
        let sum = checksum(frame.get(start..)?);
        frame.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    }
    Some(frame)
}

/// The checksum of IP. The bytes have the sum of the header before them in the checksum's place.
fn checksum(bytes: &[u8]) -> u16 {
    // A datagram's checksum of 0 would say that there is none.
    match !words_sum(bytes, 0) {
        0 => 0xFFFF,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_over(flags: u8, kind: u8, start: u16, at: u16, frame: &[u8]) -> Option<Vec<u8>> {
        let words = [0, 0, start, at].map(u16::to_ne_bytes).concat();
        complete(&[&[flags, kind], &words[..], frame].concat())
    }

    #[test]
    fn a_missing_checksum_is_made() {
        // RFC 1071: the words 0001 f203 f4f5 f6f7 have the sum ddf2.
        let frame = [9, 9, 0, 1, 0xF2, 3, 0xF4, 0xF5, 0xF6, 0xF7, 0, 0];
        let whole = handed_over(1, 0, 2, 8, &frame).unwrap();
        assert_eq!(whole[10..], [0x22, 0x0D]);
        assert_eq!(handed_over(0, 1, 2, 8, &frame).unwrap(), frame);
    }

    #[test]
    fn what_is_no_frame_is_dropped() {
        assert_eq!(complete(&[0; 9]), None);
        assert_eq!(handed_over(0, 5, 0, 0, &[0; 20]), None, "several datagrams");
        assert_eq!(handed_over(1, 0, 30, 0, &[0; 20]), None, "a checksum outside of the frame");
        assert_eq!(handed_over(1, 0, 2, 17, &[0; 20]), None);
    }
}
