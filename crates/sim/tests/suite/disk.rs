//! The simulated disk behaves like the real disk, and loses content that was not synced.

use proptest::prelude::*;
use selvedge_core::{Time, round_robin_over, sleep, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::fs::{self, AlignedBuf, File};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::timeout;
use selvedge_sim::{Conditions, Disk, World, simulate};
use selvedge_sim::{Random, each_seed};
use std::collections::BTreeSet;
use std::io::{self, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One operation on a tree. It names files that earlier steps have opened by their number.
#[derive(Clone, Debug)]
enum Step {
    Open {
        path: usize,
        read: bool,
        write: bool,
        append: bool,
        truncate: bool,
        create: bool,
        new: bool,
        flags: i32,
    },
    Close(usize),
    Read {
        file: usize,
        offset: u64,
        length: usize,
    },
    Write {
        file: usize,
        offset: u64,
        length: usize,
    },
    /// Reads from the file's position on.
    ReadOn {
        file: usize,
        length: usize,
    },
    WriteOn {
        file: usize,
        length: usize,
    },
    Seek {
        file: usize,
        to: SeekFrom,
    },
    SetLen {
        file: usize,
        len: u64,
    },
    Sync(usize),
    Status(usize),
    StatusAt(usize),
    CreateDir(usize),
    RemoveDir(usize),
    RemoveFile(usize),
    Rename(usize, usize),
    HardLink(usize, usize),
    Symlink(usize, usize),
    ReadDir(usize),
    ReadAll(usize),
    ReadLink(usize),
    LinkStatus(usize),
    Canonical(usize),
    SetPermissions(usize, u32),
    CreateDirAll(usize),
    RemoveDirAll(usize),
    Copy(usize, usize),
}

/// The names are few, so that steps use the same names.
const PATHS: [&str; 20] = [
    "a",
    "b",
    "c",
    "d",
    "d/a",
    "d/b",
    "d/e",
    "d/e/a",
    "d/../a",
    "d/e/../../b",
    "./a",
    "a/",
    "d/",
    "d/e/",
    "a/b",
    "d/.",
    "d/..",
    "b/c",
    "d/e/c/f",
    "d/e/b",
];
/// The targets of symbolic links. They are relative, so that both trees have the same targets.
const TARGETS: [&str; 8] = ["a", "d", "../a", "e", "nowhere", ".", "..", "d/e/"];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let file = || 0..6_usize;
    let offset = || prop_oneof![4 => 0..10_000_u64, 1 => Just(4096), 1 => Just(1 << 20)];
    let flags = prop_oneof![
        6 => Just(0),
        1 => Just(libc::O_NOFOLLOW),
        1 => Just(libc::O_DIRECTORY),
        1 => Just(libc::O_SYNC)
    ];
    prop_oneof![
        8 => (path(), any::<[bool; 6]>(), flags).prop_map(|(path, [read, write, append, truncate, create, new], flags)| {
            let new = new && create && write;
            // The result of this pair of flags depends on the kernel's version.
            let flags = if create && flags == libc::O_DIRECTORY { 0 } else { flags };
            Step::Open { path, read, write, append: append && new, truncate, create, new, flags }
        }),
        2 => file().prop_map(Step::Close),
        4 => (file(), offset(), 0..9000_usize).prop_map(|(file, offset, length)| Step::Read { file, offset, length }),
        6 => (file(), offset(), 0..9000_usize).prop_map(|(file, offset, length)| Step::Write { file, offset, length }),
        2 => (file(), 0..9000_usize).prop_map(|(file, length)| Step::ReadOn { file, length }),
        3 => (file(), 0..9000_usize).prop_map(|(file, length)| Step::WriteOn { file, length }),
        1 => (file(), offset()).prop_map(|(file, to)| Step::Seek { file, to: SeekFrom::Start(to) }),
        1 => (file(), -9000..100_i64).prop_map(|(file, by)| Step::Seek { file, to: SeekFrom::End(by) }),
        2 => (file(), offset()).prop_map(|(file, len)| Step::SetLen { file, len }),
        1 => file().prop_map(Step::Sync),
        1 => file().prop_map(Step::Status),
        2 => path().prop_map(Step::StatusAt),
        4 => path().prop_map(Step::CreateDir),
        2 => path().prop_map(Step::RemoveDir),
        3 => path().prop_map(Step::RemoveFile),
        4 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => (path(), path()).prop_map(|(from, to)| Step::HardLink(from, to)),
        3 => (0..TARGETS.len(), path()).prop_map(|(to, path)| Step::Symlink(to, path)),
        2 => path().prop_map(Step::ReadDir),
        2 => path().prop_map(Step::ReadAll),
        1 => path().prop_map(Step::ReadLink),
        1 => path().prop_map(Step::LinkStatus),
        2 => path().prop_map(Step::Canonical),
        1 => (path(), 0..0o1000_u32).prop_map(|(path, mode)| Step::SetPermissions(path, mode)),
        2 => path().prop_map(Step::CreateDirAll),
        1 => path().prop_map(Step::RemoveDirAll),
        2 => (path(), path()).prop_map(|(from, to)| Step::Copy(from, to)),
    ]
}

/// The outcome of a step: a result in words, or an error number.
type Outcome = Result<String, Option<i32>>;

fn errno(error: io::Error) -> Option<i32> {
    let source =
        error.get_ref().and_then(|error| error.source()).and_then(|error| error.downcast_ref::<io::Error>());
    source.unwrap_or(&error).raw_os_error()
}

fn words<T: std::fmt::Debug>(result: io::Result<T>) -> Outcome {
    result.map(|value| format!("{value:?}")).map_err(errno)
}

/// The part of the status on which both file systems must agree.
fn status(metadata: fs::Metadata) -> (u32, Option<(u64, u64)>) {
    let file = metadata.is_file().then(|| (metadata.len(), metadata.nlink()));
    (metadata.mode() & 0o170_000, file)
}

async fn take(root: &Path, files: &mut [Option<File>; 6], step: &Step, number: usize) -> Outcome {
    // The path keeps the slashes at its end, as `join` does.
    let at = |path: &usize| PathBuf::from(format!("{}/{}", root.display(), PATHS[*path]));
    match step {
        &Step::Open { path, read, write, append, truncate, create, new, flags } => {
            let mut options = File::options();
            options.read(read).write(write).append(append).truncate(truncate);
            options.create(create).create_new(new).mode(0o600).custom_flags(flags);
            let opened = options.open(at(&path)).await.map_err(errno)?;
            files[number % 6] = Some(opened);
            Ok("open".into())
        }
        Step::Close(file) => {
            files[*file] = None;
            Ok("closed".into())
        }
        &Step::Read { file, offset, length } => {
            let Some(file) = &files[file] else { return Ok("none".into()) };
            let (read, buffer) = file.read_at(vec![7; length], offset).await;
            words(read.map(|read| buffer[..read].to_vec()))
        }
        &Step::Write { file, offset, length } => {
            let Some(file) = &files[file] else { return Ok("none".into()) };
            words(file.write_at(vec![number as u8; length], offset).await.0)
        }
        &Step::ReadOn { file, length } => {
            let Some(file) = &mut files[file] else { return Ok("none".into()) };
            let mut buffer = vec![7; length];
            let read = file.read(&mut buffer).await;
            words(read.map(|read| (buffer[..read].to_vec(), file.position())))
        }
        &Step::WriteOn { file, length } => {
            let Some(file) = &mut files[file] else { return Ok("none".into()) };
            words(file.write_all(&vec![number as u8; length]).await.map(|()| file.position()))
        }
        &Step::Seek { file, to } => match &mut files[file] {
            // The length of a directory depends on the file system.
            Some(file) if file.metadata().await.is_ok_and(|status| status.is_file()) => {
                words(file.seek(to).await)
            }
            _ => Ok("none".into()),
        },
        &Step::SetLen { file, len } => match &files[file] {
            Some(file) => words(file.set_len(len).await),
            None => Ok("none".into()),
        },
        Step::Sync(file) => match &files[*file] {
            Some(file) => words(file.sync_all().await),
            None => Ok("none".into()),
        },
        Step::Status(file) => match &files[*file] {
            Some(file) => words(file.metadata().await.map(status)),
            None => Ok("none".into()),
        },
        Step::StatusAt(path) => words(fs::metadata(at(path)).await.map(status)),
        Step::CreateDir(path) => words(fs::create_dir(at(path)).await),
        Step::RemoveDir(path) => words(fs::remove_dir(at(path)).await),
        Step::RemoveFile(path) => words(fs::remove_file(at(path)).await),
        Step::Rename(from, to) => words(fs::rename(at(from), at(to)).await),
        Step::HardLink(from, to) => words(fs::hard_link(at(from), at(to)).await),
        Step::Symlink(to, path) => words(fs::symlink(TARGETS[*to], at(path)).await),
        Step::ReadDir(path) => {
            let kind = |entry: &fs::DirEntry| (entry.file_name(), entry.file_type().unwrap());
            words(fs::read_dir(at(path)).await.map(|entries| entries.iter().map(kind).collect::<Vec<_>>()))
        }
        Step::ReadAll(path) => words(fs::read(at(path)).await),
        Step::ReadLink(path) => words(fs::read_link(at(path)).await),
        Step::LinkStatus(path) => words(fs::symlink_metadata(at(path)).await.map(|found| found.file_type())),
        Step::Canonical(path) => {
            // The root is removed, because the two trees lie at different places.
            let found = fs::canonicalize(at(path)).await;
            let below = |found: PathBuf| found.strip_prefix(root).map(Path::to_path_buf).ok();
            words(found.map(below))
        }
        Step::SetPermissions(path, mode) => {
            words(fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).await)
        }
        Step::CreateDirAll(path) => words(fs::create_dir_all(at(path)).await),
        Step::RemoveDirAll(path) => words(fs::remove_dir_all(at(path)).await),
        Step::Copy(from, to) => words(fs::copy(at(from), at(to)).await),
    }
}

