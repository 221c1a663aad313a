//! The due entries of the calendar, for a scheduler that chooses their order: `Kernel` as
//! `Arrivals` (`scheduler/running.rs`).
//!
//! Only [`Explorer::check_world`](crate::Explorer::check_world) and the replay of its schedules use
//! it; in all other runs `epoll_wait` (`readiness.rs`) lets entries happen in the order of their
//! times. `lane` needs an arm for each kind of `Happening`: what arrives at one stream keeps its
//! order, everything else may overtake.

use super::*;
use crate::scheduler::Arrivals;

/// Entries of the same lane happen in the order of the calendar.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ArrivalLane {
    /// What arrives at a stream.
    Stream(Id),
    /// An entry that any other may overtake, by its number.
    Free(u64),
}

impl CalendarEntry {
    fn lane(&self) -> ArrivalLane {
        match self.what {
            Happening::Connected { to }
            | Happening::Refused { to, .. }
            | Happening::Segment { to, .. }
            | Happening::End { to }
            | Happening::Reset { to } => ArrivalLane::Stream(to),
            Happening::Knock { .. }
            | Happening::Room { .. }
            | Happening::Datagram { .. }
            | Happening::Unreachable { .. }
            | Happening::DatagramRoom { .. }
            | Happening::PipeRoom { .. } => ArrivalLane::Free(self.number),
        }
    }
}

impl Kernel {
    /// The numbers of the entries that can happen next: of each lane the first, if it is due.
    fn due(&self) -> Vec<u64> {
        let now = Time::now();
        let mut entries: Vec<&CalendarEntry> = self.calendar.iter().map(|Reverse(entry)| entry).collect();
        entries.retain(|entry| entry.at <= now);
        entries.sort_unstable();
        let mut lanes = BTreeSet::new();
        entries.retain(|entry| lanes.insert(entry.lane()));
        entries.iter().map(|entry| entry.number).collect()
    }
}

impl Arrivals for RefCell<Kernel> {
    fn due(&self) -> usize {
        self.borrow().due().len()
    }

    fn happen(&self, nth: usize) {
        let mut kernel = self.borrow_mut();
        let number = kernel.due()[nth];
        let mut entries = mem::take(&mut kernel.calendar).into_vec();
        let at = entries.iter().position(|Reverse(entry)| entry.number == number);
        let Reverse(entry) = entries.swap_remove(at.expect("it was due just now"));
        kernel.calendar = entries.into();
        kernel.happen(entry.what);
    }
}
