//! [`HeadChanges`]: what the head of a reply gets or loses once it is written.
//!
//! `files.rs` and `error_page.rs` write whole heads, most of them prebuilt. A route's rules change
//! the head afterwards, so that a site without rules pays nothing for them.

use crate::responder::Reply;
use selvedge_site::Rules;
use std::borrow::Cow;

/// The changes of one head, in the order in which they are made.
#[derive(Default)]
pub(super) struct HeadChanges {
    changes: Vec<(Cow<'static, str>, FieldChange)>,
    /// `Content-Encoding` and `Content-Language`, which belong to content and not to an error.
    content: Vec<(&'static str, String)>,
}

enum FieldChange {
    /// It is there once, with this value.
    Set(String),
    /// It is there once more.
    Append(String),
    Remove,
}

impl HeadChanges {
    /// The fields of a route's rules.
    pub(super) fn add_rules(&mut self, rules: &Rules, path: &[u8]) {
        for rule in &rules.headers {
            let change = match &rule.value {
                Some(value) => FieldChange::Set(value.clone()),
                None => FieldChange::Remove,
            };
            self.changes.push((rule.name.clone().into(), change));
        }
        if let Some(value) = cache_control(rules, path) {
            self.content.push(("Cache-Control", value.to_owned()));
        }
    }

    pub(super) fn set(&mut self, name: &'static str, value: String) {
        self.changes.push((name.into(), FieldChange::Set(value)));
    }

    pub(super) fn append(&mut self, name: &'static str, value: &str) {
        self.changes.push((name.into(), FieldChange::Append(value.to_owned())));
    }

    pub(super) fn append_all(&mut self, fields: Vec<(&'static str, String)>) {
        let changes = fields.into_iter().map(|(name, value)| (name.into(), FieldChange::Append(value)));
        self.changes.extend(changes);
    }

    /// Coding and language of the content, for a reply that has it.
    pub(super) fn content(&mut self, coding: Option<&'static str>, language: Option<&str>) {
        self.content.extend(coding.map(|coding| ("Content-Encoding", coding.to_owned())));
        self.content.extend(language.map(|language| ("Content-Language", language.to_owned())));
    }

    /// Changes the head of `reply`, which begins at `start` of `out`.
    pub(super) fn apply(&mut self, start: usize, out: &mut Vec<u8>, reply: &Reply) {
        if matches!(reply.status.code(), 200 | 206 | 304) {
            let content = self.content.drain(..).map(|(name, value)| (name.into(), FieldChange::Set(value)));
            // A rule of the route for the same field is made last.
            self.changes.splice(0..0, content);
        }
        if self.changes.is_empty() {
            return;
        }
        let end = out[start..].windows(4).position(|four| four == b"\r\n\r\n");
        let end = start + end.expect("a reply has a head") + 2;
        let mut lines: Vec<Cow<'_, [u8]>> =
            out[start..end].split_inclusive(|&byte| byte == b'\n').map(Cow::Borrowed).collect();
        for (name, change) in &self.changes {
            let is_it = |line: &[u8]| {
                let (found, rest) = line.split_at_checked(name.len()).unwrap_or_default();
                found.eq_ignore_ascii_case(name.as_bytes()) && rest.starts_with(b":")
            };
            if !matches!(change, FieldChange::Append(_)) {
                let mut first = true;
                lines.retain(|line| std::mem::take(&mut first) || !is_it(line));
            }
            if let FieldChange::Set(value) | FieldChange::Append(value) = change {
                lines.push(Cow::Owned(format!("{name}: {value}\r\n").into_bytes()));
            }
        }
        let head = lines.concat();
        out.splice(start..end, head);
    }
}

/// The value of `Cache-Control` for `path`.
pub(super) fn cache_control<'r>(rules: &'r Rules, path: &[u8]) -> Option<&'r str> {
    rules.cache_control.iter().find(|(glob, _)| glob.is_match(path)).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::Rest;
    use crate::status::Status;
    use selvedge_site::HeaderRule;

    fn changed(rules: &Rules, status: Status) -> String {
        let mut out = b"before".to_vec();
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: s\r\nX-A: 1\r\nx-a: 2\r\n\r\nX-A: body\r\n\r\n");
        let mut fields = HeadChanges::default();
        fields.add_rules(rules, b"/a.css");
        fields.content(Some("br"), None);
        fields.append("Vary", "Accept-Encoding");
        fields.apply(6, &mut out, &Reply { status, content_bytes: 0, rest: Rest::Nothing });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads_are_changed_and_bodies_are_not() {
        let rule = |name: &str, value: Option<&str>| HeaderRule {
            name: name.into(),
            value: value.map(str::to_owned),
        };
        let rules = Rules {
            headers: vec![rule("X-A", Some("3")), rule("Server", None), rule("HTTP/1.1 200 OK", None)],
            cache_control: vec![
                ("*.css".parse().unwrap(), "no".into()),
                ("**.css".parse().unwrap(), "yes".into()),
            ],
            ..Rules::default()
        };
        assert_eq!(
            changed(&rules, Status::OK),
            "beforeHTTP/1.1 200 OK\r\nCache-Control: yes\r\nContent-Encoding: br\r\nX-A: 3\r\n\
             Vary: Accept-Encoding\r\n\r\nX-A: body\r\n\r\n"
        );
        assert!(!changed(&rules, Status::NOT_FOUND).contains("Content-Encoding"));
    }
}
