//! Pipelines and inputs that bytes choose, for `fuzz::pipeline`. Each byte chooses one of a few
//! things, so any bytes make a pipeline that fits, and a fuzzer that changes a byte changes a part
//! of it.

use selvedge_pipeline::ItemKind;

/// How deep branches and conditions may lie within one another.
const DEPTH: u32 = 3;

/// Texts for stages and conditions that want one.
const TEXTS: [&str; 8] = ["a", "b", "ab", "aab", ",", "1", "<a>", "\\n"];

/// Expressions, of which some match nothing and some the empty text.
const REGEXES: [&str; 10] = ["a", "b+", "[^a]", "^a|b$", "a*", "(a)(b)?", ".", "^$", "[0-9]+", r"\Ba"];

/// Pieces of an input: a part of each format, and of a mistake in it.
const PIECES: [&str; 25] = [
    "a",
    "b",
    "ab",
    "B",
    " ",
    "\n",
    "\n",
    "\r\n",
    ",",
    "1",
    "20",
    "-1.5",
    "\"",
    "\"a\":",
    "\\",
    "{",
    "}",
    "[",
    "<a>",
    "</a>",
    "<a b='a'/>",
    "&lt;",
    "<!--",
    "-->",
    "\u{e9}",
];

/// Bytes that choose.
pub(super) struct Choices<'a> {
    data: &'a [u8],
}

