//! Random trees of scopes, with children that end well, throw, are shielded or never end, cancelled
//! at a random step: whatever happens, when a scope has returned none of those below it is left.

use proptest::prelude::*;
use selvedge_core::*;
use selvedge_scope::*;
use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

#[derive(Debug, Clone)]
enum Node {
    Yields(u32),
    Throws(u32),
    Shielded(u32),
    Pending,
    Scope { awaits: bool, cancels: bool, children: Vec<Node> },
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        4 => (0..6u32).prop_map(Node::Yields),
        1 => (0..6u32).prop_map(Node::Throws),
        1 => (0..6u32).prop_map(Node::Shielded),
        1 => Just(Node::Pending),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        (any::<bool>(), any::<bool>(), prop::collection::vec(inner, 0..5))
            .prop_map(|(awaits, cancels, children)| Node::Scope { awaits, cancels, children })
    })
}

/// How many there are below a scope, itself included.
type Live = Vec<Rc<Cell<i32>>>;

struct Here(Live);

impl Here {
    fn new(live: &Live) -> Here {
        live.iter().for_each(|count| count.set(count.get() + 1));
        Here(live.clone())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.0.iter().for_each(|count| count.set(count.get() - 1));
    }
}

fn run(node: Node, live: Live) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let _here = Here::new(&live);
        match node {
            Node::Yields(n) => yields(n).await,
            Node::Throws(n) => {
                yields(n).await;
                throw("thrown")
            }
            Node::Shielded(n) => shield(yields(n)).await,
            Node::Pending => pending().await,
            Node::Scope { awaits, cancels, children } => {
                let below = Rc::new(Cell::new(0));
                let mut live = live.clone();
                live.push(below.clone());
                let ended = catch(scope(async |s| {
                    let _here = Here::new(&live);
                    let mut handles = Vec::new();
                    for child in children {
                        handles.push(s.spawn_local(run(child, live.clone())));
                        yield_now().await;
                    }
                    if cancels {
                        s.cancel_children();
                    }
                    if awaits {
                        join_all(handles).await;
                    }
                }));
                let ended = ended.await;
                assert_eq!(below.get(), 0, "the scope is over, and a child is left");
                if let Err(exception) = ended {
                    exception.rethrow();
                }
            }
        }
    })
}

async fn yields(n: u32) {
    for _ in 0..n {
        yield_now().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 600 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_child_outlives_a_scope(node in node(), stop_at in 0..200u32, drop_cpu: bool) {
        let all = Rc::new(Cell::new(0));
        let mut cpu = Cpu::new().unwrap();
        let mut owner = cpu.spawn_local(run(node, vec![all.clone()])).unwrap();
        let mut steps = 0;
        while let Some(thread) = cpu.woken() {
            steps += 1;
            match thread.step(&mut cpu) {
                Trace::Yield(thread) => cpu.make_ready(thread),
                Trace::Blocked | Trace::Ret => {}
                other => panic!("{other:?}"),
            }
            if steps == stop_at {
                if drop_cpu {
                    break;
                }
                owner.cancel();
            }
        }
        // Nothing else wakes the threads that wait for ever.
        if !owner.is_finished() && !drop_cpu {
            owner.cancel();
            while let Some(thread) = cpu.woken() {
                if let Trace::Yield(thread) = thread.step(&mut cpu) {
                    cpu.make_ready(thread);
                }
            }
            prop_assert!(owner.is_finished());
        }
        if !drop_cpu {
            if let Some(Err(JoinError::Panicked(exception))) = owner.try_join() {
                prop_assert_eq!(exception.message(), Some("thrown"));
            }
            prop_assert_eq!(all.get(), 0);
            prop_assert_eq!(cpu.waiting(), 0);
        }
        drop(cpu);
        prop_assert_eq!(all.get(), 0);
    }
}
