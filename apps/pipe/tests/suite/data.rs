//! Files to work on, from a fixed recipe, and how the shell and other tools are run on them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A generator of numbers that gives the same ones each time.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// A directory with the files that the recipes work on.
pub(crate) fn files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, mut text, mut people, mut rows, mut page) = Default::default();
    let mut numbers = Numbers::new(42);
    fill(&mut numbers, &mut log, &mut text, &mut people, &mut rows, &mut page);
    let contents: [(&str, String); 5] = [
        ("access.log", log),
        ("notes.md", text),
        ("people.jsonl", people),
        ("stock.csv", rows),
        ("users.xml", page),
    ];
    for (name, content) in contents {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

fn fill(
    numbers: &mut Numbers,
    log: &mut String,
    text: &mut String,
    people: &mut String,
    rows: &mut String,
    page: &mut String,
) {
    let words = ["warp", "weft", "knot", "reed", "heddle"];
    for _ in 0..2000 {
        let (host, word, size) = (numbers.below(7), numbers.pick(&words), numbers.below(100_000));
        let status = numbers.pick(&["200", "200", "404", "500"]);
        let verb = numbers.pick(&["GET", "POST"]);
        writeln!(log, "10.0.0.{host} - - {verb} /{word} {status} {size}").unwrap();
    }
    for section in 0..40 {
        let word = numbers.pick(&words);
        writeln!(text, "## {section} {word}").unwrap();
        for _ in 0..numbers.below(6) {
            let line = numbers.pick(&["a warp and a weft", "", "BEGIN", "END", "no knot\twarp"]);
            writeln!(text, "{line}").unwrap();
        }
    }
    for number in 0..300 {
        let (word, secret) = (numbers.pick(&words), numbers.below(1_000_000));
        let name = numbers.pick(&["ann", "bob \\\"b\\\" \\u00e9", "c\\\\d"]);
        writeln!(
            people,
            "{{ \"user\": \"{name}\",  \"n\":{number}, \"key\" : \"{secret}\", \"of\":[\"{word}\"]}}"
        )
        .unwrap();
        let quoted = numbers.pick(&["plain", "\"with, comma\"", "\"two\nlines\"", "\"say \"\"hi\"\"\"", ""]);
        writeln!(rows, "{number},{quoted},{word},{secret}").unwrap();
        writeln!(page, "<user id='{number}'><name>{word}</name><key>{secret}</key></user>").unwrap();
    }
}

/// The shell with these arguments, in a directory, fed with `input`.
pub(crate) fn shell(directory: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-pipe"));
    command.args(arguments);
    fed(&mut command, directory, input)
}

/// A command of the system, in a directory, fed with `input`.
pub(crate) fn system(directory: &Path, command: &str, input: &[u8]) -> Output {
    fed(Command::new("sh").arg("-c").arg(command), directory, input)
}

fn fed(command: &mut Command, directory: &Path, input: &[u8]) -> Output {
    command.current_dir(directory).env("LC_ALL", "C.UTF-8");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // A program that reads no input closes the pipe.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

/// What the shell writes, which must end with this status.
pub(crate) fn text(output: &Output, status: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
