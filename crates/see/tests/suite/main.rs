//! What is seen of threads, in one program, because linking is what takes long.

mod common;

mod environment;
mod seeing;
mod waits;
