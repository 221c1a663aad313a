//! [`Number`]: an exact number with a sign and a fraction, of any size, as an item of a pipeline.
//! [`Digits`]: such a number where it stands in a text.
//!
//! `boxed/kinds.rs` has `Number` as the kind of all numbers. `selvedge-pipe` reads, compares, adds
//! and sorts its numbers with the two types, so they are the only grammar of numbers in it.
//!
//! A number has one representation only: it is `Small` if it can be, with as few places as it
//! needs, and a `Large` has no zeros at the ends of its digits. So equality is that of the fields.

use std::cmp::Ordering;
use std::fmt;

/// An exact number: whole or with a fraction, of either sign, of any size.
///
/// # Complexity
/// A number of up to 18 digits, with up to 18 of them behind the point, lies in 16 bytes and is
/// compared and added in a few instructions. Any other is on the heap, and costs O(digits).
///
/// # Examples
/// ```
/// use selvedge::pipeline::{Number, fold, from_chunks, group_by, line, try_lift121};
///
/// let number = |line: &[u8]| str::from_utf8(line).ok().and_then(Number::of).ok_or("no number");
/// let add = |sum: &mut Number, next: &Number| *sum = sum.checked_add(next).expect("few digits");
/// let prices = from_chunks(["0.1\n0.2\n-1e3\n"]) >> group_by(line()) >> try_lift121(number);
/// let sum = (prices >> fold(Number::from(0), add)).try_run().unwrap();
/// assert_eq!(sum.to_string(), "-999.7");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    size: Size,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Size {
    /// `units`, divided by ten to the power of `places`.
    Small {
        units: i64,
        places: u8,
    },
    Large(Box<Large>),
}

impl Size {
    /// The sum of two that are small, if it is small.
    #[inline]
    fn small_sum(&self, other: &Size) -> Option<Size> {
        let (&Size::Small { units, places }, &Size::Small { units: others, places: other_places }) =
            (self, other)
        else {
            return None;
        };
        let mut most = places.max(other_places);
        let mut sum = if places == other_places {
            units.checked_add(others)?
        } else {
            let scaled = |units: i64, places| units.checked_mul(10_i64.pow(u32::from(most - places)));
            scaled(units, places)?.checked_add(scaled(others, other_places)?)?
        };
        while most > 0 && sum % 10 == 0 {
            sum /= 10;
            most -= 1;
        }
        // The least `i64` has no size that is an `i64`, so `Digits::small` does not make it.
        (sum != i64::MIN).then_some(Size::Small { units: sum, places: most })
    }
}

/// `0.` and the digits, times ten to the power of `point`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Large {
    negative: bool,
    digits: Box<str>,
    point: i64,
}

/// A number in a text: `0.` and the digits, times ten to the power of `point`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::Digits;
/// use std::cmp::Ordering;
///
/// let (length, number) = Digits::at_beginning(b"12e3 threads").unwrap();
/// assert_eq!(length, 4);
/// assert_eq!(number.compare(&Digits::of("12000.0").unwrap()), Ordering::Equal);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Digits<'a> {
    negative: bool,
    /// Without zeros at the beginning, and without zeros at the end if there is no fraction.
    whole: &'a str,
    /// Without zeros at the end, and without zeros at the beginning if there is no whole.
    fraction: &'a str,
    point: i64,
}

/// Exponents beyond this one are taken for it.
const EXPONENT: i64 = i64::MAX / 4;

/// The most places behind the point of a `Small`.
const PLACES: u8 = 18;

/// The most digits of a sum that reaches further than its terms.
const SUM_DIGITS: i64 = 1_000_000;

/// Numbers with more zeros at an end are shown with an exponent.
const ZEROS: i64 = 64;

impl<'a> Digits<'a> {
    /// 0.
    pub const ZERO: Digits<'static> = Digits { negative: false, whole: "", fraction: "", point: 0 };

