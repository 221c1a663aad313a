//! The server over real sockets, over simulated ones that fail as a seed says, and as a process.

mod common;
mod guide;
mod hostile;
mod iterating;
mod limits;
mod process;
mod resolving;
mod sockets;
mod zone_files;
