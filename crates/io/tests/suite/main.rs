//! What event loops, sockets, files, time and processes do, in one program, because linking is what
//! takes long. A test that changes or counts what belongs to its process is a program of its own.

#[path = "../common/mod.rs"]
mod common;

mod byte_streams;
mod combinators;
mod datagrams;
mod deadlines;
mod disk;
mod disk_several_workers;
mod file_position;
mod foreign_executor;
mod foreign_wakers;
mod given_up_starts;
mod left_behind;
mod long_steps;
mod migrating_threads;
mod os_thread_ends;
mod pipes;
mod polls_in_wake;
mod processes;
mod send_file;
mod shared_listener;
mod short_reads;
mod standard_streams;
mod streams;
mod talking_threads;
