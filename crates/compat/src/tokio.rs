//! tokio: its I/O traits for [`Compat`](crate::Compat), and [`within`], which lets a thread of ours
//! use what needs a tokio runtime.
//!
//! The feature `tokio` has the traits alone, and compiles no runtime. The feature `tokio-runtime`
//! has `within` besides.

mod traits;
#[cfg(feature = "tokio-runtime")]
mod within;

#[cfg(feature = "tokio-runtime")]
pub use within::{Within, within, within_runtime};
