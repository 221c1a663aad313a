//! The null rank: each call that sends or receives takes it, ends at once, and disturbs no other.

use super::cases;
use selvedge_mpi::{ANY, ErrorClass, PROC_NULL, Status, Tag, wait_all};
use serde::Deserialize;
use std::collections::BTreeMap;

const EMPTY: Status = Status { source: PROC_NULL, tag: Tag::UNIT, bytes: 0 };

/// A name, which may be empty.
#[derive(Debug, PartialEq, serde::Serialize, Deserialize)]
struct Name(String);

cases! {
    sends_to_the_null_rank(2, world) {
        world.send(PROC_NULL, 3, "lost".to_string()).await?;
        world.ssend(PROC_NULL, 3, "lost".to_string()).await?;
        world.send_slice(PROC_NULL, 3, &[1.5]).await?;
        world.send_vec(PROC_NULL, 3, vec![1.5]).await?;
        world.ssend_slice(PROC_NULL, 3, &[1.5]).await?;
        let mut sends = [world.isend(PROC_NULL, 3, 1), world.issend(PROC_NULL, 3, 1)];
        for request in &mut sends {
            assert!(request.test().expect("it has ended").is_ok());
        }
        assert_eq!(world.isend_vec(PROC_NULL, 3, vec![1, 2]).await?, [1, 2]);
        let error = world.send(PROC_NULL, Tag::MAX.0 + 1, ()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Tag);
        // No rank has got any of it.
        world.barrier().await?;
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    values_of_the_null_rank(2, world) {
        assert_eq!(world.recv::<()>(PROC_NULL, ANY).await?, ((), EMPTY));
        assert_eq!(world.recv::<Option<f64>>(PROC_NULL, 7).await?, (None, EMPTY));
        assert_eq!(world.recv::<Vec<String>>(PROC_NULL, ANY).await?.0, Vec::<String>::new());
        assert_eq!(world.recv::<BTreeMap<u8, String>>(PROC_NULL, ANY).await?.0, BTreeMap::new());
        assert_eq!(world.recv::<Name>(PROC_NULL, ANY).await?.0, Name(String::new()));
        assert_eq!(world.irecv::<String>(PROC_NULL, ANY).await?, (String::new(), EMPTY));
        let error = world.recv::<u32>(PROC_NULL, ANY).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Type);
        assert!(error.to_string().ends_with("the message of the null rank holds no value of type u32: it is empty"), "{error}");
        let error = world.recv::<(Vec<u8>, String)>(PROC_NULL, ANY).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Type);
    }

    elements_of_the_null_rank(2, world) {
        let mut row = [7, 8];
        assert_eq!(world.recv_into(PROC_NULL, ANY, &mut row).await?, EMPTY);
        assert_eq!(row, [7, 8]);
        assert_eq!(world.recv_vec::<f64>(PROC_NULL, ()).await?, (vec![], EMPTY));
        let requests = [world.irecv_into(PROC_NULL, (), vec![1]), world.irecv_into(PROC_NULL, (), vec![2])];
        assert_eq!(wait_all(requests).await?, [(vec![1], EMPTY), (vec![2], EMPTY)]);
        assert_eq!(EMPTY.count::<f64>(), Some(0));
    }

    probes_of_the_null_rank(2, world) {
        assert_eq!(world.probe(PROC_NULL, ANY).await?, EMPTY);
        assert_eq!(world.iprobe(PROC_NULL, 3)?, Some(EMPTY));
        assert_eq!(world.mprobe(PROC_NULL, ANY).await?.recv_vec::<u64>()?, []);
        let matched = world.improbe(PROC_NULL, ANY)?.expect("it is always there");
        assert_eq!(matched.status(), EMPTY);
        // What is given up is not there for a receive from any source.
        drop((matched, world.irecv::<()>(PROC_NULL, ()), world.mprobe(PROC_NULL, ()).await?));
        assert_eq!(world.iprobe(ANY, ANY)?, None);
    }

    /// Bands with neighbours at one side only: no rank asks whether it has one.
    a_shift_with_borders(4, world) {
        let rank = world.rank();
        let left = if rank == 0 { PROC_NULL } else { rank - 1 };
        let right = if rank == 3 { PROC_NULL } else { rank + 1 };
        let (came, status) = world.sendrecv::<_, Option<usize>>(right, (), Some(rank), left, ()).await?;
        assert_eq!((came, status.source), (rank.checked_sub(1), left));
        let mut row = [9];
        world.sendrecv_into(left, 1, &[rank as u32], right, 1, &mut row).await?;
        assert_eq!(row, [[1], [2], [3], [9]][rank]);
    }
}
