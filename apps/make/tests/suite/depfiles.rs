//! Depfiles, as compilers write them.

use proptest::prelude::*;
use selvedge_make::depfile::{Depfile, DepfileError, parse};

fn read(text: &str) -> Depfile {
    parse(text.as_bytes()).unwrap()
}

fn of(outputs: &[&str], inputs: &[&str]) -> Depfile {
    let bytes = |paths: &[&str]| paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    Depfile { outputs: bytes(outputs), inputs: bytes(inputs) }
}

#[test]
fn targets_and_inputs_are_told_apart() {
    assert_eq!(
        read("build/ninja.o: ninja.cc ninja.h eval_env.h\n"),
        of(&["build/ninja.o"], &["ninja.cc", "ninja.h", "eval_env.h"])
    );
    assert_eq!(read("foo.o : \\\n  bar.h baz.h\n"), of(&["foo.o"], &["bar.h", "baz.h"]));
    assert_eq!(read("foo.o: \\\r\n  bar.h \\\r\n baz.h\r\n"), of(&["foo.o"], &["bar.h", "baz.h"]));
    assert_eq!(read("a b: c"), of(&["a", "b"], &["c"]));
    assert_eq!(read("a: x\nb: y x\n"), of(&["a", "b"], &["x", "y"]));
    assert_eq!(read("c:/x.o: d:/y.c\n"), of(&["c:/x.o"], &["d:/y.c"]));
    assert_eq!(read(""), of(&[], &[]));
    assert_eq!(read("\n\n a:\n\n"), of(&["a"], &[]));
}

#[test]
fn escapes_are_undone() {
    assert_eq!(read("a\\ b: c\\#d e$$f \\!g\n"), of(&["a b"], &["c#d", "e$f", "\\!g"]));
    assert_eq!(read("x: a\\\\b a\\\\\\ b a\\\\ c\n"), of(&["x"], &["a\\\\b", "a\\ b", "a\\\\", "c"]));
}

#[test]
fn a_header_may_be_a_target_without_inputs_as_mp_writes_it() {
    assert_eq!(read("foo.o: x.c x.h\nx.h:\nx.c:\n"), of(&["foo.o"], &["x.c", "x.h"]));
    assert_eq!(parse(b"foo: x y\nx: alsoin\n"), Err(DepfileError::InputsOfInput));
    assert_eq!(parse(b"foo.o foo.c\n"), Err(DepfileError::NoColon));
}

/// A path as gcc escapes it.
fn escaped(path: &str) -> String {
    path.replace('$', "$$").replace(' ', "\\ ").replace('#', "\\#")
}

proptest! {
    #[test]
    fn what_gcc_would_write_is_read_back(
        output in "[a-z][a-z0-9/._$ #-]{0,8}[a-z]",
        inputs in prop::collection::vec("[a-z][a-z0-9/._$ #-]{0,8}[a-z]", 0..20),
        width in 1_usize..5,
    ) {
        let mut text = escaped(&output) + ":";
        for (index, input) in inputs.iter().enumerate() {
            text.push_str(if index % width == 0 { " \\\n " } else { " " });
            text.push_str(&escaped(input));
        }
        text.push('\n');
        let mut once: Vec<&str> = Vec::new();
        inputs.iter().for_each(|input| if !once.contains(&&input[..]) { once.push(input) });
        prop_assert_eq!(read(&text), of(&[&output], &once));
    }
}
