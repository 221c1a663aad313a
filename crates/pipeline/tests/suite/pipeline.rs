//! The paper's pipelines, branches and joins, against loops over vectors.

use proptest::prelude::*;
use selvedge_pipeline::any;
use selvedge_pipeline::*;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The text in chunks of the given lengths, then the rest.
fn cut(text: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let (mut chunks, mut rest) = (Vec::new(), text);
    for length in lengths {
        let (chunk, after) = rest.split_at((*length).min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks.push(rest.to_vec());
    chunks
}

fn contains(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|window| window == needle)
}

/// Few letters and many line ends, so that needles lie across lines, and lines are blank.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..60)
}

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..9usize, 0..12)
}

fn needle() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 1..4)
}

/// A transducer with a state and a flush: each item with its number, and the count at the end.
fn counting(tag: u32) -> Transducer<u8, u32, impl Transduce<u8, u32> + Clone> {
    let step = move |count: &mut u32, item: &u8| {
        *count += 1;
        [tag + *count * 100 + u32::from(*item)]
    };
    lift_stateful(step, move |count: &mut u32| [tag + 50 + *count], 0)
}

fn counted(tag: u32, items: &[u8]) -> Vec<u32> {
    let item = |(index, item): (usize, &u8)| tag + (index as u32 + 1) * 100 + u32::from(*item);
    items.iter().enumerate().map(item).chain([tag + 50 + items.len() as u32]).collect()
}

