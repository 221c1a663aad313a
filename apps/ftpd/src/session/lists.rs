//! Lists over a data connection: LIST, NLST and MLSD.

use std::io;
use std::time::SystemTime;

use selvedge::http::date;

use super::{Session, denied, refusal};
use crate::accounts::Rights;
use crate::command::Verb;
use crate::listing::{Facts, fact_line, long_line};
use crate::path::VirtualPath;
use crate::reply::Reply;
use crate::transfer::send_bytes;
use crate::tree::{Tree, TreeEntry, TreeError, is_directory};

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
            prefix: argument.to_vec(),
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
        let transfer = async { send_bytes(&plan.connect().await?, &lines).await };
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
    prefix: Vec<u8>,
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
        let status = tree.look(&self.path)?;
        let is_list = is_directory(&status);
        let entries = match (is_list, self.verb) {
            (true, _) => tree.list(&self.path)?,
            (false, Verb::Mlsd) => return Err(TreeError::NotDirectory),
            (false, _) => vec![TreeEntry { name: self.prefix.clone(), status }],
        };
        let now = date::seconds(SystemTime::now());
        let mut out = Vec::new();
        for entry in entries {
            if is_list && !self.all && entry.name.starts_with(b".") {
                continue;
            }
            match self.verb {
                Verb::List => out.extend(long_line(&entry, now)),
                Verb::Mlsd => out.extend(fact_line(&entry, self.facts, self.rights)),
                _ => {
                    // The client gives the name to RETR as it is.
                    if is_list && !self.prefix.is_empty() {
                        out.extend_from_slice(self.prefix.strip_suffix(b"/").unwrap_or(&self.prefix));
                        out.push(b'/');
                    }
                    out.extend_from_slice(&entry.name);
                }
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
