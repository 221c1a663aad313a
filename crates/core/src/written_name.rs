//! [`written_name`]: the name of a thread's code as the program wrote it, from the name of a type.
//!
//! The compiler names the future of an `async` block after the function around it, with one
//! `{{closure}}` for each level, and a future in an adapter after the adapter. `ThreadInfo` and
//! the reports of panics show the part that a reader finds in the source.

/// The part of a compiler's closure names that no source has.
const CLOSURE: &str = "::{{closure}}";

/// The function or the type of the program that a thread's future comes from, as a part of the name
/// of the future's type: without `{{closure}}`, and without this project's adapters around it.
pub(crate) fn written_name(of_type: &str) -> &str {
    let mut name = of_type;
    loop {
        while let Some(outer) = name.strip_suffix(CLOSURE) {
            name = outer;
        }
        let Some((head, arguments)) = split(name) else { return name };
        let ours = head.trim_start_matches(['<', '&']).starts_with("selvedge");
        let mut parts = parts(arguments);
        let inner = match parts.clone().find(|part| part.contains(CLOSURE)) {
            Some(_) if !ours => return head,
            None if ours && parts.clone().count() == 1 => parts.next(),
            inner => inner,
        };
        match inner {
            Some(inner) => name = inner,
            None => return name,
        }
    }
}

/// A name with arguments at its end, as the name before them and the arguments.
fn split(name: &str) -> Option<(&str, &str)> {
    let inside = name.strip_suffix('>')?;
    let mut depth = 0;
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            // It is no bracket, but the end of an arrow.
            b'>' if inside[..at].ends_with('-') => {}
            b'>' => depth += 1,
            b'<' if depth == 0 => return (at > 0).then(|| (&inside[..at], &inside[at + 1..])),
            b'<' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The arguments between the commas.
fn parts(arguments: &str) -> impl Iterator<Item = &str> + Clone {
    let mut depth = 0_i32;
    arguments
        .split(move |letter| {
            depth += match letter {
                '<' | '(' | '[' => 1,
                '>' | ')' | ']' => -1,
                _ => 0,
            };
            letter == ',' && depth == 0
        })
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_program_wrote() {
        for (of_type, written) in [
            ("shop::main::{{closure}}::{{closure}}", "shop::main"),
            ("shop::serve<shop::main::{{closure}}>::{{closure}}", "shop::serve"),
            ("selvedge_see::named::Named<shop::main::{{closure}}>", "shop::main"),
            ("selvedge_see::named::Named<shop::Till>", "shop::Till"),
            ("selvedge_scope::child::Within<(), shop::sell::{{closure}}>::{{closure}}", "shop::sell"),
            (
                "selvedge_io::pool::call::Blocking<(u8, u16), shop::Job>",
                "selvedge_io::pool::call::Blocking<(u8, u16), shop::Job>",
            ),
            ("<shop::Till as shop::Open>::open::{{closure}}", "<shop::Till as shop::Open>::open"),
            ("futures::Map<shop::Till, fn(u8) -> u8>", "futures::Map<shop::Till, fn(u8) -> u8>"),
            ("futures::Map<shop::main::{{closure}}, fn(u8) -> u8>", "futures::Map"),
            ("main", "main"),
        ] {
            assert_eq!(written_name(of_type), written);
        }
    }
}
