//! The server's reports to its operator: [`begin`] says which of them are written, and how a line
//! looks.
//!
//! On a terminal a report is a line with the program's name, as all messages of a command are. In a
//! file it has the time, the severity and the number of the process. For systemd's journal, which
//! notes these itself, it has the severity's number in front (`sd-daemon(3)`).

use selvedge_http::{Severity, date, report_to};
use std::env;
use std::fmt;
use std::io::Write;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How the lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStyle {
    Command,
    File,
    Journal,
}

/// The least of the reports that are written, and how their lines look. A reload changes both.
static WRITTEN: Mutex<(Severity, LineStyle)> = Mutex::new((Severity::Notice, LineStyle::Command));

/// From now on the reports up to `least` go to the standard error stream. `is_file` says that a
/// file takes the lines. Later calls change both.
pub(crate) fn begin(least: Severity, is_file: bool) {
    let style = match (is_file, env::var_os("JOURNAL_STREAM")) {
        (true, _) => LineStyle::File,
        (false, Some(_)) => LineStyle::Journal,
        (false, None) => LineStyle::Command,
    };
    *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = (least, style);
    report_to(|severity, message| {
        let (least, style) = *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        if severity <= least {
            // The stream may be closed, and there is no other place for the words.
            let _ = std::io::stderr().write_all(line(style, SystemTime::now(), severity, message).as_bytes());
        }
    });
}

fn line(style: LineStyle, time: SystemTime, severity: Severity, message: fmt::Arguments<'_>) -> String {
    match style {
        LineStyle::Command => format!("selvedge-httpd: {message}\n"),
        LineStyle::File => {
            let time = date::log(date::seconds(time));
            let (time, name) = (String::from_utf8_lossy(&time), severity.name());
            format!("[{time}] {name} {}: {message}\n", process::id())
        }
        LineStyle::Journal => {
            let number = match severity {
                Severity::Error => 3,
                Severity::Warning => 4,
                Severity::Notice => 5,
            };
            format!("<{number}>{message}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let of = |style| line(style, time, Severity::Warning, format_args!("{} are open", 9));
        assert_eq!(of(LineStyle::Command), "selvedge-httpd: 9 are open\n");
        let file = format!("[06/Nov/1994:08:49:37 +0000] warning {}: 9 are open\n", process::id());
        assert_eq!(of(LineStyle::File), file);
        assert_eq!(of(LineStyle::Journal), "<4>9 are open\n");
    }
}
