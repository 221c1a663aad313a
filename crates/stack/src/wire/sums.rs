//! [`words_sum`]: the sum from which the checksums of IP, TCP and UDP are made (RFC 1071).

/// The sum of the words of some bytes and of `more`, an odd byte as the upper half of a word. Each
/// carry is added at the lower end.
pub(super) fn words_sum(bytes: &[u8], more: u32) -> u16 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let mut sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum += u64::from(more) + last.first().map_or(0, |byte| u64::from(*byte) << 8);
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}
