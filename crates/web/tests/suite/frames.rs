//! What a WebSocket does with each kind of frame: the cases of the Autobahn test suite (its groups
//! 1 to 7), sent byte by byte as a peer may send them.

use selvedge_core::{round_robin_over, spawn_local};
use selvedge_http::{Config, Site};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_io::time::timeout;
use selvedge_web::{Response, Router, WebSocketUpgrade};
use std::time::Duration;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame: its first byte without the opcode (0x80 is the last of a message), its opcode, content.
#[derive(Clone, Debug, PartialEq)]
struct Frame(u8, u8, Vec<u8>);

fn last(opcode: u8, content: impl AsRef<[u8]>) -> Frame {
    Frame(0x80, opcode, content.as_ref().to_vec())
}

fn part(opcode: u8, content: impl AsRef<[u8]>) -> Frame {
    Frame(0, opcode, content.as_ref().to_vec())
}

impl Frame {
    /// As a client sends it, masked.
    fn bytes(&self) -> Vec<u8> {
        let Frame(flags, opcode, content) = self;
        let mut bytes = vec![flags | opcode];
        match content.len() {
            len @ ..126 => bytes.push(0x80 | len as u8),
            len @ ..65_536 => bytes.extend([[0x80 | 126].as_slice(), &(len as u16).to_be_bytes()].concat()),
            len => bytes.extend([[0x80 | 127].as_slice(), &(len as u64).to_be_bytes()].concat()),
        }
        let mask = [0x1f, 0xa2, 0x03, 0xc4];
        bytes.extend(mask);
        bytes.extend(content.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    /// The first frame of a server's bytes, and its length.
    fn of_server(bytes: &[u8]) -> Option<(Frame, usize)> {
        let (&first, &second) = (bytes.first()?, bytes.get(1)?);
        assert_eq!(second & 0x80, 0, "a server does not mask");
        let (len, start) = match second {
            126 => (usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
            127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize, 10),
            len => (usize::from(len), 2),
        };
        let content = bytes.get(start..start + len)?.to_vec();
        Some((Frame(first & 0xf0, first & 0x0f, content), start + len))
    }
}

async fn echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.message_bytes_max(1 << 20).on_upgrade(async |mut socket| {
        while let Ok(Some(message)) = socket.next().await {
            if socket.send(message).await.is_err() {
                break;
            }
        }
    })
}

/// The frames with which the server answers `sent`, and whether it ends the connection by itself.
/// The client sends pieces of `cut` bytes.
fn answers(sent: &[u8], cut: usize) -> (Vec<Frame>, bool) {
    let pieces: Vec<Vec<u8>> = sent.chunks(cut).map(<[u8]>::to_vec).collect();
    let main = async move {
        let site = Site::with_handler(Router::new().get("/", echo), Config::default(), None);
        let (stream, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        stream.write_all(REQUEST).await.unwrap();
        let mut read = Vec::with_capacity(64 << 10);
        while !read.windows(4).any(|window| window == b"\r\n\r\n") {
            assert_ne!(stream.read_to_spare(&mut read).await.unwrap(), 0);
        }
        let head = read.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        read.drain(..head);
        for piece in pieces {
            // The server may have ended the connection.
            if stream.write_all(&piece).await.is_err() {
                break;
            }
        }
        let (mut frames, mut has_ended) = (Vec::new(), false);
        loop {
            while let Some((frame, len)) = Frame::of_server(&read) {
                frames.push(frame);
                read.drain(..len);
            }
            read.reserve(64 << 10);
            match timeout(Duration::from_secs(5), stream.read_to_spare(&mut read)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => {
                    has_ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        drop(stream);
        server.await.unwrap();
        (frames, has_ended)
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

/// Sends `sent` whole and in small pieces. The server must answer with `expected`. Then it must end
/// the connection if it `fails`, with a close or without one, and otherwise only at the client's
/// close.
fn case(name: &str, sent: &[Frame], expected: &[Frame], fails: bool) {
    let farewell = last(CLOSE, b"\x03\xe8bye");
    let (mut sent, mut expected) = (sent.to_vec(), expected.to_vec());
    if !fails {
        sent.push(farewell.clone());
        expected.push(farewell);
    }
    let bytes: Vec<u8> = sent.iter().flat_map(Frame::bytes).collect();
    for cut in [bytes.len(), 997, 1] {
        // Byte by byte is for short cases.
        if cut == 1 && bytes.len() > 2000 {
            continue;
        }
        let (mut frames, has_ended) = answers(&bytes, cut);
        if fails && frames.last().is_some_and(|frame| frame.1 == CLOSE) && expected.last() != frames.last() {
            let close = frames.pop().unwrap();
            let code = u16::from_be_bytes(close.2[..2].try_into().unwrap());
            assert!([1002, 1007, 1009].contains(&code), "{name}: it closes with {code}");
        }
        assert!(frames == expected, "{name}, in pieces of {cut}: {frames:?}, not {expected:?}");
        assert!(has_ended, "{name}, in pieces of {cut}: the connection is still open");
    }
}

#[test]
fn messages_of_every_length() {
    for len in [0, 125, 126, 127, 128, 65_535, 65_536] {
        for opcode in [TEXT, BINARY] {
            let message = last(opcode, vec![b'*'; len]);
            case("1", std::slice::from_ref(&message), std::slice::from_ref(&message), false);
        }
    }
}

#[test]
fn pings_and_pongs() {
    case("2.1", &[last(PING, "")], &[last(PONG, "")], false);
    case("2.2", &[last(PING, "a ping")], &[last(PONG, "a ping")], false);
    case("2.3", &[last(PING, [0, 255, 254, 253])], &[last(PONG, [0, 255, 254, 253])], false);
    case("2.4", &[last(PING, [0xfe; 125])], &[last(PONG, [0xfe; 125])], false);
    case("2.5", &[last(PING, [0xfe; 126])], &[], true);
    for name in ["2.7", "2.8"] {
        case(name, &[last(PONG, "unasked"), last(TEXT, "a")], &[last(TEXT, "a")], false);
    }
    let ten: Vec<Frame> = (0..10).map(|n| last(PING, n.to_string())).collect();
    // A server may answer the last of several pings alone (RFC 6455 §5.5.3).
    let end = last(CLOSE, "");
    let bytes: Vec<u8> = ten.iter().chain([&end]).flat_map(Frame::bytes).collect();
    let (frames, _) = answers(&bytes, bytes.len());
    assert_eq!(frames[frames.len() - 2..], [last(PONG, "9"), end]);
    assert!(frames[..frames.len() - 1].iter().all(|frame| frame.1 == PONG));
}

#[test]
fn reserved_bits_and_opcodes() {
    for flags in [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70] {
        let wrong = Frame(0x80 | flags, TEXT, b"b".to_vec());
        case("3", std::slice::from_ref(&wrong), &[], true);
        case("3", &[last(TEXT, "a"), wrong], &[last(TEXT, "a")], true);
        case("3.6", &[Frame(0x80 | flags, PING, b"p".to_vec())], &[], true);
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        case("4", &[last(opcode, "x")], &[], true);
        case("4", &[last(TEXT, "a"), last(opcode, ""), last(PING, "")], &[last(TEXT, "a")], true);
    }
}

#[test]
fn messages_in_parts() {
    case("5.1", &[part(PING, "a"), last(CONTINUATION, "b")], &[], true);
    case("5.2", &[part(PONG, "a"), last(CONTINUATION, "b")], &[], true);
    case("5.3", &[part(TEXT, "a"), last(CONTINUATION, "b")], &[last(TEXT, "ab")], false);
    let amid = [part(TEXT, "a"), last(PING, "p"), last(CONTINUATION, "b")];
    case("5.6", &amid, &[last(PONG, "p"), last(TEXT, "ab")], false);
    case("5.9", &[last(CONTINUATION, "x"), last(TEXT, "a")], &[], true);
    case("5.12", &[part(CONTINUATION, "x"), last(TEXT, "a")], &[], true);
    case(
        "5.15",
        &[part(TEXT, "a"), last(CONTINUATION, "b"), part(CONTINUATION, "c")],
        &[last(TEXT, "ab")],
        true,
    );
    case("5.18", &[part(TEXT, "a"), last(TEXT, "b")], &[], true);
    let many = [
        part(TEXT, "1"),
        part(CONTINUATION, "2"),
        last(PING, "x"),
        part(CONTINUATION, "3"),
        part(CONTINUATION, "4"),
        last(PING, "y"),
        last(CONTINUATION, "5"),
    ];
    case("5.19", &many, &[last(PONG, "x"), last(PONG, "y"), last(TEXT, "12345")], false);
    case(
        "5",
        &[part(BINARY, ""), part(CONTINUATION, ""), last(CONTINUATION, "")],
        &[last(BINARY, "")],
        false,
    );
}

#[test]
fn text_is_utf_8() {
    let kosme = "κόσμε";
    for text in [
        "",
        "Hello-µ@ßöäüàá-UTF-8!!",
        kosme,
        "\u{0}",
        "\u{7f}",
        "\u{80}",
        "\u{7ff}",
        "\u{800}",
        "\u{ffff}",
        "\u{10ffff}",
        "\u{fffe}",
        "\u{1fffe}",
    ] {
        let whole = [last(TEXT, text)];
        case("6", &whole, &whole, false);
        let bytes = text.as_bytes();
        // A character may be cut anywhere.
        for at in 0..=bytes.len() {
            let parts = [part(TEXT, &bytes[..at]), last(CONTINUATION, &bytes[at..])];
            case("6.2", &parts, &whole, false);
        }
    }
    for wrong in [
        &b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"[..],
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xbf",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf8\x88\x80\x80\x80",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xfe",
        b"\xff",
        b"\xc2",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
    ] {
        case("6.3", &[last(TEXT, wrong)], &[], true);
        case("6.4", &[part(TEXT, "a"), last(CONTINUATION, wrong), last(PING, "")], &[], true);
        // Bytes need not be text.
        case("6", &[last(BINARY, wrong)], &[last(BINARY, wrong)], false);
    }
}

#[test]
fn closes() {
    let close = |code: u16, reason: &str| last(CLOSE, [&code.to_be_bytes(), reason.as_bytes()].concat());
    let echoed = |sent: Frame| case("7", &[last(TEXT, "a"), sent.clone()], &[last(TEXT, "a"), sent], true);
    echoed(last(CLOSE, ""));
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        echoed(close(code, "a reason"));
    }
    echoed(close(1000, &"*".repeat(123)));
    // Nothing is answered behind a close.
    case("7.1.3", &[close(1000, ""), last(PING, "")], &[close(1000, "")], true);
    case("7.1.4", &[close(1000, ""), last(TEXT, "late")], &[close(1000, "")], true);
    case("7.1.5", &[part(TEXT, "a"), close(1000, ""), last(CONTINUATION, "b")], &[close(1000, "")], true);
    let fails = |name: &str, sent: Frame| {
        let bytes: Vec<u8> = sent.bytes();
        let (frames, has_ended) = answers(&bytes, bytes.len());
        // It ends the connection, with a close of its own or none, and does not repeat a wrong one.
        assert!(
            has_ended && frames.iter().all(|frame| frame.1 == CLOSE && *frame != sent),
            "{name}: {frames:?}"
        );
    };
    fails("7.3.2", last(CLOSE, "x"));
    fails("7.3.6", last(CLOSE, [&[3, 232], &[b'*'; 124][..]].concat()));
    fails("7.5.1", last(CLOSE, b"\x03\xe8\xce\xba\xed\xa0\x80"));
    for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535] {
        fails("7.9", close(code, ""));
    }
}
