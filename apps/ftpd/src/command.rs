//! [`Command`]: a line of the control connection, taken apart.
//!
//! [`VERBS`] is the table of all commands: the name, whether an argument follows, whether the
//! client must have logged in. `session` does what a [`Verb`] says; `HELP` prints the table.

use crate::reply::Reply;

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Abor,
    Acct,
    Allo,
    Appe,
    Auth,
    Cdup,
    Cwd,
    Dele,
    Eprt,
    Epsv,
    Feat,
    Help,
    List,
    Mdtm,
    Mkd,
    Mlsd,
    Mlst,
    Mode,
    Nlst,
    Noop,
    Opts,
    Pass,
    Pasv,
    Pbsz,
    Port,
    Prot,
    Pwd,
    Quit,
    Rein,
    Rest,
    Retr,
    Rmd,
    Rnfr,
    Rnto,
    Site,
    Size,
    Stat,
    Stor,
    Stou,
    Stru,
    Syst,
    Type,
    User,
}

/// Whether an argument follows a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arity {
    None,
    Optional,
    Required,
}

/// A command that there is.
#[derive(Debug)]
pub(crate) struct VerbRow {
    pub(crate) name: &'static str,
    pub(crate) verb: Verb,
    arity: Arity,
    /// What follows the name, for people.
    pub(crate) argument: &'static str,
    /// Whether it is refused before the login (530).
    pub(crate) needs_login: bool,
}

const fn open(name: &'static str, verb: Verb, arity: Arity, argument: &'static str) -> VerbRow {
    VerbRow { name, verb, arity, argument, needs_login: false }
}

const fn closed(name: &'static str, verb: Verb, arity: Arity, argument: &'static str) -> VerbRow {
    VerbRow { name, verb, arity, argument, needs_login: true }
}

/// All commands. The names that begin with X are those of RFC 775, which RFC 1123 §4.1.3.1 keeps.
pub(crate) const VERBS: [VerbRow; 49] = [
    closed("ABOR", Verb::Abor, Arity::Optional, ""),
    open("ACCT", Verb::Acct, Arity::Required, "account"),
    closed("ALLO", Verb::Allo, Arity::Required, "bytes [R bytes]"),
    closed("APPE", Verb::Appe, Arity::Required, "file"),
    open("AUTH", Verb::Auth, Arity::Required, "TLS"),
    closed("CDUP", Verb::Cdup, Arity::None, ""),
    closed("CWD", Verb::Cwd, Arity::Required, "directory"),
    closed("DELE", Verb::Dele, Arity::Required, "file"),
    closed("EPRT", Verb::Eprt, Arity::Required, "|1 or 2|address|port|"),
    closed("EPSV", Verb::Epsv, Arity::Optional, "[1, 2 or ALL]"),
    open("FEAT", Verb::Feat, Arity::None, ""),
    open("HELP", Verb::Help, Arity::Optional, "[command]"),
    closed("LIST", Verb::List, Arity::Optional, "[-a] [path]"),
    closed("MDTM", Verb::Mdtm, Arity::Required, "file"),
    closed("MKD", Verb::Mkd, Arity::Required, "directory"),
    closed("MLSD", Verb::Mlsd, Arity::Optional, "[directory]"),
    closed("MLST", Verb::Mlst, Arity::Optional, "[path]"),
    closed("MODE", Verb::Mode, Arity::Required, "S"),
    closed("NLST", Verb::Nlst, Arity::Optional, "[-a] [directory]"),
    open("NOOP", Verb::Noop, Arity::Optional, ""),
    open("OPTS", Verb::Opts, Arity::Required, "MLST [facts] or UTF8 ON"),
    open("PASS", Verb::Pass, Arity::Optional, "password"),
    closed("PASV", Verb::Pasv, Arity::None, ""),
    open("PBSZ", Verb::Pbsz, Arity::Required, "0"),
    closed("PORT", Verb::Port, Arity::Required, "h1,h2,h3,h4,p1,p2"),
    open("PROT", Verb::Prot, Arity::Required, "C or P"),
    closed("PWD", Verb::Pwd, Arity::None, ""),
    open("QUIT", Verb::Quit, Arity::Optional, ""),
    open("REIN", Verb::Rein, Arity::Optional, ""),
    closed("REST", Verb::Rest, Arity::Required, "bytes"),
    closed("RETR", Verb::Retr, Arity::Required, "file"),
    closed("RMD", Verb::Rmd, Arity::Required, "directory"),
    closed("RNFR", Verb::Rnfr, Arity::Required, "path"),
    closed("RNTO", Verb::Rnto, Arity::Required, "path"),
    closed("SITE", Verb::Site, Arity::Required, "HELP"),
    closed("SIZE", Verb::Size, Arity::Required, "file"),
    closed("STAT", Verb::Stat, Arity::Optional, "[path]"),
    closed("STOR", Verb::Stor, Arity::Required, "file"),
    closed("STOU", Verb::Stou, Arity::Optional, ""),
    closed("STRU", Verb::Stru, Arity::Required, "F"),
    open("SYST", Verb::Syst, Arity::None, ""),
    closed("TYPE", Verb::Type, Arity::Required, "A [N], I or L 8"),
    open("USER", Verb::User, Arity::Required, "name"),
    closed("XCUP", Verb::Cdup, Arity::None, ""),
    closed("XCWD", Verb::Cwd, Arity::Required, "directory"),
    closed("XMKD", Verb::Mkd, Arity::Required, "directory"),
    closed("XPWD", Verb::Pwd, Arity::None, ""),
    closed("XRMD", Verb::Rmd, Arity::Required, "directory"),
    open("XSYS", Verb::Syst, Arity::None, ""),
];

