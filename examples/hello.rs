//! Two threads that take turns.

use selvedge::{SchedulerError, spawn, yield_now};

async fn weave(name: &'static str) {
    for pick in 1..=3 {
        println!("{name} {pick}");
        yield_now().await;
    }
}

fn main() -> Result<(), SchedulerError> {
    selvedge::run(async {
        let warp = spawn(weave("warp"));
        let weft = spawn(weave("weft"));
        for thread in [warp, weft] {
            thread.await.expect("neither panics");
        }
    })
}
