//! [`LocalJob`]: what a program needs that starts the processes of a job; and [`RankSeat`], what
//! such a process finds in its environment.

use super::rings::wake;
use super::segment::JobSegment;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The variable that makes a process a rank: the number of a descriptor, and that of the rank.
const VARIABLE: &str = "SELVEDGE_MPI_RANK";

/// A job on this machine, for the program that starts its processes.
///
/// The program starts one process for each rank, with the [variable](LocalJob::variable) of that
/// rank in its environment, and says when a process [has ended](LocalJob::departed). Each process
/// that calls [`run`](crate::run()) is then that rank. `selvedge-mpirun` is such a program.
///
/// # Examples
/// ```no_run
/// use selvedge::mpi::processes::LocalJob;
/// use std::process::Command;
///
/// let job = LocalJob::new(2)?;
/// std::thread::scope(|threads| {
///     for rank in 0..job.ranks() {
///         let job = &job;
///         threads.spawn(move || {
///             let (name, value) = job.variable(rank);
///             let status = Command::new("target/release/my-program").env(name, value).status();
///             job.departed(rank);
///             println!("rank {rank} has ended: {status:?}");
///         });
///     }
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct LocalJob {
    segment: Arc<JobSegment>,
}

impl LocalJob {
    /// A job of this number of ranks.
    ///
    /// # Errors
    /// With no ranks or more than 512, and if the kernel has no memory or no descriptor left.
    pub fn new(ranks: usize) -> io::Result<LocalJob> {
        Ok(LocalJob { segment: Arc::new(JobSegment::create_inherited(ranks)?) })
    }

    pub(crate) fn of(segment: Arc<JobSegment>) -> LocalJob {
        LocalJob { segment }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.segment.size()
    }

    /// The name and the value of the variable that makes a process this rank. The process inherits
    /// a descriptor of the starting one, so it is a child or a later descendant.
    pub fn variable(&self, rank: usize) -> (&'static str, String) {
        (VARIABLE, format!("{}:{rank}", self.segment.descriptor()))
    }

    /// The process of a rank has ended. If it has not returned from [`run`](crate::run()) before,
    /// the other ranks are told that it has failed.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn departed(&self, rank: usize) {
        self.segment.departed(rank);
        for other in 0..self.ranks() {
            // Killed while it rang, it may have left a bell that is neither armed nor rung.
            let bell = self.segment.bell(other);
            bell.ring_anyway();
            wake(bell);
        }
    }

    /// As [`variable`](Self::variable), for a process that ranks spawn: the first ones of the job.
    pub(crate) fn spawned_variable(&self, rank: usize, parents: ParentRanks) -> (&'static str, String) {
        let ParentRanks { size, root } = parents;
        (VARIABLE, format!("{}:{rank}:{size}:{root}", self.segment.descriptor()))
    }

    pub(crate) fn segment(&self) -> &Arc<JobSegment> {
        &self.segment
    }
}

impl fmt::Debug for LocalJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalJob({} ranks)", self.ranks())
    }
}

/// The rank that a process is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankSeat {
    pub(super) descriptor: u32,
    pub(crate) rank: usize,
    /// The ranks of the job that have spawned this one and its like. `None` in a job that was
    /// started as a whole.
    pub(crate) parents: Option<ParentRanks>,
}

/// The ranks that have spawned others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParentRanks {
    /// How many they are.
    pub(crate) size: usize,
    /// The rank of which the process has started the others.
    pub(crate) root: usize,
}

impl RankSeat {
    /// What the environment says. `None` if the process was not started as a rank.
    pub(crate) fn from_environment() -> Option<RankSeat> {
        RankSeat::parse(&std::env::var(VARIABLE).ok()?)
    }

    fn parse(value: &str) -> Option<RankSeat> {
        let numbers: Vec<u32> = value.split(':').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let (descriptor, rank, parents) = match numbers[..] {
            [descriptor, rank] => (descriptor, rank, None),
            [descriptor, rank, size, root] => {
                (descriptor, rank, Some(ParentRanks { size: size as usize, root: root as usize }))
            }
            _ => return None,
        };
        Some(RankSeat { descriptor, rank: rank as usize, parents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is killed between the two steps of a ring leaves a bell that is not armed, at
    /// which a process sleeps.
    #[test]
    fn a_departure_rings_a_bell_that_is_not_armed() {
        let job = LocalJob::new(3).unwrap();
        let bells = || (0..3).map(|rank| job.segment().bell(rank));
        bells().for_each(|bell| bell.arm());
        assert!(bells().all(|bell| bell.disarm()));
        let before: Vec<u32> = bells().map(|bell| bell.rung()).collect();
        job.departed(1);
        assert!(bells().zip(before).all(|(bell, before)| bell.rung() == before + 1));
    }

    #[test]
    fn the_variable_names_the_rank() {
        let job = LocalJob::new(3).unwrap();
        let (name, value) = job.variable(2);
        assert_eq!(name, VARIABLE);
        let seat = RankSeat::parse(&value).unwrap();
        assert_eq!((seat.rank, seat.parents), (2, None));
        let parents = ParentRanks { size: 2, root: 1 };
        let (_, value) = job.spawned_variable(2, parents);
        let seat = RankSeat::parse(&value).unwrap();
        assert_eq!((seat.rank, seat.parents), (2, Some(parents)));
        assert_eq!(RankSeat::parse("3"), None);
        assert_eq!(RankSeat::parse("3:2:1"), None);
        assert_eq!(RankSeat::parse("3:x"), None);
    }
}
