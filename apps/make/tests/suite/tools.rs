//! `-t`: the tools say what ninja's say.

use crate::projects::{NINJA, OURS, build, create, files, output};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, UNIX_EPOCH};

/// The lines of what a tool says, sorted, without the name of the program.
fn said(program: &str, directory: &std::path::Path, arguments: &[&str]) -> BTreeSet<String> {
    let output = output(program, directory, &[&["-t"], arguments].concat());
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
}

#[test]
fn the_tools_that_show_say_the_same() {
    for seed in 0..3 {
        let tree = tempfile::tempdir().unwrap();
        create(tree.path(), seed);
        assert!(build(OURS, tree.path(), &[]).success);
        for arguments in [
            &["commands"][..],
            &["commands", "out/e1"],
            &["targets", "all"],
            &["targets", "rule"],
            &["targets", "rule", "deps"],
            &["targets", "depth", "0"],
            &["targets", "depth", "2"],
            &["inputs", "out/dyn", "dd"],
            &["compdb", "deps", "plain"],
            &["query", "gen/header"],
            &["deps"],
            &["missingdeps"],
            &["rules"],
            &["rules", "-d"],
        ] {
            if arguments.last() == Some(&"out/e1") && !tree.path().join("out/e1").exists() {
                continue;
            }
            let (ours, theirs) = (said(OURS, tree.path(), arguments), said(NINJA, tree.path(), arguments));
            // ninja says how many edges it has looked at.
            let theirs: BTreeSet<_> =
                theirs.into_iter().filter(|line| !line.starts_with("Processed ")).collect();
            assert_eq!(ours, theirs, "seed {seed}: {arguments:?}");
        }
    }
}

