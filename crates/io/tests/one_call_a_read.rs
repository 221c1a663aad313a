//! The number of calls that a message costs: where a short read proves that nothing is left, no
//! call is made in vain. (The calls of the process are counted, so this test has a file of its
//! own.)

mod common;

use common::{ms, run, tcp_pair};
use selvedge_core::{sleep, spawn_local};
use selvedge_io::calls;
use selvedge_io::net::{Stream, UnixStream};
use selvedge_sync::Event;
use std::cell::Cell;
use std::rc::Rc;

/// The number of reads that the process has made.
fn made() -> u64 {
    let (total, _) = calls::counted();
    total.kinds.iter().find(|(name, _)| *name == "recv").map_or(0, |(_, tally)| tally.calls)
}

/// The number of reads of `one` and `other`, over `rounds` messages and as many answers.
async fn reads(one: Stream, other: Stream, rounds: u64) -> u64 {
    let before = made();
    let answers = spawn_local(async move {
        let mut buffer = [0; 100];
        for _ in 0..rounds {
            assert_eq!(other.read(&mut buffer).await.unwrap(), 10);
            other.write_all(&buffer[..10]).await.unwrap();
        }
    });
    let mut buffer = [0; 100];
    for _ in 0..rounds {
        one.write_all(&buffer[..10]).await.unwrap();
        assert_eq!(one.read(&mut buffer).await.unwrap(), 10);
    }
    answers.await.unwrap();
    made() - before
}

/// The number of reads of `pairs` threads, each of which reads two messages. Between the two it
/// waits for something else, as long as all others have read their first one.
async fn reads_in_one_turn(pairs: usize) -> u64 {
    let before = made();
    let (all_have_read, count) = (Rc::new(Event::new()), Rc::new(Cell::new(0)));
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (writer, reader) = tcp_pair().await;
        let (all_have_read, count) = (all_have_read.clone(), count.clone());
        readers.push(spawn_local(async move {
            let mut buffer = [0; 100];
            assert_eq!(reader.read(&mut buffer).await.unwrap(), 10);
            count.set(count.get() + 1);
            if count.get() == pairs {
                all_have_read.set();
            }
            all_have_read.wait().await;
            assert_eq!(reader.read(&mut buffer).await.unwrap(), 10);
        }));
        writers.push(writer);
    }
    // All of them wait, so that no read comes before its message.
    sleep(ms(20)).await;
    for writer in &writers {
        writer.write_all(&[0; 10]).await.unwrap();
    }
    all_have_read.wait().await;
    sleep(ms(20)).await;
    for writer in &writers {
        writer.write_all(&[0; 10]).await.unwrap();
    }
    for reader in readers {
        reader.await.unwrap();
    }
    made() - before
}

#[test]
fn a_message_of_a_stream_costs_one_read() {
    const ROUNDS: u64 = 1000;
    run(async {
        calls::count(true);
        let (one, other) = tcp_pair().await;
        let tcp = reads(one.into(), other.into(), ROUNDS).await;
        const PAIRS: usize = 64;
        let turn = reads_in_one_turn(PAIRS).await;
        // Each of the first reads tries before it waits.
        assert!(turn <= 3 * PAIRS as u64, "{turn} reads of {}", 2 * PAIRS);
        let (one, other) = UnixStream::pair().unwrap();
        let unix = reads(one.into(), other.into(), ROUNDS).await;
        for (what, made) in [("TCP", tcp), ("Unix", unix)] {
            assert!((2 * ROUNDS..2 * ROUNDS + 20).contains(&made), "{what}: {made} reads of {}", 2 * ROUNDS);
        }
    });
}
