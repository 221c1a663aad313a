//! Random sends and receives on a mailbox, against a matching that looks at every message and every
//! receive.

use proptest::prelude::*;
use selvedge_core::round_robin;
use selvedge_mpi::{ANY, Communicator, Error, Matched, Request, Source, Status, Tags, run};

/// What a rank does to itself: it is sender and receiver, so the order of all is known.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A message with this tag, on the communicator with this number.
    Send {
        lane: usize,
        tag: u32,
    },
    Post {
        lane: usize,
        any_source: bool,
        tag: Option<u32>,
    },
    /// Drops the receive with this number among the posted ones, in the order of posting.
    GiveUp {
        which: usize,
    },
    /// Collects that receive, if its message has come.
    Test {
        which: usize,
    },
    Probe {
        lane: usize,
        any_source: bool,
        tag: Option<u32>,
    },
    /// Takes a message, and puts it back later.
    Take {
        lane: usize,
        tag: Option<u32>,
    },
    PutBack {
        which: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let tag = || 0..3_u32;
    let act = prop_oneof![
        4 => (0..2_usize, tag()).prop_map(|(lane, tag)| Act::Send { lane, tag }),
        3 => (0..2_usize, any::<bool>(), prop::option::of(tag()))
            .prop_map(|(lane, any_source, tag)| Act::Post { lane, any_source, tag }),
        2 => (0..4_usize).prop_map(|which| Act::GiveUp { which }),
        2 => (0..4_usize).prop_map(|which| Act::Test { which }),
        1 => (0..2_usize, any::<bool>(), prop::option::of(tag()))
            .prop_map(|(lane, any_source, tag)| Act::Probe { lane, any_source, tag }),
        1 => (0..2_usize, prop::option::of(tag())).prop_map(|(lane, tag)| Act::Take { lane, tag }),
        1 => (0..2_usize).prop_map(|which| Act::PutBack { which }),
    ];
    prop::collection::vec(act, 0..60)
}

/// A message: its number in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sent {
    number: u64,
    lane: usize,
    tag: u32,
}

/// A receive, and the message that it has got.
#[derive(Debug, Clone)]
struct Posted {
    lane: usize,
    tag: Option<u32>,
    got: Option<Sent>,
}

/// The matching, as slow as it is plain.
#[derive(Debug, Default)]
struct Model {
    next: u64,
    /// In the order of sending.
    messages: Vec<Sent>,
    /// In the order of posting.
    receives: Vec<Posted>,
    taken: Vec<Sent>,
}

impl Model {
    fn matches(lane: usize, tag: Option<u32>, sent: &Sent) -> bool {
        lane == sent.lane && tag.is_none_or(|tag| tag == sent.tag)
    }

    /// Gives a message to the first receive for it, or puts it at its place among the others.
    fn arrive(&mut self, sent: Sent) {
        let waits = |it: &&mut Posted| it.got.is_none() && Model::matches(it.lane, it.tag, &sent);
        match self.receives.iter_mut().find(waits) {
            Some(receive) => receive.got = Some(sent),
            None => {
                self.messages.push(sent);
                self.messages.sort_by_key(|sent| sent.number);
            }
        }
    }

    fn first(&self, lane: usize, tag: Option<u32>) -> Option<usize> {
        self.messages.iter().position(|sent| Model::matches(lane, tag, sent))
    }
}

fn tags(tag: Option<u32>) -> Tags {
    tag.map_or(Tags::Any, Tags::from)
}

fn source(any: bool) -> Source {
    if any { ANY.into() } else { Source::Rank(0) }
}

async fn compare(world: Communicator, acts: Vec<Act>) -> Result<(), Error> {
    let lanes = [world.clone(), world.dup().await?];
    let mut model = Model::default();
    let mut receives: Vec<Request<(u64, Status)>> = Vec::new();
    let mut taken: Vec<Matched> = Vec::new();
    for act in acts {
        match act {
            Act::Send { lane, tag } => {
                let sent = Sent { number: model.next, lane, tag };
                model.next += 1;
                lanes[lane].send(0, tag, sent.number).await?;
                model.arrive(sent);
            }
            Act::Post { lane, any_source, tag } => {
                receives.push(lanes[lane].irecv(source(any_source), tags(tag)));
                let got = model.first(lane, tag).map(|at| model.messages.remove(at));
                model.receives.push(Posted { lane, tag, got });
            }
            Act::GiveUp { which } if which < receives.len() => {
                drop(receives.remove(which));
                if let Some(sent) = model.receives.remove(which).got {
                    model.arrive(sent);
                }
            }
            Act::Test { which } if which < receives.len() => {
                let got = receives[which].test().transpose()?;
                let expected = model.receives[which].got;
                assert_eq!(
                    got.map(|(number, status)| (number, status.tag.0)),
                    expected.map(|it| (it.number, it.tag))
                );
                if expected.is_some() {
                    drop(receives.remove(which));
                    model.receives.remove(which);
                }
            }
            Act::Probe { lane, any_source, tag } => {
                let seen = lanes[lane].iprobe(source(any_source), tags(tag))?;
                let expected = model.first(lane, tag).map(|at| model.messages[at].tag);
                assert_eq!(seen.map(|status| status.tag.0), expected);
            }
            Act::Take { lane, tag } => {
                let got = lanes[lane].improbe(0, tags(tag))?;
                let expected = model.first(lane, tag).map(|at| model.messages.remove(at));
                assert_eq!(got.as_ref().map(|it| it.status().tag.0), expected.map(|it| it.tag));
                taken.extend(got);
                model.taken.extend(expected);
            }
            Act::PutBack { which } if which < taken.len() => {
                drop(taken.remove(which));
                let sent = model.taken.remove(which);
                model.arrive(sent);
            }
            Act::GiveUp { .. } | Act::Test { .. } | Act::PutBack { .. } => {}
        }
    }
    // All that is left, in the order of its arrival.
    drop(taken);
    for sent in std::mem::take(&mut model.taken) {
        model.arrive(sent);
    }
    for (request, expected) in receives.into_iter().zip(model.receives) {
        assert_eq!(
            request.cancel().transpose()?.map(|(number, _)| number),
            expected.got.map(|sent| sent.number)
        );
    }
    for (lane, communicator) in lanes.iter().enumerate() {
        for sent in model.messages.iter().filter(|sent| sent.lane == lane) {
            assert_eq!(communicator.recv::<u64>(ANY, ANY).await?.0, sent.number);
        }
        assert!(communicator.iprobe(ANY, ANY)?.is_none());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_mailbox_matches_as_the_model_does(acts in acts()) {
        round_robin(run(1, move |world| compare(world, acts.clone()))).unwrap().unwrap();
    }
}
