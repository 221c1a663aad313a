//! The rank and the order of the numbers at the beginnings of texts, behind the blanks that `sort`
//! skips. A text without a number is 0.
//!
//! The rank is that of the nearest `f64`. Two numbers with the same one are compared by their
//! digits, unless both are so short that they are the same number.

use selvedge_pipeline::Digits;
use std::cmp::Ordering;

/// The most digits for which two different numbers always have different nearest `f64`s, within the
/// range of `f64`.
const DIGITS: usize = 15;

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| b" \t\n".contains(byte)).count();
    &text[blanks..]
}

/// The number at the beginning of a text. A text without one is 0.
fn exact(text: &[u8]) -> Digits<'_> {
    Digits::at_beginning(without_blanks(text)).map_or(Digits::ZERO, |(_, number)| number)
}

/// Powers of ten that an `f64` holds exactly.
const POWERS: [f64; DIGITS + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The number at the beginning of a text that has at most [`DIGITS`] digits, zeros among them, and
/// no exponent. `None` if it is another one.
fn short(text: &[u8]) -> Option<f64> {
    let text = without_blanks(text);
    let negative = text.first() == Some(&b'-');
    let (mut whole, mut digits, mut point) = (0_u64, 0, None);
    for byte in &text[usize::from(negative)..] {
        match byte {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(byte - b'0');
                digits += 1;
                if digits > DIGITS {
                    return None;
                }
            }
            b'.' if point.is_none() => point = Some(digits),
            b'e' | b'E' | b'+' => return None,
            _ => break,
        }
    }
    // The two numbers are exact, so their quotient is the nearest `f64`.
    let size = whole as f64 / POWERS[digits - point.unwrap_or(digits)];
    // No digit is the number 0, and so is -0.
    Some(if negative && whole > 0 { -size } else { size })
}

fn nearest(text: &[u8]) -> f64 {
    short(text).unwrap_or_else(|| {
        let text = without_blanks(text);
        let number =
            Digits::at_beginning(text).and_then(|(length, _)| std::str::from_utf8(&text[..length]).ok());
        // The sum makes 0 of -0, because the two are equal.
        number.and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) + 0.0
    })
}

/// The rank of the number at the beginning of a text.
pub(super) fn rank(text: &[u8]) -> u64 {
    rank_of(nearest(text))
}

/// The rank of a number that is not -0.
pub(super) fn rank_of(number: f64) -> u64 {
    let bits = number.to_bits();
    // Negative numbers come first, the largest of them at the beginning.
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The order of the numbers at the beginnings of two texts with the same rank.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if short(a).is_some() && short(b).is_some() { Ordering::Equal } else { exact(a).compare(&exact(b)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_have_the_rank_that_their_digits_say() {
        let texts = [
            "",
            "-",
            "x",
            ".",
            "0",
            "-0",
            "00",
            "7",
            "-7",
            "7.5",
            "-7.50",
            ".5",
            "5.",
            " 12x",
            "1-2",
            "1..2",
            "0.1",
            "0.3",
            "123456789012345",
            "0.00000000000001",
            "99999999.9999999",
            "1e3",
            "+4",
            "-1e3",
            "1e",
        ];
        for a in texts {
            for b in texts {
                let slow = exact(a.as_bytes()).compare(&exact(b.as_bytes()));
                let fast = rank(a.as_bytes()).cmp(&rank(b.as_bytes()));
                let fast = fast.then_with(|| compare(a.as_bytes(), b.as_bytes()));
                assert_eq!(fast, slow, "{a:?} and {b:?}");
            }
        }
    }
}
