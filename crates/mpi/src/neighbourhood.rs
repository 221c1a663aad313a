//! [`Neighbourhood`]: a communicator in which each rank names its neighbours, and the collectives of
//! each rank with these. Where the ranks are a grid, `cartesian.rs` makes one.
//!
//! `collective/neighbours.rs` has the messages.

use crate::cartesian::Cartesian;
use crate::collective::{CollectiveKind, CollectiveRound, Neighbours, Parts, elements_of, value_of};
use crate::communicator::Communicator;
use crate::error::{Error, ErrorClass};
use crate::payload::Message;
use crate::request::Request;
use crate::tag::PROC_NULL;
use bytemuck::Pod;
use std::fmt;

/// The ranks of a communicator as a directed graph: each rank names the ranks from which something
/// comes, its sources, and the ranks to which something goes, its destinations.
///
/// The collectives of a neighbourhood take messages along the edges alone. A rank without an edge
/// makes the calls too. There may be several edges from one rank to another, and an edge from a
/// rank to itself; [`PROC_NULL`] stands for a neighbour that is missing.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(4, |world| async move {
///     // Rank 0 gives the others something, and they give it to no rank.
///     let (sources, destinations) = match world.rank() {
///         0 => (vec![], vec![1, 2, 3]),
///         _ => (vec![0], vec![]),
///     };
///     let star = world.neighbourhood(&sources, &destinations).await?;
///     let came = star.neighbour_allgather(world.rank() + 10).await?;
///     assert_eq!(came, if world.rank() == 0 { vec![] } else { vec![Some(10)] });
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
#[doc(alias = "MPI_DIST_GRAPH")]
pub struct Neighbourhood {
    communicator: Communicator,
    neighbours: Neighbours,
}

impl Communicator {
    /// Makes a graph of all ranks, in a communicator of its own. Every rank makes the call, with
    /// its own neighbours. The results of collectives have the order of the sources.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier). If a neighbour is no rank of the communicator; if a rank
    /// names another one as a source, and that one does not name it as a destination as many times.
    ///
    /// # Complexity
    /// Each rank hears of the edges of all, and compares its own with them.
    ///
    /// # Examples
    /// See [`Neighbourhood`].
    #[doc(alias = "MPI_Dist_graph_create_adjacent")]
    #[doc(alias = "MPI_Dist_graph_create")]
    #[doc(alias = "MPI_Graph_create")]
    #[track_caller]
    pub fn neighbourhood(
        &self,
        sources: &[usize],
        destinations: &[usize],
    ) -> impl Future<Output = Result<Neighbourhood, Error>> + Send {
        let call = self.call("neighbourhood");
        let (sources, destinations) = (sources.to_vec(), destinations.to_vec());
        async move {
            let own = (sources.clone(), destinations.clone(), self.propose_context());
            let all = self.exchange(call, own).await?;
            let size = self.size();
            let mine = self.rank();
            let times = |ranks: &[usize], named: usize| ranks.iter().filter(|&&rank| rank == named).count();
            // Each rank sees each error, so that none waits for another one afterwards.
            for (rank, (sources, destinations, _)) in all.iter().enumerate() {
                let no_rank = |&&named: &&usize| named >= size && named != PROC_NULL;
                if let Some(named) = sources.iter().chain(destinations).find(no_rank) {
                    let text =
                        format!("rank {rank} names rank {named}, but there are ranks 0 to {}", size - 1);
                    return Err(call.error(ErrorClass::Rank, text));
                }
                for (to, (theirs, ..)) in all.iter().enumerate() {
                    let (goes, comes) = (times(destinations, to), times(theirs, rank));
                    if goes != comes {
                        let text = format!(
                            "rank {rank} has {goes} edges to rank {to}, and rank {to} has {comes} from it"
                        );
                        return Err(call.error(ErrorClass::Mismatch, text));
                    }
                }
            }
            let made = self.made(all[0].2, self.group().clone());
            let communicator = made.expect("each rank is in its own group");
            debug_assert_eq!(communicator.rank(), mine);
            Ok(Neighbourhood { communicator, neighbours: Neighbours::of_graph(&sources, &destinations) })
        }
    }
}

impl<const N: usize> Cartesian<N> {
    /// The grid as a graph, in which the sources and the destinations of a rank are its
    /// [`neighbours`](Self::neighbours) in the grid. It has the grid's communicator.
    pub fn neighbourhood(&self) -> Neighbourhood {
        let neighbours = Neighbours::of_grid(self.neighbours());
        Neighbourhood { communicator: self.communicator().clone(), neighbours }
    }
}

impl Neighbourhood {
    /// The communicator of the graph.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The ranks from which something comes, in the order of the results.
    #[doc(alias = "MPI_Dist_graph_neighbors")]
    pub fn sources(&self) -> &[usize] {
        &self.neighbours.sources
    }

    /// The ranks to which something goes.
    pub fn destinations(&self) -> &[usize] {
        &self.neighbours.destinations
    }

    /// Gives each destination the value, and this rank the values of its sources; `None` of the
    /// null rank.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier).
    ///
    /// # Complexity
    /// A message for each edge.
    #[doc(alias = "MPI_Neighbor_allgather")]
    #[track_caller]
    pub fn neighbour_allgather<T: Message + Clone>(
        &self,
        value: T,
    ) -> impl Future<Output = Result<Vec<Option<T>>, Error>> + Send {
        let call = self.communicator.call("neighbour_allgather");
        let (kind, neighbours) = (CollectiveKind::NeighbourAllgather, self.neighbours.clone());
        self.communicator.exchange_with(call, kind, neighbours, self.for_each_destination(value))
    }

