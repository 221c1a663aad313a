//! The functions of Haskell-MPI's module `Base`.

use super::haskell;
use selvedge_mpi::{
    ANY, ComparisonResult, ErrorClass, Group, Info, InterRoot, PROC_NULL, Plain, Port, Source, Tag, op,
};

/// The bytes of an element.
fn size_of_element<T: Plain>() -> usize {
    size_of::<T>()
}

/// Combines the values of two ranks, of which rank 0 has the first.
macro_rules! combined {
    ($world:ident, $values:expr, $op:path) => {
        $world.allreduce($values[$world.rank()], $op).await?
    };
}

haskell! { "Base":
    // The run begins before the body and ends after it, so that no call is outside of it.
    mpi init finalize(2, world) {
        assert_eq!(world.allreduce(1, op::sum).await?, 2);
    }

    mpiWorld(2, world) {
        assert_eq!(world.size(), 2);
        assert!(world.rank() < 2);
    }

    // Each thread of a rank may make each call.
    initThread ThreadSupport(2, world) {
        let there = world.clone();
        let other = 1 - world.rank();
        let thread = selvedge_core::spawn(async move { there.recv::<u8>(other, 1).await });
        world.send(other, 1, 7_u8).await?;
        assert_eq!(thread.await.expect("the thread does not panic")?.0, 7);
    }

    Request requestNull(2, world) {
        let other = 1 - world.rank();
        let mut coming = world.irecv::<u8>(other, ());
        world.send(other, (), 1_u8).await?;
        while coming.test().is_none() {
            selvedge_core::yield_now().await;
        }
        // Where Haskell-MPI has a null request in its place, it has nothing more.
        assert!(coming.test().is_none());
    }

    Status(2, world) {
        let other = 1 - world.rank();
        world.send(other, 5, 'x').await?;
        let (_, status) = world.recv::<char>(ANY, ANY).await?;
        assert_eq!((status.source, status.tag), (other, Tag(5)));
    }

    getCount(2, world) {
        let other = 1 - world.rank();
        world.send_slice(other, (), &[1_i32, 2, 3]).await?;
        let status = world.probe(other, ()).await?;
        assert_eq!((status.count::<i32>(), status.bytes), (Some(3), 12));
        world.recv_vec::<i32>(other, ()).await?;
    }

    test testPtr(2, world) {
        let other = 1 - world.rank();
        let mut coming = world.irecv::<u32>(other, ());
        world.send(other, (), 9_u32).await?;
        let (value, status) = loop {
            match coming.test() {
                Some(result) => break result?,
                None => selvedge_core::yield_now().await,
            }
        };
        assert_eq!((value, status.source), (9, other));
    }

    wait waitPtr(2, world) {
        let other = 1 - world.rank();
        let coming = world.irecv::<u32>(other, ());
        world.isend(other, (), 9_u32).wait().await?;
        assert_eq!(coming.wait().await?.0, 9);
    }

    cancel cancelPtr(2, world) {
        let other = 1 - world.rank();
        assert!(world.irecv::<u32>(other, ()).cancel().is_none());
        world.barrier().await?;
        world.send(other, (), 3_u32).await?;
        // The receive that was given up has taken no message.
        assert_eq!(world.recv::<u32>(other, ()).await?.0, 3);
    }

    commWorld(2, world) {
        assert_eq!(world.compare(&world.clone()), ComparisonResult::Identical);
    }

    commSelf(2, world) {
        let own = world.alone();
        assert_eq!((own.rank(), own.size()), (0, 1));
        assert_eq!(own.allreduce(world.rank(), op::sum).await?, world.rank());
    }

    // A rank that is in no group of a split has `None` in the place of a null communicator.
    commNull(2, world) {
        let color = (world.rank() == 0).then_some(0);
        assert_eq!(world.split(color, 0).await?.is_none(), world.rank() == 1);
    }

    commSize(3, world) {
        assert_eq!(world.size(), 3);
    }

    commRank(3, world) {
        assert_eq!(world.allgather(world.rank()).await?, [0, 1, 2]);
    }

    // The two kinds of communicator are two types.
    commTestInter commRemoteSize(3, world) {
        let group = world.split(u32::from(world.rank() > 0), 0).await?.expect("each rank has a color");
        let other = if world.rank() == 0 { 1 } else { 0 };
        let inter = group.intercommunicator(0, &world, other, 1).await?;
        assert_eq!(inter.remote_size(), if world.rank() == 0 { 2 } else { 1 });
    }

    commCompare ComparisonResult(2, world) {
        assert_eq!(world.compare(&world.dup().await?), ComparisonResult::Congruent);
        assert_eq!(world.compare(&world.alone()), ComparisonResult::Unequal);
        let turned = world.split(0, -(world.rank() as i64)).await?.expect("each rank has a color");
        assert_eq!(world.compare(&turned), ComparisonResult::Similar);
    }

    // The last handle frees it.
    commFree(2, world) {
        let library = world.dup().await?;
        library.barrier().await?;
        drop(library);
        world.barrier().await?;
    }

    commGroup(2, world) {
        assert_eq!(world.group().size(), 2);
    }

    // No handler is installed, because each call returns its error.
    commSetErrhandler commGetErrhandler errorsAreFatal errorsReturn errorsThrowExceptions(2, world) {
        let error = world.send(5, (), 1).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Rank);
        world.barrier().await?;
    }

    MPIError ErrorClass(2, world) {
        let error = world.bcast(9, || 1).await.unwrap_err();
        assert_eq!((error.class(), error.call(), error.rank()), (ErrorClass::Root, "bcast", world.rank()));
        assert!(error.to_string().contains("the root is rank 9"), "{error}");
    }

    toTag fromTag(1, world) {
        let tag = Tag::from(77);
        world.send(0, tag, ()).await?;
        assert_eq!(world.recv::<()>(0, tag).await?.1.tag.0, 77);
    }

    unitTag(1, world) {
        world.send(0, (), ()).await?;
        assert_eq!(world.recv::<()>(0, Tag::UNIT).await?.1.tag, Tag::from(()));
    }

    anyTag(1, world) {
        world.send(0, 31, ()).await?;
        assert_eq!(world.recv::<()>(0, ANY).await?.1.tag, Tag(31));
    }

    tagUpperBound(1, world) {
        assert_eq!(Tag::MAX.0, 0x7FFF_FFFF);
        world.send(0, Tag::MAX, ()).await?;
        assert_eq!(world.recv::<()>(0, Tag::MAX).await?.1.tag, Tag::MAX);
        assert_eq!(world.send(0, Tag::MAX.0 + 1, ()).await.unwrap_err().class(), ErrorClass::Tag);
    }

    // A rank is a number, and is compared as one.
    rankId toRank fromRank(2, world) {
        let rank: usize = world.rank();
        assert_eq!(rank == 0, rank < 1);
    }

    anySource(2, world) {
        let other = 1 - world.rank();
        world.send(other, (), ()).await?;
        assert_eq!(world.recv::<()>(Source::Any, ()).await?.1.source, other);
    }

    theRoot(3, world) {
        let group = world.split(u32::from(world.rank() > 0), 0).await?.expect("each rank has a color");
        let other = if world.rank() == 0 { 1 } else { 0 };
        let inter = group.intercommunicator(0, &world, other, 1).await?;
        let root = if world.rank() == 0 { InterRoot::Here(0) } else { InterRoot::There(0) };
        let came = inter.bcast(root, || 'x').await?;
        assert_eq!(came, (world.rank() > 0).then_some('x'));
    }

    procNull(1, world) {
        world.send(PROC_NULL, (), 5).await?;
        let (came, status) = world.recv_vec::<u8>(PROC_NULL, ()).await?;
        assert_eq!((came, status.source), (vec![], PROC_NULL));
    }

    barrier(3, world) {
        world.barrier().await?;
    }

    groupEmpty groupSize(2, world) {
        assert_eq!((Group::empty().size(), world.group().size()), (0, 2));
    }

    groupRank groupTranslateRanks(3, world) {
        let back = world.group().include(&[2, 1]);
        assert_eq!(back.translate(world.group(), 2), Some(0));
        assert_eq!(back.translate(world.group(), 0), None);
    }

    groupUnion(3, world) {
        let (front, back) = (world.group().include(&[0, 1]), world.group().include(&[1, 2]));
        assert_eq!(front.union(&back), *world.group());
    }

    groupIntersection(3, world) {
        let (front, back) = (world.group().include(&[0, 1]), world.group().include(&[1, 2]));
        assert_eq!(front.intersection(&back), world.group().include(&[1]));
    }

    groupDifference(3, world) {
        let (front, back) = (world.group().include(&[0, 1]), world.group().include(&[1, 2]));
        assert_eq!(front.difference(&back), world.group().include(&[0]));
    }

    groupCompare(2, world) {
        let turned = world.group().include(&[1, 0]);
        assert_eq!(world.group().compare(&turned), ComparisonResult::Similar);
        assert_eq!(world.group().compare(world.group()), ComparisonResult::Identical);
        assert_eq!(world.group().compare(&Group::empty()), ComparisonResult::Unequal);
    }

    groupIncl groupExcl(3, world) {
        assert_eq!(world.group().include(&[0, 2]), world.group().exclude(&[1]));
    }

    // The datatypes are the types of the elements.
    char byte unsignedChar short unsignedShort int unsigned float typeSize(1, world) {
        assert_eq!((size_of_element::<i8>(), size_of_element::<u8>()), (1, 1));
        assert_eq!((size_of_element::<i16>(), size_of_element::<u16>()), (2, 2));
        assert_eq!((size_of_element::<i32>(), size_of_element::<u32>(), size_of_element::<f32>()), (4, 4, 4));
        world.barrier().await?;
    }

    long unsignedLong longLong unsignedLongLong double(1, world) {
        assert_eq!((size_of_element::<i64>(), size_of_element::<u64>(), size_of_element::<f64>()), (8, 8, 8));
        world.barrier().await?;
    }

    maxOp(2, world) { assert_eq!(combined!(world, [2.5, 7.5], op::max), 7.5); }
    minOp(2, world) { assert_eq!(combined!(world, [2.5, 7.5], op::min), 2.5); }
    sumOp(2, world) { assert_eq!(combined!(world, [20, 3], op::sum), 23); }
    prodOp(2, world) { assert_eq!(combined!(world, [20, 3], op::prod), 60); }
    landOp(2, world) { assert!(!combined!(world, [true, false], op::land)); }
    bandOp(2, world) { assert_eq!(combined!(world, [12, 10], op::band), 8); }
    lorOp(2, world) { assert!(combined!(world, [true, false], op::lor)); }
    borOp(2, world) { assert_eq!(combined!(world, [12, 10], op::bor), 14); }
    lxorOp(2, world) { assert!(!combined!(world, [true, true], op::lxor)); }
    bxorOp(2, world) { assert_eq!(combined!(world, [12, 10], op::bxor), 6); }

    getImplementation getVersion(1, world) {
        assert!(["threads", "processes", "MPI"].contains(&world.engine_name()), "{}", world.engine_name());
    }

    Info infoNull infoCreate infoSet infoGet infoDelete(1, world) {
        let mut info = Info::new();
        assert_eq!(info.get("striping"), None);
        info.set("striping", 4);
        assert_eq!(info.get("striping"), Some("4"));
        assert_eq!(info.delete("striping"), Some("4".to_string()));
        assert_eq!(info.iter().count(), 0);
        world.barrier().await?;
    }

    commGetParent(1, world) {
        assert!(world.parent().is_none());
    }

    // Each rank spawns by itself, because ranks that are processes spawn programs together.
    commSpawn commSpawnSimple argvNull errcodesIgnore(2, world) {
        let own = world.alone();
        let spawned = own.spawn(0, 2, |child| async move {
            let parent = child.parent().expect("the rank was spawned");
            parent.send(0, (), child.rank()).await
        });
        let spawned = spawned.await?;
        let sum = spawned.recv::<usize>(0, ()).await?.0 + spawned.recv::<usize>(1, ()).await?.0;
        assert_eq!((spawned.remote_size(), sum), (2, 1));
    }

    openPort closePort commAccept commConnect commDisconnect(1, world) {
        let (server, client) = (world.alone(), world.alone());
        let port = Port::open();
        let joined = (server.accept(0, Some(&port)), client.connect(0, Some(port.name())));
        let (clients, servers) = selvedge_scope::join(joined).await;
        let (clients, servers) = (clients?, servers?);
        servers.send(0, (), 'x').await?;
        assert_eq!(clients.recv::<char>(0, ()).await?.0, 'x');
        let (one, other) = selvedge_scope::join((clients.disconnect(), servers.disconnect())).await;
        one.and(other)?;
        let name = port.name().to_string();
        drop(port);
        assert_eq!(client.connect(0, Some(&name)).await.unwrap_err().class(), ErrorClass::Join);
    }
}
