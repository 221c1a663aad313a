//! Scopes: when each child is over, which failures and cancellations reach it, and that nothing is
//! left.

use futures::channel::oneshot;
use selvedge_core::*;
use selvedge_scope::*;
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::task::Poll;

/// The number of living [`One`]s.
#[derive(Clone, Default)]
struct Count(Rc<Cell<i32>>);

impl Count {
    fn one(&self) -> One {
        self.0.set(self.0.get() + 1);
        One(self.clone())
    }

    fn get(&self) -> i32 {
        self.0.get()
    }
}

struct One(Count);

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() - 1);
    }
}

async fn yields(n: u32) {
    for _ in 0..n {
        yield_now().await;
    }
}

#[test]
fn it_ends_when_all_children_are_over() {
    let count = Count::default();
    let c = count.clone();
    round_robin(async move {
        let inside = scope(async |s| {
            for n in 0..20 {
                let one = c.one();
                drop(s.spawn_local(async move {
                    yields(n).await;
                    drop(one);
                }));
            }
            c.get()
        });
        assert_eq!(inside.await, 20);
        assert_eq!(c.get(), 0);
    })
    .unwrap();
}

#[test]
fn results_come_through_handles() {
    let result = round_robin(scope(async |s| {
        let children: Vec<_> = (0..10)
            .map(|n| {
                s.spawn(async move {
                    yields(10 - n).await;
                    n
                })
            })
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    }));
    assert_eq!(result.unwrap(), 45);
}

#[test]
fn an_exception_of_a_child_cancels_the_others_and_keeps_its_type() {
    let count = Count::default();
    let c = count.clone();
    round_robin(async move {
        let (in_body, in_sibling) = (c.one(), c.one());
        let thrown = catch(scope(async |s| {
            let _in_body = in_body;
            let sibling = s.spawn_local(async move {
                let _in_sibling = in_sibling;
                pending::<()>().await;
            });
            drop(s.spawn(async {
                yields(3).await;
                throw(7_u16)
            }));
            sibling.await.unwrap();
            unreachable!("cancelled");
        }));
        assert_eq!(thrown.await.unwrap_err().downcast::<u16>().unwrap(), 7);
        assert_eq!(c.get(), 0);
        // The thread that has caught it goes on, also with other scopes.
        assert_eq!(scope(async |s| s.spawn(async { 1 }).await.unwrap()).await, 1);
    })
    .unwrap();
}

#[test]
fn an_exception_of_the_body_cancels_the_children() {
    let count = Count::default();
    let c = count.clone();
    round_robin(async move {
        let one = c.one();
        let thrown = catch(scope(async |s| {
            drop(s.spawn_local(async move {
                let _one = one;
                pending::<()>().await;
            }));
            yields(2).await;
            if true {
                throw("from the body");
            }
        }));
        assert_eq!(thrown.await.unwrap_err().message(), Some("from the body"));
        assert_eq!(c.get(), 0);
    })
    .unwrap();
}

#[test]
fn the_first_error_is_the_scopes() {
    round_robin(async {
        let from_child = try_scope(async |s| {
            drop(s.spawn(async {
                yields(5).await;
                Err::<(), _>("late")
            }));
            drop(s.spawn(async {
                yields(2).await;
                Err::<(), _>("early")
            }));
            s.spawn(pending::<Result<(), _>>()).await.unwrap();
            Ok(())
        });
        assert_eq!(from_child.await, Err("early"));
        let from_body = try_scope(async |s| {
            drop(s.spawn(pending::<Result<(), _>>()));
            yields(1).await;
            Err::<(), _>("body")
        });
        assert_eq!(from_body.await, Err("body"));
        let none = try_scope(async |s| {
            let child = s.spawn(async { Ok::<_, &str>(20) });
            Ok(child.await.unwrap() + 1)
        });
        assert_eq!(none.await, Ok(21));
        let thrown = catch(try_scope(async |s| {
            drop(s.spawn(async { throw::<u8>(3) as Result<(), _> }));
            pending::<Result<(), &str>>().await
        }));
        assert_eq!(thrown.await.unwrap_err().downcast::<u8>().unwrap(), 3);
    })
    .unwrap();
}

#[test]
fn collected_failures_cancel_no_child() {
    let sum = round_robin(collect_scope(async |s| {
        let bad = s.spawn(async { throw(5_u32) as u32 });
        let good = s.spawn(async {
            yields(5).await;
            6
        });
        let Err(JoinError::Panicked(exception)) = bad.await else { panic!("it has failed") };
        exception.downcast::<u32>().unwrap() + good.await.unwrap()
    }));
    assert_eq!(sum.unwrap(), 11);
}

