//! What comes out does not depend on how the input was cut into chunks.

use crate::data::{Numbers, shell, text};
use selvedge_coroutine::pipeline::{ItemKind, from_chunks};
use selvedge_pipe::kinds::{Before, yields};
use selvedge_pipe::run::prepare;
use selvedge_pipe::stage::{dynamic, then, to_text};

/// What a pipeline without a source makes of chunks.
fn made(script: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let script = prepare(script).unwrap();
    let (mut whole, mut before) = (None, Before::Start);
    for stage in &script[0] {
        let next = dynamic(stage, before.kind());
        whole = Some(match whole {
            Some(up) => then(up, next),
            None => next,
        });
        before = Before::Stage(yields(stage, before).unwrap(), stage);
    }
    let whole = whole.unwrap();
    let whole = match to_text(before.kind()) {
        Some(text) => then(whole, text),
        None => whole,
    };
    assert_eq!((whole.takes(), whole.yields()), (ItemKind::Bytes, ItemKind::Bytes));
    (from_chunks(chunks.to_vec()) >> whole.transducer::<u8, u8>().unwrap()).collect()
}

#[test]
fn the_output_does_not_depend_on_the_chunks() {
    let scripts = [
        "lines | having substring 'ab' numbered",
        "lines | having not regex 'a.b|^$' | number",
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
    ];
    let mut numbers = Numbers::new(3);
    for script in scripts {
        for round in 0..12 {
            let length = [0, 1, 4, 40][round % 4];
            let pieces = ["a", "b", "ab", "\n", ",", "\"a\":1 ", "aab\n", "B"];
            let input: String = (0..length).map(|_| numbers.pick(&pieces)).collect();
            let input = input.as_bytes();
            let whole = made(script, &[input]);
            for length in [1, 2, 3, 7] {
                let chunks: Vec<&[u8]> = input.chunks(length).collect();
                let cut = made(script, &chunks);
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(
                    shown(&cut),
                    shown(&whole),
                    "{script}, in chunks of {length} of {:?}",
                    shown(input)
                );
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
    for condition in everywhere.iter().chain(&others) {
        for branch in ["foreach", "if"] {
            let output = shell(directory.path(), &[&format!("{branch} {condition} then end")], &input);
            text(&output, 0);
            assert!(output.stdout == input, "{branch} {condition}");
        }
    }
}
