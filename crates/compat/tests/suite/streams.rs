//! Our streams behind the traits of `futures-io` and of tokio, under our scheduler and under
//! tokio's.
#![cfg(all(feature = "futures-io", feature = "tokio"))]

use crate::common::{listen, ms, noise, run, run_on_tokio, tcp_pair};
use futures::future::join;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use selvedge_compat::Compat;
use selvedge_core::{Time, spawn_local};
use selvedge_io::net::{TcpStream, UnixStream};
use selvedge_io::time::{sleep, timeout};
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Both ends send a lot at once, each through its own two halves, so that reads and writes of one
/// stream wait in the same step, and every write fills the socket.
async fn cross(one: TcpStream, other: TcpStream) {
    let bytes = noise(3_000_000);
    let (one, other) = (Arc::new(one), Arc::new(other));
    let end = |stream: Arc<TcpStream>| {
        let bytes = &bytes;
        async move {
            let (mut reader, mut writer) = (Compat::new(stream.clone()), Compat::new(stream));
            let write = async {
                writer.write_all(bytes).await.unwrap();
                writer.close().await.unwrap();
            };
            let mut received = Vec::new();
            let (_, read) = join(write, reader.read_to_end(&mut received)).await;
            assert_eq!(read.unwrap(), bytes.len());
            assert!(received == *bytes, "what came is not what was sent");
        }
    };
    join(end(one), end(other)).await;
}

#[test]
fn both_directions_at_once_within_one_thread() {
    run(async {
        let (one, other) = tcp_pair().await;
        cross(one, other).await;
    });
}

#[test]
fn both_directions_at_once_on_tokio() {
    run_on_tokio(async {
        let (listener, address) = listen();
        let (one, other) = join(TcpStream::connect(address), listener.accept()).await;
        cross(one.unwrap(), other.unwrap().0).await;
    });
}

#[test]
fn halves_in_two_threads() {
    run(async {
        let (one, other) = tcp_pair().await;
        let bytes = Rc::new(noise(1_000_000));
        let one = Rc::new(one);
        let (mut reader, mut writer) = (Compat::new(one.clone()), Compat::new(one));
        let echo = spawn_local(async move {
            let mut stream = Compat::new(&other);
            futures::io::copy(Compat::new(&other), &mut stream).await.unwrap();
            stream.close().await.unwrap();
        });
        let sent = bytes.clone();
        let writing = spawn_local(async move {
            writer.write_all(&sent).await.unwrap();
            writer.close().await.unwrap();
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        assert!(received == *bytes);
        writing.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn with_tokios_traits_and_tools() {
    async fn copy_through(one: UnixStream, other: UnixStream) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let bytes = noise(1_000_000);
        let mut one = Compat::new(one);
        let mut other = Compat::new(other);
        let write = async {
            tokio::io::copy(&mut &bytes[..], &mut one).await.unwrap();
            one.shutdown().await.unwrap();
        };
        let read = async {
            let mut received = Vec::new();
            // Into a vector's spare capacity, which is not initialised.
            while other.read_buf(&mut received).await.unwrap() > 0 {}
            assert!(received == bytes);
        };
        join(write, read).await;
        // The other direction is open still.
        other.write_u32(7).await.unwrap();
        assert_eq!(one.read_u32().await.unwrap(), 7);
    }
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        copy_through(one, other).await;
    });
    run_on_tokio(async {
        let (one, other) = UnixStream::pair().unwrap();
        copy_through(one, other).await;
    });
}

#[test]
fn several_places_are_written_with_one_call() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let mut one = Compat::new(one);
        let parts = [IoSlice::new(b""), IoSlice::new(b"several "), IoSlice::new(b"places")];
        assert_eq!(one.write_vectored(&parts).await.unwrap(), 14);
        let mut received = [0; 20];
        assert_eq!(other.try_read(&mut received).unwrap(), 14);
        assert_eq!(&received[..14], b"several places");
        // More than the kernel takes at once.
        let many = vec![IoSlice::new(b"x"); 1500];
        assert_eq!(one.write_vectored(&many).await.unwrap(), 1024);
        use tokio::io::AsyncWrite as _;
        assert!(one.is_write_vectored());
    });
}

#[test]
fn deadlines_of_the_stream_hold() {
    run(async {
        let (one, _other) = UnixStream::pair().unwrap();
        one.set_read_deadline(Some(Time::now() + ms(20)));
        let mut one = Compat::new(one);
        let before = Time::now();
        assert_eq!(one.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(Time::now().since(before) >= ms(20));
        assert_eq!(one.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        one.get_ref().set_read_deadline(None);
        let mut one = one.into_inner();
        one.set_write_deadline(Some(Time::now() + ms(20)));
        let mut writer = Compat::new(&mut one as &_);
        let error = writer.write_all(&noise(10_000_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_poll_for_other_reasons_does_not_prevent_the_wake_up() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let mut one = Compat::new(one);
        let writer = async move {
            sleep(ms(30)).await;
            other.write_all(b"!").await.unwrap();
            // It stays open for longer than the test may take: the end must not be what wakes the
            // reader.
            sleep(ms(100_000)).await;
        };
        drop(spawn_local(writer));
        let mut buffer = [0];
        let mut polls = 0;
        let mut beat = pin!(async {
            loop {
                sleep(ms(1)).await;
            }
        });
        let read = poll_fn(|cx| {
            polls += 1;
            assert!(beat.as_mut().poll(cx).is_pending());
            Pin::new(&mut one).poll_read(cx, &mut buffer)
        });
        assert_eq!(read.await.unwrap(), 1);
        assert!(polls > 2, "{polls} polls");
    });
}

#[test]
fn a_stream_that_moves_while_it_waits_is_woken() {
    async fn poll_once<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx))).await
    }
    run(async {
        for other_first in [false, true] {
            let (mut streams, peers): (Vec<_>, Vec<_>) =
                (0..2).map(|_| UnixStream::pair().unwrap()).map(|(a, b)| (Compat::new(a), b)).unzip();
            let mut buffer = [0];
            for stream in &mut streams {
                assert!(poll_once(stream.read(&mut buffer)).await.is_pending());
            }
            // The second now lies where the first has asked, and goes, all in one step.
            let mut first = streams.swap_remove(0);
            if other_first {
                drop(streams);
            }
            let writer = async move {
                sleep(ms(5)).await;
                peers[0].write_all(b"!").await.unwrap();
                sleep(ms(100_000)).await;
            };
            drop(spawn_local(writer));
            let mut asked = false;
            // One poll that only waits for what was asked before.
            poll_fn(|_| match std::mem::replace(&mut asked, true) {
                false => Poll::Pending,
                true => Poll::Ready(()),
            })
            .await;
            assert_eq!(first.read(&mut buffer).await.unwrap(), 1);
        }
    });
}

