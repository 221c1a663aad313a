//! Commands that need no shell.
//!
//! `/bin/sh -c` costs more than many small commands do themselves. [`words`] splits a command that
//! means nothing but words to the shell, and `build/command.rs` starts its program directly.
//!
//! [`words`] must return `None` in every case of doubt. A needless `None` costs one process, and a
//! wrong split runs another command than the manifest says.

/// First words of commands that some shell runs itself, instead of starting a program.
const OF_SHELL: &[&[u8]] = &[
    b".",
    b":",
    b"[",
    b"alias",
    b"bg",
    b"break",
    b"builtin",
    b"case",
    b"cd",
    b"command",
    b"continue",
    b"declare",
    b"do",
    b"done",
    b"echo",
    b"elif",
    b"else",
    b"enable",
    b"esac",
    b"eval",
    b"exec",
    b"exit",
    b"export",
    b"fc",
    b"fg",
    b"fi",
    b"for",
    b"function",
    b"getopts",
    b"hash",
    b"help",
    b"history",
    b"if",
    b"in",
    b"jobs",
    b"kill",
    b"let",
    b"local",
    b"logout",
    b"printf",
    b"pwd",
    b"read",
    b"readonly",
    b"return",
    b"select",
    b"set",
    b"shift",
    b"source",
    b"test",
    b"then",
    b"time",
    b"times",
    b"trap",
    b"type",
    b"typeset",
    b"ulimit",
    b"umask",
    b"unalias",
    b"unset",
    b"until",
    b"wait",
    b"while",
];

/// The words of a command, if the shell would do nothing else than start the program that the first
/// word names, with the others as arguments. `None`: the command needs the shell. O(length).
///
/// CMake puts `: && ` before and ` && :` behind many commands. Both are taken off.
///
/// # Examples
/// ```
/// use selvedge_make::shell::words;
/// assert_eq!(words(b"cc -c 'a file.c' -o x.o").unwrap()[2], b"a file.c");
/// assert_eq!(words(b": && ld a.o && :").unwrap(), [b"ld".to_vec(), b"a.o".to_vec()]);
/// assert_eq!(words(b"sort <in >out"), None);
/// ```
pub fn words(command: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut command = command.trim_ascii();
    if let Some(inner) = command.strip_prefix(b": && ").and_then(|rest| rest.strip_suffix(b" && :")) {
        command = inner;
    }
    let words = split(command)?;
    let first = words.first()?;
    let usual = !first.is_empty() && !first.contains(&b'=') && !OF_SHELL.contains(&&first[..]);
    usual.then_some(words)
}

/// Whether a byte outside of quotes means more to some shell than itself.
fn is_special(byte: u8) -> bool {
    byte.is_ascii_control() || b"|&;<>()$`*?[]{}~!#^%".contains(&byte)
}

fn split(command: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = command.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' => words.extend(word.take()),
            b'\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        b'\'' => break,
                        0 => return None,
                        other => word.push(other),
                    }
                }
            }
            b'"' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        b'"' => break,
                        b'\\' => match bytes.next()? {
                            escaped @ (b'"' | b'\\' | b'$' | b'`') => word.push(escaped),
                            b'\n' | 0 => return None,
                            other => word.extend([b'\\', other]),
                        },
                        b'$' | b'`' | b'!' | 0 => return None,
                        other => word.push(other),
                    }
                }
            }
            b'\\' => match bytes.next()? {
                b'\n' | 0 => return None,
                other => word.get_or_insert_default().push(other),
            },
            other if is_special(other) => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(command: &str) -> Option<Vec<String>> {
        let words = words(command.as_bytes())?;
        Some(words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
    }

    #[test]
    fn words_are_those_of_the_shell() {
        for command in [
            "cc -c a.c -o a.o",
            "cc -DNAME=\\\"x\\\" 'a b'c \"d  e\"f  g",
            "/usr/bin/env printf '%s' \"a\\\\b\\c\" ''",
            ": && /usr/bin/cc a.o -o a && :",
        ] {
            let ours = texts(command).unwrap();
            let body = command.trim_start_matches(": && ").trim_end_matches(" && :");
            let script = format!("printf '%s\\n' {body}");
            let shell = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            let theirs = String::from_utf8(shell.stdout).unwrap();
            assert_eq!(ours.join("\n") + "\n", theirs, "{command}");
        }
    }

    #[test]
    fn a_command_with_a_meaning_beyond_words_is_left_to_the_shell() {
        for command in [
            "a | b", "a && b", "a; b", "a > b", "a < b", "a $HOME", "a `b`", "a *.c", "a ?", "a [x]",
            "a ~/x", "X=1 a", "cd x", "echo x", "a 'x", "a \"$x\"", "a \\", "a # b", "a\nb", "! a", "", "  ",
            "(a)", "{ a; }", "a {1,2}", "'' x",
        ] {
            assert_eq!(texts(command), None, "{command}");
        }
    }
}