/// Commands of the RFCs that this server does not have: mounting, the security extensions of
/// RFC 2228 besides TLS, languages, virtual hosts.
const NOT_IMPLEMENTED: [&str; 8] = ["SMNT", "ADAT", "CCC", "MIC", "CONF", "ENC", "LANG", "HOST"];

/// A command and its argument, which is empty if there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    pub(crate) needs_login: bool,
    pub(crate) argument: Vec<u8>,
}

/// Why a line is no command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    Unknown,
    NotImplemented,
    /// The argument is missing, must not be there, or has a CR or a NUL in it.
    Argument(&'static str),
}

impl CommandError {
    pub(crate) fn reply(&self) -> Reply {
        match self {
            CommandError::Unknown => Reply::new(500, "There is no such command."),
            CommandError::NotImplemented => Reply::new(502, "This server does not have that command."),
            CommandError::Argument(name) => {
                let row = row(name.as_bytes()).expect("the name is one of the table");
                Reply::new(501, format!("The argument is wrong: {}", usage(row)))
            }
        }
    }
}

/// The row of a command's name, in any case.
pub(crate) fn row(name: &[u8]) -> Option<&'static VerbRow> {
    VERBS.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

/// How a command is written.
pub(crate) fn usage(row: &VerbRow) -> String {
    format!("{} {}", row.name, row.argument).trim_end().to_owned()
}

/// Takes a line apart: a name, one space, and the argument, of which every byte counts.
///
/// # Errors
/// See [`CommandError`].
pub(crate) fn parse(line: &[u8]) -> Result<Command, CommandError> {
    let (name, argument) = match line.iter().position(|&byte| byte == b' ') {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &line[line.len()..]),
    };
    let Some(row) = row(name) else {
        let is_known = NOT_IMPLEMENTED.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
        return Err(if is_known { CommandError::NotImplemented } else { CommandError::Unknown });
    };
    let fits = match row.arity {
        Arity::None => argument.is_empty(),
        Arity::Optional => true,
        Arity::Required => !argument.is_empty(),
    };
    if !fits || argument.iter().any(|byte| b"\r\n\0".contains(byte)) {
        return Err(CommandError::Argument(row.name));
    }
    Ok(Command { verb: row.verb, needs_login: row.needs_login, argument: argument.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Result<(Verb, String), CommandError> {
        let command = parse(line.as_bytes())?;
        Ok((command.verb, String::from_utf8(command.argument).unwrap()))
    }

    #[test]
    fn names_in_any_case_and_arguments_as_they_are() {
        assert_eq!(parsed("noop"), Ok((Verb::Noop, "".into())));
        assert_eq!(parsed("RetR  two  spaces "), Ok((Verb::Retr, " two  spaces ".into())));
        assert_eq!(parsed("XPWD"), Ok((Verb::Pwd, "".into())));
        assert_eq!(parsed("PASS "), Ok((Verb::Pass, "".into())));
        assert_eq!(parsed("CWD \u{e4}/\u{4e2d}"), Ok((Verb::Cwd, "\u{e4}/\u{4e2d}".into())));
    }

    #[test]
    fn what_is_wrong() {
        for line in ["", " ", "NOPE", "NOO", "NOOPX", "RETR\ta", "\u{ff}"] {
            assert_eq!(parsed(line), Err(CommandError::Unknown), "{line}");
        }
        for line in ["CCC", "lang de", "SMNT x"] {
            assert_eq!(parsed(line), Err(CommandError::NotImplemented), "{line}");
        }
        for (line, name) in
            [("RETR", "RETR"), ("RETR ", "RETR"), ("PWD x", "PWD"), ("CWD a\rb", "CWD"), ("CWD a\0", "CWD")]
        {
            assert_eq!(parsed(line), Err(CommandError::Argument(name)), "{line:?}");
        }
        let reply = CommandError::Argument("TYPE").reply();
        assert_eq!(reply.to_bytes(), b"501 The argument is wrong: TYPE A [N], I or L 8\r\n");
        assert_eq!(CommandError::Unknown.reply().code(), 500);
        assert_eq!(CommandError::NotImplemented.reply().code(), 502);
    }

    #[test]
    fn the_table_is_sorted_and_has_each_name_once() {
        assert!(VERBS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(NOT_IMPLEMENTED.iter().all(|name| row(name.as_bytes()).is_none()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_or_an_error(line in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(command) = parse(&line) {
                prop_assert!(line.ends_with(&command.argument));
                prop_assert!(!command.argument.contains(&b'\r'));
            }
        }

        #[test]
        fn bytes_behind_a_name_are_its_argument(row in 0..VERBS.len(), argument in prop::collection::vec(any::<u8>(), 0..20)) {
            let row = &VERBS[row];
            let line = [row.name.to_lowercase().as_bytes(), b" ", &argument].concat();
            let is_clean = !argument.iter().any(|byte| b"\r\n\0".contains(byte));
            let fits = match row.arity {
                Arity::None => argument.is_empty(),
                Arity::Optional => true,
                Arity::Required => !argument.is_empty(),
            };
            let expected = match is_clean && fits {
                true => Ok(Command { verb: row.verb, needs_login: row.needs_login, argument }),
                false => Err(CommandError::Argument(row.name)),
            };
            prop_assert_eq!(parse(&line), expected);
        }
    }
}
