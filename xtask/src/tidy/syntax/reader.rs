//! [`SyntaxReader`]: goes through what `syn` has read of a file, and makes its [`Syntax`].
//!
//! A macro is not expanded. Where its body has the form of items, they are items here. Else the
//! paths among its tokens count, and the functions and types that they declare by name. What only
//! tests compile is declared, but is in no scope.

use super::scope::{Child, line, plain};
use super::{Declaration, Declared, Doc, Scope, Syntax};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use std::mem;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Lit, Meta, Stmt, Token, Type, Visibility};

#[derive(Default)]
pub(super) struct SyntaxReader {
    syntax: Syntax,
    /// Of the module around this place.
    scope: Scope,
    /// The item around this place, if it is no module.
    outer: Option<String>,
    for_tests: bool,
}

impl SyntaxReader {
    pub(super) fn read(mut self, file: &syn::File) -> Syntax {
        self.document(None, &file.attrs);
        self.under(&file.attrs, |reader| visit::visit_file(reader, file));
        self.syntax.scope = self.scope;
        self.syntax
    }

    /// Visits what has these attributes.
    fn under(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut SyntaxReader)) {
        if self.for_tests || !is_for_tests(attributes) {
            return visit(self);
        }
        let scope = mem::take(&mut self.scope);
        self.for_tests = true;
        visit(self);
        self.for_tests = false;
        self.scope = scope;
    }

    /// Notes a declaration, and visits what stands in it.
    fn declare(
        &mut self,
        kind: Declared,
        name: &Ident,
        attributes: &[Attribute],
        visit: impl FnOnce(&mut SyntaxReader),
    ) {
        self.under(attributes, |reader| {
            let (line, name) = (line(name), plain(name));
            let item = match &reader.outer {
                Some(outer) => format!("{outer}::{name}"),
                None => name.clone(),
            };
            reader.document(Some(item), attributes);
            if reader.outer.is_none() {
                reader.scope.items.insert(name.clone());
            }
            let for_tests = reader.for_tests;
            reader.syntax.declarations.push(Declaration { kind, name: name.clone(), line, for_tests });
            reader.within(Some(name), visit);
        });
    }

    fn within(&mut self, outer: Option<String>, visit: impl FnOnce(&mut SyntaxReader)) {
        let around = mem::replace(&mut self.outer, outer);
        visit(self);
        self.outer = around;
    }

    /// Notes the functions and the types that the tokens of a macro declare by name.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut attributes = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match (token, &tokens[at + 1..]) {
                (TokenTree::Ident(word), [TokenTree::Ident(name), after @ ..]) => {
                    if let Some(kind) = declared(word, after) {
                        let for_tests = self.for_tests || is_for_tests(&attributes);
                        self.document(Some(plain(name)), &mem::take(&mut attributes));
                        let (line, name) = (line(name), plain(name));
                        self.syntax.declarations.push(Declaration { kind, name, line, for_tests });
                    } else if word == "for" && at > 0 && is_error(&tokens[at - 1]) {
                        self.syntax.errors.push((line(word), plain(name)));
                    }
                }
                (TokenTree::Punct(mark), [TokenTree::Group(_), ..]) if mark.as_char() == '#' => {
                    let attribute = TokenStream::from_iter(tokens[at..at + 2].iter().cloned());
                    attributes.extend(Attribute::parse_outer.parse2(attribute).into_iter().flatten());
                }
                (TokenTree::Group(group), _) => {
                    self.read_tokens(group.stream());
                    if group.delimiter() == Delimiter::Brace {
                        self.document(None, &mem::take(&mut attributes));
                    }
                }
                (TokenTree::Punct(mark), _) if [',', ';'].contains(&mark.as_char()) => {
                    self.document(None, &mem::take(&mut attributes));
                }
                _ => {}
            }
        }
        self.document(None, &attributes);
    }

    fn document(&mut self, item: Option<String>, attributes: &[Attribute]) {
        let mut lines = Vec::new();
        for attribute in attributes {
            let Some(text) = value(attribute, "doc") else { continue };
            let first = attribute.pound_token.span.start().line;
            let text = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_string());
            lines.extend((first..).zip(text));
        }
        if !lines.is_empty() {
            self.syntax.docs.push(Doc { lines, item });
        }
    }
}

/// Defines visits: each declares the name of an item, and visits its members.
macro_rules! declare {
    ($($visit:ident($item:ident: $type:ident) as $kind:expr, $name:expr;)*) => {$(
        fn $visit(&mut self, $item: &'ast syn::$type) {
            self.declare($kind, &$name, &$item.attrs, |reader| visit::$visit(reader, $item));
        }
    )*};
}

