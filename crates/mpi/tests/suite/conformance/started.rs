//! Collectives that are started and awaited later: several at once, in any order, beside
//! collectives that are waited for.

use super::cases;
use selvedge_core::yield_now;
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, op, wait_all};

/// Every one is under way at once, and they are awaited from the last to the first.
async fn all_at_once(world: &Communicator, root: usize) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let barrier = world.ibarrier();
    let bcast = world.ibcast(root, || format!("from {root}"));
    let gather = world.igather(root, vec![rank; rank]);
    let scatter = world.iscatter(root, || (0..size).map(|rank| rank * 3).collect());
    let allgather = world.iallgather((rank, 'x'));
    let alltoall = world.ialltoall((0..size).map(|to| (rank, to)).collect());
    let reduce = world.ireduce(root, rank.to_string(), |a, b| a + &b);
    let allreduce = world.iallreduce(rank, op::max);
    let reduce_scatter = world.ireduce_scatter((0..size).map(|place| place + rank).collect(), op::sum);
    let scan = world.iscan(rank + 1, op::sum);
    let exscan = world.iexscan(rank + 1, op::sum);

    assert_eq!(exscan.await?, (rank > 0).then(|| (1..=rank).sum()));
    assert_eq!(scan.await?, (1..=rank + 1).sum());
    assert_eq!(reduce_scatter.await?, (0..size).map(|from| rank + from).sum());
    assert_eq!(allreduce.await?, size - 1);
    let text = (0..size).map(|rank| rank.to_string()).collect::<String>();
    assert_eq!(reduce.await?, (rank == root).then_some(text));
    assert_eq!(alltoall.await?, (0..size).map(|from| (from, rank)).collect::<Vec<_>>());
    assert_eq!(allgather.await?, (0..size).map(|rank| (rank, 'x')).collect::<Vec<_>>());
    assert_eq!(scatter.await?, rank * 3);
    assert_eq!(gather.await?, (rank == root).then(|| (0..size).map(|rank| vec![rank; rank]).collect()));
    assert_eq!(bcast.await?, format!("from {root}"));
    barrier.await
}

cases! {
    started_on_1(1, world) { all_at_once(&world, 0).await?; }

    started_with_every_root(4, world) {
        for root in 0..4 {
            all_at_once(&world, root).await?;
        }
    }

    started_on_5(5, world) { all_at_once(&world, 3).await?; }

    /// Each rank awaits a hundred sums in an order of its own.
    a_hundred_at_once(3, world) {
        let mut requests: Vec<_> = (0..100_usize)
            .map(|number| Some((number, world.iallreduce(number * (world.rank() + 1), op::sum))))
            .collect();
        for turn in 0..100 {
            let place = turn * [37, 11, 63][world.rank()] % 100;
            let (number, request) = requests[place].take().expect("the steps have no factor of 100");
            assert_eq!(request.await?, number * 6);
        }
        let all = wait_all((0..50).map(|number| world.ibcast(number % 3, || number))).await?;
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }

    /// A rank starts what another one waits for, and messages of the program go between.
    started_and_waited_for(3, world) {
        let rank = world.rank();
        for round in 0..3 {
            let next = world.isend((rank + 1) % 3, (), (rank, round));
            let sum = if rank == round {
                let started = world.iallreduce(rank, op::sum);
                assert_eq!(world.bcast(1, || "weft".to_string()).await?, "weft");
                started.await?
            } else {
                let sum = world.allreduce(rank, op::sum).await?;
                assert_eq!(world.ibcast(1, || "weft".to_string()).await?, "weft");
                sum
            };
            assert_eq!(sum, 3);
            assert_eq!(world.recv::<(usize, usize)>((rank + 2) % 3, ()).await?.0, ((rank + 2) % 3, round));
            next.await?;
        }
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    /// It goes on without its request.
    a_dropped_request_of_a_collective(4, world) {
        drop(world.iallreduce(1, op::sum));
        assert_eq!(world.iallreduce(1, op::sum).cancel().transpose()?.unwrap_or(4), 4);
        let all = world.iallgather(world.rank());
        drop(world.ibarrier());
        assert_eq!(all.await?, [0, 1, 2, 3]);
        world.barrier().await?;
    }

    a_collective_is_tested(2, world) {
        if world.rank() == 0 {
            let mut barrier = world.ibarrier();
            for _ in 0..10 {
                yield_now().await;
                assert!(barrier.test().is_none(), "rank 1 has not come");
            }
            world.send(1, (), ()).await?;
            while barrier.test().transpose()?.is_none() {
                yield_now().await;
            }
            assert!(barrier.test().is_none(), "the result is given once");
        } else {
            world.recv::<()>(0, ()).await?;
            world.barrier().await?;
        }
    }

    started_with_errors(3, world) {
        let error = world.ibcast(3, || 1).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Root, "ibcast"));
        assert!(error.to_string().contains("started.rs"), "{error}");
        let error = world.ialltoall(vec![1; 2]).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "ialltoall"));
        if world.rank() == 0 {
            let error = world.igather(0, 1).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Mismatch, "igather"));
        } else {
            world.ireduce(0, 1, op::sum).await?;
        }
        // The ranks are in step afterwards.
        world.barrier().await?;
    }
}
