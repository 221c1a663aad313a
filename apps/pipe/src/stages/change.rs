//! The stages that change the text of lines or of a stream: `replace`, `prepend`, `append`,
//! `number`, and the changes that are a single word. `stage.rs` calls them.

use super::{around_stream, change_case, replace_in_lines, replaced};
use crate::language::tree::{Change, Pattern};
use crate::regex::{self, chomp};
use selvedge_pipeline::csv::Fields;
#[cfg(feature = "gzip")]
use selvedge_pipeline::gzip;
#[cfg(feature = "zstd")]
use selvedge_pipeline::zstd;
use selvedge_pipeline::{
    DynStage, ItemKind, Number, Transduce, Transducer, append, foreach, group_by, id, if_then_else, json,
    rewrite, satisfies, substitute, substring, suppress, whole_line, xml,
};
use std::io::Write;
use std::ops::ControlFlow;

/// Writes the number of a line before it.
pub fn line_number(number: u64, line: &mut Vec<u8>) {
    write!(line, "{number}:").expect("vectors can be written");
}

/// `number`: each line, with its number before it.
pub(crate) fn numbered() -> DynStage {
    let mut number = 0;
    DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
        number += 1;
        line_number(number, text);
        text.extend_from_slice(line);
    }))
}

/// `prepend` and `append`: the texts around the stream of bytes, or around each line.
pub(crate) fn around(before: &[u8], after: &[u8], kind: ItemKind) -> DynStage {
    if kind == ItemKind::Bytes {
        return DynStage::new(around_stream(before, after));
    }
    let (before, after) = (before.to_vec(), after.to_vec());
    change_line(move |line, text| {
        [&before, line, &after].iter().for_each(|part| text.extend_from_slice(part))
    })
}

/// Changes the text of each line, which stays a line.
fn change_line(f: impl Fn(&[u8], &mut Vec<u8>) + Clone + Send + 'static) -> DynStage {
    DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
        f(chomp(line), text);
        text.push(b'\n');
    }))
}

/// Lines without their ends.
fn bare() -> Transducer<[u8], [u8], impl Transduce<[u8], [u8]> + Clone + Send> {
    rewrite(|line: &[u8], text: &mut Vec<u8>| text.extend_from_slice(chomp(line)))
}

/// `replace`: what stands in place of each match.
pub(crate) fn replace(pattern: &Pattern, with: &[u8], kind: ItemKind) -> DynStage {
    let with = with.to_vec();
    match (pattern, kind) {
        (Pattern::Text(text), ItemKind::Bytes) => {
            DynStage::new(foreach(substring(text), substitute(&with), id()))
        }
        (Pattern::Text(text), _) => {
            let finder = memchr::memmem::Finder::new(text).into_owned();
            change_line(move |mut line, text| {
                while let Some(at) = finder.find(line) {
                    text.extend_from_slice(&line[..at]);
                    text.extend_from_slice(&with);
                    line = &line[at + finder.needle().len()..];
                }
                text.extend_from_slice(line);
            })
        }
        (Pattern::Regex(pattern), kind) => {
            let regex = regex::lines(pattern).expect("the parser has built the same expression");
            if kind == ItemKind::Bytes {
                return DynStage::new(group_by(whole_line()) >> replace_in_lines(regex, &with));
            }
            let mut expanded = Vec::new();
            DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
                let _never_breaks = replaced(&regex, &with, line, &mut expanded, |piece| {
                    text.extend_from_slice(piece);
                    ControlFlow::Continue(())
                });
            }))
        }
    }
}

/// A change that is a single word. A failure of it names the stage `named`.
pub(crate) fn change(change: Change, kind: ItemKind, named: String) -> DynStage {
    match (change, kind) {
        (Change::Uppercase, ItemKind::Bytes) => DynStage::new(change_case(<[u8]>::make_ascii_uppercase)),
        (Change::Lowercase, ItemKind::Bytes) => DynStage::new(change_case(<[u8]>::make_ascii_lowercase)),
        (Change::Uppercase, _) => {
            change_line(|line, text| text.extend(line.iter().map(u8::to_ascii_uppercase)))
        }
        (Change::Lowercase, _) => {
            change_line(|line, text| text.extend(line.iter().map(u8::to_ascii_lowercase)))
        }
        (Change::Suppress, ItemKind::Bytes) => DynStage::new(suppress::<u8, u8>()),
        (Change::Suppress, ItemKind::Lists) => DynStage::new(suppress::<[u8], [u8]>()),
        (Change::Suppress, ItemKind::Records) => DynStage::new(suppress::<Fields, Fields>()),
        (Change::Suppress, ItemKind::Numbers) => DynStage::new(suppress::<Number, Number>()),
        (Change::Unquote, _) => {
            let is_string = satisfies(|line: &[u8]| line.starts_with(b"\""));
            let decode = json::decode_strings().named(named) >> append(b"\n");
            DynStage::new(bare() >> if_then_else(is_string, decode, append(b"\n")))
        }
        (Change::Quote, _) => DynStage::new(bare() >> json::encode_strings().named(named) >> append(b"\n")),
        (Change::Unescape, _) => DynStage::new(bare() >> xml::unescape().named(named) >> append(b"\n")),
        (Change::Escape, _) => DynStage::new(bare() >> xml::escape() >> append(b"\n")),
        // The levels are those of the tools.
        #[cfg(feature = "gzip")]
        (Change::Gzip, _) => DynStage::new(gzip::gzip(6)),
        #[cfg(feature = "gzip")]
        (Change::Gunzip, _) => DynStage::new(gzip::gunzip().named(named)),
        #[cfg(feature = "zstd")]
        (Change::Zstd, _) => DynStage::new(zstd::zstd(3)),
        #[cfg(feature = "zstd")]
        (Change::Unzstd, _) => DynStage::new(zstd::unzstd().named(named)),
    }
}
