//! What the user sees of a build.

use crate::projects::{NINJA, OURS, command, output, tick};
use crate::small::{run, tree, write};
use std::process::Stdio;

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

#[test]
fn the_status_line_follows_the_users_format() {
    let tree = tree("rule t\n  command = touch $out\nbuild a: t\nbuild b: t a\n");
    let mut ours = command(OURS, tree.path(), &[]);
    let output = ours.env("NINJA_STATUS", "<%f/%t %s %r %u %p%%> ").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "<1/2 1 0 1  50%%> touch a\n<2/2 2 0 0 100%%> touch b\n");
}

/// The rate of the last commands is not that of the whole build, and the first command has none.
#[test]
fn the_status_line_tells_how_fast_commands_end_now_and_on_the_whole() {
    let rates = {
        let tree = tree(
            "rule r\n  command = sleep 0.4\nrule t\n  command = true\nbuild a: r\nbuild b: t a\nbuild c: t b\n",
        );
        let mut build = command(OURS, tree.path(), &["-j2"]);
        let output = build.env("NINJA_STATUS", "%c %o ").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let of =
            |line: &str| line.split(' ').take(2).map(|rate| rate.parse::<f64>().ok()).collect::<Vec<_>>();
        text.lines().map(of).collect::<Vec<_>>()
    };
    assert_eq!((rates.len(), rates[0][0]), (3, None));
    let (now, on_the_whole) = (rates[2][0].unwrap(), rates[2][1].unwrap());
    assert!(now > on_the_whole && on_the_whole < 7.5, "{rates:?}");
}

#[test]
fn colours_are_for_terminals_and_for_those_that_force_them() {
    let manifest = "rule r\n  command = printf '\\033[1;31mred\\033[0m\\n'\n  description = d\nbuild a: r\n";
    for (force, said) in [("0", "@@ d\nred\n"), ("1", "@@ d\n\x1b[1;31mred\x1b[0m\n")] {
        for program in [OURS, NINJA] {
            let tree = tree(manifest);
            let built = command(program, tree.path(), &[]).env("CLICOLOR_FORCE", force).output().unwrap();
            assert_eq!(String::from_utf8(built.stdout).unwrap(), said, "{program}");
        }
    }
}

#[test]
fn a_quiet_build_shows_what_commands_write_and_nothing_else() {
    let manifest = "rule r\n  command = echo written; touch $out\nbuild a: r\n";
    for program in [OURS, NINJA] {
        let tree = tree(manifest);
        let path = tree.path().to_str().unwrap();
        let built = || output(program, std::path::Path::new("/"), &["--quiet", "-C", path]).stdout;
        assert_eq!(built(), b"written\n", "{program}");
        assert!(program != OURS || built().is_empty());
    }
}

/// A reader that has gone ends a build, as SIGPIPE ends ninja, and nothing stays half-made.
#[test]
fn a_closed_pipe_ends_a_build() {
    use std::os::unix::process::ExitStatusExt;
    let manifest = "rule r\n  command = echo written; touch $out\n\
                    rule slow\n  command = touch $out; sleep 60; touch done\n\
                    build a: r\nbuild slow: slow\nbuild b: r a\n";
    let gone = || std::io::pipe().unwrap().1;
    for program in [OURS, NINJA] {
        let tree = tree(manifest);
        let arguments = if program == OURS { &["-j2"][..] } else { &["-j1"] };
        let status = command(program, tree.path(), arguments).stdout(gone()).status().unwrap();
        assert!(status.code() == Some(141) || status.signal() == Some(13), "{program}: {status}");
        let there = |name: &str| tree.path().join(name).exists();
        assert!(there("a") && !there("b") && !there("done"), "{program}");
        assert!(program != OURS || !(there("slow") || there(".ninja_lock")));
    }
    // Thousands of lines that are shown together.
    let edges: String = (0..5000).map(|edge| format!("build long-name-of-an-output-{edge}: r\n")).collect();
    let tree = tree(&format!("rule r\n  command = touch $out\n{edges}"));
    let status = command(OURS, tree.path(), &["-n"]).stdout(gone()).status().unwrap();
    assert_eq!(status.code(), Some(141));
}

