//! What comes out, and where a stage fails, does not depend on how the input was cut into chunks.

use crate::data::{Numbers, shell, text};
use selvedge_pipe::fuzz::{self, cause_alone, outcome, outcome_in_parts};
use selvedge_pipe::language::words::{CONDITIONS, ENCODINGS, STAGES};
use selvedge_pipe::run::prepare;

/// What a pipeline without a source makes of chunks, and the failure that ends it, if one does.
fn made(script: &str, chunks: &[&[u8]]) -> (String, Option<String>) {
    let (out, failure) = outcome(&prepare(script).unwrap()[0], chunks);
    (String::from_utf8_lossy(&out).into_owned(), failure)
}

/// Compares what comes out with what comes out if the first stages run in threads. Returns whether
/// they may.
fn same_in_parts(script: &str, chunks: &[&[u8]]) -> bool {
    let stages = &prepare(script).unwrap()[0];
    let whole = cause_alone(&outcome(stages, &[&chunks.concat()]));
    (1..=3).all(|threads| match outcome_in_parts(stages, chunks, threads) {
        Some(made) => {
            assert_eq!(made, whole, "{script}, by {threads} threads in blocks {chunks:?}");
            true
        }
        None => false,
    })
}

/// Compares what comes out of random inputs of `pieces`, whole and in chunks. Returns how many of
/// the inputs made a stage fail.
fn compare(scripts: &[&str], pieces: &[&str]) -> usize {
    let mut numbers = Numbers::new(3);
    let mut failed = 0;
    for script in scripts {
        for round in 0..12 {
            let length = [0, 1, 4, 40][round % 4];
            let input: String = (0..length).map(|_| numbers.pick(pieces)).collect();
            let whole = made(script, &[input.as_bytes()]);
            failed += usize::from(whole.1.is_some());
            for length in [1, 2, 3, 7] {
                let chunks: Vec<&[u8]> = input.as_bytes().chunks(length).collect();
                assert_eq!(made(script, &chunks), whole, "{script}, in chunks of {length} of {input:?}");
                same_in_parts(script, &chunks);
            }
        }
    }
    failed
}

#[test]
fn the_output_does_not_depend_on_the_chunks() {
    let scripts = [
        "lines | having substring 'ab' numbered",
        "lines | having not regex 'a.b|^$' | number",
        "lines | having regex '^[^,]*B' | count",
        "lines | having substring 'a' and regex 'b$' | count",
        "lines | having between start of first prefix 'a' and end of last suffix 'b' | uppercase",
        "lines | if regex '^b' then replace 'b' with 'BB' else prepend '-' end | last 3",
        "lines | foreach substring 'a' then number else first 1 end",
        "foreach line having substring 'ab' then replace 'a' with 'xx' | append '!' else end",
        "foreach line having (prefix 'a' or empty) then uppercase else lines | number end",
        "if line having regex 'a+b' then replace 'ab' with '<>' end",
        "foreach regex 'a+b?' then prepend '<' | append '>' end",
        "each regex '[ab]+' | tally",
        "select line having suffix 'b'",
        "foreach first line having prefix 'b' then uppercase else replace regex '(a)(b)' with '$2$1' end",
        "foreach csv column 2 then uppercase end",
        "each json member 'a' | unique | sort descending",
        "select prefix letters or suffix 'b'",
        "foreach line then prepend '<' | append '>' end",
        "foreach csv row then prepend '<' | append '>' else substitute '-' end",
        "foreach csv column 2 then substitute '*' end",
        "if line then prepend '<' | append '>' end",
        "if csv row then append '>' else prepend '-' end",
        "foreach not line then prepend '<' end",
        "foreach (line having letters) having only (letters or substring ',') then prepend '<' end",
        "foreach last line then prepend '<' else append '>' end",
        "foreach start of line then prepend '<' end",
        "foreach even line then prepend '<' end",
        "foreach upto first (line having prefix 'b') then prepend '<' | append '>' end",
        "if last and after (line having substring ',') then uppercase else suppress end",
        "foreach (substring 'a' followed by substring 'b') then prepend '<' | append '>' end",
        "foreach (start of line followed by letters) then uppercase end",
        "foreach (line having prefix 'a') followed by (line having prefix 'b') then uppercase | append '+' end",
        "lines | having prefix 'a' followed by prefix 'b'",
        "lines | having even (prefix 'a' or upto first empty)",
        "lines | foreach last and after substring ',' then number end",
        "lines | fields ',' | columns 2 1 | join '+'",
        "lines | while substring 'ab' then replace 'ab' with 'b' end",
        "while regex 'a+b' then replace 'ab' with 'b' end",
        "while line having prefix 'a' then foreach prefix substring 'a' then suppress end end",
        "lines | while prefix 'a' then sort | replace regex '^a' with '' end",
        "lines | fields | columns 2",
        "lines | escape",
    ];
    compare(&scripts, &["a", "b", "ab", "\n", ",", "\"a\":1 ", "aab\n", "B"]);
}

