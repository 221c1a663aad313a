//! A scheduler for the CPUs of a group. The tests of `scope` use this file too.

use selvedge_core::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// The simplest scheduler for a group: one queue under a lock, and workers that take from it until
/// they are told to stop.
#[derive(Clone, Default)]
struct Queue {
    ready: Arc<Mutex<VecDeque<SendThread>>>,
    stop: Arc<AtomicBool>,
}

impl Queue {
    fn work(&self, cpu: &mut Cpu) {
        while !self.stop.load(Ordering::Relaxed) {
            while let Some(thread) = cpu.woken() {
                self.offer(cpu, thread);
            }
            let next = self.ready.lock().unwrap().pop_front();
            match next {
                Some(thread) => self.step(cpu, thread.into_thread()),
                None => std::thread::yield_now(),
            }
        }
    }

    fn offer(&self, cpu: &mut Cpu, thread: Thread) {
        match thread.into_send() {
            Ok(thread) => self.ready.lock().unwrap().push_back(thread),
            Err(thread) => self.step(cpu, thread),
        }
    }

    fn step(&self, cpu: &mut Cpu, thread: Thread) {
        match thread.step(cpu) {
            Trace::Yield(thread) => self.offer(cpu, thread),
            Trace::Fork { child, parent } => {
                self.offer(cpu, child);
                self.offer(cpu, parent);
            }
            Trace::Blocked | Trace::Ret => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Runs `main` with `workers` CPUs until it has ended.
pub(crate) fn run<T: Send + 'static>(workers: usize, main: impl Future<Output = T> + Send + 'static) -> T {
    let (group, queue) = (Group::new(), Queue::default());
    let result = std::thread::scope(|scope| {
        let mut cpu = Cpu::new_in(&group).unwrap();
        let stop = queue.stop.clone();
        let main = cpu
            .spawn(async move {
                let result = main.await;
                stop.store(true, Ordering::Relaxed);
                result
            })
            .unwrap();
        // All CPUs are dropped together, when none of them runs a step any more.
        let together = Arc::new(Barrier::new(workers));
        for _ in 1..workers {
            let (group, queue, together) = (&group, &queue, together.clone());
            scope.spawn(move || {
                let mut cpu = Cpu::new_in(group).unwrap();
                queue.work(&mut cpu);
                together.wait();
            });
        }
        queue.work(&mut cpu);
        together.wait();
        main
    });
    queue.ready.lock().unwrap().clear();
    let mut result = result;
    result.try_join().expect("it has ended").expect("it was not cancelled")
}