    /// The number that a text is. `None` if there is anything but a sign, digits, one point and an
    /// exponent, or no digit.
    pub fn of(text: &'a str) -> Option<Digits<'a>> {
        let (length, number) = Digits::parsed(text)?;
        (length == text.len()).then_some(number)
    }

    /// The number at the beginning of a text, and its length. `None` if there is none.
    pub fn at_beginning(text: &'a [u8]) -> Option<(usize, Digits<'a>)> {
        let ascii = text.iter().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
        let number = std::str::from_utf8(&text[..ascii]).ok()?;
        Digits::parsed(number)
    }

    fn parsed(text: &'a str) -> Option<(usize, Digits<'a>)> {
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
        Some((end, Digits::new(bytes[0] == b'-', whole, fraction, exponent)))
    }

    fn new(negative: bool, whole: &'a str, fraction: &'a str, exponent: i64) -> Digits<'a> {
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let places = |text: &str| i64::try_from(text.len()).unwrap_or(EXPONENT);
        if !whole.is_empty() {
            let point = places(whole) + exponent;
            let whole = if fraction.is_empty() { whole.trim_end_matches('0') } else { whole };
            return Digits { negative, whole, fraction, point };
        }
        let digits = fraction.trim_start_matches('0');
        if digits.is_empty() {
            return Digits::ZERO;
        }
        Digits { negative, whole, fraction: digits, point: exponent - places(fraction) + places(digits) }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// How many digits there are.
    fn count(&self) -> i64 {
        (self.whole.len() + self.fraction.len()) as i64
    }

    fn bytes(&self) -> impl DoubleEndedIterator<Item = u8> + Clone {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    /// The number, with digits of its own. `None` if its exponent has 19 digits or more.
    pub fn number(&self) -> Option<Number> {
        if self.point.abs() >= EXPONENT / 2 {
            return None;
        }
        Some(Number { size: self.small().unwrap_or_else(|| self.large()) })
    }

    /// The number as a `Small`, if it is one.
    fn small(&self) -> Option<Size> {
        // How many places the last digit has behind the point.
        let places = self.count() - self.point;
        if self.count() > 19 || places > i64::from(PLACES) || self.point > 19 {
            return None;
        }
        let mut units = self
            .bytes()
            .try_fold(0_i64, |units, digit| units.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
        for _ in places..0 {
            units = units.checked_mul(10)?;
        }
        let units = if self.negative { -units } else { units };
        Some(Size::Small { units, places: places.max(0) as u8 })
    }

    #[cold]
    fn large(&self) -> Size {
        let digits = [self.whole, self.fraction].concat().into_boxed_str();
        Size::Large(Box::new(Large { negative: self.negative, digits, point: self.point }))
    }

    /// The order of the sizes, without signs.
    fn compare_size(&self, other: &Digits<'_>) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.point.cmp(&other.point).then_with(|| self.bytes().cmp(other.bytes())),
        }
    }

    /// The order of two numbers, however many digits they have.
    pub fn compare(&self, other: &Digits<'_>) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    /// The sum, digit by digit. `None` if there are more than [`SUM_DIGITS`].
    #[cold]
    fn plus(&self, other: &Digits<'_>) -> Option<Number> {
        // The sizes are added if the signs are the same. Otherwise the lesser is taken away.
        let lesser = self.compare_size(other).is_lt();
        let (most, least) = if lesser { (other, self) } else { (self, other) };
        let last = |number: &Digits<'_>| number.point - number.count();
        let lowest = last(most).min(last(least));
        let width = most.point.checked_sub(lowest).filter(|width| *width <= SUM_DIGITS)?;
        // The digits of the sum, the last one first, and one more for a carry.
        let mut sum = vec![0_i8; width as usize + 1];
        let place = |number: &Digits<'_>| (last(number) - lowest) as usize;
        for (at, digit) in most.bytes().rev().enumerate() {
            sum[place(most) + at] = (digit - b'0') as i8;
        }
        let sign = if most.negative == least.negative { 1 } else { -1 };
        for (at, digit) in least.bytes().rev().enumerate() {
            sum[place(least) + at] += sign * (digit - b'0') as i8;
        }
        let mut carry = 0;
        for digit in &mut sum {
            let whole = *digit + carry;
            carry = whole.div_euclid(10);
            *digit = whole.rem_euclid(10);
        }
        let text: String = sum.iter().rev().map(|digit| char::from(b'0' + *digit as u8)).collect();
        Digits::new(most.negative, &text, "", lowest).number()
    }
}

impl fmt::Display for Digits<'_> {
    /// The shortest text that is this number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let digits = [self.whole, self.fraction].concat();
        let sign = if self.negative { "-" } else { "" };
        let zeros = |count: i64| "0".repeat(count.unsigned_abs() as usize);
        match self.point {
            point if (self.count()..self.count() + ZEROS).contains(&point) => {
                write!(f, "{sign}{digits}{}", zeros(point - self.count()))
            }
            point if (1..self.count()).contains(&point) => {
                let (whole, fraction) = digits.split_at(point as usize);
                write!(f, "{sign}{whole}.{fraction}")
            }
            point if (-ZEROS..=0).contains(&point) => write!(f, "{sign}0.{}{digits}", zeros(point)),
            point => {
                let (first, others) = digits.split_at(1);
                let dot = if others.is_empty() { "" } else { "." };
                write!(f, "{sign}{first}{dot}{others}e{}", point - 1)
            }
        }
    }
}

/// The number of a text of up to 18 digits, perhaps with a minus before them. `None` if it is
/// another text.
#[inline]
fn short_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let size = digits
        .iter()
        .try_fold(0, |size: i64, byte| byte.is_ascii_digit().then(|| size * 10 + i64::from(byte - b'0')))?;
    Some(if negative { -size } else { size })
}

