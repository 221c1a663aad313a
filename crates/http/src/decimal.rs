//! Numbers in decimal, written three digits at a time: for the fields of a head (`response.rs`,
//! `status.rs`) and for a log line (`log.rs`). `put` may write bytes behind the digits, so its
//! callers keep room there.

/// The most digits that a `u64` has.
pub(crate) const DIGITS_MAX: usize = 20;

/// The three digits of each number below 1000, and behind them how many of them are leading zeros.
static TRIPLES: [[u8; 4]; 1000] = {
    let mut triples = [[0; 4]; 1000];
    let mut n = 0;
    while n < 1000 {
        let (hundreds, tens, ones) = ((n / 100) as u8, (n / 10 % 10) as u8, (n % 10) as u8);
        let zeros = (n < 100) as u8 + (n < 10) as u8;
        triples[n] = [b'0' + hundreds, b'0' + tens, b'0' + ones, zeros];
        n += 1;
    }
    triples
};

/// Writes `n` at the start of `out` and returns the number of its digits. The bytes of `out` behind
/// the digits may be written too.
///
/// # Panics
/// If `out` is shorter than [`DIGITS_MAX`] and the digits do not fit into it with a byte behind
/// them.
#[inline]
pub(crate) fn put(n: u64, out: &mut [u8]) -> usize {
    if n >= 1000 {
        return put_long(n, out);
    }
    let [.., zeros] = TRIPLES[n as usize];
    // The first digit is the lowest byte, so the shift removes leading zeros.
    let digits = u32::from_le_bytes(TRIPLES[n as usize]) >> (8 * (zeros & 3));
    out[..4].copy_from_slice(&digits.to_le_bytes());
    usize::from(3 - (zeros & 3))
}

#[cold]
fn put_long(n: u64, out: &mut [u8]) -> usize {
    let at = put(n / 1000, out);
    out[at..at + 3].copy_from_slice(&three((n % 1000) as u16));
    at + 3
}

/// The digits of `n`, which is below 1000, with leading zeros.
#[inline]
pub(crate) fn three(n: u16) -> [u8; 3] {
    let [digits @ .., _] = TRIPLES[usize::from(n)];
    digits
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
