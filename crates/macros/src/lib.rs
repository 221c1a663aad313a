//! The attributes `selvedge::main` and `selvedge::test`. `selvedge` exports them, and documents
//! them there.
//!
//! `arguments.rs` reads what is between the parentheses, and `function.rs` reads the function and
//! puts an `fn` around it, which calls it. Neither needs another crate, because the body is handed
//! on as it is.
#![deny(unsafe_code)]

mod arguments;
mod function;

use arguments::Arguments;
use function::{Attribute, Function};
use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Makes an `async fn main` the program's `fn main`: runs it by a `Runner`, and reports what it
/// returns as `std::process::Termination` does.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expanded(Attribute::Main, arguments, item)
}

/// Makes an `async fn` a test: runs it by a `Runner`, or in simulated worlds.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expanded(Attribute::Test, arguments, item)
}

fn expanded(attribute: Attribute, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let read = Arguments::read(attribute, arguments).and_then(|arguments| {
        let function = Function::read(item)?;
        Ok(function.around(attribute, arguments))
    });
    read.unwrap_or_else(|mistake| mistake.told())
}

/// What is wrong, and where.
struct Mistake {
    message: &'static str,
    span: Span,
}

impl Mistake {
    /// The error for the compiler to print.
    fn told(self) -> TokenStream {
        let mark = |mark, spacing| TokenTree::Punct(Punct::new(mark, spacing));
        let word = |word| TokenTree::Ident(Ident::new(word, self.span));
        let message = TokenTree::Literal(Literal::string(self.message));
        let group = TokenTree::Group(Group::new(Delimiter::Brace, message.into()));
        let path = [
            mark(':', Spacing::Joint),
            mark(':', Spacing::Alone),
            word("core"),
            mark(':', Spacing::Joint),
            mark(':', Spacing::Alone),
            word("compile_error"),
            mark('!', Spacing::Alone),
            group,
        ];
        let spanned = path.into_iter().map(|mut token| {
            token.set_span(self.span);
            token
        });
        spanned.collect()
    }
}
