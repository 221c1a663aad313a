//! The splitters of a document: `element`, `content` and `attribute`. They take the tokens of
//! `tokens.rs`, and keep no text.

use super::tokens::{Token, TokenKind, Tokens};
use crate::item::Flow;
use crate::role::Splitter;
use crate::splitters::split::Runs;
use crate::stage::{Sections, Sink, Split, Transduce};
use std::sync::Arc;

/// The stage of [`element`] and [`content`].
#[derive(Debug, Clone)]
struct Element {
    tokens: Tokens,
    sections: ElementSections,
}

#[derive(Debug, Clone)]
struct ElementSections {
    name: Arc<[u8]>,
    /// The tags of the element belong to its section.
    with_tags: bool,
    /// How many elements of the name are open.
    depth: u64,
    runs: Runs,
}

/// Each element `name`, from its start tag to its end tag, is a true section. All else is false. An
/// element of the name within one belongs to it.
///
/// An element that is not closed reaches to the end of the text, and markup that is not closed is
/// text.
///
/// # Complexity
/// O(length of the text), and the memory of the longest tag, comment or other markup. Text is not
/// kept, however long it is.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, suppress, wherever, xml};
///
/// let text = "<p>a <i>warp <i>and</i></i><i/> weft<b/></p>";
/// let plain = (from_chunks([text]) >> wherever(suppress(), xml::element("i"))).collect();
/// assert_eq!(plain, b"<p>a  weft<b/></p>");
/// ```
pub fn element(name: &str) -> Splitter<u8, impl Split<u8> + Clone + use<>> {
    let sections =
        ElementSections { name: name.as_bytes().into(), with_tags: true, depth: 0, runs: Runs::default() };
    Splitter::new(Element { tokens: Tokens::for_sections(), sections })
}

/// What lies between the tags of each element `name` is a true section, and may be empty. All else
/// is false. See [`element`].
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, xml};
///
/// let text = "<user><name>ann</name><key/><key>s3<b>c</b>ret</key></user>";
/// let hidden = foreach(xml::content("key"), substitute(b"*"), id());
/// let text = (from_chunks([text]) >> hidden).collect();
/// assert_eq!(text, b"<user><name>ann</name><key/><key>*</key></user>");
/// ```
pub fn content(name: &str) -> Splitter<u8, impl Split<u8> + Clone + use<>> {
    let sections =
        ElementSections { name: name.as_bytes().into(), with_tags: false, depth: 0, runs: Runs::default() };
    Splitter::new(Element { tokens: Tokens::for_sections(), sections })
}

/// The stage of [`attribute`].
#[derive(Debug, Clone)]
struct AttributeValues {
    tokens: Tokens,
    name: Arc<[u8]>,
    runs: Runs,
}

/// The value of each attribute `name`, as it is written and without its quotes, is a true section,
/// and may be empty. All else is false. The attributes of all tags are looked at, and none in
/// comments and other markup.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, xml};
///
/// let text = "<a href='x>y' id=\"1\"/><!-- <a href='z'> --><b href=\"\">href='w'</b>";
/// let hidden = foreach(xml::attribute("href"), substitute(b"#"), id());
/// let text = (from_chunks([text]) >> hidden).collect();
/// assert_eq!(text, b"<a href='#' id=\"1\"/><!-- <a href='z'> --><b href=\"#\">href='w'</b>");
/// ```
pub fn attribute(name: &str) -> Splitter<u8, impl Split<u8> + Clone + use<>> {
    let name = name.as_bytes().into();
    Splitter::new(AttributeValues { tokens: Tokens::for_sections(), name, runs: Runs::default() })
}

/// Tags become sections, one for each value.
struct MarkAttributes<'a, P> {
    name: &'a [u8],
    runs: &'a mut Runs,
    out: &'a mut P,
}

impl<P: Sections<u8>> MarkAttributes<'_, P> {
    fn other(&mut self, text: &[u8]) -> Flow {
        self.runs.next(false, self.out)?;
        self.out.part_chunk(false, text)
    }
}

impl<P: Sections<u8>> Sink<[u8]> for MarkAttributes<'_, P> {
    fn put(&mut self, text: &[u8]) -> Flow {
        let mut from = 0;
        for (name, value) in Token::of(text).attribute_places() {
            if name == self.name {
                self.other(&text[from..value.start])?;
                self.runs.next(true, self.out)?;
                self.out.part_chunk(true, &text[value.clone()])?;
                self.runs.close(self.out)?;
                from = value.end;
            }
        }
        self.other(&text[from..])
    }
}

impl Split<u8> for AttributeValues {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        let AttributeValues { tokens, name, runs } = self;
        tokens.put_chunk(chunk, &mut MarkAttributes { name, runs, out })
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let rest = std::mem::take(&mut self.tokens.carry);
        if !rest.is_empty() {
            MarkAttributes { name: &[], runs: &mut self.runs, out }.other(&rest)?;
        }
        self.runs.close(out)
    }
}

/// Tokens become sections.
struct MarkElements<'a, P> {
    sections: &'a mut ElementSections,
    out: &'a mut P,
}

impl<P: Sections<u8>> MarkElements<'_, P> {
    fn part(&mut self, verdict: bool, text: &[u8]) -> Flow {
        self.sections.runs.next(verdict, self.out)?;
        self.out.part_chunk(verdict, text)
    }
}

impl<P: Sections<u8>> Sink<[u8]> for MarkElements<'_, P> {
    fn put(&mut self, text: &[u8]) -> Flow {
        let token = Token::of(text);
        let (with_tags, depth) = (self.sections.with_tags, self.sections.depth);
        let named = token.name() == &*self.sections.name;
        match token.kind() {
            TokenKind::Start if named => {
                self.sections.depth += 1;
                if depth > 0 || with_tags {
                    return self.part(true, text);
                }
                self.part(false, text)?;
                // The section begins, also if nothing follows before the end tag.
                self.sections.runs.next(true, self.out)
            }
            TokenKind::End if named && depth == 1 => {
                self.sections.depth = 0;
                if with_tags {
                    self.part(true, text)?;
                    return self.sections.runs.close(self.out);
                }
                self.sections.runs.close(self.out)?;
                self.part(false, text)
            }
            TokenKind::Empty if named && depth == 0 && with_tags => {
                self.part(true, text)?;
                self.sections.runs.close(self.out)
            }
            kind => {
                self.sections.depth -= u64::from(kind == TokenKind::End && named && depth > 0);
                self.part(depth > 0, text)
            }
        }
    }
}

impl Split<u8> for Element {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        self.tokens.put_chunk(chunk, &mut MarkElements { sections: &mut self.sections, out })
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let rest = std::mem::take(&mut self.tokens.carry);
        if !rest.is_empty() {
            let verdict = self.sections.depth > 0;
            MarkElements { sections: &mut self.sections, out }.part(verdict, &rest)?;
        }
        self.sections.runs.close(out)
    }
}
