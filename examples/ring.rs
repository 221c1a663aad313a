//! Ten thousand threads hand a number around a ring of MVars, each adding one.

use selvedge::{MVar, RunError, Thread, fork_local};
use std::rc::Rc;
use std::time::Instant;

const THREADS: usize = 10_000;
const LAPS: usize = 20;

async fn pass_on(from: Rc<MVar<usize, selvedge::Local>>, to: Rc<MVar<usize, selvedge::Local>>) {
    for _ in 0..LAPS {
        let n = from.take().await;
        to.put(n + 1).await;
    }
}

fn size_of_thread<F>(
    _: impl Fn(Rc<MVar<usize, selvedge::Local>>, Rc<MVar<usize, selvedge::Local>>) -> F,
) -> usize {
    Thread::size_of::<F>()
}

fn main() -> Result<(), RunError> {
    let start = Instant::now();
    let sum = selvedge::run_local(async {
        let vars: Vec<_> = (0..THREADS).map(|_| Rc::new(MVar::empty_local())).collect();
        for i in 1..THREADS {
            fork_local(pass_on(vars[i].clone(), vars[(i + 1) % THREADS].clone())).await;
        }
        for lap in 0..LAPS {
            vars[1].put(lap * (THREADS - 1)).await;
            assert_eq!(vars[0].take().await, (lap + 1) * (THREADS - 1));
        }
        LAPS * THREADS
    })?;
    println!(
        "{sum} hand-overs between {THREADS} threads of {} bytes in {:?}",
        size_of_thread(pass_on),
        start.elapsed()
    );
    Ok(())
}