/// The digits of a `Small`: a sign, a point, and 20 others.
type Written = [u8; 22];

impl Number {
    /// The number of a text: decimal digits, perhaps with a sign, a point and an exponent. `None`
    /// if the text is another one, or the exponent has 19 digits or more.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::Number;
    ///
    /// assert_eq!(Number::of("-01.50").unwrap().to_string(), "-1.5");
    /// assert_eq!(Number::of("1e3"), Some(Number::from(1000)));
    /// assert!(Number::of("9007199254740993") > Number::of("9007199254740992.9"));
    /// assert_eq!(Number::of("inf"), None);
    /// ```
    #[inline]
    pub fn of(text: &str) -> Option<Number> {
        match short_integer(text) {
            Some(units) => Some(Number { size: Size::Small { units, places: 0 } }),
            None => Digits::of(text)?.number(),
        }
    }

    /// How the number that a text is is compared with this one. `None` if the text is no number.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::Number;
    /// use std::cmp::Ordering;
    ///
    /// let limit = Number::from(1000);
    /// assert_eq!(limit.order_of("999.9"), Some(Ordering::Less));
    /// assert_eq!(limit.order_of("1e99999999999999999999"), Some(Ordering::Greater));
    /// assert_eq!(limit.order_of("many"), None);
    /// ```
    pub fn order_of(&self, text: &str) -> Option<Ordering> {
        match (&self.size, short_integer(text)) {
            (Size::Small { units, places: 0 }, Some(other)) => Some(other.cmp(units)),
            _ => Some(self.compare_with(&Digits::of(text)?).reverse()),
        }
    }

    /// The sum of two numbers. `None` if it has more than a million digits.
    #[inline]
    pub fn checked_add(&self, other: &Number) -> Option<Number> {
        match self.size.small_sum(&other.size) {
            Some(size) => Some(Number { size }),
            None => self.sum_of_digits(other),
        }
    }

    /// Adds a number to this one. False, and nothing is added, if the sum has more than a million
    /// digits.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::Number;
    ///
    /// let mut sum = Number::from(40);
    /// assert!(sum.add(&Number::from(2)));
    /// assert_eq!(sum, Number::from(42));
    /// assert!(!sum.add(&Number::of("1e1000001").unwrap()));
    /// assert_eq!(sum, Number::from(42));
    /// ```
    #[inline]
    pub fn add(&mut self, other: &Number) -> bool {
        if let (Size::Small { units, places: 0 }, Size::Small { units: others, places: 0 }) =
            (&mut self.size, &other.size)
            && let Some(sum) = units.checked_add(*others)
            && sum != i64::MIN
        {
            *units = sum;
            return true;
        }
        let sum = self.checked_add(other);
        let is_sum = sum.is_some();
        sum.into_iter().for_each(|sum| *self = sum);
        is_sum
    }

    #[cold]
    fn sum_of_digits(&self, other: &Number) -> Option<Number> {
        self.with_digits(|one| {
            other.with_digits(|two| match (one.is_zero(), two.is_zero()) {
                (true, _) => Some(other.clone()),
                (_, true) => Some(self.clone()),
                _ => one.plus(two),
            })
        })
    }

