//! What tests put between a program and the kernel.
//!
//! - [`Faults`] make system calls fail.

pub(crate) mod faults;

pub use crate::sys::Call;
pub use faults::{Fault, Faults};
