//! Channels and combinators of the `futures` crate in Selvedge threads, and Selvedge's system calls
//! in those combinators.

use futures::channel::mpsc;
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt, select_biased};
use selvedge::{SchedulerError, sleep, spawn};
use std::time::Duration;

fn main() -> Result<(), SchedulerError> {
    selvedge::run(async {
        let (mut to, mut from) = mpsc::channel(2);
        let sender = spawn(async move {
            for i in 0..5u64 {
                sleep(Duration::from_millis(2 * i)).await;
                to.send(i).await.expect("the receiver is there");
            }
        });
        let mut timer = std::pin::pin!(futures::FutureExt::fuse(sleep(Duration::from_millis(9))));
        loop {
            select_biased! {
                received = from.next() => match received {
                    Some(i) => println!("received {i}"),
                    None => break,
                },
                _ = timer => println!("nine milliseconds have passed"),
            }
        }
        sender.await.expect("it does not panic");

        let sleeps = [90, 30, 60].map(|ms| async move {
            sleep(Duration::from_millis(ms)).await;
            ms
        });
        let order: Vec<u64> = sleeps.into_iter().collect::<FuturesUnordered<_>>().collect().await;
        assert_eq!(order, [30, 60, 90]);
        println!("slept in the order {order:?}");
    })
}
