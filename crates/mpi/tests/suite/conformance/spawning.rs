//! Ranks that are started at run time, where the ranks are threads; elsewhere the error that says
//! so.

use super::cases;
use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, InterRoot, op};

/// Whether ranks can be spawned: the engine is that of threads.
fn is_possible(world: &Communicator) -> bool {
    world.engine_name() == "threads"
}

/// A rank that adds its number to what each parent sends, until it is told to end.
async fn adder(world: Communicator) -> Result<(), Error> {
    let parent = world.parent().expect("the rank was spawned");
    let sum = world.allreduce(1, op::sum).await?;
    assert_eq!(sum, world.size());
    loop {
        let (number, status) = parent.recv::<Option<usize>>(ANY, ()).await?;
        let Some(number) = number else { return Ok(()) };
        parent.send(status.source, (), number + world.rank()).await?;
    }
}

/// A rank that spawns others until `depth` is 0, and gives the number of all ranks below it.
async fn tree(world: Communicator, depth: usize) -> Result<usize, Error> {
    let below = if depth == 0 {
        0
    } else {
        let children = world.spawn(0, 2, move |world| leaf(world, depth - 1)).await?;
        let mut below = 0;
        for child in 0..2 {
            below += children.recv::<usize>(child, 7).await?.0;
        }
        below
    };
    Ok(below + 1)
}

/// A child of a [`tree`]. Each child has a communicator of itself, in which it spawns.
fn leaf(
    world: Communicator,
    depth: usize,
) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
    Box::pin(async move {
        let parent = world.parent().expect("the rank was spawned");
        let count = tree(world.alone(), depth).await?;
        parent.send(0, 7, count).await
    })
}

cases! {
    /// All ranks spawn three, and ask them.
    spawned_ranks(2, world) {
        assert!(world.parent().is_none());
        let spawned = world.spawn(1, 3, adder).await;
        if !is_possible(&world) {
            let error = spawned.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Unsupported, "spawn"), "{error}");
            return Ok(());
        }
        let adders = spawned?;
        assert_eq!((adders.rank(), adders.size(), adders.remote_size()), (world.rank(), 2, 3));
        for adder in 0..3 {
            adders.send(adder, (), Some(10 * world.rank())).await?;
            assert_eq!(adders.recv::<usize>(adder, ()).await?.0, 10 * world.rank() + adder);
        }
        world.barrier().await?;
        if world.rank() == 0 {
            for adder in 0..3 {
                adders.send(adder, (), None::<usize>).await?;
            }
        }
    }

    /// Both groups become one communicator, the new ranks first.
    spawned_ranks_merged(2, world) {
        if !is_possible(&world) {
            return Ok(());
        }
        let body = |world: Communicator| async move {
            let all = world.parent().expect("the rank was spawned").merge(false).await?;
            assert_eq!((all.rank(), all.size()), (world.rank(), 5));
            assert_eq!(all.allreduce(1 << all.rank(), op::sum).await?, 31);
            let dup = all.dup().await?;
            assert_eq!(dup.bcast(0, || "warp".to_string()).await?, "warp");
            Ok::<_, Error>(())
        };
        let all = world.spawn(0, 3, body).await?.merge(true).await?;
        assert_eq!((all.rank(), all.size()), (3 + world.rank(), 5));
        assert_eq!(all.allreduce(1 << all.rank(), op::sum).await?, 31);
        let dup = all.dup().await?;
        assert_eq!(dup.bcast(0, String::new).await?, "warp");
    }

    /// Ranks that were spawned spawn others.
    a_tree_of_spawned_ranks(1, world) {
        if is_possible(&world) {
            assert_eq!(tree(world, 3).await?, 15);
        }
    }

    /// A rank of either group that ends is an error for the other group.
    spawned_ranks_end(3, world) {
        if !is_possible(&world) {
            return Ok(());
        }
        let body = |world: Communicator| async move {
            let parent = world.parent().expect("the rank was spawned");
            if world.rank() == 1 {
                return Ok::<_, Error>(());
            }
            let error = parent.recv::<u8>(2, ()).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended, "{error}");
            assert!(error.to_string().contains("rank 2 has returned"), "{error}");
            parent.reduce(InterRoot::There(0), || 1, op::sum).await.map(drop).or(Ok(()))
        };
        let children = world.spawn(0, 2, body).await?;
        let error = children.recv::<u8>(1, ()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Ended, "{error}");
        // Rank 2 returns first, for which rank 0 of the children waits.
    }

    /// Ranks that were spawned leave, and have their world still.
    spawned_ranks_disconnect(2, world) {
        if !is_possible(&world) {
            return Ok(());
        }
        let body = |world: Communicator| async move {
            let parent = world.parent().expect("the rank was spawned");
            parent.send(world.rank() % 2, (), world.rank()).await?;
            let clone = parent.clone();
            parent.disconnect().await?;
            let error = clone.recv::<u8>(1, ()).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended, "{error}");
            assert_eq!(world.allreduce(1, op::sum).await?, 3);
            Ok::<_, Error>(())
        };
        let children = world.spawn(0, 3, body).await?;
        let all = children.clone();
        for child in (0..3).filter(|child| child % 2 == world.rank()) {
            assert_eq!(children.recv::<usize>(child, ()).await?.0, child);
        }
        children.disconnect().await?;
        let error = all.recv::<u8>(1, ()).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "recv"), "{error}");
        assert_eq!(world.allreduce(1, op::sum).await?, 2);
    }

    /// What is wrong with a call is told on every rank.
    errors_of_joining(2, world) {
        if !is_possible(&world) {
            let error = world.connect(0, Some("port-0")).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Unsupported, "{error}");
            return Ok(());
        }
        let error = world.connect(1, Some("no port")).await.unwrap_err();
        assert_eq!((error.class(), error.rank()), (ErrorClass::Join, world.rank()), "{error}");
        assert!(error.to_string().contains("the port no port is not open"), "{error}");
        let error = world.accept(0, None).await.unwrap_err();
        assert!(error.to_string().contains("the root names no port"), "{error}");
        let error = world.spawn(2, 1, adder).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Root, "{error}");
    }
}
