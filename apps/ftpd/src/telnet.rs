//! [`LineDecoder`]: the lines in the bytes of a control connection.
//!
//! The control connection follows Telnet (RFC 959 §3.1, RFC 1123 §4.1.2.12), so the decoder takes
//! Telnet's commands out of the bytes and refuses every option that the client offers or asks for.
//! `control.rs` feeds it. No sequence of bytes makes it fail, and it keeps at most one line.

use std::collections::VecDeque;

/// The longest line in bytes, without its end. The longest path of Linux has 4,096 bytes.
pub(crate) const LINE_MAX: usize = 4608;

/// Interpret as command: the byte in front of each Telnet command.
const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
/// The begin of a subnegotiation.
const SB: u8 = 250;
/// The end of a subnegotiation, the command with the lowest number.
const SE: u8 = 240;

/// A line of the control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlLine {
    /// Its bytes, without its end and without Telnet's commands.
    Text(Vec<u8>),
    /// It had more than [`LINE_MAX`] bytes, which are lost.
    TooLong,
}

/// What the next byte is.
#[derive(Debug, Default)]
enum Expected {
    #[default]
    Data,
    /// The byte behind an IAC.
    Command,
    /// The option of DO, DONT, WILL or WONT.
    Option(u8),
    /// A byte of a subnegotiation.
    Negotiated,
    /// The byte behind an IAC in a subnegotiation.
    NegotiatedCommand,
}

/// Takes bytes as they come, and gives lines.
#[derive(Debug, Default)]
pub(crate) struct LineDecoder {
    expected: Expected,
    line: Vec<u8>,
    is_too_long: bool,
    refusals: Vec<u8>,
}

impl LineDecoder {
    /// Decodes the next bytes, and appends the lines that they complete to `lines`. A line ends
    /// with LF; a CR in front of it belongs to the end.
    pub(crate) fn decode(&mut self, bytes: &[u8], lines: &mut VecDeque<ControlLine>) {
        for &byte in bytes {
            self.expected = match self.expected {
                Expected::Data if byte == IAC => Expected::Command,
                Expected::Data => {
                    self.data(byte, lines);
                    Expected::Data
                }
                Expected::Command => self.command(byte, lines),
                Expected::Option(command) => {
                    self.refuse(command, byte);
                    Expected::Data
                }
                Expected::Negotiated if byte == IAC => Expected::NegotiatedCommand,
                Expected::NegotiatedCommand if byte == SE => Expected::Data,
                Expected::Negotiated | Expected::NegotiatedCommand => Expected::Negotiated,
            };
        }
    }

