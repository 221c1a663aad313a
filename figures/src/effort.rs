//! `Effort`: how thoroughly figures are measured, and for which purpose. `main.rs` makes it of the
//! command line, and each figure takes its counts and rounds from it.
//!
//! A figure passes its counts through `count`. So the purposes other than times run every program
//! with small numbers, which the tests of the project can wait for.

/// The purpose for which the programs of a figure are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Their times are shown.
    Times,
    /// Their answers are checked, with small numbers. No time is shown.
    Answers,
    /// Each of our programs is told to give a wrong answer, and the figure must notice each.
    Faults,
}

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Interleaved rounds.
    pub(crate) rounds: usize,
    /// Seconds of one run against a web server.
    pub(crate) seconds: u64,
    /// The purpose.
    pub(crate) purpose: Purpose,
}

impl Effort {
    /// The same with this number of rounds at most.
    pub(crate) fn rounds_at_most(self, rounds: usize) -> Effort {
        Effort { rounds: self.rounds.min(rounds), ..self }
    }

    /// The same with the rounds multiplied by this number, if times are measured. For cases with
    /// short runs, because one disturbance of the machine lasts longer than such a run.
    pub(crate) fn rounds_times(self, times: usize) -> Effort {
        if self.is_small() { self } else { Effort { rounds: self.rounds * times, ..self } }
    }

    /// Whether small numbers are enough.
    pub(crate) fn is_small(self) -> bool {
        self.purpose != Purpose::Times
    }

    /// `count` operations or threads; a thousandth of a million and more when small numbers are
    /// enough.
    pub(crate) fn count(self, count: u64) -> u64 {
        if self.is_small() && count >= 1_000_000 { count / 1000 } else { count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_numbers_become_small() {
        let times = Effort { rounds: 5, seconds: 2, purpose: Purpose::Times };
        let answers = Effort { purpose: Purpose::Answers, ..times };
        assert_eq!(times.count(2_000_000), 2_000_000);
        assert_eq!([2_000_000, 100_000, 1].map(|count| answers.count(count)), [2000, 100_000, 1]);
        assert_eq!(times.rounds_at_most(3).rounds, 3);
        assert_eq!([times, answers].map(|effort| effort.rounds_times(3).rounds), [15, 5]);
    }
}
