//! Each combinator of splitters, against what it says of vectors of sections.

use proptest::prelude::*;
use selvedge_pipeline::Sections as Parts;
use selvedge_pipeline::*;
use std::collections::VecDeque;
use std::ops::ControlFlow::Continue;

pub(crate) type Sections = Vec<(bool, Vec<u8>)>;

/// A random splitter: the class of an item (its three low bits) decides on its verdict, on whether
/// a section begins with it, and on whether an empty section lies before it.
#[derive(Debug, Clone)]
struct Script {
    verdict: [bool; 8],
    cut: [bool; 8],
    empty: [Option<bool>; 8],
    /// An empty section at the end.
    last: Option<bool>,
    /// How many items are held back.
    lag: usize,
    /// Items are passed on in chunks, with empty chunks between them.
    chunks: bool,
}

impl Script {
    fn sections(&self, input: &[u8]) -> Sections {
        let mut sections: Sections = Vec::new();
        let mut open = None;
        for item in input {
            let class = usize::from(item % 8);
            if self.cut[class] || open != Some(self.verdict[class]) {
                sections.extend(self.empty[class].map(|verdict| (verdict, vec![])));
                sections.push((self.verdict[class], vec![]));
                open = Some(self.verdict[class]);
            }
            sections.last_mut().unwrap().1.push(*item);
        }
        sections.extend(self.last.map(|verdict| (verdict, vec![])));
        sections
    }

    fn splitter(&self) -> Splitter<u8, Scripted> {
        Splitter::new(Scripted { script: self.clone(), held: VecDeque::new(), open: None })
    }
}

#[derive(Debug, Clone)]
struct Scripted {
    script: Script,
    held: VecDeque<u8>,
    open: Option<bool>,
}

impl Scripted {
    fn release(&mut self, keep: usize, out: &mut impl Parts<u8>) -> Flow {
        while self.held.len() > keep {
            let item = self.held.pop_front().unwrap();
            let class = usize::from(item % 8);
            let verdict = self.script.verdict[class];
            if self.script.cut[class] || self.open != Some(verdict) {
                if let Some(before) = self.open.replace(verdict) {
                    out.close(before)?;
                }
                if let Some(empty) = self.script.empty[class] {
                    out.close(empty)?;
                }
            }
            if self.script.chunks {
                out.part_chunk(!verdict, &[])?;
                out.part_chunk(verdict, &[item])?;
            } else {
                out.part(verdict, &item)?;
            }
        }
        Continue(())
    }
}

impl Split<u8> for Scripted {
    fn put<P: Parts<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.held.push_back(*item);
        self.release(self.script.lag, out)
    }

    fn end<P: Parts<u8>>(&mut self, out: &mut P) -> Flow {
        self.release(0, out)?;
        if let Some(open) = self.open {
            out.close(open)?;
        }
        self.script.last.map_or(Continue(()), |verdict| out.close(verdict))
    }
}

/// Gathers the sections.
#[derive(Default)]
struct Gather {
    sections: Sections,
    open: Option<(bool, Vec<u8>)>,
}

impl Parts<u8> for Gather {
    fn part(&mut self, verdict: bool, item: &u8) -> Flow {
        let open = self.open.get_or_insert((verdict, vec![]));
        assert_eq!(open.0, verdict, "a section has one verdict");
        open.1.push(*item);
        Continue(())
    }

    fn close(&mut self, verdict: bool) -> Flow {
        let section = self.open.take().unwrap_or((verdict, vec![]));
        assert_eq!(section.0, verdict, "a section has one verdict");
        self.sections.push(section);
        Continue(())
    }
}

