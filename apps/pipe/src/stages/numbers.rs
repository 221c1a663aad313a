//! From lines to numbers and back. `stage.rs` calls [`decimal_of`] for `decimals`, [`integer_of`]
//! for `integers`, and [`written_numbers`] where numbers become text.

use crate::regex::chomp;
use selvedge_pipeline::{Digits, Number, Transduce, Transducer, rewrite};

/// How many characters of a line an error has.
const SHOWN: usize = 60;

/// The number that a line is, with blanks around it.
///
/// # Errors
/// Why it is none.
pub fn decimal_of(line: &[u8]) -> Result<Number, String> {
    let text = std::str::from_utf8(line).map(str::trim).unwrap_or_default();
    Number::of(text).ok_or_else(|| match Digits::of(text) {
        None => format!("{} is no number", shown(line)),
        Some(_) => format!("{} has an exponent of more than 18 digits", shown(line)),
    })
}

/// As [`decimal_of`], for a line that is a whole number. It may be written in any way: `7`, `-7`,
/// `7.0`, `70e-1`.
///
/// # Errors
/// Why it is none.
pub fn integer_of(line: &[u8]) -> Result<Number, String> {
    let number = decimal_of(line)?;
    match number.is_whole() {
        true => Ok(number),
        false => Err(format!("{} is not whole; `decimals` takes numbers with a fraction", shown(line))),
    }
}

/// A line in quotes, or its beginning if it is long.
fn shown(line: &[u8]) -> String {
    // A character has four bytes at most.
    let line = chomp(line);
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * (SHOWN + 1))]);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}..", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Makes a line of each number.
pub fn written_numbers() -> Transducer<Number, [u8], impl Transduce<Number, [u8]> + Clone + Send> {
    rewrite(|number: &Number, line: &mut Vec<u8>| {
        number.write(line);
        line.push(b'\n');
    })
}
