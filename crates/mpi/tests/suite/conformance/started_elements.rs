//! Collectives on elements that are started and awaited later.

use super::cases;
use selvedge_mpi::{Communicator, Error, ErrorClass, Parts, op};

/// A part for each rank, with as many elements as its number, which say from where to where.
fn parts_for_all(rank: usize, size: usize) -> Parts<[usize; 2]> {
    (0..size).map(|to| vec![[rank, to]; to]).collect::<Vec<_>>().into()
}

/// Every one is under way at once, and they are awaited from the last to the first.
async fn all_at_once(world: &Communicator, root: usize) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let own = vec![rank as i64; rank];
    let bcast = world.ibcast_into(root, vec![rank, 7 * rank]);
    let gather = world.igather_slice(root, &own);
    let scatter = world.iscatter_parts(root, || parts_for_all(rank, size));
    let allgather = world.iallgather_slice(&own);
    let alltoall = world.ialltoall_parts(parts_for_all(rank, size));
    let reduce = world.ireduce_slice(root, &[rank as i64, 2], op::sum);
    let allreduce = world.iallreduce_into(vec![rank, size - rank], op::max);
    let mine = Parts::from((0..size).map(|place| vec![rank; place]).collect::<Vec<_>>());
    let reduce_scatter = world.ireduce_scatter_parts(mine, op::sum);
    let scan = world.iscan_into(vec![rank + 1, 1], op::sum);
    let exscan = world.iexscan_into(vec![rank + 1, 1], op::sum);

    let before: usize = (1..=rank).sum();
    assert_eq!(exscan.await?, if rank == 0 { [1, 1] } else { [before, rank] });
    assert_eq!(scan.await?, [before + rank + 1, rank + 1]);
    let all: usize = (0..size).sum();
    assert_eq!(reduce_scatter.await?, vec![all; rank]);
    assert_eq!(allreduce.await?, [size - 1, size]);
    assert_eq!(reduce.await?, (rank == root).then(|| vec![all as i64, 2 * size as i64]));
    let expected: Vec<_> = (0..size).map(|from| vec![[from, rank]; rank]).collect();
    assert_eq!(alltoall.await?, Parts::from(expected));
    let everything = || Parts::from((0..size).map(|rank| vec![rank as i64; rank]).collect::<Vec<_>>());
    assert_eq!(allgather.await?, everything());
    assert_eq!(scatter.await?, vec![[root, rank]; rank]);
    assert_eq!(gather.await?, (rank == root).then(everything));
    assert_eq!(bcast.await?, [root, 7 * root]);
    Ok(())
}

cases! {
    started_elements_on_1(1, world) { all_at_once(&world, 0).await?; }

    started_elements_with_every_root(4, world) {
        for root in 0..4 {
            all_at_once(&world, root).await?;
        }
    }

    started_elements_on_5(5, world) { all_at_once(&world, 3).await?; }

    /// One rank starts what the others wait for, in each form.
    started_elements_and_waited_for(3, world) {
        let rank = world.rank();
        for starter in 0..3 {
            let (mut row, mut sums) = (vec![rank; 3], vec![rank, 1]);
            if rank == starter {
                let (bcast, allreduce) = (world.ibcast_into(2, row), world.iallreduce_into(sums, op::sum));
                sums = allreduce.await?;
                row = bcast.await?;
            } else {
                world.bcast_into(2, &mut row).await?;
                world.allreduce_into(&mut sums, op::sum).await?;
            }
            assert_eq!((row, sums), (vec![2; 3], vec![3, 3]));
        }
    }

    /// It goes on without its request, and the others have their results.
    a_dropped_request_of_elements(4, world) {
        let rank = world.rank();
        drop(world.iallreduce_into(vec![rank], op::sum));
        let all = world.iallgather_slice(&[rank]);
        let mut again = world.iallreduce_into(vec![rank], op::sum);
        if rank.is_multiple_of(2) {
            again.test().transpose()?;
            drop(again);
        } else {
            assert_eq!(again.await?, [6]);
        }
        assert_eq!(all.await?.into_vec(), [0, 1, 2, 3]);
        world.barrier().await?;
    }

    /// The slice is free when the call has returned.
    a_slice_is_copied_in_the_call(2, world) {
        let mut own = [world.rank(); 3];
        let gather = world.igather_slice(1, &own);
        own.fill(9);
        let reduce = world.ireduce_slice(1, &own, op::sum);
        own.fill(0);
        let gathered = gather.await?.map(Parts::into_vec);
        assert_eq!(gathered, (world.rank() == 1).then(|| vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(reduce.await?, (world.rank() == 1).then(|| vec![18; 3]));
    }

    started_elements_with_errors(3, world) {
        let error = world.ibcast_into(3, vec![1.0]).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Root, "ibcast_into"));
        assert!(error.to_string().contains("started_elements.rs"), "{error}");
        let error = world.ialltoall_parts(Parts::even(vec![1, 2], 2)).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "ialltoall_parts"));
        // One rank has too little room, and it alone has an error.
        let row = world.ibcast_into(0, vec![world.rank(); if world.rank() == 1 { 2 } else { 3 }]).await;
        if world.rank() == 1 {
            let error = row.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Count, "ibcast_into"));
        } else {
            assert_eq!(row?, [0; 3]);
        }
        // Elements of another type, and a collective on values in place of one on elements.
        if world.rank() == 0 {
            let error = world.igather_slice(0, &[1.5]).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Type, "igather_slice"));
        } else {
            world.igather(0, "a value".to_string()).await?;
        }
        // The ranks are in step afterwards.
        world.barrier().await?;
    }
}