#[test]
fn an_end_is_read_and_a_broken_pipe_told() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let mut one = Compat::new(one);
        let mut other = Compat::new(other);
        other.write_all(b"last words").await.unwrap();
        other.close().await.unwrap();
        other.close().await.unwrap();
        let mut received = String::new();
        one.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "last words");
        drop(other);
        assert_eq!(one.write(b"hello?").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        one.close().await.unwrap();
    });
}

#[test]
fn what_never_waits_lets_others_run() {
    run(async {
        let (one, _other) = UnixStream::pair().unwrap();
        let mut one = Compat::new(one);
        let mut writes = 0;
        // The socket has room for all of these, so that none waits for it.
        poll_fn(|cx| {
            while writes < 1000 {
                match Pin::new(&mut one).poll_write(cx, b"x") {
                    Poll::Ready(written) => writes += written.unwrap(),
                    Poll::Pending => return Poll::Ready(()),
                }
            }
            panic!("a thousand writes in a row");
        })
        .await;
        assert!((32..=64).contains(&writes), "{writes}");
    });
}

#[test]
fn pipes_in_one_direction_each() {
    async fn through() {
        let bytes = noise(1_000_000);
        let (sender, receiver) = selvedge_io::pipe::pipe().unwrap();
        let write = async {
            let mut sender = Compat::new(sender);
            assert!(!tokio::io::AsyncWrite::is_write_vectored(&sender));
            futures::io::copy(&bytes[..], &mut sender).await.unwrap();
            // Closing is dropping.
        };
        let read = async {
            let mut receiver = Compat::new(receiver);
            let mut received = Vec::new();
            // Some of it into memory that is not initialised.
            use tokio::io::AsyncReadExt as _;
            while received.len() < 300_000 {
                assert!(receiver.read_buf(&mut received).await.unwrap() > 0);
            }
            AsyncReadExt::read_to_end(&mut receiver, &mut received).await.unwrap();
            assert!(received == bytes);
        };
        join(write, read).await;
    }
    run(through());
    run_on_tokio(through());
}

/// The same adapters in threads that move between workers, each of which has an event loop of its
/// own.
#[test]
fn streams_that_move_between_workers() {
    let main = async {
        let (listener, address) = listen();
        let server = selvedge_core::spawn(async move {
            for _ in 0..50 {
                let (stream, _) = listener.accept().await.unwrap();
                drop(selvedge_core::spawn(async move {
                    let stream = Arc::new(stream);
                    let mut writer = Compat::new(stream.clone());
                    futures::io::copy(Compat::new(stream), &mut writer).await.unwrap();
                    writer.close().await.unwrap();
                }));
            }
        });
        let clients = (0..50).map(|i| {
            selvedge_core::spawn(async move {
                let bytes = noise(20_000 + i);
                let stream = Arc::new(TcpStream::connect(address).await.unwrap());
                let (mut reader, mut writer) = (Compat::new(stream.clone()), Compat::new(stream));
                let sent = bytes.clone();
                let writing = selvedge_core::spawn(async move {
                    for piece in sent.chunks(3_001) {
                        writer.write_all(piece).await.unwrap();
                        selvedge_core::yield_now().await;
                    }
                    writer.close().await.unwrap();
                });
                let mut received = Vec::new();
                reader.read_to_end(&mut received).await.unwrap();
                assert!(received == bytes);
                writing.await.unwrap();
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        server.await.unwrap();
    };
    selvedge_sched::work_stealing(2, |_| selvedge_io::EventLoop::new(), timeout(ms(60_000), main))
        .unwrap()
        .expect("the test hangs");
}

#[test]
fn what_gives_up_waiting_takes_no_event_with_it() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let mut given_up = Compat::new(&one);
        let mut buffer = [0; 10];
        poll_fn(|cx| {
            assert!(Pin::new(&mut given_up).poll_read(cx, &mut buffer).is_pending());
            Poll::Ready(())
        })
        .await;
        // The event comes while it waits.
        other.write_all(b"!").await.unwrap();
        sleep(ms(5)).await;
        drop(given_up);
        assert_eq!(Compat::new(&one).read(&mut buffer).await.unwrap(), 1);
        // And by our own call likewise.
        let mut given_up = Compat::new(&one);
        poll_fn(|cx| {
            assert!(Pin::new(&mut given_up).poll_read(cx, &mut buffer).is_pending());
            Poll::Ready(())
        })
        .await;
        other.write_all(b"!").await.unwrap();
        sleep(ms(5)).await;
        drop(given_up);
        assert_eq!(one.read(&mut buffer).await.unwrap(), 1);
    });
}
