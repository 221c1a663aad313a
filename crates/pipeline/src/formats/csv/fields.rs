//! `Fields`: a record, as `csv::records` yields it.

use std::fmt;

/// The fields of a record.
///
/// # Examples
/// ```
/// use selvedge::pipeline::csv::Fields;
///
/// let record: Fields = ["warp", "42"].into_iter().collect();
/// assert_eq!(record.get(0), Some(&b"warp"[..]));
/// assert_eq!((record.len(), record.get(2)), (2, None));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    pub(super) text: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

impl Fields {
    /// A record without fields.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// A record without fields, with room for this number of fields and for this number of bytes in
    /// them.
    pub fn with_capacity(fields: usize, bytes: usize) -> Fields {
        Fields { text: Vec::with_capacity(bytes), ends: Vec::with_capacity(fields) }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The field at `index`, from 0, without the quotes around it.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let begin = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        Some(&self.text[begin..*self.ends.get(index)?])
    }

    /// The fields one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Adds a field at the end.
    pub fn push(&mut self, field: &[u8]) {
        self.text.extend_from_slice(field);
        self.ends.push(self.text.len());
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The text of the field that is not ended yet.
    pub(super) fn open(&self) -> &[u8] {
        &self.text[self.ends.last().copied().unwrap_or(0)..]
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Fields {
    fn from_iter<I: IntoIterator<Item = T>>(fields: I) -> Fields {
        let mut record = Fields::new();
        for field in fields {
            record.push(field.as_ref());
        }
        record
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}
