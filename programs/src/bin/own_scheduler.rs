//! A scheduler of the program's own. Threads say how urgent they are by a system call of this
//! program, and the scheduler runs them in that order.
//!
//! # Prints
//! ```text
//! urgent: 1 2 3
//! usual: 1 2 3
//! idle: 1 2 3
//! ```

use selvedge::sync::Barrier;
use selvedge::{Cpu, EventLoop, Events, RunError, Syscall, Thread, Trace, call, fork, sleep, yield_now};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The system call: 0 is the most urgent.
struct SetRank(u32);

impl Syscall for SetRank {
    type Reply = ();
}

/// Runs the threads of a CPU until none of them can run.
fn by_rank(cpu: &mut Cpu, events: &mut EventLoop) -> Result<(), RunError> {
    let mut ranks: HashMap<u32, u32> = HashMap::new();
    let mut ready: BTreeMap<u32, VecDeque<Thread>> = BTreeMap::new();
    loop {
        while let Some(thread) = cpu.woken() {
            let rank = *ranks.get(&thread.id()).unwrap_or(&1);
            ready.entry(rank).or_default().push_back(thread);
        }
        let Some(thread) = ready.values_mut().find_map(VecDeque::pop_front) else {
            if events.armed() == 0 {
                return Ok(());
            }
            cpu.poll(events, true)?;
            continue;
        };
        let id = thread.id();
        let node = thread.step(cpu);
        match cpu.answer(node, |SetRank(rank)| _ = ranks.insert(id, rank)) {
            Trace::Yield(thread) => cpu.make_ready(thread),
            Trace::Fork { child, parent } => [child, parent].into_iter().for_each(|t| cpu.make_ready(t)),
            Trace::Blocked => {}
            Trace::Ret => drop(ranks.remove(&id)),
            Trace::Panic(panic) => panic.report(),
            request => events.submit(cpu, request)?,
        }
    }
}

async fn worker(name: &'static str, rank: u32, all: Arc<Barrier>) {
    call(SetRank(rank)).await;
    sleep(Duration::from_millis(5)).await;
    all.wait().await; // until all have said how urgent they are, and have slept
    let mut steps = Vec::new();
    for step in 1..=3 {
        steps.push(step.to_string());
        yield_now().await;
    }
    println!("{name}: {}", steps.join(" "));
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut cpu, mut events) = (Cpu::new()?, EventLoop::new()?);
    let mut main = cpu.spawn_local(async {
        let all = Arc::new(Barrier::new(3));
        for (name, rank) in [("idle", 2), ("usual", 1), ("urgent", 0)] {
            fork(worker(name, rank, all.clone())).await;
        }
    })?;
    by_rank(&mut cpu, &mut events)?;
    Ok(main.try_join().expect("a main that waits for nothing has ended")?)
}
