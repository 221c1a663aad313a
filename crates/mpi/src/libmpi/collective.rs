//! [`Collective`]: the collective calls, and [`CallPlan`]: one rank's part of a call, with the
//! memory and the counts that MPI reads and writes.
//!
//! `comm.rs` makes plans on the OS thread of the caller, and `driver.rs` has the library work them
//! off. A plan is checked when it is made, so that `calls.rs` need not check lengths.

use super::error::{MpiError, MpiErrorClass};
use super::memory::MpiMemory;
use super::scalar::{ReduceOp, Scalar};
use std::ffi::c_int;

/// A collective call, with what each rank says besides the numbers that it gives. All ranks of a
/// communicator make the same calls in the same order.
///
/// The numbers that a rank gives go with the call as [`MpiMemory`]. Their kind is the same on all
/// ranks, also of a rank that gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Waits until all ranks have made the call.
    Barrier,
    /// All ranks receive the root's numbers. The other ranks give memory of the same length, which
    /// is overwritten.
    Bcast {
        /// The rank that has the numbers.
        root: usize,
    },
    /// The root receives the joined numbers.
    Reduce {
        /// The rank that receives.
        root: usize,
        /// The operation.
        op: ReduceOp,
    },
    /// All ranks receive the joined numbers.
    Allreduce {
        /// The operation.
        op: ReduceOp,
    },
    /// Each rank receives the joined numbers of the ranks up to itself.
    Scan {
        /// The operation.
        op: ReduceOp,
    },
    /// Each rank receives the joined numbers of the ranks before itself. Rank 0 receives zeros.
    Exscan {
        /// The operation.
        op: ReduceOp,
    },
    /// The numbers are joined, and each rank receives one of as many blocks of the same length as
    /// there are ranks.
    ReduceScatterBlock {
        /// The operation.
        op: ReduceOp,
    },
    /// The root receives the numbers of all ranks, which give the same count.
    Gather {
        /// The rank that receives.
        root: usize,
    },
    /// The root receives the numbers of all ranks.
    Gatherv {
        /// The rank that receives.
        root: usize,
        /// How many numbers each rank gives. Only the root says so.
        counts: Vec<usize>,
    },
    /// Each rank receives its block of the root's numbers. Only the root gives numbers.
    Scatter {
        /// The rank that has the numbers.
        root: usize,
        /// The numbers of a block.
        block: usize,
    },
    /// Each rank receives its block of the root's numbers. Only the root gives numbers.
    Scatterv {
        /// The rank that has the numbers.
        root: usize,
        /// The numbers of the block of each rank. Only the root says so.
        counts: Vec<usize>,
        /// The numbers of the block of this rank.
        block: usize,
    },
    /// All ranks receive the numbers of all ranks, which give the same count.
    Allgather,
    /// All ranks receive the numbers of all ranks.
    Allgatherv {
        /// How many numbers each rank gives.
        counts: Vec<usize>,
    },
    /// Each rank gives a block to each rank, all of the same length.
    Alltoall,
    /// Each rank gives a block to each rank.
    Alltoallv {
        /// The numbers of the block for each rank.
        sent: Vec<usize>,
        /// The numbers of the block from each rank.
        received: Vec<usize>,
    },
}

impl Collective {
    /// The call in MPI's standard.
    pub fn name(&self) -> &'static str {
        match self {
            Collective::Barrier => "MPI_Ibarrier",
            Collective::Bcast { .. } => "MPI_Ibcast",
            Collective::Reduce { .. } => "MPI_Ireduce",
            Collective::Allreduce { .. } => "MPI_Iallreduce",
            Collective::Scan { .. } => "MPI_Iscan",
            Collective::Exscan { .. } => "MPI_Iexscan",
            Collective::ReduceScatterBlock { .. } => "MPI_Ireduce_scatter_block",
            Collective::Gather { .. } => "MPI_Igather",
            Collective::Gatherv { .. } => "MPI_Igatherv",
            Collective::Scatter { .. } => "MPI_Iscatter",
            Collective::Scatterv { .. } => "MPI_Iscatterv",
            Collective::Allgather => "MPI_Iallgather",
            Collective::Allgatherv { .. } => "MPI_Iallgatherv",
            Collective::Alltoall => "MPI_Ialltoall",
            Collective::Alltoallv { .. } => "MPI_Ialltoallv",
        }
    }

    fn root(&self) -> Option<usize> {
        match *self {
            Collective::Bcast { root }
            | Collective::Reduce { root, .. }
            | Collective::Gather { root }
            | Collective::Gatherv { root, .. }
            | Collective::Scatter { root, .. }
            | Collective::Scatterv { root, .. } => Some(root),
            _ => None,
        }
    }

    fn op(&self) -> Option<ReduceOp> {
        match *self {
            Collective::Reduce { op, .. }
            | Collective::Allreduce { op }
            | Collective::Scan { op }
            | Collective::Exscan { op }
            | Collective::ReduceScatterBlock { op } => Some(op),
            _ => None,
        }
    }
}

