//! The functions of Haskell-MPI's module `Fast`: on elements.

use super::haskell;
use selvedge_mpi::{Communicator, Parts, Plain, op, wait_all};

/// Elements that tell their rank, as many as its number and one more.
fn own(world: &Communicator) -> Vec<f64> {
    vec![world.rank() as f64; world.rank() + 1]
}

/// The [`own`] elements of three ranks.
fn of_three() -> Parts<f64> {
    Parts::from((0..3).map(|rank| vec![rank as f64; rank + 1]).collect::<Vec<_>>())
}

/// A part of two elements for each of three ranks.
fn pairs(rank: i32) -> Parts<i32> {
    Parts::from((0..3).map(|to| vec![rank, to]).collect::<Vec<_>>())
}

/// Elements of each type with these traits may be sent and received.
fn is_element<T: Plain>() {}

haskell! { "Fast":
    Repr SendFrom RecvInto(1, world) {
        is_element::<f32>();
        is_element::<[u64; 3]>();
        world.barrier().await?;
    }

    send rsend recv(2, world) {
        let other = 1 - world.rank();
        world.send_slice(other, (), &[1.5, 2.5]).await?;
        let mut room = [0.0; 2];
        world.recv_into(other, (), &mut room).await?;
        assert_eq!(room, [1.5, 2.5]);
    }

    ssend(2, world) {
        if world.rank() == 0 {
            world.ssend_slice(1, (), &[7_u8]).await?;
        } else {
            let mut room = [0_u8];
            world.recv_into(0, (), &mut room).await?;
            assert_eq!(room, [7]);
        }
    }

    isend isendPtr(2, world) {
        let other = 1 - world.rank();
        let going = world.isend_vec(other, (), vec![5_i64; 4]);
        assert_eq!(world.recv_vec::<i64>(other, ()).await?.0, [5; 4]);
        assert_eq!(going.await?, [5; 4]);
    }

    irecv irecvPtr(2, world) {
        let other = 1 - world.rank();
        let coming = world.irecv_into(other, (), vec![0_i64; 4]);
        world.send_slice(other, (), &[5_i64; 4]).await?;
        assert_eq!(coming.await?.0, [5; 4]);
    }

    waitall(2, world) {
        let other = 1 - world.rank();
        let coming: Vec<_> = (0..3).map(|tag| world.irecv_into(other, tag, vec![0_u32])).collect();
        let going: Vec<_> = (0..3_u32).map(|tag| world.isend_vec(other, tag, vec![tag])).collect();
        wait_all(going).await?;
        let came: Vec<_> = wait_all(coming).await?.into_iter().map(|(came, _)| came[0]).collect();
        assert_eq!(came, [0, 1, 2]);
    }

    bcastSend bcastRecv(3, world) {
        let mut elements = if world.rank() == 1 { [4, 5, 6] } else { [0; 3] };
        world.bcast_into(1, &mut elements).await?;
        assert_eq!(elements, [4, 5, 6]);
    }

    scatterSend scatterRecv(3, world) {
        let mine = world.scatter_parts(0, || Parts::even((0..6).collect(), 3)).await?;
        assert_eq!(mine, [2 * world.rank(), 2 * world.rank() + 1]);
    }

    scattervSend scattervRecv(3, world) {
        assert_eq!(world.scatter_parts(2, of_three).await?, own(&world));
    }

    gatherSend gatherRecv(3, world) {
        let all = world.gather_slice(0, &[world.rank(); 2]).await?;
        assert_eq!(all.map(Parts::into_vec), (world.rank() == 0).then(|| vec![0, 0, 1, 1, 2, 2]));
    }

    gathervSend gathervRecv(3, world) {
        let all = world.gather_slice(1, &own(&world)).await?;
        assert_eq!(all, (world.rank() == 1).then(of_three));
    }

    reduceSend reduceRecv(3, world) {
        let sums = world.reduce_slice(2, &[world.rank(), 1], op::sum).await?;
        assert_eq!(sums, (world.rank() == 2).then(|| vec![3, 3]));
    }

    allgather(3, world) {
        assert_eq!(world.allgather_slice(&[world.rank()]).await?.into_vec(), [0, 1, 2]);
    }

    allgatherv(3, world) {
        assert_eq!(world.allgather_slice(&own(&world)).await?, of_three());
    }

    alltoall(3, world) {
        let rank = world.rank() as i32;
        let came = world.alltoall_parts(pairs(rank)).await?;
        assert_eq!(came.into_vec(), [0, rank, 1, rank, 2, rank]);
    }

    alltoallv(3, world) {
        let rank = world.rank();
        let mine = Parts::from((0..3).map(|to| vec![rank; to]).collect::<Vec<_>>());
        let came = world.alltoall_parts(mine).await?;
        assert_eq!(came, Parts::from((0..3).map(|from| vec![from; rank]).collect::<Vec<_>>()));
    }

    allreduce(3, world) {
        let mut elements = [world.rank(), 10];
        world.allreduce_into(&mut elements, op::max).await?;
        assert_eq!(elements, [2, 10]);
    }

    reduceScatter(3, world) {
        let counts = Parts::from((0..3).map(|to| vec![1_u32; to]).collect::<Vec<_>>());
        let mine = world.reduce_scatter_parts(counts, op::sum).await?;
        assert_eq!(mine, vec![3; world.rank()]);
    }

    reduceScatterBlock(3, world) {
        let mine = world.reduce_scatter_parts(Parts::even(vec![1_u32; 6], 3), op::sum).await?;
        assert_eq!(mine, [3, 3]);
    }

    // Each function of two elements is an operator.
    opCreate opFree(3, world) {
        let mut elements = [[1_i32, world.rank() as i32]];
        world.allreduce_into(&mut elements, |a, b| [a[0] * b[0], a[1] * 10 + b[1]]).await?;
        assert_eq!(elements, [[1, 12]]);
    }

    intoNewArray intoNewArray_ intoNewVal intoNewVal_ intoNewBS intoNewBS_(2, world) {
        let other = 1 - world.rank();
        world.send_slice(other, (), &[3_u16, 4]).await?;
        let (elements, status) = world.recv_vec::<u16>(other, ()).await?;
        assert_eq!((elements, status.count::<u16>()), (vec![3, 4], Some(2)));
    }
}
