//! The recipes of the guide, each beside the tool that it stands for, on the same files.

use crate::data::{files, shell, system};
use std::path::Path;

const GUIDE: &str = include_str!("../../../../docs/guide/shell.md");

/// The blocks of the guide that have a recipe: the command of the shell, and the command of the
/// system behind `# is`.
fn recipes() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in GUIDE.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        if let Some((ours, theirs)) = block.split_once("# is\n") {
            found.push((ours.trim().to_string(), theirs.trim().to_string()));
        }
    }
    found
}

#[test]
fn each_recipe_does_what_the_tool_does() {
    let directory = files();
    let recipes = recipes();
    assert!(recipes.len() >= 10, "{} recipes", recipes.len());
    let mut tools = String::new();
    for (ours, theirs) in recipes {
        let script =
            ours.strip_prefix("selvedge-pipe '").and_then(|rest| rest.strip_suffix('\'')).expect(&ours);
        let made = shell(directory.path(), &[script], b"");
        let expected = system(directory.path(), &theirs, b"");
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(shown(&expected.stderr), "", "{theirs}");
        assert!(!expected.stdout.is_empty(), "{theirs} finds nothing, so it proves nothing");
        assert_eq!(shown(&made.stderr), "", "{ours}");
        assert_eq!(shown(&made.stdout), shown(&expected.stdout), "{ours}\n{theirs}");
        assert_eq!(made.status.code(), Some(0), "{ours}");
        tools.push_str(&theirs);
    }
    for tool in ["grep", "sed", "awk", "jq", "csplit", "sort", "python3"] {
        assert!(tools.contains(tool), "a recipe stands beside {tool}");
    }
}

#[test]
fn stages_do_what_tools_do_on_any_input() {
    let directory = files();
    let pairs = [
        ("lines | having substring \"warp\"", "grep -F warp"),
        ("lines | having not substring \"a\"", "grep -vF a"),
        ("lines | having regex \"^(GET|POST) .*[45]0\"", "grep -E '^(GET|POST) .*[45]0'"),
        ("lines | having regex \"w.*t$\" numbered", "grep -nE 'w.*t$'"),
        ("lines | having regex \"^$\" numbered", "grep -n '^$'"),
        ("lines | having substring \"w\" and not suffix \"t\"", "grep w | grep -v 't$'"),
        ("lines | having prefix \"G\" or empty", "grep -E '^(G|$)'"),
        ("each regex \"[0-9]+\"", "grep -oE '[0-9]+'"),
        ("lines | count", "awk 'END { print NR }'"),
        ("lines | sort", "sort"),
        ("lines | sort descending", "sort -r"),
        ("lines | sort numeric", "sort -n -s"),
        ("lines | sort | sh \"uniq\"", "sort -u"),
        ("lines | unique", "awk '!seen[$0]++'"),
        ("lines | first 7", "head -n 7"),
        ("lines | last 7", "awk 1 | tail -n 7"),
        ("lines | number", "awk '{ print NR \":\" $0 }'"),
        ("lines | fields | column 2", "awk '{ print $2 }'"),
        ("lines | fields \"a\" | columns 2 1 | join \"+\"", "awk -Fa '{ print $2 \"+\" $1 }'"),
        ("replace \"a\" with \"<a>\"", "sed 's/a/<a>/g'"),
        ("replace regex \"([a-z])([a-z])\" with \"$2$1\"", "sed -E 's/([a-z])([a-z])/\\2\\1/g'"),
        ("lines | replace \"w\" with \"\"", "awk '{ gsub(/w/, \"\"); print }'"),
        ("foreach line having prefix \"G\" then replace \"a\" with \"b\" end", "sed '/^G/ s/a/b/g'"),
        ("foreach line having regex \"o\" then uppercase else suppress end", "grep o | tr a-z A-Z"),
        ("lines | having even (empty or not empty)", "awk 'NR % 2 == 0'"),
        ("having even line", "awk 'NR % 2 == 0'"),
        ("lines | having even prefix \"G\"", "grep '^G' | awk 'NR % 2 == 0'"),
        ("foreach even line then uppercase end", "awk '{ print NR % 2 ? $0 : toupper($0) }'"),
        (
            "lines | having upto first prefix \"G\"",
            "awk '{ print } /^G/ { exit }' | awk '{ t = t $0 \"\\n\" } /^G/ { printf \"%s\", t }'",
        ),
        (
            "having last and after (line having prefix \"G\")",
            "awk '/^G/ { t = \"\"; f = 1 } { t = t $0 \"\\n\" } END { if (f) printf \"%s\", t }'",
        ),
        (
            "lines | having prefix \"G\" followed by prefix \"P\"",
            "awk 'held != \"\" && /^P/ { print held; print; held = \"\"; next } { held = /^G/ ? $0 : \"\" }'",
        ),
        (
            "foreach substring \"a\" followed by digits then uppercase | prepend \"<\" end",
            "sed -E 's/a([0-9]+)/<A\\1/g'",
        ),
        ("lines | prepend \"> \"", "awk '{ print \"> \" $0 }'"),
        ("uppercase", "tr a-z A-Z"),
        ("lines | zip (text \"1\\n2\\n\" | lines)", "awk '{ print $0 \"\\t\" NR } NR == 2 { exit }'"),
        ("lines | sort | merge (text \"b\\nz\\n\" | lines)", "(awk 1; echo b; echo z) | sort"),
    ];
    let mut numbers = crate::data::Numbers::new(7);
    for round in 0..3 {
        let mut input = String::new();
        for _ in 0..[3, 60, 400][round] {
            let piece = numbers.pick(&[
                "GET a 1\n",
                "POST wet 404\n",
                "\n",
                "warp weft\n",
                " 12 b\n",
                "t",
                "a",
                "Go to\n",
            ]);
            input.push_str(piece);
        }
        if round > 0 {
            input.push_str("the last line");
        }
        for (ours, theirs) in pairs {
            let made = shell(directory.path(), &[ours], input.as_bytes());
            let expected = system(directory.path(), theirs, input.as_bytes());
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(shown(&made.stderr), "", "{ours}");
            let (made, mut expected) = (shown(&made.stdout), shown(&expected.stdout));
            // `sed` and `tr` know no last line without an end.
            if !ours.starts_with("lines") && !made.ends_with('\n') {
                expected = expected.trim_end_matches('\n').to_string();
                assert_eq!(made.trim_end_matches('\n'), expected, "{ours}\n{theirs}\n{input}");
                continue;
            }
            assert_eq!(made, expected, "{ours}\n{theirs}\n{input:?}");
        }
    }
}

