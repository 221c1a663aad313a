//! The item under the derive: its name, its generics, and the names of its fields, read from the
//! tokens by [`read`].
//!
//! `lib.rs` calls it, and `code.rs` writes the implementation for the [`Item`].

use proc_macro::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::iter::Peekable;
use std::slice::Iter;

/// A struct or an enum.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) generics: Vec<Parameter>,
    /// The bounds after `where`, as they are written.
    pub(super) bounds: String,
    pub(super) variants: Vec<Variant>,
    /// The path to the module of the trait.
    pub(super) home: String,
}

/// A parameter between `<` and `>`.
pub(super) struct Parameter {
    /// As it is declared, without its default.
    pub(super) declared: String,
    pub(super) name: String,
    pub(super) is_type: bool,
}

/// A variant of an enum, or a struct, which has one variant.
pub(super) struct Variant {
    /// `Self`, or `Self::Name`.
    pub(super) path: String,
    /// The fields that are forced.
    pub(super) fields: Vec<Field>,
}

/// A field that is forced.
pub(super) struct Field {
    /// A name, or a number.
    pub(super) name: String,
    /// The rest of the declaration, with the type.
    declared: String,
}

impl Field {
    /// Whether the type of the field names the parameter.
    pub(super) fn names(&self, parameter: &Parameter) -> bool {
        let mut words = self.declared.split(|part: char| !part.is_alphanumeric() && part != '_');
        words.any(|word| word == parameter.name)
    }
}

/// The tokens of an attribute `#[deep(..)]`: those between the parentheses, or all after the name.
struct DeepAttribute(Vec<TokenTree>);

type Tokens<'a> = Peekable<Iter<'a, TokenTree>>;

/// Reads an item.
///
/// # Errors
/// A message for the program's author: the item is a union, or an attribute is not known.
pub(super) fn read(item: TokenStream) -> Result<Item, String> {
    let trees = flat(item);
    let mut tokens = trees.iter().peekable();
    let home = home(attributes(&mut tokens))?;
    skip_visibility(&mut tokens);
    let keyword = tokens.next().map(ToString::to_string).unwrap_or_default();
    let name = tokens.next().map(ToString::to_string).unwrap_or_default();
    let generics = match next_is(&mut tokens, '<') {
        true => angle_brackets(&mut tokens).iter().map(|tokens| parameter(tokens)).collect(),
        false => Vec::new(),
    };
    // The fields of a tuple struct come before the bounds. The fields of another struct, and the
    // variants, come last. Each group between belongs to the bounds: `where F: Fn(u8) -> u8`.
    let tuple = tokens.next_if(|token| has_delimiter(token, Delimiter::Parenthesis)).cloned();
    let mut bounds: Vec<TokenTree> = tokens.cloned().collect();
    let body = tuple.or_else(|| bounds.pop_if(|token| has_delimiter(token, Delimiter::Brace)));
    let body = match &body {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    };
    bounds.retain(|token| !matches!(token.to_string().as_str(), ";" | "where"));
    let variants = match keyword.as_str() {
        "struct" => vec![Variant { path: "Self".into(), fields: fields(body)? }],
        "enum" => body.map_or(Ok(Vec::new()), variants)?,
        _ => return Err("`Deep` is derived for a struct or an enum".into()),
    };
    Ok(Item { name, generics, bounds: text(bounds), variants, home })
}

