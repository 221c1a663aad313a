//! Selvedge in a shared library.
//!
//! The test in `tests/images.rs` links it. Then `core`, with the anchor from which threads count
//! the distance of their vtables, lies in this library, and the vtables of the test's own futures
//! lie in the test's executable, more than 2 GiB away.

pub use selvedge;
