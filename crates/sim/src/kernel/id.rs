//! [`Id`], the number of an object of the simulated kernel.

/// The number of an object, for which descriptors stand. A number is never used again, so a
/// calendar entry for an object that is gone has no effect.
pub(super) type Id = u32;