#[test]
fn sections_of_xml_and_json_do_not_depend_on_the_chunks() {
    let scripts = [
        "foreach xml element 'a' then prepend '[' | append ']' end",
        "foreach xml content 'a' then substitute '*' end",
        "each xml element 'b' | tally",
        "if xml content 'b' having substring 'x' then uppercase end",
        "foreach json value then prepend '[' | append ']' end",
        "foreach json member 'a' then prepend '[' | append ']' else append ';' end",
        "foreach letters nested in between end of substring '<' and start of substring '>' then uppercase end",
    ];
    let xml = ["<a>", "</a>", "<b x='>'>", "</b>", "x", "<!-- <a> -->", "<a/>", "&lt;", "<![CDATA[<b>]]>"];
    compare(&scripts, &xml);
    compare(&scripts, &["{", "}", "\"a\"", ":", ",", "[1, ", "]", "\"b\\\"\":2", "\n", "null", "-1.5e3"]);
}

#[test]
fn a_failure_does_not_depend_on_the_chunks() {
    let scripts = [
        "csv | column 1",
        "csv | column 2 | integers | sum",
        "csv | columns 2 1 | sort by column 1",
        "lines | integers",
        "lines | having not substring 'x' | integers | max",
        "lines | fields ',' | column 1 | integers | sum",
        "lines | decimals | having < 2 | sum",
        "lines | unquote | count",
        "lines | unescape",
        "each letters or digits | integers",
        "foreach line having prefix '1' then lines | integers | sum end",
        "foreach line then csv | column 1 end",
        "if csv row then csv | column 2 | integers | sum end",
        "lines | while prefix '1' then replace '1' with '11' | replace '11' with '1' end",
        "lines | while not prefix 'x' then integers | bytes | lines | prepend 'x' end",
        "lines | foreach prefix '1' then integers | bytes | lines end | count",
    ];
    let scripts: Vec<&str> = scripts.into_iter().filter(|script| prepare(script).is_ok()).collect();
    let failed = compare(
        &scripts,
        &["1", "2,", "\n", "18446744073709551615\n", "-0.5\n", "\"", "x", "&", "3\n", "\"\\"],
    );
    assert!(failed > 60, "{failed} failures");
}

