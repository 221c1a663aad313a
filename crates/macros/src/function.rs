//! [`Function`]: the `async fn` under the attribute, read from its tokens, and the `fn` that is put
//! around it. `lib.rs` calls both.
//!
//! The `async fn` goes into the `fn` word for word, so the compiler marks what is wrong in it where
//! it is written. What runs it is in the façade's `entry.rs`.

use super::Mistake;
use super::arguments::{Arguments, Under};
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// The attribute that stands over the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Main,
    Test,
}

/// The `async fn` under the attribute.
pub(super) struct Function {
    /// The other attributes, and the visibility.
    before: TokenStream,
    name: Ident,
    /// From `async` to the end of the body.
    itself: TokenStream,
    /// Whether it returns `()`.
    is_unit: bool,
}

impl Function {
    /// Reads a function.
    ///
    /// # Errors
    /// A message for the program's author: the function is not `async`, or has parameters.
    pub(super) fn read(item: TokenStream) -> Result<Function, Mistake> {
        let tokens: Vec<TokenTree> = item.into_iter().collect();
        let at = |word: &str| tokens.iter().position(|token| is_word(token, word));
        let is_no_function = || Mistake {
            message: "this attribute stands before a function: `async fn name() { .. }`",
            span: tokens.first().map_or_else(Span::call_site, TokenTree::span),
        };
        let keyword = at("fn").ok_or_else(is_no_function)?;
        let begin = at("async").filter(|begin| *begin < keyword);
        let begin = begin.ok_or_else(|| Mistake {
            message: "the function under this attribute is an `async fn`",
            span: tokens[keyword].span(),
        })?;
        let Some(TokenTree::Ident(name)) = tokens.get(keyword + 1) else { return Err(is_no_function()) };
        let is_parameters = |token: &&TokenTree| has_delimiter(token, Delimiter::Parenthesis);
        let after_name = &tokens[keyword + 2..];
        let parameters = after_name.iter().find(is_parameters).ok_or_else(is_no_function)?;
        if let TokenTree::Group(group) = parameters
            && !group.stream().is_empty()
        {
            return Err(Mistake {
                message: "the function under this attribute has no parameters",
                span: group.span(),
            });
        }
        let result: Vec<String> = after_name
            .iter()
            .skip_while(|token| !is_parameters(token))
            .skip(1)
            .map(ToString::to_string)
            .collect();
        let is_unit =
            matches!(&result[..], [_body]) || matches!(&result[..], [_, _, unit, _] if unit == "()");
        Ok(Function {
            before: tokens[..begin].iter().cloned().collect(),
            name: name.clone(),
            itself: tokens[begin..].iter().cloned().collect(),
            is_unit,
        })
    }

    /// The `fn` with this function in it, which runs it.
    pub(super) fn around(self, attribute: Attribute, Arguments { under, home }: Arguments) -> TokenStream {
        let Function { before, name, itself, is_unit } = self;
        let runner = match under {
            Under::Seeds(seeds) => {
                let body = format!("{home}::entry::simulate({seeds}, {name})");
                return joined([
                    parsed("#[::core::prelude::v1::test]"),
                    before,
                    outer(&name, "", itself, &body),
                ]);
            }
            Under::Environment => format!("{home}::Runner::from_environment()"),
            Under::Local => ok(&format!("{home}::Runner::new().local()")),
            Under::Workers(number) => ok(&format!("{home}::Runner::new().workers({number})")),
            Under::Runner(expression) => ok(&expression.to_string()),
        };
        let ended = format!(
            "use {home}::entry::{{MayMove as _, MustStay as _}};
             let main = {name}();
             let ended = (&main).way().run({runner}, main);"
        );
        let exit_code = "-> ::std::process::ExitCode";
        let (mark, result, end) = match attribute {
            Attribute::Main => ("", exit_code, "report(ended)"),
            Attribute::Test if is_unit => ("#[::core::prelude::v1::test]", "", "tested(ended);"),
            Attribute::Test => ("#[::core::prelude::v1::test]", exit_code, "tested(ended)"),
        };
        let body = format!("{ended} {home}::entry::{end}");
        joined([parsed(mark), before, outer(&name, result, itself, &body)])
    }
}

/// `fn name() -> result { itself body }`.
fn outer(name: &Ident, result: &str, itself: TokenStream, body: &str) -> TokenStream {
    let block = Group::new(Delimiter::Brace, joined([itself, parsed(body)]));
    let name = TokenTree::Ident(name.clone()).into();
    joined([parsed("fn"), name, parsed("()"), parsed(result), TokenTree::Group(block).into()])
}

fn ok(expression: &str) -> String {
    format!("::core::result::Result::Ok({expression})")
}

fn joined<const N: usize>(parts: [TokenStream; N]) -> TokenStream {
    parts.into_iter().collect()
}

fn parsed(text: &str) -> TokenStream {
    text.parse().expect("tokens that were tokens before are tokens")
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

fn has_delimiter(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}
