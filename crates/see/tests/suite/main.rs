//! What is seen of threads, in one program, because linking is what takes long.

mod common;

mod environment;
mod graphs;
mod panics;
mod seeing;
mod waits;
