//! [`Number`]: a number of a script, which is compared exactly.
//!
//! The parser makes it, the printer shows it, and `test.rs` compares it with lines, columns and
//! numbers. An `f64` alone is not enough, because it holds no odd integer above 2^53.

use std::cmp::Ordering;
use std::fmt;

/// A number, as a script writes it: digits, and perhaps a sign and a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// The digits, without those that change nothing.
    text: String,
    /// The nearest `f64`.
    near: f64,
}

/// The parts of a number in decimal digits.
struct Decimal<'a> {
    negative: bool,
    /// Without zeros at the beginning.
    whole: &'a str,
    /// Without zeros at the end.
    fraction: &'a str,
}

impl Decimal<'_> {
    /// `None` if there is anything but a sign, digits and one point.
    fn of(text: &str) -> Option<Decimal<'_>> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Some(Decimal { negative: negative && !zero, whole, fraction })
    }

    fn compare(&self, other: &Decimal<'_>) -> Ordering {
        let size = |number: &Decimal<'_>, other: &Decimal<'_>| {
            let lengths = number.whole.len().cmp(&other.whole.len());
            lengths.then_with(|| (number.whole, number.fraction).cmp(&(other.whole, other.fraction)))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// The nearest `f64` of a text that is a number. `inf`, `nan` and numbers beyond all `f64` are
/// none.
fn near(text: &str) -> Option<f64> {
    // The sum makes 0 of -0, because the two are equal.
    text.parse().ok().filter(|near: &f64| near.is_finite()).map(|near| near + 0.0)
}

impl Number {
    /// The number of a text, without an exponent.
    ///
    /// # Examples
    /// ```
    /// use selvedge_pipe::language::number::Number;
    /// use std::cmp::Ordering;
    ///
    /// let number = Number::of("9007199254740993").unwrap();
    /// assert_eq!(number.compared_with("9007199254740992"), Some(Ordering::Less));
    /// assert_eq!(number.compared_with("1e3"), Some(Ordering::Less));
    /// assert_eq!(number.compared_with("inf"), None);
    /// assert_eq!(Number::of("-01.50").unwrap().to_string(), "-1.5");
    /// ```
    pub fn of(text: &str) -> Option<Number> {
        let near = near(text)?;
        let Decimal { negative, whole, fraction } = Decimal::of(text)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        let (sign, point) = (if negative { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
        Some(Number { text: format!("{sign}{whole}{point}{fraction}"), near })
    }

    /// How the number in `text` is compared with this one. `None` if `text` is no number.
    ///
    /// A number with an exponent is compared as an `f64`, all others exactly.
    pub fn compared_with(&self, text: &str) -> Option<Ordering> {
        Some(self.ordered(near(text)?, text))
    }

    /// How an integer is compared with this number.
    pub fn compared_with_integer(&self, integer: u64) -> Ordering {
        match (integer as f64).total_cmp(&self.near) {
            Ordering::Equal => self.ordered(self.near, &integer.to_string()),
            unequal => unequal,
        }
    }

    /// Two numbers with different nearest `f64` have the order of these. Of the others, the digits
    /// are compared.
    fn ordered(&self, near: f64, text: &str) -> Ordering {
        match near.partial_cmp(&self.near) {
            Some(Ordering::Equal) | None => match (Decimal::of(text), Decimal::of(&self.text)) {
                (Some(other), Some(own)) => other.compare(&own),
                _ => Ordering::Equal,
            },
            Some(unequal) => unequal,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
