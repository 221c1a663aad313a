//! `decimal`: a transducer that yields the decimal digits of each number as a list of bytes. Users
//! call it, and the figures measure it as a stage.
//!
//! `Decimal` keeps the digits of the last number. If the next number is one more, the stage counts
//! in these digits and does not divide. So `digits` must always show `shown`. [Pipes, Pipeline
//! examples] `toString`.

use crate::item::{Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};

/// The stage of [`decimal`].
#[derive(Debug, Clone)]
struct Decimal {
    /// The number that `digits` shows.
    shown: u64,
    digits: Vec<u8>,
}

/// Yields the decimal digits of each number.
///
/// # Complexity
/// O(digits) for a number. A number that follows the one before it costs less: the stage counts in
/// the digits that it has.
///
/// # Paper
/// [Pipes, Pipeline examples] `toString`, for numbers.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{append, concatenate, decimal, from_iter};
///
/// let text = from_iter([8, 9, 10, 7]) >> decimal() >> append(b" ") >> concatenate();
/// assert_eq!(text.collect(), b"8 9 10 7 ");
/// ```
#[doc(alias = "toString")]
pub fn decimal() -> Transducer<u64, [u8], impl Transduce<u64, [u8]> + Clone> {
    Transducer::new(Decimal { shown: 0, digits: vec![b'0'] })
}

/// Writes the digits of a number to the end of `list`.
fn write_digits(mut number: u64, list: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    list.extend_from_slice(&digits[begin..]);
}

impl Decimal {
    /// Counts one up.
    fn count(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.digits.insert(0, b'1');
    }
}

impl Transduce<u64, [u8]> for Decimal {
    #[inline]
    fn put<S: Sink<[u8]>>(&mut self, item: &u64, out: &mut S) -> Flow {
        if self.shown.checked_add(1) == Some(*item) {
            self.count();
        } else {
            self.digits.clear();
            write_digits(*item, &mut self.digits);
        }
        self.shown = *item;
        out.put(&self.digits)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}
