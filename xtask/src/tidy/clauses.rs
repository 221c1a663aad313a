//! Part of the check of words: [`Clauses`] finds what is hard to read in a sentence of English.
//!
//! A reader with another first language has to look for the noun of `those that`, and to guess
//! which of its meanings a word has here. So a relative clause stands on a noun, a number is "this
//! number", and `just` means a moment ago. `words.rs` gives the words of each sentence, in their
//! order.

/// Pronouns with a relative clause, and the number that is not told. A `which` may come after one
/// of [`PREPOSITIONS`].
const REFUSED: [&[&str]; 13] = [
    &["so", "many"],
    &["so", "few"],
    &["those", "that"],
    &["those", "which"],
    &["those", "it"],
    &["those", "they"],
    &["the", "one", "that"],
    &["the", "one", "which"],
    &["the", "one", "of"],
    &["the", "ones", "that"],
    &["the", "ones", "which"],
    &["the", "ones", "of"],
    &["the", "one", "it"],
];

/// A preposition between a pronoun and its `which`.
const PREPOSITIONS: [&str; 9] = ["at", "by", "for", "from", "in", "of", "on", "to", "with"];

/// The words after which `just` means a moment ago.
const BEFORE_JUST: [&str; 5] = ["had", "has", "have", "was", "were"];

/// The number of words that a clause looks back.
const WORDS: usize = 4;

/// Files with comments from before this rule, or with comments that are inputs of proofs. The list
/// only shrinks.
const LEFT_OUT: [&str; 2] = ["docs/FIGURES.md", "programs/"];

/// Whether the rule holds for a file. `docs/FIGURES.md` is made of the names of measurements.
pub(super) fn holds_for(file: &str) -> bool {
    !LEFT_OUT.iter().any(|start| file.starts_with(start))
}

/// The last words of a sentence.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    last: Vec<String>,
}

impl Clauses {
    /// The next word of the sentence. Returns what is wrong with the words up to it.
    pub(super) fn next(&mut self, word: &str) -> Option<String> {
        if self.last.len() == WORDS {
            self.last.remove(0);
        }
        self.last.push(word.to_lowercase());
        let words: Vec<&str> = self.last.iter().map(String::as_str).collect();
        if let [.., before, "just"] = words[..] {
            return (!BEFORE_JUST.contains(&before)).then(just);
        }
        if words == ["just"] {
            return Some(just());
        }
        let found = REFUSED.iter().find(|refused| words.ends_with(refused));
        let found = found.map(|refused| refused.join(" ")).or_else(|| after_a_preposition(&words))?;
        Some(match found.as_str() {
            "so many" | "so few" => format!("\"{found}\": name the number"),
            _ => format!("\"{found}\": put the noun in place of the pronoun"),
        })
    }

    /// The sentence, or a part of it, has ended.
    pub(super) fn end(&mut self) {
        self.last.clear();
    }
}

fn just() -> String {
    "\"just\" means a moment ago, after has, have, had, was or were; say \"only\" or \"exactly\"".to_string()
}

/// `those of which`, and the like.
fn after_a_preposition(words: &[&str]) -> Option<String> {
    let [.., pronoun, preposition, "which"] = words else { return None };
    let refused = *pronoun == "those" && PREPOSITIONS.contains(preposition);
    refused.then(|| format!("{pronoun} {preposition} which"))
}

/// Whether the first line of a documentation says that its item has something done.
pub(super) fn is_causative(first_line: &str) -> bool {
    matches!(first_line.split_whitespace().next(), Some("Has" | "Have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sentence: &str) -> Vec<String> {
        let mut clauses = Clauses::default();
        sentence.split_whitespace().filter_map(|word| clauses.next(word)).collect()
    }

    #[test]
    fn each_refused_clause_is_found() {
        for refused in REFUSED {
            let clause = refused.join(" ");
            let problems = found(&format!("The worker wakes {clause} wait"));
            assert_eq!(problems.len(), 1, "{clause}: {problems:?}");
            assert!(problems[0].starts_with(&format!("\"{clause}\":")), "{problems:?}");
        }
        for preposition in PREPOSITIONS {
            assert_eq!(found(&format!("Those {preposition} which it waits")).len(), 1, "{preposition}");
        }
    }

    #[test]
    fn pronouns_without_a_clause_stand() {
        for sentence in
            ["these that", "the one and the other", "those of the worker", "so much that", "as many"]
        {
            assert_eq!(found(sentence), [""; 0], "{sentence}");
        }
    }

    #[test]
    fn just_means_a_moment_ago() {
        for before in BEFORE_JUST {
            assert_eq!(found(&format!("the thread {before} just ended")), [""; 0], "{before}");
        }
        for sentence in ["Just one", "the step may not just run", "it is just this one"] {
            assert_eq!(found(sentence).len(), 1, "{sentence}");
        }
    }

    #[test]
    fn the_end_of_a_sentence_ends_a_clause() {
        let mut clauses = Clauses::default();
        assert_eq!(clauses.next("those"), None);
        clauses.end();
        assert_eq!(clauses.next("that"), None);
    }

    #[test]
    fn a_causative_has_is_a_first_word() {
        assert!(is_causative("Has the worker sleep.") && is_causative("Have a handler answer."));
        assert!(!is_causative("Hash of a key.") && !is_causative("The worker has ended."));
    }

    #[test]
    fn the_list_leaves_out_directories_as_a_whole() {
        assert!(holds_for("crates/core/src/lib.rs") && holds_for("README.md"));
        assert!(!holds_for("programs/src/bin/echo.rs") && !holds_for("docs/FIGURES.md"));
    }
}