/// The tools that ninja has from 1.13 on, and what it changed then.
#[test]
fn inputs_and_commands_of_targets_are_told_as_ninja_1_13_tells_them() {
    let manifest = "rule cat\n  command = cat $in $out\nbuild out1: cat in1\nbuild out2: cat in2 out1\n\
                    build out3: cat out2 out1 | implicit || order_only\nbuild out4: cat\n\
                    build out$ 5: cat out1\nbuild p: phony out$ 5\nbuild all: phony p out4\n";
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    for (arguments, expected) in [
        (&["inputs", "out3"][..], "implicit\nin1\nin2\norder_only\nout1\nout2\n"),
        (&["inputs", "--dependency-order", "out3"], "in2\nin1\nout1\nout2\nimplicit\norder_only\n"),
        (&["inputs", "out3", "-d"], "in2\nin1\nout1\nout2\nimplicit\norder_only\n"),
        (&["inputs", "all"], "'out 5'\nin1\nout1\nout4\n"),
        (&["inputs", "--no-shell-escape", "all"], "in1\nout 5\nout1\nout4\n"),
        (&["inputs", "-0Ed", "all"], "in1\0out1\0out 5\0out4\0"),
        (&["inputs", "in1"], ""),
        (&["multi-inputs", "out1", "out2"], "out1\tin1\nout2\tin2\nout2\tin1\nout2\tout1\n"),
        (&["multi-inputs", "-d:", "p"], "p:in1\np:out1\np:out 5\n"),
        (&["multi-inputs", "--delimiter", ", ", "--print0", "out1"], "out1, in1\0"),
    ] {
        let output = output(OURS, tree.path(), &[&["-t"], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text == expected, "{arguments:?}: {text:?}");
    }
    let files = |arguments: &[&str]| {
        let output = output(OURS, tree.path(), &[&["-t", "compdb-targets"], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let of =
            |line: &str| line.trim_start().strip_prefix("\"output\": \"").map(|rest| rest.replace('"', ""));
        let error = String::from_utf8(output.stderr).unwrap();
        (text.lines().filter_map(of).collect::<Vec<_>>(), output.status.code(), error)
    };
    assert_eq!(files(&["out3"]).0, ["out1", "out2", "out3"]);
    assert_eq!(files(&["all"]).0, ["out1", "out 5"]);
    let (none, status, _) = files(&["out4"]);
    assert!(none.is_empty() && status == Some(0));
    for (arguments, error) in [
        (&[][..], "compdb-targets expects the name of at least one target\nusage: "),
        (&["in1"], "fatal: 'in1' is not a target"),
        (&["nothing-like-it"], "fatal: unknown target 'nothing-like-it'\n"),
    ] {
        let (none, status, said) = files(arguments);
        assert!(none.is_empty() && status == Some(1) && said.contains(error), "{arguments:?}: {said}");
    }
}

/// An edge without any input has no entry, and a phony edge has an empty command.
#[test]
fn the_compilation_database_has_the_first_input_of_any_kind() {
    let manifest = "rule r\n  command = touch $out $in\nrule f\n  command = cp $out @$out.rsp\n  \
                    rspfile = $out.rsp\n  rspfile_content = $in\n\
                    build a: r | x\nbuild b: r || a\nbuild c d: phony b\nbuild e: r\nbuild f: f y z\n";
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    for arguments in
        [&["compdb"][..], &["compdb", "r"], &["compdb", "phony", "f"], &["compdb", "-x"], &["compdb", "none"]]
    {
        let of = |program| {
            let output = output(program, tree.path(), &[&["-t"], arguments].concat());
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        // ninja 1.11 leaves an empty line where there is no entry.
        assert_eq!(of(OURS), of(NINJA).replace("[\n\n]", "[\n]"), "{arguments:?}");
    }
    // ninja 1.11 knows the first of these forms only.
    for (form, expected) in [
        ("@", "ld y z -o f"),
        ("--option-file=", "ld y z -o f"),
        ("-f ", "ld y z -o f"),
        ("-g ", "ld -g f.rsp -o f"),
    ] {
        let manifest = format!(
            "rule f\n  command = ld {form}$out.rsp -o $out\n  rspfile = $out.rsp\n  rspfile_content = $in\nbuild f: f y z\n"
        );
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("build.ninja"), manifest).unwrap();
        let text = String::from_utf8(output(OURS, tree.path(), &["-t", "compdb", "-x"]).stdout).unwrap();
        assert!(text.contains(&format!("\"command\": \"{expected}\",")), "{text}");
    }
    let all = output(OURS, tree.path(), &["-t", "compdb"]).stdout;
    assert_eq!(String::from_utf8(all).unwrap().matches("\"file\"").count(), 4);
}

#[test]
fn each_tool_has_help_and_refuses_what_it_does_not_know() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), "build a: phony\n").unwrap();
    let run = |arguments: &[&str]| {
        let output = output(OURS, tree.path(), &[&["-t"], arguments].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (_, list, _) = run(&["list"]);
    let tools: Vec<_> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    // Each tool of ninja is in the list, except for the tool that starts a browser.
    let theirs = output(NINJA, tree.path(), &["-t", "list"]).stdout;
    for tool in
        String::from_utf8(theirs).unwrap().lines().skip(1).map(|line| line.split_whitespace().next().unwrap())
    {
        assert!(tool == "browse" || tools.contains(&tool), "{tool}");
    }
    for tool in tools {
        for help in ["-h", "--help"] {
            let (status, said, _) = run(&[tool, help]);
            assert!(status == 1 && said.starts_with("usage: selvedge-make -t "), "{tool}: {said}");
            assert!(said.contains("\n  -h "), "{tool}: {said}");
        }
        let (status, _, said) = run(&[tool, "-q"]);
        assert!(status == 1 && said.contains(&format!("{tool}: invalid option '-q'\nusage: ")), "{said}");
    }
    assert!(run(&["clea"]).2.contains("unknown tool 'clea', did you mean 'clean'?"));
}

#[test]
fn cleaning_removes_what_was_built_and_nothing_else() {
    let tree = tempfile::tempdir().unwrap();
    create(tree.path(), 1);
    let sources = files(tree.path());
    assert!(build(OURS, tree.path(), &[]).success);
    let built = files(tree.path()).len();
    assert!(built > sources.len());
    assert!(output(OURS, tree.path(), &["-t", "clean"]).status.success());
    assert_eq!(files(tree.path()), sources);
    assert!(build(OURS, tree.path(), &[]).success);
    assert_eq!(files(tree.path()).len(), built);
}

#[test]
fn files_that_the_manifest_has_no_more_are_dead() {
    let tree = tempfile::tempdir().unwrap();
    let write = |edges: &str| {
        fs::write(tree.path().join("build.ninja"), format!("rule t\n  command = touch $out\n{edges}"))
            .unwrap();
    };
    write("build old: t\nbuild kept: t\n");
    assert!(build(OURS, tree.path(), &[]).success);
    write("build kept: t\n");
    assert!(output(OURS, tree.path(), &["-t", "cleandead"]).status.success());
    assert_eq!(files(tree.path()).into_keys().collect::<Vec<_>>(), ["build.ninja", "kept"]);
}

/// A file that only a dyndep file names is an output as any other one.
#[test]
fn what_a_dyndep_file_names_is_cleaned_and_is_not_dead() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule t\n  command = touch $out more\nrule dd\n  command = cp dd.in dd\nbuild dd: dd dd.in\n\
                    build a: t || dd\n  dyndep = dd\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    fs::write(tree.path().join("dd.in"), "ninja_dyndep_version = 1\nbuild a | more: dyndep\n").unwrap();
    assert!(build(OURS, tree.path(), &[]).success);
    assert!(output(OURS, tree.path(), &["-t", "cleandead"]).status.success());
    let names = || files(tree.path()).into_keys().collect::<Vec<_>>();
    assert_eq!(names(), ["a", "build.ninja", "dd", "dd.in", "more"]);
    assert!(output(OURS, tree.path(), &["-t", "clean"]).status.success());
    assert_eq!(names(), ["build.ninja", "dd.in"]);
}

#[test]
fn the_critical_path_is_the_longest_chain() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule t\n  command = touch $out\nbuild a: t\nbuild b: t\nbuild c: t a b\nbuild d: t\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    let log = "# ninja log v6\n0\t50\t1\ta\t1\n0\t70\t1\tb\t1\n70\t80\t1\tc\t1\n0\t75\t1\td\t1\n";
    fs::write(tree.path().join(".ninja_log"), log).unwrap();
    let output = output(OURS, tree.path(), &["-t", "critical-path"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "      70 ms  b\n      10 ms  c\n      80 ms  in a row, of 205 ms in all commands\n");
}

/// A command that fails leaves the record of its last success, with its times.
#[test]
fn the_critical_path_knows_the_time_of_a_command_that_has_failed_since() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), "rule f\n  command = false\nbuild a: f\n").unwrap();
    fs::write(tree.path().join(".ninja_log"), "# ninja log v6\n10\t80\t1\ta\t1\n").unwrap();
    assert!(!output(OURS, tree.path(), &[]).status.success());
    let output = output(OURS, tree.path(), &["-t", "critical-path"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "      70 ms  a\n      70 ms  in a row, of 70 ms in all commands\n");
}

