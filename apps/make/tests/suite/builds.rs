//! What a build does beside running commands in order.

use std::fs;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::projects::{NINJA, OURS, build, command, output, tick};

fn tree(manifest: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    tree
}

/// The standard output, and the status.
fn run(tree: &TempDir, arguments: &[&str]) -> (String, i32) {
    let output = output(OURS, tree.path(), arguments);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

fn read(tree: &TempDir, name: &str) -> String {
    fs::read_to_string(tree.path().join(name)).unwrap()
}

fn write(tree: &TempDir, name: &str, text: &str) {
    fs::write(tree.path().join(name), text).unwrap();
}

#[test]
fn the_build_stops_at_the_first_failure_or_at_the_kth() {
    let manifest = "rule bad\n  command = echo $out >> ran; false\nrule good\n  command = echo $out >> ran; touch $out\n\
                    build a: bad\nbuild b: bad\nbuild c: bad\nbuild d: good a\nbuild e: good\n";
    for (arguments, ran, said) in [
        (&["-j1"][..], "a\n", "subcommand failed"),
        (&["-j1", "-k2"], "a\nb\n", "subcommands failed"),
        (&["-j1", "-k0"], "a\nb\nc\ne\n", "cannot make progress due to previous errors"),
    ] {
        let tree = tree(manifest);
        let (text, status) = run(&tree, arguments);
        assert_eq!((read(&tree, "ran").as_str(), status), (ran, 1), "{text}");
        assert!(text.contains("FAILED: [code=1] a\necho a >> ran; false\n"), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn the_output_of_a_command_stays_together() {
    let manifest = "rule r\n  command = for i in 1 2 3 4 5; do echo $out$$i; sleep 0.01; echo $out >&2; done\n\
                    build a: r\nbuild b: r\nbuild c: r\n";
    let (text, status) = run(&tree(manifest), &["-j3"]);
    assert_eq!(status, 0);
    for name in ["a", "b", "c"] {
        let whole: String = (1..=5).map(|index| format!("{name}{index}\n{name}\n")).collect();
        assert!(text.contains(&whole), "{text}");
    }
}

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

#[test]
fn a_dyndep_file_that_is_made_adds_edges_to_the_build() {
    // Which module needs which is known when the sources have been scanned: `b` needs `a`, which no
    // statement of the manifest says.
    let manifest = "rule scan\n  command = cp $in $out\nrule cc\n  command = cat $in $need > $out && touch $out $touch\n\
                    build dd: scan dd.in\n\
                    build b.o: cc b || dd\n  dyndep = dd\n  need = a.mod\n\
                    build a.o: cc a || dd\n  dyndep = dd\n  touch = a.mod\n\
                    build c.mod: cc c\n\
                    default b.o\n";
    let tree = tree(manifest);
    for source in ["a", "b", "c"] {
        write(&tree, source, source);
    }
    let dyndep = "ninja_dyndep_version = 1\nbuild a.o | a.mod: dyndep | c.mod\nbuild b.o: dyndep | a.mod\n";
    write(&tree, "dd.in", dyndep);
    let other = tempfile::tempdir().unwrap();
    for name in ["build.ninja", "a", "b", "c", "dd.in"] {
        fs::copy(tree.path().join(name), other.path().join(name)).unwrap();
    }
    let ran = build(OURS, tree.path(), &["-j4"]);
    assert!(ran.success && ran.commands.len() == 4, "{ran:?}");
    assert_eq!(ran, build(NINJA, other.path(), &["-j4"]));
    assert_eq!(run(&tree, &[]).0, "selvedge-make: no work to do.\n");
    tick();
    write(&tree, "c", "changed");
    let ran = build(OURS, tree.path(), &["-j4"]);
    assert_eq!(ran.commands.len(), 3, "{ran:?}");
    tick();
    write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild b.o: dyndep\n");
    let (text, status) = run(&tree, &[]);
    assert!(status == 1 && text.contains("'a.o' not mentioned in its dyndep file 'dd'"), "{text}");
}

#[test]
fn a_circle_is_told_with_its_files() {
    let tree = tree("rule r\n  command = x\nbuild a: r b\nbuild b: r c\nbuild c: r b\nbuild d: r a\n");
    assert_eq!(run(&tree, &["d"]), ("selvedge-make: error: dependency cycle: b -> c -> b\n".into(), 1));
}

#[test]
fn a_missing_file_that_nothing_makes_is_told() {
    let tree = tree("rule r\n  command = x\nbuild a: r b\n");
    let (text, status) = run(&tree, &[]);
    assert_eq!(text, "selvedge-make: error: 'b', needed by 'a', missing and no known rule to make it\n");
    assert_eq!(status, 1);
    let (text, _) = run(&tree, &["aa"]);
    assert_eq!(text, "selvedge-make: error: unknown target 'aa', did you mean 'a'?\n");
}

#[test]
fn a_manifest_is_rebuilt_before_it_is_used() {
    let manifest = "rule gen\n  command = cp $in $out\n  generator = 1\nrule t\n  command = touch $out\n\
                    build build.ninja: gen source\nbuild first: t\n";
    let tree = tree(manifest);
    tick();
    write(&tree, "source", &format!("{manifest}build second: t\n"));
    let (text, status) = run(&tree, &[]);
    assert!(status == 0 && tree.path().join("second").exists(), "{text}");
    assert_eq!(run(&tree, &[]).0, "selvedge-make: no work to do.\n");
    tick();
    write(&tree, "source", "broken");
    let (text, status) = run(&tree, &[]);
    assert!(status == 1 && text.contains("build.ninja:1:7: expected '=', got eof"), "{text}");
}

#[test]
fn reasons_are_explained() {
    let tree = tree("rule cp\n  command = cp $in $out\nbuild b: cp a\nbuild c: cp b\n");
    write(&tree, "a", "");
    let (text, _) = run(&tree, &["-d", "explain"]);
    for reason in ["output b doesn't exist", "b is dirty"] {
        assert!(text.contains(&format!("selvedge-make explain: {reason}\n")), "{text}");
    }
    tick();
    write(&tree, "a", "");
    assert!(run(&tree, &["-d", "explain", "-n"]).0.contains("output b older than most recent input a"));
    run(&tree, &[]);
    let manifest = read(&tree, "build.ninja").replace("cp $in", "cp -p $in");
    write(&tree, "build.ninja", &manifest);
    assert!(run(&tree, &["-d", "explain", "-n"]).0.contains("command line changed for b"));
}

#[test]
fn a_dry_run_shows_all_and_changes_nothing() {
    let tree = tree("rule t\n  command = touch $out\nbuild a: t\nbuild b: t a\n");
    let (text, status) = run(&tree, &["-n", "-v"]);
    assert_eq!((text.as_str(), status), ("@@ touch a\n@@ touch b\n", 0));
    assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 1);
}

#[test]
fn a_timeline_has_each_command() {
    let tree =
        tree("rule t\n  command = touch $out\n  description = make \"$out\"\nbuild a: t\nbuild b: t a\n");
    assert_eq!(run(&tree, &["--timeline", "trace.json"]).1, 0);
    let text = read(&tree, "trace.json");
    assert!(
        text.contains("\"name\":\"make \\\"a\\\"\"") && text.matches("\"ph\":\"X\"").count() == 2,
        "{text}"
    );
}

#[test]
fn the_status_line_follows_the_users_format() {
    let tree = tree("rule t\n  command = touch $out\nbuild a: t\nbuild b: t a\n");
    let mut ours = command(OURS, tree.path(), &[]);
    let output = ours.env("NINJA_STATUS", "<%f/%t %s %r %u %p%%> ").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "<1/2 1 0 1  50%%> touch a\n<2/2 2 0 0 100%%> touch b\n");
}

#[test]
fn a_job_server_grants_jobs_to_builds_within_builds() {
    let inner: String = (0..4).map(|index| format!("build i{index}: r\n")).collect();
    let rule = "rule r\n  command = echo + >> ../ran; sleep 0.05; echo - >> ../ran; touch $out\n";
    let outer =
        format!("rule make\n  command = {OURS} -C $out.d\nbuild x: make\nbuild y: make\nbuild z: make\n");
    let tree = tree(&outer);
    for name in ["x.d", "y.d", "z.d"] {
        fs::create_dir(tree.path().join(name)).unwrap();
        write(&tree, &format!("{name}/build.ninja"), &format!("{rule}{inner}"));
    }
    let began = Instant::now();
    // The pipe lies in the directory for temporary files.
    let temporary = tempfile::tempdir().unwrap();
    let mut make = command(OURS, tree.path(), &["-j3", "--jobserver"]);
    let made = make.env("TMPDIR", temporary.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let most = most(&read(&tree, "ran"));
    assert!((2..=3).contains(&most), "{most} at the same time");
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "the pipe is left behind");
}

#[test]
fn cmake_builds_with_this_program() {
    let tree = tempfile::tempdir().unwrap();
    write(
        &tree,
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_library(l STATIC l.c)\nadd_executable(p p.c)\ntarget_link_libraries(p l)\n",
    );
    write(&tree, "l.c", "int f(void) { return 42; }\n");
    write(&tree, "p.c", "int f(void); int main(void) { return f(); }\n");
    let cmake = |arguments: &[&str]| {
        let output = output("cmake", tree.path(), arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    cmake(&["-G", "Ninja", &format!("-DCMAKE_MAKE_PROGRAM={OURS}"), "-B", "b"]);
    cmake(&["--build", "b"]);
    let status = std::process::Command::new(tree.path().join("b/p")).status().unwrap();
    assert_eq!(status.code(), Some(42));
    assert!(cmake(&["--build", "b"]).contains("no work to do"));
    assert!(cmake(&["--build", "b", "--target", "clean"]).contains("Cleaning"));
    // ninja goes on where we stopped.
    assert!(output(NINJA, &tree.path().join("b"), &[]).status.success());
    assert!(cmake(&["--build", "b"]).contains("no work to do"));
}
