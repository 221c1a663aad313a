//! Byte strings that are stored once and named by a number.
//!
//! A [`Graph`](crate::graph::Graph) has one interner for paths and one for names. The numbers go up
//! from 0, and a string keeps its number. The graph relies on both: a path's number is the number
//! of its node, and the numbers of the names in `graph::names` are constants.
//!
//! All strings lie in one vector, one after the other. The hash table holds the numbers alone, so a
//! string costs its bytes, 12 more for its place and its hash, and 8 to 16 in the table. It has no
//! allocation of its own.

/// A place in a vector of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    ///
    /// # Panics
    /// If the place lies beyond the first 4 GiB.
    pub fn new(start: usize, end: usize) -> Span {
        let narrow = |offset| u32::try_from(offset).expect("a graph holds at most 4 GiB of text");
        Span { start: narrow(start), end: narrow(end) }
    }

    /// The bytes of `text` at this place.
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }
}

/// The strings, and the table that finds their numbers.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    text: Vec<u8>,
    spans: Vec<Span>,
    hashes: Vec<u32>,
    /// Numbers plus one; 0 is a free place. The length is a power of two.
    table: Vec<u32>,
}

impl Interner {
    /// The number of `string`, which is a new one if the string has none yet. O(1).
    ///
    /// # Panics
    /// If there are 2^32 - 1 strings already, or 4 GiB of text.
    pub fn intern(&mut self, string: &[u8]) -> u32 {
        if self.spans.len() * 2 >= self.table.len() {
            self.grow();
        }
        let hash = hash(string);
        let place = match self.search(string, hash) {
            Ok(number) => return number,
            Err(place) => place,
        };
        let number = u32::try_from(self.spans.len()).expect("fewer than 2^32 strings");
        let start = self.text.len();
        self.text.extend_from_slice(string);
        self.spans.push(Span::new(start, self.text.len()));
        self.hashes.push(hash);
        self.table[place] = number.checked_add(1).expect("fewer than 2^32 strings");
        number
    }

    /// The number of `string`, if it has one. O(1).
    pub fn find(&self, string: &[u8]) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.search(string, hash(string)).ok()
    }

    /// The string with a number that [`intern`](Self::intern) returned.
    pub fn get(&self, number: u32) -> &[u8] {
        self.spans[number as usize].of(&self.text)
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no string yet.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of the string, or the free place where its number belongs.
    fn search(&self, string: &[u8], hash: u32) -> Result<u32, usize> {
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let Some(number) = self.table[place].checked_sub(1) else { return Err(place) };
            if self.hashes[number as usize] == hash && self.get(number) == string {
                return Ok(number);
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(64);
        self.table.clear();
        self.table.resize(length, 0);
        for (number, hash) in (1..).zip(&self.hashes) {
            let mut place = *hash as usize & (length - 1);
            while self.table[place] != 0 {
                place = (place + 1) & (length - 1);
            }
            self.table[place] = number;
        }
    }
}

/// A hash for the table alone: it is never written to a file.
fn hash(string: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let mut hash = string.len() as u64;
    let (words, rest) = string.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = mix(hash, u64::from_le_bytes(last));
    ((hash ^ (hash >> 29)).wrapping_mul(FACTOR) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number_and_others_have_others() {
        let mut interner = Interner::default();
        assert_eq!(interner.find(b"a"), None);
        for round in 0..2 {
            for number in 0..1000_u32 {
                let string = format!("path/of/file{number}");
                assert_eq!(interner.intern(string.as_bytes()), number, "round {round}");
                assert_eq!(interner.get(number), string.as_bytes());
            }
        }
        assert_eq!(interner.find(b"path/of/file999"), Some(999));
        assert_eq!(interner.find(b"path/of/file1000"), None);
        assert_eq!(interner.len(), 1000);
    }
}
