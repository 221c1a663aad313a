//! Gives up the privileges of root once the addresses are bound: [`drop_to`].

use crate::startup_error::StartupError;
use rustix::process::{Gid, Uid, getgid, getuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use std::fs;

/// A line of `/etc/passwd` or `/etc/group`: the fields of the entry called `name`.
fn entry(file: &str, name: &str) -> Result<Option<Vec<String>>, StartupError> {
    let text = fs::read_to_string(file).map_err(|error| StartupError::other(format!("{file}: {error}")))?;
    let mut entries = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
    Ok(entries.find(|fields| fields.first().is_some_and(|first| first == name)))
}

/// The numbers of a user: its own, and that of its group. A number may be given in place of a name.
fn user(name: &str) -> Result<(u32, u32), StartupError> {
    if let Ok(number) = name.parse() {
        return Ok((number, number));
    }
    let fields = entry("/etc/passwd", name)?.unwrap_or_default();
    match (fields.get(2).map(|id| id.parse()), fields.get(3).map(|id| id.parse())) {
        (Some(Ok(uid)), Some(Ok(gid))) => Ok((uid, gid)),
        _ => Err(StartupError::other(format!("there is no user {name:?} in /etc/passwd"))),
    }
}

fn group(name: &str) -> Result<u32, StartupError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let fields = entry("/etc/group", name)?.unwrap_or_default();
    match fields.get(2).map(|id| id.parse()) {
        Some(Ok(gid)) => Ok(gid),
        _ => Err(StartupError::other(format!("there is no group {name:?} in /etc/group"))),
    }
}

/// Whether a process with the user and the group `own` is as `wanted`.
fn is_own(wanted: (Option<u32>, Option<u32>), own: (u32, u32)) -> bool {
    wanted.0.is_none_or(|uid| uid == own.0) && wanted.1.is_none_or(|gid| gid == own.1)
}

/// Makes the process that of `user_name` and `group_name`. The process must have one OS thread,
/// because the kernel keeps the user for each; later ones inherit it.
///
/// # Errors
/// There is no such user, the process has other OS threads, or it is not root.
pub(crate) fn drop_to(user_name: Option<&str>, group_name: Option<&str>) -> Result<(), StartupError> {
    if user_name.is_none() && group_name.is_none() {
        return Ok(());
    }
    let found = user_name.map(user).transpose()?;
    let gid = match (group_name, found) {
        (Some(name), _) => Some(group(name)?),
        (None, found) => found.map(|(_, gid)| gid),
    };
    let uid = found.map(|(uid, _)| uid);
    if !getuid().is_root() {
        let named_gid = gid.filter(|_| group_name.is_some());
        let is_own = is_own((uid, named_gid), (getuid().as_raw(), getgid().as_raw()));
        let message = "only root can become another user or group".to_owned();
        return if is_own { Ok(()) } else { Err(StartupError::other(message)) };
    }
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(StartupError::other(format!(
            "the process has {threads} OS threads before it gives up its privileges"
        )));
    }
    let failed = |what: &str, errno: rustix::io::Errno| StartupError::other(format!("{what}: {errno}"));
    if let Some(gid) = gid.map(Gid::from_raw) {
        set_thread_groups(&[gid]).map_err(|errno| failed("give up groups", errno))?;
        set_thread_gid(gid).map_err(|errno| failed("change the group", errno))?;
    }
    if let Some(uid) = uid.map(Uid::from_raw) {
        set_thread_uid(uid).map_err(|errno| failed("change the user", errno))?;
        if !uid.is_root() && set_thread_uid(Uid::ROOT).is_ok() {
            return Err(StartupError::other("the process can become root again"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(user("root").unwrap(), (0, 0));
        assert_eq!(user("1234").unwrap(), (1234, 1234));
        assert_eq!(group("root").unwrap(), 0);
        for (wanted, is_same) in [
            ((None, Some(7)), true),
            ((None, Some(8)), false),
            ((Some(5), None), true),
            ((Some(6), Some(7)), false),
        ] {
            assert_eq!(is_own(wanted, (5, 7)), is_same, "{wanted:?}");
        }
        assert!(user("no such user").is_err() && group("no such group").is_err());
    }
}
