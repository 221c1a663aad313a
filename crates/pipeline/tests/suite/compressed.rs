//! Compressed streams: what comes out, at every cut, and what fails where.

use proptest::prelude::{any as any_of, prop, prop_assert_eq, proptest};
use selvedge_pipeline::gzip::{gunzip, gzip};
use selvedge_pipeline::{StageError, from_chunks};

fn packed(text: &[u8], level: u32) -> Vec<u8> {
    (from_chunks([text]) >> gzip(level)).collect()
}

/// What comes out of a stream that is cut into pieces of `length` bytes.
fn unpacked(packed: &[u8], length: usize) -> Result<Vec<u8>, StageError> {
    (from_chunks(packed.chunks(length.max(1))) >> gunzip()).try_collect()
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked(text in prop::collection::vec(any_of::<u8>(), 0..300), level in 0u32..10, length in 1usize..40) {
        let whole = packed(&text, level);
        prop_assert_eq!(unpacked(&whole, length).unwrap(), text.clone());
        // The cut of the input does not show.
        prop_assert_eq!((from_chunks(text.chunks(length)) >> gzip(level)).collect(), whole.clone());
        // Members follow each other.
        let two = [whole.clone(), whole].concat();
        prop_assert_eq!(unpacked(&two, length).unwrap(), [text.clone(), text].concat());
    }

    #[test]
    fn any_bytes_are_unpacked_or_refused_at_every_cut(text in prop::collection::vec(any_of::<u8>(), 0..60), wrong in prop::option::of((any_of::<prop::sample::Index>(), any_of::<u8>()))) {
        let mut stream = packed(&text, 6);
        if let Some((place, byte)) = wrong {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        selvedge_pipeline::fuzz::gzip(&stream);
    }
}

#[test]
fn a_mistake_in_any_byte_of_the_content_is_noticed() {
    let whole = packed(&b"warp and weft ".repeat(20), 6);
    assert_eq!(unpacked(&[], 1).unwrap(), b"");
    for length in 1..whole.len() {
        assert!(unpacked(&whole[..length], 7).is_err(), "{length} of {} bytes", whole.len());
    }
    // The ten bytes of the head have fields that say nothing of the content.
    for at in 10..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x10;
        assert!(unpacked(&wrong, 5).is_err(), "byte {at}");
    }
}

#[test]
fn zeros_behind_the_last_member_are_passed_over() {
    let whole = packed(b"warp", 6);
    let failure = |stream: &[u8]| unpacked(stream, 3).unwrap_err();
    for zeros in [1, 2, 9, 10_000] {
        let padded = [&whole[..], &whole, &vec![0; zeros]].concat();
        for length in [1, 7, padded.len()] {
            assert_eq!(unpacked(&padded, length).unwrap(), b"warpwarp");
        }
    }
    let at = whole.len() as u64;
    let behind = "bytes behind the last member that are no member";
    for (rest, place) in [(&b"x"[..], 0), (b"\0\0x", 2), (b"\x1fx", 1), (b"garbage that is long", 0)] {
        let failed = failure(&[&whole[..], rest].concat());
        assert_eq!((failed.cause().to_string(), failed.offset()), (behind.to_string(), at + place));
    }
    // No padding comes before a member, or in place of one.
    let failed = failure(&[&whole[..], b"\0", &whole].concat());
    assert_eq!(failed.cause().to_string(), behind);
    for (stream, place) in [(&b"\0\0\0"[..], 0), (b"a", 0), (b"ab", 0), (b"\x1fa", 1), (b"no gzip at all", 0)]
    {
        let failed = failure(stream);
        let told = (failed.cause().to_string(), failed.offset());
        assert_eq!(told, ("the stream is not in gzip format".to_string(), place));
    }
    for length in 1..whole.len() {
        let failed = failure(&whole[..length]);
        assert_eq!(failed.cause().to_string(), "the stream ends within a member", "{length} bytes");
    }
}

#[test]
fn the_tool_gzip_reads_and_writes_the_same() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    let run = |argument: &str, input: &[u8]| {
        let mut child = Command::new("gzip")
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("gzip is part of every Debian system");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        assert!(child.wait().unwrap().success());
        output
    };
    let text: Vec<u8> = (0..20_000u32).flat_map(|n| format!("warp {}\n", n % 7919).into_bytes()).collect();
    assert_eq!((from_chunks(text.chunks(777)) >> gzip(6)).collect(), packed(&text, 6));
    assert_eq!(run("-dc", &packed(&text, 9)), text);
    assert_eq!(unpacked(&run("-c", &text), 100).unwrap(), text);
    let padded = [run("-c", &text), vec![0; 512]].concat();
    assert_eq!((run("-dc", &padded), unpacked(&padded, 100).unwrap()), (text.clone(), text));
}
