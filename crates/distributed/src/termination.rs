//! Termination detection over ranks: [`RankTermination`], the token algorithm of Safra (Dijkstra,
//! EWD 998). `driver.rs` tells it what its rank does, and passes the token on.
//!
//! A rank is *active* while it has a ready step, an unsent put, or a message that it has not
//! opened. Otherwise it is *passive*, and only a message makes it active again. The run has ended
//! when all ranks are passive and no message is under way. No rank sees that by itself, and no lock
//! stops the ranks while one of them looks.
//!
//! Each rank counts the messages that it has sent minus the messages that it has received. A rank
//! that receives a message becomes black. A token goes round: from rank 0 to the last rank, then to
//! the rank before it, and so on to rank 0. Only a passive rank passes it on. The token sums up the
//! counts, is black if a rank was black that passed it on, and makes that rank white.
//!
//! **The claim.** When a token comes back to rank 0, the run has ended if rank 0 is passive and
//! white, the token is white, and the sum with the count of rank 0 is 0.
//!
//! **The proof.** Let the token be at rank `t`, so that the ranks above `t` have passed it on. In
//! each state one of these holds:
//! 1. all ranks above `t` are passive, and the sum in the token is that of their counts;
//! 2. the counts of the ranks `0..=t` and the sum in the token are together above 0;
//! 3. one of the ranks `0..=t` is black;
//! 4. the token is black.
//!
//! The first one holds when a round begins. A rank that passes the token on is passive and adds its
//! count, so the first one stays true; if the rank was black, the fourth one holds from then on. A
//! rank above `t` leaves the first one only by a message that it receives. The number of messages
//! under way is the sum of all counts. So before it receives the message, the sum of all counts is
//! above 0: with the first one true, the sum in the token and the counts of `0..=t` are above 0,
//! which is the second one, and the receipt does not change it, because it changes the count of a
//! rank above `t`. The second one ends only by a receipt of a rank `0..=t`, which becomes black:
//! that is the third one. It stays until that rank passes the token on, which makes the token
//! black. In the state of the claim the last three are false, so the first one is true: all ranks
//! are passive, and the sum of all counts is 0, so no message is under way.
//!
//! **It is found.** When the run has ended, no count changes and no rank becomes black any more.
//! The round under way makes all ranks white, the next one brings back a white token with the sum
//! 0.
//!
//! The tests below visit every state of small worlds.

/// What goes round the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TerminationToken {
    pub(crate) count: i64,
    pub(crate) is_black: bool,
}

/// What a passive rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassiveMove {
    /// It waits for a message.
    Wait,
    /// It passes the token on to a rank, and waits.
    Pass(usize, TerminationToken),
    /// The run has ended. Rank 0 tells the others.
    Over,
}

/// One rank's part of the algorithm, for one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RankTermination {
    rank: usize,
    ranks: usize,
    /// The messages that were sent, minus the messages that were received.
    count: i64,
    is_black: bool,
    token: Option<TerminationToken>,
}

impl RankTermination {
    pub(crate) fn new(rank: usize, ranks: usize) -> RankTermination {
        // A black token ends no run, so rank 0 begins the first round with it.
        let token = (rank == 0).then_some(TerminationToken { count: 0, is_black: ranks > 1 });
        RankTermination { rank, ranks, count: 0, is_black: false, token }
    }

    /// The rank has sent a message.
    pub(crate) fn sent(&mut self) {
        self.count += 1;
    }

    /// The rank has received a message.
    pub(crate) fn received(&mut self) {
        self.count -= 1;
        self.is_black = true;
    }

    /// The token has come.
    pub(crate) fn take(&mut self, token: TerminationToken) {
        self.token = Some(token);
    }

