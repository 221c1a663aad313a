//! Operations that are made once and started again and again.

use super::cases;
use selvedge_core::{catch, yield_now};
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, PROC_NULL, Parts, op};

/// Every persistent collective, several times, all of them under way at once.
async fn all_of_them(world: &Communicator, root: usize) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let parts =
        |round: usize| Parts::from((0..size).map(|to| vec![[rank, to, round]; to]).collect::<Vec<_>>());
    let mut barrier = world.barrier_init();
    let mut bcast = world.bcast_init(root, vec![rank; 2]);
    let mut gather = world.gather_init(root, vec![rank; rank]);
    let mut scatter = world.scatter_init(root, if rank == root { parts(0) } else { Parts::default() });
    let mut allgather = world.allgather_init(vec![rank; rank]);
    let mut alltoall = world.alltoall_init(parts(0));
    let mut reduce = world.reduce_init(root, vec![rank, 1], op::sum);
    let mut allreduce = world.allreduce_init(vec![rank, 1], op::sum);
    let mut reduce_scatter = world.reduce_scatter_init(Parts::even(vec![rank; size], size), op::sum);
    let mut scan = world.scan_init(vec![rank], op::sum);
    let mut exscan = world.exscan_init(vec![rank], op::sum);
    for round in 0..4 {
        bcast.own_mut()[1] = round;
        gather.own_mut().fill(rank + round);
        allgather.own_mut().fill(rank * round);
        reduce.own_mut()[1] = round;
        allreduce.own_mut()[1] = round;
        scan.own_mut()[0] = rank + round;
        exscan.own_mut()[0] = rank + round;
        *alltoall.own_mut() = parts(round);
        if rank == root {
            *scatter.own_mut() = parts(round);
        }
        if rank > 0 {
            reduce_scatter.own_mut()[rank][0] = round;
        }

        let ends = (barrier.start(), bcast.start(), gather.start(), scatter.start(), allgather.start());
        let more = (alltoall.start(), reduce.start(), allreduce.start(), reduce_scatter.start());
        let (scanned, before) = (scan.start(), exscan.start());
        let sum: usize = (0..rank).map(|rank| rank + round).sum();
        assert_eq!(*before.await?, (rank > 0).then(|| vec![sum]));
        assert_eq!(*scanned.await?, [sum + rank + round]);
        let all: usize = (0..size).sum();
        assert_eq!(*more.3.await?, [if rank == 0 { all } else { all - rank + round }]);
        assert_eq!(*more.2.await?, [all, size * round]);
        assert_eq!(*more.1.await?, (rank == root).then(|| vec![all, size * round]));
        let expected: Vec<_> = (0..size).map(|from| vec![[from, rank, round]; rank]).collect();
        assert_eq!(*more.0.await?, Parts::from(expected));
        let each = |value: fn(usize, usize) -> usize| {
            Parts::from((0..size).map(|rank| vec![value(rank, round); rank]).collect::<Vec<_>>())
        };
        assert_eq!(*ends.4.await?, each(|rank, round| rank * round));
        assert_eq!(*ends.3.await?, vec![[root, rank, round]; rank]);
        assert_eq!(*ends.2.await?, (rank == root).then(|| each(|rank, round| rank + round)));
        assert_eq!(*ends.1.await?, [root, round]);
        ends.0.await?;
    }
    assert_eq!(*bcast.result(), [root, 3]);
    Ok(())
}