fn has_delimiter(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// The tokens of a stream. The compiler passes a fragment of `macro_rules!`, as `$vis:vis` is one,
/// as a group without delimiters: its tokens are taken out of the group.
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

fn text(tokens: impl IntoIterator<Item = TokenTree>) -> String {
    tokens.into_iter().collect::<TokenStream>().to_string()
}

fn next_is(tokens: &mut Tokens<'_>, mark: char) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == mark)
}

/// Takes the attributes, and gives those of this derive.
fn attributes(tokens: &mut Tokens<'_>) -> Vec<DeepAttribute> {
    let mut found = Vec::new();
    while next_is(tokens, '#') {
        tokens.next();
        let Some(TokenTree::Group(group)) = tokens.next() else { break };
        let attribute = flat(group.stream());
        let Some((TokenTree::Ident(name), rest)) = attribute.split_first() else { continue };
        // A path `deep::name` is of another macro.
        if name.to_string() == "deep" && !next_is(&mut rest.iter().peekable(), ':') {
            found.push(DeepAttribute(match rest {
                [TokenTree::Group(inner)] => flat(inner.stream()),
                _ => rest.to_vec(),
            }));
        }
    }
    found
}

/// The path to the module of the trait.
fn home(attributes: Vec<DeepAttribute>) -> Result<String, String> {
    let mut home = concat!("::", "selvedge", "::", "lazy").to_owned();
    for DeepAttribute(tokens) in attributes {
        match &tokens[..] {
            [TokenTree::Ident(word), TokenTree::Punct(mark), path @ ..]
                if word.to_string() == "crate" && mark.as_char() == '=' && !path.is_empty() =>
            {
                home = text(path.iter().cloned());
            }
            _ => return Err("before a type, `deep` is written as `#[deep(crate = path)]`".into()),
        }
    }
    Ok(home)
}

fn skip_visibility(tokens: &mut Tokens<'_>) {
    if matches!(tokens.peek(), Some(TokenTree::Ident(word)) if word.to_string() == "pub") {
        tokens.next();
        let is_restricted = |token: &&TokenTree| has_delimiter(token, Delimiter::Parenthesis);
        // The parentheses may be the type of a field of a tuple struct: `pub (T, u8)`. They are
        // `pub(in path)` or `pub(crate)` only if more follows.
        let mut ahead = tokens.clone();
        if ahead.next_if(is_restricted).is_some() && ahead.peek().is_some() {
            *tokens = ahead;
        }
    }
}

/// Takes the tokens from `<` to the `>` that belongs to it, cut at the commas.
fn angle_brackets(tokens: &mut Tokens<'_>) -> Vec<Vec<TokenTree>> {
    tokens.next();
    let mut inner = Vec::new();
    let mut depth = Depth::default();
    for token in tokens {
        depth.pass(token);
        if depth.open < 0 {
            break;
        }
        inner.push(token.clone());
    }
    cut(&inner)
}

/// How many angle brackets are open.
#[derive(Default)]
struct Depth {
    open: i32,
    /// Whether the last token was the `-` of an arrow.
    is_arrow: bool,
}

impl Depth {
    fn pass(&mut self, token: &TokenTree) {
        let mark = match token {
            TokenTree::Punct(mark) => Some((mark.as_char(), mark.spacing())),
            _ => None,
        };
        match mark {
            Some(('<', _)) => self.open += 1,
            Some(('>', _)) if !self.is_arrow => self.open -= 1,
            _ => {}
        }
        self.is_arrow = mark == Some(('-', Spacing::Joint));
    }
}

/// Cuts tokens at the commas that are within no angle brackets.
fn cut(tokens: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    let mut depth = Depth::default();
    for token in tokens {
        depth.pass(token);
        let is_comma = matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
        match parts.last_mut() {
            Some(part) if !is_comma || depth.open > 0 => part.push(token.clone()),
            _ => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A parameter: `'a: 'b`, `const N: usize = 1` or `T: Bound = Default`.
fn parameter(tokens: &[TokenTree]) -> Parameter {
    let is_default = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '=');
    let mut depth = Depth::default();
    let end = tokens.iter().position(|token| {
        depth.pass(token);
        depth.open == 0 && is_default(token)
    });
    let declared = text(tokens[..end.unwrap_or(tokens.len())].iter().cloned());
    let (name, is_type) = match tokens {
        [TokenTree::Punct(_), TokenTree::Ident(name), ..] => (format!("'{name}"), false),
        [TokenTree::Ident(word), TokenTree::Ident(name), ..] if word.to_string() == "const" => {
            (name.to_string(), false)
        }
        [name, ..] => (name.to_string(), true),
        [] => (String::new(), false),
    };
    Parameter { declared, name, is_type }
}

/// The fields that are forced.
fn fields(body: Option<&Group>) -> Result<Vec<Field>, String> {
    let Some(body) = body else { return Ok(Vec::new()) };
    let trees = flat(body.stream());
    let mut named = Vec::new();
    for (number, field) in cut(&trees).iter().enumerate() {
        let mut tokens = field.iter().peekable();
        let attributes = attributes(&mut tokens);
        if attributes.iter().any(|DeepAttribute(tokens)| text(tokens.iter().cloned()) != "skip") {
            return Err("before a field, `deep` is written as `#[deep(skip)]`".into());
        }
        if !attributes.is_empty() {
            continue;
        }
        skip_visibility(&mut tokens);
        let name = match body.delimiter() {
            Delimiter::Brace => tokens.next().map(ToString::to_string).unwrap_or_default(),
            _ => number.to_string(),
        };
        named.push(Field { name, declared: text(tokens.cloned()) });
    }
    Ok(named)
}

/// The variants of an enum.
fn variants(body: &Group) -> Result<Vec<Variant>, String> {
    let trees = flat(body.stream());
    let variant = |tokens: &[TokenTree]| {
        let mut tokens = tokens.iter().peekable();
        if !attributes(&mut tokens).is_empty() {
            return Err("`deep` is written before a type or a field, not before a variant".into());
        }
        let name = tokens.next().map(ToString::to_string).unwrap_or_default();
        let body = match tokens.next() {
            Some(TokenTree::Group(group)) => Some(group),
            _ => None,
        };
        Ok(Variant { path: format!("Self::{name}"), fields: fields(body)? })
    };
    // A discriminant may be a shift, `1 << 2`, so angle brackets do not count here. They need not:
    // the fields of a variant are in a group.
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
    trees.split(is_comma).filter(|part| !part.is_empty()).map(variant).collect()
}
