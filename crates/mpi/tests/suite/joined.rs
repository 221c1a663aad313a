//! Worlds that did not start together, and what becomes of ranks that were spawned and fail.

use selvedge_core::{NoEvents, round_robin, yield_now};
use selvedge_mpi::{ANY, Cause, Communicator, Error, ErrorClass, InterRoot, Port, lookup_name, op, run};
use selvedge_scope::{join, race};
use std::sync::{Arc, Mutex};

/// A port with the name of this test: other tests of the process have ports too.
fn service(name: &str) -> String {
    format!("{name} of {:?}", std::thread::current().id())
}

/// Two servers serve three worlds, one after another.
async fn serve(world: Communicator, service: String) -> Result<usize, Error> {
    let port = (world.rank() == 0).then(Port::open);
    if let Some(port) = &port {
        port.publish(service).expect("the name is free");
    }
    let mut sum = 0;
    for _ in 0..3 {
        let clients = world.accept(0, port.as_ref()).await?;
        let got = clients.reduce(InterRoot::Here(1), || 0, op::sum).await?;
        sum += got.unwrap_or_default();
        // The client's own numbers are those of its group.
        if world.rank() == 0 {
            for _ in 0..clients.remote_size() {
                let (rank, status) = clients.recv::<usize>(ANY, 3).await?;
                assert_eq!(rank, status.source);
            }
        }
    }
    Ok(sum)
}

/// A world of clients, which finds the servers by their name.
async fn ask(world: Communicator, service: String, number: usize) -> Result<usize, Error> {
    let name = loop {
        match lookup_name(&service) {
            Some(name) => break name,
            None => yield_now().await,
        }
    };
    let servers = world.connect(0, Some(&name)).await?;
    assert_eq!((servers.size(), servers.remote_size()), (world.size(), 2));
    servers.reduce(InterRoot::There(1), || number, op::sum).await?;
    servers.send(0, 3, world.rank()).await?;
    // Both groups have messages of their own still.
    world.allreduce(number, op::sum).await
}

async fn three_worlds(service: String) {
    let name = service.clone();
    let server = run(2, move |world| serve(world, name.clone()));
    let client = |ranks: usize, number: usize| {
        let service = service.clone();
        run(ranks, move |world| ask(world, service.clone(), number))
    };
    let (served, one, two, three) = join((server, client(1, 100), client(2, 10), client(3, 1))).await;
    assert_eq!(served.unwrap(), [0, 100 + 20 + 3]);
    assert_eq!((one.unwrap(), two.unwrap(), three.unwrap()), (vec![100], vec![20; 2], vec![3; 3]));
    // The port was dropped, so its name is free.
    assert_eq!(lookup_name(&service), None);
}

#[test]
fn worlds_meet_at_a_port() {
    round_robin(three_worlds(service("round robin"))).unwrap();
    selvedge_sim::simulate(0..50, || three_worlds(service("simulated")));
    for _ in 0..20 {
        let name = service("two workers");
        selvedge_sched::work_stealing(2, |_| Ok(NoEvents::new()), three_worlds(name)).unwrap();
    }
}

#[test]
fn a_name_is_that_of_one_port() {
    let (one, other) = (Port::open(), Port::open());
    let name = service("one port");
    one.publish(&name).unwrap();
    one.publish(&name).unwrap();
    let error = other.publish(&name).unwrap_err();
    assert_eq!(error.port(), one.name());
    assert_eq!(error.to_string(), format!("the port {} is published as {name}", one.name()));
    assert_eq!(lookup_name(&name).as_deref(), Some(one.name()));
    drop(one);
    assert_eq!(lookup_name(&name), None);
    other.publish(&name).unwrap();
}

/// Accepts until a world has sent a number. The first accepts are given up at some time: before a
/// world has come, or after.
async fn accept_some(world: Communicator, port: Arc<Port>) -> Result<u8, Error> {
    for attempt in 0.. {
        let accepting = async { world.accept(0, Some(&port)).await.map(Some) };
        let giving_up = async {
            match attempt {
                0..2 => yield_now().await,
                _ => std::future::pending().await,
            }
            Ok(None)
        };
        let Some(client) = race((accepting, giving_up)).await? else { continue };
        match client.recv::<u8>(0, ()).await {
            Ok((number, _)) => return Ok(number),
            // This world has given up.
            Err(error) => assert_eq!(error.class(), ErrorClass::Ended, "{error}"),
        }
    }
    unreachable!("it accepts until a number comes")
}

/// An accept or connect that is given up leaves the other side to the next one.
#[test]
fn meetings_that_are_given_up_are_as_if_they_had_not_been() {
    selvedge_sim::simulate(0..300, || async {
        let port = Arc::new(Port::open());
        let name = port.name().to_string();
        let server = run(1, move |world| accept_some(world, port.clone()));
        let client = run(1, move |world| {
            let name = name.clone();
            async move {
                let connecting = async { world.connect(0, Some(&name)).await.map(Some) };
                let giving_up = async {
                    yield_now().await;
                    Ok(None)
                };
                let server = match race((connecting, giving_up)).await? {
                    Some(server) => server,
                    None => world.connect(0, Some(&name)).await?,
                };
                server.send(0, (), 7_u8).await
            }
        });
        let (served, asked) = join((server, client)).await;
        assert_eq!(served.unwrap(), [7]);
        asked.unwrap();
    });
}