    /// Gives each destination its value of these, and this rank the values of its sources for it;
    /// `None` of the null rank.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier); if there is not one value for each destination.
    ///
    /// # Complexity
    /// A message for each edge.
    #[doc(alias = "MPI_Neighbor_alltoall")]
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    #[track_caller]
    pub fn neighbour_alltoall<T: Message>(
        &self,
        values: Vec<T>,
    ) -> impl Future<Output = Result<Vec<Option<T>>, Error>> + Send {
        let call = self.communicator.call("neighbour_alltoall");
        let (kind, neighbours) = (CollectiveKind::NeighbourAlltoall, self.neighbours.clone());
        self.communicator.exchange_with(call, kind, neighbours, values)
    }

    /// As [`neighbour_allgather`](Self::neighbour_allgather), of elements. Ranks may have different
    /// numbers of them. An empty part comes of the null rank.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier).
    ///
    /// # Complexity
    /// A message for each edge.
    #[doc(alias = "MPI_Neighbor_allgather")]
    #[doc(alias = "MPI_Neighbor_allgatherv")]
    #[track_caller]
    pub fn neighbour_allgather_slice<T: Pod + Send + Sync>(
        &self,
        elements: &[T],
    ) -> impl Future<Output = Result<Parts<T>, Error>> + Send {
        let call = self.communicator.call("neighbour_allgather_slice");
        async move {
            let kind = CollectiveKind::NeighbourAllgather;
            let round = CollectiveRound::begin_with(&self.communicator, call, kind, 0, elements_of::<T>)?;
            round.allgather_neighbour_elements(self.neighbours.clone(), elements.to_vec()).await
        }
    }

    /// As [`neighbour_alltoall`](Self::neighbour_alltoall), of elements: a part for each
    /// destination, of any length. An empty part comes of the null rank.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier); if there is not one part for each destination.
    ///
    /// # Complexity
    /// A message for each edge.
    #[doc(alias = "MPI_Neighbor_alltoall")]
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    #[doc(alias = "MPI_Neighbor_alltoallw")]
    #[track_caller]
    pub fn neighbour_alltoall_parts<T: Pod + Send + Sync>(
        &self,
        elements: Parts<T>,
    ) -> impl Future<Output = Result<Parts<T>, Error>> + Send {
        let call = self.communicator.call("neighbour_alltoall_parts");
        async move {
            let kind = CollectiveKind::NeighbourAlltoall;
            let round = CollectiveRound::begin_with(&self.communicator, call, kind, 0, elements_of::<T>)?;
            round.alltoall_neighbour_parts(self.neighbours.clone(), elements).await
        }
    }

    /// Starts a [`neighbour_allgather`](Self::neighbour_allgather).
    #[doc(alias = "MPI_Ineighbor_allgather")]
    #[track_caller]
    pub fn ineighbour_allgather<T: Message + Clone>(&self, value: T) -> Request<Vec<Option<T>>> {
        let (neighbours, own) = (self.neighbours.clone(), self.for_each_destination(value));
        let go = move |round: CollectiveRound| round.alltoall_neighbours(neighbours, own);
        let call = self.communicator.call("ineighbour_allgather");
        self.communicator.start(call, CollectiveKind::NeighbourAllgather, 0, value_of::<T>, go)
    }

    /// Starts a [`neighbour_alltoall`](Self::neighbour_alltoall).
    #[doc(alias = "MPI_Ineighbor_alltoall")]
    #[doc(alias = "MPI_Ineighbor_alltoallv")]
    #[track_caller]
    pub fn ineighbour_alltoall<T: Message>(&self, values: Vec<T>) -> Request<Vec<Option<T>>> {
        let neighbours = self.neighbours.clone();
        let go = move |round: CollectiveRound| round.alltoall_neighbours(neighbours, values);
        let call = self.communicator.call("ineighbour_alltoall");
        self.communicator.start(call, CollectiveKind::NeighbourAlltoall, 0, value_of::<T>, go)
    }

    /// Starts a [`neighbour_allgather_slice`](Self::neighbour_allgather_slice).
    #[doc(alias = "MPI_Ineighbor_allgather")]
    #[doc(alias = "MPI_Ineighbor_allgatherv")]
    #[track_caller]
    pub fn ineighbour_allgather_slice<T: Pod + Send + Sync>(&self, elements: &[T]) -> Request<Parts<T>> {
        let (neighbours, own) = (self.neighbours.clone(), elements.to_vec());
        let go = move |round: CollectiveRound| round.allgather_neighbour_elements(neighbours, own);
        let call = self.communicator.call("ineighbour_allgather_slice");
        self.communicator.start(call, CollectiveKind::NeighbourAllgather, 0, elements_of::<T>, go)
    }

    /// Starts a [`neighbour_alltoall_parts`](Self::neighbour_alltoall_parts).
    #[doc(alias = "MPI_Ineighbor_alltoall")]
    #[doc(alias = "MPI_Ineighbor_alltoallv")]
    #[doc(alias = "MPI_Ineighbor_alltoallw")]
    #[track_caller]
    pub fn ineighbour_alltoall_parts<T: Pod + Send + Sync>(&self, elements: Parts<T>) -> Request<Parts<T>> {
        let neighbours = self.neighbours.clone();
        let go = move |round: CollectiveRound| round.alltoall_neighbour_parts(neighbours, elements);
        let call = self.communicator.call("ineighbour_alltoall_parts");
        self.communicator.start(call, CollectiveKind::NeighbourAlltoall, 0, elements_of::<T>, go)
    }

    fn for_each_destination<T: Clone>(&self, value: T) -> Vec<T> {
        vec![value; self.neighbours.destinations.len()]
    }
}

impl fmt::Debug for Neighbourhood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sources, destinations) = (self.sources(), self.destinations());
        write!(f, "Neighbourhood({:?}, from {sources:?}, to {destinations:?})", self.communicator)
    }
}
