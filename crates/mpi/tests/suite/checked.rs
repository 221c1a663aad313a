//! Ranks that do not make the same collective call, in a world that is checked: an error on every
//! rank, which names both calls.

use selvedge_core::round_robin;
use selvedge_mpi::{Communicator, Error, ErrorClass, InterCommunicator, InterRoot, Parts, Ranks, op};
use std::pin::Pin;

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

/// A collective by its name, as rank 1 calls it (true) and as the two others do.
type NamedCall = for<'a> fn(
    &'a Communicator,
    &'static str,
    bool,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Rank 1 calls each of these collectives otherwise than the two others do: every rank gets an
/// error, which has both texts.
fn each_rank_is_told<const N: usize>(each: [(&'static str, [&'static str; 2]); N], call: NamedCall) {
    for (name, told) in each {
        let run = Ranks::new(3).checked().run(move |world| async move {
            let error = call(&world, name, world.rank() == 1).await.unwrap_err();
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
    each_rank_is_told(each, |world, name, is_other| Box::pin(give(world, name, is_other)));
}

/// The starts of persistent collectives are compared as the other calls are, also with these.
#[test]
fn starts_that_differ() {
    async fn start(world: &Communicator, name: &str, is_other: bool) -> Result<(), Error> {
        let own = vec![1_i32; if is_other { 3 } else { 2 }];
        let parts = Parts::from(vec![own.clone(); 3]);
        match name {
            "reduce" => world.reduce_init(0, own, op::sum).start().await.map(drop),
            "allreduce" => world.allreduce_init(own, op::sum).start().await.map(drop),
            "scan" => world.scan_init(own, op::sum).start().await.map(drop),
            "exscan" => world.exscan_init(own, op::sum).start().await.map(drop),
            "reduce_scatter" => world.reduce_scatter_init(parts, op::sum).start().await.map(drop),
            "awaited" if is_other => world.allreduce_init(own, op::sum).start().await.map(drop),
            "awaited" => world.allreduce_into(&mut [1_i32; 2], op::sum).await,
            "bcast" if is_other => world.bcast_init(0, vec![1_u8]).start().await.map(drop),
            "bcast" => world.bcast_init(0, vec![1_i32]).start().await.map(drop),
            "gather" if is_other => world.gather_init(0, vec![1_u8]).start().await.map(drop),
            "gather" => world.gather_init(0, vec![1_i32]).start().await.map(drop),
            "scatter" if is_other => {
                world.scatter_init(0, Parts::even(vec![1_u8; 3], 3)).start().await.map(drop)
            }
            "scatter" => world.scatter_init(0, Parts::even(vec![1_i32; 3], 3)).start().await.map(drop),
            "allgather" if is_other => world.allgather_init(vec![1_u8]).start().await.map(drop),
            "allgather" => world.allgather_init(vec![1_i32]).start().await.map(drop),
            "alltoall" if is_other => {
                world.alltoall_init(Parts::even(vec![1_u8; 3], 3)).start().await.map(drop)
            }
            "alltoall" => world.alltoall_init(Parts::even(vec![1_i32; 3], 3)).start().await.map(drop),
            "operation" if is_other => world.barrier_init().start().await.map(drop),
            "operation" => world.allreduce_init(own, op::sum).start().await.map(drop),
            other => unreachable!("{other}"),
        }
    }
    let counts = ["2 elements of type i32", "3 elements of type i32"];
    let types = ["elements of type i32", "elements of type u8"];
    let each = [
        ("reduce", counts),
        ("allreduce", counts),
        ("scan", counts),
        ("exscan", counts),
        ("reduce_scatter", ["[2, 2, 2] elements of type i32", "[3, 3, 3] elements of type i32"]),
        ("awaited", counts),
        ("bcast", types),
        ("gather", types),
        ("scatter", types),
        ("allgather", types),
        ("alltoall", types),
        ("operation", ["barrier", "allreduce"]),
    ];
    each_rank_is_told(each, |world, name, is_other| Box::pin(start(world, name, is_other)));
}

/// A collective with elements of any number says no number, and meets one that says it; and the
/// elements of each start are compared, not those of the first.
#[test]
fn starts_that_fit() {
    let run = Ranks::new(3).checked().run(|world| async move {
        if world.rank() == 1 {
            let mut elements = [0_i32; 2];
            world.bcast_into(0, &mut elements).await?;
            assert_eq!(elements, [7, 8]);
        } else {
            let elements = if world.rank() == 0 { vec![7, 8] } else { vec![] };
            assert_eq!(*world.bcast_init(0, elements).start().await?, [7, 8]);
        }
        let mut sum = world.allreduce_init(vec![1_i32], op::sum);
        assert_eq!(*sum.start().await?, [3]);
        sum.own_mut().push(2);
        assert_eq!(*sum.start().await?, [3, 6]);
        if world.rank() == 2 {
            sum.own_mut().pop();
        }
        assert_eq!(sum.start().await.unwrap_err().class(), ErrorClass::Mismatch);
        Ok::<_, Error>(())
    });
    round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
}

/// Between two groups every rank of both gets an error, whichever rank calls something else.
#[test]
fn calls_between_groups_that_differ() {
    async fn call(inter: &InterCommunicator, name: &str, root: InterRoot) -> Result<(), Error> {
        let size = inter.remote_size();
        match name {
            "barrier" => inter.barrier().await,
            "bcast" => inter.bcast(root, || 1_i32).await.map(drop),
            "bcast of u8" => inter.bcast(root, || 1_u8).await.map(drop),
            "gather" => inter.gather(root, || 1_i32).await.map(drop),
            "gather of u8" => inter.gather(root, || 1_u8).await.map(drop),
            "scatter" => inter.scatter(root, || vec![1_i32; size]).await.map(drop),
            "scatter of u8" => inter.scatter(root, || vec![1_u8; size]).await.map(drop),
            "reduce" => inter.reduce(root, || 1_i32, op::sum).await.map(drop),
            "reduce of u8" => inter.reduce(root, || 1_u8, op::sum).await.map(drop),
            "allgather" => inter.allgather(1_i32).await.map(drop),
            "allgather of u8" => inter.allgather(1_u8).await.map(drop),
            "alltoall" => inter.alltoall(vec![1_i32; size]).await.map(drop),
            "alltoall of u8" => inter.alltoall(vec![1_u8; size]).await.map(drop),
            "allreduce" => inter.allreduce(1_i32, op::sum).await.map(drop),
            "allreduce of u8" => inter.allreduce(1_u8, op::sum).await.map(drop),
            other => unreachable!("{other}"),
        }
    }
    let all = ["bcast", "gather", "scatter", "reduce", "allgather", "alltoall", "allreduce", "barrier"];
    let of_types = all[..7].iter().map(|name| ((*name).to_string(), format!("{name} of u8")));
    let of_calls = all.iter().zip(all.iter().cycle().skip(1)).map(|(a, b)| (a.to_string(), b.to_string()));
    for (one, other) in of_types.chain(of_calls) {
        // Ranks 0 and 1 are the first group, 2 to 4 the second one, and `differing` calls `other`.
        for differing in 0..5 {
            let (one, other) = (one.clone(), other.clone());
            let run = Ranks::new(5).checked().run(move |world| {
                let (one, other) = (one.clone(), other.clone());
                async move {
                    let is_second = world.rank() >= 2;
                    let group = world.split(u32::from(is_second), 0).await?.expect("each has a color");
                    let leader = if is_second { 0 } else { 2 };
                    let inter = group.intercommunicator(0, &world, leader, ()).await?;
                    let root = if is_second { InterRoot::There(1) } else { InterRoot::Here(1) };
                    // All calls that agree are made.
                    call(&inter, &one, root).await?;
                    let mine = if world.rank() == differing { &other } else { &one };
                    let error = call(&inter, mine, root).await.unwrap_err();
                    assert_eq!(error.class(), ErrorClass::Mismatch, "{one} beside {other}: {error}");
                    let text = error.to_string();
                    let told = match other.ends_with("u8") {
                        true => ["type i32", "type u8"],
                        false => [&one[..], &other],
                    };
                    assert!(told.iter().all(|told| text.contains(told)), "{one} beside {other}: {text}");
                    // The groups are in step afterwards.
                    assert_eq!(inter.allgather(1_u8).await?.len(), inter.remote_size());
                    Ok::<_, Error>(())
                }
            });
            round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

/// Both groups say that the root is theirs.
#[test]
fn roots_in_both_groups() {
    let run = Ranks::new(4).checked().run(|world| async move {
        let is_second = world.rank() >= 2;
        let group = world.split(u32::from(is_second), 0).await?.expect("each has a color");
        let inter = group.intercommunicator(0, &world, if is_second { 0 } else { 2 }, ()).await?;
        let error = inter.gather(InterRoot::Here(0), || 1).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Mismatch);
        let text = error.to_string();
        assert!(text.contains("group 1") && text.contains("group 2"), "{text}");
        assert!(text.contains("of the other group"), "{text}");
        Ok::<_, Error>(())
    });
    round_robin(run).expect("no deadlock").unwrap_or_else(|failure| panic!("{failure}"));
}
