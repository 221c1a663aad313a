//! Frames of Zstandard: what comes out, at every cut, and what fails where.

use proptest::prelude::{any as any_of, prop, prop_assert_eq, proptest};
use selvedge_pipeline::zstd::{unzstd, zstd};
use selvedge_pipeline::{StageError, from_chunks};

fn packed(text: &[u8], level: u32) -> Vec<u8> {
    (from_chunks([text]) >> zstd(level)).collect()
}

/// What comes out of a stream that is cut into pieces of `length` bytes.
fn unpacked(packed: &[u8], length: usize) -> Result<Vec<u8>, StageError> {
    (from_chunks(packed.chunks(length.max(1))) >> unzstd()).try_collect()
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked(
        text in prop::collection::vec(any_of::<u8>(), 0..300),
        level in 1u32..10,
        length in 1usize..40,
    ) {
        let whole = packed(&text, level);
        prop_assert_eq!(unpacked(&whole, length).unwrap(), text.clone());
        // The cut of the input does not show.
        prop_assert_eq!((from_chunks(text.chunks(length)) >> zstd(level)).collect(), whole.clone());
        // Frames follow each other.
        let two = [whole.clone(), whole].concat();
        prop_assert_eq!(unpacked(&two, length).unwrap(), [text.clone(), text].concat());
    }
}

#[test]
fn a_mistake_in_the_content_is_noticed_at_the_same_place_at_every_cut() {
    let whole = packed(&b"warp and weft ".repeat(20), 6);
    assert_eq!(unpacked(&[], 1).unwrap(), b"");
    for length in 1..whole.len() {
        assert!(unpacked(&whole[..length], 7).is_err(), "{length} of {} bytes", whole.len());
    }
    // The head of the frame has fields that say nothing of the content.
    for at in 10..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x10;
        assert!(unpacked(&wrong, 5).is_err(), "byte {at}");
    }
    // A long stream with a wrong byte in its middle.
    let text: Vec<u8> = (0..40_000u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let mut wrong = packed(&text, 1);
    let middle = wrong.len() / 2;
    wrong.splice(middle.., b"no frame".repeat(2000));
    let places = [1, 777, 5000, usize::MAX].map(|cut| unpacked(&wrong, cut).unwrap_err().offset());
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn much_comes_out_of_little() {
    let zeros = vec![0; 3_000_000];
    let small = packed(&zeros, 3);
    assert!(small.len() < 1000, "{} bytes", small.len());
    assert_eq!(unpacked(&small, 3).unwrap(), zeros);
}

#[test]
fn a_frame_may_end_where_a_block_is_full() {
    for length in [1, 2, 3].map(|blocks| blocks * (128 << 10)) {
        for text in [length - 1, length, length + 1].map(|length| vec![0; length]) {
            let whole = packed(&text, 3);
            for cut in [1, usize::MAX] {
                assert_eq!(unpacked(&whole, cut).unwrap(), text, "{} bytes", text.len());
                let two = [whole.clone(), whole.clone()].concat();
                assert_eq!(unpacked(&two, cut).unwrap(), [&text[..], &text].concat());
            }
            assert!(unpacked(&whole[..whole.len() - 1], usize::MAX).is_err());
        }
    }
}

#[test]
fn the_tool_zstd_reads_and_writes_the_same() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    let run = |argument: &str, input: &[u8]| {
        let spawned = Command::new("zstd").arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        // The tool is not part of every Debian system.
        let mut child = spawned.ok()?;
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        writer.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success());
        Some(output)
    };
    let text: Vec<u8> = (0..20_000u32).flat_map(|n| format!("warp {}\n", n % 7919).into_bytes()).collect();
    assert_eq!((from_chunks(text.chunks(777)) >> zstd(6)).collect(), packed(&text, 6));
    if let Some(out) = run("-dc", &packed(&text, 9)) {
        assert_eq!(out, text);
        assert_eq!(unpacked(&run("-c", &text).unwrap(), 100).unwrap(), text);
    }
}
