//! Numbers: signed, decimal, exact, and the same in each stage and condition that has them.

use crate::data::{Numbers, shell, system, text};
use std::path::Path;

/// What the shell makes of `input`.
fn run(script: &str, input: &str) -> String {
    text(&shell(Path::new("/"), &[script], input.as_bytes()), 0)
}

/// What the shell says of a failure.
fn error(script: &str, input: &str) -> String {
    let output = shell(Path::new("/"), &[script], input.as_bytes());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{script}: {error}");
    error
}

#[test]
fn each_stage_takes_signed_and_decimal_numbers() {
    let input = "-5\n1.5\n+0.25\n1e3\n-.5\n";
    for (stages, made) in [
        ("decimals", "-5\n1.5\n0.25\n1000\n-0.5\n"),
        ("decimals | sum", "996.25\n"),
        ("decimals | min", "-5\n"),
        ("decimals | max", "1000\n"),
        ("decimals | sort", "-5\n-0.5\n0.25\n1.5\n1000\n"),
        ("decimals | sort descending", "1000\n1.5\n0.25\n-0.5\n-5\n"),
        ("decimals | having < 0 | sum", "-5.5\n"),
        ("decimals | having >= -0.50 and != 1e3", "1.5\n0.25\n-0.5\n"),
        ("decimals | foreach < 0 then sum else first 1 end", "-5\n1.5\n0.25\n1000\n-0.5\n"),
        ("decimals | if < 0 then sum end", "1.5\n0.25\n1000\n-5.5\n"),
        ("decimals | last 2 | bytes | lines | decimals | sum", "999.5\n"),
    ] {
        assert_eq!(run(&format!("lines | {stages}"), input), made, "{stages}");
    }
    assert_eq!(run("lines | integers | sum", "-5\n7.0\n-1e1\n+2\n"), "-6\n");
    assert_eq!(run("lines | integers", " 7\n70e-1\n0.7e1\n-0\r\n"), "7\n7\n7\n0\n");
    // Sums are exact where binary fractions are not, and whatever their sizes are.
    assert_eq!(run("lines | decimals | sum", &"0.1\n".repeat(10)), "1\n");
    let huge = "9".repeat(309);
    assert_eq!(run("lines | decimals | sum", &format!("{huge}\n12\n")), format!("1{}11\n", "0".repeat(307)));
    assert_eq!(run("lines | decimals | sum", &format!("{huge}\n1\n")), "1e309\n");
    assert_eq!(run("lines | decimals | sum", &format!("{huge}\n0.5\n-{huge}\n")), "0.5\n");
    assert_eq!(run("lines | integers | max", &format!("-{huge}\n{huge}\n1e308\n")), format!("{huge}\n"));
}

#[test]
fn a_range_has_any_numbers() {
    for (range, made) in [
        ("range -2 1", "-2\n-1\n0\n1\n"),
        ("range 0.5 3", "0.5\n1.5\n2.5\n"),
        ("range 0 1 by 0.25", "0\n0.25\n0.5\n0.75\n1\n"),
        ("range 1 -1 by -0.5", "1\n0.5\n0\n-0.5\n-1\n"),
        ("range 1e20 1e20", "100000000000000000000\n"),
        ("range 9223372036854775806 9223372036854775809 | last 3 | sum", "27670116110564327424\n"),
    ] {
        assert_eq!(run(range, ""), made, "{range}");
    }
    assert_eq!(text(&shell(Path::new("/"), &["range 3 1"], b""), 1), "");
    let theirs = system(Path::new("/"), "seq -5 0.5 5", b"");
    assert_eq!(run("range -5 5 by 0.5 | sum", ""), "0\n");
    assert_eq!(run("range -5 5 by 0.5 | count", ""), format!("{}\n", text(&theirs, 0).lines().count()));
    for (script, why) in [
        ("range 1 2 by 0", "1:14: a range with steps of 0 has no end"),
        ("range 1 1e2000000 by 1e1000000", "1:22: a number of this range has more than a million digits"),
        ("range 1 x", "1:9: expected a number, found `x`"),
        ("range 1 2 | first -1", "1:19: expected a whole number from 1, found `-1`"),
        ("range 1 2 | first 1.5", "1:19: expected a whole number from 1, found `1.5`"),
    ] {
        let error = error(script, "");
        assert!(error.contains(why), "{script}: {error}");
    }
}

