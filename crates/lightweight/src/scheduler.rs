//! The scheduler of `selvedge.rs`: [`ThreadScheduler`]. It has the ready threads, the memory of
//! threads and of MVars, and the loop that steps one thread after another.
//!
//! # The order
//! A thread that is woken or created goes behind the ready threads. The scheduler has the queue for
//! the first, and `core` has one for the second: what a thread creates in a step comes to the
//! scheduler afterwards ([`adopt`](ThreadScheduler::adopt)).

use crate::RunEnd;
use crate::seat::WaitSeat;
use crate::seat_rows::{AnyRows, SeatRows};
use crate::system::Name;
use ::selvedge::{Cpu, RunQueue, Thread, Trace, detach_local};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::take;
use std::rc::Rc;

thread_local! {
    pub(crate) static SYSTEM: ThreadScheduler = const { ThreadScheduler::new() };
}

/// The threads of one OS thread, and the MVars that they share.
pub(crate) struct ThreadScheduler {
    ready: RefCell<RunQueue>,
    /// The memory of the threads. It stays for the next `start`. Within one, `start` has it.
    cpu: RefCell<Option<Cpu>>,
    /// For each type, the records of MVars and Fifos.
    records: RefCell<Vec<Rc<dyn AnyRows>>>,
    /// The records that have names. The place of a record here is its name.
    names: RefCell<Vec<&'static dyn Any>>,
    /// Where the thread waits that ends its step.
    waits: Cell<Option<&'static dyn WaitSeat>>,
    /// The threads that the running one has created in this step. The CPU has them.
    born: Cell<usize>,
    /// The threads that it has woken after that, with the number that was born before.
    late: RefCell<Vec<(usize, Thread)>>,
    run: Cell<u32>,
    phase: Cell<StartPhase>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StartPhase {
    Before,
    Running,
    Stopped,
}

impl ThreadScheduler {
    const fn new() -> Self {
        ThreadScheduler {
            ready: RefCell::new(RunQueue::new()),
            cpu: RefCell::new(None),
            records: RefCell::new(Vec::new()),
            names: RefCell::new(Vec::new()),
            waits: Cell::new(None),
            born: Cell::new(0),
            late: RefCell::new(Vec::new()),
            run: Cell::new(0),
            phase: Cell::new(StartPhase::Before),
        }
    }

    pub(crate) fn spawn(&self, thread: impl Future<Output = ()> + 'static) {
        if self.phase.get() != StartPhase::Before {
            self.born.set(self.born.get() + 1);
            return detach_local(thread);
        }
        let mut cpu = self.cpu.borrow_mut();
        let cpu = cpu.get_or_insert_with(|| Cpu::new().expect("there is memory for threads"));
        let thread = cpu.thread(thread).expect("there is memory for another thread");
        self.ready.borrow_mut().push(thread);
    }

    /// The scheduler.
    pub(crate) fn start(&self) -> RunEnd {
        assert!(self.phase.get() == StartPhase::Before, "start was called by a thread");
        self.phase.set(StartPhase::Running);
        let cpu = self.cpu.take();
        let mut cpu = cpu.unwrap_or_else(|| Cpu::new().expect("there is memory for threads"));
        let mut panicked = 0;
        while let Some(thread) = self.next() {
            match thread.step(&mut cpu) {
                Trace::Yield(thread) => self.stopped(thread),
                Trace::Panic(panic) => {
                    panic.report();
                    panicked += 1;
                }
                // It has ended. Threads of these programs make no other system call.
                _ => {}
            }
            if self.born.get() > 0 {
                self.adopt(&mut cpu);
            }
        }
        let stopped = self.phase.replace(StartPhase::Before) == StartPhase::Stopped;
        self.run.set(self.run.get().wrapping_add(1));
        // The CPU lives on, because it would look at all of its memory when it is dropped.
        self.cpu.replace(Some(cpu));
        // Destructors may call operations, so nothing is dropped within a borrow.
        drop(self.ready.take());
        self.names.borrow_mut().clear();
        let records = self.records.borrow().clone();
        let blocked = records.iter().map(|rows| rows.clear()).sum();
        RunEnd { blocked, panicked, stopped }
    }

    fn next(&self) -> Option<Thread> {
        if self.phase.get() == StartPhase::Stopped { None } else { self.ready.borrow_mut().pop() }
    }

    /// Keeps a thread that has ended its step: in the record that it waits for, or in the queue.
    fn stopped(&self, thread: Thread) {
        match self.waits.take() {
            None => self.ready.borrow_mut().push(thread),
            Some(seat) => seat.sit(thread),
        }
    }

    /// Makes a thread ready that waited.
    #[inline(always)]
    pub(crate) fn wake(&self, thread: Thread) {
        match self.born.get() {
            0 => self.ready.borrow_mut().push(thread),
            born => self.wake_late(born, thread),
        }
    }

    #[cold]
    fn wake_late(&self, born: usize, thread: Thread) {
        self.late.borrow_mut().push((born, thread));
    }

    /// Takes the threads that were created in a step, and the threads that were woken in between.
    #[cold]
    fn adopt(&self, cpu: &mut Cpu) {
        let (born, late) = (self.born.take(), take(&mut *self.late.borrow_mut()));
        let mut ready = self.ready.borrow_mut();
        let mut taken = 0;
        for (before, woken) in late {
            ready.extend((taken..before).filter_map(|_| cpu.woken()));
            taken = before;
            ready.push(woken);
        }
        ready.extend((taken..born).filter_map(|_| cpu.woken()));
    }

    /// # Panics
    /// If no thread calls.
    pub(crate) fn insist(&self, operation: &str) {
        let runs = self.phase.get() != StartPhase::Before;
        assert!(runs, "{operation} is for threads: the code that calls start is none");
    }

    /// The running thread waits in this record when its step ends.
    pub(crate) fn wait_in(&self, seat: &'static dyn WaitSeat) {
        self.insist("an operation that blocks");
        self.waits.set(Some(seat));
    }

    /// Lends the rows for records of a type.
    #[inline]
    fn with_rows<C: WaitSeat, A>(&self, with: impl FnOnce(&SeatRows<C>) -> A) -> A {
        fn of_type<C: WaitSeat>(rows: &Rc<dyn AnyRows>) -> Option<&SeatRows<C>> {
            (&**rows as &dyn Any).downcast_ref()
        }
        let records = self.records.borrow();
        if let Some(rows) = records.iter().find_map(of_type) {
            return with(rows);
        }
        drop(records);
        let rows = Rc::new(SeatRows::new());
        self.records.borrow_mut().push(rows.clone());
        with(&rows)
    }

    /// A fresh record.
    pub(crate) fn make<C: WaitSeat>(&self) -> &'static C {
        self.with_rows(SeatRows::make)
    }

    /// Ends all threads. The running one ends when its step does.
    ///
    /// # Panics
    /// If no thread calls.
    pub(crate) fn stop(&self) {
        self.insist("stop");
        self.phase.set(StartPhase::Stopped);
    }

    /// A fresh record. A name may be sent, which a reference to a record may not.
    pub(crate) fn make_named<C: WaitSeat>(&self) -> Name<C> {
        let record: &'static C = self.make();
        let mut names = self.names.borrow_mut();
        names.push(record);
        Name::new(names.len() - 1, self.run.get())
    }

    /// The record of a name.
    #[inline(always)]
    pub(crate) fn named<C: WaitSeat>(&self, name: Name<C>) -> &'static C {
        let place = name.place(self.run.get());
        let record = self.names.borrow().get(place).and_then(|record| record.downcast_ref());
        record.expect("this MVar belongs to another system")
    }
}
