//! A closed descriptor number that comes back is a new file. Events of the old file do not reach
//! the new file. (The tests are about the numbers of descriptors, so they have a file of their
//! own.)

mod common;

use common::{ms, run, run_with, tcp_pair};
use futures::future::{Either, select};
use selvedge_core::spawn;
use selvedge_io::net::{Stream, UnixStream};
use selvedge_io::time::{sleep, timeout};
use selvedge_io::{EventLoop, NonBlocking};
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;

#[test]
fn a_number_that_comes_back_is_waited_for_anew() {
    run(async {
        let mut numbers = std::collections::BTreeSet::new();
        for i in 0..100 {
            let (one, other) = UnixStream::pair().unwrap();
            numbers.insert(one.as_fd().as_raw_fd());
            let reader = spawn(async move {
                let mut byte = [0];
                one.read_exact(&mut byte).await.unwrap();
                // A stale ready bit is left behind, because both ends hang up after this.
                byte[0]
            });
            if i % 2 == 0 {
                sleep(ms(0)).await;
            }
            other.write_all(&[i]).await.unwrap();
            assert_eq!(reader.await.unwrap(), i);
        }
        assert!(numbers.len() < 20, "the numbers were meant to come back: {numbers:?}");
    });
}

/// The old file lives on in a duplicate, so its events still come, under the number of the new
/// file.
#[test]
fn events_of_an_old_file_do_not_reach_the_new_one() {
    run(async {
        let (old, old_peer) = UnixStream::pair().unwrap();
        let number = old.as_fd().as_raw_fd();
        let _duplicate = old.as_fd().try_clone_to_owned().unwrap();
        assert!(timeout(ms(5), old.read(&mut [0])).await.is_err()); // registered
        drop(old);

        let (mut new, new_peer) = UnixStream::pair().unwrap();
        let mut new_peer = new_peer;
        if new.as_fd().as_raw_fd() != number {
            (new, new_peer) = (new_peer, new);
        }
        assert_eq!(new.as_fd().as_raw_fd(), number);
        let waiting = spawn(async move {
            let mut byte = [0];
            new.read_exact(&mut byte).await.unwrap();
            byte[0]
        });
        sleep(ms(5)).await;
        old_peer.write_all(b"old").await.unwrap();
        sleep(ms(5)).await;
        new_peer.write_all(b"n").await.unwrap();
        assert_eq!(waiting.await.unwrap(), b'n');
    });
}

/// A wait that was given up leaves its waker behind. That waker must not hold up later waiters, or
/// wake for ever.
#[test]
fn a_wait_that_is_given_up_does_no_harm() {
    run(async {
        let (one, other) = tcp_pair().await;
        for i in 0..50u8 {
            {
                let mut buffer = [0];
                let given_up =
                    matches!(select(pin!(one.read(&mut buffer)), pin!(sleep(ms(1)))).await, Either::Right(_));
                assert!(given_up, "nothing was written");
            }
            other.write_all(&[i]).await.unwrap();
            let mut byte = [0];
            one.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [i]);
        }
        // The descriptor is closed with a waker left in the table, and its number comes back.
        let number = one.as_fd().as_raw_fd();
        assert!(timeout(ms(2), one.read(&mut [0])).await.is_err());
        drop((one, other));
        let (one, other) = UnixStream::pair().unwrap();
        let (one, other) = if one.as_fd().as_raw_fd() == number { (one, other) } else { (other, one) };
        let reader = spawn(async move { one.read(&mut [0; 9]).await.unwrap() });
        sleep(ms(2)).await;
        other.write_all(b"new").await.unwrap();
        assert_eq!(reader.await.unwrap(), 3);
    });
}

/// A wait that was given up after an edge had resumed it loses no edge.
#[test]
fn a_wait_that_is_given_up_too_late_takes_no_edge_along() {
    run(async {
        let (one, other) = tcp_pair().await;
        other.write_all(b"first").await.unwrap();
        // This read is short, so the next read waits before it tries.
        assert_eq!(one.read(&mut [0; 10]).await.unwrap(), 5);
        for i in 0..5u8 {
            let mut buffer = [0; 10];
            let mut given_up = Box::pin(one.read(&mut buffer));
            let first = std::future::poll_fn(|cx| std::task::Poll::Ready(given_up.as_mut().poll(cx))).await;
            assert!(first.is_pending());
            other.write_all(&[i]).await.unwrap();
            sleep(ms(5)).await;
            drop(given_up);
            let mut byte = [0; 10];
            let read = timeout(ms(5000), one.read(&mut byte)).await.expect("what has come is found");
            assert_eq!((read.unwrap(), byte[0]), (1, i));
        }
    });
}

fn pair() -> (Stream, Stream) {
    let (one, other) = UnixStream::pair().unwrap();
    (one.into(), other.into())
}

async fn ping(one: Stream, other: Stream) -> (Stream, Stream) {
    let reader = spawn(async move {
        let mut byte = [0];
        for _ in 0..3 {
            one.read_exact(&mut byte).await.unwrap();
        }
        one
    });
    for _ in 0..3 {
        sleep(ms(1)).await;
        other.write_all(b"x").await.unwrap();
    }
    (reader.await.unwrap(), other)
}

/// One socket goes from loop to loop, to the loop for foreign executors, and back.
#[test]
fn a_socket_moves_between_event_loops() {
    let (mut one, mut other) = pair();
    for _ in 0..3 {
        (one, other) = std::thread::spawn(move || run(ping(one, other))).join().unwrap();
        let mut events = EventLoop::new().unwrap();
        (one, other) = run_with(&mut events, ping(one, other));
        (one, other) = run_with(&mut events, ping(one, other));
        drop(events);
        let reader = std::thread::spawn(move || {
            futures::executor::block_on(async {
                one.read_exact(&mut [0; 2]).await.unwrap();
            });
            one
        });
        std::thread::sleep(ms(2));
        futures::executor::block_on(other.write_all(b"xx")).unwrap();
        one = reader.join().unwrap();
    }
}

/// The socket goes to a loop that remembers another file of its number.
#[test]
fn a_socket_moves_to_a_loop_that_knew_its_number() {
    let mut events = EventLoop::new().unwrap();
    let same_number = (0..100).any(|_| {
        let (one, other) = pair();
        let number = one.as_fd().as_raw_fd();
        drop(run_with(&mut events, ping(one, other)));
        let (one, other) = pair();
        let same = one.as_fd().as_raw_fd() == number;
        let (one, other) = std::thread::spawn(move || run(ping(one, other))).join().unwrap();
        let start = std::time::Instant::now();
        run_with(&mut events, async move { timeout(ms(5000), ping(one, other)).await.unwrap() });
        assert!(start.elapsed() < ms(4000), "it is registered anew");
        same
    });
    assert!(same_number, "the number was meant to come back");
}

#[test]
fn a_regular_file_never_waits() {
    run(async {
        let file = NonBlocking::new(std::fs::File::open("Cargo.toml").unwrap()).unwrap();
        timeout(ms(1000), async {
            for _ in 0..3 {
                file.readable().await.unwrap();
                file.writable().await.unwrap();
            }
        })
        .await
        .expect("regular files are always ready");
    });
}