impl Choices<'_> {
    pub(super) fn new(data: &[u8]) -> Choices<'_> {
        Choices { data }
    }

    /// A number below `limit`: 0 if there are no more bytes.
    fn below(&mut self, limit: usize) -> usize {
        let Some((first, rest)) = self.data.split_first() else { return 0 };
        self.data = rest;
        usize::from(*first) % limit
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[self.below(words.len())].to_string()
    }

    /// A text in quotes, which is not empty.
    fn text(&mut self) -> String {
        format!("\"{}\"", self.pick(&TEXTS))
    }

    fn number(&mut self) -> String {
        format!("{}{}{}", self.pick(&["", "-"]), self.below(30), self.pick(&["", "", ".5", "e30"]))
    }

    fn regex(&mut self) -> String {
        format!("'{}'", self.pick(&REGEXES))
    }

    fn delimiter(&mut self) -> String {
        self.pick(&["", " ','", " 'a'", " ' '"])
    }

    /// An input of some pieces.
    pub(super) fn input(&mut self) -> Vec<u8> {
        let length = self.below(64);
        (0..length).map(|_| self.pick(&PIECES)).collect::<String>().into_bytes()
    }

    /// A pipeline over bytes without a source.
    pub(super) fn script(&mut self) -> String {
        let count = 1 + self.below(5);
        self.stages(ItemKind::Bytes, count, 0).0
    }

    /// Stages over items of a kind, and what they yield.
    fn stages(&mut self, mut kind: ItemKind, count: usize, depth: u32) -> (String, ItemKind) {
        let mut stages = Vec::new();
        for _ in 0..count {
            let (stage, made) = self.stage(kind, depth);
            stages.push(stage);
            kind = made;
        }
        (stages.join(" | "), kind)
    }

    /// Stages that yield what they take, for a branch over a kind. It may be none.
    fn branch(&mut self, kind: ItemKind, depth: u32) -> String {
        let mut stages = Vec::new();
        for _ in 0..self.below(3) {
            let (stage, made) = self.stage(kind, depth);
            // A branch over bytes may end with anything.
            if made == kind || kind == ItemKind::Bytes {
                stages.push(stage);
            }
            if made != kind {
                break;
            }
        }
        stages.join(" | ")
    }

    fn stage(&mut self, kind: ItemKind, depth: u32) -> (String, ItemKind) {
        use ItemKind::{Bytes, Lists, Numbers};
        let any = match self.below(if depth < DEPTH { 9 } else { 6 }) {
            // Over bytes a condition that asks for texts alone is refused.
            0 if kind == Bytes => (format!("having {} and line", self.condition(kind, depth)), kind),
            0 => (format!("having {}", self.condition(kind, depth)), kind),
            1 => (format!("{} {}", self.pick(&["first", "skip"]), 1 + self.below(3)), kind),
            2 => (self.pick(&["count", "count", "suppress"]), Numbers),
            6 | 7 => {
                let word = self.pick(&["if", "foreach"]);
                let condition = self.condition(kind, depth + 1);
                let (then, otherwise) = (self.branch(kind, depth + 1), self.branch(kind, depth + 1));
                let otherwise = if otherwise.is_empty() { otherwise } else { format!(" else {otherwise}") };
                (format!("{word} {condition} then {then}{otherwise} end"), kind)
            }
            8 => {
                // Each of these takes items away, so that a loop comes to its end or to its limit
                // before it has filled the memory.
                let body = match kind {
                    Bytes => self.pick(&[
                        "replace 'a' with ''",
                        "first 2",
                        "suppress",
                        "foreach prefix letters then suppress end",
                    ]),
                    Lists => self.pick(&["replace 'a' with ''", "last 1", "replace regex '^.' with ''"]),
                    _ => self.pick(&["first 1", "last 1"]),
                };
                (format!("while {} then {body} end", self.condition(kind, depth + 1)), kind)
            }
            _ => self.stage_of(kind),
        };
        if any.0 == "suppress" { (any.0, kind) } else { any }
    }

    /// A stage that only some kinds have.
    fn stage_of(&mut self, kind: ItemKind) -> (String, ItemKind) {
        use ItemKind::{Bytes, Lists, Numbers, Records};
        let both = |choices: &mut Self| match choices.below(5) {
            0 => format!("replace {} with {}", choices.text(), choices.text()),
            1 => format!("replace regex {} with {}", choices.regex(), choices.pick(&["''", "'x'", "'<$0>'"])),
            2 => format!("prepend {}", choices.text()),
            3 => format!("append {}", choices.text()),
            _ => choices.pick(&["uppercase", "lowercase"]),
        };
        match kind {
            Bytes => match self.below(8) {
                0..3 => ("lines".to_string(), Lists),
                3 => (format!("each {}", self.condition(Bytes, 1)), Lists),
                4 => (format!("csv{}", self.delimiter()), Records),
                5 => (format!("substitute {}", self.text()), Bytes),
                6 => ("bytes".to_string(), Bytes),
                _ => (both(self), Bytes),
            },
            Lists => match self.below(12) {
                0 => (format!("fields{}", self.delimiter()), Records),
                1 => (self.pick(&["decimals", "integers"]), Numbers),
                2 => (format!("having {} numbered", self.condition(Lists, 1)), Lists),
                3 => (format!("last {}", 1 + self.below(3)), Lists),
                4 => (self.pick(&["unique", "number"]), Lists),
                5 => ("tally".to_string(), Records),
                6 => (
                    format!("sort{}", self.pick(&["", " numeric", " descending", " numeric descending"])),
                    Lists,
                ),
                7 | 8 => (self.pick(&["unquote", "quote", "unescape", "escape"]), Lists),
                9 => ("bytes".to_string(), Bytes),
                _ => (both(self), Lists),
            },
            Records => match self.below(8) {
                0 | 1 => (format!("column {}", 1 + self.below(3)), Lists),
                2 => (format!("columns {} {}", 1 + self.below(3), 1 + self.below(3)), Records),
                3 => (format!("join {}", self.text()), Lists),
                4 => (format!("rows{}", self.delimiter()), Bytes),
                5 => ("bytes".to_string(), Bytes),
                6 => (format!("last {}", 1 + self.below(3)), Records),
                _ => {
                    let order = self.pick(&["", " numeric", " descending"]);
                    (format!("sort by column {}{order}", 1 + self.below(2)), Records)
                }
            },
            Numbers => match self.below(5) {
                0 => (self.pick(&["sum", "min", "max"]), Numbers),
                1 => ("sort descending".to_string(), Numbers),
                2 => (format!("last {}", 1 + self.below(3)), Numbers),
                _ => ("bytes".to_string(), Bytes),
            },
        }
    }

    /// A condition about items of a kind, which binds as tightly as a condition may.
    fn condition(&mut self, kind: ItemKind, depth: u32) -> String {
        if depth >= DEPTH {
            return self.simple(kind);
        }
        let inner = |choices: &mut Self| choices.condition(kind, depth + 1);
        match self.below(20) {
            0 => format!("not {}", inner(self)),
            1 => format!("({} and {})", inner(self), inner(self)),
            2 => format!("({} or {})", inner(self), inner(self)),
            3 => {
                let place = self.pick(&[
                    "first",
                    "last",
                    "even",
                    "upto first",
                    "last and after",
                    "prefix",
                    "suffix",
                    "start of",
                    "end of",
                ]);
                format!("{place} {}", inner(self))
            }
            4 => format!("between {} and {}", inner(self), inner(self)),
            5 => format!("({} having {})", inner(self), inner(self)),
            6 => format!("({} having only {})", inner(self), inner(self)),
            7 => format!("({} nested in {})", inner(self), inner(self)),
            8 | 9 => format!("({} followed by {})", inner(self), inner(self)),
            _ => self.simple(kind),
        }
    }

    /// A condition without another one in it, but for `line having`.
    fn simple(&mut self, kind: ItemKind) -> String {
        match kind {
            ItemKind::Bytes => match self.below(14) {
                0 => format!("substring {}", self.text()),
                1 => format!("regex {}", self.regex()),
                2 => format!("{} {}", self.pick(&["prefix", "suffix"]), self.text()),
                3 => "line".to_string(),
                4 | 5 => format!("(line having {})", self.simple(ItemKind::Lists)),
                6 => self.pick(&["letters", "digits", "whitespace", "capitals", "smalls"]),
                7 => format!("csv row{}", self.delimiter()),
                8 => format!("csv column {}{}", 1 + self.below(3), self.delimiter()),
                9 => self.pick(&["json value", "json member 'a'"]),
                10 => self.pick(&["xml element 'a'", "xml content 'a'", "xml attribute 'b'"]),
                11 => self.pick(&["everything", "nothing"]),
                _ => format!("substring {}", self.text()),
            },
            ItemKind::Lists => self.about_text(),
            ItemKind::Records => match self.below(6) {
                0 => self.pick(&["everything", "nothing"]),
                _ => format!("column {} {}", 1 + self.below(3), self.about_text()),
            },
            ItemKind::Numbers => {
                format!("{} {}", self.pick(&["<", ">", "<=", ">=", "=", "!="]), self.number())
            }
        }
    }

    /// What is asked about a line or a column.
    fn about_text(&mut self) -> String {
        match self.below(7) {
            0 | 1 => format!("substring {}", self.text()),
            2 => format!("regex {}", self.regex()),
            3 => format!("{} {}", self.pick(&["prefix", "suffix", "equals"]), self.text()),
            4 => "empty".to_string(),
            5 => format!("{} {}", self.pick(&["<", ">", "=", "!="]), self.number()),
            _ => format!("substring {}", self.text()),
        }
    }
}
