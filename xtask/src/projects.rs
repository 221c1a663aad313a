//! `cargo xtask projects SECONDS [NAME..]`: real projects, built by ninja and by `selvedge-make`:
//! both run the same commands and leave the same files.
//!
//! The sources are Debian's. They are fetched into the target directory, by an apt with lists of
//! its own, so that the machine's configuration stays as it is. The figure `make-projects` builds
//! some of them there.
//!
//! `main.rs` and `soak.rs` call `run`, `main.rs` and `peers.rs` call `fetch`.

use crate::command::{Invocation, Tally, on_path};
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A project of Debian.
#[derive(Debug)]
struct Project {
    /// Debian's name of the source package.
    package: &'static str,
    with: Generator,
}

/// The program that writes the project's `build.ninja`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    CMake,
    /// With the directory of the `meson.build`.
    Meson(&'static str),
}

const PROJECTS: [Project; 8] = [
    Project { package: "pugixml", with: Generator::CMake },
    Project { package: "tinyxml2", with: Generator::CMake },
    Project { package: "cjson", with: Generator::CMake },
    Project { package: "yajl", with: Generator::CMake },
    Project { package: "json-c", with: Generator::CMake },
    Project { package: "libjsoncpp", with: Generator::Meson("") },
    Project { package: "lz4", with: Generator::Meson("contrib/meson") },
    Project { package: "libevent", with: Generator::CMake },
];

/// The programs that the list needs. The first two fetch the sources.
const PROGRAMS: [&str; 5] = ["apt-get", "dpkg-source", "cmake", "meson", "ninja"];

/// How long one command of this list may take.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A file beside a project's source, while a file of the source is broken.
const BROKEN: &str = "broken";

/// What a build runner did with a project.
#[derive(Debug, PartialEq, Eq)]
struct Built {
    /// For each step its name and the commands, sorted.
    steps: Vec<(&'static str, Vec<String>)>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Builds each project by both, or the projects that `names` names. No project is begun after this
/// number of seconds.
///
/// # Errors
/// When `seconds` is no number, no project has one of the names, a source cannot be fetched, or the
/// two differ.
pub(crate) fn run(seconds: &str, names: &[&str]) -> Result<(), String> {
    let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
    let projects = named(names)?;
    must_be_installed(&PROGRAMS)?;
    let began = Instant::now();
    let workspace = Workspace::load()?;
    let invocation =
        Invocation::new(LIMIT, &["cargo", "build", "--locked", "--release", "--package", "selvedge-make"]);
    invocation.run(&workspace.root, &mut Tally::default())?;
    let ours = workspace.target_dir.join("release/selvedge-make");
    let directory = workspace.target_dir.join("projects");
    fs::create_dir_all(&directory).map_err(|error| at(&directory, &error))?;
    let fetch = Fetch::new(&directory)?;
    let mut wrong = Vec::new();
    for project in projects {
        if began.elapsed() > Duration::from_secs(seconds) {
            println!("projects: {} and those behind it are left out: the time is over", project.package);
            break;
        }
        let source = fetch.source(project.package)?;
        let start = Instant::now();
        match compare(project, &source, &directory, &ours) {
            Ok(report) => {
                let seconds = start.elapsed().as_secs();
                println!("projects: {}: {report}; {seconds} s", project.package);
            }
            Err(error) => wrong.push(format!("{}: {error}", project.package)),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Fetches the sources of all projects, or of the projects that `names` names. Sources that are
/// there stay.
///
/// # Errors
/// When no project has one of the names, or a source cannot be fetched.
pub(crate) fn fetch(names: &[&str]) -> Result<(), String> {
    let projects = named(names)?;
    must_be_installed(&PROGRAMS[..2])?;
    let directory = Workspace::load()?.target_dir.join("projects");
    fs::create_dir_all(&directory).map_err(|error| at(&directory, &error))?;
    let fetch = Fetch::new(&directory)?;
    for project in projects {
        println!("projects: {}", fetch.source(project.package)?.display());
    }
    Ok(())
}

/// The projects with these names, or all if there is no name.
fn named(names: &[&str]) -> Result<Vec<&'static Project>, String> {
    if let Some(name) = names.iter().find(|name| PROJECTS.iter().all(|project| project.package != **name)) {
        return Err(format!("{name:?} is none of the projects"));
    }
    Ok(PROJECTS.iter().filter(|project| names.is_empty() || names.contains(&project.package)).collect())
}

fn must_be_installed(programs: &[&str]) -> Result<(), String> {
    let missing: Vec<_> = programs.iter().copied().filter(|program| !on_path(program)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("{} must be installed", missing.join(", "))) }
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// An apt with its own lists.
struct Fetch<'a> {
    directory: &'a Path,
    options: Vec<String>,
}

impl Fetch<'_> {
    fn new(directory: &Path) -> Result<Fetch<'_>, String> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let name = name.ok_or("the sources are Debian's, and this system names no release")?;
        let apt = directory.join("apt");
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(part)).map_err(|error| at(&apt, &error))?;
        }
        let list = apt.join("sources.list");
        let keys = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
        let line = format!("deb-src {keys} http://deb.debian.org/debian {name} main\n");
        fs::write(&list, line).map_err(|error| at(&list, &error))?;
        let options = [
            format!("Dir::Etc::SourceList={}", list.display()),
            "Dir::Etc::SourceParts=/dev/null".to_string(),
            format!("Dir::State::lists={}/lists", apt.display()),
            format!("Dir::Cache={}/cache", apt.display()),
            "APT::Sandbox::User=root".to_string(),
        ];
        let options = options.into_iter().flat_map(|option| ["-o".to_string(), option]).collect();
        let fetch = Fetch { directory, options };
        fetch.apt_get(&["update"])?;
        Ok(fetch)
    }

    fn apt_get(&self, words: &[&str]) -> Result<(), String> {
        let options: Vec<&str> = self.options.iter().map(|option| &option[..]).collect();
        let words = [&["apt-get", "--quiet=2"], &options[..], words].concat();
        Invocation::new(LIMIT, &words).run(self.directory, &mut Tally::default())
    }

    /// The directory of a package's source.
    fn source(&self, package: &str) -> Result<PathBuf, String> {
        let place = self.directory.join(package);
        let source = place.join("source");
        remove_broken(&place)?;
        if source.is_dir() {
            return Ok(source);
        }
        fs::create_dir_all(&place).map_err(|error| at(&place, &error))?;
        let fetched = Fetch { directory: &place, options: self.options.clone() };
        fetched.apt_get(&["source", package])?;
        let entries = fs::read_dir(&place).map_err(|error| at(&place, &error))?;
        let unpacked = entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.is_dir());
        let unpacked = unpacked.ok_or_else(|| format!("{package}: no source was unpacked"))?;
        fs::rename(&unpacked, &source).map_err(|error| at(&unpacked, &error))?;
        Ok(source)
    }
}

