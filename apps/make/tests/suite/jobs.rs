//! How many commands run together.

use crate::projects::{OURS, command};
use crate::small::{read, run, tree, write};
use std::fs::{self, File};
use std::io::Write;

/// The largest number of lines `+` of which the `-` came later.
fn most(text: &str) -> i32 {
    let (mut now, mut most) = (0, 0);
    for line in text.lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    most
}

#[test]
fn jobs_and_pools_limit_what_runs_together() {
    let edges = |pool: &str| -> String {
        (0..6).map(|index| format!("build {pool}{index}: r\n  pool = {pool}\n")).collect()
    };
    let rule =
        "rule r\n  command = echo + >> ran; sleep 0.05; echo - >> ran; touch $out\npool p\n  depth = 2\n";
    for (pool, arguments, limit) in
        [("p", "-j6", 2), ("", "-j3", 3), ("", "-j1", 1), ("console", "-j6", 1), ("", "-j0", 6)]
    {
        let tree =
            tree(&format!("{rule}{}", edges(pool).replace("  pool = \n", "").replace("build ", "build x")));
        let (text, status) = run(&tree, &[arguments]);
        assert_eq!(status, 0, "{text}");
        let most = most(&read(&tree, "ran"));
        assert!(most <= limit, "{pool} {arguments}: {most}");
        assert!(most > 1 || limit == 1, "{pool} {arguments}: {most}");
    }
}

/// Builds within a build: a build runner starts three others, each with four commands. Returns how
/// many commands ran at the same time, and the number of files that are left in the directory for
/// temporary files.
fn within(outer: [&str; 4], inner: &str) -> (i32, usize) {
    let [program, flags, manifest, rules] = outer;
    let tree = tempfile::tempdir().unwrap();
    let step = "echo + >> ../ran; sleep 0.05; echo - >> ../ran; touch";
    let edges = |text: &dyn Fn(usize) -> String| (0..4).map(text).collect::<String>();
    let ninja =
        format!("rule r\n  command = {step} $out\n{}", edges(&|index| format!("build i{index}: r\n")));
    let make = edges(&|index| format!("i{index}:\n\t@{step} $@\n"));
    let make = format!("all: i0 i1 i2 i3\n{make}");
    write(&tree, manifest, &rules.replace("INNER", inner));
    for name in ["x.d", "y.d", "z.d"] {
        fs::create_dir(tree.path().join(name)).unwrap();
        write(&tree, &format!("{name}/build.ninja"), &ninja);
        write(&tree, &format!("{name}/Makefile"), &make);
    }
    // A named pipe lies in the directory for temporary files.
    let temporary = tempfile::tempdir().unwrap();
    let mut outer = command(program, tree.path(), &flags.split(' ').collect::<Vec<_>>());
    let built = outer.env("TMPDIR", temporary.path()).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let text = String::from_utf8_lossy(&built.stderr).into_owned() + &String::from_utf8_lossy(&built.stdout);
    assert!(!text.contains("warning"), "{text}");
    assert_eq!(read(&tree, "ran").lines().count(), 24, "{text}");
    (most(&read(&tree, "ran")), fs::read_dir(temporary.path()).unwrap().count())
}

const BUILDS: &str = "rule make\n  command = INNER -C $out.d\nbuild x: make\nbuild y: make\nbuild z: make\n";
const MAKEFILE: &str = "all: x y z\nx y z:\n\t@+INNER -C $@.d\n";

#[test]
fn a_job_server_grants_jobs_to_builds_within_builds() {
    let ours = |flags| [OURS, flags, "build.ninja", BUILDS];
    for (outer, inner) in [
        (ours("-j3 --jobserver"), OURS),
        (ours("-j3 --jobserver=fifo"), OURS),
        // Debian's GNU make knows no named pipe before its version 4.4.
        (ours("-j3 --jobserver"), "make"),
        (["make", "-j3", "Makefile", MAKEFILE], OURS),
    ] {
        let (most, left) = within(outer, inner);
        assert!((2..=3).contains(&most), "{most} at the same time: {outer:?}, {inner}");
        assert_eq!(left, 0, "the pipe is left behind: {outer:?}");
    }
}

/// The machine's load is a mean of a minute, so it tells nothing of commands that have just begun.
#[test]
fn the_load_limits_also_the_commands_that_start_first() {
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let limit = load.split(' ').next().unwrap().parse::<f64>().unwrap().ceil() as usize + 2;
    let rule = "rule r\n  command = echo + >> ran; sleep 0.05; echo - >> ran; touch $out\n";
    let edges: String = (0..limit + 6).map(|edge| format!("build e{edge}: r\n")).collect();
    let tree = tree(&format!("{rule}{edges}"));
    let (text, status) = run(&tree, &["-j0", &format!("-l{limit}")]);
    assert_eq!(status, 0, "{text}");
    assert!(most(&read(&tree, "ran")) <= limit as i32, "with a limit of {limit}: {}", read(&tree, "ran"));
}

/// A pipe with the tokens of a job server, for this process and its children.
fn fifo(directory: &std::path::Path, tokens: usize) -> File {
    let path = directory.join("tokens");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let mut pipe = File::options().read(true).write(true).open(path).unwrap();
    pipe.write_all(&vec![b'+'; tokens]).unwrap();
    pipe
}

#[test]
fn a_command_that_waits_for_a_lower_load_holds_no_token() {
    let taken = "sleep 0.2; timeout 5 dd if=tokens of=taken bs=1 count=1 2> log && cat taken > tokens";
    let tree = tree(&format!(
        "rule r\n  command = echo $out >> ran; test -e first || {{ touch first; {taken}; }}\n\
         build a: r\nbuild b: r\n"
    ));
    let _pipe = fifo(tree.path(), 1);
    let mut ours = command(OURS, tree.path(), &["-l0.001"]);
    let built = ours.env("MAKEFLAGS", " -j2 --jobserver-auth=fifo:tokens").output().unwrap();
    assert!(built.status.success(), "the second command held the token: {built:?}");
    assert_eq!((read(&tree, "ran").lines().count(), read(&tree, "taken").as_str()), (2, "+"));
}

#[test]
fn the_pipe_of_a_job_server_has_a_name_that_cannot_be_guessed() {
    let tree = tree("rule r\n  command = echo $$MAKEFLAGS > $out\nbuild a: r\n");
    let mut server = command(OURS, tree.path(), &["-j3", "--jobserver=fifo"]);
    let mut server = server.stdout(std::process::Stdio::null()).spawn().unwrap();
    assert!(server.wait().unwrap().success());
    let flags = read(&tree, "a");
    let letters = flags.trim().rsplit('-').next().unwrap();
    assert!(letters.len() == 16 && letters.chars().all(|letter| letter.is_ascii_hexdigit()), "{flags}");
    assert_ne!(letters, server.id().to_string());
}

#[test]
fn more_jobs_than_a_pipe_has_room_for_are_refused() {
    let tree = tree("rule r\n  command = touch $out\nbuild a: r\n");
    let arguments = ["10", OURS, "-j100000", "--jobserver"];
    let refused = crate::projects::output("timeout", tree.path(), &arguments);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("--jobserver: no pipe holds the tokens of 100000 jobs"), "{text}");
    assert_eq!(refused.status.code(), Some(1));
}