proptest! {
    #[test]
    fn grep_finds_the_lines_that_hold_the_needle(text in text(), needle in needle(), at in lengths()) {
        let slow: Vec<u8> = text
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| contains(line, &needle))
            .flatten().copied().collect();
        let grep = group_by(whole_line()) >> select(any(substring(&needle))) >> concatenate();
        prop_assert_eq!((from_chunks(cut(&text, &at)) >> grep).collect(), slow);
        // The same by a splitter that cannot search, and by sections instead of lists.
        let slowly = group_by(whole_line()) >> select(any(!!substring(&needle))) >> concatenate();
        let sections = select(having(whole_line(), substring(&needle)));
        let slow = (from_chunks(cut(&text, &at)) >> slowly).collect();
        prop_assert_eq!((from_chunks(cut(&text, &at)) >> sections).collect(), slow);
    }

    #[test]
    fn grep_without_line_ends_finds_no_needle_across_lines(text in text(), needle in needle(), at in lengths()) {
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let slow: Vec<_> = lines.iter().filter(|line| contains(line, &needle)).copied().collect();
        let grep = group_by(line()) >> if_then_else(any(substring(&needle)), id(), suppress());
        let found = (from_chunks(cut(&text, &at)) >> grep).collect();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), slow);
        let slow: Vec<_> = lines.iter().filter(|line| line.iter().all(|byte| *byte == b'a')).copied().collect();
        let all_a = group_by(line()) >> select(all(satisfies(|byte: &u8| *byte == b'a')));
        let found = (from_chunks(cut(&text, &at)) >> all_a).collect();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), slow);
    }

    #[test]
    fn numbers_count_blank_lines(text in text(), needle in needle(), at in lengths()) {
        let slow: Vec<u8> = text
            .split_inclusive(|byte| *byte == b'\n')
            .enumerate()
            .map(|(index, line)| [format!("{}:", index + 1).as_bytes(), line].concat())
            .filter(|line| contains(line, &needle))
            .flatten().collect();
        let number = |n: &u64, text: &mut Vec<u8>| text.extend_from_slice((n + 1).to_string().as_bytes());
        let colons = repeat(()) >> rewrite(|_: &(), text: &mut Vec<u8>| text.push(b':'));
        let numbers = join_generators(naturals() >> rewrite(number), colons, join::zip_lists());
        let lines = from_chunks(cut(&text, &at)) >> group_by(whole_line());
        let numbered = join_generators(numbers, lines, join::zip_lists())
            >> if_then_else(any(substring(&needle)), id(), suppress())
            >> concatenate();
        prop_assert_eq!(numbered.collect(), slow);
        let slow: Vec<u8> = text
            .split_inclusive(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| contains(line, &needle))
            .flat_map(|(index, line)| [format!("{}:", index + 1).as_bytes(), line].concat())
            .collect();
        let number = |n: u64, text: &mut Vec<u8>| text.extend_from_slice(format!("{n}:").as_bytes());
        let numbered = group_by(whole_line()) >> select_numbered(any(substring(&needle)), number) >> concatenate();
        prop_assert_eq!((from_chunks(cut(&text, &at)) >> numbered).collect(), slow);
        let lines = from_chunks(cut(&text, &at)) >> group_by(line()) >> count();
        prop_assert_eq!(lines.run(), text.split_inclusive(|byte| *byte == b'\n').count() as u64);
    }

    #[test]
    fn branches_are_merged_in_order(items in prop::collection::vec(0..8u8, 0..30), at in lengths()) {
        let odd = |item: &u8| item % 2 == 1;
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        let mut slow = Vec::new();
        for item in &items {
            let (side, tag) = if odd(item) { (&mut yes, 10_000) } else { (&mut no, 20_000) };
            side.push(*item);
            slow.push(counted(tag, side)[side.len() - 1]);
        }
        slow.extend([10_050 + yes.len() as u32, 20_050 + no.len() as u32]);
        let branch = if_then_else(satisfies(odd), counting(10_000), counting(20_000));
        prop_assert_eq!((from_chunks(cut(&items, &at)) >> branch).collect(), slow);
        let runs = items.chunk_by(|a, b| odd(a) == odd(b));
        let slow: Vec<u32> =
            runs.flat_map(|run| counted(if odd(&run[0]) { 10_000 } else { 20_000 }, run)).collect();
        let each = foreach(satisfies(odd), counting(10_000), counting(20_000));
        prop_assert_eq!((from_chunks(cut(&items, &at)) >> each).collect(), slow);
    }

    #[test]
    fn a_branch_that_is_finished_ends_alone(
        items in prop::collection::vec(0..8u8, 0..30), at in lengths(), yes in 0..4u64, no in 0..4u64,
    ) {
        let odd = |item: &u8| item % 2 == 1;
        let (mut left, mut slow) = ([no, yes], Vec::new());
        for item in &items {
            let left = &mut left[usize::from(odd(item))];
            if *left > 0 {
                *left -= 1;
                slow.push(*item);
            }
        }
        let branch = if_then_else(satisfies(odd), take(yes), take(no));
        prop_assert_eq!((from_chunks(cut(&items, &at)) >> branch).collect(), slow);
    }

    #[test]
    fn the_order_of_pipes_does_not_matter(items in prop::collection::vec(0..8u8, 0..30), at in lengths()) {
        let source = || from_chunks(cut(&items, &at));
        let narrow = || lift121(|n: &u32| (*n % 8) as u8);
        let left = ((source() >> counting(1)) >> narrow()) >> counting(2);
        let right = source() >> (counting(1) >> (narrow() >> counting(2)));
        let middle: Vec<u8> = counted(1, &items).iter().map(|n| (*n % 8) as u8).collect();
        let slow = counted(2, &middle);
        prop_assert_eq!(left.collect(), slow.clone());
        prop_assert_eq!(right.collect(), slow);
    }

    #[test]
    fn groups_of_everything_concatenate_to_the_stream(text in text(), at in lengths()) {
        let same = group_by(everything()) >> concatenate();
        prop_assert_eq!((from_chunks(cut(&text, &at)) >> same).collect(), text.clone());
        let lines = group_by(whole_line()) >> concatenate();
        prop_assert_eq!((from_chunks(cut(&text, &at)) >> lines).collect(), text);
    }

    #[test]
    fn a_loop_runs_until_all_is_false(items in prop::collection::vec(1..200u8, 0..30), at in lengths()) {
        let slow: Vec<u8> = items.iter().map(|item| item >> item.trailing_zeros()).collect();
        let odd_part = while_(lift121(|n: &u8| n / 2), satisfies(|n: &u8| n.is_multiple_of(2)));
        prop_assert_eq!((from_chunks(cut(&items, &at)) >> odd_part).collect(), slow);
    }

    #[test]
    fn joins_are_what_iterators_do(
        a in prop::collection::vec(0..8u8, 0..20), b in prop::collection::vec(0..8u8, 0..20), at in lengths(),
    ) {
        let (left, right) = (|| from_chunks(cut(&a, &at)), || from_chunks(cut(&b, &at)));
        let both = join_generators(left(), right(), join::concatenate()).collect();
        prop_assert_eq!(both, [a.clone(), b.clone()].concat());
        let flipped = join_generators(left(), right(), join::flip(join::concatenate())).collect();
        prop_assert_eq!(flipped, [b.clone(), a.clone()].concat());
        let sums = join_generators(left(), right(), join::zip_with(|a, b| a * 10 + b)).collect();
        let slow: Vec<u8> = a.iter().zip(&b).map(|(a, b)| a * 10 + b).collect();
        prop_assert_eq!(sums, slow);
        let (mut x, mut y, mut slow) = (a.iter(), b.iter(), Vec::new());
        loop {
            let pair = (x.next(), y.next());
            slow.extend(pair.0.into_iter().chain(pair.1));
            if pair == (None, None) {
                break;
            }
        }
        prop_assert_eq!(join_generators(left(), right(), join::interleave()).collect(), slow);
        let (mut sorted_a, mut sorted_b) = (a.clone(), b.clone());
        sorted_a.sort();
        sorted_b.sort();
        let (x, y) = (from_chunks(cut(&sorted_a, &at)), from_chunks(cut(&sorted_b, &at)));
        let mut slow = [sorted_a, sorted_b].concat();
        slow.sort();
        prop_assert_eq!(join_generators(x, y, join::merge(u8::cmp)).collect(), slow);
        let small = || filter(|n: &u8| *n < 4);
        let slow: Vec<u8> = a.iter().filter(|n| **n < 4).chain(&a).copied().collect();
        let twice = join_transduced(small(), id(), join::concatenate());
        prop_assert_eq!((left() >> twice).collect(), slow);
    }

    #[test]
    fn a_body_does_what_a_lifted_function_does(
        items in prop::collection::vec(0..8u8, 0..3000), at in prop::collection::vec(0..2000usize, 0..4), times in 0..3usize,
    ) {
        let body = transducer(move |mut io| async move {
            while let Some(item) = io.next().await {
                for _ in 0..times {
                    io.put(item).await;
                }
            }
            assert_eq!(io.next().await, None::<u8>, "the end is told again");
            io.put(99).await;
        });
        let slow: Vec<u8> = items.iter().flat_map(|item| vec![*item; times]).chain([99]).collect();
        prop_assert_eq!((from_chunks(cut(&items, &at)) >> body.clone()).collect(), slow.clone());
        let mut stepped = (body >> id()).step();
        let mut fast = Vec::new();
        for chunk in cut(&items, &at) {
            fast.extend_from_slice(stepped.put_chunk(&chunk));
        }
        fast.extend_from_slice(stepped.end());
        prop_assert_eq!(fast, slow);
    }
}

