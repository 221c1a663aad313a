//! `cargo xtask soak SECONDS` and `cargo xtask stress SECONDS`: what the ordinary tests leave out
//! because it takes its time.

use std::time::Duration;

use crate::command::{Invocation, Tally};
use crate::workspace;

/// Room for building, and for the last to end.
const BESIDES: Duration = Duration::from_secs(15 * 60);

/// The web server under everything that clients do.
pub(crate) const SOAK: Long = Long { package: "selvedge-httpd", test: "soak", variable: "SOAK_SECONDS" };
/// The runtime under everything that threads do.
pub(crate) const STRESS: Long = Long { package: "selvedge", test: "stress", variable: "STRESS_SECONDS" };

/// The profile of what is to be fast but is not measured.
pub(crate) const CHECKED: &str = "checked";

/// A test that runs for as long as it is told to by an environment variable.
#[derive(Debug)]
pub(crate) struct Long {
    package: &'static str,
    test: &'static str,
    variable: &'static str,
}

impl Long {
    /// How it is run.
    pub(crate) fn invocation(&self, seconds: u64) -> Invocation {
        let words = [
            "cargo",
            "test",
            "--profile",
            CHECKED,
            "--locked",
            "--package",
            self.package,
            "--test",
            self.test,
        ];
        let words = [&words[..], &["--", "--ignored", "--nocapture"]].concat();
        Invocation::new(Duration::from_secs(seconds) + BESIDES, &words)
            .env(self.variable, &seconds.to_string())
    }

    /// Runs it.
    ///
    /// # Errors
    /// When `seconds` is no number, and when memory or descriptors grow, or an answer is wrong.
    pub(crate) fn run(&self, seconds: &str) -> Result<(), String> {
        let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
        let invocation = self.invocation(seconds);
        println!("{}: {}", self.test, invocation.display());
        invocation.run(&workspace::root(), &mut Tally::default())
    }
}
