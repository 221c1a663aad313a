//! Values of threads: each thread has its own, an inner value hides an outer one, and panics and
//! destructors restore them in order.

use selvedge_core::{JoinError, round_robin, spawn, spawn_local, thread_value, yield_now};
use std::cell::Cell;
use std::rc::Rc;

thread_value! {
    static NUMBER: u32;
}

async fn number_after_a_yield() -> u32 {
    yield_now().await;
    NUMBER.get()
}

#[test]
fn each_thread_has_its_own() {
    let seen = round_robin(async {
        let one = spawn(NUMBER.with_value(1, number_after_a_yield()));
        let two = spawn(NUMBER.with_value(2, number_after_a_yield()));
        let none = spawn(async { NUMBER.try_with(|number| *number) });
        (one.await.unwrap(), two.await.unwrap(), none.await.unwrap())
    });
    assert_eq!(seen.unwrap(), (1, 2, None));
}

#[test]
fn an_inner_one_hides_the_outer_one() {
    let seen = round_robin(
        NUMBER.with_value(1, async { (NUMBER.with_value(2, number_after_a_yield()).await, NUMBER.get()) }),
    );
    assert_eq!(seen.unwrap(), (2, 1));
}

#[test]
fn a_panic_takes_the_value_away() {
    round_robin(async {
        let panicked = spawn(NUMBER.with_value(1, async { panic!("on purpose") })).await;
        assert!(matches!(panicked, Err::<(), _>(JoinError::Panicked(_))));
        assert_eq!(NUMBER.try_with(|number| *number), None);
    })
    .unwrap();
}

#[test]
fn a_destructor_finds_it() {
    struct Looks(Rc<Cell<u32>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.set(NUMBER.get());
        }
    }
    let seen = Rc::new(Cell::new(0));
    let looks = Looks(seen.clone());
    round_robin(async {
        let waits = spawn_local(NUMBER.with_value(7, async move {
            let _looks = looks;
            std::future::pending::<()>().await
        }));
        yield_now().await;
        waits.cancel();
        assert!(matches!(waits.await, Err(JoinError::Cancelled)));
    })
    .unwrap();
    assert_eq!(seen.get(), 7);
}

#[test]
#[should_panic(expected = "has no such value")]
fn without_one_it_panics() {
    NUMBER.get();
}
