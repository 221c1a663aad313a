//! Ranks that do not make the same collective call, in a world that is checked: an error on every
//! rank, which names both calls.

use selvedge_core::round_robin;
use selvedge_mpi::{Communicator, Error, ErrorClass, Parts, Ranks, op};

const CALLS: [&str; 20] = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "bcast_into",
    "gather_slice",
    "allreduce_into",
    "alltoall_parts",
    "ibarrier",
    "ibcast",
    "iallreduce",
    "dup",
    "split",
];

/// The operation of a call in the text of an error.
fn operation(call: &str) -> &str {
    let name = call.trim_end_matches("_into").trim_end_matches("_slice").trim_end_matches("_parts");
    match name {
        "ibarrier" | "ibcast" | "iallreduce" => &name[1..],
        "dup" => "split",
        other => other,
    }
}

/// Makes a call with rank 0 as the root.
async fn call(world: &Communicator, name: &str) -> Result<(), Error> {
    let size = world.size();
    match name {
        "barrier" => world.barrier().await,
        "bcast" => world.bcast(0, || 1).await.map(drop),
        "gather" => world.gather(0, 1).await.map(drop),
        "scatter" => world.scatter(0, || vec![1; size]).await.map(drop),
        "allgather" => world.allgather(1).await.map(drop),
        "alltoall" => world.alltoall(vec![1; size]).await.map(drop),
        "reduce" => world.reduce(0, 1, op::sum).await.map(drop),
        "allreduce" => world.allreduce(1, op::sum).await.map(drop),
        "reduce_scatter" => world.reduce_scatter(vec![1; size], op::sum).await.map(drop),
        "scan" => world.scan(1, op::sum).await.map(drop),
        "exscan" => world.exscan(1, op::sum).await.map(drop),
        "bcast_into" => world.bcast_into(0, &mut [1]).await,
        "gather_slice" => world.gather_slice(0, &[1]).await.map(drop),
        "allreduce_into" => world.allreduce_into(&mut [1], op::sum).await,
        "alltoall_parts" => world.alltoall_parts(Parts::even(vec![1; size], size)).await.map(drop),
        "ibarrier" => world.ibarrier().await,
        "ibcast" => world.ibcast(0, || 1).await.map(drop),
        "iallreduce" => world.iallreduce(1, op::sum).await.map(drop),
        "dup" => world.dup().await.map(drop),
        "split" => world.split(Some(0), 0).await.map(drop),
        other => unreachable!("{other}"),
    }
}

/// Rank 1 calls something else than the two others: every rank gets an error, whichever the two
/// calls are.
#[test]
fn each_call_beside_each_other() {
    for one in CALLS {
        for other in CALLS.into_iter().filter(|other| operation(one) != operation(other)) {
            let run = Ranks::new(3).checked().run(move |world| async move {
                let mine = if world.rank() == 1 { other } else { one };
                let error = call(&world, mine).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Mismatch, "{one} beside {other}: {error}");
                let text = error.to_string();
                let named = [one, other].iter().all(|call| text.contains(operation(call)));
                assert!(named, "{one} beside {other}: {text}");
                // The ranks are in step afterwards.
                assert_eq!(world.allgather(world.rank()).await?, [0, 1, 2]);
                Ok::<_, Error>(())
            });
            round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

#[test]
fn roots_that_differ() {
    for name in ["bcast", "gather", "scatter", "reduce", "bcast_into", "gather_slice"] {
        let run = Ranks::new(3).checked().run(move |world| async move {
            let root = usize::from(world.rank() == 2);
            let result = match name {
                "bcast" => world.bcast(root, || 1).await.map(drop),
                "gather" => world.gather(root, 1).await.map(drop),
                "scatter" => world.scatter(root, || vec![1; 3]).await.map(drop),
                "reduce" => world.reduce(root, 1, op::sum).await.map(drop),
                "bcast_into" => world.bcast_into(root, &mut [1]).await,
                _ => world.gather_slice(root, &[1]).await.map(drop),
            };
            let error = result.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Mismatch, "{name}: {error}");
            let text = error.to_string();
            assert!(text.contains("with root 0") && text.contains("with root 1"), "{name}: {text}");
            Ok::<_, Error>(())
        });
        round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Rank 1 gives another number of elements, or elements of another type, than the two others: every
/// rank gets an error, which names both.
#[test]
fn contents_that_differ() {
    async fn give(world: &Communicator, name: &str, is_other: bool) -> Result<(), Error> {
        let count = if is_other { 3 } else { 2 };
        let (mut elements, part) = (vec![1_i32; count], vec![1_i32; count]);
        let parts = || Parts::from(vec![part.clone(); 3]);
        match name {
            "bcast_into" => world.bcast_into(0, &mut elements).await,
            "reduce_slice" => world.reduce_slice(0, &elements, op::sum).await.map(drop),
            "allreduce_into" => world.allreduce_into(&mut elements, op::sum).await,
            "reduce_scatter_parts" => world.reduce_scatter_parts(parts(), op::sum).await.map(drop),
            "scan_into" => world.scan_into(&mut elements, op::sum).await,
            "exscan_into" => world.exscan_into(&mut elements, op::sum).await,
            "ibcast_into" => world.ibcast_into(0, elements).await.map(drop),
            "iallreduce_into" => world.iallreduce_into(elements, op::sum).await.map(drop),
            "ireduce_scatter_parts" => world.ireduce_scatter_parts(parts(), op::sum).await.map(drop),
            "allgather" if is_other => world.allgather(1_u8).await.map(drop),
            "allgather" => world.allgather(1_i32).await.map(drop),
            "gather_slice" if is_other => world.gather_slice(0, &[1_u8]).await.map(drop),
            "gather_slice" => world.gather_slice(0, &[1_i32]).await.map(drop),
            // A value where the others have elements.
            "ibcast" if is_other => world.ibcast_into(0, vec![1]).await.map(drop),
            "ibcast" => world.ibcast(0, || vec![1]).await.map(drop),
            other => unreachable!("{other}"),
        }
    }
    let each = [
        ("bcast_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("reduce_slice", ["2 elements of type i32", "3 elements of type i32"]),
        ("allreduce_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("reduce_scatter_parts", ["[2, 2, 2] elements of type i32", "[3, 3, 3] elements of type i32"]),
        ("scan_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("exscan_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("ibcast_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("iallreduce_into", ["2 elements of type i32", "3 elements of type i32"]),
        ("ireduce_scatter_parts", ["[2, 2, 2] elements of type i32", "[3, 3, 3] elements of type i32"]),
        ("allgather", ["a value of type i32", "a value of type u8"]),
        ("gather_slice", ["elements of type i32", "elements of type u8"]),
        ("ibcast", ["a value of type alloc::vec::Vec<i32>", "1 elements of type i32"]),
    ];
    for (name, told) in each {
        let run = Ranks::new(3).checked().run(move |world| async move {
            let error = give(&world, name, world.rank() == 1).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Mismatch, "{name}: {error}");
            let text = error.to_string();
            assert!(told.iter().all(|told| text.contains(told)), "{name}: {text}");
            // The ranks are in step afterwards.
            assert_eq!(world.allgather(world.rank()).await?, [0, 1, 2]);
            Ok::<_, Error>(())
        });
        round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
    }
}
