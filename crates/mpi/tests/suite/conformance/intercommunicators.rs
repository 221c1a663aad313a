//! Two groups of ranks that send to one another.

use super::cases;
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, InterCommunicator, InterRoot, op};

/// The first `count` ranks and the others.
async fn halves(world: &Communicator, count: usize) -> Result<InterCommunicator, Error> {
    let is_first = world.rank() < count;
    let group = world.split(u32::from(is_first), 0).await?.expect("each rank has a color");
    // The leaders are the last ranks of their groups.
    let other = if is_first { world.size() - 1 } else { count - 1 };
    group.intercommunicator(group.size() - 1, world, other, 9).await
}

/// Every collective with every root in each group.
async fn all_of_them(world: &Communicator, count: usize) -> Result<(), Error> {
    let inter = halves(world, count).await?;
    let (rank, is_first) = (world.rank(), world.rank() < count);
    let (mine, others) = match is_first {
        true => (0..count, count..world.size()),
        false => (count..world.size(), 0..count),
    };
    assert_eq!((inter.rank(), inter.size()), (rank - mine.start, mine.len()));
    assert_eq!((inter.remote_size(), inter.remote_group().size()), (others.len(), others.len()));
    for root in 0..world.size() {
        inter.barrier().await?;
        let is_here = (root < count) == is_first;
        let root_is = match is_here {
            true => InterRoot::Here(root - mine.start),
            false => InterRoot::There(root - others.start),
        };
        let value = inter.bcast(root_is, || format!("from {rank}")).await?;
        assert_eq!(value, (!is_here).then(|| format!("from {root}")));
        let all = inter.gather(root_is, || rank).await?;
        assert_eq!(all, (rank == root).then(|| others.clone().collect()));
        let own = inter.scatter(root_is, || others.clone().map(|to| (rank, to)).collect()).await?;
        assert_eq!(own, (!is_here).then_some((root, rank)));
        let word = inter.reduce(root_is, || rank.to_string(), |a, b| a + &b).await?;
        assert_eq!(word, (rank == root).then(|| others.clone().map(|rank| rank.to_string()).collect()));
    }
    assert_eq!(inter.allgather(rank).await?, others.clone().collect::<Vec<_>>());
    let came = inter.alltoall(others.clone().map(|to| (rank, to)).collect()).await?;
    assert_eq!(came, others.clone().map(|from| (from, rank)).collect::<Vec<_>>());
    assert_eq!(inter.allreduce(rank, op::sum).await?, others.sum());
    // The ranks of a group have a communicator beside it.
    assert_eq!(inter.local().allreduce(rank, op::sum).await?, mine.sum());
    Ok(())
}

cases! {
    intercommunicator_of_2(2, world) { all_of_them(&world, 1).await?; }

    intercommunicator_of_5(5, world) {
        all_of_them(&world, 2).await?;
        all_of_them(&world, 4).await?;
    }

    /// Each rank sends to each of the other group, and the numbers are those of the groups.
    messages_between_groups(5, world) {
        let inter = halves(&world, 2).await?;
        let is_first = world.rank() < 2;
        let receives: Vec<_> = (0..inter.remote_size()).map(|from| inter.irecv::<String>(from, 1)).collect();
        for to in 0..inter.remote_size() {
            inter.isend(to, 1, format!("{is_first} {} to {to}", inter.rank())).await?;
            inter.send(to, 2, inter.rank()).await?;
            inter.send_slice(to, 3, &[inter.rank() as u8; 2]).await?;
        }
        for (from, request) in receives.into_iter().enumerate() {
            let (text, status) = request.await?;
            assert_eq!((text, status.source), (format!("{} {from} to {}", !is_first, inter.rank()), from));
        }
        let mut sources = Vec::new();
        for _ in 0..inter.remote_size() {
            let (number, status) = inter.recv::<usize>(ANY, 2).await?;
            assert_eq!(number, status.source);
            sources.push(number);
        }
        sources.sort_unstable();
        assert_eq!(sources, (0..inter.remote_size()).collect::<Vec<_>>());
        for from in 0..inter.remote_size() {
            let mut pair = [9_u8; 2];
            match from {
                0 => drop(inter.recv_into(from, 3, &mut pair).await?),
                _ => pair.copy_from_slice(&inter.recv_vec(from, 3).await?.0),
            }
            assert_eq!(pair, [from as u8; 2]);
        }
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    groups_are_merged(5, world) {
        let inter = halves(&world, 2).await?;
        let is_first = world.rank() < 2;
        let first_comes_first = [0, 1, 2, 3, 4][world.rank()];
        let other_comes_first = [3, 4, 0, 1, 2][world.rank()];
        for (high, expected) in [
            (!is_first, first_comes_first),
            (is_first, other_comes_first),
            (false, first_comes_first),
            (true, first_comes_first),
        ] {
            let all = inter.merge(high).await?;
            assert_eq!((all.rank(), all.size()), (expected, 5));
            let mut in_order = vec![0; 5];
            in_order[expected] = world.rank();
            assert_eq!(all.allgather(world.rank()).await?[expected], world.rank());
            assert_eq!(all.allreduce(in_order, op::each(op::sum)).await?.iter().sum::<usize>(), 10);
        }
    }

    /// Two groups of one world: all ranks have come, and the world is as it was.
    groups_are_separated(5, world) {
        let inter = halves(&world, 2).await?;
        assert_eq!(inter.allreduce(1, op::sum).await?, if world.rank() < 2 { 3 } else { 2 });
        inter.disconnect().await?;
        assert_eq!(world.allreduce(1, op::sum).await?, 5);
    }

    intercommunicators_with_errors(4, world) {
        let inter = halves(&world, 2).await?;
        let error = inter.send(2, (), 1).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "send"));
        assert!(error.to_string().contains("there are ranks 0 to 1"), "{error}");
        let error = inter.gather(InterRoot::Here(2), || 1).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Root, "gather"));
        let error = inter.alltoall(vec![1; 3]).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "alltoall"));
        inter.barrier().await?;
        // A rank in both groups, and a leader that is not there.
        let error = world.intercommunicator(0, &world, 0, 9).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Group, "intercommunicator"));
        let error = world.intercommunicator(1, &world, 4, 9).await.unwrap_err();
        let class = if world.rank() == 1 { ErrorClass::Rank } else { ErrorClass::Group };
        assert_eq!((error.class(), error.call()), (class, "intercommunicator"));
        world.barrier().await?;
    }
}
