//! The functions of Haskell-MPI's module `Simple`: on values.

use super::haskell;
use selvedge_mpi::{Status, Tag, wait_all};
use std::collections::BTreeMap;

/// A type that is no plain data.
type Table = BTreeMap<String, Vec<usize>>;

fn table(rank: usize) -> Table {
    BTreeMap::from([("rank".to_string(), vec![rank; 3])])
}

haskell! { "Simple":
    // A send in the ready mode is one that a receive awaits already, and needs no call of its own.
    send rsend recv(2, world) {
        let other = 1 - world.rank();
        world.send(other, 123, table(world.rank())).await?;
        let (value, status) = world.recv::<Table>(other, 123).await?;
        assert_eq!((value, status.source, status.tag), (table(other), other, Tag(123)));
    }

    ssend(2, world) {
        if world.rank() == 0 {
            world.ssend(1, (), table(0)).await?;
        } else {
            assert_eq!(world.recv::<Table>(0, ()).await?.0, table(0));
        }
    }

    sendBS recvBS(2, world) {
        let other = 1 - world.rank();
        world.send_slice(other, (), b"bytes").await?;
        assert_eq!(world.recv_vec::<u8>(other, ()).await?.0, b"bytes");
    }

    isend(2, world) {
        let other = 1 - world.rank();
        let going = world.isend(other, (), table(world.rank()));
        assert_eq!(world.recv::<Table>(other, ()).await?.0, table(other));
        going.await?;
    }

    issend(2, world) {
        let other = 1 - world.rank();
        let going = world.issend(other, (), table(world.rank()));
        assert_eq!(world.recv::<Table>(other, ()).await?.0, table(other));
        going.await?;
    }

    isendBS(2, world) {
        let other = 1 - world.rank();
        let going = world.isend_vec(other, (), b"bytes".to_vec());
        assert_eq!(world.recv_vec::<u8>(other, ()).await?.0, b"bytes");
        assert_eq!(going.await?, b"bytes");
    }

    waitall(2, world) {
        let other = 1 - world.rank();
        let going: Vec<_> = (0..5).map(|tag| world.isend(other, tag, tag)).collect();
        let coming: Vec<_> = (0..5_u32).rev().map(|tag| world.irecv::<u32>(other, tag)).collect();
        wait_all(going).await?;
        let values: Vec<u32> = wait_all(coming).await?.into_iter().map(|(value, _)| value).collect();
        assert_eq!(values, [4, 3, 2, 1, 0]);
    }

    Future recvFuture waitFuture getFutureStatus(2, world) {
        let other = 1 - world.rank();
        let coming = world.irecv::<String>(other, 4);
        world.send(other, 4, "later".to_string()).await?;
        let (value, Status { source, tag, .. }) = coming.wait().await?;
        assert_eq!((value.as_str(), source, tag), ("later", other, Tag(4)));
    }

    pollFuture(2, world) {
        let other = 1 - world.rank();
        let mut coming = world.irecv::<String>(other, ());
        world.send(other, (), "later".to_string()).await?;
        let value = loop {
            match coming.test() {
                Some(result) => break result?.0,
                None => selvedge_core::yield_now().await,
            }
        };
        assert_eq!(value, "later");
    }

    cancelFuture(2, world) {
        let other = 1 - world.rank();
        assert!(world.irecv::<String>(other, ()).cancel().is_none());
        world.barrier().await?;
        world.send(other, (), "kept".to_string()).await?;
        assert_eq!(world.recv::<String>(other, ()).await?.0, "kept");
    }

    bcastSend bcastRecv(3, world) {
        assert_eq!(world.bcast(1, || table(1)).await?, table(1));
    }

    scatterSend scatterRecv(3, world) {
        let own = world.scatter(2, || (0..3).map(table).collect()).await?;
        assert_eq!(own, table(world.rank()));
    }

    gatherSend gatherRecv(3, world) {
        let all = world.gather(1, table(world.rank())).await?;
        assert_eq!(all, (world.rank() == 1).then(|| (0..3).map(table).collect::<Vec<_>>()));
    }

    allgather(3, world) {
        assert_eq!(world.allgather(table(world.rank())).await?, (0..3).map(table).collect::<Vec<_>>());
    }

    alltoall(3, world) {
        let rank = world.rank();
        let came = world.alltoall((0..3).map(|to| table(10 * rank + to)).collect()).await?;
        assert_eq!(came, (0..3).map(|from| table(10 * from + rank)).collect::<Vec<_>>());
    }
}
