//! Reads that come back short although bytes are left in the kernel, from every kind of descriptor
//! that ends reads early.

use crate::common::{ms, run};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, send,
    sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use selvedge_core::spawn_local;
use selvedge_io::net::{Stream, UnixStream};
use selvedge_io::time::{sleep, timeout};
use selvedge_io::{NonBlocking, pipe};
use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

/// A thread reads by `read` for as long as bytes come. Twice, `send` sends `bytes` bytes at once
/// while the thread waits. The thread must read all of them.
fn all_is_read<R: Future<Output = io::Result<usize>>>(
    what: &str,
    bytes: usize,
    read: impl Fn() -> R + 'static,
    mut send: impl FnMut() + 'static,
) {
    let what = what.to_owned();
    run(async move {
        let got = Rc::new(Cell::new(0));
        let count = got.clone();
        let reader = spawn_local(async move {
            while let Ok(read @ 1..) = read().await {
                count.set(count.get() + read);
            }
        });
        for round in 1..=2 {
            sleep(ms(20)).await;
            send();
            let wanted = round * bytes;
            let all = async {
                while got.get() < wanted {
                    sleep(ms(1)).await;
                }
            };
            let ended = timeout(ms(5000), all).await;
            assert!(ended.is_ok(), "{what}, round {round}: {} of {wanted} bytes were read", got.get());
        }
        sleep(ms(20)).await;
        assert_eq!(got.get(), 2 * bytes, "{what}");
        drop(reader);
    });
}

async fn read_some(stream: Rc<Stream>) -> io::Result<usize> {
    stream.read(&mut [0; 100]).await
}

async fn receive_some(pipe: Rc<pipe::Receiver>) -> io::Result<usize> {
    pipe.read(&mut [0; 100]).await
}

/// All `bytes` bytes that each call of `send` sends are read from a stream.
fn all_of_a_stream(what: &str, fd: impl Into<OwnedFd>, bytes: usize, send: impl FnMut() + 'static) {
    let stream = Rc::new(Stream::from_fd(fd.into()).unwrap());
    all_is_read(what, bytes, move || read_some(stream.clone()), send);
}

/// All `bytes` bytes that each call of `send` sends are read from a descriptor, in the way of a
/// pipe.
fn all_of_a_pipe(what: &str, fd: impl Into<OwnedFd>, bytes: usize, send: impl FnMut() + 'static) {
    let pipe = Rc::new(pipe::Receiver::from_fd(fd.into()).unwrap());
    all_is_read(what, bytes, move || receive_some(pipe.clone()), send);
}

#[test]
fn a_pipe_with_packets() {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).unwrap();
    all_of_a_pipe("packets", reader, 8, move || {
        for packet in [&b"one"[..], b"two", b"ab"] {
            rustix::io::write(&writer, packet).unwrap();
        }
    });
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// Sends text with an urgent byte in it.
fn send_urgent(to: impl AsFd) {
    send(&to, b"abc", SendFlags::empty()).unwrap();
    send(&to, b"X", SendFlags::OOB).unwrap();
    send(&to, b"defg", SendFlags::empty()).unwrap();
    // All bytes arrive before the reader looks.
    std::thread::sleep(ms(50));
}

#[test]
fn urgent_data() {
    let (one, other) = tcp_pair();
    all_of_a_stream("urgent data apart", other, 7, move || send_urgent(&one));
    let (one, other) = tcp_pair();
    set_socket_oobinline(&other, true).unwrap();
    all_of_a_stream("urgent data in line", other, 8, move || send_urgent(&one));
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    all_of_a_stream("urgent data of a Unix socket", other, 7, move || send_urgent(&one));
}

/// The mark arrives while the reader does not wait. The loop collects the mark's edge while no
/// waiter waits for it, or the edge comes before the descriptor is registered.
#[test]
fn urgent_data_that_comes_between_waits() {
    for busy in [ms(0), ms(100)] {
        let (one, other) = tcp_pair();
        let stream = Stream::from_fd(other.into()).unwrap();
        run(async move {
            let mut buffer = [0; 100];
            for _ in 0..3 {
                rustix::io::write(&one, b"...").unwrap();
                assert_eq!(stream.read(&mut buffer).await.unwrap(), 3);
                send_urgent(&one);
                sleep(busy).await; // the loop is polled for 100 ms, and not for 0 ms
                let mut got = 0;
                while got < 7 {
                    let read = timeout(ms(5000), stream.read(&mut buffer)).await;
                    got += read.unwrap_or_else(|_| panic!("{got} of 7 bytes were read")).unwrap();
                }
                assert!(timeout(ms(10), stream.read(&mut buffer)).await.is_err(), "nothing is left");
            }
        });
    }
}

