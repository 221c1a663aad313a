//! The hashes by which the build log knows a command again.
//!
//! `BuildLog::hash` calls [`of_command`]. Each algorithm must give ninja's numbers bit by bit,
//! because otherwise every command runs again after a change between the two programs. The version
//! of the log selects the algorithm, because ninja changed it with version 7.

/// The hash of a command in a log of this version: MurmurHash64A up to 6, rapidhash from 7 on.
pub fn of_command(version: u32, command: &[u8]) -> u64 {
    if version >= 7 { rapid(command) } else { murmur(command) }
}

fn word64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word32(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

/// MurmurHash64A, with ninja's seed.
fn murmur(text: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xdeca_fbad_deca_fbad;
    let mut hash = SEED ^ (text.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word = (word ^ (word >> 47)).wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(FACTOR);
    hash ^ (hash >> 47)
}

/// The two halves of a product, low and high.
fn product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> 64) as u64)
}

fn folded(a: u64, b: u64) -> u64 {
    let (low, high) = product(a, b);
    low ^ high
}

/// rapidhash in its first version, with its own seed.
fn rapid(text: &[u8]) -> u64 {
    const SEED: u64 = 0xbdd8_9aa9_8270_4029;
    const S: [u64; 3] = [0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9, 0x4b33_a62e_d433_d4a3];
    let length = text.len();
    let mut seed = SEED ^ folded(SEED ^ S[0], S[1]) ^ length as u64;
    let (a, b) = match length {
        0 => (0, 0),
        1..=3 => {
            let byte = |at: usize| u64::from(text[at]);
            ((byte(0) << 56) | (byte(length / 2) << 32) | byte(length - 1), 0)
        }
        4..=16 => {
            let (last, inner) = (length - 4, if length < 8 { 0 } else { 4 });
            let pair = |first, second| (word32(text, first) << 32) | word32(text, second);
            (pair(0, last), pair(inner, last - inner))
        }
        _ => {
            let mut rest = text;
            if rest.len() > 48 {
                let mut lanes = [seed; 3];
                while rest.len() >= 48 {
                    for (lane, state) in lanes.iter_mut().enumerate() {
                        let at = lane * 16;
                        *state = folded(word64(rest, at) ^ S[lane], word64(rest, at + 8) ^ *state);
                    }
                    rest = &rest[48..];
                }
                seed = lanes[0] ^ lanes[1] ^ lanes[2];
            }
            if rest.len() > 16 {
                seed = folded(word64(rest, 0) ^ S[2], word64(rest, 8) ^ seed ^ S[1]);
            }
            if rest.len() > 32 {
                seed = folded(word64(rest, 16) ^ S[2], word64(rest, 24) ^ seed);
            }
            (word64(text, length - 16), word64(text, length - 8))
        }
    };
    let (a, b) = product(a ^ S[1], b ^ seed);
    folded(a ^ S[0] ^ length as u64, b ^ S[1])
}
