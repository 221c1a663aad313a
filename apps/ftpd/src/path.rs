//! [`VirtualPath`]: a path as a client sees it, from the root of its account.
//!
//! A path is normal by construction: no empty component, no `.` and no `..`. So `..` never reaches
//! the kernel but through a symbolic link, and `tree.rs` keeps those below the root.

/// The longest path in bytes that Linux takes, with the NUL at its end.
const PATH_MAX: usize = 4096;
/// The longest name of a file in bytes.
const NAME_MAX: usize = 255;

/// The names of files that are being stored begin so. Clients neither see nor name them.
pub(crate) const RESERVED: &[u8] = b".selvedge-ftpd.";

/// A path from the root of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VirtualPath {
    /// Components with `/` between them; empty for the root.
    inner: Vec<u8>,
}

/// Why a text is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    TooLong,
    /// CR, LF or NUL: a name with one of them would break the lines of a list.
    ControlCharacter,
    /// A name that the server keeps for itself.
    Reserved,
}

impl VirtualPath {
    /// The path that `text` means in the directory `self`. `..` in the root is the root.
    ///
    /// # Errors
    /// See [`NameError`].
    pub(crate) fn join(&self, text: &[u8]) -> Result<VirtualPath, NameError> {
        let mut inner = if text.starts_with(b"/") { Vec::new() } else { self.inner.clone() };
        for component in text.split(|&byte| byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => inner.truncate(inner.iter().rposition(|&byte| byte == b'/').unwrap_or(0)),
                name if name.iter().any(|byte| b"\r\n\0".contains(byte)) => {
                    return Err(NameError::ControlCharacter);
                }
                name if name.starts_with(RESERVED) => return Err(NameError::Reserved),
                name if name.len() > NAME_MAX => return Err(NameError::TooLong),
                name => {
                    if !inner.is_empty() {
                        inner.push(b'/');
                    }
                    inner.extend_from_slice(name);
                }
            }
        }
        if inner.len() >= PATH_MAX { Err(NameError::TooLong) } else { Ok(VirtualPath { inner }) }
    }

    /// The path for the kernel, relative to the directory of the root.
    pub(crate) fn relative(&self) -> &[u8] {
        if self.inner.is_empty() { b"." } else { &self.inner }
    }

    /// The path as the client knows it, from `/`.
    pub(crate) fn absolute(&self) -> Vec<u8> {
        [b"/", &self.inner[..]].concat()
    }

    /// The directory that the path lies in, and its last component; `None` for the root.
    pub(crate) fn split(&self) -> Option<(VirtualPath, &[u8])> {
        if self.inner.is_empty() {
            return None;
        }
        let (directory, name) = match self.inner.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&self.inner[..slash], &self.inner[slash + 1..]),
            None => (&[][..], &self.inner[..]),
        };
        Some((VirtualPath { inner: directory.to_vec() }, name))
    }

    /// Whether a file may get this path: its last component is UTF-8 (RFC 2640) and has no control
    /// character.
    pub(crate) fn may_be_new(&self) -> bool {
        self.split().is_some_and(|(_, name)| {
            std::str::from_utf8(name).is_ok_and(|name| !name.chars().any(char::is_control))
        })
    }
}

/// Whether a list shows a name: no line of a list has two, and files that are being stored do not
/// exist yet.
pub(crate) fn is_shown(name: &[u8]) -> bool {
    !name.starts_with(RESERVED) && !name.iter().any(|byte| b"\r\n".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(directory: &str, text: &str) -> String {
        let directory = VirtualPath::default().join(directory.as_bytes()).unwrap();
        String::from_utf8(directory.join(text.as_bytes()).unwrap().absolute()).unwrap()
    }

    #[test]
    fn relative_and_absolute_paths() {
        for (directory, text, expected) in [
            ("/", "", "/"),
            ("/", "a", "/a"),
            ("/a", "b/c/", "/a/b/c"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../../..", "/"),
            ("/a/b", "/c/./d//e", "/c/d/e"),
            ("/a", "../../etc/passwd", "/etc/passwd"),
            ("/", "...", "/..."),
            ("/", "\u{e4} b", "/\u{e4} b"),
        ] {
            assert_eq!(joined(directory, text), expected, "{directory} {text}");
        }
    }

    #[test]
    fn what_is_no_path() {
        let root = VirtualPath::default();
        let long = [b'x'; 256];
        assert_eq!(root.join(&long), Err(NameError::TooLong));
        assert_eq!(root.join(&b"xx/".repeat(1400)), Err(NameError::TooLong));
        for text in [&b"a\nb"[..], b"a/b\r", b"\0"] {
            assert_eq!(root.join(text), Err(NameError::ControlCharacter), "{text:?}");
        }
        assert_eq!(root.join(b"a/.selvedge-ftpd.1"), Err(NameError::Reserved));
    }

    #[test]
    fn parts_of_a_path() {
        let path = VirtualPath::default().join(b"a/b/c").unwrap();
        let (directory, name) = path.split().unwrap();
        assert_eq!((directory.relative(), name), (&b"a/b"[..], &b"c"[..]));
        let (root, name) =
            VirtualPath::default().join(b"a").unwrap().split().map(|(d, n)| (d, n.to_vec())).unwrap();
        assert_eq!((root.relative(), &name[..]), (&b"."[..], &b"a"[..]));
        assert!(VirtualPath::default().split().is_none());
    }

    #[test]
    fn names_of_new_files_are_utf_8() {
        let may = |text: &[u8]| VirtualPath::default().join(text).unwrap().may_be_new();
        assert!(may("a/\u{4e2d}".as_bytes()) && may(b"a b"));
        assert!(
            !may(b"\xe4") && !may(b"a\tb") && !may(b"\x1b[2J") && !may("\u{85}".as_bytes()) && !may(b"/")
        );
        assert!(is_shown(b"a") && is_shown(b"\xff") && !is_shown(b"a\nb") && !is_shown(b".selvedge-ftpd.0"));
    }

    proptest! {
        /// A list of components says the same.
        #[test]
        fn a_list_of_components(start in "(/[ab.]{1,2}){0,3}", text in "/?([ab.]{0,3}/){0,6}[ab.]{0,2}") {
            let mut expected: Vec<&str> = Vec::new();
            let both = if text.starts_with('/') { text.clone() } else { format!("{start}/{text}") };
            for part in both.split('/') {
                match part {
                    "" | "." => {}
                    ".." => drop(expected.pop()),
                    part => expected.push(part),
                }
            }
            prop_assert_eq!(joined(&start, &text), format!("/{}", expected.join("/")));
        }
    }
}
