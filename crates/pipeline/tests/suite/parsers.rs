//! The parsers: the same at every cut of the input, and what another reading of the format says.

use proptest::prelude::*;
use selvedge_pipeline::fuzz;
use selvedge_pipeline::*;

/// Random text of a few pieces that matter in a format.
fn text(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(pieces).prop_map(str::as_bytes);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

const CSV: &[&str] =
    &["a", "bc", ",", ",", "\"", "\"\"", "\n", "\r\n", "\r", "\"a,\n\"", ",\"\",", "\"x\"\r\n"];

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"a\"",
    ":",
    "\"a\":",
    "1",
    "-2e3",
    "true",
    ",",
    " ",
    "\n",
    "\\",
    "\"",
    "\\\"",
    "\"a\\\"b\" :",
];

const XML: &[&str] = &[
    "<a>",
    "</a>",
    "<a/>",
    "<a b='c'>",
    "<b>",
    "</b>",
    "x",
    "&lt;",
    "<",
    ">",
    "'",
    "\"",
    "<!--",
    "-->",
    "--",
    "<![CDATA[",
    "]]>",
    "<?p",
    "?>",
    "<!DOCTYPE a [",
    "<!ENTITY b '>'>",
    "]>",
    "/",
    "-",
    "!",
];

proptest! {
    #[test]
    fn csv_is_the_same_at_every_cut(text in text(CSV)) {
        fuzz::csv(&text);
    }

    #[test]
    fn json_is_the_same_at_every_cut(text in text(JSON)) {
        fuzz::json(&text);
    }

    #[test]
    fn xml_is_the_same_at_every_cut(text in text(XML)) {
        fuzz::xml(&text);
    }

    #[test]
    fn records_are_the_same_at_every_cut(data in prop::collection::vec(prop::sample::select(&[0u8, 1, 2, 3, 5, 10, 128, 255][..]), 0..60)) {
        fuzz::records(&data);
    }

    #[test]
    fn csv_is_what_a_reading_byte_by_byte_says(text in text(CSV)) {
        let read = (from_chunks([&text]) >> csv::records(b',')).try_collect();
        let read = read.map_err(|failure| failure.offset() as usize);
        let slow = read_csv(&text);
        prop_assert_eq!(read, slow.map(|rows| rows.into_iter().map(|row| row.into_iter().collect()).collect::<Vec<csv::Fields>>()));
    }

    #[test]
    fn json_values_are_cut_where_a_parser_ends_them(values in prop::collection::vec(value(), 0..6), spaces in prop::collection::vec(prop::sample::select(&[" ", "\n", "\r\n\t"][..]), 6)) {
        let text: String = values.iter().zip(&spaces).map(|(value, space)| format!("{value}{space}")).collect();
        let cut = (from_chunks([&text]) >> group_by(json::values())).collect();
        let cut: Vec<_> = cut.iter().map(|value| std::str::from_utf8(value).unwrap()).collect();
        prop_assert_eq!(cut, values);
    }

    #[test]
    fn members_are_found_at_every_depth(values in prop::collection::vec(value(), 0..4)) {
        let object: Vec<_> = values.iter().map(|value| format!("{{ \"x\" : [\"wanted\"], \"wanted\" : {value}}}")).collect();
        let text = format!("{{\"deep\": [{}]}}", object.join(", "));
        let cut = (from_chunks([&text]) >> group_by(json::member("wanted"))).collect();
        let cut: Vec<_> = cut.iter().map(|value| std::str::from_utf8(value).unwrap()).collect();
        prop_assert_eq!(cut, values);
    }

    #[test]
    fn elements_are_where_a_tree_says(tree in element(), around in "[xy]{0,3}") {
        let (text, wanted) = tree;
        let text = format!("{around}{text}{around}");
        let found = (from_chunks([&text]) >> group_by(xml::element("a"))).collect();
        let found: Vec<_> = found.iter().map(|found| String::from_utf8(found.to_vec()).unwrap()).collect();
        prop_assert_eq!(&found, &wanted);
        let inside = (from_chunks([&text]) >> group_by(xml::content("a"))).collect();
        let inside: Vec<_> = inside.iter().map(|found| String::from_utf8(found.to_vec()).unwrap()).collect();
        let slow: Vec<_> = wanted.iter().filter(|found| !found.ends_with("/>")).map(|found| {
            let begin = if found.starts_with("<a>") { 3 } else { "<a x='>/>'>".len() };
            found[begin..found.rfind("</").unwrap()].to_string()
        }).collect();
        prop_assert_eq!(inside, slow);
    }
}

