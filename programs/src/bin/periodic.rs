//! A loop that takes a turn every five milliseconds, until a signal asks the program to end. The
//! program sends that signal to itself.
//!
//! # Prints
//! ```text
//! at least 3 turns, then SIGTERM; goodbye
//! ```
//!
//! # CPU time
//! 150 ms.

use selvedge::process::Command;
use selvedge::scope::select;
use selvedge::signal::{Signal, signals};
use selvedge::spawn;
use selvedge::time::interval;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (mut asked, mut ticks) =
            (signals(&[Signal::TERM, Signal::INT])?, interval(Duration::from_millis(5)));
        let mut turns = 0;
        let signal = loop {
            select! {
                signal = asked.next() => break signal?,
                _ = ticks.tick() => turns += 1,
            }
            if turns == 3 {
                let own = std::process::id().to_string();
                drop(spawn(async move { Command::new("kill").arg(own).status().await }));
            }
        };
        println!("at least {} turns, then {signal}; goodbye", turns.min(3));
        Ok(())
    })
}
