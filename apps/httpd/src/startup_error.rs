//! [`StartupError`]: why the server does not run. The command line, the configuration and
//! everything that a start needs give it, and `main.rs` shows it.

use selvedge_options::UsageError;

/// What follows a word of the command line that is no option.
const WHERE_HELP_IS: &str = "; --help tells what can be said";

/// Why the server does not run: a line for the user, and the exit status. 2 is a mistake in the
/// command line or the configuration, and 1 is all else.
#[derive(Debug)]
pub(crate) struct StartupError {
    pub(crate) message: String,
    pub(crate) status: u8,
}

impl StartupError {
    /// An error that is no mistake in the command line or the configuration.
    pub(crate) fn other(message: impl ToString) -> StartupError {
        StartupError { message: message.to_string(), status: 1 }
    }

    /// The function that puts the name of an option in front of an error.
    pub(crate) fn naming(option: &str) -> impl FnOnce(std::io::Error) -> StartupError {
        move |error| StartupError::other(format!("{option}: {error}"))
    }
}

impl From<lexopt::Error> for StartupError {
    fn from(error: lexopt::Error) -> StartupError {
        StartupError { message: format!("{error}{WHERE_HELP_IS}"), status: 2 }
    }
}

impl From<UsageError> for StartupError {
    fn from(error: UsageError) -> StartupError {
        let help = if matches!(error, UsageError::Word(_)) { WHERE_HELP_IS } else { "" };
        StartupError { message: format!("{error}{help}"), status: 2 }
    }
}

impl From<std::io::Error> for StartupError {
    fn from(error: std::io::Error) -> StartupError {
        StartupError::other(error)
    }
}
