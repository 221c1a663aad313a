//! Other readers of the same formats, on generated data and on files that people have written.

use crate::data::{Numbers, shell, system, text};
use std::path::Path;

/// Runs the shell and a command of the system on the same input, and compares what they write.
fn compare(directory: &Path, ours: &str, theirs: &str, input: &str) {
    let made = text(&shell(directory, &[ours], input.as_bytes()), 0);
    let expected = text(&system(directory, theirs, input.as_bytes()), 0);
    assert_eq!(made, expected, "{ours}\n{theirs}\n{input:?}");
}

#[test]
fn the_reader_of_python_finds_the_same_fields() {
    const READ: &str = "import csv, sys
for row in csv.reader(sys.stdin, strict=True):
    if row: print('|'.join((row + [''])[:2]))";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("read.py"), READ).unwrap();
    let mut numbers = Numbers::new(11);
    for round in 1..12 {
        let mut rows = String::new();
        for _ in 0..round * 7 {
            let columns = 1 + numbers.below(4);
            for column in 0..columns {
                let fields = ["a", "", "b c", "\"d,e\"", "\"f\ng\"", "\"h \"\"i\"\"\"", "\"\"", "\u{e9}"];
                // A row of one empty field is no row to either reader.
                let field = if columns == 1 { "x" } else { numbers.pick(&fields) };
                rows.push_str(if column > 0 { "," } else { "" });
                rows.push_str(field);
            }
            rows.push_str(numbers.pick(&["\n", "\r\n", "\n\n"]));
        }
        compare(directory.path(), "csv | columns 1 2 | join '|'", "python3 -X utf8 read.py", &rows);
    }
}

#[test]
fn expat_finds_the_same_elements() {
    const READ: &str = "import sys, xml.parsers.expat
text = sys.stdin.buffer.read()
parser = xml.parsers.expat.ParserCreate()
depth, begin = 0, 0
def start(name, attributes):
    global depth, begin
    if name == 'a':
        if depth == 0: begin = parser.CurrentByteIndex
        depth += 1
def end(name):
    global depth
    if name == 'a':
        depth -= 1
        if depth == 0:
            last = parser.CurrentByteIndex
            # For an element without content this is the place behind it.
            if text.startswith(b'</a>', last): last = text.index(b'>', last) + 1
            sys.stdout.buffer.write(text[begin:last] + b'\\n')
parser.StartElementHandler, parser.EndElementHandler = start, end
parser.Parse(text, True)";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("read.py"), READ).unwrap();
    let mut numbers = Numbers::new(13);
    for round in 1..12 {
        let mut document = String::from("<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a '<a/>'>]><r>");
        let mut open = Vec::new();
        for _ in 0..round * 9 {
            match numbers.below(8) {
                0 | 1 => {
                    let name = numbers.pick(&["a", "b", "ab"]);
                    open.push(name);
                    let attribute = numbers.pick(&["", " k='1'", " k = \"a>b/>\"", "\t"]);
                    document.push_str(&format!("<{name}{attribute}>"));
                }
                2 | 3 => document.extend(open.pop().map(|name| format!("</{name}>"))),
                4 => document.push_str(numbers.pick(&["<a/>", "<a k='1' />", "<b/>"])),
                5 => document.push_str(numbers.pick(&["<!-- <a> -->", "<![CDATA[</a>]]>", "<?a <a>?>"])),
                _ => document.push_str(numbers.pick(&["text", " ", "&lt;", "\u{e9}"])),
            }
        }
        document.extend(open.iter().rev().map(|name| format!("</{name}>")));
        document.push_str("</r>");
        compare(directory.path(), "each xml element 'a'", "python3 read.py", &document);
    }
}

#[test]
fn files_that_people_have_written_are_read_as_grep_sed_and_awk_read_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["Cargo.lock", "CHANGELOG.md", "docs/PAPERS.md", "crates/coroutine/src/pipeline.rs"] {
        let input = std::fs::read_to_string(root.join(name)).unwrap();
        for (ours, theirs) in [
            ("lines | having substring 'on' numbered", "grep -n on"),
            ("lines | having regex '^[^a]*[aeiou][^a-z]' numbered", "grep -nE '^[^a]*[aeiou][^a-z]'"),
            ("lines | having not empty | count", "grep -c ."),
            ("foreach line having substring '#' then replace 'e' with '' end", "sed '/#/ s/e//g'"),
            ("lines | fields | column 2 | sort | unique", "awk '{ print $2 }' | LC_ALL=C sort -u"),
            ("foreach line then prepend '> ' end", "sed 's/^/> /'"),
        ] {
            compare(&root, ours, theirs, &input);
        }
    }
}