/// CSV, one byte after the other: rows of fields, or the offset of the first mistake.
fn read_csv(text: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, usize> {
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let ends_row = |at: usize| match &text[at..] {
            [] => Some(0),
            [b'\n', ..] => Some(1),
            [b'\r', b'\n', ..] => Some(2),
            [b'\r'] => Some(1),
            _ => None,
        };
        if let Some(length) = ends_row(at) {
            at += length;
            continue;
        }
        let mut row = Vec::new();
        loop {
            let mut field = Vec::new();
            if text.get(at) == Some(&b'"') {
                let quote = at;
                at += 1;
                loop {
                    match &text[at..] {
                        [] => return Err(quote),
                        [b'"', b'"', ..] => (field.push(b'"'), at += 2).1,
                        [b'"', ..] => break,
                        [byte, ..] => (field.push(*byte), at += 1).1,
                    }
                }
                at += 1;
                if text[at..].starts_with(b"\r") && ends_row(at).is_none() {
                    return Err(at + 1);
                }
            } else {
                while ends_row(at).is_none() && text[at] != b',' {
                    if text[at] == b'"' {
                        return Err(at);
                    }
                    field.push(text[at]);
                    at += 1;
                }
            }
            row.push(field);
            if let Some(length) = ends_row(at) {
                at += length;
                break;
            }
            if text[at] != b',' {
                return Err(at);
            }
            at += 1;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A random JSON value.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&["1", "-2.5e3", "true", "null", "\"\"", "\"a}\\\"]\"", "\"\\\\\""][..]);
    leaf.prop_map(str::to_string).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|values| format!("[{}]", values.join(" , "))),
            prop::collection::vec(inner, 0..3).prop_map(|values| {
                let members: Vec<_> = values.iter().map(|value| format!("\"k\" : {value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// A random tree, as its text and the outermost elements `a` in it.
fn element() -> impl Strategy<Value = (String, Vec<String>)> {
    let leaf =
        prop::sample::select(&["t", "<!-- <a> -->", "<![CDATA[</a>]]>", "<?a <a>?>", "<a />", "<ab/>"][..]);
    let leaf = leaf.prop_map(|text| {
        (text.to_string(), if text == "<a />" { vec![text.to_string()] } else { Vec::new() })
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        (prop::collection::vec(inner, 0..4), prop::sample::select(&["a", "b", "a x='>/>'"][..])).prop_map(
            |(children, tag)| {
                let name = &tag[..1];
                let inside: String = children.iter().map(|(text, _)| text.as_str()).collect();
                let text = format!("<{tag}>{inside}</{name}>");
                let wanted = if name == "a" {
                    vec![text.clone()]
                } else {
                    children.into_iter().flat_map(|(_, found)| found).collect()
                };
                (text, wanted)
            },
        )
    })
}

#[test]
fn text_of_xml_goes_on_before_it_has_ended() {
    let mut marked = if_then_else(xml::content("a"), lift121(|c: &u8| c.to_ascii_uppercase()), id()).step();
    for (chunk, out) in
        [("text", "text"), (" on<a>in", " on<a>IN"), ("side", "SIDE"), ("</a", ""), (">z", "</a>z")]
    {
        assert_eq!(marked.put_chunk(chunk.as_bytes()), out.as_bytes(), "{chunk}");
    }
    let mut values = if_then_else(xml::attribute("k"), lift121(|c: &u8| c.to_ascii_uppercase()), id()).step();
    for (chunk, out) in [("te", "te"), ("xt<a k='v", "xt"), ("w'>x", "<a k='VW'>x"), ("y", "y")] {
        assert_eq!(values.put_chunk(chunk.as_bytes()), out.as_bytes(), "{chunk}");
    }
}

#[test]
fn a_reference_that_is_not_known_is_named() {
    for (text, says) in [
        ("a &nbsp; b", "`&nbsp;` is not known"),
        ("a &nbsp b", "`&nbsp` is not known"),
        ("&#xD800;", "`&#xD800;` is no character of XML"),
        ("&#0;", "`&#0;` is no character of XML"),
        ("&#99999999999;", "`&#99999999999;` is no character of XML"),
        ("&#x1F", "`&#x1F` is not known"),
        ("&#-1;", "`&#-1;` is not known"),
        ("&#;", "`&#;` is not known"),
        ("warp & weft;", "a `&` that begins no reference; as text it is written `&amp;`"),
        ("&", "a `&` that begins no reference"),
    ] {
        let failed = (from_chunks([text]) >> group_by(line()) >> xml::unescape()).try_collect().unwrap_err();
        assert!(failed.to_string().contains(says), "{failed}");
    }
}

#[test]
fn references_name_the_characters_that_expat_takes() {
    const ORACLE: &str = r#"
import sys, xml.parsers.expat
for number in map(int, sys.argv[1:]):
    text = []
    parser = xml.parsers.expat.ParserCreate()
    parser.CharacterDataHandler = text.append
    try:
        parser.Parse("<a>&#%d;</a>" % number, True)
        print("".join(text).encode().hex())
    except xml.parsers.expat.ExpatError:
        print("none")
"#;
    let edges =
        [0x20, 0x7f, 0xd7ff, 0xd800, 0xdfff, 0xe000, 0xfdd0, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1ffff];
    let numbers: Vec<u32> = (0..0x20).chain(edges).chain([0x10_ffff, 0x11_0000, u32::MAX]).collect();
    let arguments = numbers.iter().map(u32::to_string);
    let output = std::process::Command::new("python3").args(["-c", ORACLE]).args(arguments).output().unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    assert_eq!(theirs.lines().count(), numbers.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (number, theirs) in numbers.iter().zip(theirs.lines()) {
        for text in [format!("&#{number};"), format!("&#x{number:x};"), format!("&#x{number:X};")] {
            let made =
                (from_chunks([&text]) >> group_by(line()) >> xml::unescape() >> concatenate()).try_collect();
            let ours = match made {
                Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                Err(_) => "none".to_string(),
            };
            assert_eq!(ours, theirs, "{text}");
        }
    }
}

#[test]
fn strings_of_json_are_utf_8() {
    let decoded = |string: &[u8]| {
        let strings = from_chunks([string]) >> group_by(line()) >> json::decode_strings() >> concatenate();
        strings.try_collect().map_err(|failed| (failed.offset(), failed.cause().to_string()))
    };
    let refused = |at: u64, cause: &str| Err((at, cause.to_string()));
    let no_utf_8 = "bytes that are no UTF-8";
    assert_eq!(decoded("\"warp \u{fc}\u{1f9f5}\"".as_bytes()), Ok("warp \u{fc}\u{1f9f5}".into()));
    for wrong in [&b"\xff"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"] {
        assert_eq!(decoded(&[b"\"ab", wrong, b"c\""].concat()), refused(3, no_utf_8), "{wrong:?}");
    }
    // The first mistake is told.
    assert_eq!(decoded(b"\"\\q\xff\""), refused(1, "an escape that does not exist"));
    assert_eq!(decoded(b"\"\xff\\q\""), refused(1, no_utf_8));
    assert_eq!(decoded(b"\xff"), refused(0, "no JSON string"));
}

#[test]
fn a_byte_order_mark_belongs_to_no_field() {
    let read = |text: &[u8], length: usize| {
        let records = (from_chunks(text.chunks(length)) >> csv::records(b',')).try_collect();
        records.map(|all| {
            all.iter().map(|one| one.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect::<Vec<_>>()
        })
    };
    for length in [1, 2, 3, 100] {
        for text in ["name,n\n\u{feff}a,1\n", "\"na,me\",n\n", "\nx", "", "a"] {
            let marked = format!("\u{feff}{text}");
            let (marked, plain) = (read(marked.as_bytes(), length), read(text.as_bytes(), length));
            assert_eq!(marked.unwrap(), plain.unwrap(), "{text:?}");
        }
        // A part of the mark is text.
        for part in [&b"\xef"[..], b"\xef\xbb", b"\xef\xbb,\xbf", b"\xef\xef\xbb\xbf", b"\xef\n"] {
            let fields = read(part, length).unwrap().concat().concat();
            let expected: Vec<u8> = part.iter().copied().filter(|byte| !b",\n".contains(byte)).collect();
            assert_eq!(fields, expected, "{part:?}");
        }
        let second = read("\u{feff}\u{feff}a".as_bytes(), length).unwrap();
        assert_eq!(second, [[b"\xef\xbb\xbfa"]]);
    }
    // The places count the mark.
    let failed = (from_chunks(["\u{feff}a,b\"c"]) >> csv::records(b',')).try_collect().unwrap_err();
    assert_eq!(failed.offset(), 6);
    let record: csv::Fields = ["\u{feff}a", "b"].into_iter().collect();
    let text = (from_iter([record.clone()]) >> csv::encode(b',')).collect();
    assert_eq!((from_chunks([text]) >> csv::records(b',')).collect(), [record]);
}

#[test]
fn a_quote_in_a_comment_within_a_document_type_is_none() {
    for within in
        ["<!-- it's <a> -->", "<?pi don't?>", "<!---->'\"'<!-- > \" -->", "<!ENTITY e '<!--'>", "<!-->'-->"]
    {
        let text = format!("<!DOCTYPE r [{within}<!ELEMENT r ANY> ]><r><a>'\"</a></r>");
        for cut in 0..text.len() {
            let (before, after) = text.split_at(cut);
            let found = (from_chunks([before, after]) >> group_by(xml::content("a"))).try_collect().unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), [b"'\""], "{text} {cut}");
            let tokens = (from_chunks([before, after]) >> xml::tokens() >> count()).try_run().unwrap();
            assert_eq!(tokens, 6, "{text} {cut}");
        }
    }
}

#[test]
fn the_name_of_a_member_is_compared_as_text() {
    let cases = [
        ("key", "k\\u0065y", true),
        ("key", "\\u006b\\u0065\\u0079", true),
        ("key", "ke\\y", false),
        ("key", "key\\u0020", false),
        ("key", "\\u006b\\u0065\\u0079\\u0079", false),
        ("\u{e9}", "\\u00e9", true),
        ("\u{e9}", "\\u00E9", true),
        ("\u{1f600}", "\\ud83d\\uDE00", true),
        ("\u{1f600}", "\\ud83d", false),
        ("a\"b", "a\\\"b", true),
        ("a\\b", "a\\\\b", true),
        ("a/b", "a\\/b", true),
        ("a\nb", "a\\nb", true),
        ("", "\\n", false),
        ("a", "a\\", false),
    ];
    for (name, written, is_name) in cases {
        let text = format!("{{\"{written}\": 1, \"x\": {{\"{written}\" :2}}, \"{written}\"}}");
        let found = if is_name { vec![b"1", b"2"] } else { vec![] };
        for cut in 0..=text.len() {
            let (before, after) = text.as_bytes().split_at(cut);
            let values = (from_chunks([before, after]) >> group_by(json::member(name))).collect();
            assert_eq!(values.iter().collect::<Vec<_>>(), found, "{name} {text} {cut}");
        }
    }
}
