//! What other crates of this house use, and programs do not: it may change in any version.
//!
//! `sync`, `scope`, `sched`, `direct`, `io`, `lazy`, `stm`, `cnc` and `mpi` name these items, and
//! so do the loom tests of this crate.

pub use crate::alarm::SleepHandle;
pub use crate::blocking::{insist, run_blocking};
pub use crate::cpu::ask::is_lent_here;
pub use crate::cpu::inner::running_cpu;
pub use crate::freed::{FreedList, ListHead};
pub use crate::huge_pages::{HUGE_PAGE, advise_huge_pages, prepare_pages};
pub use crate::inbox::Inbox;
pub use crate::indivisible::{indivisible, is_indivisible};
pub use crate::join_state::{JoinState, Joiner};
pub use crate::outlet::{Inlet, Ticket, outlet};
pub use crate::parker::Parker;
pub use crate::per_process::PerProcess;
pub use crate::quiet::{CallUnderWay, Ledger};
pub use crate::quietly::quietly;
pub use crate::reply_cell::ReplyCell;
pub use crate::state::{Woken, Word, park as park_state, take_notification, wake as wake_state};
pub use crate::task_context::{
    CancelPayload, TaskContext, exchange_frame, exchange_stack, exchange_task_context, task_context,
    this_stack,
};
