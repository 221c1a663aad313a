//! Revoking, agreeing and shrinking, where no rank ends.

use super::cases;
use selvedge_core::{JoinHandle, spawn, yield_now};
use selvedge_mpi::{ANY, Communicator, ComparisonResult, Error, ErrorClass, PROC_NULL, op};

/// Calls that wait on this rank, each in a thread or request of its own.
fn waiting(world: &Communicator) -> Vec<JoinHandle<Result<(), Error>>> {
    macro_rules! waits {
        ($world:ident, $call:expr) => {{
            let $world = world.clone();
            spawn(async move { $call.await.map(drop) })
        }};
    }
    let (irecv, issend, ibarrier) =
        (world.irecv::<u8>(0, 9), world.issend(0, 9, "lost".to_string()), world.ibarrier());
    vec![
        waits!(world, world.recv::<u8>(0, 1)),
        waits!(world, world.recv::<u8>(ANY, 2)),
        waits!(world, async { world.recv_into(0, 3, &mut [0.5]).await }),
        waits!(world, world.recv_vec::<u8>(ANY, ANY)),
        waits!(world, world.probe(0, 4)),
        waits!(world, async { world.mprobe(0, 5).await.map(drop) }),
        waits!(world, world.ssend(0, 6, 1)),
        waits!(world, world.ssend_slice(0, 7, &[1])),
        waits!(world, world.allreduce(1, op::sum)),
        spawn(async move { irecv.await.map(drop) }),
        spawn(async move { issend.await.map(drop) }),
        spawn(async move { ibarrier.await.map(drop) }),
    ]
}

/// Each of these calls is refused.
async fn refused(world: &Communicator) {
    macro_rules! refused {
        ($($result:expr),* $(,)?) => {$(
            let error = $result.err().unwrap_or_else(|| panic!("{} succeeds", stringify!($result)));
            assert_eq!(error.class(), ErrorClass::Revoked, "{error}");
            assert!(error.to_string().contains("recovery.rs"), "{error}");
        )*};
    }
    refused! {
        world.send(0, (), 1).await,
        world.send(PROC_NULL, (), 1).await,
        world.ssend(world.rank(), (), 1).await,
        world.isend(0, (), 1).await,
        world.send_slice(0, (), &[1]).await,
        world.recv::<u8>(0, ()).await,
        world.recv::<()>(PROC_NULL, ()).await,
        world.recv_vec::<u8>(ANY, ANY).await,
        world.irecv::<u8>(ANY, ANY).await,
        world.sendrecv::<_, u8>(0, (), 1, 0, ()).await,
        world.probe(ANY, ANY).await,
        world.iprobe(ANY, ANY),
        world.mprobe(ANY, ANY).await,
        world.improbe(ANY, ANY),
        world.barrier().await,
        world.bcast(0, || 1).await,
        world.gather(0, 1).await,
        world.scatter(0, || vec![1; world.size()]).await,
        world.allgather_slice(&[1]).await,
        world.scan(1, op::sum).await,
        world.ibarrier().await,
        world.split(0, 0).await,
        world.dup().await,
    }
}

cases! {
    a_revocation_ends_what_waits(3, world) {
        let other = world.dup().await?;
        assert!(!world.is_revoked());
        if world.rank() == 0 {
            for _ in 1..3 {
                other.recv::<()>(ANY, ()).await?;
            }
            world.revoke();
        } else {
            world.send_slice(world.rank(), 77, &[7_u8]).await?;
            let waiting = waiting(&world);
            for _ in 0..20 {
                yield_now().await;
            }
            other.send(0, (), ()).await?;
            for (number, thread) in waiting.into_iter().enumerate() {
                match thread.await.expect("no thread panics") {
                    // It has taken the message above.
                    Ok(()) => assert_eq!(number, 3),
                    Err(error) => assert_eq!(error.class(), ErrorClass::Revoked, "{number}: {error}"),
                }
            }
        }
        assert!(world.is_revoked());
        refused(&world).await;
        // The other communicator is as it was.
        assert_eq!(other.allreduce(1, op::sum).await?, 3);
        assert!(!other.is_revoked());
    }

    messages_of_a_revoked_communicator_are_dropped(2, world) {
        let other = world.dup().await?;
        if world.rank() == 0 {
            world.send(1, (), 7).await?;
            other.recv::<()>(1, ()).await?;
            world.revoke();
            world.revoke();
        } else {
            let matched = world.mprobe(0, ()).await?;
            other.send(0, (), ()).await?;
            while !world.is_revoked() {
                yield_now().await;
            }
            // It was taken before.
            assert_eq!(matched.recv::<i32>()?, 7);
        }
        refused(&world).await;
    }

    all_ranks_revoke(4, world) {
        world.revoke();
        refused(&world).await;
        assert!(world.agree(true).await?);
        let shrunk = world.shrink().await?;
        assert_eq!(shrunk.compare(&world), ComparisonResult::Congruent);
        assert_eq!(shrunk.allreduce(shrunk.rank(), op::sum).await?, 6);
        // It can be revoked in turn, when no rank is in the sum any more.
        assert!(shrunk.agree(true).await?);
        if shrunk.rank() == 3 {
            shrunk.revoke();
        }
        while !shrunk.is_revoked() {
            yield_now().await;
        }
        refused(&shrunk).await;
        assert_eq!(shrunk.shrink().await?.allreduce(1, op::sum).await?, 4);
    }

    an_agreement(3, world) {
        for round in 0..40 {
            assert!(world.agree(true).await?);
            assert!(!world.agree(world.rank() != round % 3).await?);
            assert!(!world.agree(false).await?);
        }
        world.barrier().await?;
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    an_agreement_alone(1, world) {
        assert!(world.agree(true).await? && !world.agree(false).await?);
        world.revoke();
        refused(&world).await;
        let shrunk = world.shrink().await?;
        assert_eq!((shrunk.rank(), shrunk.size()), (0, 1));
        shrunk.barrier().await?;
    }

    /// Ranks that come late, and programs that revoke parts of the world only.
    a_part_is_revoked(4, world) {
        let half = world.split((world.rank() % 2) as u32, 0).await?.expect("each rank has a color");
        if world.rank() == 1 {
            half.revoke();
        }
        if world.rank() % 2 == 1 {
            half.barrier().await.unwrap_err();
            refused(&half).await;
        } else {
            half.barrier().await?;
        }
        assert!(half.agree(true).await?);
        assert_eq!(half.shrink().await?.allgather(world.rank()).await?.len(), 2);
        world.barrier().await?;
    }
}
