//! Lists of directories: lines of LIST in the form of `ls -l`, and facts of MLST and MLSD (RFC 3659
//! §7).

use crate::accounts::Rights;
use crate::tree::{TreeEntry, is_directory};
use selvedge::fs::FileStatus;
use selvedge::http::date;

/// LIST shows the time of a file that is younger than half a year, as `ls` does, and else the year.
const RECENT: u64 = 182 * 86_400;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment of Unix time as text, in parts.
struct Moment {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    text: String,
}

impl Moment {
    fn at(second: u64) -> Moment {
        Moment { text: String::from_utf8_lossy(&date::http(second)).into_owned() }
    }

    fn of(status: &FileStatus) -> (u64, Moment) {
        let second = u64::try_from(status.modified.0).unwrap_or(0);
        (second, Moment::at(second))
    }

    fn day(&self) -> &str {
        &self.text[5..7]
    }

    fn month(&self) -> &str {
        &self.text[8..11]
    }

    fn year(&self) -> &str {
        &self.text[12..16]
    }

    /// Hours, minutes and seconds.
    fn time(&self) -> &str {
        &self.text[17..25]
    }
}

/// The time of a file's last change, as MDTM and the fact `modify` have it: `YYYYMMDDHHMMSS`, UTC.
pub(crate) fn time_value(status: &FileStatus) -> String {
    let (_, moment) = Moment::of(status);
    let month = MONTHS.iter().position(|month| *month == moment.month()).expect("a date has a month") + 1;
    format!("{}{month:02}{}{}", moment.year(), moment.day(), moment.time().replace(':', ""))
}

/// A line of LIST, without its end. `now` is in seconds of Unix time.
pub(crate) fn long_line(entry: &TreeEntry, now: u64) -> Vec<u8> {
    let status = &entry.status;
    let mut mode = String::from(if is_directory(status) { "d" } else { "-" });
    for (index, letter) in "rwxrwxrwx".chars().enumerate() {
        mode.push(if status.mode >> (8 - index) & 1 == 1 { letter } else { '-' });
    }
    let (second, moment) = Moment::of(status);
    let when = match second <= now && now - second < RECENT {
        true => &moment.time()[..5],
        false => moment.year(),
    };
    let (month, day) = (moment.month(), moment.day());
    let head = format!("{mode}   1 ftp      ftp      {:>12} {month} {day} {when:>5} ", status.len);
    [head.as_bytes(), &entry.name].concat()
}

/// The names of the facts that the server knows, in the order in which it tells them.
const FACTS: [&str; 5] = ["Type", "Size", "Modify", "Perm", "Unique"];

/// The facts that a client has chosen by OPTS MLST; all of them at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts([bool; FACTS.len()]);

impl Default for Facts {
    fn default() -> Facts {
        Facts([true; FACTS.len()])
    }
}

impl Facts {
    /// The facts that a list with `;` behind each name has. Unknown names mean nothing.
    pub(crate) fn chosen(list: &str) -> Facts {
        Facts(FACTS.map(|fact| list.split(';').any(|name| name.eq_ignore_ascii_case(fact))))
    }

    /// The names, each with `;` behind it; in a list of all names, `mark` follows those chosen.
    pub(crate) fn names(&self, all: bool) -> String {
        let chosen = FACTS.iter().zip(self.0).filter(|(_, chosen)| all || *chosen);
        chosen.map(|(name, chosen)| format!("{name}{};", if all && chosen { "*" } else { "" })).collect()
    }
}

/// A line of MLSD or MLST, without its end: facts, a space, and the name.
pub(crate) fn fact_line(entry: &TreeEntry, facts: Facts, rights: Rights) -> Vec<u8> {
    let status = &entry.status;
    let is_directory = is_directory(status);
    let mut out = Vec::new();
    for (name, _) in FACTS.iter().zip(facts.0).filter(|(_, chosen)| *chosen) {
        let value = match *name {
            "Type" => if is_directory { "dir" } else { "file" }.to_owned(),
            // The size of a directory says nothing.
            "Size" if is_directory => continue,
            "Size" => status.len.to_string(),
            "Modify" => time_value(status),
            "Perm" => permissions(is_directory, rights),
            _ => format!("{:x}g{:x}", status.device, status.inode),
        };
        out.extend_from_slice(format!("{name}={value};").as_bytes());
    }
    out.push(b' ');
    out.extend_from_slice(&entry.name);
    out
}

/// The commands that the account may apply, one letter each (RFC 3659 §7.5.5).
fn permissions(is_directory: bool, rights: Rights) -> String {
    let letters: &[(char, bool)] = match is_directory {
        false => &[
            ('a', rights.write),
            ('d', rights.delete),
            ('f', rights.delete),
            ('r', rights.read),
            ('w', rights.write && rights.delete),
        ],
        true => &[
            ('c', rights.write),
            ('d', rights.delete),
            ('e', true),
            ('f', rights.delete),
            ('l', rights.read),
            ('m', rights.write),
            ('p', rights.delete),
        ],
    };
    letters.iter().filter(|(_, may)| *may).map(|(letter, _)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, mode: u32, second: i64) -> TreeEntry {
        let status =
            FileStatus { device: 0x1a, inode: 0xff, mode, len: 10, modified: (second, 5), changed: (0, 0) };
        TreeEntry { name: name.as_bytes().to_vec(), status }
    }

    #[test]
    fn lines_of_list() {
        let second = 784_111_777;
        let file = entry("a b", 0o100_644, second);
        let line = |entry, now| String::from_utf8(long_line(entry, now)).unwrap();
        let recent = "-rw-r--r--   1 ftp      ftp                10 Nov 06 08:49 a b";
        assert_eq!(line(&file, 784_111_777), recent);
        let old = "-rw-r--r--   1 ftp      ftp                10 Nov 06  1994 a b";
        assert_eq!(line(&file, 784_111_777 + RECENT), old);
        assert_eq!(line(&file, 784_111_776), old, "a time to come");
        let directory = entry("d", 0o40_755, -1);
        assert_eq!(line(&directory, 0), "drwxr-xr-x   1 ftp      ftp                10 Jan 01 00:00 d");
    }

    #[test]
    fn facts() {
        let all = Rights { read: true, write: true, delete: true };
        let reads = Rights { read: true, write: false, delete: false };
        let line =
            |entry: &TreeEntry, facts, rights| String::from_utf8(fact_line(entry, facts, rights)).unwrap();
        let file = entry("a b", 0o100_644, 784_111_777);
        assert_eq!(
            line(&file, Facts::default(), all),
            "Type=file;Size=10;Modify=19941106084937;Perm=adfrw;Unique=1agff; a b"
        );
        let directory = entry("d", 0o40_755, 0);
        assert_eq!(
            line(&directory, Facts::chosen("TYPE;size;perm;"), reads),
            "Type=dir;Perm=el; d",
            "a directory has no size"
        );
        assert_eq!(line(&directory, Facts::chosen("perm;"), all), "Perm=cdeflmp; d");
        assert_eq!(line(&file, Facts::chosen(""), all), " a b");
    }

    #[test]
    fn names_of_facts() {
        assert_eq!(Facts::default().names(true), "Type*;Size*;Modify*;Perm*;Unique*;");
        let facts = Facts::chosen("modify;TYPE;charset;");
        assert_eq!(facts.names(false), "Type;Modify;");
        assert_eq!(facts.names(true), "Type*;Size;Modify*;Perm;Unique;");
        assert_eq!(Facts::chosen("").names(false), "");
    }
}
