//! Lists over a data connection: LIST, NLST and MLSD.

use super::{Session, denied, refusal};
use crate::accounts::Rights;
use crate::command::Verb;
use crate::listing::{Facts, fact_line, long_line};
use crate::path::VirtualPath;
use crate::reply::Reply;
use crate::transfer::send_bytes;
use crate::tree::{Tree, TreeEntry, TreeError, is_directory};
use selvedge::http::date;
use selvedge_site::Glob;
use std::io;
use std::time::SystemTime;

impl Session {
    pub(super) async fn list(&mut self, verb: Verb, argument: &[u8]) -> io::Result<Reply> {
        self.parameters.restart = 0;
        let permanent = if verb == Verb::Mlsd { 550 } else { 450 };
        if !self.rights().read {
            return Ok(denied(permanent));
        }
        let (all, argument) = if verb == Verb::Mlsd { (true, argument) } else { without_options(argument) };
        let path = match self.path(argument, 501) {
            Ok(path) => path,
            Err(reply) => return Ok(reply),
        };
        let request = ListRequest {
            verb,
            all,
            argument: argument.to_vec(),
            path,
            facts: self.parameters.facts,
            rights: self.rights(),
        };
        let lines = match self.on_disk(move |tree| request.lines(tree)).await {
            Ok(lines) => lines,
            Err(TreeError::NotDirectory) if verb == Verb::Mlsd => {
                return Ok(refusal(TreeError::NotDirectory, 501));
            }
            Err(error) => return Ok(refusal(error, permanent)),
        };
        let (plan, progress) = match self.link_plan() {
            Ok(plan) => plan,
            Err(reply) => return Ok(reply),
        };
        let transfer = async { send_bytes(&mut plan.connect().await?, &lines).await };
        let outcome = self.carry(&Reply::new(150, "The list follows."), &progress, transfer).await;
        self.conclude(outcome).await
    }
}

/// The path behind options such as `-la`, which clients send because other servers give them to
/// `ls`; and whether names that begin with a dot are wanted.
fn without_options(mut argument: &[u8]) -> (bool, &[u8]) {
    let mut all = false;
    while let Some(option) = argument.strip_prefix(b"-") {
        let (letters, rest) = match option.iter().position(|&byte| byte == b' ') {
            Some(space) => (&option[..space], &option[space + 1..]),
            None => (option, &option[option.len()..]),
        };
        all |= letters.contains(&b'a');
        argument = rest;
    }
    (all, argument)
}

/// A list that a client wants.
#[derive(Debug)]
struct ListRequest {
    verb: Verb,
    all: bool,
    /// The path as the client has written it.
    argument: Vec<u8>,
    path: VirtualPath,
    facts: Facts,
    rights: Rights,
}

impl ListRequest {
    /// The lines of the list, each with its end. It blocks.
    ///
    /// # Errors
    /// `NotDirectory` where MLSD names a file; those of the tree.
    fn lines(&self, tree: &Tree) -> Result<Vec<u8>, TreeError> {
        let (prefix, entries) = self.entries(tree)?;
        let now = date::seconds(SystemTime::now());
        let mut out = Vec::new();
        for entry in entries {
            match self.verb {
                Verb::List => out.extend(long_line(&entry, now)),
                Verb::Mlsd => out.extend(fact_line(&entry, self.facts, self.rights)),
                // The client gives the name to RETR as it is.
                _ => out.extend([&prefix[..], &entry.name].concat()),
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(out)
    }

    /// What stands before each name for NLST, and the entries.
    fn entries(&self, tree: &Tree) -> Result<(Vec<u8>, Vec<TreeEntry>), TreeError> {
        match tree.look(&self.path) {
            Ok(status) if is_directory(&status) => {
                let mut entries = tree.list(&self.path)?;
                entries.retain(|entry| self.all || !entry.name.starts_with(b"."));
                let mut prefix = self.argument.clone();
                if !prefix.is_empty() && !prefix.ends_with(b"/") {
                    prefix.push(b'/');
                }
                Ok((prefix, entries))
            }
            Ok(_) if self.verb == Verb::Mlsd => Err(TreeError::NotDirectory),
            Ok(status) => Ok((Vec::new(), vec![TreeEntry { name: self.argument.clone(), status }])),
            Err(TreeError::Missing) if self.verb != Verb::Mlsd => self.matching(tree),
            Err(error) => Err(error),
        }
    }

    /// The entries that match the last component, if that is a pattern with `*` or `?`.
    fn matching(&self, tree: &Tree) -> Result<(Vec<u8>, Vec<TreeEntry>), TreeError> {
        let (directory, name) = self.path.split().ok_or(TreeError::Missing)?;
        let pattern = std::str::from_utf8(name).ok().filter(|name| is_pattern(name));
        let glob: Glob = pattern.and_then(|name| name.parse().ok()).ok_or(TreeError::Missing)?;
        let shows_dots = self.all || name.starts_with(b".");
        let mut entries = tree.list(&directory)?;
        entries.retain(|entry| glob.is_match(&entry.name) && (shows_dots || !entry.name.starts_with(b".")));
        if entries.is_empty() {
            return Err(TreeError::Missing);
        }
        let end = self.argument.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        Ok((self.argument[..end].to_vec(), entries))
    }
}

/// Whether a name has `*` or `?` in it. A [`Glob`] has braces too, which could make one pattern
/// stand for many.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?']) && !name.contains(['{', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars() {
        assert!(is_pattern("*.txt") && is_pattern("a?"));
        assert!(!is_pattern("a") && !is_pattern("{a,b}*"));
    }

    #[test]
    fn options_of_ls_are_no_path() {
        for (argument, all, path) in [
            ("", false, ""),
            ("a", false, "a"),
            ("-l", false, ""),
            ("-la a b", true, "a b"),
            ("-l -a x", true, "x"),
            ("a -l", false, "a -l"),
        ] {
            assert_eq!(without_options(argument.as_bytes()), (all, path.as_bytes()), "{argument}");
        }
    }
}
