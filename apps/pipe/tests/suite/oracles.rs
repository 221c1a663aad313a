//! Other readers of the same formats, on generated data and on files that people have written.

use crate::data::{Numbers, shell, system, text};
use std::fmt::Write as _;
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

/// Documents of this machine: some of each part of `/usr/share`, the largest ones among them.
/// Writes a script with a pipeline for some names in each document, and prints what comes out of
/// it. Documents with entities are left out, because expat tells no place within one.
const DOCUMENTS: &str = "import collections, os, re, sys, xml.parsers.expat
parts = collections.defaultdict(list)
for folder, _, names in os.walk('/usr/share'):
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(('.xml', '.svg', '.xsd', '.rng')) and re.fullmatch(r'[ -&(-~]+', path):
            if os.path.isfile(path) and not os.path.islink(path) and 0 < os.path.getsize(path) < 4 << 20:
                parts['/'.join(path.split('/')[:4])].append(path)
out, script, documents = sys.stdout.buffer, open('script', 'w'), 0
for part in sorted(parts):
    paths = sorted(parts[part])
    for path in sorted(set(paths[:5] + sorted(paths, key=os.path.getsize)[-2:])):
        text = open(path, 'rb').read()
        if b'<!ENTITY' in text: continue
        parser = xml.parsers.expat.ParserCreate()
        parser.specified_attributes = True
        open_since, elements, values = {}, collections.defaultdict(list), collections.defaultdict(list)
        def start(name, attributes):
            open_since.setdefault(name, []).append(parser.CurrentByteIndex)
            for key, value in attributes.items(): values[key].append(value)
        def end(name):
            begin, last = open_since[name].pop(), parser.CurrentByteIndex
            if open_since[name]: return
            # For an element without content this is the place behind it.
            if re.match(rb'</' + re.escape(name.encode()) + rb'[ \\t\\r\\n]*>', text[last:last + 999]):
                last = text.index(b'>', last) + 1
            elements[name].append(text[begin:last])
        parser.StartElementHandler, parser.EndElementHandler = start, end
        try: parser.Parse(text, True)
        except (xml.parsers.expat.ExpatError, ValueError, LookupError): continue
        # A line end in a value is a blank to expat, and a declared value has its blanks taken away.
        plain = b'<!ATTLIST' not in text and not re.search(rb'=[ \\t\\r\\n]*(\"[^\"<]*[\\t\\r\\n]|\\'[^\\'<]*[\\t\\r\\n])', text)
        documents += 1
        for name in [n for n in sorted(elements, key=lambda n: (-len(elements[n]), n)) if n.isascii()][:4]:
            script.write(f\"text '== {path} {name}\\n'; file '{path}' | each xml element '{name}';\\n\")
            out.write(f'== {path} {name}\\n'.encode() + b''.join(found + b'\\n' for found in elements[name]))
        for name in [n for n in sorted(values, key=lambda n: (-len(values[n]), n)) if n.isascii()][:2] * plain:
            script.write(f\"text '== {path} {name}=\\n'; file '{path}' | each xml attribute '{name}' | unescape;\\n\")
            out.write(f'== {path} {name}=\\n'.encode() + ''.join(v + '\\n' for v in values[name]).encode())
if documents < 5: sys.exit(f'{documents} documents of XML under /usr/share')";

#[test]
fn expat_finds_the_same_in_documents_that_people_have_written() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("read.py"), DOCUMENTS).unwrap();
    let expected = system(directory.path(), "python3 -X utf8 read.py", b"");
    assert!(expected.status.success(), "{}", String::from_utf8_lossy(&expected.stderr));
    let made = shell(directory.path(), &["-f", "script"], b"");
    assert_eq!(String::from_utf8_lossy(&made.stderr), "");
    let lines = |output: Vec<u8>| output.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (made, expected) = (lines(made.stdout), lines(expected.stdout));
    let mut document = String::new();
    for (made, expected) in made.iter().zip(&expected) {
        let (made, expected) = (String::from_utf8_lossy(made), String::from_utf8_lossy(expected));
        document = if expected.starts_with("== ") { expected.to_string() } else { document };
        assert_eq!(made, expected, "{document}");
    }
    assert_eq!(made.len(), expected.len());
}

#[test]
fn files_that_people_have_written_are_read_as_grep_sed_and_awk_read_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["Cargo.lock", "CHANGELOG.md", "docs/PAPERS.md", "crates/pipeline/src/lib.rs"] {
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

/// A regular expression in the syntax that `grep -E` has too.
fn expression(numbers: &mut Numbers, depth: u32) -> String {
    let atoms =
        ["a", "b", "[^a]", "[ab]", "[[:space:]]", ".", "ab", "a b", "\\b", "\\w", "\\s", "[^[:alpha:]]"];
    if depth == 0 {
        return numbers.pick(&atoms).to_string();
    }
    match numbers.below(6) {
        0 => numbers.pick(&atoms).to_string(),
        1 | 2 => {
            // A repetition has none in it, because grep may need a time that is exponential then.
            let operator = numbers.pick(&["?", "*", "+", "{2}", "{1,2}", "{2,}", "{0,1}"]);
            format!("({}){operator}", expression(numbers, 0))
        }
        3 => format!("({}|{})", expression(numbers, depth - 1), expression(numbers, depth - 1)),
        _ => format!("{}{}", expression(numbers, depth - 1), expression(numbers, depth - 1)),
    }
}

#[test]
fn grep_finds_the_same_lines() {
    let directory = tempfile::tempdir().unwrap();
    // All lines of up to four letters of three.
    let mut lines = vec![String::new()];
    for begin in 0.. {
        if lines[begin].len() == 4 {
            break;
        }
        lines.extend(["a", "b", " "].map(|letter| format!("{}{letter}", lines[begin])));
    }
    std::fs::write(directory.path().join("lines"), lines.join("\n") + "\n").unwrap();
    let mut numbers = Numbers::new(23);
    let (mut ours, mut theirs) = (String::new(), String::new());
    for round in 0..150 {
        // GNU grep 3.8 misses lines where `^` is in a group that is repeated.
        let (begin, end) = (numbers.pick(&["", "^"]), numbers.pick(&["", "$"]));
        let regex = format!("{begin}({}){end}", expression(&mut numbers, 3));
        // A command that finds nothing ends with the status 1, and a script goes on.
        writeln!(ours, "text '== {round} {regex}\n'; file lines | lines | having regex '{regex}' numbered;")
            .unwrap();
        writeln!(theirs, "printf '%s\\n' '== {round} {regex}'; grep -nE '{regex}' lines").unwrap();
    }
    std::fs::write(directory.path().join("script"), ours).unwrap();
    let made = shell(directory.path(), &["-f", "script"], b"");
    let expected = system(directory.path(), &theirs, b"");
    assert_eq!(String::from_utf8_lossy(&made.stderr), "");
    assert_eq!(String::from_utf8_lossy(&expected.stderr), "");
    let (made, expected) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&expected.stdout));
    let mut regex = "";
    for (made, expected) in made.lines().zip(expected.lines()) {
        regex = if expected.starts_with("== ") { expected } else { regex };
        assert_eq!(made, expected, "{regex}");
    }
    assert_eq!(made.len(), expected.len());
}

