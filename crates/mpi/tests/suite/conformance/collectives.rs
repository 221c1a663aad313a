//! The collectives, on 1 to 7 ranks.

use super::cases;
use selvedge_mpi::{Communicator, Error, Parts, op};

/// Every collective with every root, once.
async fn all_of_them(world: &Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    world.barrier().await?;
    for root in 0..size {
        let value = world.bcast(root, || format!("from {root}")).await?;
        assert_eq!(value, format!("from {root}"));
        let mut row = if rank == root { [root as f64, 2.5] } else { [0.0; 2] };
        world.bcast_into(root, &mut row).await?;
        assert_eq!(row, [root as f64, 2.5]);

        let gathered = world.gather(root, vec![rank; rank]).await?;
        assert_eq!(gathered, (rank == root).then(|| (0..size).map(|rank| vec![rank; rank]).collect()));
        let gathered = world.gather_slice(root, &vec![rank; rank]).await?;
        let expected = || Parts::from((0..size).map(|rank| vec![rank; rank]).collect::<Vec<_>>());
        assert_eq!(gathered, (rank == root).then(expected));

        let own = world.scatter(root, || (0..size).map(|rank| rank * 3).collect()).await?;
        assert_eq!(own, rank * 3);
        let own = world.scatter_parts(root, || Parts::even((0..10_u32).collect(), size)).await?;
        assert_eq!(own, Parts::even((0..10).collect(), size)[rank]);

        let sum = world.reduce(root, rank + 1, op::sum).await?;
        assert_eq!(sum, (rank == root).then_some(size * (size + 1) / 2));
        let least = world.reduce_slice(root, &[rank as i32, -(rank as i32)], op::min).await?;
        assert_eq!(least, (rank == root).then(|| vec![0, 1 - size as i32]));
    }
    let all = world.allgather((rank, 'x')).await?;
    assert_eq!(all, (0..size).map(|rank| (rank, 'x')).collect::<Vec<_>>());
    let all = world.allgather_slice(&vec![rank as u64; rank + 1]).await?;
    assert_eq!(all.counts().collect::<Vec<_>>(), (1..=size).collect::<Vec<_>>());
    assert!(all.iter().enumerate().all(|(rank, part)| part.iter().all(|&it| it == rank as u64)));

    let came = world.alltoall((0..size).map(|to| (rank, to)).collect()).await?;
    assert_eq!(came, (0..size).map(|from| (from, rank)).collect::<Vec<_>>());
    let mine = Parts::from((0..size).map(|to| vec![rank * 10 + to; to]).collect::<Vec<_>>());
    let came = world.alltoall_parts(mine).await?;
    assert_eq!(came, Parts::from((0..size).map(|from| vec![from * 10 + rank; rank]).collect::<Vec<_>>()));

    assert_eq!(world.allreduce(rank, op::max).await?, size - 1);
    let mut pair = [1_u32, rank as u32];
    world.allreduce_into(&mut pair, op::sum).await?;
    assert_eq!(pair, [size as u32, (0..size as u32).sum()]);

    let own = world.reduce_scatter((0..size).map(|place| place + rank).collect(), op::sum).await?;
    assert_eq!(own, (0..size).map(|from| rank + from).sum());
    let mine = Parts::from((0..size).map(|place| vec![1_i64; place]).collect::<Vec<_>>());
    let own = world.reduce_scatter_parts(mine, op::sum).await?;
    assert_eq!(own, vec![size as i64; rank]);

    assert_eq!(world.scan(rank + 1, op::sum).await?, (1..=rank + 1).sum());
    assert_eq!(world.exscan(rank + 1, op::sum).await?, (rank > 0).then(|| (1..=rank).sum()));
    let mut row = [rank as i32, 1];
    world.scan_into(&mut row, op::sum).await?;
    assert_eq!(row, [(0..=rank as i32).sum(), rank as i32 + 1]);
    let mut row = [rank as i32, 1];
    world.exscan_into(&mut row, op::sum).await?;
    assert_eq!(row, if rank == 0 { [0, 1] } else { [(0..rank as i32).sum(), rank as i32] });
    Ok(())
}

