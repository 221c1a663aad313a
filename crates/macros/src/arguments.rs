//! [`Arguments`]: what is between the parentheses of an attribute. `lib.rs` has them read, and
//! `function.rs` writes what they ask for.

use super::Mistake;
use super::function::Attribute;
use proc_macro::{Span, TokenStream, TokenTree};

/// How the function is run.
pub(super) enum Under {
    /// As the environment says.
    Environment,
    /// By the runner that an expression gives.
    Runner(TokenStream),
    /// On this number of workers.
    Workers(TokenStream),
    /// On the calling OS thread.
    Local,
    /// In a simulated world for each of these seeds.
    Seeds(TokenStream),
}

/// What is between the parentheses.
pub(super) struct Arguments {
    pub(super) under: Under,
    /// The path to the façade.
    pub(super) home: TokenStream,
}

impl Arguments {
    /// Reads the tokens between the parentheses.
    ///
    /// # Errors
    /// A message for the program's author, at the argument that is not known.
    pub(super) fn read(attribute: Attribute, arguments: TokenStream) -> Result<Arguments, Mistake> {
        let home = concat!("::", "selvedge").parse().expect("a path");
        let mut read = Arguments { under: Under::Environment, home };
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        for argument in tokens.split(|token| is_mark(token, ',')).filter(|part| !part.is_empty()) {
            let span = argument[0].span();
            let (word, value) = match argument {
                [word] => (word.to_string(), None),
                [word, equals, value @ ..] if is_mark(equals, '=') && !value.is_empty() => {
                    (word.to_string(), Some(value.iter().cloned().collect()))
                }
                _ => return Err(unknown(attribute, span)),
            };
            let under = match (word.as_str(), value) {
                ("crate", Some(path)) => {
                    read.home = path;
                    continue;
                }
                ("runner", Some(expression)) => Under::Runner(expression),
                ("workers", Some(number)) => Under::Workers(number),
                ("local", None) => Under::Local,
                ("seeds", Some(range)) if attribute == Attribute::Test => Under::Seeds(range),
                _ => return Err(unknown(attribute, span)),
            };
            if !matches!(read.under, Under::Environment) {
                let message = "only one of the arguments may say how the function is run";
                return Err(Mistake { message, span });
            }
            read.under = under;
        }
        Ok(read)
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn unknown(attribute: Attribute, span: Span) -> Mistake {
    let message = match attribute {
        Attribute::Main => {
            "not an argument of `main`: there are `workers = number`, `local`, `runner = expression` and `crate = path`"
        }
        Attribute::Test => {
            "not an argument of `test`: there are `workers = number`, `local`, `runner = expression`, \
             `seeds = range` and `crate = path`"
        }
    };
    Mistake { message, span }
}
