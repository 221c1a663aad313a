//! All interleavings of OS threads that become quiet, rouse one another and end. No deadlock is
//! reported while there is work to do, and a deadlock is reported if there is none.

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use loom::sync::{Arc, Notify};
use loom::thread;
use selvedge_core::internal::{Inbox, Ledger};

/// The process: its ledger, and the kernel's count of its OS threads.
struct Process {
    ledger: Ledger,
    os_threads: AtomicU32,
    /// Whether all work is done.
    is_done: AtomicBool,
}

impl Process {
    fn new(os_threads: u32) -> Arc<Process> {
        let ledger = Ledger::default();
        Arc::new(Process { ledger, os_threads: AtomicU32::new(os_threads), is_done: AtomicBool::new(false) })
    }

    /// Step D. A report is false while there is work to do.
    fn is_dead(&self) -> bool {
        let dead = self.ledger.are_all_quiet(|| Some(self.os_threads.load(SeqCst)));
        assert!(!dead || self.is_done.load(SeqCst), "reported, and there is something to do");
        dead
    }

    /// An OS thread ends. The kernel forgets it after its last instruction.
    fn end_of_os_thread(&self) {
        self.os_threads.fetch_sub(1, SeqCst);
    }
}

struct Quiet(Arc<Process>);

impl Quiet {
    fn new(process: &Arc<Process>) -> Quiet {
        process.ledger.begin();
        Quiet(process.clone())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.0.ledger.end();
    }
}

/// A CPU, and the place in which its OS thread sleeps.
struct Sleeper {
    inbox: Inbox<Quiet>,
    parked: Notify,
}

impl Sleeper {
    fn new() -> Arc<Sleeper> {
        Arc::new(Sleeper { inbox: Inbox::default(), parked: Notify::new() })
    }

    fn post(&self, key: u32) {
        if self.inbox.post(key) {
            self.parked.notify();
        }
    }

    fn call(&self) {
        if self.inbox.call() {
            self.parked.notify();
        }
    }

    /// One turn of the scheduler. True if it would report a deadlock.
    fn poll(&self, process: &Arc<Process>) -> bool {
        if !self.inbox.sleep() {
            return false;
        }
        self.inbox.declare(|| Quiet::new(process));
        let dead = process.is_dead();
        if !dead {
            self.parked.wait();
        }
        self.inbox.wake();
        dead
    }

    /// Runs until mail comes.
    fn until_mail(&self, process: &Arc<Process>) {
        while !self.inbox.has_mail() {
            self.poll(process);
        }
        assert!(!self.inbox.open().is_empty());
    }
}

/// An OS thread gives a CPU work, and then does what `last` says.
fn gives_work_and_then(last: fn(&Process), quiet_for_ever: &'static str) {
    loom::model(move || {
        let process = Process::new(2);
        let cpu = Sleeper::new();
        let other = {
            let (process, cpu) = (process.clone(), cpu.clone());
            thread::spawn(move || {
                cpu.post(7);
                last(&process);
            })
        };
        cpu.until_mail(&process);
        process.is_done.store(true, SeqCst);
        other.join().unwrap();
        assert!(cpu.poll(&process), "{quiet_for_ever}");
    });
}

#[test]
fn one_that_gives_work_and_ends_is_not_overlooked() {
    gives_work_and_then(Process::end_of_os_thread, "the CPU is alone, with nothing to do");
}

#[test]
fn one_that_gives_work_and_becomes_quiet_is_not_overlooked() {
    gives_work_and_then(|process| process.ledger.begin(), "the other OS thread is quiet for ever");
}

#[test]
fn the_last_to_become_quiet_has_the_deadlock_told() {
    loom::model(|| {
        let process = Process::new(2);
        process.is_done.store(true, SeqCst);
        let cpu = Sleeper::new();
        let other = {
            let (process, cpu) = (process.clone(), cpu.clone());
            thread::spawn(move || {
                process.ledger.begin();
                if cpu.inbox.is_asleep() && cpu.inbox.is_quiet() {
                    cpu.call();
                }
            })
        };
        // If the deadlock were not reported, the model would run for ever here.
        while !cpu.poll(&process) {}
        other.join().unwrap();
    });
}

#[test]
fn the_end_of_the_last_call_has_the_deadlock_told() {
    loom::model(|| {
        let process = Process::new(2);
        let cpu = Sleeper::new();
        // The CPU has given a call to the other OS thread.
        process.ledger.begin_call();
        let other = {
            let (process, cpu) = (process.clone(), cpu.clone());
            thread::spawn(move || {
                process.is_done.store(true, SeqCst);
                process.ledger.end_call();
                process.ledger.begin();
                if cpu.inbox.is_asleep() && cpu.inbox.is_quiet() {
                    cpu.call();
                }
            })
        };
        // If the deadlock were not reported, the model would run for ever here.
        while !cpu.poll(&process) {}
        other.join().unwrap();
    });
}

#[test]
fn of_two_cpus_of_a_group_that_fall_asleep_one_tells_the_deadlock() {
    loom::model(|| {
        let process = Process::new(2);
        process.is_done.store(true, SeqCst);
        let (here, there) = (Sleeper::new(), Sleeper::new());
        let fall_asleep = |mine: Arc<Sleeper>, others: Arc<Sleeper>| {
            let process = process.clone();
            move || {
                assert!(mine.inbox.sleep());
                mine.inbox.declare(|| Quiet::new(&process));
                others.inbox.is_asleep() && process.is_dead()
            }
        };
        let other = thread::spawn(fall_asleep(there.clone(), here.clone()));
        let told_here = fall_asleep(here.clone(), there.clone())();
        let told_there = other.join().unwrap();
        assert!(told_here || told_there);
        here.inbox.wake();
        there.inbox.wake();
    });
}

#[test]
fn two_cpus_that_wake_each_other_are_not_taken_for_dead() {
    loom::model(|| {
        let process = Process::new(2);
        let (here, there) = (Sleeper::new(), Sleeper::new());
        let other = {
            let (process, here, there) = (process.clone(), here.clone(), there.clone());
            thread::spawn(move || {
                there.until_mail(&process);
                process.is_done.store(true, SeqCst);
                here.post(2);
                process.ledger.begin();
            })
        };
        there.post(1);
        here.until_mail(&process);
        other.join().unwrap();
        assert!(here.poll(&process));
    });
}
