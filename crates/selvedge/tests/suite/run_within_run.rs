//! A program that is started within a thread of another says what to do instead.

use selvedge::NoEvents;
use std::any::Any;
use std::panic::catch_unwind;

/// What the panic said.
fn message(panicked: Result<(), Box<dyn Any + Send>>) -> String {
    *panicked.expect_err("it is refused").downcast::<String>().expect("a message")
}

#[test]
fn a_program_within_a_thread_is_refused() {
    let refusals = || {
        [
            ("run()", message(catch_unwind(|| selvedge::run(async {}).unwrap()))),
            ("run_pinned()", message(catch_unwind(|| selvedge::run_pinned(async {}).unwrap()))),
            ("run_local()", message(catch_unwind(|| selvedge::run_local(async {}).unwrap()))),
            (
                "priority()",
                message(catch_unwind(|| selvedge::priority(&mut NoEvents::new(), async {}).unwrap())),
            ),
            ("per_core()", message(catch_unwind(|| drop(selvedge::per_core(1, |_| async {}).unwrap())))),
        ]
    };
    let under_both = [
        selvedge::run(async move { refusals() }).unwrap(),
        selvedge::run_local(async move { refusals() }).unwrap(),
    ];
    for (name, message) in under_both.into_iter().flatten() {
        assert!(message.starts_with(name) && message.contains("std::thread::spawn"), "{message}");
    }
}

#[test]
fn on_an_os_thread_of_its_own_it_is_none_within() {
    let inner = selvedge::run(async {
        selvedge::blocking(|| selvedge::run(async { selvedge::blocking(|| 42).await.unwrap() }))
            .await
            .unwrap()
    });
    assert_eq!(inner.unwrap().unwrap(), 42);
}
