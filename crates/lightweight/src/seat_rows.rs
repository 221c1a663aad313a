//! The memory of the records of `mvar_seat.rs` and `fifo_seat.rs`: [`SeatRows`].
//!
//! `scheduler.rs` has one for each type. A reference count in each MVar would be as large as the
//! MVar. So a record lives as long as the process, and each `start` uses the records of the one
//! before.

use crate::seat::WaitSeat;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::AtomicPtr;

/// The records of one type on this OS thread.
pub(crate) struct SeatRows<C: 'static> {
    rows: RefCell<Vec<&'static [C]>>,
    used: Cell<usize>,
}

/// Records in a row.
const ROW: usize = if cfg!(miri) { 8 } else { 1024 };

/// The rows of all OS threads, so that a tool that looks for lost memory finds them.
static ALL_ROWS: Mutex<Vec<AtomicPtr<()>>> = Mutex::new(Vec::new());

impl<C: WaitSeat> SeatRows<C> {
    pub(crate) fn new() -> Self {
        SeatRows { rows: RefCell::new(Vec::new()), used: Cell::new(0) }
    }

    /// An empty record.
    pub(crate) fn make(&self) -> &'static C {
        let place = self.used.get();
        self.used.set(place + 1);
        if let Some(record) = self.at(place) {
            return record;
        }
        let row: Box<[C]> = (0..ROW).map(|_| C::new()).collect();
        let row: &'static [C] = Box::leak(row);
        ALL_ROWS
            .lock()
            .expect("no panic under this lock")
            .push(AtomicPtr::new(row.as_ptr().cast_mut().cast()));
        self.rows.borrow_mut().push(row);
        &row[0]
    }

    /// The record at a place.
    fn at(&self, place: usize) -> Option<&'static C> {
        let row = *self.rows.borrow().get(place / ROW)?;
        row.get(place % ROW)
    }
}

/// [`SeatRows`] of any type.
pub(crate) trait AnyRows: Any {
    /// [Clears](WaitSeat::clear) all records, which are free afterwards. Gives how many threads
    /// waited.
    fn clear(&self) -> usize;
}

impl<C: WaitSeat> AnyRows for SeatRows<C> {
    fn clear(&self) -> usize {
        // Destructors may call operations, so nothing is dropped within a borrow.
        let used = (0..self.used.take()).filter_map(|place| self.at(place));
        used.map(C::clear).sum()
    }
}
