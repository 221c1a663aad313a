//! The prompt, which `main.rs` calls as [`serve`] if there is no script: a line editor, completion
//! by the kinds of the stages, a history that the next prompt has too.
//!
//! The line editor is `rustyline`. `terminal.rs` reads lines by it and runs them. `complete.rs`
//! knows no terminal, so the tests call it directly. `history.rs` has the file.

pub mod complete;
mod history;
mod terminal;

pub use terminal::serve;