#[test]
fn children_are_cancelled_one_by_one_and_together() {
    let count = Count::default();
    let c = count.clone();
    round_robin(scope(async move |s| {
        let children: Vec<_> = (0..4)
            .map(|_| {
                let one = c.one();
                s.spawn_local(async move {
                    let _one = one;
                    pending::<()>().await;
                })
            })
            .collect();
        yields(1).await;
        children[2].cancel();
        yields(2).await;
        assert_eq!((c.get(), children[2].is_finished(), children[3].is_finished()), (3, true, false));
        s.cancel_children();
        for child in children {
            assert!(matches!(child.await, Err(JoinError::Cancelled)));
        }
        assert_eq!(c.get(), 0);
        // A child that comes later is not cancelled.
        assert_eq!(s.spawn(async { 3 }).await.unwrap(), 3);
    }))
    .unwrap();
}

#[test]
fn a_handle_cancels_only_its_child() {
    round_robin(scope(async |s| {
        let first = s.spawn(async { 1 });
        yields(2).await;
        // It has the place that the first has left.
        let second = s.spawn(async {
            yields(5).await;
            2
        });
        first.cancel();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 2));
    }))
    .unwrap();
}

#[test]
fn a_child_spawns_siblings_through_a_clone() {
    let sum = round_robin(async {
        let sum = Rc::new(Cell::new(0));
        let s1 = sum.clone();
        scope(async move |s| {
            fn tree(s: &Scope, depth: u32, sum: Rc<Cell<u32>>) {
                let siblings = s.clone();
                drop(s.spawn_local(async move {
                    sum.set(sum.get() + 1);
                    yield_now().await;
                    for _ in 0..if depth > 0 { 2 } else { 0 } {
                        tree(&siblings, depth - 1, sum.clone());
                    }
                }));
            }
            tree(&s, 4, s1);
        })
        .await;
        sum.get()
    });
    assert_eq!(sum.unwrap(), 31);
}

#[test]
#[should_panic(expected = "a scope that is over")]
fn a_clone_that_outlives_the_scope_spawns_nothing() {
    let _ = round_robin(async {
        let clone = scope(async |s| s).await;
        drop(clone.spawn(async {}));
    });
}

#[test]
fn the_outer_scope_waits_for_the_children_that_an_inner_one_has_left() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let l = log.clone();
    round_robin(async move {
        let l1 = l.clone();
        let thrown = catch(scope(async |s| {
            drop(s.spawn_local(scope(async move |inner| {
                let l2 = l1.clone();
                drop(inner.spawn_local(async move {
                    shield(yields(10)).await;
                    l2.borrow_mut().push("the shield was left");
                    pending::<()>().await;
                }));
                pending::<()>().await;
            })));
            yields(3).await;
            throw("enough")
        }));
        let _: Exception = thrown.await.map(|(): ()| ()).unwrap_err();
        l.borrow_mut().push("the scope is over");
    })
    .unwrap();
    assert_eq!(*log.borrow(), ["the shield was left", "the scope is over"]);
}

#[test]
fn a_scope_in_the_body_of_another_is_waited_for_too() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let l = log.clone();
    round_robin(async move {
        let l1 = l.clone();
        let failed = try_scope(async |s| {
            drop(s.spawn(async {
                yields(3).await;
                Err::<(), _>("enough")
            }));
            scope(async |inner| {
                drop(inner.spawn_local(async move {
                    shield(yields(10)).await;
                    l1.borrow_mut().push("the shield was left");
                }));
            })
            .await;
            Ok(())
        });
        assert_eq!(failed.await, Err("enough"));
        l.borrow_mut().push("the scope is over");
    })
    .unwrap();
    assert_eq!(*log.borrow(), ["the shield was left", "the scope is over"]);
}

/// Two children and a nested scope. Their parts are counted, and they stop at every kind of place.
async fn program(count: Count) {
    let _here = count.one();
    scope(async |s| {
        let _body = count.one();
        let (one, two, three) = (count.one(), count.one(), count.one());
        let (send, receive) = oneshot::channel::<u8>();
        drop(s.spawn_local(async move {
            let _one = one;
            yields(2).await;
            let _ = send.send(1);
            park(|_| ()).await;
        }));
        let c = count.clone();
        let handle = s.spawn_local(async move {
            let _two = two;
            scope(async move |inner| {
                let four = c.one();
                let child = inner.spawn_local(async move {
                    let _four = four;
                    let _ = receive.await;
                    yields(1).await;
                });
                child.await.unwrap();
            })
            .await;
        });
        fork_local(async move { drop(three) }).await;
        handle.await.unwrap();
        s.cancel_children();
    })
    .await;
}

