//! Stacks that threads are switched between, and unwound, in one program.

mod common;

mod borrowed_wakers;
mod processes;
mod switches;
mod threads;