/// The sections of `splitter`, which is fed in chunks of the given lengths: 0 stands for an item by
/// itself.
pub(crate) fn run<S: Split<u8>>(splitter: Splitter<u8, S>, input: &[u8], chunks: &[usize]) -> Sections {
    let (mut stage, mut out, mut rest) = (splitter.into_stage(), Gather::default(), input);
    for chunk in chunks.iter().chain(std::iter::repeat(&3)) {
        if rest.is_empty() {
            break;
        }
        let (next, after) = rest.split_at((*chunk).clamp(1, rest.len()));
        rest = after;
        let flow = match chunk {
            0 => stage.put(&next[0], &mut out),
            _ => stage.put_chunk(next, &mut out),
        };
        assert!(flow.is_continue());
    }
    assert!(stage.end(&mut out).is_continue());
    assert!(out.open.is_none(), "the last section is closed");
    out.sections
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Mark {
    verdict: bool,
    cut: bool,
    starts: usize,
}

/// What sections say of each item.
fn marks(sections: &Sections) -> Vec<Mark> {
    let (mut marks, mut starts) = (Vec::new(), 0);
    for (verdict, items) in sections {
        starts += usize::from(*verdict);
        for index in 0..items.len() {
            marks.push(Mark { verdict: *verdict, cut: index == 0, starts: std::mem::take(&mut starts) });
        }
    }
    marks
}

/// The sections of items with these verdicts, cut where the second says so and where the verdict
/// changes.
fn cut(input: &[u8], said: &[(bool, bool)]) -> Sections {
    let mut sections: Sections = Vec::new();
    for (item, (verdict, cut)) in input.iter().zip(said) {
        if *cut || sections.last().is_none_or(|last| last.0 != *verdict) {
            sections.push((*verdict, vec![]));
        }
        sections.last_mut().unwrap().1.push(*item);
    }
    sections
}

fn zip(a: &Script, b: &Script, input: &[u8], f: impl Fn(bool, bool) -> bool) -> Sections {
    let (a, b) = (marks(&a.sections(input)), marks(&b.sections(input)));
    let said: Vec<_> = a.iter().zip(&b).map(|(a, b)| (f(a.verdict, b.verdict), a.cut || b.cut)).collect();
    cut(input, &said)
}

/// The items that the first sections give the verdict `flows` are decided by `second`, which sees
/// no others.
fn flow(first: Sections, second: impl Fn(&[u8]) -> Sections, flows: bool) -> Sections {
    let items: Vec<u8> = first.iter().flat_map(|section| section.1.clone()).collect();
    let first = marks(&first);
    let flowing = |(item, mark): (&u8, &Mark)| (mark.verdict == flows).then_some(*item);
    let flowing: Vec<u8> = items.iter().zip(&first).filter_map(flowing).collect();
    let mut second = marks(&second(&flowing)).into_iter();
    let decide = |mark: &Mark| {
        if mark.verdict != flows {
            return (mark.verdict, mark.cut);
        }
        let second = second.next().unwrap();
        (second.verdict, second.cut || mark.cut)
    };
    let said: Vec<_> = first.iter().map(decide).collect();
    cut(&items, &said)
}

/// The items of sections in a row.
fn together(sections: &[(bool, Vec<u8>)]) -> Vec<u8> {
    sections.iter().flat_map(|section| section.1.clone()).collect()
}

fn all_false(sections: &[(bool, Vec<u8>)]) -> Sections {
    sections.iter().map(|(_, part)| (false, part.clone())).collect()
}

/// `second` sees what lies behind each section that `first` calls true and that begins behind the
/// match before.
fn followed(first: &Sections, second: impl Fn(&[u8]) -> Sections, input: &[u8]) -> Sections {
    let (mut sections, mut begin, mut over) = (Sections::new(), 0, 0);
    for (verdict, part) in first {
        let end = begin + part.len();
        if *verdict
            && begin >= over
            && let Some((true, rest)) = second(&input[end..]).into_iter().next()
        {
            if begin > over {
                sections.push((false, input[over..begin].to_vec()));
            }
            over = end + rest.len();
            sections.push((true, input[begin..over].to_vec()));
        }
        begin = end;
    }
    if over < input.len() {
        sections.push((false, input[over..].to_vec()));
    }
    sections
}

/// The items that `b` calls true, but never the first one: each round of a loop loses an item.
fn all_but_first(b: &Script, input: &[u8]) -> Sections {
    let marks = marks(&b.sections(input));
    let said: Vec<_> =
        marks.iter().enumerate().map(|(index, mark)| (mark.verdict && index > 0, true)).collect();
    cut(input, &said)
}

fn nested(a: &Script, b: &Script, input: &[u8]) -> Sections {
    if input.is_empty() {
        return vec![];
    }
    flow(a.sections(input), |rest| flow(all_but_first(b, rest), |inner| nested(a, b, inner), true), false)
}

fn script() -> impl Strategy<Value = Script> {
    let empty = prop::array::uniform8(prop::option::weighted(0.3, any_bool()));
    (any_array(), any_array(), empty, prop::option::of(any_bool()), 0..3usize, any_bool()).prop_map(
        |(verdict, cut, empty, last, lag, chunks)| Script { verdict, cut, empty, last, lag, chunks },
    )
}

fn any_bool() -> impl Strategy<Value = bool> {
    proptest::bool::ANY
}

fn any_array() -> impl Strategy<Value = [bool; 8]> {
    prop::array::uniform8(any_bool())
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..8u8, 0..24)
}