#[test]
fn it_can_be_dropped_at_every_step() {
    for limit in (0..40).step_by(if cfg!(miri) { 5 } else { 1 }) {
        let count = Count::default();
        let mut cpu = Cpu::new().unwrap();
        let owner = cpu.spawn_local(program(count.clone())).unwrap();
        let mut steps = 0;
        while steps < limit
            && let Some(thread) = cpu.woken()
        {
            steps += 1;
            one_step(&mut cpu, thread);
        }
        owner.cancel();
        while let Some(thread) = cpu.woken() {
            one_step(&mut cpu, thread);
        }
        assert!(owner.is_finished());
        assert_eq!(count.get(), 0, "cancelled after {steps} steps");
        assert_eq!(cpu.waiting(), 0);
    }
}

#[test]
fn it_can_go_with_its_cpu_at_every_step() {
    for limit in (0..40).step_by(if cfg!(miri) { 5 } else { 1 }) {
        let count = Count::default();
        let mut cpu = Cpu::new().unwrap();
        let _owner = cpu.spawn_local(program(count.clone())).unwrap();
        for _ in 0..limit {
            let Some(thread) = cpu.woken() else { break };
            one_step(&mut cpu, thread);
        }
        drop(cpu);
        assert_eq!(count.get(), 0, "dropped after {limit} steps");
    }
}

