//! Sends, receives, requests and probes of the simple interface.

use super::cases;
use selvedge_mpi::{ANY, ErrorClass, Source, Status, Tag, wait_all};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A value with everything that serde knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    flag: bool,
    number: i64,
    wide: i128,
    small: (u8, i8, u16, i16),
    real: (f32, f64),
    letter: char,
    text: String,
    maybe: Option<Box<Record>>,
    kinds: Vec<Kind>,
    table: BTreeMap<String, Vec<u32>>,
    pairs: HashMap<u16, ()>,
    fixed: [u32; 3],
}

/// A value with elements that go in one piece.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Block {
    name: String,
    #[serde(with = "selvedge_mpi::raw")]
    cells: Vec<f64>,
    ends: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    One(u64),
    Two(String, bool),
    Named { x: f64, y: Option<i32> },
}

fn record() -> Record {
    let inner = Record {
        flag: false,
        number: i64::MIN,
        wide: i128::MAX,
        small: (u8::MAX, i8::MIN, u16::MAX, i16::MIN),
        real: (f32::MIN_POSITIVE, f64::NEG_INFINITY),
        letter: '\u{10FFFF}',
        text: "Faden \u{1F9F5}".to_string(),
        maybe: None,
        kinds: vec![Kind::Unit, Kind::One(u64::MAX), Kind::Two("warp".into(), true)],
        table: BTreeMap::from([("weft".to_string(), vec![0, u32::MAX])]),
        pairs: HashMap::from([(7, ()), (9, ())]),
        fixed: [1, 2, 3],
    };
    let kinds = vec![Kind::Named { x: -0.0, y: Some(-1) }, Kind::Named { x: 0.5, y: None }];
    Record { flag: true, maybe: Some(Box::new(inner.clone())), kinds, ..inner }
}