#[test]
fn the_guide_explains_every_word_of_the_language() {
    use selvedge_pipe::language::words::{CONDITIONS, ENCODINGS, STAGES};
    let guide = include_str!("../../../../docs/guide/shell.md");
    let (_, tables) = guide.split_once("## All stages").unwrap();
    let (stages, rest) = tables.split_once("## All conditions").unwrap();
    let (conditions, _) = rest.split_once("## Scripts").unwrap();
    let explained = |text: &str, word: &str| {
        let rows = text.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        let words: Vec<&str> = rows.flat_map(|row| row.split(|char: char| " `.,".contains(char))).collect();
        assert!(words.contains(&word), "{word}");
    };
    STAGES.iter().chain(ENCODINGS).for_each(|word| explained(stages, word));
    CONDITIONS.iter().for_each(|word| explained(conditions, word));
    for relation in ["and", "or", "having", "only", "followed", "nested"] {
        explained(conditions, relation);
    }
    // The examples of the second table, and of the precedence below it.
    let lines = b"a1\na2\nb1\nc1\nb2\na3\n";
    for (condition, found) in [
        ("first prefix 'a'", "a1"),
        ("last prefix 'a'", "a3"),
        ("even prefix 'a'", "a2"),
        ("prefix prefix 'a'", "a1"),
        ("prefix prefix 'b'", ""),
        ("upto first prefix 'b'", "a1 a2 b1"),
        ("last and after prefix 'b'", "b2 a3"),
        ("between first prefix 'b' and prefix 'a'", "b1 c1 b2"),
        ("prefix 'b' followed by prefix 'c'", "b1 c1"),
        ("prefix 'a' or prefix 'b' and suffix '2'", "a1 a2 b2 a3"),
    ] {
        let output = shell(Path::new("/"), &[&format!("lines | having {condition}")], lines);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim().replace('\n', " "), found, "{condition}");
    }
    for (condition, found) in [
        ("not line having letters", ""),
        ("not (line having letters)", "1\n"),
        ("line having only (letters or whitespace)", "b\n"),
    ] {
        let output = shell(Path::new("/"), &[&format!("having {condition}")], b"a2\nb\n1\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), found, "{condition}");
    }
}

#[cfg(feature = "gzip")]
#[test]
fn what_the_tool_gzip_packs_is_unpacked() {
    let directory = files();
    let text = b"warp\nweft\nno warp\n";
    let packed = system(directory.path(), "gzip -c", text).stdout;
    let script = "gunzip | lines | having substring 'warp' numbered";
    let found = shell(directory.path(), &[script], &packed);
    assert_eq!(found.stdout, b"1:warp\n3:no warp\n");
    let packed = shell(directory.path(), &["gzip"], text).stdout;
    assert_eq!(system(directory.path(), "gzip -dc", &packed).stdout, text);
    let refused = shell(directory.path(), &["gunzip | count"], b"no gzip at all");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("gunzip | count"));
}

#[cfg(feature = "zstd")]
#[test]
fn what_is_packed_by_zstd_is_unpacked() {
    let directory = files();
    let packed = shell(directory.path(), &["zstd"], b"warp\nweft\n").stdout;
    assert_eq!(packed[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    assert_eq!(shell(directory.path(), &["unzstd | lines | last 1"], &packed).stdout, b"weft\n");
}
