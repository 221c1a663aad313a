//! Stages that work on parts of a stream, against the same stages on the whole stream.

use proptest::prelude::*;
use selvedge_pipeline::any;
use selvedge_pipeline::*;

/// Two workers take the blocks, each with stages of its own, and the parts are joined in order.
fn by_parts<B, T>(
    blocks: &[Vec<u8>],
    worker_of: &[bool],
    stages: Transducer<u8, B, T>,
) -> Result<B::Store, StageError>
where
    B: Item + ?Sized,
    T: PartByPart<u8, B>,
{
    let stages = stages.into_stage();
    let mut workers = [stages.clone(), stages.clone()];
    let mut joiner = PartJoiner::new(stages);
    let mut all = B::Store::default();
    let mut part = Part::default();
    let mut place = StreamPlace::default();
    for (index, block) in blocks.iter().enumerate() {
        let worker = &mut workers[usize::from(worker_of[index % worker_of.len()])];
        part.cut(worker, block);
        part.make(worker, block, place);
        place.items += part.ended().items;
        place.elements += part.ended().elements;
        joiner.join(&part, &mut all)?;
        all.keep_all(part.made().all());
        if let Some(failure) = part.failure() {
            return Err(failure.clone());
        }
    }
    joiner.end(&mut all)?;
    Ok(all)
}

/// Bytes of lines: blank ones, with `\r\n`, and with what the stages look for.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"abab\n\n\r7".to_vec()), 0..80)
}

fn cut(text: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let (mut blocks, mut rest) = (Vec::new(), text);
    for length in lengths.iter().cycle() {
        let (block, after) = rest.split_at((*length).min(rest.len()));
        blocks.push(block.to_vec());
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    blocks
}

proptest! {
    #[test]
    fn parts_are_joined_to_the_whole(
        text in text(),
        at in prop::collection::vec(1usize..20, 1..6),
        worker_of in prop::collection::vec(prop::bool::ANY, 1..6),
        whole in prop::bool::ANY,
    ) {
        let blocks = cut(&text, &at);
        let lines = || group_by(if whole { whole_line() } else { line() });
        let number = |n: u64, list: &mut Vec<u8>| list.extend_from_slice(format!("{n}-").as_bytes());
        let short = || satisfies(|line: &[u8]| line.len() < 3);
        let no_seven = |line: &[u8]| if line.contains(&b'7') { Err("a seven") } else { Ok(line.len()) };
        macro_rules! same {
            ($($stages:expr),+ $(,)?) => {$({
                let slow = (from_chunks([&text]) >> lines() >> $stages).try_collect();
                let fast = by_parts(&blocks, &worker_of, lines() >> $stages);
                prop_assert_eq!(fast.map_err(|failure| failure.to_string()), slow.map_err(|failure| failure.to_string()));
            })+};
        }
        same!(
            id(),
            select(any(substring(b"ab"))) >> concatenate(),
            if_then_else(any(substring(b"ab")), prepend(b">"), suppress()) >> append(b"<"),
            wherever(rewrite(|line: &[u8], list| list.extend(line.iter().rev())), !short()),
            trim_end(b"\r") >> filter(|line: &[u8]| !line.is_empty()) >> lift121(|line: &[u8]| line.len()),
            lift_stateless(|line: &[u8]| vec![line.len(); line.len() % 3]),
            select_numbered(any(substring(b"ab")), number) >> concatenate(),
            select_numbered(short(), number),
            trim_end(b"\r") >> select_numbered(!short(), number),
            try_lift121(no_seven).named("no seven"),
            id() >> try_lift121(no_seven) >> lift121(|length: &usize| length * 2),
        );
    }
}
