//! Streams of stacks as descriptors: what is written for the kernel's sockets runs over them, in
//! the event loop that has the kernel's sockets too.

use crate::{address, options};
use selvedge_core::{spawn_local, yield_now};
use selvedge_io::net::{self, UnixStream};
use selvedge_io::time::sleep;
use selvedge_io::{EventLoop, NonBlocking};
use selvedge_sched::per_core;
use selvedge_stack::{
    Receiving, SimulatedWire, SocketDescriptors, Stack, TcpListener, TcpStream, Weather, Wire,
};
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Runs a program on one worker.
fn on_one_worker<F: Future<Output = ()> + 'static>(main: impl Fn() -> F + Sync) {
    per_core(1, |_| EventLoop::new(), |_| main()).unwrap();
}

/// Both ends of a connection between two stacks: one is a descriptor.
async fn described(descriptors: &SocketDescriptors, weather: Weather) -> (net::TcpStream, TcpStream) {
    let (left, right) = SimulatedWire::pair(5, weather);
    let (left, right) = (Stack::start(options(1), left), Stack::start(options(2), right));
    described_over(descriptors, &left, &right).await
}

/// Both ends of a connection between these stacks: the end of `right` is a descriptor.
async fn described_over(
    descriptors: &SocketDescriptors,
    left: &Stack,
    right: &Stack,
) -> (net::TcpStream, TcpStream) {
    let listener = TcpListener::bind(right, address("10.0.0.2:80")).unwrap();
    let accepting = spawn_local(async move { listener.accept().await.unwrap().0 });
    let stream = TcpStream::connect(left, address("10.0.0.2:80")).await.unwrap();
    (descriptors.describe(accepting.await.unwrap()).unwrap(), stream)
}

/// A wire that is broken from the first frame on that comes after the flag was set.
struct BreakingWire(SimulatedWire, Arc<AtomicBool>);

