//! Versions, as ninja reads them: a number, a dot, a number, and anything behind it.
//!
//! `manifest/parser.rs` reads `ninja_required_version` with [`version`], `dyndep.rs` the version of
//! a dyndep file, and `log/build_log.rs` what `ninja --version` tells.

/// The first two numbers of a version. Text behind the digits of a number is left out, so
/// `1.0-extra` is `(1, 0)`. A number that is not there is 0.
pub(crate) fn version(text: &[u8]) -> (u32, u32) {
    let mut parts = text.split(|byte| *byte == b'.').map(number);
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// The number at the beginning of a text, behind blanks.
fn number(text: &[u8]) -> u32 {
    let digits = text.trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_number_is_left_out() {
        for (text, numbers) in [
            ("1.13", (1, 13)),
            ("1", (1, 0)),
            ("1.", (1, 0)),
            ("1.0-extra", (1, 0)),
            ("1-extra", (1, 0)),
            ("1.13.0.git.kitware", (1, 13)),
            (" 1.5x.7", (1, 5)),
            ("x", (0, 0)),
            ("", (0, 0)),
            ("99999999999.1", (u32::MAX, 1)),
        ] {
            assert_eq!(version(text.as_bytes()), numbers, "{text}");
        }
    }
}
