//! What the protocol of `mail_lock.rs` is made of.
//!
//! `tests/loom` puts loom's in their place, to run the protocol in every order.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::sync::{Mutex, TryLockError};
