//! [`LogFormat`]: what a line of the access log looks like. The combined format is written by
//! `log.rs` in its own, faster way; the others here.

use crate::date::Clock;
use crate::log::{Line, put_address, put_escaped_text};
use selvedge_json::put_string;
use std::fmt;
use std::str::FromStr;

/// What a line of the access log looks like.
///
/// # Examples
/// ```
/// use selvedge::http::LogFormat;
/// assert_eq!("combined".parse(), Ok(LogFormat::Combined));
/// assert!("$status $path".parse::<LogFormat>().is_ok());
/// assert!("$stats".parse::<LogFormat>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Apache's combined format.
    #[default]
    Combined,
    /// An object of JSON.
    Json,
    /// A text with variables.
    Own(OwnFormat),
}

/// A text with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFormat(Vec<FormatPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum FormatPart {
    Text(String),
    Variable(FormatVariable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormatVariable {
    Address,
    Time,
    Request,
    Method,
    Path,
    Status,
    Bytes,
    Referer,
    UserAgent,
    Host,
}

const VARIABLES: [(&str, FormatVariable); 10] = [
    ("address", FormatVariable::Address),
    ("time", FormatVariable::Time),
    ("request", FormatVariable::Request),
    ("method", FormatVariable::Method),
    ("path", FormatVariable::Path),
    ("status", FormatVariable::Status),
    ("bytes", FormatVariable::Bytes),
    ("referer", FormatVariable::Referer),
    ("user_agent", FormatVariable::UserAgent),
    ("host", FormatVariable::Host),
];

/// A text that is no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormatError(String);

impl fmt::Display for LogFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LogFormatError {}

impl FromStr for LogFormat {
    type Err = LogFormatError;

    fn from_str(text: &str) -> Result<LogFormat, LogFormatError> {
        match text {
            "combined" => return Ok(LogFormat::Combined),
            "json" => return Ok(LogFormat::Json),
            _ => {}
        }
        if text.contains(char::is_control) {
            return Err(LogFormatError(format!("{text:?} has a control character")));
        }
        let mut parts = Vec::new();
        let mut pieces = text.split('$');
        let first = pieces.next().unwrap_or_default();
        parts.push(FormatPart::Text(first.to_owned()));
        for piece in pieces {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
            let end = piece.find(|c| !is_name(c)).unwrap_or(piece.len());
            let (name, rest) = piece.split_at(end);
            let found = VARIABLES.iter().find(|(known, _)| *known == name);
            let (_, variable) = found.ok_or_else(|| {
                let known: Vec<&str> = VARIABLES.iter().map(|(known, _)| *known).collect();
                LogFormatError(format!(
                    "${name} is no variable: there are ${}; or give \"combined\" or \"json\"",
                    known.join(", $")
                ))
            })?;
            parts.push(FormatPart::Variable(*variable));
            parts.push(FormatPart::Text(rest.to_owned()));
        }
        match parts.len() {
            1 => Err(LogFormatError(format!("{text:?} is no format: it has no variable such as $status"))),
            _ => Ok(LogFormat::Own(OwnFormat(parts))),
        }
    }
}

/// The method and the target of a request line.
fn words<'l>(line: &Line<'l>) -> (&'l [u8], &'l [u8]) {
    let mut words = line.request.split(|&byte| byte == b' ');
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

impl LogFormat {
    /// Appends `line` in a format other than the combined one.
    pub(crate) fn put(&self, line: &Line<'_>, clock: &Clock, out: &mut Vec<u8>) {
        match self {
            LogFormat::Combined => {}
            LogFormat::Json => put_object(line, clock, out),
            LogFormat::Own(OwnFormat(parts)) => {
                for part in parts {
                    match part {
                        FormatPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                        FormatPart::Variable(variable) => put_variable(*variable, line, clock, out),
                    }
                }
                out.push(b'\n');
            }
        }
    }
}

fn put_variable(variable: FormatVariable, line: &Line<'_>, clock: &Clock, out: &mut Vec<u8>) {
    match variable {
        FormatVariable::Address => put_address(line.peer, out),
        FormatVariable::Time => out.extend_from_slice(clock.log()),
        FormatVariable::Request => put_escaped_text(line.request, out),
        FormatVariable::Method => put_escaped_text(words(line).0, out),
        FormatVariable::Path => put_escaped_text(words(line).1, out),
        FormatVariable::Status => out.extend_from_slice(&line.status.digits()),
        FormatVariable::Bytes => out.extend_from_slice(line.content_bytes.to_string().as_bytes()),
        FormatVariable::Referer => put_escaped_text(line.referer, out),
        FormatVariable::UserAgent => put_escaped_text(line.user_agent, out),
        FormatVariable::Host => put_escaped_text(line.host, out),
    }
}

fn put_object(line: &Line<'_>, clock: &Clock, out: &mut Vec<u8>) {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut address = Vec::new();
    put_address(line.peer, &mut address);
    let (method, target) = words(line);
    let mut text = String::with_capacity(256);
    for (name, value) in [
        ("{\"time\":", lossy(clock.log())),
        (",\"address\":", lossy(&address)),
        (",\"method\":", lossy(method)),
        (",\"path\":", lossy(target)),
        (",\"host\":", lossy(line.host)),
        (",\"referer\":", lossy(line.referer)),
        (",\"user_agent\":", lossy(line.user_agent)),
    ] {
        text.push_str(name);
        put_string(&value, &mut text);
    }
    let (status, bytes) = (line.status.code(), line.content_bytes);
    text.push_str(&format!(",\"status\":{status},\"bytes\":{bytes}}}\n"));
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    fn logged(format: &str, line: &Line<'_>) -> String {
        let mut out = Vec::new();
        format.parse::<LogFormat>().unwrap().put(line, &Clock::at(971_186_136), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn formats() {
        let line = Line {
            peer: "192.0.2.7".parse().ok(),
            request: b"GET /a\"b HTTP/1.1",
            status: Status::OK,
            content_bytes: 0,
            referer: b"",
            user_agent: b"x\ny",
            host: b"example.org",
        };
        assert_eq!(
            logged("$host $address [$time] \"$request\" $status $bytes $referer", &line),
            "example.org 192.0.2.7 [10/Oct/2000:13:55:36 +0000] \"GET /a\\x22b HTTP/1.1\" 200 0 -\n"
        );
        assert_eq!(logged("$method$path;$user_agent", &line), "GET/a\\x22b;x\\x0Ay\n");
        assert_eq!(
            logged("json", &line),
            "{\"time\":\"10/Oct/2000:13:55:36 +0000\",\"address\":\"192.0.2.7\",\"method\":\"GET\",\
             \"path\":\"/a\\\"b\",\"host\":\"example.org\",\"referer\":\"\",\"user_agent\":\"x\\ny\",\
             \"status\":200,\"bytes\":0}\n"
        );
        for wrong in ["", "plain", "$nothing", "$status\n"] {
            assert!(wrong.parse::<LogFormat>().is_err(), "{wrong}");
        }
    }
}
