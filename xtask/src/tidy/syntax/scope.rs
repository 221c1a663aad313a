//! [`Scope`]: what one module declares, imports and names. `imports.rs` puts the scopes of a crate
//! together.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::UseTree;
use syn::ext::IdentExt;

#[derive(Debug, Default)]
pub(in crate::tidy) struct Scope {
    /// Names of what is declared in it.
    pub(in crate::tidy) items: BTreeSet<String>,
    pub(in crate::tidy) children: Vec<Child>,
    /// The imports: name here, and path.
    pub(in crate::tidy) imported: BTreeMap<String, Vec<String>>,
    pub(in crate::tidy) globs: Vec<Glob>,
    pub(in crate::tidy) mentions: Vec<Mention>,
    /// The names in its code that may be those of items: what begins a path or stands in a pattern.
    pub(in crate::tidy) words: BTreeSet<String>,
    /// The macros under `#[macro_export]`, which are items of the root.
    pub(in crate::tidy) exported: Vec<String>,
}

/// A module in it.
#[derive(Debug)]
pub(in crate::tidy) struct Child {
    pub(in crate::tidy) name: String,
    /// `#[path = ".."]`
    pub(in crate::tidy) path: Option<String>,
    /// `None` where the module has a file of its own.
    pub(in crate::tidy) scope: Option<Scope>,
}

/// A place in the code of a module that names an item.
#[derive(Debug)]
pub(in crate::tidy) struct Mention {
    pub(in crate::tidy) line: usize,
    pub(in crate::tidy) path: Vec<String>,
    /// The name that an import gives it.
    pub(in crate::tidy) name: String,
    pub(in crate::tidy) is_re_export: bool,
}

/// `use path::*`.
#[derive(Debug)]
pub(in crate::tidy) struct Glob {
    pub(in crate::tidy) line: usize,
    pub(in crate::tidy) path: Vec<String>,
}

impl Scope {
    /// Notes a path in code.
    pub(super) fn mention(&mut self, first: &Ident, path: Vec<String>) {
        let name = path[0].clone();
        self.words.insert(name.clone());
        if path.len() > 1 {
            self.mentions.push(Mention { line: line(first), path, name, is_re_export: false });
        }
    }

    /// Notes the imports of a tree below `path`.
    pub(super) fn import(&mut self, tree: &UseTree, path: &[String], is_public: bool) {
        let (last, rename) = match tree {
            UseTree::Path(tree) => {
                return self.import(&tree.tree, &[path, &[plain(&tree.ident)]].concat(), is_public);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path, is_public));
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.span.start().line;
                return self.globs.push(Glob { line, path: path.to_vec() });
            }
            UseTree::Name(tree) => (&tree.ident, None),
            UseTree::Rename(tree) => (&tree.ident, Some(&tree.rename)),
        };
        let of_last = if last == "self" { None } else { Some(plain(last)) };
        let path: Vec<String> = path.iter().cloned().chain(of_last).collect();
        let Some(name) = rename.map(plain).or(path.last().cloned()) else { return };
        self.imported.insert(name.clone(), path.clone());
        self.mentions.push(Mention { line: line(last), path, name, is_re_export: is_public });
    }

    /// Notes the paths and the imports in the body of a macro. A `$` changes neither.
    pub(super) fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().filter(|token| !is(token, '$')).collect();
        let mut rest = &tokens[..];
        while let [token, after @ ..] = rest {
            rest = match (token, after) {
                (TokenTree::Group(group), _) => {
                    self.read_tokens(group.stream());
                    after
                }
                (TokenTree::Ident(word), _) if word == "use" => {
                    let end = after.iter().position(|token| is(token, ';')).unwrap_or(after.len());
                    match syn::parse2(after[..end].iter().cloned().collect()) {
                        Ok(tree) => {
                            self.import(&tree, &[], false);
                            &after[end..]
                        }
                        Err(_) => after,
                    }
                }
                (TokenTree::Ident(first), _) => self.read_path(first, after),
                // A field or a method, the end of a path behind `<..>`, and an attribute.
                (mark, [TokenTree::Ident(_), after @ ..]) if is(mark, '.') => after,
                (mark, [second, TokenTree::Ident(_), after @ ..]) if is(mark, ':') && is(second, ':') => {
                    after
                }
                (mark, [TokenTree::Group(group), after @ ..])
                    if is(mark, '#') && group.delimiter() == Delimiter::Bracket =>
                {
                    after
                }
                _ => after,
            };
        }
    }

    /// Notes the path that begins with `first`, and returns the tokens behind it.
    fn read_path<'t>(&mut self, first: &Ident, after: &'t [TokenTree]) -> &'t [TokenTree] {
        let mut rest = after;
        let mut path = vec![plain(first)];
        while let [one, two, TokenTree::Ident(name), after @ ..] = rest
            && is(one, ':')
            && is(two, ':')
        {
            path.push(plain(name));
            rest = after;
        }
        self.mention(first, path);
        rest
    }
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// A name without `r#`.
pub(super) fn plain(name: &Ident) -> String {
    name.unraw().to_string()
}

pub(super) fn line(name: &Ident) -> usize {
    name.span().start().line
}
