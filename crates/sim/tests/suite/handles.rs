//! A `Handle` does on a simulated disk what it does on a real one.

use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use selvedge_io::blocking;
use selvedge_io::fs::Handle;
use selvedge_sim::{Conditions, Disk, World};
use std::path::Path;

const APPENDED: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::CREATE).union(OFlags::CLOEXEC);

fn append_to(path: &Path) -> Result<Handle, Errno> {
    Handle::create(CWD, path, APPENDED, 0o640)
}

/// What is at a path: its permissions, and its content.
fn read(path: &Path) -> Result<(u32, String), Errno> {
    let file = Handle::open(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC)?;
    let mut buffer = [0; 100];
    let length = file.read_at(&mut buffer, 0)?;
    Ok((file.status()?.mode & 0o777, String::from_utf8_lossy(&buffer[..length]).into_owned()))
}

/// A log with two writers, of which one renames it.
fn write_two_logs(below: &Path) -> Result<Vec<String>, Errno> {
    let [path, backup] = ["log", "log.1"].map(|name| below.join(name));
    let mut seen = Vec::new();
    let (one, other) = (append_to(&path)?, append_to(&path)?);
    seen.push(format!("{:?}", (one.write_on(b"one\n")?, other.write_on(b"two\nthr")?, other.position()?)));
    one.cut(8)?;
    seen.push(format!("{:?} {:?}", one.write_on(b"four\n")?, read(&path)?));
    seen.push(format!("{:?}", (one.try_lock()?, one.unlock()?)));
    Handle::rename(&path, &backup)?;
    let later = append_to(&path)?;
    let number = |file: &Handle| file.status().map(|status| status.inode);
    let is_later = number(&Handle::open(CWD, &path, OFlags::PATH | OFlags::CLOEXEC)?)? == number(&later)?;
    let is_found = (Handle::status_at(CWD, &path)?.inode == number(&later)?, Handle::status_at(CWD, "none"));
    seen.push(format!("{:?} {is_found:?}", (is_later, number(&later)? == number(&one)?)));
    later.write_on(b"five\n")?;
    one.write_on(b"six\n")?;
    seen.push(format!("{:?} {:?}", read(&path)?, read(&backup)?));
    Handle::remove(&backup)?;
    seen.push(format!("{:?} {:?}", read(&backup), Handle::remove(&backup)));
    seen.push(format!("{:?}", Handle::rename(&backup, &path)));
    Ok(seen)
}

#[test]
fn it_appends_cuts_renames_and_removes_as_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let real = write_two_logs(directory.path()).unwrap();
    assert_eq!(real[1], r#"5 (416, "one\ntwo\nfour\n")"#);
    let mut disk = Disk::new();
    disk.create_dir_all("/logs").unwrap();
    let world = World::new(1).disk(disk);
    let run = world.run(async { blocking(|| write_two_logs(Path::new("/logs"))).await.unwrap() });
    assert_eq!(run.unwrap().output.unwrap(), real);
}

/// Another program has the lock of a real file. The handle does not wait for it.
#[test]
fn a_lock_that_is_taken_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let (one, other) = (append_to(&path).unwrap(), append_to(&path).unwrap());
    assert!(one.try_lock().unwrap() && !other.try_lock().unwrap());
    one.unlock().unwrap();
    assert!(other.try_lock().unwrap() && !one.try_lock().unwrap());
    drop(other);
    assert!(one.try_lock().unwrap());
}

#[test]
fn a_full_disk_takes_the_beginning() {
    let world = World::new(1).conditions(Conditions { disk_bytes: 4096, ..Conditions::good() });
    let written = || {
        let log = append_to(Path::new("/log"))?;
        Ok::<_, Errno>((log.write_on(&[b'x'; 5000])?, log.write_on(b"y"), log.cut(4000), log.write_on(b"z")))
    };
    let output = world.run(async move { blocking(written).await.unwrap() }).unwrap().output.unwrap();
    assert_eq!(output, (4096, Err(Errno::NOSPC), Ok(()), Ok(1)));
}

/// A real descriptor in a simulated world, such as a standard stream, is out of reach.
#[test]
fn the_real_world_is_out_of_reach() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let handle = Handle::from(std::os::fd::OwnedFd::from(writer));
    assert_eq!(handle.write_on(b"x"), Ok(1));
    assert_eq!(handle.position(), Err(Errno::SPIPE));
    let refused = World::new(1).run(async move { handle.write_on(b"x") }).unwrap().output;
    assert_eq!(refused, Err(Errno::OPNOTSUPP));
}