/// What a rank has after a collective call.
#[derive(Debug, PartialEq)]
pub struct Collected {
    /// The memory that the rank gave, if MPI did not write to it.
    pub given: Option<MpiMemory>,
    /// The numbers that the rank received. `None` for a rank that receives none.
    pub received: Option<MpiMemory>,
}

/// One rank's part of a collective call.
#[derive(Debug)]
pub(super) struct CallPlan {
    pub(super) collective: Collective,
    /// The number of ranks.
    pub(super) size: usize,
    /// What MPI reads. Empty if it reads the room.
    pub(super) given: MpiMemory,
    /// What MPI writes.
    pub(super) room: MpiMemory,
    /// Whether the rank's own numbers lie in the room.
    pub(super) in_place: bool,
    receives: bool,
    pub(super) sent: RankBlocks,
    pub(super) received: RankBlocks,
}

/// The blocks of memory for each rank, one behind another. Empty where the call has none.
#[derive(Debug, Default)]
pub(super) struct RankBlocks {
    pub(super) counts: Vec<c_int>,
    pub(super) places: Vec<c_int>,
}

impl RankBlocks {
    fn new(call: &'static str, lengths: &[usize]) -> Result<RankBlocks, MpiError> {
        let mut blocks = RankBlocks::default();
        let mut place = 0_usize;
        for &length in lengths {
            let number = |value: usize| {
                c_int::try_from(value).map_err(|_| {
                    let text = "the blocks are longer than an integer of the library holds".to_string();
                    MpiError::refused(call, MpiErrorClass::Count, text)
                })
            };
            blocks.counts.push(number(length)?);
            blocks.places.push(number(place)?);
            place = place.saturating_add(length);
        }
        Ok(blocks)
    }
}

impl CallPlan {
    /// The part of the rank `rank` of `size`.
    ///
    /// # Errors
    /// When the root is no rank, a count does not agree with the memory, or the operation is not
    /// defined for the numbers.
    pub(super) fn new(
        collective: Collective,
        (rank, size): (usize, usize),
        memory: MpiMemory,
    ) -> Result<CallPlan, MpiError> {
        let call = collective.name();
        let refuse = |class, text| MpiError::refused(call, class, text);
        let root = collective.root();
        if let Some(root) = root.filter(|&root| root >= size) {
            return Err(refuse(
                MpiErrorClass::Root,
                format!("the root is {root}, and there are {size} ranks"),
            ));
        }
        let scalar = memory.scalar();
        let is_float = matches!(scalar, Scalar::F32 | Scalar::F64);
        let is_of_floats = |op| matches!(op, ReduceOp::Max | ReduceOp::Min | ReduceOp::Sum | ReduceOp::Prod);
        if let Some(op) = collective.op().filter(|&op| is_float && !is_of_floats(op)) {
            return Err(refuse(MpiErrorClass::Op, format!("{op:?} is not defined for {}", scalar.name())));
        }
        let is_root = root.is_none_or(|root| root == rank);
        let len = memory.len();
        let agrees = |what: &str, wanted: usize, found: usize| {
            let text = || format!("{what}: {wanted} expected, {found} found");
            if wanted == found { Ok(()) } else { Err(refuse(MpiErrorClass::Count, text())) }
        };
        let divided = || match len % size {
            0 => Ok(len / size),
            _ => {
                Err(refuse(MpiErrorClass::Count, format!("{len} numbers are no {size} blocks of one length")))
            }
        };
        // A length that does not fit becomes one that no allocation has.
        let sum = |counts: &[usize]| counts.iter().fold(0_usize, |sum, &count| sum.saturating_add(count));
        let (mut sent, mut received) = (RankBlocks::default(), RankBlocks::default());
        let mut receives = true;
        let mut in_place = false;
        // The length of a room apart from the memory, or `None` if the memory is the room.
        let room = match &collective {
            Collective::Barrier => {
                receives = false;
                Some(0)
            }
            Collective::Bcast { .. } => None,
            Collective::Allreduce { .. } | Collective::Scan { .. } => {
                in_place = true;
                None
            }
            Collective::Reduce { .. } => {
                (receives, in_place) = (is_root, is_root);
                if is_root { None } else { Some(0) }
            }
            Collective::Exscan { .. } => Some(len),
            Collective::ReduceScatterBlock { .. } => Some(divided()?),
            Collective::Gather { .. } => {
                receives = is_root;
                Some(if is_root { len.saturating_mul(size) } else { 0 })
            }
            Collective::Gatherv { counts, .. } if is_root => {
                agrees("counts", size, counts.len())?;
                agrees("numbers of the root", counts[rank], len)?;
                received = RankBlocks::new(call, counts)?;
                Some(sum(counts))
            }
            Collective::Gatherv { .. } => {
                receives = false;
                Some(0)
            }
            Collective::Scatter { block, .. } => {
                agrees("numbers", if is_root { block.saturating_mul(size) } else { 0 }, len)?;
                Some(*block)
            }
            Collective::Scatterv { counts, block, .. } => {
                if is_root {
                    agrees("counts", size, counts.len())?;
                    agrees("numbers of the root's block", counts[rank], *block)?;
                    sent = RankBlocks::new(call, counts)?;
                }
                agrees("numbers", if is_root { sum(counts) } else { 0 }, len)?;
                Some(*block)
            }
            Collective::Allgather => Some(len.saturating_mul(size)),
            Collective::Allgatherv { counts } => {
                agrees("counts", size, counts.len())?;
                agrees("numbers of this rank", counts[rank], len)?;
                received = RankBlocks::new(call, counts)?;
                Some(sum(counts))
            }
            Collective::Alltoall => {
                divided()?;
                Some(len)
            }
            Collective::Alltoallv { sent: counts, received: others } => {
                agrees("counts of sent blocks", size, counts.len())?;
                agrees("counts of received blocks", size, others.len())?;
                agrees("numbers", sum(counts), len)?;
                agrees("numbers from this rank to itself", counts[rank], others[rank])?;
                sent = RankBlocks::new(call, counts)?;
                received = RankBlocks::new(call, others)?;
                Some(sum(others))
            }
        };
        let longest = c_int::MAX as usize;
        if let Some(room) = room.filter(|&room| room > longest) {
            return Err(refuse(MpiErrorClass::Count, format!("{room} numbers are more than {longest}")));
        }
        let (given, room) = match room {
            Some(room) => (memory, MpiMemory::zeroed(scalar, room)),
            None => (MpiMemory::zeroed(scalar, 0), memory),
        };
        Ok(CallPlan { collective, size, given, room, in_place, receives, sent, received })
    }

