//! What a build does beside running commands in order.

use crate::projects::{NINJA, OURS, build, command, output, tick};
use crate::small::{read, run, tree, write};
use std::fs;
use std::path::Path;

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
        assert!(text.contains("FAILED: [code=1] a \necho a >> ran; false\n"), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

/// The status is that of the command that failed last, as with ninja from 1.13 on.
#[test]
fn the_exit_status_is_that_of_the_failed_command() {
    let manifest = "rule r\n  command = exit $c\nrule k\n  command = kill -$s $$$$\nrule long\n  command = x $in\n\
                    build a: r\n  c = 3\nbuild b: r\n  c = 5\nbuild c: r\n  c = 124\nbuild i: r\n  c = 130\n\
                    build k: k\n  s = KILL\nbuild t: k\n  s = TERM\nbuild no: r\n  c = 0\n\
                    rule d\n  command = true\n  deps = gcc\nbuild d: d\n";
    for (arguments, status, said) in [
        (&["a"][..], 3, "FAILED: [code=3] a \nexit 3\n"),
        (&["-k0", "a", "b", "c"], 124, "cannot make progress"),
        (&["-k2", "a", "b", "c"], 5, "subcommands failed"),
        (&["i", "no"], 130, "interrupted by user"),
        (&["k"], 137, "FAILED: [signal=9] k \n"),
        (&["t"], 130, "interrupted by user"),
        (&["d"], 1, "FAILED: [its depfile cannot be used] d \n"),
        (&["none"], 1, "unknown target"),
        (&["no"], 0, "exit 0"),
    ] {
        let (text, ended) = run(&tree(manifest), &[&["-j1"], arguments].concat());
        assert!(ended == status && text.contains(said), "{arguments:?}: {ended}, {text}");
    }
}

#[test]
fn deps_of_an_unknown_type_and_empty_commands_are_refused_before_anything_runs() {
    for (rule, expected) in [
        ("command = touch $out\n  deps = gc", "unknown deps type 'gc' of 'b'; it is gcc or msvc"),
        ("command =", "expected 'command =' line"),
    ] {
        let tree =
            tree(&format!("rule r\n  {rule}\nrule t\n  command = touch $out\nbuild a: t\nbuild b: r a\n"));
        let (text, status) = run(&tree, &["-k0"]);
        assert!(status == 1 && text.contains(expected), "{status}: {text}");
        assert!(!tree.path().join("a").exists(), "{text}");
        // ninja refuses the second one too, and tells the first one after the command.
        let theirs = output(NINJA, tree.path(), &["-k0"]);
        let theirs = String::from_utf8(theirs.stderr).unwrap();
        let theirs = theirs.split(':').next_back().unwrap().trim();
        assert!(expected.contains(theirs.split(" of ").next().unwrap()), "{theirs}");
    }
    // An edge that does not run may have any type.
    let tree = tree(
        "rule r\n  command = touch $out\n  deps = gc\nrule t\n  command = touch $out\nbuild a: t\nbuild b: r\n",
    );
    assert_eq!(run(&tree, &["a"]).1, 0);
}

/// The order of the inputs, and not the order of the kinds.
#[test]
fn the_first_file_that_is_missing_is_told() {
    let rule = "rule t\n  command = touch $out\n";
    for edges in [
        "build a: t m n | o || p\n",
        "build a: t m | n || p\nbuild m: t y z\n",
        "build a: t | m n\nbuild m: t\n",
        "build a: t b c\nbuild b: t d\nbuild c: t x\nbuild d: t e || y\nbuild e: t\n",
        "build a: phony b\nbuild b: t || x y\n",
    ] {
        let tree = tree(&format!("{rule}{edges}default a\n"));
        let of = |program| {
            let said = String::from_utf8(output(program, tree.path(), &[]).stderr).unwrap();
            said.split_once("error: ").map(|(_, error)| error.to_string())
        };
        assert!(of(OURS).is_some_and(|error| error.contains("missing and no known rule")), "{edges}");
        assert_eq!(of(OURS), of(NINJA), "{edges}");
    }
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
    assert!(!tree.path().join(".ninja_lock").exists(), "the clock's file is left behind");
}

/// The standard output and the standard error, as they come in one pipe.
fn together(tree: &tempfile::TempDir, arguments: &[&str]) -> String {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut ours = command(OURS, tree.path(), arguments);
    let mut child = ours.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    drop(ours);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    child.wait().unwrap();
    text
}

/// A command that leaves its output as it was takes the reason of the next one away.
#[test]
fn a_reason_is_told_once_at_its_command_and_only_if_it_still_holds() {
    let manifest = "build always: phony\nrule make\n  command = [ -e $out ] || touch $out\n  restat = 1\n\
                    rule cp\n  command = cp $in $out\n\
                    build input: make always\nbuild mid: cp input\nbuild out: cp mid | other\ndefault out\n";
    let tree = tree(manifest);
    write(&tree, "other", "");
    for arguments in [&["-v", "-d", "explain"][..], &["-j1", "-d", "explain"]] {
        let _ = fs::remove_file(tree.path().join("input"));
        tick();
        let expected = "selvedge-make explain: always is dirty\n@@ [ -e input ] || touch input\n\
                        selvedge-make explain: input is dirty\n@@ cp input mid\n\
                        selvedge-make explain: mid is dirty\n@@ cp mid out\n";
        assert_eq!(together(&tree, arguments), expected);
    }
    let expected = "selvedge-make explain: always is dirty\n@@ [ -e input ] || touch input\n";
    assert_eq!(together(&tree, &["-d", "explain"]), expected);
    tick();
    write(&tree, "other", "");
    let text = together(&tree, &["-d", "explain"]);
    let text = text.strip_prefix(expected).unwrap_or_else(|| panic!("{text}"));
    assert!(
        text.starts_with("selvedge-make explain: output out older than most recent input other ("),
        "{text}"
    );
    assert!(text.ends_with(")\n@@ cp mid out\n") && text.lines().count() == 2, "{text}");
}

#[test]
fn reasons_are_explained() {
    let tree = tree("rule cp\n  command = cp $in $out\nbuild b: cp a\nbuild c: cp b\n");
    write(&tree, "a", "");
    let both = together(&tree, &["-d", "explain"]);
    let expected = "selvedge-make explain: output b doesn't exist\n@@ cp a b\n\
                    selvedge-make explain: b is dirty\n@@ cp b c\n";
    assert_eq!(both, expected);
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

/// CMake configures headers when it writes the manifest anew, and the manifest may stay as it was.
#[test]
fn files_that_a_generator_writes_beside_the_manifest_are_seen() {
    let manifest = "rule gen\n  command = cp source side\n  generator = 1\n  restat = 1\nrule cp\n  \
                    command = cp $in $out\nbuild build.ninja: gen source\nbuild a: cp side\n";
    let tree = tree(manifest);
    write(&tree, "side", "");
    tick();
    for text in ["first", "second"] {
        write(&tree, "source", text);
        let (said, status) = run(&tree, &[]);
        assert_eq!((status, read(&tree, "a").as_str()), (0, text), "{said}");
        assert!(run(&tree, &[]).0.contains("no work to do"));
        tick();
    }
}

#[test]
fn a_header_that_only_a_compiler_has_named_stands_for_its_first_user() {
    let manifest = "rule cc\n  command = touch $out && echo $out: $in a.h > $out.d\n  depfile = $out.d\n  deps = gcc\n\
                    build a.o: cc a.c\nbuild b.o: cc b.c\n";
    let tree = tree(manifest);
    for name in ["a.c", "b.c", "a.h"] {
        write(&tree, name, "");
    }
    assert_eq!(run(&tree, &["b.o"]).1, 0);
    assert_eq!(run(&tree, &["a.o"]).1, 0);
    tick();
    write(&tree, "a.h", "");
    for program in [NINJA, OURS] {
        assert_eq!(build(program, tree.path(), &["-n", "a.h^"]).commands.len(), 1, "{program}");
        let said = output(program, tree.path(), &["-n", "-v", "a.h^"]).stdout;
        assert!(String::from_utf8(said).unwrap().contains("touch b.o"), "{program}");
    }
    assert!(run(&tree, &["-t", "deps", "a.h^"]).0.starts_with("b.o: #deps 2"));
}

#[test]
fn a_command_that_cannot_be_started_fails_its_edge_only() {
    // The system refuses an argument of more than 128 KiB.
    let long = "x".repeat(200_000);
    let tree = tree(&format!(
        "rule long\n  command = true {long}\nrule t\n  command = touch $out\nbuild a: long\nbuild b: t\n"
    ));
    let (said, status) = run(&tree, &["-j1", "-k0"]);
    assert!(status == 1 && tree.path().join("b").exists(), "{}", said.replace(&long, "x.."));
    assert!(said.contains("FAILED: [cannot be started] a \n"), "{}", said.replace(&long, "x.."));
}

#[test]
fn what_goes_wrong_after_a_command_has_its_own_name() {
    for (more, expected) in [
        ("deps = gcc\n", "FAILED: [its depfile cannot be used] a \n"),
        ("restat = 1\n", "build stopped: stat(a): "),
    ] {
        // The output is a link to itself, at which nothing can look.
        let tree = tree(&format!("rule r\n  command = ln -s a a\n  {more}build a: r\n"));
        let (said, status) = run(&tree, &[]);
        assert!(status == 1 && said.contains(expected), "{said}");
        assert_eq!(said.contains("depfile"), more.contains("gcc"), "{said}");
    }
}

#[test]
fn less_than_no_failures_are_any_number() {
    let tree = tree("rule bad\n  command = echo $out >> ran; false\nbuild a: bad\nbuild b: bad\n");
    for program in [OURS, NINJA] {
        assert_eq!(build(program, tree.path(), &["-j1", "-k", "-1"]).commands.len(), 2, "{program}");
    }
}

/// A command without a shell too: a shell corrects the variable itself.
#[test]
fn a_command_finds_the_directory_of_the_build_in_its_environment() {
    let tree = tree("");
    fs::create_dir(tree.path().join("c")).unwrap();
    let manifest = "rule r\n  command = printenv PWD\n  description = d\nbuild a: r\n";
    fs::write(tree.path().join("c/build.ninja"), manifest).unwrap();
    let root = tree.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("c", root.join("link")).unwrap();
    let pwd = |program: &str, start: &str, arguments: &[&str], pwd: &Path| {
        let mut build = command(program, &root.join(start), &[&["--quiet"], arguments].concat());
        let built = build.env("PWD", pwd).output().unwrap();
        String::from_utf8(built.stdout).unwrap().trim_end().to_string()
    };
    let directory = root.join("c").display().to_string();
    for program in [OURS, NINJA] {
        assert_eq!(pwd(program, "", &["-C", "c"], &root), directory, "{program}");
        // `cmake --build` changes its directory, and not the variable.
        assert_eq!(pwd(program, "c", &[], &root), directory, "{program}");
        // The variable is right, and names the directory by a symbolic link.
        let link = root.join("link");
        assert_eq!(pwd(program, "c", &["-C", "."], &link), link.display().to_string(), "{program}");
    }
}

/// The commands behind a manifest that is out of date are not known.
#[test]
fn a_dry_run_with_a_stale_manifest_shows_how_it_is_made() {
    let manifest = "rule g\n  command = touch $out\n  generator = 1\nrule t\n  command = touch $out\n\
                    build build.ninja: g source\nbuild a: t\n";
    let tree = tree(manifest);
    tick();
    write(&tree, "source", "");
    for program in [OURS, NINJA] {
        let built = build(program, tree.path(), &["-n"]);
        assert_eq!(built.commands, ["touch build.ninja"], "{program}");
    }
}
