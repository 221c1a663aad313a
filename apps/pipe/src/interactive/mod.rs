//! The prompt: a line editor, completion by what fits, a history.

pub mod complete;
pub mod editor;
mod terminal;

pub use terminal::serve;
