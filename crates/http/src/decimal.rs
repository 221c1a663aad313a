//! Numbers in decimal, written four digits at a time: for the fields of a head and for a log line.

/// The most digits that a `u64` has.
pub(crate) const DIGITS_MAX: usize = 20;

/// The two digits of each number below 100.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Writes `n` at the start of `out` and returns the number of its digits. The bytes of `out` behind
/// the digits may be written too.
///
/// # Panics
/// If `out` is shorter than [`DIGITS_MAX`] and the digits do not fit into it in groups of four.
#[inline]
pub(crate) fn put(n: u64, out: &mut [u8]) -> usize {
    if n >= 10_000 {
        return put_long(n, out);
    }
    let zeros = u32::from(n < 1000) + u32::from(n < 100) + u32::from(n < 10);
    // The first digit is the lowest byte, so the shift removes leading zeros.
    let digits = u32::from_le_bytes(four(n)) >> (8 * zeros);
    out[..4].copy_from_slice(&digits.to_le_bytes());
    4 - zeros as usize
}

#[cold]
fn put_long(n: u64, out: &mut [u8]) -> usize {
    let at = put(n / 10_000, out);
    out[at..at + 4].copy_from_slice(&four(n % 10_000));
    at + 4
}

/// The digits of `n`, which is below 10,000, with leading zeros.
#[inline]
pub(crate) fn four(n: u64) -> [u8; 4] {
    let n = n as u32;
    let ([a, b], [c, d]) = (PAIRS[(n / 100) as usize], PAIRS[(n % 100) as usize]);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(n: u64) -> String {
        let mut out = [b'?'; DIGITS_MAX];
        let len = put(n, &mut out);
        String::from_utf8(out[..len].to_vec()).unwrap()
    }

    #[test]
    fn every_number_of_digits() {
        let powers = (0..DIGITS_MAX as u32).map(|digits| 10u64.pow(digits));
        for n in powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX]) {
            assert_eq!(text(n), n.to_string());
        }
        assert!((0..20_000).all(|n| text(n) == n.to_string()));
    }

    proptest! {
        #[test]
        fn numbers_print_as_std_prints_them(n: u64) {
            prop_assert_eq!(text(n), n.to_string());
        }
    }
}