#[test]
fn a_finished_stage_ends_what_is_behind_it() {
    // The branch `yes` gets items one by one, the branch `no` one chunk.
    let ended = || take(2) >> counting(0) >> lift121(|n: &u32| *n);
    let slow = counted(0, &[1, 2]);
    let single = if_then_else(satisfies(|_: &u8| true), ended(), suppress());
    assert_eq!((from_chunks([[1, 2, 3]]) >> single).collect(), slow);
    let chunk = if_then_else(!everything(), suppress(), ended());
    assert_eq!((from_chunks([[1, 2, 3]]) >> chunk).collect(), slow);
    // In front of a consumer, and pulled.
    let sum = from_chunks([[1, 2, 3]]) >> (ended() >> fold(0, |sum: &mut u32, n: &u32| *sum += n));
    assert_eq!(sum.run(), slow.iter().sum());
    let mut pulled = (from_chunks([[1, 2, 3]]) >> ended()).pull();
    assert_eq!((pulled.next_chunk().map(<[u32]>::to_vec), pulled.next_chunk()), (Some(slow), None));
}

#[test]
fn a_failure_behind_the_end_of_a_finished_stage_is_none() {
    // `from_iter` hands over its whole list at once, in which the failure lies behind the end.
    let few = || try_lift121(|n: &u32| if *n > 4 { Err("more than four") } else { Ok(*n) });
    assert_eq!((from_iter(0..10) >> few() >> take(2) >> collect()).try_run().unwrap(), [0, 1]);
    assert_eq!((from_iter(0..10) >> (few() >> take(2)) >> collect()).try_run().unwrap(), [0, 1]);
    assert!((from_iter(0..10) >> (few() >> take(6)) >> collect()).try_run().is_err());
}

#[test]
fn what_is_upstream_of_a_finished_stage_is_not_called_again() {
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    let source = from_iter((0..).inspect(move |_| count.set(count.get() + 1)));
    let firsts = source >> lift121(|n: &u64| n * 2) >> take(3) >> counting_to_the_end();
    assert_eq!(firsts.collect(), [0, 2, 4, 1000]);
    assert_eq!(asked.get(), 3);
}

fn counting_to_the_end() -> Transducer<u64, u64, impl Transduce<u64, u64>> {
    lift_stateful(|(): &mut (), n: &u64| [*n], |()| [1000], ())
}

