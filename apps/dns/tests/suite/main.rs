//! The server over real sockets, over simulated ones that fail as a seed says, and as a process.

mod common;
mod following;
mod guide;
mod hostile;
mod iterating;
mod limits;
mod over_tls;
mod process;
mod resolving;
mod signed_internet;
mod sockets;
mod transferring;
mod validating;
mod zone_files;
