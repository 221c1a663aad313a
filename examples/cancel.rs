//! Dropping a thread cancels it: the thread's destructors run, and no other code of it.

use selvedge::{Cpu, Trace, yield_now};

struct Lamp(&'static str);

impl Drop for Lamp {
    fn drop(&mut self) {
        println!("the lamp in the {} goes out", self.0);
    }
}

async fn work() {
    let _outer = Lamp("hall");
    async {
        let _inner = Lamp("cellar");
        loop {
            yield_now().await;
        }
    }
    .await
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut cpu = Cpu::new()?;
    let Trace::Yield(thread) = cpu.thread(work())?.step(&mut cpu) else { panic!("it yields first") };
    println!("it is in the middle of {}", thread.name());
    drop(thread);
    println!("it is gone");
    Ok(())
}
