//! `Json`: a JSON text that is being written. `dump.rs`, `counters.rs` and `timeline.rs` write with
//! it; nothing in this crate reads JSON.

use std::fmt::{Display, Write};

/// A JSON text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Json {
    text: String,
    /// Whether the next element is the first of its array or object.
    first: bool,
}

/// A whole text.
pub(crate) fn text(write: impl FnOnce(&mut Json)) -> String {
    let mut json = Json { text: String::new(), first: true };
    write(&mut json);
    json.text
}

impl Json {
    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Json)) {
        self.between('{', '}', members);
    }

    pub(crate) fn array<T>(&mut self, of: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Json, T)) {
        self.between('[', ']', |json| {
            for element in of {
                json.comma();
                write(json, element);
            }
        });
    }

    /// Within an object: the name, and then what `value` writes.
    pub(crate) fn member(&mut self, name: &str, value: impl FnOnce(&mut Json)) {
        self.comma();
        self.quoted(name);
        self.text.push(':');
        value(self);
    }

    pub(crate) fn number(&mut self, name: &str, value: impl Display) {
        self.member(name, |json| json.value(value));
    }

    /// Within an array.
    pub(crate) fn value(&mut self, value: impl Display) {
        let _ = write!(self.text, "{value}");
    }

    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.member(name, |json| json.quoted(value));
    }

    /// Left out if there is none.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.number(name, value);
        }
    }

    fn between(&mut self, open: char, close: char, inside: impl FnOnce(&mut Json)) {
        self.text.push(open);
        self.first = true;
        inside(self);
        self.first = false;
        self.text.push(close);
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.text.push(',');
        }
    }

    fn quoted(&mut self, value: &str) {
        self.text.push('"');
        for c in value.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                c if c < ' ' => {
                    let _ = write!(self.text, "\\u{:04x}", c as u32);
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let written = text(|json| {
            json.object(|json| {
                json.string("a \"name\"", "back\\slash\n\u{1}ü");
                json.member("empty", |json| json.object(|_| {}));
                json.member("list", |json| {
                    json.array([1u32, 2], |json, n| json.object(|json| json.number("n", n)));
                });
                json.maybe("none", None::<u8>);
                json.maybe("some", Some(0.5));
            });
        });
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        let expected = serde_json::json!({
            "a \"name\"": "back\\slash\n\u{1}ü", "empty": {}, "list": [{"n": 1}, {"n": 2}], "some": 0.5
        });
        assert_eq!(read, expected);
    }
}
