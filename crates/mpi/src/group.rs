//! [`Group`]: an ordered set of ranks, without a way to send; and how two of them compare.
//!
//! A communicator has one (`communicator.rs`), and `split.rs` makes communicators out of them. A
//! group holds world ranks, so groups of different communicators of one world can be compared.

use std::fmt;
use std::sync::Arc;

/// An ordered set of ranks of a world.
///
/// A program makes new ones from that of a communicator, and with
/// [`Communicator::create`](crate::Communicator::create) a communicator out of one. It is freed
/// when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Group(Arc<[u32]>);

/// How two groups, or two communicators, are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]

pub enum ComparisonResult {
    /// They are the same communicator, or groups with the same ranks in the same order.
    #[doc(alias = "MPI_IDENT")]
    Identical,
    /// They are communicators with the same ranks in the same order.
    #[doc(alias = "MPI_CONGRUENT")]
    Congruent,
    /// They have the same ranks in another order.
    #[doc(alias = "MPI_SIMILAR")]
    Similar,
    /// They do not have the same ranks.
    #[doc(alias = "MPI_UNEQUAL")]
    Unequal,
}

impl Group {
    pub(crate) fn of(ranks: impl Into<Arc<[u32]>>) -> Group {
        Group(ranks.into())
    }

    /// The group of no rank.
    #[doc(alias = "groupEmpty")]
    #[doc(alias = "MPI_GROUP_EMPTY")]
    pub fn empty() -> Group {
        Group::of([])
    }

    pub(crate) fn world_ranks(&self) -> &Arc<[u32]> {
        &self.0
    }

    /// The number of its ranks.
    #[doc(alias = "groupSize")]
    #[doc(alias = "MPI_Group_size")]
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// The place in this group of a rank of another group, if this group has it.
    ///
    /// # Panics
    /// If the other group has no such rank.
    #[doc(alias = "groupTranslateRanks")]
    #[doc(alias = "groupRank")]
    #[doc(alias = "MPI_Group_rank")]
    #[doc(alias = "MPI_Group_translate_ranks")]
    pub fn translate(&self, other: &Group, rank: usize) -> Option<usize> {
        self.position(other.0[rank])
    }

    pub(crate) fn position(&self, world_rank: u32) -> Option<usize> {
        // The group of the world, and each part of it that is in order from 0, has each at its
        // number.
        match self.0.get(world_rank as usize) {
            Some(&here) if here == world_rank => Some(world_rank as usize),
            _ => self.0.iter().position(|&rank| rank == world_rank),
        }
    }

    fn has(&self, world_rank: u32) -> bool {
        self.position(world_rank).is_some()
    }

    /// The ranks of this group, and then those of the other that this one does not have.
    #[doc(alias = "groupUnion")]
    #[doc(alias = "MPI_Group_union")]
    pub fn union(&self, other: &Group) -> Group {
        let more = other.0.iter().filter(|&&rank| !self.has(rank));
        Group(self.0.iter().chain(more).copied().collect())
    }

    /// The ranks of this group that the other has too, in the order of this one.
    #[doc(alias = "groupIntersection")]
    #[doc(alias = "MPI_Group_intersection")]
    pub fn intersection(&self, other: &Group) -> Group {
        Group(self.0.iter().copied().filter(|&rank| other.has(rank)).collect())
    }

    /// The ranks of this group that the other does not have.
    #[doc(alias = "groupDifference")]
    #[doc(alias = "MPI_Group_difference")]
    pub fn difference(&self, other: &Group) -> Group {
        Group(self.0.iter().copied().filter(|&rank| !other.has(rank)).collect())
    }

    /// These ranks of the group, in the given order.
    ///
    /// # Panics
    /// If the group has no such rank, or one is named twice.
    #[doc(alias = "groupIncl")]
    #[doc(alias = "MPI_Group_incl")]
    #[track_caller]
    pub fn include(&self, ranks: &[usize]) -> Group {
        let mut chosen = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            let world_rank = self.0[rank];
            assert!(!chosen.contains(&world_rank), "rank {rank} is named twice");
            chosen.push(world_rank);
        }
        Group::of(chosen)
    }

    /// The group without these ranks.
    ///
    /// # Panics
    /// If the group has no such rank, or one is named twice.
    #[doc(alias = "groupExcl")]
    #[doc(alias = "MPI_Group_excl")]
    #[track_caller]
    pub fn exclude(&self, ranks: &[usize]) -> Group {
        self.difference(&self.include(ranks))
    }

    /// How the two are alike: identical, similar or unequal.
    #[doc(alias = "groupCompare")]
    #[doc(alias = "MPI_Group_compare")]
    pub fn compare(&self, other: &Group) -> ComparisonResult {
        match (self == other, self.size() == other.size() && self.0.iter().all(|&rank| other.has(rank))) {
            (true, _) => ComparisonResult::Identical,
            (_, true) => ComparisonResult::Similar,
            _ => ComparisonResult::Unequal,
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group{:?}", self.0)
    }
}
