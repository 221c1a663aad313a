//! The language of `build.ninja`: from bytes to a [`Graph`], without any input or output of its
//! own.
//!
//! `load.rs` calls [`parse`], with a function that reads included files. `dyndep.rs` uses the lexer
//! for dyndep files. The language is that of the section "Ninja file reference" of ninja's manual.
//!
//! `parser.rs` reads the statements, `lexer.rs` the words and values in them, and `error.rs` has
//! the error of both.

mod error;
mod lexer;
mod parser;

pub use error::ManifestError;

pub(crate) use lexer::{Lexer, Token, Word};

use crate::graph::Graph;
use std::io;

/// The version of ninja that has the language, the options and the tools of this program. CMake and
/// Meson ask for it, and use what that version has. A manifest may ask for this one or an older
/// one.
pub const LIKE_NINJA: &str = "1.13.0";

/// Gives the contents of a file that a manifest names.
pub type Load<'l> = dyn FnMut(&[u8]) -> io::Result<Vec<u8>> + 'l;

/// Reads a manifest.
///
/// `load` gives the contents of the files that `include` and `subninja` name.
///
/// # Errors
/// [`ManifestError`], with file, line and column.
///
/// # Examples
/// ```
/// use selvedge_make::graph::names;
///
/// let text = b"rule cc\n  command = cc -c $in -o $out\nbuild a.o: cc a.c\n";
/// let graph = selvedge_make::manifest::parse(b"build.ninja", text, &mut |_| unreachable!())?;
/// let edge = graph.maker(graph.find(b"a.o").unwrap()).unwrap();
/// assert_eq!(graph.value(edge, names::COMMAND).unwrap(), b"cc -c a.c -o a.o");
/// # Ok::<(), selvedge_make::manifest::ManifestError>(())
/// ```
pub fn parse(name: &[u8], text: &[u8], load: &mut Load<'_>) -> Result<Graph, ManifestError> {
    let mut graph = Graph::new();
    parser::parse(&mut graph, name, text, load)?;
    Ok(graph)
}