fn chunks() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..9usize, 0..12)
}

proptest! {
    #[test]
    fn the_random_splitter_says_what_its_script_says(a in script(), items in input(), at in chunks()) {
        prop_assert_eq!(run(a.splitter(), &items, &at), a.sections(&items));
    }

    #[test]
    fn zipped_logic_decides_item_by_item(a in script(), b in script(), items in input(), at in chunks()) {
        let not: Sections = a.sections(&items).into_iter().map(|(verdict, part)| (!verdict, part)).collect();
        prop_assert_eq!(run(!a.splitter(), &items, &at), not);
        prop_assert_eq!(run(a.splitter() & b.splitter(), &items, &at), zip(&a, &b, &items, |a, b| a && b));
        prop_assert_eq!(run(a.splitter() | b.splitter(), &items, &at), zip(&a, &b, &items, |a, b| a || b));
    }

    #[test]
    fn flow_logic_feeds_one_side(a in script(), b in script(), items in input(), at in chunks()) {
        prop_assert_eq!(run(a.splitter().and_then(b.splitter()), &items, &at), flow(a.sections(&items), |rest| b.sections(rest), true));
        prop_assert_eq!(run(a.splitter().or_else(b.splitter()), &items, &at), flow(a.sections(&items), |rest| b.sections(rest), false));
    }

    #[test]
    fn each_section_of_a_loop_loops_by_itself(a in script(), items in input(), at in chunks()) {
        fn looped(a: &Script, items: &[u8]) -> Vec<u8> {
            let parts = a.sections(items).into_iter().map(|(verdict, part)| match (verdict, part.split_first()) {
                (true, Some((_, rest))) => looped(a, rest),
                _ => part,
            });
            parts.collect::<Vec<_>>().concat()
        }
        let mut fed = while_each(skip(1), a.splitter()).step();
        let mut made = Vec::new();
        let mut from = 0;
        for length in at.iter().copied().chain([items.len()]) {
            let to = items.len().min(from + length);
            made.extend_from_slice(fed.put_chunk(&items[from..to]));
            from = to;
        }
        made.extend_from_slice(fed.end());
        prop_assert_eq!(made, looped(&a, &items));
    }

    #[test]
    fn the_laws_of_logic_hold(a in script(), b in script(), c in script(), items in input(), at in chunks()) {
        let (a, b, c) = (|| a.splitter(), || b.splitter(), || c.splitter());
        prop_assert_eq!(run(!!a(), &items, &at), run(a(), &items, &at));
        prop_assert_eq!(run(!(a() & b()), &items, &at), run(!a() | !b(), &items, &at));
        prop_assert_eq!(run(!(a() | b()), &items, &at), run(!a() & !b(), &items, &at));
        prop_assert_eq!(run(!a().and_then(b()), &items, &at), run((!a()).or_else(!b()), &items, &at));
        prop_assert_eq!(run(a() & b(), &items, &at), run(b() & a(), &items, &at));
        prop_assert_eq!(run((a() & b()) & c(), &items, &at), run(a() & (b() & c()), &items, &at));
        prop_assert_eq!(
            run(a().and_then(b()).and_then(c()), &items, &at),
            run(a().and_then(b().and_then(c())), &items, &at)
        );
    }

    #[test]
    fn a_place_chooses_sections(a in script(), items in input(), at in chunks()) {
        let slow = a.sections(&items);
        let keep = |place: Option<usize>| -> Sections {
            let keep = |(index, (verdict, part))| (verdict && Some(index) == place, part);
            slow.clone().into_iter().enumerate().map(keep).collect()
        };
        prop_assert_eq!(run(first(a.splitter()), &items, &at), keep(slow.iter().position(|section| section.0)));
        prop_assert_eq!(run(last(a.splitter()), &items, &at), keep(slow.iter().rposition(|section| section.0)));
        prop_assert_eq!(run(prefix(a.splitter()), &items, &at), keep(Some(0)));
        prop_assert_eq!(run(suffix(a.splitter()), &items, &at), keep(slow.len().checked_sub(1)));
    }

    #[test]
    fn every_second_section_is_even(a in script(), items in input(), at in chunks()) {
        let mut is_even = true;
        let slow: Sections = a.sections(&items).into_iter().map(|(verdict, part)| {
            is_even ^= verdict;
            (verdict && is_even, part)
        }).collect();
        prop_assert_eq!(run(even(a.splitter()), &items, &at), slow);
    }

    #[test]
    fn a_true_section_takes_what_lies_around_it(a in script(), items in input(), at in chunks()) {
        let slow = a.sections(&items);
        let upto = match slow.iter().position(|section| section.0) {
            Some(at) => [vec![(true, together(&slow[..=at]))], all_false(&slow[at + 1..])].concat(),
            None => slow.clone(),
        };
        prop_assert_eq!(run(upto_first(a.splitter()), &items, &at), upto);
        let after = match slow.iter().rposition(|section| section.0) {
            Some(at) => [all_false(&slow[..at]), vec![(true, together(&slow[at..]))]].concat(),
            None => slow.clone(),
        };
        prop_assert_eq!(run(last_and_after(a.splitter()), &items, &at), after);
    }

    #[test]
    fn a_section_is_followed_by_the_first_one_behind_it(a in script(), b in script(), items in input(), at in chunks()) {
        let slow = followed(&a.sections(&items), |rest| b.sections(rest), &items);
        prop_assert_eq!(run(followed_by(a.splitter(), b.splitter()), &items, &at), slow);
    }

    #[test]
    fn a_splitter_that_decides_late_may_follow(
        a in script(), b in script(), c in script(), items in input(), at in chunks(),
    ) {
        let last_of = |rest: &[u8]| run(last(b.splitter()), rest, &[]);
        let slow = followed(&a.sections(&items), last_of, &items);
        prop_assert_eq!(run(followed_by(a.splitter(), last(b.splitter())), &items, &at), slow);
        let after = |rest: &[u8]| followed(&b.sections(rest), |rest| c.sections(rest), rest);
        let slow = followed(&a.sections(&items), after, &items);
        let both = followed_by(a.splitter(), followed_by(b.splitter(), c.splitter()));
        prop_assert_eq!(run(both, &items, &at), slow);
    }

    #[test]
    fn the_laws_of_places_hold(a in script(), items in input(), at in chunks()) {
        let (a, none) = (|| a.splitter(), || !everything());
        let marked = |sections: &Sections| -> Vec<bool> { marks(sections).iter().map(|mark| mark.verdict).collect() };
        let some = run(a(), &items, &at).iter().any(|section| section.0);
        // The first of the even sections is the second true one. Every true section is even or odd.
        let rest = a() & !first(a());
        let odd = a() & !even(a());
        prop_assert_eq!(marked(&run(even(a()) | odd, &items, &at)), marked(&run(a(), &items, &at)));
        prop_assert_eq!(marked(&run(rest & first(even(a())), &items, &at)), marked(&run(first(even(a())), &items, &at)));
        // The streaming form of `upto_first`, which is true of all if there is no true section.
        let streamed = !between(end_of(first(a())), none());
        if some {
            prop_assert_eq!(marked(&run(upto_first(a()), &items, &at)), marked(&run(streamed, &items, &at)));
            let begin = between(start_of(last(a())), none());
            prop_assert_eq!(marked(&run(last_and_after(a()), &items, &at)), marked(&run(begin, &items, &at)));
        } else {
            prop_assert!(marked(&run(streamed, &items, &at)).iter().all(|verdict| *verdict));
            prop_assert_eq!(run(upto_first(a()), &items, &at), run(a(), &items, &at));
            prop_assert_eq!(run(last_and_after(a()), &items, &at), run(a(), &items, &at));
        }
        prop_assert_eq!(run(upto_first(upto_first(a())), &items, &at), run(upto_first(a()), &items, &at));
        prop_assert_eq!(run(last_and_after(last_and_after(a())), &items, &at), run(last_and_after(a()), &items, &at));
        prop_assert_eq!(run(last_and_after(last(a())), &items, &at), run(last_and_after(a()), &items, &at));
        prop_assert_eq!(run(upto_first(first(a())), &items, &at), run(upto_first(a()), &items, &at));
        // Of what follows only the first section matters. Without true sections nothing is true.
        prop_assert_eq!(run(followed_by(a(), prefix(a())), &items, &at), run(followed_by(a(), a()), &items, &at));
        let nothing = cut(&items, &vec![(false, false); items.len()]);
        prop_assert_eq!(run(followed_by(a(), none()), &items, &at), nothing.clone());
        prop_assert_eq!(run(followed_by(none(), a()), &items, &at), nothing);
    }

    #[test]
    fn texts_in_a_row_are_one_text(
        needles in prop::array::uniform3(prop::collection::vec(0..2u8, 1..3)), items in prop::collection::vec(0..2u8, 0..30),
        at in chunks(),
    ) {
        // Of texts that do not overlap themselves each occurrence is a candidate.
        let [a, b, c] = needles;
        prop_assume!([&a, &b].iter().all(|text| text.len() == 1 || text[0] != text[1]));
        let text = |text: &[u8]| substring(text);
        let left = followed_by(followed_by(text(&a), text(&b)), text(&c));
        let right = followed_by(text(&a), followed_by(text(&b), text(&c)));
        // The right one finds the whole text, and the left one finds nothing else.
        let whole = [a.clone(), b.clone(), c.clone()].concat();
        prop_assert_eq!(run(right, &items, &at), run(text(&whole), &items, &at));
        for (verdict, part) in run(left, &items, &at) {
            prop_assert!(!verdict || part == whole);
        }
    }

    #[test]
    fn the_parts_of_sections_say_what_the_splitter_says(a in script(), items in input(), at in chunks()) {
        let mut pieces = Vec::new();
        let mut rest = &items[..];
        for length in at.iter().chain(std::iter::repeat(&3)) {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*length).clamp(1, rest.len()));
            pieces.push(piece.to_vec());
            rest = after;
        }
        let parts = (from_chunks(pieces) >> section_parts(a.splitter())).collect();
        let mut sections = Sections::new();
        let mut open = Vec::new();
        for part in parts {
            match part {
                SectionPart::Item(_, item) => open.push(item),
                SectionPart::Close(verdict) => sections.push((verdict, std::mem::take(&mut open))),
            }
        }
        prop_assert_eq!(sections, a.sections(&items));
    }

    #[test]
    fn the_ends_of_sections_are_empty_sections(a in script(), items in input(), at in chunks()) {
        let (mut starts, mut ends) = (Sections::new(), Sections::new());
        for (verdict, part) in a.sections(&items) {
            starts.extend(verdict.then(|| (true, vec![])));
            if !(verdict && part.is_empty()) {
                starts.push((false, part.clone()));
                ends.push((false, part));
            }
            ends.extend(verdict.then(|| (true, vec![])));
        }
        prop_assert_eq!(run(start_of(a.splitter()), &items, &at), starts);
        prop_assert_eq!(run(end_of(a.splitter()), &items, &at), ends);
    }

    #[test]
    fn between_counts_what_is_open(a in script(), b in script(), items in input(), at in chunks()) {
        let mut open = 0;
        let (starts, ends) = (marks(&a.sections(&items)), marks(&b.sections(&items)));
        let said: Vec<_> = starts
            .iter()
            .zip(&ends)
            .map(|(start, end)| {
                open = (open + start.starts).saturating_sub(end.starts);
                (open > 0, false)
            })
            .collect();
        prop_assert_eq!(run(between(a.splitter(), b.splitter()), &items, &at), cut(&items, &said));
    }

    #[test]
    fn having_tries_each_section(a in script(), b in script(), items in input(), at in chunks()) {
        let says = |wanted: bool, part: &[u8]| b.sections(part).iter().any(|(v, p)| *v == wanted && !p.is_empty());
        let some: Sections = a.sections(&items).into_iter().map(|(v, p)| (v && says(true, &p), p)).collect();
        let only: Sections = a.sections(&items).into_iter().map(|(v, p)| (v && !says(false, &p), p)).collect();
        prop_assert_eq!(run(having(a.splitter(), b.splitter()), &items, &at), some);
        prop_assert_eq!(run(having_only(a.splitter(), b.splitter()), &items, &at), only);
    }

    #[test]
    fn nested_in_goes_as_deep_as_the_items_need(a in script(), b in script(), items in input(), at in chunks()) {
        let each = Script { verdict: [true; 8], cut: [true; 8], empty: [None; 8], last: None, ..b.clone() };
        let around = b.splitter() & !prefix(each.splitter());
        prop_assert_eq!(run(nested_in(a.splitter(), around), &items, &at), nested(&a, &b, &items));
    }
}

