//! A system call of the program's own: asking the scheduler for a thread's share of the work.
//!
//! A job is asked for with `call(NextJob).await`. The scheduler below has the jobs; it answers each
//! request with one, and cancels the workers when there is none left.

use selvedge::{Cpu, Syscall, Trace, call, yield_now};
use std::collections::VecDeque;

/// The request of the next job.
struct NextJob {
    worker: &'static str,
}

impl Syscall for NextJob {
    type Reply = u32;
}

async fn worker(worker: &'static str) {
    loop {
        let job = call(NextJob { worker }).await;
        for _ in 0..job {
            yield_now().await;
        }
        println!("{worker} has done the job of {job}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut cpu = Cpu::new()?;
    let mut jobs = VecDeque::from([3, 1, 4, 1, 5]);
    let mut ready = VecDeque::from([cpu.thread(worker("Ada"))?, cpu.thread(worker("Grace"))?]);
    while let Some(thread) = ready.pop_front() {
        match thread.step(&mut cpu) {
            Trace::Yield(rest) => ready.push_back(rest),
            Trace::Call(node) => {
                let (NextJob { worker }, answer) = node.take().map_err(|other| other.to_string())?;
                match jobs.pop_front() {
                    Some(job) => ready.extend(answer.reply(job)),
                    // Dropping the answer, unused, cancels the thread.
                    None => println!("{worker} goes home"),
                }
            }
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    Ok(())
}
