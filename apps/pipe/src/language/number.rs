//! [`Number`]: a number of a script, and [`Decimal`], a number in a text. Both are compared exactly.
//!
//! The parser makes a [`Number`], the printer shows it, and `test.rs` compares it with lines,
//! columns and numbers. `sort.rs` compares the [`Decimal`]s at the beginnings of texts. An `f64`
//! alone is not enough, because it holds no odd integer above 2^53, and no number of 309 digits.

use std::cmp::Ordering;
use std::fmt;

/// A number, as a script writes it: digits, and perhaps a sign, a point and an exponent.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// The digits, without those that change nothing.
    text: String,
    /// The nearest `f64`, which may be infinite.
    near: f64,
}

/// A number in decimal digits: `0.` and the digits, times ten to the power of `point`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal<'a> {
    negative: bool,
    /// Without zeros at the beginning, and without zeros at the end if there is no fraction.
    whole: &'a str,
    /// Without zeros at the end, and without zeros at the beginning if there is no whole.
    fraction: &'a str,
    point: i64,
}

/// Exponents beyond this one are taken for it.
const EXPONENT: i64 = i64::MAX / 4;

impl<'a> Decimal<'a> {
    /// 0.
    pub const ZERO: Decimal<'static> = Decimal { negative: false, whole: "", fraction: "", point: 0 };

    /// The number that a text is. `None` if there is anything but a sign, digits, one point and an
    /// exponent, or no digit.
    pub fn of(text: &'a str) -> Option<Decimal<'a>> {
        let (length, number) = Decimal::parsed(text)?;
        (length == text.len()).then_some(number)
    }

    /// The number at the beginning of a text, and its length. `None` if there is none.
    pub fn at_beginning(text: &'a [u8]) -> Option<(usize, Decimal<'a>)> {
        let ascii = text.iter().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
        let number = std::str::from_utf8(&text[..ascii]).ok()?;
        Decimal::parsed(number)
    }

    fn parsed(text: &'a str) -> Option<(usize, Decimal<'a>)> {
        let bytes = text.as_bytes();
        let digits =
            |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
        let whole_end = digits(sign);
        let (fraction_begin, mut end) = match bytes.get(whole_end) {
            Some(b'.') => (whole_end + 1, digits(whole_end + 1)),
            _ => (whole_end, whole_end),
        };
        let (whole, fraction) = (&text[sign..whole_end], &text[fraction_begin..end]);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = bytes.get(end) {
            let begin = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let last = digits(begin.min(bytes.len()));
            if last > begin {
                let size = text[begin..last].parse().unwrap_or(EXPONENT).min(EXPONENT);
                exponent = if bytes[begin - 1] == b'-' { -size } else { size };
                end = last;
            }
        }
        Some((end, Decimal::new(bytes[0] == b'-', whole, fraction, exponent)))
    }

    fn new(negative: bool, whole: &'a str, fraction: &'a str, exponent: i64) -> Decimal<'a> {
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let places = |text: &str| i64::try_from(text.len()).unwrap_or(EXPONENT);
        if !whole.is_empty() {
            let point = places(whole) + exponent;
            let whole = if fraction.is_empty() { whole.trim_end_matches('0') } else { whole };
            return Decimal { negative, whole, fraction, point };
        }
        let digits = fraction.trim_start_matches('0');
        if digits.is_empty() {
            return Decimal::ZERO;
        }
        Decimal { negative, whole, fraction: digits, point: exponent - places(fraction) + places(digits) }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Whether it is less than 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        i64::try_from(self.digits()).is_ok_and(|digits| self.point >= digits)
    }

    /// How many digits it has that change something.
    pub fn digits(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// The order of two numbers, however many digits they have.
    pub fn compare(&self, other: &Decimal<'_>) -> Ordering {
        let size = |number: &Decimal<'_>, other: &Decimal<'_>| match (number.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => number.point.cmp(&other.point).then_with(|| {
                let digits = number.whole.bytes().chain(number.fraction.bytes());
                digits.cmp(other.whole.bytes().chain(other.fraction.bytes()))
            }),
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl fmt::Display for Decimal<'_> {
    /// The shortest text that is this number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}{}", self.whole, self.fraction);
        let sign = if self.negative { "-" } else { "" };
        // Numbers with many zeros are written with an exponent.
        match usize::try_from(self.point) {
            _ if self.is_zero() => f.write_str("0"),
            Ok(point) if point >= digits.len() && point - digits.len() < 64 => {
                write!(f, "{sign}{digits}{}", "0".repeat(point - digits.len()))
            }
            Ok(point) if (1..digits.len()).contains(&point) => {
                write!(f, "{sign}{}.{}", &digits[..point], &digits[point..])
            }
            _ if (-64..=0).contains(&self.point) => {
                write!(f, "{sign}0.{}{digits}", "0".repeat(self.point.unsigned_abs() as usize))
            }
            _ => write!(f, "{sign}0.{digits}e{}", self.point),
        }
    }
}

impl Number {
    /// The number of a text. `None` also if it has an exponent that no number needs.
    ///
    /// # Examples
    /// ```
    /// use selvedge_pipe::language::number::Number;
    /// use std::cmp::Ordering;
    ///
    /// let number = Number::of("9007199254740993").unwrap();
    /// assert_eq!(number.compared_with("9007199254740992"), Some(Ordering::Less));
    /// assert_eq!(number.compared_with("9007199254740992e1"), Some(Ordering::Greater));
    /// assert_eq!(number.compared_with("inf"), None);
    /// assert_eq!(Number::of("-01.50").unwrap().to_string(), "-1.5");
    /// assert_eq!(Number::of("1e3"), Number::of("1000"));
    /// ```
    pub fn of(text: &str) -> Option<Number> {
        let text = Decimal::of(text).filter(|number| number.point.abs() < EXPONENT / 2)?.to_string();
        // The standard library reads each such text.
        let near = text.parse().ok()?;
        Some(Number { text, near })
    }

    /// How the number in `text` is compared with this one, exactly. `None` if `text` is no number.
    pub fn compared_with(&self, text: &str) -> Option<Ordering> {
        let own = Decimal::of(&self.text)?;
        Some(Decimal::of(text)?.compare(&own))
    }

    /// How an integer is compared with this number.
    pub fn compared_with_integer(&self, integer: u64) -> Ordering {
        match (integer as f64).partial_cmp(&self.near) {
            Some(unequal @ (Ordering::Less | Ordering::Greater)) => unequal,
            _ => self.compared_with(&integer.to_string()).unwrap_or(Ordering::Equal),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