#[test]
fn lines_and_substrings_are_found_at_every_split() {
    let text = b"\nFIND FIND ME\n\nfindme FIND MEFIND ME\nFIND\nMEnd FI";
    let slow_lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let needle = b"FIND ME";
    for cut in 0..=text.len() {
        for second in cut..=text.len() {
            let at = [cut, second - cut, text.len() - second];
            let at: Vec<usize> = at.into_iter().filter(|length| *length > 0).collect();
            let lines = run(line(), text, &at);
            let true_ones: Vec<&[u8]> = lines.iter().filter(|part| part.0).map(|part| &part.1[..]).collect();
            assert_eq!(true_ones, slow_lines, "{at:?}");
            let whole = run(whole_line(), text, &at);
            let slow: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(whole.iter().map(|part| &part.1[..]).collect::<Vec<_>>(), slow, "{at:?}");
            let found = run(substring(needle), text, &at);
            let joined: Vec<u8> = found.iter().flat_map(|part| part.1.clone()).collect();
            assert_eq!(joined, text, "{at:?}");
            assert!(found.iter().all(|(verdict, part)| *verdict == (part == needle)), "{found:?}");
            assert_eq!(found.iter().filter(|part| part.0).count(), 3, "{at:?}");
        }
    }
}

proptest! {
    #[test]
    fn substring_searches_as_a_loop_does(
        needle in prop::collection::vec(0..2u8, 1..5), items in prop::collection::vec(0..2u8, 0..30), at in chunks(),
    ) {
        let (mut slow, mut index) = (Vec::new(), 0);
        while index < items.len() {
            let hit = items[index..].starts_with(&needle);
            let length = if hit { needle.len() } else { 1 };
            for offset in 0..length {
                slow.push((hit, hit && offset == 0));
            }
            index += length;
        }
        prop_assert_eq!(run(substring(&needle), &items, &at), cut(&items, &slow));
    }
}