cases! {
    /// A rank waits for a message that the other one sends when a second thread of the first has
    /// had many turns, on one worker too.
    a_receive_that_waits_leaves_the_worker_to_others(2, world) {
        let other = 1 - world.rank();
        let there = world.clone();
        let turns = selvedge_core::spawn(async move {
            for _ in 0..1000 {
                selvedge_core::yield_now().await;
            }
            there.send(other, 1, 7_u32).await
        });
        assert_eq!(world.recv::<u32>(other, 1).await?.0, 7);
        turns.await.expect("the thread does not panic")?;
    }
    /// Receives of two threads, one from any source, while messages come. Each gets its own, and
    /// the messages of one tag keep their order.
    receives_of_two_threads_side_by_side(2, world) {
        const MESSAGES: u32 = 300;
        let other = 1 - world.rank();
        let there = world.clone();
        let second = selvedge_core::spawn(async move {
            for number in 0..MESSAGES {
                let (value, status) = there.recv::<u32>(ANY, 2).await?;
                assert_eq!((value, status.source), (number, other));
            }
            Ok::<_, selvedge_mpi::Error>(())
        });
        for number in 0..MESSAGES {
            world.send(other, 2, number).await?;
            world.send(other, 1, number).await?;
            assert_eq!(world.recv::<u32>(other, 1).await?.0, number);
        }
        second.await.expect("the thread does not panic")?;
    }
    /// Vectors of numbers of any length, for receives that wait and for receives that come late,
    /// between other values: each comes as it was, in order, and a vector of another type is an
    /// error of one receive alone.
    vectors_of_numbers(2, world) {
        const LENGTHS: [usize; 10] = [0, 1, 127, 128, 2_047, 4_095, 4_096, 4_097, 20_000, 300_000];
        let other = 1 - world.rank();
        for comes_late in [false, true] {
            for length in LENGTHS {
                let floats: Vec<f64> = (0..length).map(|number| number as f64 / 4.0 - 9.0).collect();
                let shorts: Vec<i16> = (0..length).map(|number| number as i16).collect();
                let bytes: Vec<u8> = (0..length).map(|number| number as u8).collect();
                if world.rank() == 0 {
                    world.send(other, 1, floats.clone()).await?;
                    world.send(other, 2, "between".to_string()).await?;
                    world.send(other, 1, shorts.clone()).await?;
                    world.send(other, 1, floats.clone()).await?;
                    world.send(other, 1, bytes.clone()).await?;
                    assert_eq!(world.recv::<Vec<f64>>(other, 3).await?.0, floats);
                } else {
                    if comes_late {
                        assert_eq!(world.recv::<String>(other, 2).await?.0, "between");
                    }
                    let (came, status) = world.recv::<Vec<f64>>(other, 1).await?;
                    assert_eq!((status.source, status.tag), (other, Tag(1)));
                    assert_eq!(came, floats);
                    assert_eq!(world.recv::<Vec<i16>>(other, 1).await?.0, shorts);
                    let error = world.recv::<Vec<u64>>(other, 1).await.unwrap_err();
                    assert_eq!(error.class(), ErrorClass::Type, "{error}");
                    assert_eq!(world.recv::<Vec<u8>>(other, 1).await?.0, bytes);
                    if !comes_late {
                        assert_eq!(world.recv::<String>(other, 2).await?.0, "between");
                    }
                    world.send(other, 3, came).await?;
                }
            }
        }
    }
    /// The paper's Listing 4: each rank sends to the master.
    send_and_recv(3, world) {
        if world.rank() == 0 {
            for other in 1..world.size() {
                let (part, status) = world.recv::<usize>(other, ()).await?;
                assert_eq!((part, status.source, status.tag), (other * 10, other, Tag::UNIT));
            }
        } else {
            world.send(0, (), world.rank() * 10).await?;
        }
    }

    every_kind_of_value(2, world) {
        if world.rank() == 0 {
            world.send(1, (), record()).await?;
            world.send(1, (), ()).await?;
        } else {
            assert_eq!(world.recv::<Record>(0, ()).await?.0, record());
            world.recv::<()>(0, ()).await?;
        }
    }

    /// A long vector within a value, as its bytes.
    raw_elements_in_a_value(2, world) {
        let block = Block { name: "warp".to_string(), cells: (0..20_000).map(f64::from).collect(), ends: true };
        if world.rank() == 0 {
            world.send(1, (), block).await?;
        } else {
            assert_eq!(world.recv::<Block>(0, ()).await?.0, block);
        }
    }

    ssend_is_received(2, world) {
        if world.rank() == 0 {
            world.ssend(1, 123, "message".to_string()).await?;
        } else {
            let (text, status) = world.recv::<String>(0, 123).await?;
            assert_eq!((text.as_str(), status.tag), ("message", Tag(123)));
        }
    }

    /// A synchronous send is over only when a receive has taken its message.
    ssend_waits_for_the_receive(2, world) {
        if world.rank() == 0 {
            let mut sending = world.issend(1, 1, 1);
            // The other rank receives tag 1 only after it has this.
            assert!(sending.test().is_none());
            world.send(1, 2, ()).await?;
            sending.await?;
        } else {
            world.recv::<()>(0, 2).await?;
            assert_eq!(world.recv::<i32>(0, 1).await?.0, 1);
        }
    }

    a_rank_sends_to_itself(1, world) {
        world.send(0, 5, vec![1, 2, 3]).await?;
        assert_eq!(world.recv::<Vec<i32>>(0, 5).await?.0, [1, 2, 3]);
        let coming = world.irecv::<char>(ANY, ANY);
        world.send(0, (), 'x').await?;
        assert_eq!(coming.await?.0, 'x');
    }

    /// 400 kB, and a message of nothing after it.
    a_big_message(2, world) {
        let big: Vec<i64> = (0..50_001).collect();
        if world.rank() == 0 {
            world.send(1, (), big).await?;
            world.send(1, (), Vec::<i64>::new()).await?;
        } else {
            assert_eq!(world.recv::<Vec<i64>>(0, ()).await?.0, big);
            assert!(world.recv::<Vec<i64>>(0, ()).await?.0.is_empty());
        }
    }

    messages_do_not_overtake(2, world) {
        if world.rank() == 0 {
            for number in 0..200_u32 {
                world.send(1, number % 3, number).await?;
            }
        } else {
            // The tags in another order: within a tag, the order of the sends.
            for tag in [2, 0, 1] {
                for number in (0..200).filter(|number| number % 3 == tag) {
                    assert_eq!(world.recv::<u32>(0, tag).await?.0, number);
                }
            }
        }
    }

    a_wildcard_takes_the_earliest(2, world) {
        if world.rank() == 0 {
            for number in 0..30_u32 {
                world.send(1, number % 7, number).await?;
            }
        } else {
            for number in 0..10 {
                let (value, status) = world.recv::<u32>(0, ANY).await?;
                assert_eq!((value, status.tag), (number, Tag(number % 7)));
            }
            assert_eq!(world.recv::<u32>(ANY, 5).await?.0, 12);
            for number in (10..30).filter(|&number| number != 12) {
                assert_eq!(world.recv::<u32>(ANY, ANY).await?.0, number);
            }
        }
    }

    any_source(4, world) {
        if world.rank() == 0 {
            let mut seen = [0; 4];
            for _ in 0..30 {
                let (from, Status { source, .. }) = world.recv::<usize>(ANY, ()).await?;
                assert_eq!(from, source);
                seen[source] += 1;
            }
            assert_eq!(seen, [0, 10, 10, 10]);
        } else {
            for _ in 0..10 {
                world.send(0, (), world.rank()).await?;
            }
        }
    }

    /// Receives get messages in the order in which they were posted, whatever they ask for.
    the_first_receive_is_first(2, world) {
        if world.rank() == 1 {
            let any = world.irecv::<u32>(ANY, ANY);
            let five = world.irecv::<u32>(0, 5);
            let from_0 = world.irecv::<u32>(0, ANY);
            let tag_5 = world.irecv::<u32>(ANY, 5);
            world.send(0, (), ()).await?;
            assert_eq!(wait_all([any, five, from_0, tag_5]).await?.map_values(), [10, 11, 12, 13]);
        } else {
            world.recv::<()>(1, ()).await?;
            for number in 10..14_u32 {
                world.send(1, 5, number).await?;
            }
        }
    }

    requests_out_of_order(2, world) {
        let other = 1 - world.rank();
        let coming: Vec<_> = (0..20_u32).map(|tag| world.irecv::<u32>(other, tag)).collect();
        let going: Vec<_> = (0..20_u32).rev().map(|tag| world.isend(other, tag, tag * 2)).collect();
        for (tag, request) in (0..20).zip(coming).rev() {
            assert_eq!(request.await?.0, tag * 2);
        }
        wait_all(going).await?;
    }

    a_request_is_tested(2, world) {
        if world.rank() == 0 {
            world.recv::<()>(1, 9).await?;
            world.send(1, (), 42).await?;
        } else {
            let mut coming = world.irecv::<i32>(0, ());
            assert!(coming.test().is_none());
            world.send(0, 9, ()).await?;
            let value = loop {
                match coming.test() {
                    Some(result) => break result?.0,
                    None => selvedge_core::yield_now().await,
                }
            };
            assert_eq!(value, 42);
            assert!(coming.test().is_none());
        }
    }

    a_cancelled_receive_takes_nothing(2, world) {
        if world.rank() == 0 {
            world.recv::<()>(1, 9).await?;
            world.send(1, (), 1).await?;
        } else {
            let given_up = world.irecv::<i32>(0, ());
            let stays = world.irecv::<i32>(ANY, ANY);
            assert!(given_up.cancel().is_none());
            world.send(0, 9, ()).await?;
            assert_eq!(stays.await?.0, 1);
        }
    }

    everyone_exchanges_at_once(4, world) {
        let (rank, size) = (world.rank(), world.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        for round in 0..20 {
            let (came, status) = world.sendrecv::<_, (usize, i32)>(next, 3, (rank, round), previous, 3).await?;
            assert_eq!((came, status.source), ((previous, round), previous));
        }
    }

    a_probe_leaves_the_message(2, world) {
        if world.rank() == 0 {
            world.recv::<()>(1, ()).await?;
            world.send(1, 4, "warp".to_string()).await?;
            world.send(1, 6, 'w').await?;
        } else {
            assert!(world.iprobe(ANY, ANY)?.is_none());
            world.send(0, (), ()).await?;
            let status = world.probe(ANY, ANY).await?;
            assert_eq!((status.source, status.tag), (0, Tag(4)));
            assert_eq!(world.probe(0, 6).await?.tag, Tag(6));
            assert_eq!(world.iprobe(ANY, ANY)?.map(|status| status.tag), Some(Tag(4)));
            assert_eq!(world.recv::<String>(status.source, status.tag).await?.0, "warp");
            assert_eq!(world.recv::<char>(ANY, ANY).await?.0, 'w');
            assert!(world.iprobe(Source::Any, ANY)?.is_none());
        }
    }

    /// Probes wait beside a receive: all see the message, and the receive takes it.
    probes_and_a_receive_wait_together(2, world) {
        if world.rank() == 0 {
            world.recv::<()>(1, ()).await?;
            world.send(1, 1, 17).await?;
        } else {
            let watching: Vec<_> = (0..3)
                .map(|_| {
                    let world = world.clone();
                    selvedge_core::spawn(async move { world.probe(0, ANY).await })
                })
                .collect();
            selvedge_core::yield_now().await;
            world.send(0, (), ()).await?;
            for probe in watching {
                assert_eq!(probe.await.expect("no thread is cancelled")?.tag, Tag(1));
            }
            assert_eq!(world.recv::<i32>(ANY, ANY).await?.0, 17);
        }
    }

    a_matched_message_is_kept_or_put_back(2, world) {
        if world.rank() == 0 {
            for number in 0..3 {
                world.send(1, (), number).await?;
            }
        } else {
            let first = world.mprobe(0, ANY).await?;
            let second = world.mprobe(0, ANY).await?;
            assert_eq!(second.status().source, 0);
            drop(second); // it goes back before the third
            assert_eq!(world.recv::<i32>(0, ()).await?.0, 1);
            assert_eq!(first.recv::<i32>()?, 0);
            assert_eq!(world.recv::<i32>(0, ()).await?.0, 2);
            assert!(world.improbe(ANY, ANY)?.is_none());
        }
    }

    /// Threads of a rank each wait for a tag of their own.
    threads_of_a_rank_receive(2, world) {
        const THREADS: u32 = 200;
        if world.rank() == 0 {
            world.recv::<()>(1, THREADS).await?;
            for tag in (0..THREADS).rev() {
                world.send(1, tag, tag + 1).await?;
            }
        } else {
            let threads: Vec<_> = (0..THREADS)
                .map(|tag| {
                    let world = world.clone();
                    selvedge_core::spawn(async move { world.recv::<u32>(0, tag).await })
                })
                .collect();
            world.send(0, THREADS, ()).await?;
            for (tag, thread) in (0..).zip(threads) {
                assert_eq!(thread.await.expect("no thread is cancelled")?.0, tag + 1);
            }
        }
    }

    tags_have_a_wide_range(2, world) {
        let tags = [0, 1, 32_767, 65_536, Tag::MAX.0];
        if world.rank() == 0 {
            for tag in tags {
                world.send(1, tag, tag).await?;
            }
        } else {
            for tag in tags.into_iter().rev() {
                assert_eq!(world.recv::<u32>(0, tag).await?.0, tag);
            }
        }
    }
}

/// The values of some results.
trait MapValues<T> {
    fn map_values(self) -> Vec<T>;
}

impl<T> MapValues<T> for Vec<(T, Status)> {
    fn map_values(self) -> Vec<T> {
        self.into_iter().map(|(value, _)| value).collect()
    }
}