impl<'ast> Visit<'ast> for SyntaxReader {
    declare! {
        visit_item_enum(item: ItemEnum) as Declared::Type, item.ident;
        visit_item_struct(item: ItemStruct) as Declared::Type, item.ident;
        visit_item_trait(item: ItemTrait) as Declared::Type, item.ident;
        visit_item_type(item: ItemType) as Declared::Type, item.ident;
        visit_item_union(item: ItemUnion) as Declared::Type, item.ident;
        visit_item_fn(item: ItemFn) as function(&item.block), item.sig.ident;
        visit_impl_item_fn(item: ImplItemFn) as function(&item.block), item.sig.ident;
        visit_trait_item_fn(item: TraitItemFn)
            as item.default.as_ref().map_or(Declared::Other, function), item.sig.ident;
        visit_foreign_item_fn(item: ForeignItemFn) as Declared::Other, item.sig.ident;
        visit_item_const(item: ItemConst) as Declared::Other, item.ident;
        visit_impl_item_const(item: ImplItemConst) as Declared::Other, item.ident;
        visit_trait_item_const(item: TraitItemConst) as Declared::Other, item.ident;
        visit_item_static(item: ItemStatic) as Declared::Other, item.ident;
        visit_foreign_item_static(item: ForeignItemStatic) as Declared::Other, item.ident;
        visit_impl_item_type(item: ImplItemType) as Declared::Other, item.ident;
        visit_trait_item_type(item: TraitItemType) as Declared::Other, item.ident;
        visit_variant(item: Variant) as Declared::Other, item.ident;
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        match &field.ident {
            Some(name) => {
                self.declare(Declared::Other, name, &field.attrs, |reader| visit::visit_field(reader, field));
            }
            None => self.under(&field.attrs, |reader| visit::visit_field(reader, field)),
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let kind = if module.content.is_some() { Declared::Other } else { Declared::File };
        self.declare(kind, &module.ident, &module.attrs, |reader| {
            let around = mem::take(&mut reader.scope);
            reader.within(None, |reader| visit::visit_item_mod(reader, module));
            let inner = mem::replace(&mut reader.scope, around);
            let path = module.attrs.iter().find_map(|attribute| value(attribute, "path"));
            let scope = module.content.is_some().then_some(inner);
            reader.scope.children.push(Child { name: plain(&module.ident), path, scope });
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = implementor(&item.self_ty);
        if let Some((of, _)) = &item.trait_
            && of.segments.last().is_some_and(|last| last.ident == "Error")
        {
            self.syntax.errors.push((item.impl_token.span.start().line, name.clone()));
        }
        self.under(&item.attrs, |reader| {
            reader.within(Some(name), |reader| visit::visit_item_impl(reader, item));
        });
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, Visibility::Inherited);
        self.under(&item.attrs, |reader| reader.scope.import(&item.tree, &[], is_public));
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = &item.ident {
            self.declare(Declared::Other, name, &item.attrs, |reader| {
                reader.scope.items.insert(plain(name));
                if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                    reader.scope.exported.push(plain(name));
                }
                reader.visit_macro(&item.mac);
            });
            return;
        }
        self.under(&item.attrs, |reader| match item.mac.parse_body::<syn::File>() {
            Ok(body) => {
                reader.visit_path(&item.mac.path);
                body.items.iter().for_each(|item| SyntaxReader::visit_item(reader, item));
            }
            Err(_) => reader.visit_macro(&item.mac),
        });
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scope.read_tokens(call.tokens.clone());
        self.read_tokens(call.tokens.clone());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
            self.scope.mention(&path.segments[0].ident, names);
        }
        visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.scope.words.insert(plain(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            Stmt::Expr(Expr::Call(call), _) => &call.attrs,
            Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
            Stmt::Expr(Expr::If(condition), _) => &condition.attrs,
            _ => return visit::visit_stmt(self, statement),
        };
        self.under(attributes, |reader| visit::visit_stmt(reader, statement));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.under(&arm.attrs, |reader| visit::visit_arm(reader, arm));
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        self.under(&field.attrs, |reader| visit::visit_field_value(reader, field));
    }

    /// The paths in an attribute are no code.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else { return };
        if list.path.is_ident("doc") {
            let aliases = conditions(list);
            let alias = |meta: &Meta| matches!(meta, Meta::NameValue(alias) if alias.path.is_ident("alias"));
            self.syntax.aliases.extend(aliases.iter().filter(|meta| alias(meta)).filter_map(text));
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// What `keyword` declares in the tokens of a macro. A name and `after` follow it.
fn declared(keyword: &Ident, after: &[TokenTree]) -> Option<Declared> {
    match keyword.to_string().as_str() {
        "struct" | "enum" | "union" | "trait" => match after.first()? {
            TokenTree::Group(_) => Some(Declared::Type),
            TokenTree::Punct(mark) if ['<', ':', ';'].contains(&mark.as_char()) => Some(Declared::Type),
            _ => None,
        },
        "fn" => after.iter().find_map(|token| match token {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                Some(Declared::Function { end: body.span_close().start().line })
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => Some(Declared::Other),
            _ => None,
        }),
        _ => None,
    }
}

fn is_error(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(name) if name == "Error")
}

fn function(body: &Block) -> Declared {
    Declared::Function { end: body.brace_token.span.close().start().line }
}

/// The text of `#[name = "text"]`.
fn value(attribute: &Attribute, name: &str) -> Option<String> {
    if attribute.path().is_ident(name) { text(&attribute.meta) } else { None }
}

fn text(meta: &Meta) -> Option<String> {
    let Meta::NameValue(meta) = meta else { return None };
    match &meta.value {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// The name of the type that an `impl` is for, or `_` for a type without one.
fn implementor(of: &Type) -> String {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| plain(&last.ident)).unwrap_or_default(),
        Type::Reference(reference) => implementor(&reference.elem),
        _ => "_".to_string(),
    }
}

/// Whether attributes say that only tests compile what they stand on.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.map(|attribute| &attribute.meta).any(needs_test)
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") || list.path.is_ident("cfg") => {
            conditions(list).iter().any(needs_test)
        }
        _ => false,
    }
}

/// What stands between the parentheses of an attribute.
fn conditions(list: &syn::MetaList) -> Vec<Meta> {
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    list.parse_args_with(parse).into_iter().flatten().collect()
}
