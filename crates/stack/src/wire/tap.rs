//! A TAP device of Linux as a wire.

use super::virtio::{self, HEAD};
use super::{Receiving, Wire};
use crate::outgoing::OutgoingFrame;
use rustix::fs::{Mode, OFlags};
use selvedge_io::NonBlocking;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The frames that one call takes at most.
const BATCH: usize = 64;
/// Longer than a frame of an MTU of 1500 and its head.
const FRAME: usize = 2048 + HEAD;

/// A TAP device: the other end of its wire is a network interface of the kernel. Segments that
/// follow each other go to it in one system call, as one frame of up to 64 KiB. The kernel makes
/// their checksums if they leave the machine.
///
/// The program needs the right `CAP_NET_ADMIN`, or a device that an administrator has made for its
/// user: `ip tuntap add dev tap0 mode tap user NAME`.
#[derive(Debug)]
pub struct Tap {
    device: NonBlocking<OwnedFd>,
}

impl Tap {
    /// Opens the device of that name, and makes it if it does not exist.
    ///
    /// # Errors
    /// If there is no `/dev/net/tun`, if the name is longer than 15 bytes, or if the kernel
    /// refuses.
    pub fn open(name: &str) -> io::Result<Tap> {
        Tap::open_with(name, 0)
    }

    /// Opens as many queues of the device of that name. The kernel puts the frames of a flow into
    /// the queue through which frames of the flow went out last, and those of a new flow into any.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and `InvalidInput` if the device was made with one queue.
    pub fn open_queues(name: &str, queues: usize) -> io::Result<Vec<Tap>> {
        (0..queues).map(|_| Tap::open_with(name, libc::IFF_MULTI_QUEUE)).collect()
    }

    fn open_with(name: &str, flags: c_int) -> io::Result<Tap> {
        let kind = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | flags) as libc::c_short;
        let fail = |error: io::Error| io::Error::new(error.kind(), format!("TAP device {name}: {error}"));
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(fail(io::ErrorKind::InvalidInput.into()));
        }
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: kind },
        };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `TUNSETIFF` reads and writes one `ifreq`. `request` is one, which this function
        // has filled, and it lives until the call returns; `device` is open, by `open` above.
        if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } < 0 {
            return Err(fail(io::Error::last_os_error()));
        }
        Ok(Tap { device: NonBlocking::new(device)? })
    }
}

impl Wire for Tap {
    fn send(&self, frame: &[u8]) {
        virtio::send(self.device.get_ref(), frame);
    }

    fn send_all(&self, frames: &[OutgoingFrame]) {
        frames.iter().for_each(|frame| virtio::send_run(self.device.get_ref(), frame));
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(self.device.read_with(|device| {
            let (mut frames, mut buffer) = (Vec::new(), [0; FRAME]);
            while frames.len() < BATCH {
                match rustix::io::read(device, &mut buffer[..]) {
                    Ok(length) => frames.push(buffer[HEAD.min(length)..length].to_vec()),
                    Err(_) if !frames.is_empty() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(frames)
        }))
    }
}
