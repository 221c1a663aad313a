//! [`TransferLog`]: a line for each file that was sent or stored, in the form of `xferlog`, which
//! other FTP servers write and programs of statistics read.

use crate::options::LogTarget;
use selvedge::http::date;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Where the lines go.
#[derive(Debug)]
pub(crate) enum TransferLog {
    Off,
    Stdout,
    File(PathBuf, Mutex<File>),
}

/// A transfer that is over.
#[derive(Debug)]
pub(crate) struct TransferRecord<'a> {
    pub(crate) client: IpAddr,
    pub(crate) user: &'a str,
    pub(crate) is_anonymous: bool,
    /// The path as the client knows it.
    pub(crate) path: &'a [u8],
    pub(crate) is_ascii: bool,
    /// Whether the client has stored the file.
    pub(crate) is_incoming: bool,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
    pub(crate) is_complete: bool,
}

impl TransferLog {
    /// # Errors
    /// With the path in the message: the file cannot be opened for appending.
    pub(crate) fn open(target: &LogTarget) -> io::Result<TransferLog> {
        Ok(match target {
            LogTarget::Off => TransferLog::Off,
            LogTarget::Stdout => TransferLog::Stdout,
            LogTarget::File(path) => TransferLog::File(path.clone(), Mutex::new(appending(path)?)),
        })
    }

    /// Opens the file again, because another program has moved it away.
    ///
    /// # Errors
    /// As for [`open`](Self::open); the log goes on as it was.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        if let TransferLog::File(path, file) = self {
            *file.lock().unwrap_or_else(PoisonError::into_inner) = appending(path)?;
        }
        Ok(())
    }

    /// Appends the line of a transfer, by one write.
    pub(crate) fn put(&self, record: &TransferRecord<'_>) {
        let put = |out: &mut dyn Write| out.write_all(&line(record, SystemTime::now()));
        // The disk may be full, and there is no other place for the line.
        let _ = match self {
            TransferLog::Off => Ok(()),
            TransferLog::Stdout => put(&mut io::stdout().lock()),
            TransferLog::File(_, file) => put(&mut *file.lock().unwrap_or_else(PoisonError::into_inner)),
        };
    }
}

fn appending(path: &PathBuf) -> io::Result<File> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// A line of `xferlog`: time, seconds that it took, client, bytes, file, type, action, direction,
/// access, user, service, authentication, user ID, status.
fn line(record: &TransferRecord<'_>, now: SystemTime) -> Vec<u8> {
    // "Sun, 06 Nov 1994 08:49:37 GMT" becomes "Sun Nov 06 08:49:37 1994".
    let date = date::http(date::seconds(now));
    let date = String::from_utf8_lossy(&date);
    let (weekday, day, month) = (&date[..3], &date[5..7], &date[8..11]);
    let (year, time) = (&date[12..16], &date[17..25]);
    let head = format!(
        "{weekday} {month} {day} {time} {year} {} {} {} ",
        record.took.as_secs_f64().ceil(),
        record.client,
        record.bytes,
    );
    let letter = |yes, one, other| if yes { one } else { other };
    let tail = format!(
        " {} _ {} {} {} ftp 0 * {}\n",
        letter(record.is_ascii, 'a', 'b'),
        letter(record.is_incoming, 'i', 'o'),
        letter(record.is_anonymous, 'a', 'r'),
        record.user,
        letter(record.is_complete, 'c', 'i'),
    );
    // Fields end at spaces, and lines at control characters.
    let path = record.path.iter().map(|&byte| if byte <= b' ' || byte == 127 { b'_' } else { byte });
    head.into_bytes().into_iter().chain(path).chain(tail.into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> TransferRecord<'static> {
        TransferRecord {
            client: [192, 0, 2, 1].into(),
            user: "ada",
            is_anonymous: false,
            path: b"/a b",
            is_ascii: false,
            is_incoming: true,
            bytes: 10,
            took: Duration::from_millis(1200),
            is_complete: true,
        }
    }

    #[test]
    fn a_line_has_the_fields_of_xferlog() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let text = String::from_utf8(line(&record(), now)).unwrap();
        assert_eq!(text, "Sun Nov 06 08:49:37 1994 2 192.0.2.1 10 /a_b b _ i r ada ftp 0 * c\n");
        let other = TransferRecord { is_complete: false, is_incoming: false, is_anonymous: true, ..record() };
        let text = String::from_utf8(line(&other, now)).unwrap();
        assert!(text.ends_with(" b _ o a ada ftp 0 * i\n"), "{text}");
    }

    #[test]
    fn a_log_that_was_moved_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = TransferLog::open(&LogTarget::File(path.clone())).unwrap();
        log.put(&record());
        std::fs::rename(&path, directory.path().join("old")).unwrap();
        log.put(&record());
        log.reopen().unwrap();
        log.put(&record());
        let lines = |name| std::fs::read_to_string(directory.path().join(name)).unwrap().lines().count();
        assert_eq!((lines("old"), lines("log")), (2, 1));
        assert!(TransferLog::open(&LogTarget::File(directory.path().join("none/log"))).is_err());
    }
}
