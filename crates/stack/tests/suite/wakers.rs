//! Wakers run code of the program: they are cloned, woken and dropped outside of the stack's lock.
//! A stack that does so under its lock blocks in these tests for ever.

use crate::{address, two_stacks};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{Stack, TcpListener, TcpStream, UdpSocket, Weather};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

thread_local! {
    static STACK: RefCell<Option<Stack>> = const { RefCell::new(None) };
    static CALLS: Cell<[u32; 3]> = const { Cell::new([0; 3]) };
}

/// Uses the stack, which takes its lock, and counts.
fn use_stack(call: usize) {
    STACK.with_borrow(|stack| {
        if let Some(stack) = stack {
            drop(UdpSocket::bind(stack, address("10.0.0.1:0")).unwrap());
            let mut calls = CALLS.get();
            calls[call] += 1;
            CALLS.set(calls);
        }
    });
}

fn clone(_: *const ()) -> RawWaker {
    use_stack(0);
    RawWaker::new(std::ptr::null(), &CALLBACKS)
}

static CALLBACKS: RawWakerVTable =
    RawWakerVTable::new(clone, |_| use_stack(1), |_| use_stack(1), |_| use_stack(2));

/// A waker that uses the stack at every call.
fn nosy() -> Waker {
    // SAFETY: the functions of `CALLBACKS` do not use their argument, and they use thread-local
    // state only, so a waker on any OS thread may call them at any time.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &CALLBACKS)) }
}

/// Polls with the waker, and then lets other threads run.
async fn poll_once<F: Future>(future: F, waker: &Waker) -> Option<F::Output> {
    let mut future = pin!(future);
    let polled = poll_fn(|_| Poll::Ready(future.as_mut().poll(&mut Context::from_waker(waker)))).await;
    sleep(Duration::from_secs(1)).await;
    match polled {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_waker_may_use_the_stack() {
    simulate(0..3, || async {
        let (client, server) = two_stacks(1, Weather::default());
        STACK.set(Some(client.clone()));
        CALLS.set([0; 3]);
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let idle = TcpListener::bind(&client, address("10.0.0.1:80")).unwrap();
        let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = UdpSocket::bind(&client, address("10.0.0.1:0")).unwrap();
        let waker = nosy();
        let mut buffer = [0; 8];

        assert!(poll_once(idle.accept(), &waker).await.is_none());
        assert!(poll_once(socket.recv_from(&mut buffer), &waker).await.is_none());
        for _ in 0..2 {
            // The second has the same waker, and the stack drops one of them.
            assert!(poll_once(stream.read(&mut buffer), &waker).await.is_none());
        }
        accepted.write_all(b"weft").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(CALLS.get()[1], 1, "the reader was woken");
        assert_eq!(poll_once(stream.read(&mut buffer), &waker).await.unwrap().unwrap(), 4);
        // Sockets go with wakers in them.
        assert!(poll_once(stream.read(&mut buffer), &waker).await.is_none());
        assert!(poll_once(client.finish(Duration::from_secs(1)), &waker).await.is_some());
        drop((idle, socket, stream, accepted, listener));
        sleep(Duration::from_secs(100)).await;
        let [clones, wakes, drops] = CALLS.get();
        assert!(clones >= 6 && wakes >= 4, "{clones} clones, {wakes} wakes, {drops} drops");
        STACK.set(None);
    });
}
