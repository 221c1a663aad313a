//! Calls that are refused: the class of the error, and that its text names the call and both sides.

use super::cases;
use selvedge_mpi::{ANY, Error, ErrorClass, Functions, Layout, Parts, SharedFile, Tag};

#[track_caller]
fn assert_error(error: Error, class: ErrorClass, told: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.class(), class, "{text}");
    assert!(text.contains("errors.rs"), "the place is missing: {text}");
    for told in told {
        assert!(text.contains(told), "{told} is missing: {text}");
    }
}

cases! {
    no_such_rank(2, world) {
        let error = world.send(2, (), 1).await.unwrap_err();
        assert_error(error, ErrorClass::Rank, &["send on rank", "rank 2", "ranks 0 to 1"]);
        let error = world.recv::<i32>(7, ()).await.unwrap_err();
        assert_error(error, ErrorClass::Rank, &["recv on rank", "rank 7"]);
        let error = world.isend(9, (), 1).await.unwrap_err();
        assert_error(error, ErrorClass::Rank, &["isend"]);
        let error = world.probe(2, ANY).await.unwrap_err();
        assert_error(error, ErrorClass::Rank, &["probe"]);
        let error = world.send_slice(2, (), &[1.0]).await.unwrap_err();
        assert_error(error, ErrorClass::Rank, &["send_slice"]);
    }

    no_such_tag(1, world) {
        let error = world.send(0, Tag::MAX.0 + 1, 1).await.unwrap_err();
        assert_error(error, ErrorClass::Tag, &["send on rank 0", "tag 2147483648"]);
    }

    no_such_root(2, world) {
        let error = world.bcast(2, || 1).await.unwrap_err();
        assert_error(error, ErrorClass::Root, &["bcast on rank", "root is rank 2"]);
        let error = world.gather(5, 1).await.unwrap_err();
        assert_error(error, ErrorClass::Root, &["gather"]);
        // The ranks are in step afterwards.
        assert_eq!(world.allgather(1).await?, [1, 1]);
    }

    another_type(2, world) {
        if world.rank() == 0 {
            world.send(1, 3, 1_i32).await?;
            world.send_slice(1, 4, &[1_u8, 2, 3]).await?;
            world.send(1, 5, vec![1.5, 2.5]).await?;
        } else {
            let error = world.recv::<String>(0, 3).await.unwrap_err();
            assert_error(error, ErrorClass::Type, &["recv on rank 1", "from rank 0 with tag 3", "String"]);
            let error = world.recv_vec::<u16>(0, 4).await.unwrap_err();
            assert_error(error, ErrorClass::Type, &["recv_vec on rank 1", "u16"]);
            // A value is no slice of elements, in no engine.
            let error = world.recv_vec::<f64>(0, 5).await.unwrap_err();
            assert_error(error, ErrorClass::Type, &["recv_vec on rank 1", "f64"]);
        }
    }

    another_collective(2, world) {
        if world.rank() == 0 {
            world.bcast(0, || 1).await?;
            world.bcast(0, || 2).await?;
            // Rank 1 has noticed both.
            world.recv::<()>(1, ()).await?;
        } else {
            let error = world.barrier().await.unwrap_err();
            let told = ["barrier on rank 1", "rank 0 calls bcast with root 0", "this rank calls barrier"];
            assert_error(error, ErrorClass::Mismatch, &told);
            let error = world.gather(1, 'x').await.unwrap_err();
            let told = ["gather on rank 1", "rank 0 calls bcast with root 0", "gather with root 1"];
            assert_error(error, ErrorClass::Mismatch, &told);
            world.send(0, (), ()).await?;
        }
    }

    a_wrong_number_of_values(3, world) {
        if world.rank() == 0 {
            let error = world.scatter(0, || vec![1, 2]).await.unwrap_err();
            assert_error(error, ErrorClass::Count, &["scatter on rank 0", "2 parts for 3 ranks"]);
        }
        let error = world.alltoall(vec![1; 4]).await.unwrap_err();
        assert_error(error, ErrorClass::Count, &["alltoall", "4 parts for 3 ranks"]);
    }

    slices_of_different_lengths(2, world) {
        let mut room = vec![0; 2 + world.rank()];
        let result = world.bcast_into(0, &mut room).await;
        if world.rank() == 1 {
            let told = ["bcast_into on rank 1", "3 elements on one rank, and 2 on another"];
            assert_error(result.unwrap_err(), ErrorClass::Count, &told);
        }
        assert!(Parts::new(vec![1, 2, 3], [1, 1]).is_none());
        assert!(Parts::new(vec![1], [usize::MAX, 2]).is_none());
    }

    /// One call for each class, in the order of `ErrorClass`. A unit test in `error.rs` compares
    /// these with the classes that there are.
    every_class(2, world) {
        let (rank, other) = (world.rank(), 1 - world.rank());
        let alone = world.alone();
        let mut seen = Vec::new();
        seen.push((ErrorClass::Rank, world.send(2, (), 1).await.unwrap_err()));
        seen.push((ErrorClass::Tag, world.send(other, Tag::MAX.0 + 1, 1).await.unwrap_err()));
        seen.push((ErrorClass::Root, world.bcast(2, || 1).await.unwrap_err()));
        seen.push((ErrorClass::Count, alone.alltoall(vec![1; 2]).await.unwrap_err()));
        let pair = Layout::vector(2, 1, 3);
        seen.push((ErrorClass::Buffer, world.send_layout(other, (), &[1_u8], &pair).await.unwrap_err()));
        world.send_slice(rank, 1, &[1, 2]).await?;
        seen.push((ErrorClass::Truncate, world.recv_into(rank, 1, &mut [0]).await.unwrap_err()));
        world.send(rank, 1, 'x').await?;
        seen.push((ErrorClass::Type, world.recv::<String>(rank, 1).await.unwrap_err()));
        seen.push((ErrorClass::Mismatch, world.cartesian([2], [rank == 0]).await.unwrap_err()));
        seen.push((ErrorClass::Group, alone.create(&world.group().include(&[other])).await.unwrap_err()));
        let child = alone.spawn(0, 1, async |_| Ok::<_, Error>(())).await?;
        seen.push((ErrorClass::Ended, child.recv::<()>(0, ()).await.unwrap_err()));
        let revoked = world.dup().await?;
        revoked.revoke();
        seen.push((ErrorClass::Revoked, revoked.send(other, (), ()).await.unwrap_err()));
        let mut functions = Functions::new();
        let throws = functions.register("throws", async |(): ()| selvedge_core::throw("it is too much"));
        let pool = functions.start(&world).await?;
        seen.push((ErrorClass::Function, pool.call::<(), ()>(other, throws, ()).await.unwrap_err()));
        pool.finish().await?;
        seen.push((ErrorClass::Join, alone.connect(0, Some("no port")).await.unwrap_err()));
        // Ranks of one process may do everything.
        if world.engine_name() != "threads" {
            let error = world.spawn(0, 1, async |_| Ok::<_, Error>(())).await.unwrap_err();
            seen.push((ErrorClass::Unsupported, error));
        }
        seen.push((ErrorClass::File, SharedFile::open(&world, "/no/such/file").await.unwrap_err()));
        for (class, error) in seen {
            assert_eq!(error.class(), class, "{error}");
            assert_eq!(error.place().file(), file!(), "{error}");
        }
    }
}
