//! Grids of ranks: places, shifts, and the collectives with neighbours.

use super::cases;
use selvedge_mpi::{Communicator, Error, ErrorClass, PROC_NULL};

/// Each rank tells each neighbour where it is, and for which place among the neighbours it sends.
async fn all_neighbours<const N: usize>(
    world: &Communicator,
    sizes: [usize; N],
    circular: [bool; N],
) -> Result<(), Error> {
    let grid = world.cartesian(sizes, circular).await?;
    let places: usize = sizes.iter().product();
    assert_eq!(grid.is_some(), world.rank() < places);
    let Some(grid) = grid else { return Ok(()) };
    let rank = grid.communicator().rank();
    assert_eq!((rank, grid.communicator().size(), grid.sizes()), (world.rank(), places, sizes));
    let here = grid.coordinates(rank);
    assert_eq!(grid.rank_at(here.map(|it| it as isize)), rank);

    // The neighbours, found among all ranks by their coordinates.
    let mut expected = Vec::new();
    for dimension in 0..N {
        for step in [-1, 1] {
            let mut there = here.map(|it| it as isize);
            there[dimension] += step;
            let size = sizes[dimension] as isize;
            if circular[dimension] {
                there[dimension] = (there[dimension] + size) % size;
            }
            let found = (0..places).find(|&other| grid.coordinates(other).map(|it| it as isize) == there);
            expected.push(found.unwrap_or(PROC_NULL));
        }
        assert_eq!(grid.shift(dimension, 1), (expected[2 * dimension], expected[2 * dimension + 1]));
        assert_eq!(grid.shift(dimension, -1), (expected[2 * dimension + 1], expected[2 * dimension]));
        assert_eq!(grid.shift(dimension, 0), (rank, rank));
    }
    assert_eq!(grid.neighbours(), expected);

    let lives = |place: usize| expected[place] != PROC_NULL;
    for round in 0..3_usize {
        let came = grid.neighbour_allgather((round, rank)).await?;
        let told = (0..2 * N).map(|place| lives(place).then(|| (round, expected[place])));
        assert_eq!(came, told.collect::<Vec<_>>());
        let came = grid.neighbour_alltoall((0..2 * N).map(|place| (rank, place)).collect()).await?;
        // The rank after this one has sent to the one before it, and so on.
        let told = (0..2 * N).map(|place| lives(place).then(|| (expected[place], place ^ 1)));
        assert_eq!(came, told.collect::<Vec<_>>());
    }
    grid.communicator().barrier().await
}

cases! {
    grids_of_1(1, world) {
        all_neighbours(&world, [1], [false]).await?;
        all_neighbours(&world, [1], [true]).await?;
        all_neighbours(&world, [1, 1, 1], [true, false, true]).await?;
    }

    grids_of_5(5, world) {
        all_neighbours(&world, [5], [false]).await?;
        all_neighbours(&world, [5], [true]).await?;
        // Both neighbours are one rank.
        all_neighbours(&world, [2], [true]).await?;
        all_neighbours(&world, [2, 2], [true, true]).await?;
        all_neighbours(&world, [2, 2], [false, true]).await?;
        all_neighbours(&world, [1, 4], [true, false]).await?;
    }

    grids_of_7(7, world) {
        all_neighbours(&world, [2, 3], [false, true]).await?;
        all_neighbours(&world, [3, 2], [true, true]).await?;
        all_neighbours(&world, [1, 2, 3], [true, false, true]).await?;
        all_neighbours(&world, [7], [true]).await?;
    }

    /// No dimension: one rank, without neighbours.
    a_grid_of_no_dimension(2, world) {
        let grid = world.cartesian([], []).await?;
        let Some(grid) = grid else {
            assert_eq!(world.rank(), 1);
            return Ok(());
        };
        assert_eq!((world.rank(), grid.coordinates(0), grid.rank_at([])), (0, [], 0));
        assert_eq!(grid.neighbour_allgather(1).await?, []);
    }

    far_shifts(4, world) {
        let grid = world.cartesian([4], [true]).await?.expect("each rank has a place");
        let rank = world.rank();
        assert_eq!(grid.shift(0, 6), ((rank + 2) % 4, (rank + 2) % 4));
        assert_eq!(grid.rank_at([-1]), 3);
        assert_eq!(grid.rank_at([isize::MIN]), 0);
        let line = world.cartesian([4], [false]).await?.expect("each rank has a place");
        assert_eq!(line.shift(0, isize::MAX), (PROC_NULL, PROC_NULL));
        let (from, to) = line.shift(0, 3);
        assert_eq!((from, to), [(PROC_NULL, 3), (PROC_NULL, PROC_NULL), (PROC_NULL, PROC_NULL), (0, PROC_NULL)][rank]);
    }

    grids_that_are_refused(3, world) {
        for sizes in [[2, 2], [0, 3], [usize::MAX, 2]] {
            let error = world.cartesian(sizes, [false; 2]).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Count, "cartesian"));
        }
        let error = world.cartesian([3], [world.rank() == 0]).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Mismatch);
        let grid = world.cartesian([3], [true]).await?.expect("each rank has a place");
        let error = grid.neighbour_alltoall(vec![1; 3]).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "neighbour_alltoall"));
        // The ranks are in step afterwards.
        assert_eq!(grid.neighbour_allgather(()).await?, [Some(()), Some(())]);
    }
}
