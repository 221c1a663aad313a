//! The examples, one idea in each file. Run one with `cargo run -p selvedge-examples --example
//! NAME`.
//!
//! | example | it shows |
//! |---|---|
//! | `hello` | two threads that take turns |
//! | `own_scheduler` | two schedulers of twenty lines each, one with priorities, that run the web server's own connection threads |
//! | `own_syscall` | a system call of the program's own, and the scheduler that answers it |
//! | `tcp_syscall` | the paper's TCP stack: `SYS_TCP`, and the two event loops that it adds to a scheduler |
//! | `cancel` | dropping a thread runs its destructors |
//! | `deadlock` | the report of a program in which no thread can go on |
//! | `exceptions` | throwing and catching across system calls |
//! | `ring` | ten thousand threads hand a number around |
//! | `echo` | a TCP echo server and a thousand clients |
//! | `foreign` | channels and combinators of the `futures` crate in our threads |
//! | `futures_io` | code for the traits of `futures-io` on our sockets |
//! | `hyper_server` | hyper's server and client, each connection a thread |
//! | `axum_app` | an axum application as it is, on our threads and sockets |
//! | `tokio_host` | an application of ours under hyper, on tokio's runtime |
//! | `rustls_echo` | TLS by rustls |
//! | `seeing` | a dump of all threads, counters, a timeline, and a watchdog |
//! | `workers` | one scheduler for each core |
//! | `scope` | threads that cannot outlive the scope they were spawned in, however it ends |
//! | `direct_style` | ordinary recursive code that blocks, as a thread on a stack of its own |
//!
//! # A system call of the program's own
//! The three steps of [LZ07 §4.2], as in `own_syscall`: a request type with its reply type, a node
//! of the trace that carries it, a scheduler that interprets the node. Nothing in the library
//! changes.
//! ```
//! use selvedge::{Cpu, Syscall, Trace, call};
//!
//! struct Ticket; // 1. the request
//! impl Syscall for Ticket {
//!     type Reply = u64; // and the reply
//! }
//!
//! let mut cpu = Cpu::new()?;
//! let mut ready = vec![cpu.thread(async {
//!     let first = call(Ticket).await;
//!     assert!(call(Ticket).await > first);
//! })?];
//! let mut next_ticket = 0;
//! while let Some(thread) = ready.pop() {
//!     if let Trace::Call(node) = thread.step(&mut cpu) { // 2. the node
//!         let (Ticket, answer) = node.take::<Ticket>().expect("there is no other call here");
//!         next_ticket += 1;
//!         ready.extend(answer.reply(next_ticket)); // 3. its interpretation
//!     }
//! }
//! assert_eq!(next_ticket, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc(test(attr(deny(warnings), allow(dead_code))))]
