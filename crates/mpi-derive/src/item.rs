//! The item under the derive: its name, the types of its fields, and its `repr`, read from the
//! tokens by [`read`].

use proc_macro::{Delimiter, TokenStream, TokenTree};
use std::iter::Peekable;
use std::slice::Iter;

/// A struct without parameters.
pub(super) struct Item {
    pub(super) name: String,
    /// The types of the fields.
    pub(super) fields: Vec<String>,
    /// Whether its `repr` fixes the layout.
    pub(super) is_fixed: bool,
    /// The path to the module of the trait.
    pub(super) home: String,
}

type Tokens<'a> = Peekable<Iter<'a, TokenTree>>;

/// Reads an item.
///
/// # Errors
/// A message for the program's author: the item is no struct, has parameters, or an attribute is
/// not known.
pub(super) fn read(item: TokenStream) -> Result<Item, String> {
    let trees = flat(item);
    let mut tokens = trees.iter().peekable();
    let attributes = attributes(&mut tokens);
    let is_fixed = attributes.iter().any(|(name, rest)| name == "repr" && fixes(rest));
    let home = home(&attributes)?;
    skip_visibility(&mut tokens);
    if tokens.next().is_none_or(|word| word.to_string() != "struct") {
        return Err("`Plain` is derived for a struct: not every number is a value of an enum".into());
    }
    let name = tokens.next().map(ToString::to_string).unwrap_or_default();
    let fields = match tokens.next() {
        Some(TokenTree::Group(body)) => fields(&flat(body.stream()), body.delimiter()),
        Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => Vec::new(),
        _ => return Err("`Plain` is derived for a struct without parameters".into()),
    };
    Ok(Item { name, fields, is_fixed, home })
}

/// The tokens of a stream. The compiler passes a fragment of `macro_rules!` as a group without
/// delimiters: its tokens are taken out of the group.
fn flat(stream: TokenStream) -> Vec<TokenTree> {
    let mut all = Vec::new();
    for token in stream {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                all.extend(flat(group.stream()));
            }
            other => all.push(other),
        }
    }
    all
}

fn text(tokens: &[TokenTree]) -> String {
    tokens.iter().cloned().collect::<TokenStream>().to_string()
}

fn is_mark(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == wanted)
}

/// Takes the attributes, and gives the name and the rest of each.
fn attributes(tokens: &mut Tokens<'_>) -> Vec<(String, Vec<TokenTree>)> {
    let mut found = Vec::new();
    while tokens.next_if(|token| is_mark(token, '#')).is_some() {
        let Some(TokenTree::Group(group)) = tokens.next() else { break };
        if let [name, rest @ ..] = &flat(group.stream())[..] {
            let inner = match rest {
                [TokenTree::Group(inner)] => flat(inner.stream()),
                _ => rest.to_vec(),
            };
            found.push((name.to_string(), inner));
        }
    }
    found
}

/// Whether these words of a `repr` fix the layout.
fn fixes(words: &[TokenTree]) -> bool {
    words.iter().any(|word| matches!(word.to_string().as_str(), "C" | "transparent"))
}

/// The path to the module of the trait.
fn home(attributes: &[(String, Vec<TokenTree>)]) -> Result<String, String> {
    let mut home = concat!("::", "selvedge", "::", "mpi").to_owned();
    for (_, tokens) in attributes.iter().filter(|(name, _)| name == "plain") {
        match &tokens[..] {
            [TokenTree::Ident(word), mark, path @ ..]
                if word.to_string() == "crate" && is_mark(mark, '=') && !path.is_empty() =>
            {
                home = text(path);
            }
            _ => return Err("before a type, `plain` is written as `#[plain(crate = path)]`".into()),
        }
    }
    Ok(home)
}

/// `pub`, `pub(crate)` and the like. The parentheses after `pub` may also be the type of a field of
/// a tuple struct, which nothing follows.
fn skip_visibility(tokens: &mut Tokens<'_>) {
    if tokens.next_if(|token| token.to_string() == "pub").is_none() {
        return;
    }
    let mut ahead = tokens.clone();
    let is_restricted = |token: &&TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
    if ahead.next_if(is_restricted).is_some() && ahead.peek().is_some() {
        *tokens = ahead;
    }
}

/// The types of the fields between braces, or between parentheses.
fn fields(body: &[TokenTree], delimiter: Delimiter) -> Vec<String> {
    let mut types = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let end = field_end(rest);
        let mut tokens = rest[..end].iter().peekable();
        attributes(&mut tokens);
        skip_visibility(&mut tokens);
        if delimiter == Delimiter::Brace {
            // The name and the colon.
            tokens.nth(1);
        }
        types.push(text(&tokens.cloned().collect::<Vec<_>>()));
        rest = &rest[(end + 1).min(rest.len())..];
    }
    types
}

/// The place of the comma behind the first field, which lies within no angle brackets.
fn field_end(tokens: &[TokenTree]) -> usize {
    let mut open = 0;
    let ends = |token: &TokenTree| {
        open += i32::from(is_mark(token, '<')) - i32::from(is_mark(token, '>'));
        open == 0 && is_mark(token, ',')
    };
    tokens.iter().position(ends).unwrap_or(tokens.len())
}
