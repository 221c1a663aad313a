//! The prompt, which `main.rs` calls as [`serve`] if there is no script: a line editor, completion
//! by the kinds of the stages, a history that the next prompt has too.
//!
//! `editor.rs` and `complete.rs` know no terminal, so the tests call them directly. `terminal.rs`
//! is the only part that reads keys and writes lines, and `history.rs` has the file.

pub mod complete;
pub mod editor;
mod history;
mod terminal;

pub use terminal::serve;
