//! The derive macro of `selvedge::mpi::Plain`. `selvedge-mpi` exports it beside the trait, and
//! documents it there.
//!
//! `item.rs` reads the name of the type and the types of its fields from the tokens, and `code.rs`
//! writes the implementations, with the checks that make them right.
#![deny(unsafe_code)]

mod code;
mod item;

use proc_macro::TokenStream;

/// Makes a struct plain data: elements of the fast interface, of windows and of files.
///
/// The compiler checks that the struct is `repr(C)` or `repr(transparent)`, that it is `Copy`, that
/// each field is plain data, and that no padding lies between or behind the fields.
/// `#[plain(crate = path)]` on the type names the module of the trait, for a crate that does not
/// depend on `selvedge`. It is `::selvedge::mpi` if the attribute is left out.
#[proc_macro_derive(Plain, attributes(plain))]
pub fn plain(item: TokenStream) -> TokenStream {
    let code = match item::read(item) {
        Ok(item) => code::implementation(&item),
        Err(message) => format!("::core::compile_error!({message:?});"),
    };
    code.parse().expect("the tokens of an item, put together anew, are tokens")
}