#[test]
fn a_line_that_is_no_number_is_told_in_the_words_of_the_shell() {
    let long = "7".repeat(200) + "x";
    let begins = format!("\"{}\".. is no number", "7".repeat(60));
    for (stage, wrong, why) in [
        ("decimals", "", "\"\" is no number"),
        ("decimals", "5x", "\"5x\" is no number"),
        ("decimals", "inf", "\"inf\" is no number"),
        ("decimals", "1,5", "\"1,5\" is no number"),
        ("decimals", "\u{2212}5", "\"\u{2212}5\" is no number"),
        (
            "decimals",
            "1e9999999999999999999",
            "\"1e9999999999999999999\" has an exponent of more than 18 digits",
        ),
        ("decimals", &long, &begins),
        ("integers", "5x", "\"5x\" is no number"),
        ("integers", "1.5", "\"1.5\" is not whole; `decimals` takes numbers with a fraction"),
        ("integers", "1e-400", "\"1e-400\" is not whole; `decimals` takes numbers with a fraction"),
    ] {
        let error = error(&format!("lines | {stage} | sum"), &format!("1\n-2\n{wrong}\n4\n"));
        assert!(error.starts_with(&format!("selvedge-pipe: pipeline:1:9: {why}\n")), "{error}");
        assert!(error.ends_with("  item 3, in line 3 at offset 5\n"), "{error}");
    }
}

/// A number written in one of many ways.
fn written(numbers: &mut Numbers) -> String {
    let digits = |numbers: &mut Numbers, most: u64| -> String {
        (0..numbers.below(most + 1)).map(|_| char::from(b'0' + numbers.below(10) as u8)).collect()
    };
    let most = [2, 9, 25][numbers.below(3) as usize];
    let (whole, fraction) = (digits(numbers, most), digits(numbers, most));
    let point = if fraction.is_empty() { "" } else { "." };
    let whole = if whole.is_empty() && fraction.is_empty() { "0".to_string() } else { whole };
    let exponent = match numbers.below(4) {
        0 => format!("e{}", numbers.below(60)),
        1 => format!("E-{}", numbers.below(60)),
        _ => String::new(),
    };
    format!("{}{whole}{point}{fraction}{exponent}", numbers.pick(&["", "-", "+"]))
}

#[test]
fn sums_orders_and_comparisons_are_those_of_exact_fractions() {
    const ORACLE: &str = r#"
from fractions import Fraction
def read(name):
    return [Fraction(text) for text in open(name).read().split()]
values = read("lines")
assert read("numbers") == values
assert read("sorted") == sorted(values)
assert read("sum") == [sum(values)]
for value in values[::40]:
    print(*(sum(found) for found in zip(*((v < value, v <= value, v > value, v == value) for v in values))))
"#;
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers::new(53);
    let lines: Vec<String> = (0..400).map(|_| written(&mut numbers)).collect();
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let backwards: String = lines.iter().rev().map(|line| format!("{line}\n")).collect();
    let (ours, sum) = (run("lines | decimals", &input), run("lines | decimals | sum", &input));
    let sorted = run("lines | decimals | sort", &input);
    for (name, text) in [("lines", &input), ("numbers", &ours), ("sum", &sum), ("sorted", &sorted)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    std::fs::write(directory.path().join("oracle.py"), ORACLE).unwrap();
    let counts = text(&system(directory.path(), "python3 oracle.py", b""), 0);
    // A number has one text, and a sum does not depend on the order of its terms.
    assert_eq!(run("lines | decimals", &ours), ours);
    assert_eq!(run("lines | decimals | sum", &backwards), sum);
    assert_eq!(run("lines | sort numeric | decimals", &input), sorted);
    // A comparison finds the same in lines and in numbers.
    for (line, theirs) in lines.iter().step_by(40).zip(counts.lines()) {
        for stages in ["lines", "lines | decimals"] {
            let found = |sign: &str| {
                let script = format!("{stages} | having {sign} {line} | count");
                let output = shell(Path::new("/"), &[&script], input.as_bytes());
                String::from_utf8_lossy(&output.stdout).trim().to_string()
            };
            assert_eq!(["<", "<=", ">", "="].map(found).join(" "), theirs, "{stages}, {line}");
        }
    }
    assert_eq!(counts.lines().count(), 10);
}
