//! XML as tokens, and elements as regions of a text.
//!
//! | for | there is |
//! |---|---|
//! | tags, text, comments and so on, one by one | [`tokens`], and [`Token`] to look into one |
//! | elements of a name, with all else around them unchanged | [`element`] |
//! | what lies between the tags of an element | [`content`] |
//! | the values of an attribute | [`attribute`] |
//! | text that is written into a document, and back | [`escape`], [`unescape`] |
//!
//! This is no wrapper of `quick-xml`. A splitter has to say at which byte each region of the text
//! begins and ends, is given the text in chunks that end anywhere, and gives back all bytes
//! unchanged. `quick-xml` pulls events out of a reader.
//!
//! The text is cut by the rules of well-formed XML: a `>` within quotes, a comment or a CDATA
//! section ends no tag. Whether tags match and names are right is not checked.

mod elements;
mod references;
mod tokens;

pub use elements::{attribute, content, element};
pub use references::{escape, unescape};
pub use tokens::{Token, TokenKind, tokens};
