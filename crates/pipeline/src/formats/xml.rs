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
//! The text is cut by the rules of well-formed XML: a `>` within quotes, a comment or a CDATA
//! section ends no tag. Whether tags match and names are right is not checked.

mod elements;
mod references;
mod tokens;

pub use elements::{attribute, content, element};
pub use references::{escape, unescape};
pub use tokens::{Token, TokenKind, tokens};