    /// The kind of the numbers.
    pub(super) fn scalar(&self) -> Scalar {
        self.room.scalar()
    }

    /// What the rank has after the call.
    pub(super) fn collected(self) -> Collected {
        let is_room_apart = !self.in_place && !matches!(self.collective, Collective::Bcast { .. });
        Collected { given: is_room_apart.then_some(self.given), received: self.receives.then_some(self.room) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(collective: Collective, rank: usize, numbers: usize) -> Result<CallPlan, String> {
        CallPlan::new(collective, (rank, 3), vec![1_u32; numbers].into()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_root_alone_has_room() {
        let gather = Collective::Gather { root: 1 };
        assert_eq!(plan(gather.clone(), 1, 2).unwrap().room.len(), 6);
        let other = plan(gather, 0, 2).unwrap();
        assert_eq!(other.room.len(), 0);
        assert_eq!(other.collected(), Collected { given: Some(vec![1_u32; 2].into()), received: None });
    }

    #[test]
    fn an_operation_in_place_gives_back_the_memory_that_came_in() {
        let reduce = Collective::Reduce { root: 0, op: ReduceOp::Sum };
        let at_root = plan(reduce.clone(), 0, 4).unwrap();
        assert!(at_root.in_place);
        assert_eq!(at_root.collected(), Collected { given: None, received: Some(vec![1_u32; 4].into()) });
        let elsewhere = plan(reduce, 2, 4).unwrap();
        assert!(!elsewhere.in_place);
        assert_eq!(elsewhere.collected().received, None);
    }

    #[test]
    fn blocks_lie_one_behind_another() {
        let call = Collective::Alltoallv { sent: vec![1, 0, 2], received: vec![1, 4, 0] };
        let plan = plan(call, 0, 3).unwrap();
        assert_eq!((plan.sent.counts, plan.sent.places), (vec![1, 0, 2], vec![0, 1, 1]));
        assert_eq!((plan.received.places, plan.room.len()), (vec![0, 1, 5], 5));
    }

    #[test]
    fn what_does_not_agree_is_refused_with_the_name_of_the_call() {
        let refused = |collective, numbers| plan(collective, 0, numbers).unwrap_err();
        assert_eq!(
            refused(Collective::Bcast { root: 3 }, 1),
            "MPI_Ibcast: the root is 3, and there are 3 ranks"
        );
        assert_eq!(
            refused(Collective::Scatter { root: 0, block: 2 }, 5),
            "MPI_Iscatter: numbers: 6 expected, 5 found"
        );
        assert_eq!(
            refused(Collective::Gatherv { root: 0, counts: vec![1, 2] }, 1),
            "MPI_Igatherv: counts: 3 expected, 2 found"
        );
        assert_eq!(
            refused(Collective::Alltoall, 4),
            "MPI_Ialltoall: 4 numbers are no 3 blocks of one length"
        );
        let bits = Collective::Allreduce { op: ReduceOp::Bxor };
        let error = CallPlan::new(bits, (0, 1), vec![1.0_f64].into()).unwrap_err();
        assert_eq!(error.to_string(), "MPI_Iallreduce: Bxor is not defined for f64");
    }
}
