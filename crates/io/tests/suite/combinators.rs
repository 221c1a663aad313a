//! Waiting for several things at once, in combinators of other crates.

use crate::common::{ms, run, tcp_pair};
use futures::FutureExt;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use selvedge_core::{spawn, spawn_local};
use selvedge_io::blocking;
use selvedge_io::net::UnixStream;
use selvedge_io::time::sleep;
use std::pin::pin;

#[test]
fn many_sockets_in_one_thread() {
    run(async {
        let pairs: Vec<_> = (0..200).map(|_| UnixStream::pair().unwrap()).collect();
        let (ones, others): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut reads: FuturesUnordered<_> = ones
            .iter()
            .enumerate()
            .map(|(i, one)| async move {
                for round in 0..5u8 {
                    let mut byte = [0];
                    one.read_exact(&mut byte).await.unwrap();
                    assert_eq!(byte, [i as u8 ^ round]);
                }
                i
            })
            .collect();
        let writer = spawn(async move {
            for round in 0..5u8 {
                for i in (0..others.len()).rev() {
                    others[i].write_all(&[i as u8 ^ round]).await.unwrap();
                    if i % 17 == 0 {
                        sleep(ms(0)).await;
                    }
                }
            }
            others
        });
        let mut done = Vec::new();
        while let Some(i) = reads.next().await {
            done.push(i);
        }
        done.sort();
        assert_eq!(done, (0..200).collect::<Vec<_>>());
        writer.await.unwrap();
    });
}

#[test]
fn a_socket_a_timer_and_a_blocking_call_side_by_side() {
    run(async {
        let (one, other) = tcp_pair().await;
        let read = async {
            let mut total = 0;
            while total < 300_000 {
                total += one.read(&mut [0; 1000]).await.unwrap();
            }
        };
        let write = async {
            for _ in 0..300 {
                other.write_all(&[7; 1000]).await.unwrap();
            }
        };
        let naps = join_all((0..20).map(|i| sleep(ms(i))));
        let call = blocking(|| std::thread::sleep(ms(5)));
        let ((), (), _, called) = futures::join!(read, write, naps, call);
        called.unwrap();
    });
}

/// The loser of a select goes on waiting in the next select, which polls it with another waker each
/// time.
#[test]
fn a_wait_that_outlives_a_select_is_still_answered() {
    run(async {
        let (one, other) = tcp_pair().await;
        let mut buffer = [0; 10];
        let mut read = pin!(one.read(&mut buffer).fuse());
        let naps = std::rc::Rc::new(std::cell::Cell::new(0));
        let napped = naps.clone();
        let writer = spawn_local(async move {
            while napped.get() < 3 {
                sleep(ms(1)).await;
            }
            other.write_all(b"at last").await.unwrap();
            other
        });
        let n = loop {
            futures::select! {
                n = read => break n.unwrap(),
                () = sleep(ms(3)).fuse() => naps.set(naps.get() + 1),
            }
        };
        assert_eq!(n, 7);
        writer.await.unwrap();
    });
}

/// Threads wait for one shared descriptor, one of them in a combinator.
#[test]
fn waiters_of_one_socket_do_not_starve_each_other() {
    run(async {
        let (one, other) = UnixStream::pair().unwrap();
        let one = std::rc::Rc::new(one);
        let readers: Vec<_> = (0..10)
            .map(|i| {
                let one = one.clone();
                spawn_local(async move {
                    let mut byte = [0];
                    if i % 2 == 0 {
                        one.read_exact(&mut byte).await.unwrap();
                    } else {
                        futures::join!(one.read_exact(&mut byte), sleep(ms(1))).0.unwrap();
                    }
                    byte[0]
                })
            })
            .collect();
        sleep(ms(5)).await;
        for i in 0..10u8 {
            other.write_all(&[i]).await.unwrap();
            sleep(ms(1)).await;
        }
        let mut read = Vec::new();
        for reader in readers {
            read.push(reader.await.unwrap());
        }
        read.sort();
        assert_eq!(read, (0..10).collect::<Vec<_>>());
    });
}