#[test]
fn stages_run_in_threads_if_they_work_line_by_line() {
    let in_parts = [
        "lines | having substring 'ab'",
        "lines | having substring 'ab' | count",
        "lines | having not (regex 'a.b' or empty) numbered | last 2",
        "lines | number | having prefix '1' | uppercase",
        "lines | fields ',' | column 2 | having > 3 | integers | having < 20 | sum",
        "lines | fields | columns 2 1 | having column 1 equals 'b' | rows | lines | sort",
        "lines | fields ',' | join '-' | tally",
        "lines | prepend '<' | append '>' | replace 'a' with '' | replace regex '^<' with \"\\n\" | bytes | count",
        "lines | unquote | count",
        "lines | quote | unquote | escape | unescape | lowercase | number",
        "lines | if substring 'a' then replace 'a' with 'b' else suppress end | unique",
        "lines | foreach prefix 'b' or empty then uppercase else prepend '-' end | first 3",
        "lines | having suffix 'b' | bytes | replace 'b' with 'c' | lines | count",
        "having line having substring 'ab'",
        "if line having prefix 'a' then uppercase else replace regex 'b$' with 'c' | lines | quote end",
        "foreach line having (prefix 'a' or empty) then suppress end | count",
        "each line having substring 'a' | uppercase",
        "each line | integers",
        "lines | decimals | having >= -1.5 | count",
        "replace 'ab' with \"\\n\" | lines | count",
        "uppercase | replace regex 'A+' with 'a'",
        "count",
        "lines | count",
        "lines | integers | having > 2 | count",
        "lines | having everything | suppress",
    ];
    let not_in_parts = [
        "lines",
        "lines | first 3",
        "lines | last 3 | uppercase",
        "lines | sort",
        "first 10 | lines | uppercase",
        "replace \"a\\n\" with 'b'",
        "csv | column 2",
        "foreach substring 'a' then uppercase end",
        "prepend 'a' | lines | count",
        "each regex 'a' | uppercase",
        "having first line",
    ];
    let mut numbers = Numbers::new(29);
    for (scripts, expected) in [(&in_parts[..], true), (&not_in_parts[..], false)] {
        for script in scripts {
            for length in [0, 1, 4, 40, 80] {
                let pieces =
                    ["a", "b", "ab", "\n", "\n", "\r\n", ",", "3", "20", "\"", " ", "&lt;", "\"a\"\n"];
                let input: String = (0..length).map(|_| numbers.pick(&pieces)).collect();
                for block in [1, 2, 5, 16, 100] {
                    let blocks: Vec<&[u8]> = input.as_bytes().chunks(block).collect();
                    assert_eq!(same_in_parts(script, &blocks), expected, "{script}");
                }
            }
        }
    }
}

#[test]
fn what_no_branch_changes_comes_out_byte_by_byte() {
    let mut numbers = Numbers::new(5);
    let input: Vec<u8> = (0..100_000).map(|_| numbers.below(256) as u8).collect();
    let directory = tempfile::tempdir().unwrap();
    let everywhere =
        ["line", "line having substring 'a'", "substring 'a'", "regex '[a-z]+'", "csv row", "csv column 2"];
    let others =
        ["json value", "json member 'a'", "xml element 'a'", "xml content 'a'", "between letters and digits"];
    let places =
        ["even line", "upto first substring 'a'", "last and after line", "letters followed by digits"];
    for condition in everywhere.iter().chain(&others).chain(&places) {
        for branch in ["foreach", "if"] {
            let output = shell(directory.path(), &[&format!("{branch} {condition} then end")], &input);
            text(&output, 0);
            assert!(output.stdout == input, "{branch} {condition}");
        }
    }
}

#[test]
fn what_any_pipeline_does_does_not_depend_on_the_chunks() {
    let mut numbers = Numbers::new(19);
    let (mut words, mut failed) = (String::new(), 0);
    for _ in 0..700 {
        let data: Vec<u8> = (0..200).map(|_| numbers.below(256) as u8).collect();
        let (script, _, (_, failure)) = fuzz::pipeline(&data);
        words.push_str(&script);
        words.push(' ');
        failed += usize::from(failure.is_some());
    }
    assert!((30..400).contains(&failed), "{failed} pipelines have failed");
    // Each word of a stage that never waits, and of a condition, is in one of them.
    let waits =
        ["file", "cat", "stdin", "text", "range", "sh", "interleave", "zip", "concatenate", "merge", "to"];
    // These have tests of their own, because packed bytes are seldom random ones.
    let packs = ["gzip", "gunzip", "zstd", "unzstd", "select"];
    let missing = STAGES.iter().chain(ENCODINGS).chain(&CONDITIONS).filter(|word| {
        !waits.contains(word)
            && !packs.contains(word)
            && !words.split_whitespace().any(|other| other == **word)
    });
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
}