fn one_step(cpu: &mut Cpu, thread: Thread) {
    match thread.step(cpu) {
        Trace::Yield(thread) => cpu.make_ready(thread),
        Trace::Fork { child, parent } => {
            cpu.make_ready(child);
            cpu.make_ready(parent);
        }
        Trace::Blocked | Trace::Ret => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_in_a_destructor_during_cancellation_ends_there() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let count = Count::default();
    let c = count.clone();
    let sum = round_robin(async move {
        let (one, two) = (c.one(), c.one());
        let thrown = catch(scope(async |s| {
            drop(s.spawn_local(async move {
                let _one = one;
                let _bad = Bad;
                pending::<()>().await;
            }));
            drop(s.spawn_local(async move {
                let _two = two;
                pending::<()>().await;
            }));
            yields(2).await;
            throw("enough")
        }));
        let _: Exception = thrown.await.map(|(): ()| ()).unwrap_err();
        assert_eq!(c.get(), 0);
        scope(async |s| s.spawn(async { 42 }).await.unwrap()).await
    });
    assert_eq!(sum.unwrap(), 42);
}

#[test]
fn a_child_that_exits_is_cancelled_alone() {
    round_robin(scope(async |s| {
        let child = s.spawn(async { exit().await });
        assert!(matches!(child.await, Err(JoinError::Cancelled)));
    }))
    .unwrap();
}

#[test]
fn a_scope_without_children_runs_anywhere() {
    assert_eq!(futures::executor::block_on(scope(async |_| 7)), 7);
}

#[test]
fn a_scope_of_send_parts_is_send() {
    fn is_send<T: Send>(t: T) -> T {
        t
    }
    let sum = round_robin(async {
        let thread = spawn(is_send(scope(async |s: Scope| {
            let child = s.spawn(is_send(async { yields(1).await }));
            child.await.unwrap();
            let inner =
                try_scope(async |t| t.spawn(async { Ok::<_, &str>(1) }).await.map_err(|_| "cancelled"));
            is_send(inner).await.unwrap()
        })));
        thread.await.unwrap()
    });
    assert_eq!(sum.unwrap(), 1);
}

#[test]
fn tokens_reach_all_below_and_none_above() {
    let root = CancelToken::new();
    let (left, right) = (root.child(), root.child());
    let below = left.child().child();
    left.cancel();
    assert_eq!([&root, &left, &right, &below].map(CancelToken::is_cancelled), [false, true, false, true]);
    assert!(left.child().is_cancelled());
    let far = right.child().child();
    drop(right);
    root.cancel();
    assert!(far.is_cancelled());
}

#[test]
fn a_long_line_of_tokens_is_no_deep_recursion() {
    let root = CancelToken::new();
    let mut last = root.child();
    for _ in 0..if cfg!(miri) { 30 } else { 200_000 } {
        last = last.child();
    }
    root.cancel();
    assert!(last.is_cancelled());
}

#[test]
fn a_token_wakes_all_waiters_and_forgets_those_that_gave_up() {
    round_robin(scope(async |s| {
        let token = CancelToken::new();
        let children: Vec<_> = (0..10)
            .map(|n| {
                let token = token.child();
                s.spawn(async move { select((token.cancelled(), yields(n))).await })
            })
            .collect();
        yields(5).await;
        token.cancel();
        let mut cancelled = Vec::new();
        for child in children {
            cancelled.push(child.await.unwrap() == Selected::First(()));
        }
        // The threads with few turns left have had their turns.
        assert!(!cancelled[3] && cancelled[7] && cancelled.is_sorted(), "{cancelled:?}");
    }))
    .unwrap();
}

#[test]
fn the_loser_is_dropped_before_the_winner_is_used() {
    let count = Count::default();
    let c = count.clone();
    round_robin(async move {
        let one = c.one();
        let loser = async move {
            let _one = one;
            pending::<u8>().await
        };
        let winner = race((loser, async {
            yields(2).await;
            9
        }))
        .await;
        assert_eq!((winner, c.get()), (9, 0));
    })
    .unwrap();
}

#[test]
fn the_first_of_the_tuple_wins_a_tie() {
    round_robin(async {
        assert_eq!(select((async { 1 }, async { 2 })).await, Selected::First(1));
        assert_eq!(race((pending(), async { 2 }, async { 3 })).await, 2);
        let last = select((pending::<()>(), pending::<()>(), pending::<()>(), async { 4 })).await;
        assert_eq!(last, Selected::Fourth(4));
        let Selected::Second(()) = select((pending::<()>(), async {})).await else { panic!() };
    })
    .unwrap();
}

#[test]
fn joins_of_every_size() {
    round_robin(async {
        let slow = |n: u32| async move {
            yields(n).await;
            n
        };
        assert_eq!(join((slow(3), slow(1), slow(2))).await, (3, 1, 2));
        assert_eq!(join((slow(1), async { "a" }, slow(0), async { 'b' })).await, (1, "a", 0, 'b'));
        assert_eq!(join_all((0..50).map(slow)).await, (0..50).collect::<Vec<_>>());
        let fails = try_join((async { Ok::<u8, &str>(1) }, pending::<Result<u8, &str>>(), async {
            yields(1).await;
            Err::<(), _>("bad")
        }));
        assert_eq!(fails.await, Err("bad"));
        assert_eq!(
            try_join((async { Ok::<_, ()>(1) }, async { Ok('2') }, async { Ok(3.0) })).await,
            Ok((1, '2', 3.0))
        );
    })
    .unwrap();
}

#[test]
#[should_panic(expected = "not polled after it has ended")]
fn a_join_is_not_polled_again() {
    let _ = round_robin(async {
        let mut both = std::pin::pin!(join((async {}, async {})));
        std::future::poll_fn(|cx| {
            assert!(both.as_mut().poll(cx).is_ready());
            both.as_mut().poll(cx)
        })
        .await;
        std::future::poll_fn(|_| Poll::<()>::Pending).await;
    });
}

#[test]
fn a_failure_is_told_wherever_the_scopes_handle_has_gone() {
    let thrown = round_robin(async {
        let fails = catch(scope(async |s| {
            // The handle leaves the body, which has no child when it waits.
            drop(spawn_local(async move {
                yields(3).await;
                drop(s.spawn(async { throw("a child broke") }));
            }));
            pending::<()>().await;
        }));
        fails.await.unwrap_err()
    });
    assert_eq!(thrown.unwrap().downcast::<&str>().unwrap(), "a child broke");
}

#[test]
fn deeply_nested_scopes_are_cancelled_one_by_one() {
    const DEPTH: u32 = if cfg!(miri) { 20 } else { 50_000 };

    fn nest(depth: u32, deepest: Rc<Cell<u32>>) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            deepest.set(deepest.get().min(depth));
            match depth {
                0 => pending::<()>().await,
                _ => scope(async move |s| drop(s.spawn_local(nest(depth - 1, deepest)).await)).await,
            }
        })
    }
    round_robin(async {
        let deepest = Rc::new(Cell::new(DEPTH));
        let outermost = spawn_local(nest(DEPTH, deepest.clone()));
        while deepest.get() > 0 {
            yield_now().await;
        }
        outermost.cancel();
        assert!(matches!(outermost.await, Err(JoinError::Cancelled)));
        while Rc::strong_count(&deepest) > 1 {
            yield_now().await;
        }
    })
    .unwrap();
}
