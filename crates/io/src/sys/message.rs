//! Calls that read sockets by `recvmsg`, which tells more than `recv` does: whether descriptors or
//! credentials were cut off.
//!
//! `net/stream.rs` calls them for Unix sockets only, because a short read of these proves that the
//! socket is drained unless something was cut off (`shorts.rs`). The other reads of streams are in
//! `socket.rs`.

use super::call::Call;
use super::gate::{on, only_counted};
use super::interposed::is_interposed;
use rustix::io::{Errno, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

/// Like [`recv`](super::recv), with a second result: true if descriptors or credentials came with
/// the bytes. The call has no room for them.
///
/// # Errors
/// Those of `recvmsg`.
#[inline]
pub fn recv_message(fd: impl AsFd, buffer: &mut [u8]) -> Result<(usize, bool)> {
    // SAFETY: the kernel writes only initialised bytes, so the whole slice stays initialised.
    let buffer = unsafe { &mut *(ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    recv_message_uninit(fd, buffer)
}

/// Like [`recv_to_spare`](super::recv_to_spare), with the second result of [`recv_message`].
///
/// # Errors
/// Those of `recvmsg`.
#[inline]
pub fn recv_message_to_spare(fd: impl AsFd, buffer: &mut Vec<u8>) -> Result<(usize, bool)> {
    let (read, cut) = recv_message_uninit(fd, buffer.spare_capacity_mut())?;
    // SAFETY: `recv_message_uninit` has initialised `read` bytes of the spare capacity, from its
    // start.
    unsafe { buffer.set_len(buffer.len() + read) };
    Ok((read, cut))
}

/// Like [`recv_uninit`](super::recv_uninit), with the second result of [`recv_message`].
///
/// # Errors
/// Those of `recvmsg`.
#[inline]
pub fn recv_message_uninit(fd: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> Result<(usize, bool)> {
    if !is_interposed() {
        return receive(fd.as_fd(), buffer);
    }
    if let Some(_counting) = only_counted(Call::Recv, &fd) {
        return receive(fd.as_fd(), buffer);
    }
    interposed(fd.as_fd(), buffer)
}

#[cold]
fn interposed(fd: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<(usize, bool)> {
    let room = buffer.len();
    // `on` calls only one of the two closures, so one of them takes the buffer.
    let place = std::cell::Cell::new(Some(buffer));
    let real = |fd: BorrowedFd<'_>, limit| {
        let buffer = place.take().expect("the call is made once");
        receive(fd, &mut buffer[..room.min(limit)])
    };
    on(Call::Recv, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        let bytes = kernel.recv(fd, room.min(limit))?;
        let buffer = place.take().expect("the call is made once");
        buffer[..bytes.len()].write_copy_of_slice(&bytes);
        Ok((bytes.len(), false))
    })
}

#[inline]
fn receive(fd: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<(usize, bool)> {
    let mut place = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero `msghdr` is valid: it has no name, no places, and no room for control
    // messages.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut place, 1);
    // SAFETY: the message has one place, which is `buffer`. The kernel writes only there and to the
    // message itself.
    let read = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    match usize::try_from(read) {
        Ok(read) => Ok((read, message.msg_flags & libc::MSG_CTRUNC != 0)),
        Err(_) => Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))),
    }
}
