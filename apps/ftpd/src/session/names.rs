//! What is done with names: CWD, CDUP, PWD, MKD, RMD, DELE, RNFR, RNTO; SIZE, MDTM, MLST, and STAT
//! with a path.

use super::{Session, denied, refusal};
use crate::command::Verb;
use crate::listing::{fact_line, long_line, time_value};
use crate::path::VirtualPath;
use crate::reply::{Reply, quoted};
use crate::tree::{TreeEntry, TreeError, is_directory};
use selvedge::http::date;
use std::time::SystemTime;

impl Session {
    pub(super) async fn change_names(&mut self, verb: Verb, argument: &[u8]) -> Reply {
        match verb {
            Verb::Pwd => {
                let text =
                    [&quoted(&self.parameters.directory.absolute())[..], b" is the directory."].concat();
                Reply::new(257, text)
            }
            Verb::Cdup => self.enter_directory(b"..", 200).await,
            Verb::Cwd => self.enter_directory(argument, 250).await,
            _ => match self.path(argument, 550) {
                Ok(path) => self.change_name(verb, path).await,
                Err(reply) => reply,
            },
        }
    }

    async fn enter_directory(&mut self, argument: &[u8], code: u16) -> Reply {
        let path = match self.path(argument, 550) {
            Ok(path) => path,
            Err(reply) => return reply,
        };
        let looked = path.clone();
        match self.on_disk(move |tree| tree.look(&looked)).await {
            Ok(status) if is_directory(&status) => {
                self.parameters.directory = path;
                Reply::new(code, "The directory is changed.")
            }
            Ok(_) => refusal(TreeError::NotDirectory, 550),
            Err(error) => refusal(error, 550),
        }
    }

    /// One change of one name.
    async fn change_name(&mut self, verb: Verb, path: VirtualPath) -> Reply {
        let rights = self.rights();
        let may = if verb == Verb::Mkd { rights.write } else { rights.delete };
        if !may {
            return denied(550);
        }
        if verb == Verb::Mkd && !path.may_be_new() {
            return refusal(
                if path == VirtualPath::default() { TreeError::Exists } else { TreeError::Name },
                550,
            );
        }
        let changed = path.clone();
        let outcome = self.on_disk(move |tree| match verb {
            Verb::Mkd => tree.make_directory(&changed),
            Verb::Rmd => tree.remove_directory(&changed),
            Verb::Dele => tree.remove_file(&changed),
            _ => tree.look(&changed).map(drop),
        });
        match (outcome.await, verb) {
            (Err(error), _) => refusal(error, 550),
            (Ok(()), Verb::Mkd) => Reply::new(257, [&quoted(&path.absolute())[..], b" is made."].concat()),
            (Ok(()), Verb::Rnfr) => {
                self.parameters.rename_from = Some(path);
                Reply::new(350, "Now the new name.")
            }
            (Ok(()), _) => Reply::new(250, "It is removed."),
        }
    }

    /// RNTO. `from` is the path of an RNFR that came right before.
    pub(super) async fn rename(&mut self, from: Option<VirtualPath>, argument: &[u8]) -> Reply {
        let Some(from) = from else { return Reply::new(503, "RNFR comes first.") };
        let to = match self.path(argument, 553) {
            Ok(to) => to,
            Err(reply) => return reply,
        };
        if !to.may_be_new() {
            return refusal(TreeError::Name, 553);
        }
        match self.on_disk(move |tree| tree.rename(&from, &to, true)).await {
            Ok(()) => Reply::new(250, "It is renamed."),
            Err(error) => refusal(error, 553),
        }
    }

    /// SIZE, MDTM and MLST.
    pub(super) async fn describe(&mut self, verb: Verb, argument: &[u8]) -> Reply {
        if !self.rights().read {
            return denied(550);
        }
        if verb == Verb::Size && !self.parameters.is_binary {
            return Reply::new(550, "In TYPE A a file has no size. Send TYPE I first.");
        }
        let path = match self.path(argument, 550) {
            Ok(path) => path,
            Err(reply) => return reply,
        };
        let looked = path.clone();
        let status = match self.on_disk(move |tree| tree.look(&looked)).await {
            Ok(status) => status,
            Err(error) => return refusal(error, 550),
        };
        match verb {
            Verb::Mlst => {
                let entry = TreeEntry { name: path.absolute(), status };
                let facts = vec![fact_line(&entry, self.parameters.facts, self.rights())];
                Reply::of_lines(250, "Facts", facts, "End")
            }
            _ if is_directory(&status) => refusal(TreeError::NotFile, 550),
            Verb::Size => Reply::new(213, status.len.to_string()),
            _ => Reply::new(213, time_value(&status)),
        }
    }

    /// STAT with a path: the list that LIST sends, over the control connection.
    pub(super) async fn status_of(&mut self, argument: &[u8]) -> Reply {
        if !self.rights().read {
            return denied(550);
        }
        let path = match self.path(argument, 501) {
            Ok(path) => path,
            Err(reply) => return reply,
        };
        let now = date::seconds(SystemTime::now());
        let listed = self.on_disk(move |tree| {
            let status = tree.look(&path)?;
            let code = if is_directory(&status) { 212 } else { 213 };
            let entries = match code {
                212 => tree.list(&path)?,
                _ => vec![TreeEntry { name: path.absolute(), status }],
            };
            Ok((code, entries.iter().map(|entry| long_line(entry, now)).collect()))
        });
        match listed.await {
            Ok((code, lines)) => Reply::of_lines(code, "Status", lines, "End"),
            Err(error) => refusal(error, 450),
        }
    }
}
