//! The derive macro of `selvedge::lazy::Deep`. `selvedge-lazy` exports it beside the trait, and
//! documents it there.
//!
//! `item.rs` reads the names of the fields from the tokens, and `code.rs` writes the
//! implementation. Neither needs another crate: of a field the name is enough, because the compiler
//! finds its type.
#![deny(unsafe_code)]

mod code;
mod item;

use proc_macro::TokenStream;

/// Implements `Deep` for a struct or an enum: it forces all lazy values in the fields, one field
/// after the other.
///
/// - A field with `#[deep(skip)]` is left as it is. Its type need not implement `Deep`, but must be
///   `Sync`.
/// - Each type parameter must be `Send + Sync`, and `Deep` if a field that is forced names it.
/// - `#[deep(crate = path)]` on the type names the module of the trait, for a crate that does not
///   depend on `selvedge`. It is `::selvedge::lazy` if the attribute is left out.
#[proc_macro_derive(Deep, attributes(deep))]
pub fn deep(item: TokenStream) -> TokenStream {
    let code = match item::read(item) {
        Ok(item) => code::implementation(&item),
        Err(message) => format!("::core::compile_error!({message:?});"),
    };
    code.parse().expect("the tokens of an item, put together anew, are tokens")
}
