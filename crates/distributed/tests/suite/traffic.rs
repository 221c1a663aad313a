//! How many messages a graph takes: a push is one put, a fetch is two, and each rank asks once. The
//! puts of a turn are one message.

use selvedge_core::round_robin;
use selvedge_distributed::{ItemPlacement, graph};
use selvedge_mpi::{Communicator, run};

/// What rank 0 and rank 1 have sent: puts and messages.
fn traffic(body: fn(Communicator) -> Sent) -> Vec<(u64, u64)> {
    round_robin(run(2, body)).expect("no deadlock").expect("no rank fails")
}

type Sent = std::pin::Pin<
    Box<dyn Future<Output = Result<(u64, u64), selvedge_distributed::DistributedError>> + Send>,
>;

/// 10 steps of rank 1 get one item of rank 0.
fn ten_readers(world: Communicator, placement: ItemPlacement<u32>) -> Sent {
    Box::pin(async move {
        graph(&world, move |graph| {
            let tags = graph.tags("tags", |_: &u32| 1);
            let items = graph.items::<u32, u32>("items", placement);
            let sums = graph.items("sums", ItemPlacement::consumed_on(|_: &u32| [1]));
            graph.prescribe(tags, "read", move |n, step| step.put(sums, n, step.get(items, 0)? + n));
            graph.initialize_everywhere(|env| (0..10).try_for_each(|n| env.put_tag(tags, n)))?;
            if graph.rank() == 0 {
                graph.initialize(|env| env.put(items, 0, 7))?;
            }
            let finished = graph.run()?;
            let sum: u32 = finished.finalize(|view| view.iter(sums.local()).map(|(_, sum)| *sum).sum());
            assert_eq!(sum, if graph.rank() == 1 { 10 * 7 + 45 } else { 0 });
            let traffic = finished.traffic();
            Ok((traffic.puts, traffic.messages))
        })
        .await
    })
}

#[test]
fn an_item_is_pushed_once() {
    let sent = traffic(|world| ten_readers(world, ItemPlacement::consumed_on(|_| [1, 1])));
    assert_eq!(sent, [(1, 1), (0, 0)]);
}

#[test]
fn an_item_is_fetched_once() {
    let sent = traffic(|world| ten_readers(world, ItemPlacement::produced_on(|_| 0)));
    assert_eq!(sent, [(1, 1), (1, 1)]);
}

#[test]
fn the_puts_of_a_turn_are_one_message() {
    let sent = traffic(|world| {
        Box::pin(async move {
            graph(&world, move |graph| {
                let tags = graph.tags("tags", |_: &u32| 0);
                let items = graph.items("items", ItemPlacement::consumed_on(|_: &(u32, u32)| [1]));
                graph.prescribe(tags, "make", move |n, step| {
                    (0..100).try_for_each(|at| step.put(items, (n, at), n * at))
                });
                graph.initialize_everywhere(|env| (0..10).try_for_each(|n| env.put_tag(tags, n)))?;
                let traffic = graph.run()?.traffic();
                Ok((traffic.puts, traffic.messages))
            })
            .await
        })
    });
    // A step puts 100, and a turn of more than 256 ends.
    assert_eq!((sent[0].0, sent[1]), (1_000, (0, 0)));
    assert!((4..=10).contains(&sent[0].1), "{sent:?}");
}

#[test]
fn the_parts_of_a_range_that_lie_side_by_side_are_one_put() {
    let sent = traffic(|world| {
        Box::pin(async move {
            graph(&world, move |graph| {
                // Rank 0 has three parts in the middle.
                let loops =
                    graph.ranges("loops", 10_u32, |(begin, _)| usize::from(!(40..70).contains(begin)));
                let parts = graph.items("parts", ItemPlacement::consumed_on(|_: &u32| [0]));
                graph.prescribe_range(loops, "note", move |part, step| step.put(parts, part.start, part.end));
                if graph.rank() == 0 {
                    graph.initialize(|env| env.put_tag(loops.tags(), (0, 100)))?;
                }
                let finished = graph.run()?;
                let parts = finished.finalize(|view| view.iter(parts.local()).count());
                assert_eq!(parts, if graph.rank() == 0 { 10 } else { 0 });
                let traffic = finished.traffic();
                Ok((traffic.puts, traffic.messages))
            })
            .await
        })
    });
    assert_eq!(sent[0], (2, 1));
    assert_eq!(sent[1].0, 7);
}
