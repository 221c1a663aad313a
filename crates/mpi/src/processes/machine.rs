//! [`this_machine`]: whether two processes are on one machine, so that they can share memory.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A number that two processes have in common if they are on one machine and see each other's
/// descriptors. 0 where that is not known.
pub(crate) fn this_machine() -> u64 {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let (Ok(boot), Ok(processes)) = (boot, fs::read_link("/proc/self/ns/pid")) else { return 0 };
    let mut hasher = DefaultHasher::new();
    (boot, processes).hash(&mut hasher);
    hasher.finish().max(1)
}
