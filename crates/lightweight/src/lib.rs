//! Nine ways to make a thread, behind one interface.
#![forbid(unsafe_code)]

pub mod apps;
pub mod callcc;
pub mod channel;
pub mod cont;
pub mod dlcont;
pub mod equeue;
mod event_system;
pub mod implementations;
mod interface;
mod monad;
pub mod os;
pub mod promise;
pub mod selvedge;
pub mod stack;
pub mod sys;
mod system;
pub mod task;
pub mod tramp;
pub mod vm;

pub use crate::selvedge::{Selvedge, SelvedgeDirect};
pub use callcc::Callcc;
pub use cont::ContMonad;
pub use dlcont::Dlcont;
pub use equeue::Equeue;
pub use interface::{Async, Direct, Ended, Indirect};
pub use monad::Monad;
pub use promise::PromiseMonad;
pub use sys::Sys;
pub use system::Name;
pub use task::Tasks;
pub use tramp::Tramp;
pub use vm::Vm;
