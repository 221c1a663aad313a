//! Whole programs of several ranks in simulated worlds: in a thousand orders the same answer, and
//! all orders of a small one.

use selvedge_mpi::{ANY, Communicator, Error, ErrorClass, Ranks, op};
use selvedge_sim::Explorer;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A field in bands: neighbours exchange borders, and all ranks take the greatest change.
async fn bands(world: Communicator) -> Result<u64, Error> {
    let (rank, size) = (world.rank(), world.size());
    let mut cells = [0.0, rank as f64 + 0.1, rank as f64 * 0.7, 0.0];
    let mut change = f64::MAX;
    for _ in 0..6 {
        if rank > 0 {
            world.send_slice(rank - 1, 0, &cells[1..2]).await?;
        }
        if rank + 1 < size {
            world.send_slice(rank + 1, 1, &cells[2..3]).await?;
            world.recv_into(rank + 1, 0, &mut cells[3..]).await?;
        }
        if rank > 0 {
            world.recv_into(rank - 1, 1, &mut cells[..1]).await?;
        }
        let [left, a, b, right] = cells;
        cells[1..3].copy_from_slice(&[(left + b) / 2.0, (a + right) / 2.0]);
        change = world.allreduce((cells[1] - a).abs(), op::sum).await?;
    }
    Ok(world.allreduce(cells[1] + cells[2], op::sum).await?.to_bits() ^ change.to_bits())
}

/// A master hands out numbers to whichever worker asks first.
async fn farm(world: Communicator) -> Result<u64, Error> {
    let mut sum = 0;
    if world.rank() == 0 {
        let mut numbers = 1..=12_u64;
        let mut working = world.size() - 1;
        while working > 0 {
            let (square, status) = world.recv::<u64>(ANY, ANY).await?;
            sum += square;
            let next = numbers.next();
            working -= usize::from(next.is_none());
            world.send(status.source, 2, next).await?;
        }
    } else {
        let mut square = 0;
        loop {
            world.send(0, 1, square).await?;
            match world.recv::<Option<u64>>(0, 2).await?.0 {
                Some(number) => square = number * number,
                None => break,
            }
        }
    }
    world.bcast(0, || sum).await
}

#[test]
fn the_same_bits_in_a_thousand_orders() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    for ranks in [Ranks::new(4), Ranks::new(4).delayed()] {
        selvedge_sim::simulate(0..1_000, || {
            let (seen, ranks) = (seen.clone(), ranks.clone());
            async move {
                let bits = ranks.clone().run(bands).await.unwrap();
                let sums = ranks.run(farm).await.unwrap();
                assert_eq!(sums, [650; 4]);
                seen.lock().unwrap().insert(bits);
            }
        });
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "the result depends on the order: {seen:?}");
    let bits = seen.first().unwrap();
    assert!(bits.iter().all(|of_rank| *of_rank == bits[0]));
}

/// Two ranks send to a third, which receives from any. All orders of the three are run: both
/// senders come first in some.
#[test]
fn every_order_of_a_wildcard() {
    let firsts = Arc::new(Mutex::new(BTreeSet::new()));
    let program = || {
        let firsts = firsts.clone();
        async move {
            let taken = Ranks::new(3).run(|world| async move {
                if world.rank() > 0 {
                    world.send(0, (), world.rank()).await?;
                    return Ok(Vec::new());
                }
                let one = world.recv::<usize>(ANY, ()).await?.0;
                let other = world.recv::<usize>(ANY, ()).await?.0;
                Ok::<_, Error>(vec![one, other])
            });
            let [first, second] = taken.await.unwrap()[0][..] else { panic!("rank 0 takes two messages") };
            assert_eq!(first + second, 3);
            firsts.lock().unwrap().insert(first);
        }
    };
    let explored = Explorer::new().check(program).unwrap();
    assert!(explored.complete, "not every order was run: {explored:?}");
    assert_eq!(*firsts.lock().unwrap(), BTreeSet::from([1, 2]));
}

/// Rank 0 sends to rank 1, and then to rank 2, which tells rank 1. Gives the order in which rank 1
/// hears of them.
async fn news(world: Communicator) -> Result<Vec<usize>, Error> {
    match world.rank() {
        0 => {
            world.send(1, (), 0_usize).await?;
            world.send(2, (), 0_usize).await?;
        }
        1 => return Ok(vec![world.recv(ANY, ()).await?.0, world.recv(ANY, ()).await?.0]),
        _ => {
            world.recv::<usize>(0, ()).await?;
            world.send(1, (), 2_usize).await?;
        }
    }
    Ok(Vec::new())
}

/// The orders that rank 1 sees, under each of these seeds.
fn orders_of_news(ranks: &Ranks) -> BTreeSet<Vec<usize>> {
    let orders = Arc::new(Mutex::new(BTreeSet::new()));
    selvedge_sim::simulate(0..200, || {
        let (orders, ranks) = (orders.clone(), ranks.clone());
        async move {
            let order = ranks.run(news).await.unwrap().swap_remove(1);
            orders.lock().unwrap().insert(order);
        }
    });
    Arc::into_inner(orders).unwrap().into_inner().unwrap()
}

/// A message is late only if messages take time.
#[test]
fn a_message_is_overtaken_by_news_of_it() {
    assert_eq!(orders_of_news(&Ranks::new(3)), BTreeSet::from([vec![0, 2]]));
    assert_eq!(orders_of_news(&Ranks::new(3).delayed()), BTreeSet::from([vec![0, 2], vec![2, 0]]));
}

/// Messages of one pair never overtake one another, whatever their tags.
#[test]
fn a_pair_keeps_its_order() {
    selvedge_sim::simulate(0..1_000, || async {
        let run = Ranks::new(2).delayed().run(|world| async move {
            for number in 0..6_u32 {
                match world.rank() {
                    0 => world.send(1, number % 2, number).await?,
                    _ => assert_eq!(world.recv::<u32>(0, ANY).await?.0, number),
                }
            }
            Ok::<_, Error>(())
        });
        run.await.unwrap();
    });
}

/// A message that was sent before its sender failed comes all the same, and then the failure is
/// told. A send to a rank that has ended is refused at the latest when the sender has heard of it.
#[test]
fn an_end_comes_after_the_last_message() {
    selvedge_sim::simulate(0..1_000, || async {
        let run = Ranks::new(2).delayed().run(|world| async move {
            if world.rank() == 0 {
                world.send(1, (), 1_u8).await?;
                panic!("the thread broke");
            }
            assert_eq!(world.recv::<u8>(0, ()).await?.0, 1);
            assert_eq!(world.recv::<u8>(0, ()).await.unwrap_err().class(), ErrorClass::Ended);
            assert_eq!(world.send(0, (), 1_u8).await.unwrap_err().class(), ErrorClass::Ended);
            Ok::<_, Error>(())
        });
        assert_eq!(run.await.unwrap_err().rank(), 0);
    });
}

/// A synchronous send to a rank that ends without a receive is an error, also if the message was
/// under way when the rank ended.
#[test]
fn a_late_message_to_a_rank_that_has_ended() {
    selvedge_sim::simulate(0..1_000, || async {
        let run = Ranks::new(2).delayed().run(|world| async move {
            if world.rank() == 1 {
                assert_eq!(world.ssend(0, (), 1_u8).await.unwrap_err().class(), ErrorClass::Ended);
            }
            Ok::<_, Error>(())
        });
        run.await.unwrap();
    });
}