    /// The answers to Telnet's options since the last call, for the client.
    pub(crate) fn take_refusals(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.refusals)
    }

    fn command(&mut self, byte: u8, lines: &mut VecDeque<ControlLine>) -> Expected {
        match byte {
            WILL..=DONT => return Expected::Option(byte),
            SB => return Expected::Negotiated,
            // The Synch, the interrupt and their like, which clients send in front of ABOR.
            SE..SB => {}
            // IAC twice is a byte of data. An IAC in front of another byte means nothing: a client
            // has sent DM as urgent data, and the kernel has taken it out.
            _ => self.data(byte, lines),
        }
        Expected::Data
    }

    fn refuse(&mut self, command: u8, option: u8) {
        match command {
            WILL => self.refusals.extend([IAC, DONT, option]),
            DO => self.refusals.extend([IAC, WONT, option]),
            _ => {}
        }
    }

    fn data(&mut self, byte: u8, lines: &mut VecDeque<ControlLine>) {
        match byte {
            b'\n' => {
                let mut line = std::mem::take(&mut self.line);
                line.pop_if(|last| *last == b'\r');
                lines.push_back(match std::mem::take(&mut self.is_too_long) || line.len() > LINE_MAX {
                    true => ControlLine::TooLong,
                    false => ControlLine::Text(line),
                });
            }
            // One byte more, because it may be the CR of the end.
            _ if self.line.len() <= LINE_MAX => self.line.push(byte),
            _ => self.is_too_long = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> (Vec<ControlLine>, Vec<u8>) {
        let (mut decoder, mut lines) = (LineDecoder::default(), VecDeque::new());
        decoder.decode(bytes, &mut lines);
        (lines.into(), decoder.take_refusals())
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let text = |line| match line {
            ControlLine::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            ControlLine::TooLong => "too long".to_owned(),
        };
        decoded(bytes).0.into_iter().map(text).collect()
    }

    #[test]
    fn lines_end_with_or_without_cr() {
        assert_eq!(texts(b"NOOP\r\nPWD\n\r\nUSER"), ["NOOP", "PWD", ""]);
        assert_eq!(texts(b"CWD a\rb\r\r\n"), ["CWD a\rb\r"]);
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_memory_and_the_next_one_is_read() {
        let longest = "x".repeat(LINE_MAX);
        assert_eq!(texts(format!("{longest}\r\n").as_bytes()), [longest.as_str()]);
        assert_eq!(texts(format!("{longest}x\nNOOP\r\n").as_bytes()), ["too long", "NOOP"]);
        let (mut decoder, mut lines) = (LineDecoder::default(), VecDeque::new());
        for _ in 0..100 {
            decoder.decode(&[b'x'; 1000], &mut lines);
        }
        assert_eq!((decoder.line.len(), lines.len()), (LINE_MAX + 1, 0));
    }

    #[test]
    fn telnet_commands_are_no_part_of_a_line() {
        // Interrupt and Synch in front of ABOR, with and without the byte that is urgent.
        assert_eq!(texts(b"\xff\xf4\xff\xf2ABOR\r\n"), ["ABOR"]);
        assert_eq!(texts(b"\xff\xf4\xffABOR\r\n"), ["ABOR"]);
        // A doubled IAC is a byte of a name in Latin-1.
        assert_eq!(decoded(b"DELE \xff\xff\r\n").0, [ControlLine::Text(b"DELE \xff".to_vec())]);
        assert_eq!(texts(b"NO\xff\xfa\x18\x00\xff\xffx\r\n\xff\xf0OP\r\n"), ["NOOP"]);
    }

    #[test]
    fn options_are_refused() {
        let (lines, refusals) = decoded(b"\xff\xfb\x01\xff\xfd\x03\xff\xfc\x01\xff\xfe\x03NOOP\r\n");
        assert_eq!(lines, [ControlLine::Text(b"NOOP".to_vec())]);
        assert_eq!(refusals, b"\xff\xfe\x01\xff\xfc\x03");
    }

    proptest! {
        /// Bytes without Telnet's: lines are what a split at LF gives.
        #[test]
        fn lines_of_plain_bytes(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), 0u8..255], 0..200)) {
            let mut expected: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            expected.pop();
            let strip = |line: Vec<u8>| line.strip_suffix(b"\r").map_or(line.clone(), <[u8]>::to_vec);
            let expected: Vec<_> = expected.into_iter().map(|line| ControlLine::Text(strip(line))).collect();
            prop_assert_eq!(decoded(&bytes).0, expected);
        }

        /// Any bytes, cut anywhere, give the same lines and refusals.
        #[test]
        fn cuts_change_nothing(
            bytes in prop::collection::vec(prop_oneof![3 => Just(IAC), 3 => 239u8..=254, 2 => Just(b'\n'), 2 => any::<u8>()], 0..100),
            cuts in prop::collection::vec(1usize..8, 0..100),
        ) {
            let (mut decoder, mut lines) = (LineDecoder::default(), VecDeque::new());
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                decoder.decode(piece, &mut lines);
                rest = after;
            }
            decoder.decode(rest, &mut lines);
            prop_assert_eq!((Vec::from(lines), decoder.take_refusals()), decoded(&bytes));
        }
    }
}