/// CMake takes the times of files into the log before there is a manifest.
#[test]
fn restat_finds_the_log_in_the_directory_that_it_is_told() {
    let log = |a: u64, b: u64, gone: u64| {
        format!("# ninja log v5\n1\t2\t{a}\ta\tff\n1\t2\t{b}\tb\tfe\n1\t2\t{gone}\tgone\tfd\n")
    };
    let (then, nanoseconds) = (Duration::from_secs(1_700_000_000), 1_700_000_000_000_000_000);
    for (arguments, expected) in [
        (&["--builddir", "out", "a"][..], log(nanoseconds, 3, 3)),
        (&["--builddir=out"], log(nanoseconds, nanoseconds, 0)),
        (&["--builddir=no"], log(3, 3, 3)),
    ] {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("out")).unwrap();
        fs::write(tree.path().join("out/.ninja_log"), log(3, 3, 3)).unwrap();
        for name in ["a", "b"] {
            fs::File::create(tree.path().join(name)).unwrap().set_modified(UNIX_EPOCH + then).unwrap();
        }
        let restated = output(OURS, tree.path(), &[&["-t", "restat"], arguments].concat());
        assert!(restated.status.success(), "{arguments:?}: {restated:?}");
        let lines = |text: &str| text.lines().map(str::to_string).collect::<BTreeSet<_>>();
        let text = fs::read_to_string(tree.path().join("out/.ninja_log")).unwrap();
        assert_eq!(lines(&text), lines(&expected), "{arguments:?}");
    }
}

