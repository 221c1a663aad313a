//! `#[selvedge::main]` and `#[selvedge::test]`: what they run, where, and how it ends.

use selvedge::{MVar, Runner, Time, sleep, spawn, yield_now};
use std::cell::Cell;
use std::process::{ExitCode, Termination};
use std::rc::Rc;
use std::thread::current;
use std::time::Duration;

#[selvedge::test]
async fn a_test_that_may_move_runs_on_workers() {
    assert_eq!(spawn(async { 42 }).await.unwrap(), 42);
}

#[selvedge::test(workers = 2)]
async fn a_test_that_is_not_send_stays() -> Result<(), Box<dyn std::error::Error>> {
    let (count, here) = (Rc::new(Cell::new(0)), current().id());
    for _ in 0..100 {
        let one = spawn(async {
            yield_now().await;
            1
        });
        count.set(count.get() + one.await?);
        assert_eq!(current().id(), here);
    }
    assert_eq!(count.get(), 100);
    Ok(())
}

#[selvedge::test(local)]
#[should_panic(expected = "of the test")]
async fn a_panic_reaches_the_test() {
    yield_now().await;
    panic!("of the test");
}

#[selvedge::test(local)]
#[should_panic(expected = "called exit()")]
async fn a_runner_that_fails_fails_the_test() {
    selvedge::exit().await;
}

#[selvedge::test(seeds = 0..3)]
#[should_panic(expected = "waits at")]
async fn a_deadlock_in_a_simulated_world_fails_the_test() {
    MVar::<u8>::empty().take().await;
}

#[selvedge::test(runner = Runner::new().workers(1 + 1).name("loom"))]
async fn any_runner_will_do() -> ExitCode {
    ExitCode::SUCCESS
}

#[selvedge::test(seeds = 0..10)]
async fn a_simulated_day_is_short() -> std::io::Result<()> {
    let begin = Time::now();
    sleep(Duration::from_secs(86_400)).await;
    assert!(Time::now().since(begin) >= Duration::from_secs(86_400));
    Ok(())
}

#[selvedge::test(seeds = 0..1)]
#[should_panic(expected = "the test has failed")]
async fn an_error_in_a_simulated_world_fails_the_test() -> Result<(), &'static str> {
    Err("no success")
}

#[selvedge::test]
async fn what_the_attribute_writes_hides_no_name() {
    fn main() -> u8 {
        7
    }
    assert_eq!(main(), 7);
}

mod with_another_name {
    pub(super) mod loom {
        pub(crate) use selvedge::*;
    }

    #[loom::main(crate = loom, local)]
    async fn fails() -> Result<(), &'static str> {
        Err("told by its Debug")
    }

    #[loom::main(crate = loom, workers = 2)]
    async fn succeeds() {}

    #[loom::main(crate = loom, local)]
    async fn has_no_result() {
        loom::exit().await;
    }

    #[loom::main(crate = loom, workers = 1)]
    async fn says_how() -> std::process::ExitCode {
        7.into()
    }

    pub(super) fn codes() -> [std::process::ExitCode; 4] {
        [succeeds(), fails(), has_no_result(), says_how()]
    }
}

#[test]
fn the_process_ends_as_main_says() {
    let [succeeds, fails, has_no_result, says_how] = with_another_name::codes();
    assert_eq!(succeeds, ().report());
    assert_eq!(fails, ExitCode::FAILURE);
    assert_eq!(has_no_result, ExitCode::FAILURE);
    assert_eq!(says_how, ExitCode::from(7));
}