async fn take_all(root: PathBuf, steps: Vec<Step>) -> Vec<Outcome> {
    let mut files = [const { None }; 6];
    let mut outcomes = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        outcomes.push(take(&root, &mut files, step, number).await);
    }
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_the_real_one_does(steps in prop::collection::vec(step(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        // The tree is deep, so that no path leads out of it, not even through symbolic links.
        let below = "1/2/3/4/5/6/7/8";
        let root = directory.path().join(below);
        std::fs::create_dir_all(&root).unwrap();
        let upper = format!("/upper/{below}");
        let real = round_robin_over(&mut EventLoop::new().unwrap(), take_all(root.clone(), steps.clone())).unwrap();
        let mut disk = Disk::new();
        disk.create_dir_all(&upper).unwrap();
        let simulated = World::new(1).disk(disk).run(take_all(upper.into(), steps.clone())).unwrap();
        for (number, (real, simulated)) in real.iter().zip(&simulated.output).enumerate() {
            prop_assert_eq!(real, simulated, "of step {}, {:?}", number, &steps[number]);
        }
        let mut loaded = Disk::new();
        loaded.load(directory.path(), "/upper").unwrap();
        prop_assert_eq!(contents(&loaded, "/upper"), contents(&simulated.disk, "/upper"));
        prop_assert_eq!(contents(&loaded.after_crash(1), "/"), contents(&loaded, "/"), "what is loaded is on the disk");
    }
}

/// A path, with the content of a file or the target of a symbolic link.
type Found = (String, Result<Vec<u8>, Option<PathBuf>>);

/// Everything below a directory.
fn contents(disk: &Disk, below: &str) -> Vec<Found> {
    let mut all = Vec::new();
    for name in disk.read_dir(below).unwrap() {
        let path = format!("{below}/{}", name.display());
        let link = disk.read_link(&path).ok();
        let is_directory = link.is_none() && disk.read_dir(&path).is_ok();
        let content = if link.is_some() { Err(link) } else { disk.read(&path).map_err(|_| None) };
        all.push((path.clone(), content));
        if is_directory {
            all.extend(contents(disk, &path));
        }
    }
    all
}

/// Several threads work on one directory at the same time.
async fn bustle(random: &mut Random) {
    let threads = (0..4).map(|number| {
        let mut random = random.branch();
        spawn_local(async move {
            for round in 0..10 {
                let path = format!("/{}", random.below(5));
                let done: io::Result<()> = async {
                    let file = File::options().write(true).create(true).open(path.clone()).await?;
                    file.write_all_at(vec![number; 3000], random.below(10_000)).await.0?;
                    if random.below(3) == 0 {
                        file.sync_all().await?;
                    }
                    if random.below(3) == 0 {
                        fs::rename(path, format!("/{}", random.below(5))).await?;
                    }
                    if round == 5 {
                        File::open("/").await?.sync_all().await?;
                    }
                    Ok(())
                }
                .await;
                // The operation may fail, because the disk fails or because another thread has
                // renamed the file.
                drop(done);
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.await.unwrap();
    }
}

#[test]
fn the_same_seed_is_the_same_disk() {
    let run = |seed| {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(async move { bustle(&mut Random::new(seed)).await }).unwrap();
        assert_eq!(ended.descriptors, 0);
        let crashed: Vec<_> = (0..5).map(|crash| contents(&ended.disk.after_crash(crash), "/")).collect();
        (ended.digest, ended.steps, ended.time, contents(&ended.disk, "/"), crashed)
    };
    let runs: Vec<_> = (0..40).map(run).collect();
    for (seed, first) in runs.iter().enumerate() {
        assert_eq!(&run(seed as u64), first);
    }
    let digests: BTreeSet<_> = runs.iter().map(|run| run.0).collect();
    assert_eq!(digests.len(), 40);
    let disks: BTreeSet<_> = runs.iter().map(|run| run.3.clone()).collect();
    assert!(disks.len() > 30, "{} different disks", disks.len());
}

async fn written(path: &str, content: &[u8], sync_file: bool, sync_directory: bool) -> io::Result<()> {
    let file = File::create(path).await?;
    file.write_all_at(content.to_vec(), 0).await.0?;
    if sync_file {
        file.sync_all().await?;
    }
    if sync_directory {
        File::open("/").await?.sync_all().await?;
    }
    Ok(())
}

/// The states of a file after crashes with many seeds.
fn crashes(disk: &Disk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..300).map(|seed| disk.after_crash(seed).read(path).ok()).collect()
}

#[test]
fn what_is_synced_survives_and_what_is_not_may_not() {
    let content = vec![1; 6000];
    let end = |sync_file, sync_directory| {
        let content = content.clone();
        let main = async move { written("/log", &content, sync_file, sync_directory).await.unwrap() };
        crashes(&World::new(3).run(main).unwrap().disk, "/log")
    };
    assert_eq!(end(true, true), BTreeSet::from([Some(content.clone())]));
    assert_eq!(end(true, false), BTreeSet::from([None, Some(content.clone())]), "its name may be lost");
    let unsynced = end(false, true);
    assert!(!unsynced.contains(&None), "its name is synced");
    assert!(unsynced.contains(&Some(content.clone())) && unsynced.contains(&Some(Vec::new())));
    assert!(unsynced.iter().flatten().any(|left| left.len() == 6000 && left.contains(&0)), "zeros, or torn");
    assert!(unsynced.iter().flatten().any(|left| left.len() == 4096), "the length in between");
    assert!(end(false, false).contains(&None));
}

#[test]
fn what_is_overwritten_may_be_old_and_new_in_parts() {
    let mut disk = Disk::new();
    disk.write("/data", vec![1; 8192]).unwrap();
    let main = async {
        let file = File::options().write(true).open("/data").await.unwrap();
        file.write_all_at(vec![2; 8192], 0).await.0.unwrap();
    };
    let left = crashes(&World::new(0).disk(disk).run(main).unwrap().disk, "/data");
    assert!(left.iter().flatten().all(|left| left.len() == 8192 && left.iter().all(|&byte| byte > 0)));
    assert!(left.contains(&Some(vec![1; 8192])) && left.contains(&Some(vec![2; 8192])));
    assert!(left.len() > 10);
    for left in left.iter().flatten() {
        for sector in left.chunks(512) {
            assert!(sector.iter().all(|byte| byte == &sector[0]), "a sector is never torn");
        }
    }
}

#[test]
fn a_file_cut_short_is_what_it_was_or_is_cut() {
    let mut disk = Disk::new();
    disk.write("/data", vec![1; 10_000]).unwrap();
    let main = async { drop(File::create("/data").await.unwrap()) };
    let left = crashes(&World::new(0).disk(disk).run(main).unwrap().disk, "/data");
    assert_eq!(left, BTreeSet::from([Some(vec![1; 10_000]), Some(Vec::new())]));
}

/// Replaces a file in the way of many programs.
async fn replace(synced: bool) -> io::Result<()> {
    written("/new", b"new content", synced, false).await?;
    fs::rename("/new", "/config").await
}

#[test]
fn renaming_without_syncing_first_is_found_out() {
    let after = |synced| -> BTreeSet<Vec<u8>> {
        let mut disk = Disk::new();
        disk.write("/config", b"old content").unwrap();
        let mut left = BTreeSet::new();
        each_seed(0..200, |seed| {
            // The power fails at a random time.
            let main = async move {
                let replacing = spawn_local(replace(synced));
                sleep(Duration::from_millis(Random::new(seed).below(50))).await;
                drop(replacing);
            };
            let ended = World::new(seed).disk(disk.clone()).run(main).unwrap();
            left.insert(ended.disk.after_crash(seed).read("/config").expect("there is always one"));
        });
        left
    };
    let right = BTreeSet::from([b"old content".to_vec(), b"new content".to_vec()]);
    assert_eq!(after(true), right);
    let wrong = after(false);
    assert!(wrong.is_superset(&right) && wrong.contains(&Vec::new()), "{wrong:?}");
}

#[test]
fn what_is_moved_out_of_a_directory_that_is_removed_is_not_lost() {
    let mut disk = Disk::new();
    disk.write("/old/file", b"content").unwrap();
    let main = async {
        fs::create_dir("/new").await.unwrap();
        fs::rename("/old/file", "/new/file").await.unwrap();
        fs::remove_dir("/old").await.unwrap();
        fs::rename("/new", "/newer").await.unwrap();
    };
    let ended = World::new(0).disk(disk).run(main).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let disk = ended.disk.after_crash(seed);
        let found: Vec<_> = ["/old", "/new", "/newer"].map(|d| disk.read(format!("{d}/file")).is_ok()).into();
        assert_eq!(found.iter().filter(|&&there| there).count(), 1, "{found:?}");
        seen.insert(found);
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_sync_that_failed_is_not_made_up_for() {
    // The disk fails by itself. The program learns of such a failure only from the sync.
    let conditions = Conditions { disk_error: 300_000, ..Conditions::good() };
    let mut lost = 0;
    for seed in 0..300 {
        let main = async {
            let file = File::create("/log").await?;
            file.write_all_at(vec![1; 100], 0).await.0?;
            File::open("/").await?.sync_all().await?;
            if file.sync_all().await.is_ok() {
                return Err(io::ErrorKind::Other.into());
            }
            file.sync_all().await
        };
        let ended = World::new(seed).conditions(conditions.clone()).run(main).unwrap();
        if ended.output.is_ok() {
            lost += usize::from(crashes(&ended.disk, "/log").len() > 1);
        }
    }
    assert!(lost > 3, "{lost} synced twice, of which only the second time succeeded");
}

#[test]
fn a_full_disk_takes_what_there_is_room_for() {
    let conditions = Conditions { disk_bytes: 64 << 10, ..Conditions::good() };
    let main = async {
        let file = File::create("/a").await.unwrap();
        assert_eq!(file.write_at(vec![1; 100_000], 0).await.0.unwrap(), 64 << 10);
        let error = file.write_at(vec![1; 1], 64 << 10).await.0.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            file.write_at(vec![2; 100], 64 << 9).await.0.unwrap(),
            100,
            "what is there can be overwritten"
        );
        assert_eq!(file.metadata().await.unwrap().blocks(), 128);
        fs::remove_file("/a").await.unwrap();
        assert!(fs::write("/b", vec![1; 1]).await.is_err(), "it is open still");
        drop(file);
        fs::write("/b", vec![1; 64 << 10]).await.unwrap();
    };
    assert_eq!(World::new(0).conditions(conditions).run(main).unwrap().descriptors, 0);
}

#[test]
fn operations_overtake_each_other_and_what_is_given_up_may_happen() {
    let mut orders = BTreeSet::new();
    let mut happened = BTreeSet::new();
    each_seed(0..200, |seed| {
        let main = async {
            let file = File::create("/a").await.unwrap();
            let [one, other] = [1, 2].map(|number| {
                let file = file.clone();
                spawn_local(async move { file.write_all_at(vec![number], 0).await.0 })
            });
            one.await.unwrap().unwrap();
            other.await.unwrap().unwrap();
            let given_up = spawn_local(async move { file.write_all_at(vec![3], 1).await.0 });
            sleep(Duration::from_micros(1)).await;
            drop(given_up);
        };
        let ended = World::new(seed).run(main).unwrap();
        let left = ended.disk.read("/a").unwrap();
        orders.insert(left[0]);
        happened.insert(left.len());
    });
    assert_eq!((orders, happened), (BTreeSet::from([1, 2]), BTreeSet::from([1, 2])));
}

#[test]
fn descriptors_run_out_and_direct_access_is_aligned() {
    let conditions = Conditions { descriptors_max: 8, ..Conditions::good() };
    let mut disk = Disk::new();
    disk.write("/file", vec![5; 8192]).unwrap();
    let main = async {
        let direct = File::options().read(true).write(true).direct(true).open("/file").await.unwrap();
        let (read, buffer) = direct.read_at(AlignedBuf::new(4096), 4096).await;
        assert_eq!((read.unwrap(), buffer[0]), (4096, 5));
        for (length, offset) in [(4096, 100), (100, 4096)] {
            let error = direct.read_at(AlignedBuf::new(length), offset).await.0.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let error = direct.write_at(AlignedBuf::new(length), offset).await.0.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        direct.write_all_at(AlignedBuf::new(512), 8192).await.0.unwrap();
        assert_eq!(direct.len().await.unwrap(), 8704);
        let mut open = Vec::new();
        let error = loop {
            match File::open("/file").await {
                Ok(file) => open.push(file),
                Err(error) => break error,
            }
        };
        assert!(open.len() < 8 && error.to_string().contains("Too many open files"), "{error}");
    };
    assert_eq!(World::new(0).conditions(conditions).disk(disk).run(main).unwrap().descriptors, 0);
}

#[test]
fn files_are_sent_over_sockets() {
    let content: Vec<u8> = (0..200_000u32).map(|i| (i / 3) as u8).collect();
    let mut disk = Disk::new();
    disk.write("/srv/file", &content).unwrap();
    let mut sent = 0;
    each_seed(0..100, |seed| {
        let content = content.clone();
        let main = async move {
            let address = "10.0.0.1:80".parse().unwrap();
            let listener = TcpListener::bind(address).unwrap();
            let server = spawn_local(async move {
                let file = File::open("/srv/file").await?;
                let (stream, _) = listener.accept().await?;
                stream.send_file(&file, 1000, 190_000).await
            });
            let mut all = Vec::with_capacity(200_000);
            if let Ok(stream) = TcpStream::connect(address).await {
                while let Ok(1..) = stream.read_to_spare(&mut all).await {}
            }
            assert!(content[1000..191_000].starts_with(&all));
            drop(server);
            all.len() == 190_000
        };
        let conditions = if seed < 50 { Conditions::good() } else { Conditions::bad() };
        let ended = World::new(seed).conditions(conditions).disk(disk.clone()).run(main).unwrap();
        sent += usize::from(ended.output);
    });
    assert!((50..100).contains(&sent), "{sent}");
}

#[test]
fn a_new_world_goes_on_where_the_last_has_ended() {
    let first = World::new(0).run(async {
        sleep(Duration::from_secs(3600)).await;
        fs::create_dir("/d").await.unwrap();
        fs::write("/d/file", b"one".to_vec()).await.unwrap();
        (File::open("/d/file").await.unwrap(), fs::metadata("/d/file").await.unwrap().modified().unwrap())
    });
    let first = first.unwrap();
    let (file, then) = first.output;
    assert_eq!(first.descriptors, 1, "it is part of the output");
    let second = World::new(0).disk(first.disk).run(async move {
        let again = File::open("/d/file").await.unwrap();
        assert!(file.len().await.is_err(), "it was another world's");
        assert_eq!(again.metadata().await.unwrap().modified().unwrap(), then);
        again.set_len(1).await.unwrap_err();
        fs::write("/d/file", b"two".to_vec()).await.unwrap();
        assert!(again.metadata().await.unwrap().modified().unwrap() > then);
        assert!(Time::now().as_nanos() > 0);
    });
    assert_eq!(second.unwrap().disk.read("/d/file").unwrap(), b"two");
}

#[test]
fn the_real_disk_is_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, b"real").unwrap();
    simulate(0..3, || {
        let path = path.clone();
        async move {
            assert_eq!(fs::read(path.clone()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
            fs::write("/simulated", b"x".to_vec()).await.unwrap();
        }
    });
    assert!(!Path::new("/simulated").exists());
}

/// The thread gives up writes and reads at random times, and then goes on with the same file.
#[test]
fn calls_on_a_file_that_are_given_up_leave_it_in_order() {
    let mut given_up = 0;
    each_seed(0..200, |seed| {
        let main = async move {
            let mut file = File::create_new("/a").await.unwrap();
            let (mut random, mut given_up) = (Random::new(seed), 0);
            for round in 0..20_u8 {
                let limit = Duration::from_micros(random.below(300));
                let old = timeout(limit, file.write_all(&[0xff; 5000])).await;
                given_up += u32::from(old.is_err());
                if old.is_ok() {
                    file.rewind().await.unwrap();
                }
                assert_eq!(file.position(), 0);
                file.write_all(&[round; 5000]).await.unwrap();
                file.rewind().await.unwrap();
                let mut buffer = [0; 5000];
                while timeout(limit, file.read_exact(&mut buffer)).await.is_err() {
                    assert_eq!(file.position(), 0);
                    sleep(Duration::from_micros(1)).await;
                    if random.below(4) == 0 {
                        file.read_exact(&mut buffer).await.unwrap();
                        break;
                    }
                }
                assert_eq!((buffer, file.position()), ([round; 5000], 5000));
                file.rewind().await.unwrap();
            }
            given_up
        };
        given_up += World::new(seed).run(main).unwrap().output;
    });
    assert!(given_up > 100, "{given_up}");
}

#[test]
fn a_file_too_long_to_be_held_is_an_error() {
    let ended = World::new(1).run(async {
        File::create("/long").await?.set_len(1 << 62).await?;
        fs::read("/long").await
    });
    let ended = ended.unwrap();
    assert_eq!(ended.output.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    assert_eq!(ended.disk.read("/long").unwrap_err().kind(), io::ErrorKind::OutOfMemory);
}