/// Where nothing runs, the reader misses a line and nothing else.
#[test]
fn a_closed_pipe_does_not_matter_where_nothing_runs() {
    let tree = tree("rule r\n  command = echo written; touch $out\nbuild a: r\nbuild b: r a\n");
    assert_eq!(run(&tree, &[]).1, 0);
    let gone = || std::io::pipe().unwrap().1;
    for arguments in [&["-d", "explain", "-d", "stats"][..], &[], &["--help"], &["--version"], &["-C", "."]] {
        let mut ours = command(OURS, tree.path(), arguments);
        let status = ours.stdout(gone()).stderr(gone()).stdin(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
    let status = command(OURS, tree.path(), &["nothing"]).stderr(gone()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_closed_pipe_does_not_make_a_tool_fail() {
    // More than one buffer of text.
    let edges: String = (0..2000).map(|edge| format!("build long-name-of-an-output-{edge}: r\n")).collect();
    let tree = tree(&format!("rule r\n  command = touch $out\n{edges}"));
    for tool in [&["-t", "targets", "all"][..], &["-t", "commands"], &["-t", "graph"], &["-n", "-t", "clean"]]
    {
        let gone = std::io::pipe().unwrap().1;
        let ended = command(OURS, tree.path(), tool).stdout(gone).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &said[..]), (Some(0), ""), "{tool:?}");
    }
}

/// `script` gives the build runner a terminal.
fn on_a_terminal(program: &str, manifest: &str) -> String {
    on_a_terminal_with(program, manifest, "")
}

fn on_a_terminal_with(program: &str, manifest: &str, arguments: &str) -> String {
    let tree = tree(manifest);
    let line = format!("stty cols 40; exec {program} -j1 {arguments}");
    let mut script = command("script", tree.path(), &["-q", "-e", "-c", &line, "/dev/null"]);
    let built = script.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap();
    String::from_utf8(built.stdout).unwrap()
}

#[test]
fn whole_commands_are_shown_once_on_a_terminal_too() {
    let manifest = "rule r\n  command = echo said\nbuild a: r\nbuild b: r a\n  pool = console\n";
    for program in [OURS, NINJA] {
        let shown = on_a_terminal_with(program, manifest, "-v");
        assert_eq!(shown, "@@ echo said\r\nsaid\r\n@@ echo said\r\nsaid\r\n", "{program}");
    }
}

#[test]
fn a_failure_is_red_where_colours_are_kept() {
    let manifest = "rule r\n  command = exit 3\nbuild a b: r\n";
    for (program, reason) in [(OURS, "[code=3] "), (NINJA, "")] {
        let red = format!("\x1b[31mFAILED: {reason}\x1b[0ma b \r\nexit 3\r\n");
        for arguments in ["", "-v"] {
            let shown = on_a_terminal_with(program, manifest, arguments);
            assert!(shown.contains(&red), "{program}: {shown:?}");
        }
        for (force, red) in [("1", "\x1b[31mFAILED: "), ("0", "\nFAILED: ")] {
            let tree = tree(manifest);
            let built = command(program, tree.path(), &[]).env("CLICOLOR_FORCE", force).output().unwrap();
            assert!(String::from_utf8(built.stdout).unwrap().contains(red), "{program}");
        }
    }
}

#[test]
fn an_unknown_placeholder_is_refused_before_anything_runs() {
    let fresh = || tree("rule t\n  command = touch $out\nbuild a: t\n");
    for (format, told) in [("[%q] ", "'%q'"), ("%", "'%'"), ("%%%s%", "'%'")] {
        for program in [OURS, NINJA] {
            let tree = fresh();
            let built = command(program, tree.path(), &[]).env("NINJA_STATUS", format).output().unwrap();
            let said = String::from_utf8_lossy(&built.stderr);
            assert_eq!(built.status.code(), Some(1), "{program}: {format}");
            assert!(said.contains("unknown placeholder"), "{said}");
            assert!(program != OURS || said.contains(told) && said.contains("%s, %t, "), "{said}");
            assert!(program != OURS || !tree.path().join("a").exists());
        }
    }
    let all = "%s %t %p %r %u %f %o %c %e %w %E %W %P %% ";
    let built = command(OURS, fresh().path(), &["-n"]).env("NINJA_STATUS", all).output().unwrap();
    let text = String::from_utf8(built.stdout).unwrap();
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(built.status.success() && words.len() == 16, "{text}");
    assert_eq!((words[2], &words[12..]), ("100%", &["100%", "%", "touch", "a"][..]), "{text}");
}

#[test]
fn unknown_words_of_options_are_refused_and_the_known_ones_listed() {
    let tree = tree("build a: phony a\nbuild b: phony a\n");
    for (arguments, status, told) in [
        (&["-d", "expl"][..], 1, "-d expl is none of: explain, stats, keepdepfile, keeprsp, list"),
        (&["-w", "other=err"], 1, "-w other=err is none of: phonycycle=err, phonycycle=warn, list"),
        (&["-w", "phonycycle"], 1, "is none of: phonycycle=err"),
        (&["-d", "list"], 1, "\n  keepdepfile "),
        (&["-w", "list"], 1, "\n  phonycycle={err,warn} "),
        (&["-w", "dupbuild=err"], 0, "warning: deprecated warning 'dupbuild=err'"),
        (&["-d", "nostatcache"], 0, "no work to do"),
        (&["-w", "phonycycle=warn"], 0, "warning: phony target 'a' names itself as an input"),
        (&["-w", "phonycycle=err"], 1, "dependency cycle: a -> a [-w phonycycle=err]"),
    ] {
        let (text, ended) = run(&tree, arguments);
        assert!(ended == status && text.contains(told), "{arguments:?}: {ended}, {text}");
        let theirs = output(NINJA, tree.path(), arguments);
        assert_eq!(theirs.status.code(), Some(status), "{arguments:?}: {theirs:?}");
    }
}

#[test]
fn a_terminal_has_one_line_that_changes() {
    let long = "with a description that is longer than a line of this terminal";
    let manifest = format!(
        "rule t\n  command = touch $out\n  description = $out\nrule say\n  command = echo said\n  \
         description = says {long}\nbuild a: t\nbuild b: say a\nbuild c: t b\n"
    );
    let shown = on_a_terminal(OURS, &manifest);
    let lines: Vec<&str> = shown.split("\r\n").collect();
    // What a command has written stays below its line, and the next line begins anew.
    assert_eq!(lines.len(), 4, "{shown:?}");
    assert_eq!((lines[1], lines[3]), ("said", ""), "{shown:?}");
    let changes: Vec<&str> = lines[0].split('\r').filter(|line| !line.is_empty()).collect();
    assert_eq!(changes[..2], ["@@ a\x1b[K"; 2], "{shown:?}");
    let last = changes.last().unwrap().trim_end_matches("\x1b[K");
    assert!(last.len() < 40 && last.contains("...") && last.ends_with("terminal"), "{shown:?}");
    assert!(lines[2].ends_with("@@ c\x1b[K"), "{shown:?}");
}

#[test]
fn a_command_of_the_console_has_the_terminal_as_with_ninja() {
    let manifest = "rule r\n  command = test -t 0 && test -t 1 && test -t 2 && echo terminal\n  \
                    description = d\nbuild a: r\n  pool = console\n";
    for program in [OURS, NINJA] {
        let shown = on_a_terminal(program, manifest);
        assert!(shown.contains("\r\nterminal\r\n"), "{program}: {shown:?}");
    }
}

/// CMake asks for the version, and writes what that version has.
#[test]
fn a_manifest_may_ask_for_the_version_that_is_told_and_for_no_later_one() {
    let told = String::from_utf8(output(OURS, std::path::Path::new("/"), &["--version"]).stdout).unwrap();
    let (major, minor) = (told.split('.').next().unwrap(), told.split('.').nth(1).unwrap());
    let later = format!("{major}.{}", minor.parse::<u32>().unwrap() + 1);
    for (wanted, status) in [("1.13", 0), ("1.5-suffix", 0), (told.trim(), 0), (&later[..], 1)] {
        let tree =
            tree(&format!("ninja_required_version = {wanted}\nrule r\n  command = touch $out\nbuild a: r\n"));
        assert_eq!(run(&tree, &[]).1, status, "{wanted}");
    }
}

/// A compiler that names its headers among its messages.
#[test]
fn headers_among_messages_are_read_and_not_shown() {
    let manifest = "rule cl\n  command = printf 'a.c\\r\\nLiest:  ./a.h\\r\\nwarning\\r\\n'; touch $out\n  \
                    deps = msvc\n  msvc_deps_prefix = Liest:\n  description = d\nbuild a.o: cl a.c\n";
    for program in [OURS, NINJA] {
        let tree = tree(manifest);
        write(&tree, "a.c", "");
        write(&tree, "a.h", "");
        let built = || String::from_utf8(output(program, tree.path(), &[]).stdout).unwrap();
        assert_eq!(built(), "@@ d\nwarning\n", "{program}");
        assert!(built().contains("no work to do"), "{program}");
        tick();
        write(&tree, "a.h", "");
        assert_eq!(built(), "@@ d\nwarning\n", "{program}");
    }
}