#[test]
fn the_reader_of_python_finds_the_same_fields_for_any_delimiter() {
    const READ: &str = "import csv, sys
out = csv.writer(sys.stdout, delimiter=sys.argv[2], lineterminator='\\n')
for row in csv.reader(sys.stdin, delimiter=sys.argv[1], strict=True):
    if row: out.writerow(row)";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("convert.py"), READ).unwrap();
    let mut numbers = Numbers::new(29);
    for (from, to) in [(";", ","), ("|", ";"), (",", "\t"), ("a", "b"), (" ", "|")] {
        for round in 1..5 {
            let mut rows = String::new();
            for _ in 0..round * 15 {
                let columns = 1 + numbers.below(4);
                for column in 0..columns {
                    let fields =
                        ["x", "", "y z", "\"d,e;f|g\th\"", "\"f\ng\"", "\"h \"\"i\"\"\"", "\"\"", "\u{e9}"];
                    let field = if columns == 1 { "x" } else { numbers.pick(&fields) };
                    rows.push_str(if column > 0 { from } else { "" });
                    // A field that is not quoted must not hold the delimiter.
                    rows.push_str(if field.starts_with('"') || !field.contains(from) { field } else { "w" });
                }
                rows.push_str(numbers.pick(&["\n", "\r\n", "\n\n"]));
            }
            let ours = format!("csv '{from}' | rows '{to}'");
            let theirs = format!("python3 -X utf8 convert.py '{from}' '{to}'");
            compare(directory.path(), &ours, &theirs, &rows);
        }
    }
}
