//! A receive that is given up loses no message, at whatever point it is dropped.

use selvedge_core::{spawn, yield_now};
use selvedge_mpi::{ANY, Communicator, Error, run};
use selvedge_scope::race;

/// Rank 0 sends numbers. On rank 1, threads receive for a moment, give up, and try again: each
/// number comes once, and to a single receiver they come in their order.
async fn impatient(world: Communicator, receivers: usize, wildcard: bool) -> Result<(), Error> {
    const NUMBERS: u32 = 12;
    if world.rank() == 0 {
        for number in 0..NUMBERS {
            world.send(1, (), number).await?;
            yield_now().await;
        }
        return Ok(());
    }
    let taken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..receivers)
        .map(|patience| {
            let (world, taken) = (world.clone(), taken.clone());
            spawn(async move {
                while taken.lock().unwrap().len() < NUMBERS as usize {
                    let wait = async {
                        for _ in 0..=patience {
                            yield_now().await;
                        }
                        None
                    };
                    let receive = async {
                        Some(match wildcard {
                            true => world.recv::<u32>(ANY, ANY).await,
                            false => world.recv::<u32>(0, ()).await,
                        })
                    };
                    match race((receive, wait)).await {
                        Some(Ok((number, _))) => taken.lock().unwrap().push(number),
                        // Rank 0 has returned, and all its messages have been taken.
                        Some(Err(_)) => break,
                        None => {}
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.await.expect("no thread is cancelled");
    }
    let mut taken = std::mem::take(&mut *taken.lock().unwrap());
    if receivers > 1 {
        taken.sort_unstable();
    }
    assert_eq!(taken, (0..NUMBERS).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn in_hundreds_of_orders() {
    selvedge_sim::simulate(0..300, || async {
        for receivers in [1, 3] {
            for wildcard in [false, true] {
                run(2, move |world| impatient(world, receivers, wildcard)).await.unwrap();
            }
        }
    });
}

/// Starts of one persistent receive are given up, after a different wait each.
#[test]
fn starts_in_hundreds_of_orders() {
    let program = |world: Communicator| async move {
        const NUMBERS: u32 = 20;
        if world.rank() == 0 {
            let mut sends = world.send_init(1, (), vec![0]);
            for number in 0..NUMBERS {
                sends.own_mut()[0] = number;
                sends.start().await?;
                yield_now().await;
            }
            return Ok(());
        }
        let mut receives = world.recv_init::<u32>(ANY, ());
        let mut taken = Vec::new();
        for attempt in 0_usize.. {
            let wait = async {
                for _ in 0..attempt % 4 {
                    yield_now().await;
                }
                None
            };
            let receive = async { Some(receives.start().await.map(|(elements, _)| elements[0])) };
            match race((receive, wait)).await {
                Some(number) => taken.push(number?),
                None if taken.len() == NUMBERS as usize => break,
                None => {}
            }
        }
        assert_eq!(taken, (0..NUMBERS).collect::<Vec<_>>());
        Ok::<_, Error>(())
    };
    selvedge_sim::simulate(0..300, || async move { drop(run(2, program).await.unwrap()) });
}

/// The request is dropped after its message has come, and before it is collected.
#[test]
fn after_the_message_has_come() {
    let program = |world: Communicator| async move {
        if world.rank() == 0 {
            world.recv::<()>(1, ()).await?;
            for number in 0..4 {
                world.send(1, number, number).await?;
            }
            world.send(1, 9, ()).await?;
        } else {
            let first = world.irecv::<u32>(0, 0);
            let second = world.irecv::<u32>(0, ANY);
            let third = world.irecv::<u32>(ANY, 2);
            world.send(0, (), ()).await?;
            world.recv::<()>(0, 9).await?;
            drop(second); // 1 goes back, before 3
            assert_eq!(world.recv::<u32>(ANY, ANY).await?.0, 1);
            drop(first);
            drop(third);
            for number in [0, 2, 3] {
                assert_eq!(world.recv::<u32>(ANY, ANY).await?.0, number);
            }
            // A result that had come is what `cancel` returns.
            let world_again = world.clone();
            world_again.send(1, (), 'x').await?;
            assert_eq!(world.irecv::<char>(1, ()).cancel().unwrap()?.0, 'x');
        }
        Ok::<_, Error>(())
    };
    selvedge_sim::simulate(0..100, || async move { drop(run(2, program).await.unwrap()) });
}

/// A message that is given back goes to a receive that waits already.
#[test]
fn to_a_receive_that_waits() {
    let program = |world: Communicator| async move {
        let given_up = world.irecv::<u32>(0, ());
        world.send(0, (), 1_u32).await?;
        let waits = world.irecv::<u32>(ANY, ANY);
        drop(given_up);
        assert_eq!(waits.await?.0, 1);
        Ok::<_, Error>(())
    };
    selvedge_core::round_robin(async move { drop(run(1, program).await.unwrap()) }).unwrap();
}
