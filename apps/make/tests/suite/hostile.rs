//! Inputs that are wrong in any way: the parsers refuse them or read them, and never panic.

use proptest::prelude::*;
use selvedge_make::canonical::canonicalize;
use selvedge_make::graph::{Graph, names};
use selvedge_make::log::{build_log, deps_log};
use selvedge_make::manifest::parse;
use selvedge_make::{depfile, dyndep};

/// Parts of manifests, of which any order is tried.
const PARTS: [&str; 32] = [
    "build",
    "rule",
    "pool",
    "default",
    "include",
    "subninja",
    "phony",
    "r",
    "a",
    "b/../c",
    "$",
    "$$",
    "${a}",
    "$a",
    "=",
    ":",
    "|",
    "||",
    "|@",
    "\n",
    "\r\n",
    "  ",
    " ",
    "command",
    "depth = 1",
    "dyndep = dd",
    "rspfile = x",
    "#",
    "\t",
    "\0",
    "$\n",
    "é",
];

fn evaluate(graph: &Graph) {
    for edge in graph.edge_ids() {
        let mut command = Vec::new();
        if graph.command_with_content(edge, &mut command).is_ok() {
            let _ = selvedge_make::shell::words(&command);
        }
        let _ = graph.path_value(edge, names::DEPFILE);
        assert!(graph.outputs(edge).all(|output| graph.maker(output) == Some(edge)));
    }
    let _ = graph.default_targets();
}

proptest! {
    #[test]
    fn a_manifest_of_any_parts_is_read_or_refused_at_its_place(
        parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..60),
    ) {
        let text = format!("rule r\n  command = x $in $a\npool p\n  depth = 1\n{}", parts.concat());
        let mut left = 2;
        let mut load = |_: &[u8]| {
            left -= 1;
            if left > 0 { Ok(text.clone().into_bytes()) } else { Err(std::io::Error::other("no more")) }
        };
        match parse(b"build.ninja", text.as_bytes(), &mut load) {
            Ok(graph) => evaluate(&graph),
            Err(error) => {
                prop_assert!(error.line <= text.lines().count() + 1);
                prop_assert!(error.to_string().contains(&error.message));
            }
        }
        let mut graph = Graph::new();
        let _ = dyndep::parse(&mut graph, b"dd", parts.concat().as_bytes());
        let _ = depfile::parse(parts.concat().as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(b"build.ninja", &bytes, &mut |_| Err(std::io::ErrorKind::NotFound.into()));
        let _ = depfile::parse(&bytes);
        let read = build_log::read(&bytes);
        prop_assert!(read.whole <= bytes.len());
        let signed = [b"# ninjadeps\n\x04\0\0\0", &bytes[..]].concat();
        let (records, whole) = deps_log::read(&signed).expect("the signature is right");
        prop_assert!(whole <= signed.len());
        let paths = records.iter().filter(|record| matches!(record, deps_log::Record::Path(_))).count();
        for record in &records {
            if let deps_log::Record::Deps { output, inputs, .. } = record {
                prop_assert!(inputs.iter().chain([output]).all(|number| (*number as usize) < paths));
            }
        }
    }

    #[test]
    fn a_canonical_path_stays_as_it_is(path in "[a./]{1,12}") {
        let mut once = path.clone().into_bytes();
        canonicalize(&mut once);
        let mut twice = once.clone();
        canonicalize(&mut twice);
        prop_assert_eq!(&once, &twice);
        // It names the same file, if no component is a link: the components say so one by one.
        let walk = |path: &[u8]| {
            let mut names: Vec<&[u8]> = Vec::new();
            for name in path.split(|byte| *byte == b'/') {
                match name {
                    b"" | b"." => {}
                    b".." if names.last().is_some_and(|last| *last != b"..") => drop(names.pop()),
                    other => names.push(other),
                }
            }
            names.join(&b'/')
        };
        prop_assert_eq!(walk(path.as_bytes()), walk(&once));
        prop_assert_eq!(path.starts_with('/'), once.starts_with(b"/"));
    }
}

/// A few lines in which each value has the one before it twice, for a file, an edge and a rule.
#[test]
fn values_that_grow_without_end_are_refused() {
    let parse_text = |text: &str| {
        let mut none = |_: &[u8]| Err(std::io::Error::other("none"));
        parse(b"build.ninja", text.as_bytes(), &mut none)
    };
    let doubled =
        |indent: &str| -> String { (0..40).map(|n| format!("{indent}v{} = $v{n}$v{n}\n", n + 1)).collect() };
    let first = "v0 = xxxxxxxxxxxxxxxx\n";
    let refused = parse_text(&[first, &doubled("")].concat()).unwrap_err();
    assert_eq!((&*refused.message, refused.line), ("a value of more than 16 MiB", 22));
    // Each value is short enough, and all of them are not.
    let many: String = (0..100).map(|n| format!("w{n} = $v19\n")).collect();
    let refused = parse_text(&[first, &doubled("")[..doubled("").find("v20 =").unwrap()], &many].concat());
    assert!(refused.unwrap_err().message.contains("512 MiB in all"));
    // An edge's own values.
    let edge = format!("rule r\n  command = x\nbuild a: r\n  v1 = {}\n", "$v0".repeat(1_100_000));
    assert_eq!(parse_text(&[first, &edge].concat()).unwrap_err().message, "a value of more than 16 MiB");
    // A rule's values are evaluated when they are needed.
    let chain = ["command", "description", "depfile", "rspfile", "rspfile_content", "v0"];
    let lines: String = chain
        .windows(2)
        .map(|pair| format!("  {} = {}\n", pair[0], format!("${} ", pair[1]).repeat(40)))
        .collect();
    let graph = parse_text(&[first, "rule r\n", &lines, "build a: r\n"].concat()).unwrap();
    let edge = graph.edge_ids().next().unwrap();
    let told = graph.command_with_content(edge, &mut Vec::new()).unwrap_err().to_string();
    assert!(told.starts_with("the rule variable ") && told.ends_with("more than 256 MiB"), "{told}");
}
