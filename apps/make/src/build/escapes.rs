//! Takes escapes for terminals out of the text that commands write.
//!
//! `Status::end` calls `without_escapes` if the standard output is no terminal and `CLICOLOR_FORCE`
//! does not keep the colours. An escape is a control sequence of ECMA-48. As in ninja, only
//! sequences that end with a letter are known here.

use std::borrow::Cow;

/// The text without escapes for terminals: a file or a pipe shows no colours. An escape is `ESC [`
/// up to the next letter. Another `ESC` goes alone. O(length).
pub(super) fn without_escapes(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut escape) = memchr::memchr(b'\x1b', text) else { return text.into() };
    let (mut kept, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        kept.extend_from_slice(&rest[..escape]);
        rest = &rest[escape + 1..];
        if let Some(inner) = rest.strip_prefix(b"[") {
            let letter = inner.iter().position(u8::is_ascii_alphabetic);
            rest = &inner[letter.map_or(inner.len(), |letter| letter + 1)..];
        }
        match memchr::memchr(b'\x1b', rest) {
            Some(next) => escape = next,
            None => break,
        }
    }
    kept.extend_from_slice(rest);
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_text_stays() {
        for (text, kept) in [
            ("plain", "plain"),
            ("\x1b[1;31merror\x1b[0m: x\n", "error: x\n"),
            ("a\x1b", "a"),
            ("a\x1b[12", "a"),
            ("\x1bMa", "Ma"),
            ("\x1b[K\x1b[K", ""),
        ] {
            assert_eq!(without_escapes(text.as_bytes()), kept.as_bytes(), "{text:?}");
        }
    }
}
