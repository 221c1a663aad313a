//! The number of calls that a message costs: where a short read proves that nothing is left, no
//! call is made in vain. (The calls of the process are counted, so this test has a file of its
//! own.)

mod common;

use common::{run, tcp_pair};
use selvedge_core::spawn_local;
use selvedge_io::calls;
use selvedge_io::net::{Stream, UnixStream};

/// The number of reads of `one` and `other`, over `rounds` messages and as many answers.
async fn reads(one: Stream, other: Stream, rounds: u64) -> u64 {
    let made = || {
        let (total, _) = calls::counted();
        total.kinds.iter().find(|(name, _)| *name == "recv").map_or(0, |(_, tally)| tally.calls)
    };
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

#[test]
fn a_message_of_a_stream_costs_one_read() {
    const ROUNDS: u64 = 1000;
    run(async {
        calls::count(true);
        let (one, other) = tcp_pair().await;
        let tcp = reads(one.into(), other.into(), ROUNDS).await;
        let (one, other) = UnixStream::pair().unwrap();
        let unix = reads(one.into(), other.into(), ROUNDS).await;
        for (what, made) in [("TCP", tcp), ("Unix", unix)] {
            assert!((2 * ROUNDS..2 * ROUNDS + 20).contains(&made), "{what}: {made} reads of {}", 2 * ROUNDS);
        }
    });
}