    #[cold]
    fn order_of_digits(&self, other: &Number) -> Ordering {
        self.with_digits(|digits| other.compare_with(digits)).reverse()
    }

    /// Whether it is less than 0.
    pub fn is_negative(&self) -> bool {
        match &self.size {
            Size::Small { units, .. } => *units < 0,
            Size::Large(large) => large.negative,
        }
    }

    /// The number as an integer, if it is whole, more than the least `i64`, and at most the
    /// greatest.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        match self.size {
            Size::Small { units, places: 0 } => Some(units),
            _ => None,
        }
    }

    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        match &self.size {
            Size::Small { places, .. } => *places == 0,
            Size::Large(large) => large.point >= large.digits.len() as i64,
        }
    }

    /// The nearest `f64`, which may be infinite. Of two numbers, the lesser never has the greater
    /// one.
    pub fn nearest(&self) -> f64 {
        match self.size {
            // It is exact, so its quotient by a power of ten that is exact is the nearest.
            Size::Small { units, places } if places == 0 || units.unsigned_abs() < 1 << 53 => {
                units as f64 / 10_u64.pow(places.into()) as f64
            }
            _ => self.to_string().parse().expect("an f64 is written with such digits"),
        }
    }

    /// How the number is compared with one in a text.
    fn compare_with(&self, other: &Digits<'_>) -> Ordering {
        self.with_digits(|digits| digits.compare(other))
    }

    /// How many bytes it has on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.size {
            Size::Small { .. } => 0,
            Size::Large(large) => size_of::<Large>() + large.digits.len(),
        }
    }

    /// Writes the number to the end of `text`, as `Display` does.
    pub fn write(&self, text: &mut Vec<u8>) {
        match self.size {
            Size::Small { units, places } => {
                text.extend_from_slice(written(units, places, &mut Written::default()).as_bytes());
            }
            Size::Large(_) => text.extend_from_slice(self.to_string().as_bytes()),
        }
    }

    #[cold]
    fn of_integer(text: &str) -> Number {
        Number::of(text).expect("an integer is written as a number")
    }

    fn with_digits<R>(&self, f: impl FnOnce(&Digits<'_>) -> R) -> R {
        match &self.size {
            Size::Small { units, places } => {
                let mut text = Written::default();
                f(&Digits::of(written(*units, *places, &mut text)).expect("a number is written as one"))
            }
            Size::Large(large) => {
                let Large { negative, digits, point } = &**large;
                f(&Digits { negative: *negative, whole: digits, fraction: "", point: *point })
            }
        }
    }
}

/// The text of a `Small`.
fn written(units: i64, places: u8, text: &mut Written) -> &str {
    let mut begin = text.len();
    let mut put = |byte| {
        begin -= 1;
        text[begin] = byte;
    };
    let (mut size, mut place) = (units.unsigned_abs(), 0);
    // At least one digit stands before the point.
    while size > 0 || place <= places {
        put(b'0' + (size % 10) as u8);
        size /= 10;
        place += 1;
        if place == places {
            put(b'.');
        }
    }
    if units < 0 {
        put(b'-');
    }
    std::str::from_utf8(&text[begin..]).expect("the digits are ASCII")
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Size::Small { units, places } => f.write_str(written(units, places, &mut Written::default())),
            Size::Large(_) => self.with_digits(|digits| digits.fmt(f)),
        }
    }
}

impl Ord for Number {
    #[inline]
    fn cmp(&self, other: &Number) -> Ordering {
        match (&self.size, &other.size) {
            (Size::Small { units: a, places }, Size::Small { units: b, places: same }) if places == same => {
                a.cmp(b)
            }
            _ => self.order_of_digits(other),
        }
    }
}

impl PartialOrd for Number {
    #[inline]
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Number {
    #[inline]
    fn from(integer: i64) -> Number {
        // The least `i64` has no size that is an `i64`, so it is no `Small`.
        match integer {
            i64::MIN => Number::of_integer(&integer.to_string()),
            units => Number { size: Size::Small { units, places: 0 } },
        }
    }
}

impl From<u64> for Number {
    fn from(integer: u64) -> Number {
        i64::try_from(integer).map_or_else(|_| Number::of_integer(&integer.to_string()), Number::from)
    }
}

impl From<i32> for Number {
    fn from(integer: i32) -> Number {
        Number::from(i64::from(integer))
    }
}
