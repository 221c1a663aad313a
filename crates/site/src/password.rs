//! Names and hashed passwords: [`Users`], read from a file in the form of `htpasswd`.
//!
//! Verifying a password takes tens of milliseconds on purpose, so a server does it on the blocking
//! pool ([`Users::verify`] blocks). A name that is not in the file is verified against a hash of
//! the same kind, so that the time tells no client which names there are.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Names and the hashes of their passwords. Clones share them.
#[derive(Clone, Default)]
pub struct Users {
    hashes: Arc<HashMap<String, String>>,
    /// The hash that a name is verified against that is not there.
    decoy: Option<Arc<str>>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.hashes.keys()).finish()
    }
}

impl Users {
    /// Reads lines of `name:hash`. Empty lines and lines that begin with `#` are left out. Hashes
    /// are Argon2 (`$argon2id$`), bcrypt (`$2y$`), and SHA-crypt (`$5$`, `$6$`).
    ///
    /// # Errors
    /// The number of the line, and what is wrong with it. No hash is part of a message.
    pub fn read(text: &str) -> Result<Users, (usize, String)> {
        let mut hashes = HashMap::new();
        let mut decoy = None;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| Err((at + 1, why.to_owned()));
            let Some((name, hash)) = line.split_once(':') else { return wrong("no : between name and hash") };
            if name.is_empty() {
                return wrong("no name in front of the :");
            }
            if !is_known(hash) {
                return wrong(
                    "the hash is of no kind that is safe: \
                     make one with `htpasswd -B` or `openssl passwd -6`, or use Argon2",
                );
            }
            decoy.get_or_insert_with(|| Arc::from(hash));
            if hashes.insert(name.to_owned(), hash.to_owned()).is_some() {
                return wrong("the name stands on an earlier line too");
            }
        }
        Ok(Users { hashes: Arc::new(hashes), decoy })
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// A number that other users of this process do not have as long as these exist.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.hashes) as usize
    }

    /// Whether `password` is that of `name`. The call blocks for tens of milliseconds.
    pub fn verify(&self, name: &str, password: &[u8]) -> bool {
        match (self.hashes.get(name), &self.decoy) {
            (Some(hash), _) => verify(password, hash),
            (None, Some(decoy)) => verify(password, decoy) & false,
            (None, None) => false,
        }
    }
}

const KINDS: [&str; 7] = ["$argon2id$", "$argon2i$", "$2y$", "$2b$", "$2a$", "$5$", "$6$"];

fn is_known(hash: &str) -> bool {
    KINDS.iter().any(|kind| hash.starts_with(kind))
}

#[cfg(feature = "passwords")]
fn verify(password: &[u8], hash: &str) -> bool {
    use argon2::password_hash::{PasswordHash, PasswordVerifier};
    match hash.split('$').nth(1) {
        Some("argon2id" | "argon2i") => PasswordHash::new(hash)
            .is_ok_and(|parsed| argon2::Argon2::default().verify_password(password, &parsed).is_ok()),
        Some("2y" | "2b" | "2a") => bcrypt::verify(password, hash).unwrap_or(false),
        Some("6") => std::str::from_utf8(password)
            .is_ok_and(|password| sha_crypt::sha512_check(password, hash).is_ok()),
        Some("5") => std::str::from_utf8(password)
            .is_ok_and(|password| sha_crypt::sha256_check(password, hash).is_ok()),
        _ => false,
    }
}

/// Without the feature `passwords` every password is refused.
#[cfg(not(feature = "passwords"))]
fn verify(_: &[u8], _: &str) -> bool {
    false
}

/// The name and the password of an `Authorization` field with the scheme `Basic` (RFC 7617).
///
/// # Examples
/// ```
/// use selvedge_site::password::credentials;
/// let (name, password) = credentials(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").unwrap();
/// assert_eq!((&*name, &*password), ("Aladdin", &b"open sesame"[..]));
/// ```
pub fn credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, token) = value.split_at_checked("Basic ".len())?;
    scheme.eq_ignore_ascii_case(b"basic ").then_some(())?;
    let decoded = base64(token.trim_ascii())?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    Some((name, decoded[colon + 1..].to_vec()))
}

/// Decodes RFC 4648 §4; `None` if it is malformed.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if !text.len().is_multiple_of(4) || digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for &digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_password_file() {
        let users = Users::read("# staff\n\na:$6$salt$x\nb:$2y$05$x\n").unwrap();
        assert_eq!((users.len(), users.is_empty()), (2, false));
        for (text, line) in [("a", 1), ("\n:$6$", 2), ("a:plain", 1), ("a:$6$x\na:$6$y", 2), ("a:$apr1$x", 1)]
        {
            let (at, why) = Users::read(text).unwrap_err();
            assert_eq!(at, line, "{why}");
            assert!(!why.contains("plain"), "a message has no secret");
        }
        assert!(!Users::default().verify("a", b"b"));
    }

    #[test]
    fn basic_credentials() {
        assert_eq!(credentials(b"basic dTo="), Some(("u".into(), Vec::new())));
        assert_eq!(credentials(b"Basic dTpw"), Some(("u".into(), b"p".to_vec())));
        for wrong in
            ["", "Basic", "Bearer dTpw", "Basic dTp", "Basic dT=w", "Basic ====", "Basic dXA=", "Basic d!pw"]
        {
            assert_eq!(credentials(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
