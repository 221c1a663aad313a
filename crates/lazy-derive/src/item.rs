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

/// A variant of an enum, or the one of a struct.
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

/// The tokens of an attribute `#[deep(..)]`.
struct DeepAttribute(Vec<TokenTree>);

type Tokens<'a> = Peekable<Iter<'a, TokenTree>>;

/// Reads an item.
///
/// # Errors
/// A message for the program's author: the item is a union, or an attribute is not known.
pub(super) fn read(item: TokenStream) -> Result<Item, String> {
    let trees: Vec<TokenTree> = item.into_iter().collect();
    let mut tokens = trees.iter().peekable();
    let home = home(attributes(&mut tokens))?;
    skip_visibility(&mut tokens);
    let keyword = tokens.next().map(ToString::to_string).unwrap_or_default();
    let name = tokens.next().map(ToString::to_string).unwrap_or_default();
    let generics = match next_is(&mut tokens, '<') {
        true => angle_brackets(&mut tokens).iter().map(|tokens| parameter(tokens)).collect(),
        false => Vec::new(),
    };
    let mut bounds = Vec::new();
    let mut body = None;
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_body(group) && (body.is_none() || keyword == "enum") => {
                body = Some(group);
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => {}
            TokenTree::Ident(word) if word.to_string() == "where" => {}
            other => bounds.push(other.clone()),
        }
    }
    let variants = match keyword.as_str() {
        "struct" => vec![Variant { path: "Self".into(), fields: fields(body)? }],
        "enum" => body.map_or(Ok(Vec::new()), variants)?,
        _ => return Err("`Deep` is derived for a struct or an enum".into()),
    };
    Ok(Item { name, generics, bounds: text(bounds), variants, home })
}

/// Whether the group may have the fields of a struct, or the variants of an enum.
fn is_body(group: &Group) -> bool {
    matches!(group.delimiter(), Delimiter::Brace | Delimiter::Parenthesis)
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
        let attribute: Vec<TokenTree> = group.stream().into_iter().collect();
        if let [TokenTree::Ident(name), TokenTree::Group(inner)] = &attribute[..]
            && name.to_string() == "deep"
        {
            found.push(DeepAttribute(inner.stream().into_iter().collect()));
        }
    }
    found
}

/// The path to the module of the trait.
fn home(attributes: Vec<DeepAttribute>) -> Result<String, String> {
    let mut home = "::selvedge::lazy".to_owned();
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
        let is_restricted = |token: &&TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
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
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
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
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let variant = |tokens: &Vec<TokenTree>| {
        let mut tokens = tokens.iter().peekable();
        attributes(&mut tokens);
        let name = tokens.next().map(ToString::to_string).unwrap_or_default();
        let body = match tokens.next() {
            Some(TokenTree::Group(group)) => Some(group),
            _ => None,
        };
        Ok(Variant { path: format!("Self::{name}"), fields: fields(body)? })
    };
    cut(&trees).iter().map(variant).collect()
}
