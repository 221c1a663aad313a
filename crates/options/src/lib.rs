//! What the command lines of the programs have in common: [`value`], [`number`] and [`seconds`]
//! read the value of an option from `lexopt`, and [`UsageError`] is a command line that is wrong.

// # For readers of the source
//
// Everything is in this file. The help texts, and what a program takes, are in the program's
// `options.rs`.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A command line that is wrong, in words for the user.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UsageError {
    /// A word that is no option, or an option without its value, as `lexopt` says it.
    Word(String),
    /// A value that its option does not take.
    Value {
        /// The option, such as `--clients`.
        option: String,
        /// The value.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Words that do not go together, or of which one is missing.
    Together(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageError::Word(message) | UsageError::Together(message) => f.write_str(message),
            UsageError::Value { option, text, why } => write!(f, "{option} {text:?}: {why}"),
        }
    }
}

impl std::error::Error for UsageError {}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> UsageError {
        UsageError::Word(error.to_string())
    }
}

impl UsageError {
    /// The words that `message` is about do not go together.
    pub fn together(message: impl Into<String>) -> UsageError {
        UsageError::Together(message.into())
    }
}

/// The longest time that an option may give: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// The value of the option called `option`, as `read` reads it.
///
/// # Errors
/// If there is no value, or `read` says what is wrong with it.
pub fn value<T, E: fmt::Display>(
    parser: &mut lexopt::Parser,
    option: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, UsageError> {
    let text = parser.value()?.to_string_lossy().into_owned();
    read(&text).map_err(|why| UsageError::Value { option: option.to_owned(), text, why: why.to_string() })
}

/// The value of the option called `option`: a whole number in `range`.
///
/// # Errors
/// If there is no value, or none that is such a number.
pub fn number<N>(parser: &mut lexopt::Parser, option: &str, range: RangeInclusive<N>) -> Result<N, UsageError>
where
    N: FromStr + PartialOrd + fmt::Display,
{
    value(parser, option, |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("not a number from {} to {}", range.start(), range.end()))
    })
}

/// The value of the option called `option`: a number of seconds up to a day, also a fraction.
///
/// # Errors
/// If there is no value, or none that is such a number.
pub fn seconds(parser: &mut lexopt::Parser, option: &str) -> Result<Duration, UsageError> {
    value(parser, option, |text| match text.parse::<f64>() {
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds from 0 to 86400"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(word: &str) -> lexopt::Parser {
        let mut parser = lexopt::Parser::from_args(["--clients", word]);
        assert_eq!(parser.next().unwrap(), Some(lexopt::Arg::Long("clients")));
        parser
    }

    #[test]
    fn numbers_lie_in_their_range() {
        let read = |word| number(&mut given(word), "--clients", 1..=10_u32);
        assert_eq!((read("1"), read("10")), (Ok(1), Ok(10)));
        for wrong in ["0", "11", "-1", "x", ""] {
            let error = read(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("--clients {wrong:?}: not a number from 1 to 10"));
        }
    }

    #[test]
    fn times_end_after_a_day() {
        let read = |word| seconds(&mut given(word), "--clients");
        assert_eq!(read("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(read("86400"), Ok(Duration::from_secs(86_400)));
        for wrong in ["-1", "nan", "1e9", "inf", "a"] {
            assert!(read(wrong).unwrap_err().to_string().contains("seconds from 0 to 86400"), "{wrong}");
        }
    }

    #[test]
    fn a_value_may_be_missing() {
        let mut parser = lexopt::Parser::from_args(["--clients"]);
        parser.next().unwrap();
        let error = seconds(&mut parser, "--clients").unwrap_err();
        assert!(matches!(&error, UsageError::Word(message) if message.contains("--clients")), "{error}");
    }
}