#[test]
fn the_generator_is_dropped_before_the_result() {
    struct Told(Rc<RefCell<Vec<&'static str>>>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.borrow_mut().push("dropped");
        }
    }
    let log = Rc::new(RefCell::new(Vec::new()));
    let told = Told(log.clone());
    let source = from_fn(1, move |block: &mut [u64]| {
        let _kept = &told;
        block[0] = 1;
        1
    });
    let first = (source >> head()).run();
    log.borrow_mut().push("result");
    assert_eq!((first, &log.borrow()[..]), (Some(1), &["dropped", "result"][..]));
}

#[test]
fn a_body_that_is_cut_is_dropped_where_it_stands() {
    let passed = Rc::new(Cell::new(0));
    let count = passed.clone();
    let body = transducer(move |mut io: Io<u64, u64>| {
        let count = count.clone();
        async move {
            loop {
                count.set(count.get() + 1);
                io.put(7).await;
            }
        }
    });
    assert_eq!((from_iter([1]) >> body >> take(2)).collect(), [7, 7]);
    assert!((2..=1025).contains(&passed.get()), "{}", passed.get());
}

#[test]
fn a_body_that_waits_for_something_else_panics() {
    let body = transducer(|_: Io<u8, u8>| std::future::pending());
    let run = catch_unwind(AssertUnwindSafe(|| (from_iter([1]) >> body).collect()));
    let message = *run.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("Transducer::step()"), "{message}");
}

#[test]
fn a_loop_without_end_is_told() {
    let endless = while_(id(), satisfies(|n: &u8| *n == 1));
    let mut fed = endless.step();
    assert_eq!(fed.put_chunk(&[0, 2, 1, 3]), [0, 2]);
    let failure = fed.failure().unwrap().to_string();
    assert_eq!(failure, "while_: item 1, offset 0: an item is still true after 256 rounds");
    let endless = select(nested_in(!everything::<u8>(), everything()));
    let run = catch_unwind(AssertUnwindSafe(|| (from_iter([1]) >> endless).collect()));
    let message = *run.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("256 rounds"), "{message}");
}

#[test]
fn a_holder_feeds_an_iteratee_until_it_is_finished() {
    let mut fed = (take(2) >> fold(0, |sum: &mut u64, n: &u64| *sum += n)).feed();
    assert_eq!(fed.put(&1), Continue(()));
    assert!(fed.put_chunk(&[2, 3]).is_break());
    assert!(fed.put(&4).is_break());
    assert_eq!(fed.end(), 3);
}

proptest! {
    #[test]
    fn lists_with_known_ends_are_searched_as_single_ones(text in text(), needle in needle(), at in lengths()) {
        // The join yields lists with known ends, and the same lists go on one by one.
        let numbered = || {
            let number = |n: &u64, text: &mut Vec<u8>| text.extend_from_slice(&b"ab"[..(*n % 3) as usize]);
            let lines = from_chunks(cut(&text, &at)) >> group_by(line());
            join_generators(naturals() >> rewrite(number), lines, join::zip_lists())
        };
        let single = (numbered() >> filter(|list: &[u8]| contains(list, &needle))).collect();
        prop_assert_eq!((numbered() >> select(any(substring(&needle)))).collect(), single.clone());
        let with = from_chunks(cut(&text, &at))
            >> group_by(line())
            >> join_with(
                naturals() >> rewrite(|n: &u64, text: &mut Vec<u8>| text.extend_from_slice(&b"ab"[..(*n % 3) as usize])),
                join::zip_lists(),
            )
            >> select(any(substring(&needle)));
        prop_assert_eq!(with.collect(), single);
    }
}

/// Bytes of which some are frequent and others are not, and line ends.
fn long_text() -> impl Strategy<Value = Vec<u8>> {
    let run = (prop::sample::select(b"aqz1:\n".to_vec()), prop::sample::select(vec![1usize, 2, 7, 300]));
    prop::collection::vec(run, 0..60)
        .prop_map(|runs| runs.iter().flat_map(|&(byte, length)| vec![byte; length]).collect())
}

proptest! {
    #[test]
    fn a_needle_is_found_in_long_texts(
        text in long_text(),
        needle in prop::collection::vec(prop::sample::select(b"aqz1".to_vec()), 1..4),
    ) {
        let mut slow = Vec::new();
        let mut from = 0;
        while let Some(at) = text[from..].windows(needle.len()).position(|window| window == needle) {
            slow.extend([&text[from..from + at], b"<>"].concat());
            from += at + needle.len();
        }
        slow.extend_from_slice(&text[from..]);
        let marked = foreach(substring(&needle), substitute(b"<>"), id());
        prop_assert_eq!((from_chunks([&text]) >> marked).collect(), slow);
    }

}

