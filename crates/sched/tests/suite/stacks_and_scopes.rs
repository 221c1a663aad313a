//! Scopes in direct-style threads, which leave their stacks in the middle of a poll.

use crate::naps::Naps;
use selvedge_core::{Events, round_robin_over, shield, sleep, spawn_local};
use selvedge_direct::{direct, wait};
use selvedge_scope::{scope, select};
use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

#[test]
fn a_scope_on_a_stack_that_is_left_takes_in_no_strangers_child() {
    let mut naps = Naps::new();
    round_robin_over(&mut naps, async {
        let stranger_is_over = Rc::new(Cell::new(false));
        let own = spawn_local(direct(|| {
            // The thread leaves its stack in the middle of the body's poll.
            wait(scope(async |_| wait(sleep(Duration::from_millis(30)))));
        }));
        let over = stranger_is_over.clone();
        let other = spawn_local(async move {
            sleep(Duration::from_millis(5)).await;
            let gives_up = scope(async move |s| {
                drop(s.spawn_local(async move {
                    shield(sleep(Duration::from_millis(300))).await;
                    over.set(true);
                }));
                pending::<()>().await;
            });
            // The `select` drops the scope and leaves its child behind.
            let _ = select((gives_up, sleep(Duration::from_millis(5)))).await;
        });
        own.await.unwrap();
        assert!(!stranger_is_over.get(), "the scope has waited for a child of another one");
        other.await.unwrap();
    })
    .unwrap();
    assert_eq!(naps.armed(), 0);
}