#[test]
fn the_graph_has_a_node_for_each_file_and_each_edge() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule r\n  command = r\nbuild a: r b | c || d\nbuild other: r\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    let output = output(OURS, tree.path(), &["-t", "graph", "a"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: BTreeSet<_> = text.lines().filter(|line| line.starts_with('"')).collect();
    let expected = [
        "\"n0\" [label=\"a\"]",
        "\"n1\" [label=\"b\"]",
        "\"n2\" [label=\"c\"]",
        "\"n3\" [label=\"d\"]",
        "\"e0\" [label=\"r\", shape=ellipse]",
        "\"e0\" -> \"n0\"",
        "\"n1\" -> \"e0\" [arrowhead=none]",
        "\"n2\" -> \"e0\" [arrowhead=none]",
        "\"n3\" -> \"e0\" [arrowhead=none style=dotted]",
    ];
    assert_eq!(lines, BTreeSet::from(expected));
    assert!(text.starts_with("digraph ninja {\n") && text.ends_with("}\n"), "{text}");
}

/// The files that stay after `-t clean` with these arguments, of one edge of each kind.
fn after_clean(arguments: &[&str]) -> Vec<String> {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule r\n  command = touch $out\nrule s\n  command = touch $out\n\
                    rule g\n  command = touch $out\n  generator = 1\n\
                    build a: r\nbuild b: s a\nbuild c: s\nbuild d: g\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    assert!(build(OURS, tree.path(), &[]).success);
    let cleaned = output(OURS, tree.path(), &[&["-t", "clean"], arguments].concat());
    assert!(cleaned.status.success(), "{arguments:?}: {cleaned:?}");
    files(tree.path()).into_keys().filter(|name| name != "build.ninja").collect()
}

#[test]
fn cleaning_takes_all_or_generators_too_or_rules_or_targets() {
    assert_eq!(after_clean(&[]), ["d"]);
    assert_eq!(after_clean(&["-g"]), [""; 0]);
    assert_eq!(after_clean(&["-r", "s"]), ["a", "d"]);
    assert_eq!(after_clean(&["b"]), ["c", "d"]);
}

#[test]
fn recompact_writes_one_line_for_each_output() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), "rule t\n  command = touch $out\nbuild a: t\n").unwrap();
    let log = "# ninja log v5\n1\t2\t3\ta\tff\n1\t2\t4\tgone\tfe\n1\t2\t9\ta\tfd\n";
    fs::write(tree.path().join(".ninja_log"), log).unwrap();
    assert!(output(OURS, tree.path(), &["-t", "recompact"]).status.success());
    let text = fs::read_to_string(tree.path().join(".ninja_log")).unwrap();
    assert_eq!(text, "# ninja log v5\n1\t2\t9\ta\tfd\n");
}

#[test]
fn the_statistics_name_each_part_of_a_build() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), "rule t\n  command = touch $out\nbuild a: t\n").unwrap();
    let output = output(OURS, tree.path(), &["-d", "stats"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let parts = [
        "read the manifest",
        "read the deps log",
        "read the build log",
        "look at files",
        "find what is dirty",
        "build",
    ];
    for part in parts {
        let time = text.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<f64>().ok());
        assert!(time.is_some_and(|time| time >= 0.0), "{part}: {text}");
    }
    assert!(text.ends_with("nodes 1, edges 1\n"), "{text}");
}

#[test]
fn depfiles_and_response_files_are_kept_on_demand() {
    for (arguments, kept) in [
        (&[][..], &["a", "b"][..]),
        (&["-d", "keepdepfile"], &["a", "a.d", "b"]),
        (&["-d", "keeprsp"], &["a", "b", "b.rsp"]),
    ] {
        let tree = tempfile::tempdir().unwrap();
        let manifest = "rule d\n  command = touch $out && echo $out: > $out.d\n  depfile = $out.d\n  deps = gcc\n\
                        rule f\n  command = cp $out.rsp $out\n  rspfile = $out.rsp\n  rspfile_content = x\n\
                        build a: d\nbuild b: f\n";
        fs::write(tree.path().join("build.ninja"), manifest).unwrap();
        assert!(build(OURS, tree.path(), arguments).success);
        let names: Vec<_> = files(tree.path()).into_keys().filter(|name| name != "build.ninja").collect();
        assert_eq!(names, kept, "{arguments:?}");
    }
}
