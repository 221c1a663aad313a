//! The language: what is printed is read again as the same tree.

use proptest::prelude::*;
use selvedge_pipe::language::{parse, print::script};

/// Pipelines with each stage and each condition of the language.
pub(crate) const ALL: &[&str] = &[
    "file a \"b c\" 'd' | bytes | sh \"sort -u\" | `cat` | to x",
    "cat a; stdin; text \"\\x00\\xff\\n\\\"\\\\é\"; range 1 20 | sum",
    "lines | each_ ; ",
    "each regex '[0-9]+' | integers | max | count",
    "csv \";\" | columns 3 1 | join \", \" | append to y",
    "lines | fields '\t' | having column 2 >= -1.5 and not column 1 empty | sort by column 2 numeric descending",
    "lines | having (substring 'a' or prefix 'b') and suffix 'c' numbered | first 3 | last 2",
    "lines | having between start of first prefix 'a' and end of last equals 'b' | unique | tally | column 2",
    "foreach line having only (letters or digits) then uppercase | replace 'A' with '' else end",
    "if csv row having csv column 2 ';' then suppress else if csv row then end end",
    "foreach json member 'k' nested in json value then substitute 'x' else prepend 'y' | append 'z' end",
    "select xml element 'e' having xml content 'c' having (whitespace or capitals and smalls or not everything)",
    "each prefix substring 'x' or suffix nothing or csv column 1 | unquote | quote | escape | unescape | lowercase",
    "lines | interleave (stdin | lines) | zip (file x | lines | number) | concatenate (text 'a' | lines) | merge (lines)",
    "while line having regex 'a' or digits then foreach digits then uppercase end end | lines | while not empty then first 1 end",
    "foreach json value then `jq .` | lines | merge (file x | lines) else foreach line then sh 'a' end end",
    "having even line followed by not upto first (digits followed by substring '.') | each last and after letters",
    "lines | having (even substring 'a' or last and after prefix 'b') followed by upto first empty having first empty",
    "lines | decimals | having > -1.50 or = 1e-3 | sum",
    "range -3 4.5 | count",
    "range 5 -1e2 by -2.5 | count",
    "lines | integers | having > 1 or <2 and >=3 or <= 4 and =5 or != 6 | min",
];

#[test]
fn what_is_printed_is_read_as_the_same_tree() {
    let mut read = 0;
    for text in ALL {
        let Ok(tree) = parse(text) else {
            assert!(text.contains("each_"), "{text}");
            continue;
        };
        let printed = script(&tree);
        assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{printed}");
        assert_eq!(script(&parse(&printed).unwrap()), printed);
        read += 1;
    }
    assert_eq!(read, ALL.len() - 1);
}

#[test]
fn the_printed_form_has_brackets_only_where_they_change_something() {
    let cases = [
        ("lines | having (a_)", ""),
        ("having (substring 'a')", "having substring \"a\""),
        ("having (letters and digits) or line", "having letters and digits or line"),
        ("having letters and (digits or line)", "having letters and (digits or line)"),
        ("having not (letters or digits)", "having not (letters or digits)"),
        ("having (line having letters) having digits", "having line having letters having digits"),
        ("having line having (letters having digits)", "having line having (letters having digits)"),
        (
            "having (letters followed by digits) followed by line",
            "having letters followed by digits followed by line",
        ),
        (
            "having letters followed by (digits followed by line)",
            "having letters followed by (digits followed by line)",
        ),
        ("having even (letters followed by digits)", "having even (letters followed by digits)"),
        ("having (last and after letters) and digits", "having last and after letters and digits"),
        ("file then", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).map(|tree| script(&tree)).unwrap_or_default(), expected, "{text}");
    }
}

proptest! {
    /// Words, strings and signs in any order: the parser refuses them with a place in the text, or
    /// it reads them and reads what it prints.
    #[test]
    fn any_words_are_read_or_refused(choices in proptest::collection::vec(0..1000_usize, 0..30)) {
        let words: Vec<&str> = ALL.iter().flat_map(|text| text.split(' ')).collect();
        let text = choices.iter().map(|choice| words[choice % words.len()]).collect::<Vec<_>>().join(" ");
        selvedge_pipe::fuzz::script(&text);
    }
}

#[test]
fn scripts_that_lie_deep_are_refused() {
    for open in ["not ", "(", "first "] {
        let text = format!("having {}line", open.repeat(100_000));
        let error = parse(&text).unwrap_err();
        assert!(error.message.contains("64 levels"), "{}", error.message);
    }
    let text = format!("having line{}", " having line".repeat(100_000));
    assert!(parse(&text).is_err());
    let text = format!("{}lines", "if line then ".repeat(100_000));
    assert!(parse(&text).is_err());
}
