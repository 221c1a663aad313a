//! Two schedulers of one's own, first in first out and with priorities.

fn main() {}
