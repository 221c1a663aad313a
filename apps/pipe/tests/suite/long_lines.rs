//! Lines that are long: which stages keep them, and how much memory that takes.

use crate::data::{Numbers, system, text};
use selvedge_pipe::fuzz::{cause_alone, outcome, outcome_in_parts};
use selvedge_pipe::run::prepare;
use std::io::Write;

/// Stages behind `lines` that run over bytes where only the text is wanted.
const OVER_BYTES: [&str; 10] = [
    "number",
    "prepend '<'",
    "append '>'",
    "uppercase",
    "lowercase",
    "replace 'ab' with 'c'",
    "replace 'a' with ''",
    "replace regex 'a+' with '[$0]'",
    "replace regex '^|b$' with '-'",
    "replace regex 'b' with 'ba'",
];

/// Stages that cannot, because one of their texts has a line end.
const OVER_LINES: [&str; 4] = [
    "replace \"a\" with \"\\n\"",
    "replace \"b\\n\" with \"c\"",
    "prepend \"a\\n\"",
    "replace regex 'b' with \"\\n$0\"",
];

#[test]
fn stages_over_the_text_of_lines_do_what_stages_over_lines_do() {
    let mut numbers = Numbers::new(59);
    for round in 0..300 {
        let stages: Vec<&str> = (0..1 + numbers.below(4))
            .map(|_| match numbers.below(6) {
                0 => numbers.pick(&OVER_LINES),
                _ => numbers.pick(&OVER_BYTES),
            })
            .collect();
        let pieces = ["a", "b", "ab", "aab", "B", "\n", "\n", "\r\n", "x"];
        let input: String = (0..[0, 1, 5, 60][round % 4]).map(|_| numbers.pick(&pieces)).collect();
        let end =
            numbers.pick(&["", " | bytes", " | bytes | replace 'b' with 'd'", " | bytes | lines | count"]);
        let text = format!("lines | {}{end}", stages.join(" | "));
        // Behind a condition each stage takes lines.
        let one_by_one = stages.join(" | having everything | ");
        let slow = format!("lines | having everything | {one_by_one} | having everything{end}");
        let (fast, slow) = (prepare(&text).unwrap(), prepare(&slow).unwrap());
        let expected = outcome(&slow[0], &[input.as_bytes()]);
        for length in [1, 3, 100] {
            let chunks: Vec<&[u8]> = input.as_bytes().chunks(length).collect();
            assert_eq!(outcome(&fast[0], &chunks), expected, "{text} of {input:?}");
            for threads in [1, 2] {
                if let Some(made) = outcome_in_parts(&fast[0], &chunks, threads) {
                    assert_eq!(made, cause_alone(&expected), "{text} of {input:?}, in parts");
                }
            }
        }
    }
    // A run of stages over bytes ends where something takes lines.
    for (script, input, made) in [
        ("lines | number | last 1", "a\nb", "2:b\n"),
        ("lines | count", "a\n\nb", "3\n"),
        ("lines | count", "", "0\n"),
        ("foreach line then lines | number end", "a\nb", "1:a\n1:b\n"),
        ("lines | foreach prefix 'a' then number end", "a\nb\n", "1:a\nb\n"),
    ] {
        let out = outcome(&prepare(script).unwrap()[0], &[input.as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out.0), made, "{script}");
    }
}

#[test]
fn a_line_is_kept_once_and_only_if_a_stage_needs_it() {
    const MEGABYTES: usize = 32;
    // A script as an argument, and the most memory that it has had, in megabytes.
    const PLAY: &str = r#"
import os, resource, subprocess, sys
for threads in ["1", "2"]:
    child = os.fork()
    if child == 0:
        null = open("/dev/null", "w")
        subprocess.run([sys.argv[1], "-j", threads, sys.argv[2]], stdout=null, check=True)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, end=" ", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"#;
    let directory = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(directory.path().join("long")).unwrap();
    let block = b"abcdefghijklmno ".repeat(1 << 16);
    file.write_all(b"short\n").unwrap();
    (0..MEGABYTES).for_each(|_| file.write_all(&block).unwrap());
    file.write_all(b"\nwarp\n").unwrap();
    drop(file);
    std::fs::write(directory.path().join("play.py"), PLAY).unwrap();
    let most = |stages: &str| -> usize {
        let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
        let command = format!("python3 play.py {shell} \"file long | {stages}\"");
        let told = text(&system(directory.path(), &command, b""), 0);
        told.split_whitespace().map(|number| number.parse().unwrap()).max().unwrap()
    };
    // What the program has without a long line, and a little more.
    let own = 25;
    for stages in [
        "count",
        "lines",
        "lines | count",
        "lines | number",
        "lines | replace 'zz' with 'y'",
        "replace 'zz' with 'y'",
        "lines | uppercase | append '.' | to /dev/null",
    ] {
        let most = most(stages);
        assert!(most < own, "{stages}: {most} MB");
    }
    for stages in [
        "lines | having substring 'o a'",
        "having line having substring 'o a'",
        "lines | having not substring 'zz'",
        "lines | replace regex 'zz' with 'y'",
        "lines | sort",
        "lines | last 1",
    ] {
        let most = most(stages);
        assert!(most < 2 * MEGABYTES + own, "{stages}: {most} MB");
    }
}