/// Sends a descriptor and some bytes in one message.
fn send_descriptor(to: impl AsFd, bytes: &[u8]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    let descriptors = [to.as_fd()];
    assert!(along.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&to, &[IoSlice::new(bytes)], &mut along, SendFlags::empty()).unwrap();
}

#[test]
fn descriptors_passed_along() {
    let sends = |to: OwnedFd| {
        move || {
            send_descriptor(&to, b"head");
            send(&to, b"body", SendFlags::empty()).unwrap();
            send_descriptor(&to, b"tail");
            send_descriptor(&to, b"!");
        }
    };
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    all_of_a_stream("a stream taken over", other, 13, sends(one));
    let (one, other) = UnixStream::pair().unwrap();
    let one = Stream::from(one).into_fd();
    let other = Rc::new(Stream::from(other));
    all_is_read("a stream of our own", 13, move || read_some(other.clone()), sends(one));
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let other = Rc::new(Stream::from_fd(other).unwrap());
    let to_spare = move || {
        let other = other.clone();
        async move { other.read_to_spare(&mut Vec::with_capacity(100)).await }
    };
    all_is_read("read into a vector", 13, to_spare, sends(one));
}

#[test]
fn exactly_so_many_bytes_with_descriptors_among_them() {
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    run(async move {
        let stream = Stream::from_fd(other).unwrap();
        let mut buffer = [0; 8];
        for _ in 0..3 {
            send_descriptor(&one, b"head");
            send(&one, b"body", SendFlags::empty()).unwrap();
            let read = timeout(ms(5000), stream.read_exact(&mut buffer)).await;
            read.expect("the rest is there").unwrap();
            assert_eq!(&buffer, b"headbody");
        }
    });
}

#[test]
fn messages_that_are_kept_apart() {
    let kept_apart = SocketType::SEQPACKET;
    let (one, other) = socketpair(AddressFamily::UNIX, kept_apart, SocketFlags::CLOEXEC, None).unwrap();
    all_of_a_stream("messages", other, 8, move || {
        for message in [&b"one"[..], b"two", b"ab"] {
            send(&one, message, SendFlags::empty()).unwrap();
        }
    });
}

#[test]
fn lines_of_a_terminal() {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let path = std::ffi::OsStr::new(name.to_str().unwrap());
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut keyboard = std::fs::File::from(controller);
    all_of_a_pipe("three lines", terminal, 14, move || keyboard.write_all(b"one\ntwo\nthree\n").unwrap());
}

#[test]
fn a_counter_that_is_read_by_a_call_of_ones_own() {
    let counter = Rc::new(
        NonBlocking::new(eventfd(0, EventfdFlags::SEMAPHORE | EventfdFlags::CLOEXEC).unwrap()).unwrap(),
    );
    let write = counter.clone();
    let read = move || {
        let counter = counter.clone();
        async move { counter.read_with(|fd| Ok(rustix::io::read(fd, &mut [0; 100])?)).await }
    };
    all_is_read("a semaphore", 24, read, move || {
        rustix::io::write(write.get_ref(), &3u64.to_ne_bytes()).unwrap();
    });
}

/// Without room there is nothing to wait for, even if the stream is known to be drained or full.
#[test]
fn no_bytes_are_read_and_written_at_once() {
    async fn at_once<T>(what: &str, future: impl Future<Output = io::Result<T>>) -> T {
        timeout(Duration::from_secs(5), future).await.unwrap_or_else(|_| panic!("{what} waits")).unwrap()
    }
    run(async {
        let (one, _other) = UnixStream::pair().unwrap();
        let (tcp, _peer) = crate::common::tcp_pair().await;
        for stream in [&*one, &*tcp] {
            for _ in 0..2 {
                assert_eq!(at_once("read", stream.read(&mut [])).await, 0);
                at_once("read_exact", stream.read_exact(&mut [])).await;
                assert!(timeout(ms(5), stream.read(&mut [0])).await.is_err(), "now it is drained");
            }
            while stream.try_write(&[0; 10_000]).is_ok() {}
            assert!(timeout(ms(5), stream.write(&[0; 10_000])).await.is_err(), "now it is full");
            assert_eq!(at_once("write", stream.write(&[])).await, 0);
            at_once("write_all", stream.write_all(&[])).await;
        }
        let (sender, receiver) = pipe::pipe().unwrap();
        assert_eq!(at_once("read", receiver.read(&mut [])).await, 0);
        while sender.try_write(&[0; 10_000]).is_ok() {}
        assert_eq!(at_once("write", sender.write(&[])).await, 0);
    });
}