    /// The rank is passive.
    pub(crate) fn passive(&mut self) -> PassiveMove {
        let Some(token) = self.token.take() else { return PassiveMove::Wait };
        let count = token.count + self.count;
        let was_black = std::mem::replace(&mut self.is_black, false);
        let is_black = token.is_black || was_black;
        match self.rank {
            0 if count == 0 && !is_black => PassiveMove::Over,
            0 => PassiveMove::Pass(self.ranks - 1, TerminationToken { count: 0, is_black: false }),
            _ => PassiveMove::Pass(self.rank - 1, TerminationToken { count, is_black }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// What is left out of the algorithm, to see that the exploration notices it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum LeftOut {
        Nothing,
        /// A receipt makes no rank black.
        Colour,
        /// The token counts nothing.
        Count,
    }

    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    struct World {
        ranks: Vec<RankTermination>,
        is_active: Vec<bool>,
        /// The number of messages under way to each rank.
        under_way: Vec<u8>,
        token: Option<(usize, TerminationToken)>,
        /// How many more messages may be sent.
        left: u8,
    }

    impl World {
        fn new(ranks: usize, active: &[usize], left: u8) -> World {
            World {
                ranks: (0..ranks).map(|rank| RankTermination::new(rank, ranks)).collect(),
                is_active: (0..ranks).map(|rank| active.contains(&rank)).collect(),
                under_way: vec![0; ranks],
                token: None,
                left,
            }
        }

        fn has_ended(&self) -> bool {
            self.is_active.iter().all(|active| !active) && self.under_way.iter().all(|number| *number == 0)
        }

        /// A passive rank acts. True if the run is said to have ended.
        fn passive(&mut self, rank: usize, left_out: LeftOut) -> bool {
            if left_out == LeftOut::Count {
                self.ranks[rank].count = 0;
            }
            match self.ranks[rank].passive() {
                PassiveMove::Wait => {}
                PassiveMove::Pass(to, token) => self.token = Some((to, token)),
                PassiveMove::Over => return true,
            }
            false
        }

        /// All states that follow, and whether one of them says that the run has ended.
        fn next(&self, left_out: LeftOut) -> (Vec<World>, bool) {
            let (mut next, mut over) = (Vec::new(), false);
            for rank in 0..self.ranks.len() {
                if self.is_active[rank] {
                    let mut rests = self.clone();
                    rests.is_active[rank] = false;
                    next.push(rests);
                    for to in (0..self.ranks.len()).filter(|to| *to != rank && self.left > 0) {
                        let mut sends = self.clone();
                        sends.left -= 1;
                        sends.under_way[to] += 1;
                        sends.ranks[rank].sent();
                        next.push(sends);
                    }
                } else if self.ranks[rank].token.is_some() {
                    let mut acts = self.clone();
                    match acts.passive(rank, left_out) {
                        true => over = true,
                        false => next.push(acts),
                    }
                }
                if self.under_way[rank] > 0 {
                    let mut receives = self.clone();
                    receives.under_way[rank] -= 1;
                    receives.is_active[rank] = true;
                    receives.ranks[rank].received();
                    if left_out == LeftOut::Colour {
                        receives.ranks[rank].is_black = false;
                    }
                    next.push(receives);
                }
            }
            if let Some((to, token)) = self.token {
                let mut comes = self.clone();
                comes.token = None;
                comes.ranks[to].take(token);
                next.push(comes);
            }
            (next, over)
        }
    }

    /// Visits all states: the number of them, and the first state in which the run is said to have
    /// ended and has not.
    fn explore(first: World, left_out: LeftOut) -> (usize, Option<World>) {
        let mut seen = HashSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some(world) = open.pop() {
            let (next, over) = world.next(left_out);
            if over && !world.has_ended() {
                return (seen.len(), Some(world));
            }
            open.extend(next.into_iter().filter(|world| seen.insert(world.clone())));
        }
        (seen.len(), None)
    }

    #[test]
    fn no_run_is_ended_too_early_in_any_state_of_small_worlds() {
        for (ranks, active, left) in
            [(1, &[0][..], 0), (2, &[0], 5), (2, &[0, 1], 5), (3, &[0], 4), (3, &[1, 2], 3), (4, &[2], 3)]
        {
            let (states, wrong) = explore(World::new(ranks, active, left), LeftOut::Nothing);
            assert_eq!(wrong, None, "{ranks} ranks");
            assert!(ranks == 1 || states > 100, "{states} states of {ranks} ranks");
        }
    }

    #[test]
    fn the_exploration_notices_what_is_left_out() {
        for left_out in [LeftOut::Colour, LeftOut::Count] {
            let (_, wrong) = explore(World::new(3, &[0, 1, 2], 3), left_out);
            assert!(wrong.is_some(), "{left_out:?}");
        }
    }

    /// From each state in which the run has ended, two rounds and the rest of one find it.
    #[test]
    fn the_end_is_found() {
        let mut seen = HashSet::from([World::new(3, &[0, 1, 2], 3)]);
        let mut open: Vec<World> = seen.iter().cloned().collect();
        let mut ended = 0;
        while let Some(world) = open.pop() {
            if world.has_ended() {
                ended += 1;
                assert!(finds_the_end(world.clone()), "{world:?}");
            }
            let (next, _) = world.next(LeftOut::Nothing);
            open.extend(next.into_iter().filter(|world| seen.insert(world.clone())));
        }
        assert!(ended > 10, "{ended} states");
    }

    fn finds_the_end(mut world: World) -> bool {
        for _ in 0..3 * world.ranks.len() + 1 {
            if let Some((to, token)) = world.token.take() {
                world.ranks[to].take(token);
            }
            let Some(rank) = world.ranks.iter().position(|rank| rank.token.is_some()) else { return false };
            if world.passive(rank, LeftOut::Nothing) {
                return true;
            }
        }
        false
    }
}
