//! [`Accounts`]: the users that may log in, what each may do, and which directory is its root.
//!
//! The file of users has lines of `name:hash:root:rights`. `selvedge-httpd` takes
//! the same hashes, and the same code verifies them.

use selvedge_site::password::Users;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What an account may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Read files and lists.
    pub(crate) read: bool,
    /// Store new files, append to files, make directories.
    pub(crate) write: bool,
    /// Delete, rename, and replace what is stored.
    pub(crate) delete: bool,
}

impl FromStr for Rights {
    type Err = &'static str;

    /// Reads some of the letters `r`, `w` and `d`.
    fn from_str(text: &str) -> Result<Rights, &'static str> {
        let mut rights = Rights::default();
        for letter in text.chars() {
            match letter {
                'r' => rights.read = true,
                'w' => rights.write = true,
                'd' => rights.delete = true,
                _ => return Err("rights are some of the letters r, w and d"),
            }
        }
        if text.is_empty() { Err("there are no rights: r reads, w writes, d deletes") } else { Ok(rights) }
    }
}

/// A user that may log in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) rights: Rights,
    pub(crate) is_anonymous: bool,
}

/// All users of a server.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Users,
    named: HashMap<String, Arc<Account>>,
    anonymous: Option<Arc<Account>>,
}

/// A line of the file of users that is wrong. No hash is part of the message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AccountsError {
    line: usize,
    message: String,
}

impl fmt::Display for AccountsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for AccountsError {}

impl Accounts {
    /// The accounts of a file of users, and the anonymous one, if there is one. Empty lines and
    /// lines that begin with `#` are left out.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub(crate) fn read(text: &str, anonymous: Option<Account>) -> Result<Accounts, AccountsError> {
        let mut named = HashMap::new();
        // The same lines without root and rights, so that the numbers of lines stay.
        let mut passwords = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let wrong = |message: &str| AccountsError { line: index + 1, message: message.to_owned() };
                let account = account(line).map_err(wrong)?;
                let (name, hash) = (&account.name, line.split(':').nth(1).expect("`account` has found it"));
                passwords.push_str(&format!("{name}:{hash}"));
                named.insert(account.name.clone(), Arc::new(account));
            }
            passwords.push('\n');
        }
        let users = Users::read(&passwords).map_err(|(line, message)| AccountsError { line, message })?;
        Ok(Accounts { users, named, anonymous: anonymous.map(Arc::new) })
    }

    /// The account of anonymous clients, if `name` asks for it and there is one.
    pub(crate) fn anonymous(&self, name: &[u8]) -> Option<Arc<Account>> {
        let asks = [&b"anonymous"[..], b"ftp"].iter().any(|known| name.eq_ignore_ascii_case(known));
        self.anonymous.clone().filter(|_| asks)
    }

    /// The account of this name, if the password is right. It blocks for tens of milliseconds, and
    /// for as long if there is no such name.
    pub(crate) fn verify(&self, name: &[u8], password: &[u8]) -> Option<Arc<Account>> {
        let name = String::from_utf8_lossy(name);
        let is_right = self.users.verify(&name, password);
        self.named.get(&*name).cloned().filter(|_| is_right)
    }
}

/// The account in `name:hash:root:rights`. The root may have a `:` in it.
fn account(line: &str) -> Result<Account, &'static str> {
    const FORM: &str = "not of the form name:hash:root:rights";
    let (name, rest) = line.split_once(':').ok_or(FORM)?;
    let (_, rest) = rest.split_once(':').ok_or(FORM)?;
    let (root, rights) = rest.rsplit_once(':').ok_or(FORM)?;
    if !root.starts_with('/') {
        return Err("the root is no absolute path");
    }
    if ["anonymous", "ftp"].iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err("the name is that of anonymous clients");
    }
    Ok(Account { name: name.to_owned(), root: root.into(), rights: rights.parse()?, is_anonymous: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: &str = include_str!("../../../crates/site/tests/suite/six.txt");

    #[test]
    fn lines_of_users() {
        let text = format!("# staff\n\nada:{}:/srv/a:b:rwd\n", SIX.trim());
        let accounts = Accounts::read(&text, None).unwrap();
        let ada = accounts.verify(b"ada", b"secret").unwrap();
        assert_eq!((ada.name.as_str(), ada.root.to_str().unwrap()), ("ada", "/srv/a:b"));
        assert_eq!(ada.rights, Rights { read: true, write: true, delete: true });
        assert!(accounts.verify(b"ada", b"Secret").is_none());
        assert!(accounts.verify(b"bob", b"secret").is_none());
        assert!(accounts.anonymous(b"anonymous").is_none());
    }

    #[test]
    fn anonymous_clients_have_two_names() {
        let account = Account {
            name: "anonymous".into(),
            root: "/".into(),
            rights: Rights::default(),
            is_anonymous: true,
        };
        let accounts = Accounts::read("", Some(account)).unwrap();
        assert!(accounts.anonymous(b"ftp").is_some() && accounts.anonymous(b"Anonymous").is_some());
        assert!(accounts.anonymous(b"root").is_none());
        assert!(accounts.verify(b"root", b"").is_none());
    }

    #[test]
    fn wrong_lines_are_told_without_their_secrets() {
        for (text, line) in [
            ("ada", 1),
            ("\nada:$6$x:/srv", 2),
            ("ada:$6$x:srv:r", 1),
            ("ada:$6$x:/srv:x", 1),
            ("ada:$6$x:/srv:", 1),
            ("ada:plain:/srv:r", 1),
            ("ftp:$6$x:/srv:r", 1),
            ("ada:$6$x:/srv:r\nada:$6$y:/srv:r", 2),
        ] {
            let error = Accounts::read(text, None).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(!error.to_string().contains("plain") && !error.to_string().contains("$6$x"), "{error}");
        }
    }
}