proptest! {
    // Each case runs some thirty pipelines.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_are_zipped_as_lists_one_by_one_are(
        text in long_text(),
        needle in prop::collection::vec(prop::sample::select(b"aqz1:".to_vec()), 1..4),
        first in prop::sample::select(vec![0, 1, 7, 95, 999]),
        at in prop::collection::vec(prop::sample::select(vec![0usize, 1, 2, 5, 40, 700]), 0..12),
        whole in prop::bool::ANY,
    ) {
        let chunks = || from_chunks(cut(&text, &at));
        let lines = || group_by(if whole { whole_line() } else { line() });
        let numbers = || naturals_from(first) >> id() >> decimal() >> append(b":");
        // A join that is flipped has no way for chunks.
        let one_by_one = || join::flip(join::flip(join::zip_lists()));
        let needle = || substring(&needle);
        macro_rules! same {
            ($($stages:expr),+ $(,)?) => {$({
                let slow = (chunks() >> lines() >> join_with(numbers(), one_by_one()) >> $stages).collect();
                let quick = (chunks() >> lines() >> join_with(numbers(), join::zip_lists()) >> $stages).collect();
                prop_assert_eq!(&quick, &slow);
                let joined = join_generators(numbers(), chunks() >> lines(), join::zip_lists());
                prop_assert_eq!((joined >> $stages).collect(), slow);
            })+};
        }
        same!(
            id(),
            select(any(needle())),
            select(!any(needle())),
            // Both splitters look at each chunk, so its lists are asked for twice.
            select(any(needle()) | any(substring(b"a"))),
            if_then_else(any(needle()), prepend(b">"), id()),
            select(any(needle())) >> take(2),
            take(3),
            filter(|list: &[u8]| list.len() > 4) >> prepend(b"<"),
        );
        let slow = (chunks() >> lines() >> join_with(numbers(), one_by_one()) >> count()).run();
        prop_assert_eq!((chunks() >> lines() >> join_with(numbers(), join::zip_lists()) >> count()).run(), slow);
        // Two joins, one on the other.
        macro_rules! twice {
            ($zip:expr) => {{
                let right = naturals_from(first) >> decimal() >> append(b"-");
                let left = join_generators(naturals() >> decimal(), right, $zip);
                (chunks() >> lines() >> join_with(left, $zip) >> concatenate()).collect()
            }};
        }
        prop_assert_eq!(twice!(join::zip_lists()), twice!(one_by_one()));
    }
}

#[test]
fn an_iterator_has_the_items_of_its_generator() {
    let thirds = || from_iter(0..5000u32) >> filter(|n: &u32| n.is_multiple_of(3));
    assert_eq!(thirds().into_iter().collect::<Vec<_>>(), thirds().collect());
    // It runs no further than it is asked, by some items.
    let made = Cell::new(0);
    let counted = from_iter((0..1_000_000).inspect(|_| made.set(made.get() + 1)));
    assert_eq!(counted.into_iter().nth(9), Some(9));
    assert!(made.get() <= 2048, "{} items made", made.get());
    // What came before a failure comes out.
    let mut failing = (from_iter(["1", "2", "x", "4"])
        >> try_lift121(|s: &&str| s.parse::<u32>()).named("number"))
    .into_iter();
    assert_eq!((failing.next(), failing.next()), (Some(1), Some(2)));
    let run = catch_unwind(AssertUnwindSafe(|| failing.next()));
    let message = *run.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("number: item 3"), "{message}");
    let mut ended = from_iter([7]).into_iter();
    assert_eq!((ended.next(), ended.next(), ended.next()), (Some(7), None, None));
}

#[test]
fn numbers_are_counted_in_their_digits() {
    let numbers = [0, 1, 2, 8, 9, 10, 98, 99, 100, 101, 7, 8, u64::MAX - 1, u64::MAX, 0, 1];
    let texts = (from_iter(numbers) >> decimal()).collect();
    let texts: Vec<String> = texts.iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
    assert_eq!(texts, numbers.map(|n| n.to_string()));
}

/// A sink that keeps nothing gets a joined list too, and each list once.
#[test]
fn a_joined_list_reaches_a_stage_that_takes_lists_one_by_one() {
    let joined =
        || join_generators(from_iter(1..4) >> decimal(), repeat(()) >> rewrite(colon), join::zip_lists());
    fn colon(_: &(), text: &mut Vec<u8>) {
        text.push(b':');
    }
    let mut seen = Vec::new();
    joined().for_each(|list: &[u8]| seen.push(list.to_vec()));
    assert_eq!(seen, [b"1:", b"2:", b"3:"]);
    let framed = (joined() >> prepend(b"<") >> append(b">") >> concatenate()).collect();
    assert_eq!(framed, b"<1:><2:><3:>");
}
