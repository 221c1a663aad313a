//! Random collectives of which each rank starts some and waits for others, against their results
//! one after another.

use proptest::prelude::*;
use selvedge_core::yield_now;
use selvedge_mpi::{Communicator, Error, Parts, Request, op, run};
use std::pin::Pin;

const RANKS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Operation {
    Bcast(usize),
    Gather(usize),
    Alltoall,
    Allreduce,
    Scan,
    BcastElements(usize),
    GatherElements(usize),
    AllreduceElements,
}

/// One collective of all ranks, and what each rank does.
#[derive(Debug, Clone)]
struct Turn {
    operation: Operation,
    acts: [Act; RANKS],
}

#[derive(Debug, Clone, Copy)]
struct Act {
    /// Whether it starts the collective, or waits for its end.
    starts: bool,
    /// Which of its requests it awaits afterwards, if it has that many.
    awaits: usize,
    /// How often it yields before.
    yields: usize,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let operation = prop_oneof![
        (0..RANKS).prop_map(Operation::Bcast),
        (0..RANKS).prop_map(Operation::Gather),
        Just(Operation::Alltoall),
        Just(Operation::Allreduce),
        Just(Operation::Scan),
        (0..RANKS).prop_map(Operation::BcastElements),
        (0..RANKS).prop_map(Operation::GatherElements),
        Just(Operation::AllreduceElements),
    ];
    let act = (any::<bool>(), 0..6_usize, 0..4_usize);
    let act = act.prop_map(|(starts, awaits, yields)| Act { starts, awaits, yields });
    let turn = (operation, prop::array::uniform3(act));
    prop::collection::vec(turn.prop_map(|(operation, acts)| Turn { operation, acts }), 1..16)
}

/// What a rank gives to the collective with this number.
fn input(number: usize, rank: usize) -> usize {
    (number + 1) * 10 + rank
}

/// What that rank gets.
fn expected(operation: Operation, number: usize, rank: usize) -> Vec<usize> {
    match operation {
        Operation::Bcast(root) | Operation::BcastElements(root) => vec![input(number, root)],
        Operation::Gather(root) | Operation::GatherElements(root) => match rank == root {
            true => (0..RANKS).map(|from| input(number, from)).collect(),
            false => vec![],
        },
        Operation::Alltoall => (0..RANKS).map(|from| input(number, from) * 100 + rank).collect(),
        Operation::Allreduce | Operation::AllreduceElements => {
            vec![(0..RANKS).map(|from| input(number, from)).sum()]
        }
        Operation::Scan => vec![(0..=rank).map(|from| input(number, from)).sum()],
    }
}

type Got = Pin<Box<dyn Future<Output = Result<Vec<usize>, Error>> + Send>>;

fn list<T: Send + 'static>(request: Request<T>, list: fn(T) -> Vec<usize>) -> Got {
    Box::pin(async move { request.await.map(list) })
}

fn started(world: &Communicator, operation: Operation, number: usize) -> Got {
    let own = input(number, world.rank());
    match operation {
        Operation::Bcast(root) => list(world.ibcast(root, || own), |value| vec![value]),
        Operation::Gather(root) => list(world.igather(root, own), Option::unwrap_or_default),
        Operation::Alltoall => {
            list(world.ialltoall((0..RANKS).map(|to| own * 100 + to).collect()), |values| values)
        }
        Operation::Allreduce => list(world.iallreduce(own, op::sum), |value| vec![value]),
        Operation::Scan => list(world.iscan(own, op::sum), |value| vec![value]),
        Operation::BcastElements(root) => list(world.ibcast_into(root, vec![own]), |buffer| buffer),
        Operation::GatherElements(root) => {
            list(world.igather_slice(root, &[own]), |parts| parts.map_or(vec![], Parts::into_vec))
        }
        Operation::AllreduceElements => list(world.iallreduce_into(vec![own], op::sum), |buffer| buffer),
    }
}

async fn waited_for(world: &Communicator, operation: Operation, number: usize) -> Result<Vec<usize>, Error> {
    let own = input(number, world.rank());
    Ok(match operation {
        Operation::Bcast(root) => vec![world.bcast(root, || own).await?],
        Operation::Gather(root) => world.gather(root, own).await?.unwrap_or_default(),
        Operation::Alltoall => world.alltoall((0..RANKS).map(|to| own * 100 + to).collect()).await?,
        Operation::Allreduce => vec![world.allreduce(own, op::sum).await?],
        Operation::Scan => vec![world.scan(own, op::sum).await?],
        Operation::BcastElements(root) => {
            let mut buffer = vec![own];
            world.bcast_into(root, &mut buffer).await?;
            buffer
        }
        Operation::GatherElements(root) => {
            world.gather_slice(root, &[own]).await?.map_or(vec![], Parts::into_vec)
        }
        // Persistent, and made for this one time.
        Operation::AllreduceElements => world.allreduce_init(vec![own], op::sum).start().await?.clone(),
    })
}

async fn rank(world: Communicator, turns: Vec<Turn>) -> Result<(), Error> {
    let mut going: Vec<(usize, Got)> = Vec::new();
    let check = |number: usize, got: Vec<usize>| {
        assert_eq!(got, expected(turns[number].operation, number, world.rank()), "collective {number}");
    };
    for (number, turn) in turns.iter().enumerate() {
        let act = turn.acts[world.rank()];
        for _ in 0..act.yields {
            yield_now().await;
        }
        match act.starts {
            true => going.push((number, started(&world, turn.operation, number))),
            false => check(number, waited_for(&world, turn.operation, number).await?),
        }
        if act.awaits < going.len() {
            let (number, got) = going.swap_remove(act.awaits);
            check(number, got.await?);
        }
    }
    for (number, got) in going.into_iter().rev() {
        check(number, got.await?);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_has_its_own_messages(turns in turns(), seed in 0..1_000_u64) {
        selvedge_sim::simulate(seed..seed + 1, move || {
            let turns = turns.clone();
            async move {
                run(RANKS, move |world| rank(world, turns.clone())).await.unwrap();
            }
        });
    }
}
