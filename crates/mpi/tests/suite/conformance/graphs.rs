//! Graphs of ranks: the collectives of each rank with the neighbours that it names.

use super::cases;
use selvedge_mpi::{Communicator, Error, ErrorClass, Neighbourhood, PROC_NULL, Parts};

/// The graph of the edges that the function counts, from its first rank to its second one. The
/// sources come backwards, because the order is the rank's own.
async fn graph(world: &Communicator, edges: fn(usize, usize) -> usize) -> Result<Neighbourhood, Error> {
    let rank = world.rank();
    let sources: Vec<usize> =
        (0..world.size()).rev().flat_map(|from| vec![from; edges(from, rank)]).collect();
    let destinations: Vec<usize> = (0..world.size()).flat_map(|to| vec![to; edges(rank, to)]).collect();
    let graph = world.neighbourhood(&sources, &destinations).await?;
    assert_eq!((graph.sources(), graph.destinations()), (&sources[..], &destinations[..]));
    assert_eq!((graph.communicator().rank(), graph.communicator().size()), (rank, world.size()));
    Ok(graph)
}

/// Every form of both collectives. What a rank sends names both ends, and for several edges between
/// them the number of the edge.
async fn every_form(graph: &Neighbourhood) -> Result<(), Error> {
    let rank = graph.communicator().rank();
    let numbered = |ranks: &[usize]| {
        let number = |at: usize| ranks[..at].iter().filter(|&&before| before == ranks[at]).count();
        (0..ranks.len()).map(|at| (ranks[at], number(at))).collect::<Vec<_>>()
    };
    let (sources, destinations) = (graph.sources(), graph.destinations());

    let gathered: Vec<Option<String>> = sources.iter().map(|from| Some(format!("of {from}"))).collect();
    assert_eq!(graph.neighbour_allgather(format!("of {rank}")).await?, gathered);
    let started = graph.ineighbour_allgather(format!("of {rank}"));

    let own: Vec<_> = numbered(destinations).into_iter().map(|(to, edge)| (rank, to, edge)).collect();
    let came: Vec<_> = numbered(sources).into_iter().map(|(from, edge)| Some((from, rank, edge))).collect();
    let started_too = graph.ineighbour_alltoall(own.clone());
    assert_eq!(graph.neighbour_alltoall(own.clone()).await?, came);
    assert_eq!((started.await?, started_too.await?), (gathered, came));

    // The length of a part names the rank that sends it, and the elements to which rank it goes.
    let mine = vec![rank as u64; rank + 1];
    let gathered = Parts::from(sources.iter().map(|&from| vec![from as u64; from + 1]).collect::<Vec<_>>());
    let started = graph.ineighbour_allgather_slice(&mine);
    assert_eq!(graph.neighbour_allgather_slice(&mine).await?, gathered);
    let part = |from: usize, to: usize, edge: usize| vec![to as u32; 3 * from + edge];
    let to_parts = |(to, edge)| part(rank, to, edge);
    let own = Parts::from(numbered(destinations).into_iter().map(to_parts).collect::<Vec<_>>());
    let of_parts = |(from, edge)| part(from, rank, edge);
    let came = Parts::from(numbered(sources).into_iter().map(of_parts).collect::<Vec<_>>());
    let started_too = graph.ineighbour_alltoall_parts(own.clone());
    assert_eq!(graph.neighbour_alltoall_parts(own).await?, came);
    assert_eq!((started.await?, started_too.await?), (gathered, came));
    Ok(())
}

cases! {
    a_star(4, world) {
        every_form(&graph(&world, |from, to| usize::from(from == 0 && to != 0)).await?).await?;
        every_form(&graph(&world, |from, to| usize::from(from != 0 && to == 0)).await?).await?;
    }

    an_irregular_graph(5, world) {
        every_form(&graph(&world, |from, to| usize::from((3 * from + to) % 4 == 1)).await?).await?;
    }

    /// Also from a rank to itself.
    several_edges_between_two_ranks(3, world) {
        every_form(&graph(&world, |from, to| (from + 2 * to) % 3).await?).await?;
    }

    a_graph_without_edges(2, world) {
        every_form(&graph(&world, |_, _| 0).await?).await?;
    }

    a_null_neighbour(2, world) {
        let other = 1 - world.rank();
        let graph = world.neighbourhood(&[PROC_NULL, other], &[other, PROC_NULL]).await?;
        assert_eq!(graph.neighbour_alltoall(vec!['a', 'b']).await?, [None, Some('a')]);
        let came = graph.neighbour_allgather_slice(&[world.rank()]).await?;
        assert_eq!(came, Parts::from(vec![vec![], vec![other]]));
    }

    /// The grid's neighbours, also in a circle of two ranks, in which both are one rank.
    a_grid_is_a_graph(4, world) {
        let grid = world.cartesian([2, 2], [true, false]).await?.expect("each rank has a place");
        let graph = grid.neighbourhood();
        let own: Vec<_> = (0..4).map(|place| (world.rank(), place)).collect();
        let came = graph.neighbour_alltoall(own.clone()).await?;
        assert_eq!(came, grid.neighbour_alltoall(own.clone()).await?);
        assert_eq!(graph.ineighbour_alltoall(own).await?, came);
        let elements: Vec<_> = (0..4).map(|place| vec![world.rank() * 4 + place; place + 1]).collect();
        let parts = graph.neighbour_alltoall_parts(Parts::from(elements)).await?;
        for (came, part) in came.into_iter().zip(parts.iter()) {
            let (from, place) = came.unwrap_or((0, usize::MAX));
            assert_eq!(part, vec![from.wrapping_mul(4).wrapping_add(place); place.wrapping_add(1)]);
        }
    }

    graphs_that_are_refused(3, world) {
        // Rank 0 sends to rank 1, which does not know of it. Every rank hears of it.
        let destinations = if world.rank() == 0 { vec![1] } else { vec![] };
        let error = world.neighbourhood(&[], &destinations).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Mismatch, "neighbourhood"));
        let told = "rank 0 has 1 edges to rank 1, and rank 1 has 0 from it";
        assert!(error.to_string().ends_with(told), "{error}");
        let error = world.neighbourhood(&[3], &[]).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Rank);
        let ring = world.neighbourhood(&[(world.rank() + 2) % 3], &[(world.rank() + 1) % 3]).await?;
        let error = ring.neighbour_alltoall(vec![1, 2]).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "neighbour_alltoall"));
        let error = ring.ineighbour_alltoall_parts(Parts::from(vec![vec![1]; 2])).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "ineighbour_alltoall_parts"));
        // The ranks are in step afterwards.
        assert_eq!(ring.neighbour_allgather(world.rank()).await?, [Some((world.rank() + 2) % 3)]);
    }
}
