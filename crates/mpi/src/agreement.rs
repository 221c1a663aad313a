//! [`agree`]: the ranks that live agree on a value, whichever ranks end meanwhile.
//!
//! `recovery.rs` has the operations that the program calls. The messages of an agreement have a
//! lane of their own, so a revocation ends none.
//!
//! # The protocol
//! In round `k` rank `k` leads, and the round is over when `k` has ended. So the rounds before that
//! of the first rank that lives are over at once.
//! 1. Each other rank tells the leader what it gives.
//! 2. The leader waits for all ranks that live. If it has prepared a value in an earlier round, it
//!    takes that one; otherwise it decides one. It prepares the value, and tells the others to.
//! 3. Each of them prepares the value, in place of an earlier one, and says so to the leader.
//! 4. When all that live have said so, the value is final. The leader tells all ranks.
//! 5. A rank that hears of the final value tells all ranks before it returns.
//!
//! # Why no two ranks get different values
//! A value is final when each rank that lives has prepared it last. A later leader is one of these
//! ranks, so it takes the same value, and the others prepare the same again. So no other value
//! becomes final. This holds also for a rank that has returned and ended: no rank that lives gets
//! another value than that one.
//!
//! A rank that lives and has returned tells no leader what it gives. But it has told all ranks the
//! final value before, so no later leader waits for it in vain.
//!
//! # Why it ends
//! An engine tells each rank of each end, after the last message of the rank that has ended. A rank
//! waits for one that it knows by its number, and for a message of any rank. So each wait ends by a
//! message or by an end, and there are as many rounds as ranks.

use crate::collective::CollectiveRound;
use crate::error::Error;
use crate::payload::{Message, Value};

/// What one rank tells another.
enum AgreementNotice<G, V> {
    /// To the leader: what the rank gives.
    Given(G),
    /// Of the leader: the value to prepare.
    Prepare(V),
    /// To the leader: the rank has prepared the value.
    Prepared,
    Final(V),
}

/// One agreement on one rank, in which each rank gives a `G`, and the value is a `V`.
struct Agreement<G, V> {
    round: CollectiveRound,
    /// The value that this rank has prepared.
    prepared: Option<V>,
    /// What each rank has given this one as the leader.
    given: Vec<Option<G>>,
    /// Which ranks have told this one that they have prepared its value.
    said_so: Vec<bool>,
}

/// What a rank has heard while it waited.
enum AgreementHeard<V> {
    /// The final value.
    Final(V),
    /// The leader's value, which is prepared now.
    Prepare,
    /// Something that was noted.
    Noted,
    /// The awaited rank has ended.
    End,
}

/// What this rank gives goes to the leader, which decides by what all ranks give that live: in
/// pairs, with the ranks in their order.
///
/// # Errors
/// If this rank itself has ended, or another rank calls something else.
pub(crate) async fn agree<G: Message + Clone, V: Message + Clone>(
    round: CollectiveRound,
    own: G,
    decide: impl FnOnce(Vec<(usize, G)>) -> V + Send,
) -> Result<V, Error> {
    let size = round.size();
    let (given, said_so) = ((0..size).map(|_| None).collect(), vec![false; size]);
    let mut agreement = Agreement { round, prepared: None, given, said_so };
    let me = agreement.round.rank();
    agreement.given[me] = Some(own.clone());
    let mut agreed = None;
    for leader in 0..me {
        agreed = agreement.follow(leader, own.clone()).await?;
        if agreed.is_some() {
            break;
        }
    }
    let agreed = match agreed {
        Some(value) => value,
        None => agreement.lead(decide).await?,
    };
    agreement.tell_all(|| AgreementNotice::Final(agreed.clone()));
    agreement.round.end_agreement();
    Ok(agreed)
}

impl<G: Message + Clone, V: Message + Clone> Agreement<G, V> {
    /// A round of another leader. `None` if the leader has ended without a final value.
    async fn follow(&mut self, leader: usize, own: G) -> Result<Option<V>, Error> {
        self.tell(leader, AgreementNotice::Given(own));
        loop {
            match self.hear(leader).await? {
                AgreementHeard::Final(value) => return Ok(Some(value)),
                AgreementHeard::Prepare => self.tell(leader, AgreementNotice::Prepared),
                AgreementHeard::Noted => {}
                AgreementHeard::End => return Ok(None),
            }
        }
    }

    /// The round of this rank.
    async fn lead(&mut self, decide: impl FnOnce(Vec<(usize, G)>) -> V) -> Result<V, Error> {
        let (me, size) = (self.round.rank(), self.round.size());
        for other in (0..size).filter(|&other| other != me) {
            while self.given[other].is_none() {
                match self.hear(other).await? {
                    AgreementHeard::Final(value) => return Ok(value),
                    AgreementHeard::End => break,
                    AgreementHeard::Prepare | AgreementHeard::Noted => {}
                }
            }
        }
        let value = match self.prepared.take() {
            Some(value) => value,
            None => {
                let given = self.given.iter().cloned().enumerate();
                decide(given.filter_map(|(rank, given)| Some((rank, given?))).collect())
            }
        };
        self.prepared = Some(value.clone());
        self.tell_all(|| AgreementNotice::Prepare(value.clone()));
        for other in (0..size).filter(|&other| other != me) {
            while !self.said_so[other] {
                match self.hear(other).await? {
                    AgreementHeard::Final(value) => return Ok(value),
                    AgreementHeard::End => break,
                    AgreementHeard::Prepare | AgreementHeard::Noted => {}
                }
            }
        }
        Ok(value)
    }

