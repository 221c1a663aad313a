//! [`Json`]: a JSON text that is being written.

use crate::put_string;
use std::fmt::{Display, Write};

/// A JSON text that is being written.
#[derive(Debug, Default)]
pub struct Json {
    text: String,
    /// Whether the next element is the first of its array or object.
    first: bool,
}

/// The whole text that `write` writes.
///
/// # Examples
/// ```
/// let text = selvedge_json::text(|json| {
///     json.object(|json| {
///         json.string("name", "warp");
///         json.member("sizes", |json| json.array([1, 2], |json, size| json.value(size)));
///     });
/// });
/// assert_eq!(text, r#"{"name":"warp","sizes":[1,2]}"#);
/// ```
pub fn text(write: impl FnOnce(&mut Json)) -> String {
    let mut json = Json { text: String::new(), first: true };
    write(&mut json);
    json.text
}

impl Json {
    /// An object with what `members` writes.
    pub fn object(&mut self, members: impl FnOnce(&mut Json)) {
        self.between('{', '}', members);
    }

    /// An array, in which `write` writes an element for each item of `of`.
    pub fn array<T>(&mut self, of: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Json, T)) {
        self.between('[', ']', |json| {
            for element in of {
                json.comma();
                write(json, element);
            }
        });
    }

    /// Within an object: the name, and then what `value` writes.
    pub fn member(&mut self, name: &str, value: impl FnOnce(&mut Json)) {
        self.comma();
        put_string(name, &mut self.text);
        self.text.push(':');
        value(self);
    }

    /// Within an object: a name, and a number or another word of JSON, which is not escaped.
    pub fn number(&mut self, name: &str, value: impl Display) {
        self.member(name, |json| json.value(value));
    }

    /// A number or another word of JSON, which is not escaped.
    pub fn value(&mut self, value: impl Display) {
        let _ = write!(self.text, "{value}");
    }

    /// Within an object: a name and a string.
    pub fn string(&mut self, name: &str, value: &str) {
        self.member(name, |json| put_string(value, &mut json.text));
    }

    /// As [`Json::number`], and nothing if there is no value.
    pub fn maybe(&mut self, name: &str, value: Option<impl Display>) {
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