/// Removes a project's source if an earlier run was killed while a file of it was broken.
fn remove_broken(place: &Path) -> Result<(), String> {
    let mark = place.join(BROKEN);
    if mark.exists() {
        let source = place.join("source");
        if source.exists() {
            fs::remove_dir_all(&source).map_err(|error| at(&source, &error))?;
        }
        fs::remove_file(&mark).map_err(|error| at(&mark, &error))?;
    }
    Ok(())
}

/// The output of a command that succeeds.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let lines: Vec<_> = text.lines().rev().take(10).collect();
    let lines = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
    Err(format!("{shown}: {}\n{lines}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Configures a project with `selvedge-make` as its ninja, and builds it with each of the two.
fn compare(project: &Project, source: &Path, directory: &Path, ours: &Path) -> Result<String, String> {
    let place = directory.join(project.package);
    let (build, configured) = (place.join("build"), place.join("configured"));
    // Both are called by this name, so that what the generator writes is the same for both.
    let ninja = place.join("ninja");
    let call = |program: &Path| {
        let _ = fs::remove_file(&ninja);
        std::os::unix::fs::symlink(program, &ninja).map_err(|error| at(&ninja, &error))
    };
    call(ours)?;
    for old in [&build, &configured] {
        let _ = fs::remove_dir_all(old);
    }
    match project.with {
        Generator::CMake => output(
            Command::new("cmake")
                .args(["-G", "Ninja", "-S"])
                .arg(source)
                .arg("-B")
                .arg(&build)
                .arg(format!("-DCMAKE_MAKE_PROGRAM={}", ninja.display()))
                // No project has to find what the machine may not have.
                .args(["-DEVENT__DISABLE_OPENSSL=ON", "-DEVENT__DISABLE_MBEDTLS=ON"]),
        )?,
        Generator::Meson(below) => {
            let mut meson = Command::new("meson");
            output(meson.arg("setup").arg(&build).arg(source.join(below)).env("NINJA", &ninja))?
        }
    };
    let theirs = ["/usr/bin/ninja", "/usr/local/bin/ninja"].iter().map(Path::new).find(|path| path.is_file());
    let theirs = theirs.ok_or("ninja is not installed: `cargo xtask setup` does that")?;
    fs::rename(&build, &configured).map_err(|error| at(&build, &error))?;
    let mut built = Vec::new();
    // The third time both build the same tree in turn, and each reads the logs of the other.
    for (programs, name) in [(&[theirs][..], "ninja"), (&[ours], "ours"), (&[ours, theirs], "in turn")] {
        let _ = fs::remove_dir_all(&build);
        output(Command::new("cp").arg("-a").arg(&configured).arg(&build))?;
        // The build before has touched a header, out of which Meson may have read a version.
        output(Command::new("touch").arg(build.join("build.ninja")))?;
        let mut turns = programs.iter().cycle();
        let mut next = || call(turns.next().expect("there are programs"));
        let done = steps(source, &build, &ninja, &mut next);
        built.push((name, done.map_err(|error| format!("{name}: {error}"))?));
    }
    let [(_, theirs), others @ ..] = &built[..] else { unreachable!("three builds") };
    for (name, ours) in others {
        for (theirs, ours) in theirs.steps.iter().zip(&ours.steps) {
            if theirs != ours {
                let of = |side: &[String]| side.iter().cloned().collect::<BTreeSet<_>>();
                let differ: Vec<_> = of(&theirs.1).symmetric_difference(&of(&ours.1)).cloned().collect();
                return Err(format!("{name}: {}: not the same commands: {}", ours.0, differ.join("\n")));
            }
        }
        let all: BTreeSet<_> = theirs.files.keys().chain(ours.files.keys()).collect();
        let differ: Vec<_> =
            all.into_iter().filter(|path| theirs.files.get(*path) != ours.files.get(*path)).collect();
        if !differ.is_empty() {
            return Err(format!("{name}: not the same files: {differ:?}"));
        }
    }
    let ours = &others[0].1;
    let counts = ours.steps.iter().map(|(step, commands)| format!("{step} {}", commands.len()));
    let counts: Vec<_> = counts.collect();
    Ok(format!("the same commands and {} files: {}", ours.files.len(), counts.join(", ")))
}

/// Builds all, nothing, what uses a header, what uses a source, with a source that is broken and
/// then mended, after a build that was interrupted and one that was killed, and the manifest. Calls
/// `next` before each build, which may put another program behind the name `ninja`.
fn steps(
    source: &Path,
    build: &Path,
    ninja: &Path,
    next: &mut dyn FnMut() -> Result<(), String>,
) -> Result<Built, String> {
    let mut steps = Vec::new();
    let mut step = |name: &'static str, arguments: &[&str], succeeds: bool| -> Result<(), String> {
        next()?;
        let mut runner = Command::new(ninja);
        runner.arg("-v").args(arguments).current_dir(build).env("NINJA_STATUS", "@@ ");
        let output = runner.output().map_err(|error| at(ninja, &error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() != succeeds {
            return Err(format!("{name}: {}\n{text}", output.status));
        }
        let mut commands: Vec<_> =
            text.lines().filter_map(|line| line.strip_prefix("@@ ")).map(str::to_string).collect();
        commands.sort();
        steps.push((name, commands));
        Ok(())
    };
    step("all", &[], true)?;
    step("nothing", &[], true)?;
    let deps = output(Command::new(ninja).args(["-t", "deps"]).current_dir(build))?;
    let used = |endings: &[&str]| most_used(&deps, source, build, endings);
    let header = used(&[".h", ".hpp"]).ok_or("no compiler has read a header")?;
    let text = used(&[".c", ".cpp"]).ok_or("no compiler has read a source")?;
    let touch = |path: &Path| output(Command::new("touch").arg(path));
    touch(&header)?;
    step("a header", &["-j4"], true)?;
    touch(&text)?;
    step("a source", &["-j1"], true)?;
    let whole = fs::read(&text).map_err(|error| at(&text, &error))?;
    let write = |content: &[u8]| fs::write(&text, content).map_err(|error| at(&text, &error));
    let mark = build.with_file_name(BROKEN);
    fs::write(&mark, "").map_err(|error| at(&mark, &error))?;
    write(&[&whole[..], b"\n#error broken\n"].concat())?;
    touch(&header)?;
    let failed = step("broken", &["-k0", "-j4"], false);
    write(&whole)?;
    fs::remove_file(&mark).map_err(|error| at(&mark, &error))?;
    failed?;
    step("mended", &["-j4"], true)?;
    for (signal, name) in [
        ("--signal=INT", "nothing after an interrupted build and another"),
        ("--signal=KILL", "nothing after a killed build and another"),
    ] {
        touch(&header)?;
        // Meson reads a version out of a header, and then the manifest is made anew. A ninja that
        // is interrupted meanwhile leaves none.
        output(Command::new(ninja).arg("build.ninja").current_dir(build))?;
        // How far it comes is not the same each time, and neither are the commands of the next
        // build.
        let mut stopped = Command::new("timeout");
        stopped.args(["--foreground", signal, "0.3"]).arg(ninja).current_dir(build).stdout(Stdio::null());
        stopped.status().map_err(|error| format!("timeout: {error}"))?;
        wait_for_commands(build)?;
        output(Command::new(ninja).current_dir(build))?;
        step(name, &[], true)?;
    }
    touch(&build.join("build.ninja"))?;
    step("the manifest touched", &[], true)?;
    Ok(Built { steps, files: made(build)? })
}

/// The files that stand in `build` after the steps, without logs.
fn made(build: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![build.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| at(&directory, &error))? {
            let path = entry.map_err(|error| at(&directory, &error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The logs have times in them. What Meson keeps for itself has sets of Python, in an
            // order that differs from run to run.
            let of_meson = directory.ends_with("meson-private") && name.contains(".dat");
            if path.is_symlink() || name.starts_with(".ninja_") || name.contains("log") || of_meson {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                let content = fs::read(&path).map_err(|error| at(&path, &error))?;
                files.insert(path, content);
            }
        }
    }
    Ok(files)
}

/// Waits until no process works in the directory of the build. A build runner that is killed leaves
/// its commands behind.
fn wait_for_commands(build: &Path) -> Result<(), String> {
    let works_here = |process: fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|directory| directory.starts_with(build))
    };
    let began = Instant::now();
    while fs::read_dir("/proc").map_err(|error| at(Path::new("/proc"), &error))?.flatten().any(works_here) {
        if began.elapsed() > LIMIT {
            return Err("the commands of a killed build do not end".to_string());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The file of the source with one of these endings that most outputs have as an input, as `-t
/// deps` tells.
fn most_used(deps: &str, source: &Path, build: &Path, endings: &[&str]) -> Option<PathBuf> {
    let mut uses = BTreeMap::<PathBuf, u32>::new();
    let inputs = deps.lines().filter_map(|line| line.strip_prefix("    "));
    for input in inputs.filter(|input| endings.iter().any(|ending| input.ends_with(ending))) {
        if let Ok(path) = build.join(input).canonicalize()
            && path.starts_with(source)
        {
            *uses.entry(path).or_default() += 1;
        }
    }
    uses.into_iter().max_by_key(|(_, uses)| *uses).map(|(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_known_by_its_name() {
        assert_eq!(named(&["yajl", "lz4"]).unwrap().len(), 2);
        assert_eq!(named(&[]).unwrap().len(), PROJECTS.len());
        assert_eq!(named(&["yajl", "xyz"]).unwrap_err(), "\"xyz\" is none of the projects");
    }

    #[test]
    fn the_header_is_one_of_the_source_and_the_most_used() {
        let directory = std::env::temp_dir().canonicalize().unwrap().join("selvedge-xtask-projects");
        let source = directory.join("source");
        fs::create_dir_all(&source).unwrap();
        for name in ["a.h", "b.hpp"] {
            fs::write(source.join(name), "").unwrap();
        }
        let deps = "x.o: #deps 2, deps mtime 1 (VALID)\n    source/a.h\n    source/b.hpp\n    /usr/include/stdio.h\n\n\
                    y.o: #deps 2, deps mtime 1 (VALID)\n    source/b.hpp\n    /usr/include/stdio.h\n";
        assert_eq!(most_used(deps, &source, &directory, &[".h", ".hpp"]), Some(source.join("b.hpp")));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_source_that_a_killed_run_has_left_broken_is_removed() {
        let place = std::env::temp_dir().join("selvedge-xtask-broken");
        fs::create_dir_all(place.join("source/a")).unwrap();
        remove_broken(&place).unwrap();
        assert!(place.join("source/a").is_dir(), "there is no mark");
        fs::write(place.join(BROKEN), "").unwrap();
        remove_broken(&place).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        fs::write(place.join(BROKEN), "").unwrap();
        remove_broken(&place).unwrap();
        fs::remove_dir(&place).unwrap();
    }

    #[test]
    fn a_command_that_fails_shows_its_last_lines() {
        let error = output(Command::new("sh").args(["-c", "echo said; exit 3"])).unwrap_err();
        assert!(error.contains("said") && error.contains('3'), "{error}");
    }
}