    /// Waits for the next notice of any rank, or the end of one.
    async fn hear(&mut self, awaited: usize) -> Result<AgreementHeard<V>, Error> {
        let heard = self.round.recv_unless_ended::<Value<SentNotice<G, V>>>(awaited).await?;
        let Some((from, Value(notice))) = heard else { return Ok(AgreementHeard::End) };
        Ok(match AgreementNotice::received(notice) {
            AgreementNotice::Given(given) => {
                self.given[from] = Some(given);
                AgreementHeard::Noted
            }
            AgreementNotice::Prepare(value) => {
                self.prepared = Some(value);
                AgreementHeard::Prepare
            }
            AgreementNotice::Prepared => {
                self.said_so[from] = true;
                AgreementHeard::Noted
            }
            AgreementNotice::Final(value) => AgreementHeard::Final(value),
        })
    }

    fn tell(&mut self, to: usize, notice: AgreementNotice<G, V>) {
        // To a rank that has ended nothing need be told.
        let _ = self.round.send(to, Value(notice.sent()));
    }

    fn tell_all(&mut self, notice: impl Fn() -> AgreementNotice<G, V>) {
        let me = self.round.rank();
        for other in (0..self.round.size()).filter(|&other| other != me) {
            self.tell(other, notice());
        }
    }
}

/// A notice as it is sent, made of types that serde knows: what is given; or a value, and whether
/// it is final; or nothing.
type SentNotice<G, V> = (Option<G>, Option<(V, bool)>);

impl<G, V> AgreementNotice<G, V> {
    fn sent(self) -> SentNotice<G, V> {
        match self {
            AgreementNotice::Given(given) => (Some(given), None),
            AgreementNotice::Prepare(value) => (None, Some((value, false))),
            AgreementNotice::Prepared => (None, None),
            AgreementNotice::Final(value) => (None, Some((value, true))),
        }
    }

    fn received(sent: SentNotice<G, V>) -> AgreementNotice<G, V> {
        match sent {
            (Some(given), _) => AgreementNotice::Given(given),
            (None, Some((value, false))) => AgreementNotice::Prepare(value),
            (None, Some((value, true))) => AgreementNotice::Final(value),
            (None, None) => AgreementNotice::Prepared,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::collective::CollectiveKind;
    use crate::communicator::Communicator;
    use crate::cut_short::CutShort;
    use crate::engine::Engine;
    use selvedge_core::{spawn, yield_now};
    use std::sync::{Arc, Mutex};

    /// The ranks agree on the list of the ranks that gave, twice. The ranks in `ends` end after a
    /// number of sends.
    async fn agreements(ranks: usize, ends: Vec<(usize, usize)>) {
        let engine = Arc::new(CutShort::new(ranks, &ends));
        let values = Arc::new(Mutex::new(vec![Vec::new(); ranks]));
        let rank = |rank| {
            let world = Communicator::world(engine.clone(), rank);
            let values = values.clone();
            spawn(async move {
                for _ in 0..2 {
                    let round =
                        CollectiveRound::agreement(&world, world.call("agree"), CollectiveKind::Agree);
                    let ranks =
                        |given: Vec<(usize, u32)>| given.into_iter().map(|(_, given)| given).collect();
                    let Ok(value) = agree::<u32, Vec<u32>>(round, world.rank() as u32, ranks).await else {
                        return;
                    };
                    values.lock().unwrap()[rank].push(value);
                    yield_now().await;
                }
            })
        };
        let threads: Vec<_> = (0..ranks).map(rank).collect();
        engine.end_those_that_send_nothing();
        for thread in threads {
            thread.await.unwrap();
        }
        let values = values.lock().unwrap();
        let lives = |rank: &usize| ends.iter().all(|(ended, _)| ended != rank);
        let agreed = &values[(0..ranks).find(lives).unwrap()];
        assert_eq!(agreed.len(), 2, "{ends:?}");
        for (rank, values) in values.iter().enumerate() {
            let has_ended = !lives(&rank);
            assert!(agreed.starts_with(values) && (has_ended || values.len() == 2), "{ends:?}: {values:?}");
            assert!(has_ended || agreed.iter().all(|value| value.contains(&(rank as u32))), "{ends:?}");
        }
        for rank in (0..ranks).filter(lives) {
            assert_eq!(engine.mailbox(rank).load(), (0, 0), "rank {rank} keeps messages, {ends:?}");
        }
    }

    #[test]
    fn one_rank_ends_at_each_of_its_sends() {
        for ranks in [1, 2, 3, 5] {
            selvedge_sim::simulate(0..20, || agreements(ranks, Vec::new()));
        }
        for ended in 0..4 {
            for sends in 0..=24 {
                selvedge_sim::simulate(0..20, || agreements(4, vec![(ended, sends)]));
            }
        }
    }

    #[test]
    fn two_ranks_end_at_each_of_their_sends() {
        for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            for (sends, others) in (0..=13).flat_map(|sends| (0..=13).map(move |others| (sends, others))) {
                selvedge_sim::simulate(0..4, || agreements(4, vec![(one, sends), (other, others)]));
            }
        }
    }

    #[test]
    fn all_but_one_end() {
        for sends in 0..=9 {
            for others in 0..=9 {
                let ends = vec![(0, sends), (1, others), (2, (sends + others) / 2)];
                selvedge_sim::simulate(0..8, || agreements(4, ends.clone()));
            }
        }
    }
}
