//! [`Cartesian`]: the ranks of a communicator as a grid, and the collectives of each rank with its
//! neighbours there.
//!
//! It is made of a communicator of its own (`split.rs`), and `collective/neighbours.rs` has the
//! messages.

use crate::collective::{CollectiveKind, Neighbours};
use crate::communicator::Communicator;
use crate::error::{Error, ErrorClass};
use crate::group::Group;
use crate::payload::Message;
use crate::tag::PROC_NULL;
use std::fmt;

/// The ranks of a communicator as a grid of `N` dimensions. The last coordinate runs fastest: in a
/// grid of 2 by 3, rank 4 is at `[1, 1]`.
///
/// A dimension is a line, or a circle, in which the last rank is the neighbour of the first. At the
/// end of a line the neighbour is the null rank, [`PROC_NULL`].
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(6, |world| async move {
///     // Two rows, and three columns in a circle.
///     let grid = world.cartesian([2, 3], [false, true]).await?.expect("each rank has a place");
///     let [row, column] = grid.coordinates(world.rank());
///     let [above, below, left, right] = grid.neighbour_allgather((row, column)).await?[..] else {
///         unreachable!("there are two neighbours in each of two dimensions")
///     };
///     assert_eq!(above.is_some(), row == 1);
///     assert_eq!(below.is_some(), row == 0);
///     assert_eq!(left, Some((row, (column + 2) % 3)));
///     assert_eq!(right, Some((row, (column + 1) % 3)));
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
#[doc(alias = "MPI_CART")]
pub struct Cartesian<const N: usize> {
    communicator: Communicator,
    sizes: [usize; N],
    circular: [bool; N],
}

impl Communicator {
    /// Makes a grid with this number of ranks in each dimension, of which some are circles. The
    /// first ranks are in it, in their order; ranks that are left over get `None`. Every rank makes
    /// the same call.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier). If the grid has no place, or more places than the
    /// communicator has ranks; if a rank names another grid.
    ///
    /// # Examples
    /// See [`Cartesian`].
    #[doc(alias = "MPI_Cart_create")]
    #[track_caller]
    pub fn cartesian<const N: usize>(
        &self,
        sizes: [usize; N],
        circular: [bool; N],
    ) -> impl Future<Output = Result<Option<Cartesian<N>>, Error>> + Send {
        let call = self.call("cartesian");
        async move {
            let own = (sizes.to_vec(), circular.to_vec(), self.propose_context());
            let all = self.exchange(call, own).await?;
            for (rank, (their_sizes, their_circles, _)) in all.iter().enumerate() {
                if **their_sizes != sizes || **their_circles != circular {
                    let text = format!(
                        "rank {rank} makes a grid of {their_sizes:?}, circles {their_circles:?}, and \
                         this rank one of {sizes:?}, circles {circular:?}"
                    );
                    return Err(call.error(ErrorClass::Mismatch, text));
                }
            }
            let places = sizes.iter().try_fold(1_usize, |places, &size| places.checked_mul(size));
            let Some(places @ 1..) = places.filter(|&places| places <= self.size()) else {
                let text = format!("a grid of {sizes:?} is not made of {} ranks", self.size());
                return Err(call.error(ErrorClass::Count, text));
            };
            let group = Group::of(self.group().world_ranks()[..places].to_vec());
            let made = self.made(all[0].2, group);
            Ok(made.map(|communicator| Cartesian { communicator, sizes, circular }))
        }
    }
}

impl<const N: usize> Cartesian<N> {
    /// The communicator of the ranks in the grid.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The number of ranks in each dimension.
    #[doc(alias = "MPI_Cart_get")]
    pub fn sizes(&self) -> [usize; N] {
        self.sizes
    }

    /// Where a rank is.
    ///
    /// # Panics
    /// If the grid has no such rank.
    #[doc(alias = "MPI_Cart_coords")]
    #[track_caller]
    pub fn coordinates(&self, rank: usize) -> [usize; N] {
        assert!(rank < self.communicator.size(), "the grid has no rank {rank}");
        let mut coordinates = [0; N];
        let mut rest = rank;
        for (coordinate, size) in coordinates.iter_mut().zip(self.sizes).rev() {
            (rest, *coordinate) = (rest / size, rest % size);
        }
        coordinates
    }

    /// The rank at these coordinates, which may lie outside of the grid: in a circle they go on
    /// from its other end, and beyond the end of a line is the null rank.
    #[doc(alias = "MPI_Cart_rank")]
    pub fn rank_at(&self, coordinates: [isize; N]) -> usize {
        let mut rank = 0;
        for ((coordinate, size), circular) in coordinates.into_iter().zip(self.sizes).zip(self.circular) {
            let coordinate = match circular {
                true => coordinate.rem_euclid(size as isize) as usize,
                false => match usize::try_from(coordinate) {
                    Ok(coordinate) if coordinate < size => coordinate,
                    _ => return PROC_NULL,
                },
            };
            rank = rank * size + coordinate;
        }
        rank
    }

    /// For a shift of all ranks by this many places along a dimension: the rank of which this one
    /// receives, and the one to which it sends. Either may be the null rank.
    ///
    /// # Panics
    /// If the grid has no such dimension.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(4, |world| async move {
    ///     let line = world.cartesian([4], [false]).await?.expect("each rank has a place");
    ///     let (left, right) = line.shift(0, 1);
    ///     let (ranks, own) = (line.communicator(), Some(world.rank()));
    ///     let (came, _) = ranks.sendrecv::<_, Option<usize>>(right, (), own, left, ()).await?;
    ///     assert_eq!(came, ranks.rank().checked_sub(1));
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Cart_shift")]
    #[track_caller]
    pub fn shift(&self, dimension: usize, places: isize) -> (usize, usize) {
        assert!(dimension < N, "the grid has no dimension {dimension}");
        let here = self.coordinates(self.communicator.rank()).map(|coordinate| coordinate as isize);
        let there = |places: isize| {
            let mut there = here;
            there[dimension] = there[dimension].saturating_add(places);
            self.rank_at(there)
        };
        (there(places.saturating_neg()), there(places))
    }

    /// The neighbours of this rank, in the order in which the collectives name them: for each
    /// dimension the one before and the one after.
    #[doc(alias = "MPI_Dist_graph_neighbors")]
    pub fn neighbours(&self) -> Vec<usize> {
        (0..N).flat_map(|dimension| <[usize; 2]>::from(self.shift(dimension, 1))).collect()
    }

    /// Gives each rank the values of its neighbours, in the order of [`neighbours`]; `None` of the
    /// null rank.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier).
    ///
    /// # Complexity
    /// A message for each neighbour.
    ///
    /// [`neighbours`]: Self::neighbours
    #[doc(alias = "MPI_Neighbor_allgather")]
    #[track_caller]
    pub fn neighbour_allgather<T: Message + Clone>(
        &self,
        value: T,
    ) -> impl Future<Output = Result<Vec<Option<T>>, Error>> + Send {
        let call = self.communicator.call("neighbour_allgather");
        let (kind, neighbours) = (CollectiveKind::NeighbourAllgather, Neighbours::of_grid(self.neighbours()));
        self.communicator.exchange_with(call, kind, neighbours, vec![value; 2 * N])
    }

    /// Gives each neighbour its value of these, and each rank the values of its neighbours for it.
    /// Both are in the order of [`neighbours`]. A value for the null rank is dropped, and `None`
    /// comes of it.
    ///
    /// # Errors
    /// As for [`barrier`](Communicator::barrier); if there are not two values for each dimension.
    ///
    /// # Complexity
    /// A message for each neighbour.
    ///
    /// [`neighbours`]: Self::neighbours
    #[doc(alias = "MPI_Neighbor_alltoall")]
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    #[track_caller]
    pub fn neighbour_alltoall<T: Message>(
        &self,
        values: Vec<T>,
    ) -> impl Future<Output = Result<Vec<Option<T>>, Error>> + Send {
        let call = self.communicator.call("neighbour_alltoall");
        let (kind, neighbours) = (CollectiveKind::NeighbourAlltoall, Neighbours::of_grid(self.neighbours()));
        self.communicator.exchange_with(call, kind, neighbours, values)
    }
}

impl<const N: usize> fmt::Debug for Cartesian<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cartesian({:?} in {:?})", self.communicator, self.sizes)
    }
}
