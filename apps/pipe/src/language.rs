//! The language of pipelines: from text to a tree, and back.
//!
//! `run::prepare` and the completion call [`parse()`]. `explain.rs` and `kinds.rs` print parts of a
//! tree, and `fuzz.rs` checks that a printed tree is read as the same tree.
//!
//! ```text
//! script    = [pipeline {";" pipeline} [";"]]
//! pipeline  = stage {"|" stage}
//! stage     = branch | loop | word {argument}
//! branch    = ("foreach" | "if") condition "then" [pipeline] ["else" [pipeline]] "end"
//! loop      = "while" condition "then" pipeline "end"
//! condition = either {"having" ["only"] either | "nested" "in" either | "followed" "by" either}
//! either    = both {"or" both}
//! both      = unary {"and" unary}
//! unary     = "not" unary | "between" unary "and" unary | choice unary | "(" condition ")"
//!           | word {argument}
//! choice    = "first" | "last" ["and" "after"] | "even" | "upto" "first" | "prefix" | "suffix"
//!           | "start" "of" | "end" "of"
//! ```
//!
//! White space and line ends separate words. `#` at the beginning of a word begins a comment, to
//! the end of its line. `"..."` knows escapes, `'...'` does not, and `` `...` `` is a command of
//! the system.

pub mod error;
mod nearest;
pub mod parse;
pub mod print;
pub mod token;
pub mod tree;
pub mod words;

pub use error::ScriptError;
pub use parse::parse;