impl Wire for BreakingWire {
    fn send(&self, frame: &[u8]) {
        self.0.send(frame);
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async {
            let frames = self.0.receive().await;
            if self.1.load(Relaxed) { Err(ErrorKind::NetworkDown.into()) } else { frames }
        })
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

#[test]
fn long_streams_go_both_ways_at_once() {
    for lost in [0, 30] {
        on_one_worker(|| async move {
            let descriptors = SocketDescriptors::new().unwrap();
            let weather = Weather { lost, ..Weather::default() };
            let (near, far) = described(&descriptors, weather).await;
            let (near, far) = (Rc::new(near), Rc::new(far));
            const ALL: usize = 600_000;
            let writing = {
                let near = near.clone();
                spawn_local(async move {
                    // In one write, in parts, and from a file.
                    let all = bytes(ALL);
                    near.write_all(&all[..200_000]).await.unwrap();
                    let mut parts = [&all[200_000..200_010], &all[200_010..300_000]].map(IoSlice::new);
                    near.write_all_vectored(&mut parts).await.unwrap();
                    let mut file = tempfile();
                    file.write_all(&all).unwrap();
                    let mut at = 300_000;
                    while at < ALL as u64 {
                        let left = ALL - at as usize;
                        match near.try_send_file(&file, &mut at, left) {
                            Ok(_) => {}
                            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                                near.writable().await.unwrap()
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    near.shutdown(Shutdown::Write).unwrap();
                })
            };
            let echoing = {
                let far = far.clone();
                spawn_local(async move {
                    let (mut came, mut buffer) = (Vec::new(), [0; 5000]);
                    while let read @ 1.. = far.read(&mut buffer).await.unwrap() {
                        came.extend_from_slice(&buffer[..read]);
                    }
                    came
                })
            };
            let asking = spawn_local(async move {
                far.write_all(&bytes(ALL)).await.unwrap();
                far.shutdown(Shutdown::Write).unwrap();
            });
            let mut came = Vec::with_capacity(ALL + 1);
            while near.read_to_spare(&mut came).await.unwrap() > 0 {}
            assert!(came == bytes(ALL));
            assert!(echoing.await.unwrap() == bytes(ALL));
            writing.await.unwrap();
            asking.await.unwrap();
        });
    }
}

/// A file without a name.
fn tempfile() -> File {
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
    File::from(rustix::fs::open(std::env::temp_dir(), flags, rustix::fs::Mode::RUSR).unwrap())
}

#[test]
fn a_read_that_is_short_waits_for_what_comes_later() {
    on_one_worker(|| async {
        let descriptors = SocketDescriptors::new().unwrap();
        let (near, far) = described(&descriptors, Weather::default()).await;
        let (far, mut buffer) = (Rc::new(far), [0; 8]);
        assert_eq!(near.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        for round in 0..50 {
            let writer = far.clone();
            let sending = spawn_local(async move {
                yield_now().await;
                writer.write_all(&[round; 3]).await.unwrap();
            });
            assert_eq!((near.read(&mut buffer).await.unwrap(), &buffer[..3]), (3, &[round; 3][..]));
            sending.await.unwrap();
            assert_eq!(near.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        // Sleeping in the kernel in between, too.
        let far = spawn_local(async move {
            sleep(Duration::from_millis(30)).await;
            far.write_all(b"weft").await.unwrap();
            far
        });
        assert_eq!(near.read(&mut buffer).await.unwrap(), 4);
        // A wait has an end.
        near.set_read_deadline(Some(selvedge_core::now() + Duration::from_millis(20)));
        assert_eq!(near.read(&mut buffer).await.unwrap_err().kind(), ErrorKind::TimedOut);
        near.set_read_deadline(None);
        drop(far.await.unwrap());
        assert_eq!(near.read(&mut buffer).await.unwrap(), 0);
    });
}

#[test]
fn the_ends_are_those_of_the_kernels_sockets() {
    on_one_worker(|| async {
        let descriptors = SocketDescriptors::new().unwrap();
        let (near, far) = described(&descriptors, Weather::default()).await;
        assert_eq!(near.peer_addr().unwrap(), far.local_addr().unwrap());
        assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
        assert_eq!(near.peer_ip(), Some("10.0.0.1".parse().unwrap()));
        near.set_nodelay(false).unwrap();
        near.set_linger(None).unwrap();
        // The peer has not taken it yet.
        near.write_all(b"warp").await.unwrap();
        assert_eq!(near.unacknowledged().unwrap(), 4);
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 4);
        while near.unacknowledged().unwrap() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        // The end of reading, by this end.
        near.shutdown(Shutdown::Read).unwrap();
        assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 0);
        near.shutdown(Shutdown::Write).unwrap();
        assert_eq!(near.write_all(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);

        // A peer that resets.
        let (near, far) = described(&descriptors, Weather::default()).await;
        near.write_all(b"not read").await.unwrap();
        far.readable().await.unwrap();
        drop(far);
        let error = near.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(error.to_string().contains("10.0.0.1"), "{error}");
        assert!(near.write_all(b"more").await.is_err());
    });
}

#[test]
fn a_descriptor_that_is_dropped_ends_its_stream_and_frees_its_number() {
    on_one_worker(|| async {
        let descriptors = SocketDescriptors::new().unwrap();
        let mut numbers = Vec::new();
        for _ in 0..20 {
            let (near, far) = described(&descriptors, Weather::default()).await;
            numbers.push(near.as_fd().as_raw_fd());
            near.write_all(b"cloth").await.unwrap();
            drop(near);
            let mut word = [0; 5];
            far.read_exact(&mut word).await.unwrap();
            assert_eq!((far.read(&mut [0; 1]).await.unwrap(), &word), (0, b"cloth"));
        }
        assert!(numbers.iter().all(|number| *number < -1));
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() < 5, "{numbers:?}");
    });
}

#[test]
fn descriptors_that_outlive_their_kernel_are_closed_and_no_others() {
    on_one_worker(|| async {
        let before = SocketDescriptors::new().unwrap();
        let (old, old_far) = described(&before, Weather::default()).await;
        drop(before);
        // The stream went with the kernel.
        assert_eq!(old_far.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(old.try_read(&mut [0; 1]).is_err());
        let descriptors = SocketDescriptors::new().unwrap();
        let (near, far) = described(&descriptors, Weather::default()).await;
        assert!(old.try_read(&mut [0; 1]).is_err());
        drop(old);
        far.write_all(b"warp").await.unwrap();
        assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn the_kernels_descriptors_go_on_beside_them() {
    on_one_worker(|| async {
        let descriptors = SocketDescriptors::new().unwrap();
        let (near, far) = described(&descriptors, Weather::default()).await;
        let (here, there) = UnixStream::pair().unwrap();
        let file = NonBlocking::new(
            rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).unwrap(),
        )
        .unwrap();
        assert_eq!(file.write_with(|fd| Ok(rustix::io::write(fd, b"x")?)).await.unwrap(), 1);
        let echoing = spawn_local(async move {
            let mut word = [0; 4];
            for _ in 0..200 {
                there.read_exact(&mut word).await.unwrap();
                near.write_all(&word).await.unwrap();
                near.read_exact(&mut word).await.unwrap();
                there.write_all(&word).await.unwrap();
            }
        });
        let passing = spawn_local(async move {
            let mut word = [0; 4];
            for _ in 0..200 {
                far.read_exact(&mut word).await.unwrap();
                far.write_all(&word).await.unwrap();
            }
        });
        for round in 0..200_u32 {
            let mut word = round.to_ne_bytes();
            here.write_all(&word).await.unwrap();
            here.read_exact(&mut word).await.unwrap();
            assert_eq!(u32::from_ne_bytes(word), round);
        }
        echoing.await.unwrap();
        passing.await.unwrap();
    });
}

#[test]
fn what_has_come_is_read_before_the_error_of_a_broken_wire() {
    on_one_worker(|| async {
        let descriptors = SocketDescriptors::new().unwrap();
        let (left, right) = SimulatedWire::pair(5, Weather::default());
        let breaks = Arc::new(AtomicBool::new(false));
        let right = BreakingWire(right, breaks.clone());
        let (left, right) = (Stack::start(options(1), left), Stack::start(options(2), right));
        let (near, far) = described_over(&descriptors, &left, &right).await;
        far.write_all(b"warp").await.unwrap();
        near.readable().await.unwrap();
        breaks.store(true, Relaxed);
        far.write_all(b"weft").await.unwrap();
        sleep(Duration::from_millis(30)).await;
        let mut buffer = [0; 8];
        assert_eq!((near.read(&mut buffer).await.unwrap(), &buffer[..4]), (4, &b"warp"[..]));
        assert!(near.read(&mut buffer).await.is_err());
    });
}
