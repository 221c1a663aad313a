//! `cargo xtask soak SECONDS`: the web server under everything that clients do, for a while.

use std::time::Duration;

use crate::command::{Invocation, Tally};
use crate::workspace;

/// Room for building the server and for the last connections to end.
const BESIDES: Duration = Duration::from_secs(15 * 60);

/// Runs the soak test of the web server, which the ordinary tests leave out.
///
/// # Errors
/// When `seconds` is no number, and when memory or descriptors grow, or a reply is wrong.
pub(crate) fn run(seconds: &str) -> Result<(), String> {
    let limit = seconds
        .parse()
        .map(Duration::from_secs)
        .map_err(|_| format!("{seconds:?} is no number of seconds"))?;
    let words = ["cargo", "test", "--release", "--package", "selvedge-httpd", "--test", "soak"];
    let words = [&words[..], &["--", "--ignored", "--nocapture"]].concat();
    let invocation = Invocation::new(limit + BESIDES, &words).env("SOAK_SECONDS", seconds);
    println!("soak: {}", invocation.display());
    invocation.run(&workspace::root(), &mut Tally::default())
}
