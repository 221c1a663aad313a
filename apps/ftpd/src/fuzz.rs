//! What the fuzz target runs: the bytes of a control connection, up to what the arguments mean. It
//! panics if an invariant does not hold. `fuzz/fuzz_targets` has the target. The module is public
//! and hidden for that.

use crate::address::{parse_eprt, parse_port};
use crate::command::{self, Command, Verb};
use crate::listing::Facts;
use crate::path::{RESERVED, VirtualPath};
use crate::telnet::{ControlLine, LINE_MAX, LineDecoder};
use std::collections::VecDeque;

/// Decodes `bytes` whole and in pieces of at most `cut` bytes, which is the same, and reads each
/// line as a command. Returns how many of the lines are commands.
///
/// # Panics
/// If an invariant does not hold.
pub fn commands(bytes: &[u8], cut: usize) -> usize {
    let (lines, refusals) = decoded(bytes.chunks(bytes.len().max(1)));
    assert_eq!(decoded(bytes.chunks(cut.max(1))), (lines.clone(), refusals.clone()));
    // A refusal takes three bytes, and so did the option that it refuses.
    assert!(refusals.len() <= bytes.len(), "{} bytes of refusals", refusals.len());
    let mut directory = VirtualPath::default();
    lines.iter().filter(|line| obeyed(line, &mut directory)).count()
}

fn decoded<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (VecDeque<ControlLine>, Vec<u8>) {
    let (mut decoder, mut lines) = (LineDecoder::default(), VecDeque::new());
    pieces.for_each(|piece| decoder.decode(piece, &mut lines));
    (lines, decoder.take_refusals())
}

/// Reads a line as the session does. Whether it is a command.
fn obeyed(line: &ControlLine, directory: &mut VirtualPath) -> bool {
    let ControlLine::Text(line) = line else { return false };
    assert!(line.len() <= LINE_MAX && !line.contains(&b'\n'));
    let Command { verb, argument, .. } = match command::parse(line) {
        Ok(command) => command,
        Err(error) => {
            let reply = error.reply().to_bytes();
            assert_eq!(reply.iter().position(|&byte| byte == b'\n'), Some(reply.len() - 1));
            return false;
        }
    };
    assert!(line.ends_with(&argument));
    match verb {
        Verb::Port => _ = parse_port(&argument),
        Verb::Eprt => _ = parse_eprt(&argument),
        Verb::Opts => {
            let facts = Facts::chosen(&String::from_utf8_lossy(&argument)).names(false);
            assert_eq!(Facts::chosen(&facts).names(false), facts);
        }
        _ => walk(directory, &argument),
    }
    true
}

/// Goes where an argument leads. The path stays normal, and is read as itself again.
fn walk(directory: &mut VirtualPath, argument: &[u8]) {
    let Ok(path) = directory.join(argument) else { return };
    let absolute = path.absolute();
    assert_eq!(VirtualPath::default().join(&absolute), Ok(path.clone()));
    let names = absolute[1..].split(|&byte| byte == b'/');
    for name in names.filter(|_| absolute != b"/") {
        assert!(!name.is_empty() && name != b"." && name != b".." && !name.starts_with(RESERVED));
    }
    *directory = path;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A session with Telnet's commands in it, of which other inputs are made.
    const SESSION: &[u8] = b"USER a\r\nPASS \xff\xf4\xff\xf2x\r\nCWD /a/../b\r\nPORT 127,0,0,1,9,9\r\n\
        EPRT |2|::1|99|\r\nOPTS MLST size;type;\r\n\xff\xfb\x01RETR \xff\xff/./x\r\n\xff\xfa1\xff\xf0MKD //\r\nNO\r\n";

    #[test]
    fn a_session_is_read() {
        assert_eq!(commands(SESSION, 1), 8);
        assert_eq!(commands(b"", 0), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_broken_session_is_read(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            cut in 0..40_usize,
        ) {
            let mut session = SESSION.to_vec();
            for (place, byte) in changes {
                let place = place.index(session.len());
                session[place] = byte;
            }
            prop_assert!(commands(&session, cut) <= 17);
        }
    }
}
