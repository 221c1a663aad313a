//! The one-shot channel: which end owns the value, and how each end learns that the other is gone.

use selvedge_core::{round_robin, spawn_local, yield_now};
use selvedge_sync::{NoReplyError, Replier, one_shot, one_shot_local};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[test]
fn the_value_belongs_to_the_one_that_takes_it() {
    let value = round_robin(async {
        let (replier, mut reply) = one_shot_local();
        let waiting = spawn_local(async move { reply.take().await });
        yield_now().await;
        replier.reply(Box::new(42)).unwrap();
        waiting.await.unwrap()
    });
    assert_eq!(value.unwrap().map(|value| *value), Ok(42));
}

#[test]
fn a_replier_that_is_dropped_tells_the_taker() {
    let value = round_robin(async {
        let (replier, mut reply) = one_shot_local::<u8>();
        let waiting = spawn_local(async move { (reply.take().await, reply.take().await) });
        yield_now().await;
        drop(replier);
        waiting.await.unwrap()
    });
    assert_eq!(value.unwrap(), (Err(NoReplyError), Err(NoReplyError)));
}

#[test]
fn a_reply_that_is_dropped_tells_the_replier_and_gives_the_value_back() {
    round_robin(async {
        let (replier, reply) = one_shot::<u8>();
        let told = spawn_local(async move {
            replier.unwanted().await;
            replier
        });
        yield_now().await;
        assert!(!told.is_finished());
        drop(reply);
        let replier: Replier<u8> = told.await.unwrap();
        assert!(replier.is_unwanted());
        assert_eq!(replier.reply(7), Err(7));
    })
    .unwrap();
}

#[test]
fn a_reply_that_is_dropped_tells_every_future_of_its_replier() {
    let (replier, reply) = one_shot::<u8>();
    let mut cx = Context::from_waker(Waker::noop());
    let (mut first, mut second) = (pin!(replier.unwanted()), pin!(replier.unwanted()));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    drop(reply);
    assert!(second.as_mut().poll(&mut cx).is_ready());
    assert!(first.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_take_that_is_given_up_after_the_value_was_handed_to_it_loses_nothing() {
    let (replier, mut reply) = one_shot();
    let mut cx = Context::from_waker(Waker::noop());
    {
        let mut take = pin!(reply.take());
        assert_eq!(take.as_mut().poll(&mut cx), Poll::Pending);
        replier.reply(7).unwrap();
    }
    assert_eq!(pin!(reply.take()).poll(&mut cx), Poll::Ready(Ok(7)));
    assert_eq!(pin!(reply.take()).poll(&mut cx), Poll::Ready(Err(NoReplyError)));
}

#[test]
fn a_value_that_is_never_taken_is_dropped_once() {
    let value = Rc::new(());
    let (replier, reply) = one_shot_local();
    replier.reply(value.clone()).unwrap();
    assert_eq!(Rc::strong_count(&value), 2);
    drop(reply);
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn it_goes_between_os_threads() {
    let (replier, mut reply) = one_shot();
    let other = std::thread::spawn(move || reply.take_blocking());
    replier.reply("weft").unwrap();
    assert_eq!(other.join().unwrap(), Ok("weft"));
}
