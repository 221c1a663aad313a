//! The language of `build.ninja`.

use crate::projects::{NINJA, OURS, output};
use crate::small::tree;
use selvedge_make::graph::{CONSOLE, EdgeId, Files, Graph, names};
use selvedge_make::manifest::{ManifestError, parse};

const CAT: &str = "rule cat\n  command = cat $in > $out\n";

fn read(text: &str) -> Result<Graph, ManifestError> {
    parse(b"build.ninja", text.as_bytes(), &mut |path| {
        Err(std::io::Error::other(format!("no file {}", String::from_utf8_lossy(path))))
    })
}

fn graph(text: &str) -> Graph {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

fn edge(graph: &Graph, output: &str) -> EdgeId {
    graph.maker(graph.find(output.as_bytes()).expect("the output")).expect("its edge")
}

fn command(graph: &Graph, output: &str) -> String {
    let command = graph.value(edge(graph, output), names::COMMAND).unwrap();
    String::from_utf8(command).unwrap()
}

fn paths(graph: &Graph, output: &str, kind: Files) -> Vec<String> {
    graph.files_of(edge(graph, output), kind).iter().map(|node| graph.path_text(*node)).collect()
}

/// The message, the line and the column of what is wrong.
fn wrong(text: &str) -> (String, usize, usize) {
    let error = read(text).expect_err(text);
    (error.message, error.line, error.column)
}

#[test]
fn an_edge_has_files_of_all_kinds() {
    let graph = graph(&format!("{CAT}build o1 o2 | o3: cat a b | c || d |@ v\n"));
    assert_eq!(paths(&graph, "o1", Files::Outputs), ["o1", "o2"]);
    assert_eq!(paths(&graph, "o1", Files::ImplicitOutputs), ["o3"]);
    assert_eq!(paths(&graph, "o1", Files::Inputs), ["a", "b"]);
    assert_eq!(paths(&graph, "o1", Files::ImplicitInputs), ["c"]);
    assert_eq!(paths(&graph, "o1", Files::OrderOnly), ["d"]);
    assert_eq!(paths(&graph, "o1", Files::Validations), ["v"]);
    assert_eq!(edge(&graph, "o3"), edge(&graph, "o1"));
    assert_eq!(command(&graph, "o2"), "cat a b > o1 o2");
}

#[test]
fn values_are_evaluated_when_and_where_ninja_does() {
    let text = "x = early\nrule r\n  command = $x $y $own $in_newline\n  description = ${x}.$x.y\n\
                build ${x}-path: r a b\n  own = own-$x\n  y = $x\nx = late\nbuild other: r $x\n";
    let graph = graph(text);
    // A path and an indented line see the value of their moment, a rule sees the last one.
    assert_eq!(command(&graph, "early-path"), "late early own-early a\nb");
    assert_eq!(command(&graph, "other"), "late   late");
    let description = graph.value(edge(&graph, "other"), names::DESCRIPTION).unwrap();
    assert_eq!(description, b"late.late.y");
}

#[test]
fn a_path_sees_the_indented_lines_of_its_edge() {
    let graph = graph(&format!("{CAT}dir = outer\nbuild $dir/x: cat\n  dir = inner\n"));
    assert!(graph.find(b"inner/x").is_some());
    assert!(graph.find(b"outer/x").is_none());
}

#[test]
fn escapes_stand_for_themselves() {
    let text =
        "rule r\n  command = $\n    a$$b $\n    c$ d\nbuild a$ b.c$:d: r\nx = $\n  v\nbuild $x: r e$$\n";
    let graph = graph(text);
    assert_eq!(command(&graph, "a b.c:d"), "a$b c d");
    assert_eq!(paths(&graph, "v", Files::Inputs), ["e$"]);
}

#[test]
fn paths_are_quoted_for_the_shell_and_plain_in_names_of_files() {
    let text = "rule r\n  command = r $in\n  rspfile = $out.rsp\n  rspfile_content = $in\n\
                build a$ b: r it's\n";
    let graph = graph(text);
    assert_eq!(command(&graph, "a b"), "r 'it'\\''s'");
    assert_eq!(graph.path_value(edge(&graph, "a b"), names::RSPFILE).unwrap(), b"a b.rsp");
    let mut text = Vec::new();
    graph.command_with_content(edge(&graph, "a b"), &mut text).unwrap();
    assert_eq!(text, b"r 'it'\\''s';rspfile='it'\\''s'");
}

#[test]
fn comments_and_line_ends_of_both_kinds() {
    let graph = graph(
        "# a\r\n  # b\r\nrule r\r\n  # c\r\n  command = x\r\n# d\n  description = y\n\nbuild o: r # e\n",
    );
    assert_eq!(command(&graph, "o"), "x");
    assert_eq!(paths(&graph, "o", Files::Inputs), ["#", "e"]);
}

#[test]
fn files_include_others_with_or_without_a_scope() {
    let mut load = |path: &[u8]| match path {
        b"in.ninja" => Ok(b"x = included\nrule late\n  command = $x $y\n".to_vec()),
        b"sub.ninja" => Ok(b"x = sub\nbuild s: late\nrule own\n  command = own $y\nbuild t: own\n".to_vec()),
        _ => Err(std::io::Error::other("no such file")),
    };
    let text = b"y = outer\ninclude in.ninja\nsubninja sub.ninja\nbuild m: late\n";
    let graph = parse(b"build.ninja", text, &mut load).unwrap();
    assert_eq!(command(&graph, "s"), "sub outer");
    assert_eq!(command(&graph, "t"), "own outer");
    assert_eq!(command(&graph, "m"), "included outer");
    let circle = parse(b"a", b"include a\n", &mut |_| Ok(b"include a\n".to_vec())).unwrap_err();
    assert!(circle.message.contains("200 files deep"), "{circle}");
}

#[test]
fn a_variable_of_the_file_hides_the_rules_unless_the_edge_has_lines_of_its_own() {
    let text =
        "description = file\nrule r\n  command = x\n  description = rule\nbuild a: r\nbuild b: r\n  z = 1\n";
    let graph = graph(text);
    assert_eq!(graph.value(edge(&graph, "a"), names::DESCRIPTION).unwrap(), b"file");
    assert_eq!(graph.value(edge(&graph, "b"), names::DESCRIPTION).unwrap(), b"rule");
}

#[test]
fn pools_limit_edges() {
    let text =
        format!("pool p\n  depth = 2\n{CAT}build a: cat\n  pool = p\nbuild b: cat\n  pool = console\n");
    let graph = graph(&text);
    assert_eq!(graph.pools[graph.edge(edge(&graph, "a")).pool.index()].depth, 2);
    assert_eq!(graph.edge(edge(&graph, "b")).pool, CONSOLE);
}

#[test]
fn targets_without_a_default_are_those_that_nothing_uses() {
    let roots = |text: &str| -> Vec<String> {
        let graph = graph(text);
        graph.default_targets().into_iter().map(|node| graph.path_text(node)).collect()
    };
    assert_eq!(roots(&format!("{CAT}build a: cat b\nbuild b: cat c\nbuild d: cat\n")), ["a", "d"]);
    assert_eq!(roots(&format!("{CAT}build a: cat b\nbuild b: cat c\ndefault b\n")), ["b"]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("foobar", "expected '=', got eof", 1, 7),
        ("x 3", "expected '=', got identifier", 1, 3),
        ("x = 3", "unexpected EOF", 1, 6),
        ("x = $", "bad $-escape (literal $ must be written as $$)", 1, 5),
        ("x = $%\n", "bad $-escape (literal $ must be written as $$)", 1, 5),
        ("x = ${y\n", "bad $-escape (literal $ must be written as $$)", 1, 5),
        ("build\n", "expected path", 1, 6),
        ("build x: y z\n", "unknown build rule 'y'", 1, 10),
        ("build x:: y z\n", "expected build command name", 1, 9),
        ("rule cat\n", "expected 'command =' line", 2, 1),
        ("rule cat\n  command =\n", "expected 'command =' line", 3, 1),
        ("rule cat\n  command = a\nrule cat\n", "duplicate rule 'cat'", 3, 9),
        (
            "rule cat\n  command = a\n  rspfile = b\n",
            "rspfile and rspfile_content need to be both specified",
            4,
            1,
        ),
        ("rule r\n  foo = 3\n", "unexpected variable 'foo'", 2, 3),
        ("rule %foo\n", "expected rule name", 1, 6),
        (
            "rule r\n  command = $in\nbuild a.o: r a.c\nbuild a.o: r b.c\n",
            "multiple rules generate a.o",
            5,
            1,
        ),
        ("build $: phony\n", "expected ':', got newline ($ also escapes ':')", 1, 15),
        ("default\n", "expected target name", 1, 8),
        ("default x\n", "unknown target 'x'", 1, 9),
        ("default a:\n", "unknown target 'a'", 1, 9),
        ("pool p\n", "expected 'depth =' line", 2, 1),
        ("pool p\n  depth = -1\n", "invalid pool depth", 2, 11),
        ("pool console\n  depth = 1\n", "duplicate pool 'console'", 1, 13),
        ("build a: phony\n  pool = none\n", "unknown pool name 'none'", 3, 1),
        ("include gone.ninja\n", "loading 'gone.ninja': no file gone.ninja", 1, 9),
        ("build a: phony b\n  dyndep = dd\n", "dyndep 'dd' is not an input", 3, 1),
        ("\tx = 1\n", "tabs are not allowed, use spaces", 1, 1),
        ("  x = 1\n", "unexpected indent", 1, 1),
        ("ninja_required_version = 99.0\n", "the manifest needs ninja 99.0, and this is like 1.13.0", 1, 26),
        ("build $empty: phony\n", "empty path", 2, 1),
        (
            "rule r\n  command = $r\nbuild a: r\n  pool = $pool\nrule s\n  command = x\n  pool = $pool\nbuild b: s\n",
            "cycle in rule variables: pool -> pool",
            9,
            1,
        ),
    ];
    let expected: Vec<_> = cases
        .iter()
        .map(|(text, message, line, column)| (*text, message.to_string(), *line, *column))
        .collect();
    let found: Vec<_> = cases
        .iter()
        .map(|(text, ..)| wrong(text))
        .zip(&cases)
        .map(|((message, line, column), (text, ..))| (*text, message, line, column))
        .collect();
    let differ: Vec<_> = expected.iter().zip(&found).filter(|(expected, found)| expected != found).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn the_place_is_shown_with_a_caret() {
    let error = read("# first\nbuild x: dog y\n").unwrap_err();
    let shown = "build.ninja:2:10: unknown build rule 'dog'\nbuild x: dog y\n         ^ near here";
    assert_eq!(error.to_string(), shown);
    // The statement has ended before its pool is looked for.
    let error = read("build x: phony\n  pool = none\nbuild y: phony\n").unwrap_err();
    assert_eq!(error.to_string(), "build.ninja:3:1: unknown pool name 'none'");
}

#[test]
fn errors_of_a_manifest_name_the_lines_that_ninja_names() {
    for manifest in [
        "build a: phony\n  pool = none\nbuild b: phony\n",
        "build a: phony b\n  dyndep = dd\n\n",
        "build a: phony\nbuild a: phony\n  x = y\n",
        "rule r\n  command = c\nbuild $none: r\n",
        "rule r\n  command = c\nbuild | : r\n",
        "rule r\n  nothing = c\n",
        "build a: none\n",
    ] {
        let tree = tree(manifest);
        let of = |program| {
            let said = String::from_utf8(output(program, tree.path(), &[]).stderr).unwrap();
            let place = said.split("build.ninja:").nth(1).unwrap_or_else(|| panic!("{program}: {said}"));
            (place.split(':').next().unwrap().to_string(), said.contains("near here"))
        };
        assert_eq!(of(OURS), of(NINJA), "{manifest}");
    }
}

#[test]
fn a_phony_edge_may_name_itself() {
    let graph = graph("build a: phony a b\n");
    assert_eq!(paths(&graph, "a", Files::Inputs), ["b"]);
    assert_eq!(graph.phony_cycles, [graph.find(b"a").unwrap()]);
}

#[test]
fn a_hundred_thousand_edges_are_read() {
    let mut text = CAT.to_string();
    for index in 0..100_000 {
        text.push_str(&format!(
            "build out/dir{}/file{index}.o: cat src/file{index}.c | src/common.h\n",
            index % 100
        ));
    }
    let graph = graph(&text);
    assert_eq!((graph.edges.len(), graph.nodes()), (100_000, 200_001));
}
