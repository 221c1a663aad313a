//! A check of `tidy`: a documentation test that must not compile names the code of its error.
//! `tidy.rs` calls `check`.
//!
//! Without the code, the test also passes by a spelling mistake. The stable rustdoc does not
//! compare the codes: `rustup run nightly cargo test --doc -p CRATE` does. An error that a macro
//! gives has no code. A test of such an error says so in its first line, with the words `no code`.

use super::{Problem, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.ending_in(".rs").chain(tree.ending_in(".md")).flat_map(|(file, text)| in_file(file, text)).collect()
}

fn in_file(file: &str, text: &str) -> Vec<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let nameless = |index: &usize| {
        let says_why = lines.get(index + 1).is_some_and(|first| first.contains("no code"));
        let line = lines[*index].trim_start().trim_start_matches(['/', '!']).trim_start();
        line.strip_prefix("```").is_some_and(|words| {
            let mut words = words.split([',', ' ']);
            words.clone().any(|word| word == "compile_fail") && !words.any(is_code) && !says_why
        })
    };
    let nameless = (0..lines.len()).filter(nameless);
    nameless.map(|index| Problem::new(file, index + 1, "`compile_fail` names no error code")).collect()
}

fn is_code(word: &str) -> bool {
    word.strip_prefix('E')
        .is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn a_test_that_must_not_compile_names_its_error() {
        let found = |file: &str, text: &str| messages(&check(&Tree::of(&[(file, text)]))).join("\n");
        for text in [
            "/// ```compile_fail,E0277\n/// a();\n",
            "    //! ```no_run, compile_fail, E0597\n",
            "/// ```compile_fail\n/// # // no code: a macro's error\n",
            "let fence = \"```compile_fail\";\n",
            "/// ```\n/// compile_fail();\n",
        ] {
            assert_eq!(found("a.rs", text), "", "{text}");
        }
        let problem = "a.rs:2: `compile_fail` names no error code";
        assert_eq!(found("a.rs", "\n/// ```compile_fail\n/// a();\n"), problem);
        assert_eq!(found("a.rs", "\n    //! ```compile_fail,Error\n"), problem);
        assert_eq!(found("b.md", "```compile_fail\n"), "b.md:1: `compile_fail` names no error code");
    }
}