cases! {
    collectives_of_1(1, world) { all_of_them(&world).await?; }
    collectives_of_2(2, world) { all_of_them(&world).await?; }
    collectives_of_3(3, world) { all_of_them(&world).await?; }
    collectives_of_4(4, world) { all_of_them(&world).await?; }
    collectives_of_5(5, world) { all_of_them(&world).await?; }
    collectives_of_7(7, world) { all_of_them(&world).await?; }

    /// Reductions combine in the order of the ranks, so they have the bits of a loop.
    the_bits_of_a_loop(7, world) {
        let part = |rank: usize| (rank as f64 + 0.1).sin() * 1e9 / (rank as f64 + 0.3);
        let loops = (0..7).map(part).reduce(|a, b| a + b).unwrap_or_default();
        let mine = part(world.rank());
        for _ in 0..5 {
            assert_eq!(world.allreduce(mine, op::sum).await?.to_bits(), loops.to_bits());
            let mut elements = [mine, -mine];
            world.allreduce_into(&mut elements, op::sum).await?;
            assert_eq!(elements.map(f64::to_bits), [loops.to_bits(), (-loops).to_bits()]);
            let upto = (0..=world.rank()).map(part).reduce(|a, b| a + b).unwrap_or_default();
            assert_eq!(world.scan(mine, op::sum).await?.to_bits(), upto.to_bits());
        }
    }

    /// An operation that is not commutative.
    words_in_order(5, world) {
        let word = ["a", "b", "c", "d", "e"][world.rank()].to_string();
        let join = |a: String, b: String| a + &b;
        assert_eq!(world.allreduce(word.clone(), join).await?, "abcde");
        assert_eq!(world.scan(word.clone(), join).await?, "abcde"[..world.rank() + 1]);
        assert_eq!(world.reduce(2, word, join).await?.is_some(), world.rank() == 2);
    }

    the_usual_operations(3, world) {
        let rank = world.rank();
        assert_eq!(world.allreduce(rank + 1, op::prod).await?, 6);
        assert!(!world.allreduce(rank != 1, op::land).await?);
        assert!(world.allreduce(rank == 1, op::lor).await?);
        assert!(world.allreduce(true, op::lxor).await?);
        assert_eq!(world.allreduce(1_u8 << rank | 8, op::band).await?, 8);
        assert_eq!(world.allreduce(1_u8 << rank, op::bor).await?, 7);
        assert_eq!(world.allreduce(1_u8 << rank, op::bxor).await?, 7);
        let value = [2.5, f64::NAN, 7.5][rank];
        assert_eq!(world.allreduce(value, op::max).await?, 7.5);
        assert_eq!(world.allreduce(value, op::min).await?, 2.5);
        assert_eq!(world.allreduce(([3, 9, 9][rank], rank), op::max_loc).await?, (9, 1));
        assert_eq!(world.allreduce(([3, 9, 3][rank], rank), op::min_loc).await?, (3, 0));
        assert_eq!(world.allreduce(vec![rank, 1], op::each(op::sum)).await?, [3, 3]);
    }

    /// No rank waits for the slowest, and operations do not mix.
    ranks_run_ahead(4, world) {
        for round in 0..50_usize {
            let root = round % world.size();
            assert_eq!(world.bcast(root, || round).await?, round);
            if world.rank() == 1 {
                selvedge_core::yield_now().await;
            }
            world.gather(root, round).await?;
        }
        world.barrier().await?;
    }

    /// Two operations of a communicator at the same time, begun in the same order on every rank.
    two_at_once(4, world) {
        let both = (world.allreduce(world.rank(), op::sum), world.allgather(world.rank()));
        let (sum, all) = selvedge_scope::join(both).await;
        assert_eq!((sum?, all?), (6, vec![0, 1, 2, 3]));
    }

    /// The program's messages and those of collectives do not meet.
    collectives_are_apart(3, world) {
        let other = (world.rank() + 1) % 3;
        let coming = world.irecv::<usize>(selvedge_mpi::ANY, selvedge_mpi::ANY);
        world.barrier().await?;
        world.allgather(99).await?;
        world.send(other, 0, world.rank()).await?;
        assert_eq!(coming.await?.0, (world.rank() + 2) % 3);
    }
}