#[test]
fn a_port_that_closes_tells_the_worlds_that_wait() {
    round_robin(async {
        let port = Port::open();
        let name = port.name().to_string();
        let client = run(2, move |world| {
            let name = name.clone();
            async move {
                let error = world.connect(1, Some(&name)).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Join, "{error}");
                assert!(error.to_string().contains("was closed"), "{error}");
                Ok::<_, Error>(())
            }
        });
        let close = async {
            for _ in 0..20 {
                yield_now().await;
            }
            drop(port);
        };
        join((client, close)).await.0.unwrap();
    })
    .unwrap();
}

#[test]
fn a_spawned_rank_that_fails_fails_the_run() {
    selvedge_sim::simulate(0..50, || async {
        let failed = run(2, |world| async move {
            let body = |world: Communicator| async move {
                if world.rank() == 1 {
                    panic!("the thread broke");
                }
                let error = world.recv::<u8>(1, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended, "{error}");
                Ok::<_, Error>(())
            };
            let children = world.spawn(0, 2, body).await?;
            let error = children.recv::<u8>(1, ()).await.unwrap_err();
            assert!(error.to_string().contains("rank 1 has failed"), "{error}");
            Ok::<_, Error>(())
        });
        let failure = failed.await.unwrap_err();
        assert_eq!((failure.rank(), failure.ranks.len()), (0, 1), "{failure}");
        assert!(matches!(failure.cause(), Cause::Spawned(_)), "{failure}");
        assert!(failure.to_string().contains("of the ranks that it spawned, rank 1 has failed"), "{failure}");
    });
}

/// After a disconnect the failure of a client is nothing to the servers, which wait for any client.
#[test]
fn worlds_that_have_left_each_other_hear_nothing() {
    selvedge_sim::simulate(0..200, || async {
        let port = Arc::new(Port::open());
        let name = port.name().to_string();
        let server = run(2, move |world| {
            let port = port.clone();
            async move {
                let first = world.accept(0, Some(&port)).await?;
                let all = first.merge(false).await?;
                let waits = all.irecv::<u8>(ANY, 1);
                let (sum, _) = first.recv::<usize>(world.rank(), ()).await?;
                first.disconnect().await?;
                // The other rank of its own group is in it too, and has left it.
                let error = all.recv::<u8>(2, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended, "{error}");
                assert!(!error.to_string().contains("has failed"), "{error}");
                let error = waits.await.unwrap_err();
                assert!(!error.to_string().contains("has failed"), "{error}");
                world.allreduce(sum, op::sum).await
            }
        });
        let client = run(2, move |world| {
            let name = name.clone();
            async move {
                let servers = world.connect(0, Some(&name)).await?;
                drop(servers.merge(true).await?);
                servers.send(world.rank(), (), world.rank() + 1).await?;
                servers.disconnect().await?;
                assert_ne!(world.rank(), 1, "this rank panics");
                Ok::<_, Error>(())
            }
        });
        let (served, asked) = join((server, client)).await;
        assert_eq!(served.unwrap(), [3, 3]);
        assert_eq!(asked.unwrap_err().rank(), 1);
    });
}

/// A rank that ends in place of a disconnect: the others leave nevertheless, with an error.
#[test]
fn a_rank_that_has_ended_does_not_hold_the_others_back() {
    selvedge_sim::simulate(0..200, || async {
        let parents = run(2, |world| async move {
            let body = |world: Communicator| async move {
                let parent = world.parent().expect("the rank was spawned");
                if world.rank() == 0 {
                    return Ok::<_, Error>(());
                }
                let error = parent.disconnect().await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended, "{error}");
                Ok(())
            };
            let children = world.spawn(0, 2, body).await?;
            let error = children.disconnect().await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Ended, "disconnect"), "{error}");
            world.allreduce(1, op::sum).await
        });
        assert_eq!(parents.await.unwrap(), [2, 2]);
    });
}

/// A run that is dropped takes the ranks with it that it has spawned.
#[test]
fn spawned_ranks_are_cancelled_with_the_run() {
    round_robin(async {
        let told = Arc::new(Mutex::new(0));
        let (seen, alive) = (told.clone(), Arc::new(()));
        let weak = Arc::downgrade(&alive);
        let running = run(1, move |world| {
            let (seen, alive) = (seen.clone(), alive.clone());
            async move {
                let spawned = world
                    .spawn(0, 2, move |_| {
                        let (seen, alive) = (seen.clone(), alive.clone());
                        async move {
                            *seen.lock().unwrap() += 1;
                            std::future::pending::<()>().await;
                            drop(alive);
                            Ok::<_, Error>(())
                        }
                    })
                    .await?;
                std::future::pending::<()>().await;
                drop(spawned);
                Ok::<_, Error>(())
            }
        });
        let both_run = async {
            while *told.lock().unwrap() < 2 {
                yield_now().await;
            }
            Ok(Vec::new())
        };
        race((running, both_run)).await.unwrap();
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(weak.strong_count(), 0, "a spawned rank lives on");
    })
    .unwrap();
}