cases! {
    persistent_collectives_on_1(1, world) { all_of_them(&world, 0).await?; }

    persistent_collectives_with_every_root(3, world) {
        for root in 0..3 {
            all_of_them(&world, root).await?;
        }
    }

    persistent_collectives_on_4(4, world) { all_of_them(&world, 2).await?; }

    /// Elements go round in a circle, a different number each time, and each side by other calls in
    /// every second round.
    persistent_messages(3, world) {
        let (rank, next, before) = (world.rank(), (world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let mut sends = world.send_init(next, 5, Vec::new());
        let mut receives = world.recv_init::<u32>(before, 5);
        for round in 0..12_u32 {
            let count = (round * 7 % 5) as usize;
            let elements = |from: usize| vec![round * 10 + from as u32; count];
            sends.own_mut().clear();
            sends.own_mut().extend(elements(rank));
            let coming = (round % 3 > 0).then(|| receives.start());
            match round % 2 {
                0 => sends.start().await?,
                _ => world.send_slice(next, 5, &elements(rank)).await?,
            }
            match coming {
                Some(coming) => {
                    let (came, status) = coming.await?;
                    assert_eq!((came, status.source), (&*elements(before), before));
                    assert_eq!(status.count::<u32>(), Some(count));
                }
                None => assert_eq!(world.recv_vec::<u32>(before, 5).await?.0, elements(before)),
            }
        }
        assert_eq!(receives.elements(), vec![110 + before as u32; 2]);
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    /// A sender that is far ahead: each message has the elements of its own start.
    persistent_sends_ahead(2, world) {
        if world.rank() == 0 {
            let mut sends = world.send_init(1, (), vec![0_u64; 50]);
            for number in 0..40 {
                sends.own_mut().fill(number);
                sends.start().await?;
            }
            let mut last = world.ssend_init(1, 1, vec![0.5]);
            last.start().await?;
        } else {
            let mut receives = world.recv_init::<u64>(0, 0);
            for number in 0..40_u64 {
                assert_eq!(receives.start().await?.0, [number; 50]);
            }
            let mut room = [0.0; 2];
            world.recv_into(0, 1, &mut room).await?;
            assert_eq!(room, [0.5, 0.0]);
        }
    }

    /// A start of a receive that is given up takes no message.
    a_persistent_receive_is_given_up(2, world) {
        if world.rank() == 0 {
            world.recv_vec::<u8>(1, ()).await?;
            world.send_slice(1, 3, &[1_u8]).await?;
            world.send_slice(1, 3, &[2_u8]).await?;
            world.send_slice(1, 4, &[3_u8]).await?;
        } else {
            let mut receives = world.recv_init::<u8>(0, 3);
            drop(receives.start());
            let coming = receives.start();
            world.send_slice::<u8>(0, (), &[]).await?;
            world.recv_vec::<u8>(0, 4).await?;
            drop(coming); // its message has come
            assert_eq!(receives.start().await?.0, [1]);
            assert_eq!(receives.start().await?.0, [2]);
        }
    }

    /// It goes on without its future, and without itself; and a later start has its own result.
    persistent_starts_that_are_dropped(4, world) {
        let rank = world.rank();
        let mut sum = world.allreduce_init(vec![rank], op::sum);
        for round in 0..6_usize {
            sum.own_mut()[0] = rank + round;
            if round % 3 == rank % 3 {
                drop(sum.start());
                continue;
            }
            assert_eq!(*sum.start().await?, [6 + 4 * round]);
        }
        drop(sum.start());
        drop(sum);
        world.barrier().await?;
    }

    /// The same round by each form of the call.
    persistent_and_other_forms(3, world) {
        let rank = world.rank();
        let mut sum = world.allreduce_init(vec![rank, 1], op::sum);
        let mut scatter = world.scatter_init(0, Parts::even(vec![0_u8, 1, 2], 3));
        for round in 0..3 {
            let (total, own) = match (rank + round) % 3 {
                0 => (sum.start().await?.clone(), scatter.start().await?.clone()),
                1 => {
                    let mut elements = [rank, 1];
                    world.allreduce_into(&mut elements, op::sum).await?;
                    let parts = || Parts::even(vec![0, 1, 2], 3);
                    (elements.to_vec(), world.scatter_parts(0, parts).await?)
                }
                _ => {
                    let sum = world.iallreduce_into(vec![rank, 1], op::sum);
                    let scatter = world.iscatter_parts(0, || Parts::even(vec![0, 1, 2], 3));
                    let own = scatter.await?;
                    (sum.await?, own)
                }
            };
            assert_eq!((total, own), (vec![3, 3], vec![rank as u8]));
        }
    }

    /// The operation panics in the collective's thread, and the rank that awaits it has the panic.
    a_panic_of_a_persistent_operation(2, world) {
        let checked = |a: i32, b: i32| {
            assert!(b >= 0, "{b} is negative");
            a + b
        };
        let mut sum = world.reduce_init(0, vec![1], checked);
        if world.rank() == 1 {
            sum.own_mut()[0] = -1;
            sum.start().await?;
            sum.own_mut()[0] = 2;
            sum.start().await?;
        } else {
            let exception = catch(sum.start()).await.map(|end| end.is_ok()).unwrap_err();
            assert_eq!(exception.message(), Some("-1 is negative"));
            assert_eq!(sum.result(), &None);
            assert_eq!(*sum.start().await?, Some(vec![3]));
        }
        // Its thread is there, and is idle.
        yield_now().await;
    }

    persistent_with_the_null_rank(2, world) {
        let mut sends = world.send_init(PROC_NULL, (), vec![1, 2]);
        let mut receives = world.recv_init::<i32>(PROC_NULL, ());
        for _ in 0..3 {
            sends.start().await?;
            let (elements, status) = receives.start().await?;
            assert_eq!((elements, status.source), (&[][..], PROC_NULL));
        }
    }

    persistent_with_errors(2, world) {
        let error = world.send_init(2, (), vec![1]).start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "send_init"));
        assert!(error.to_string().contains("persistent.rs"), "{error}");
        let error = world.recv_init::<u8>(2, ()).start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "recv_init"));
        let mut bcast = world.bcast_init(2, vec![1]);
        let error = bcast.start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Root, "bcast_init"));
        let mut alltoall = world.alltoall_init(Parts::even(vec![1, 2, 3], 3));
        let error = alltoall.start().await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Count, "alltoall_init"));
        *alltoall.own_mut() = Parts::even(vec![4, 5], 2);
        let rank = world.rank();
        assert_eq!(alltoall.start().await?.clone().into_vec(), [4 + rank, 4 + rank]);
    }
}
