//! Comma-separated values, by RFC 4180: records, the text of a column, rows as they are.
//!
//! | for | there is |
//! |---|---|
//! | the fields of each record | [`records`] |
//! | text of records | [`encode`] |
//! | the rows of a text, with quoted line ends in them | [`rows`] |
//! | the text of one column, with all else around it unchanged | [`column()`] |
//!
//! This is no wrapper of the crate `csv`. A splitter has to say at which byte each region of the
//! text begins and ends, is given the text in chunks that end anywhere, and gives back all bytes
//! unchanged. `csv` pulls records out of a reader, and gives their fields without the quotes.
//!
//! A row ends with `\n` or `\r\n`. A blank row is no record. A field that begins with a quote `"`
//! ends at the next quote that is not doubled, and may hold commas and line ends.
//!
//! [`records`] refuses text that RFC 4180 does not allow. The splitters take any text: for them, a
//! quote within a field that does not begin with one is a byte like others, and the bytes after a
//! closing quote belong to the field.

mod encode;
mod fields;
mod records;
mod regions;

pub use encode::encode;
pub use fields::Fields;
pub(crate) use records::later_records;
pub use records::records;
pub use regions::{column, rows};
