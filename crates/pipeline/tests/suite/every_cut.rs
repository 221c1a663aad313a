//! Each component at every cut of its input: however a short input is cut into chunks, the same
//! comes out, the same failure is told, and a consumer that takes no more gets the same items.

use crate::pipeline_sections::run as sections_of;
use selvedge_pipeline::*;
use std::fmt::Debug;
use std::ops::ControlFlow::{Break, Continue};

/// Inputs in which each format, and each mistake in it, has a part.
const INPUTS: [&[u8]; 14] = [
    b"",
    b"a",
    b"ab\n\nb\r\naab",
    b"\nabab\n\n",
    b"  ab12b9a ",
    b"(a(b)a)b(a",
    b"a,\"\"\"\n\",\n",
    b"\"a\",\"b\"\r\n,",
    b"a\"b\n\"c",
    b"{\"a\":[1],2",
    b"\"a\\\"\":0}{\"",
    b"<a x='>'/>",
    b"<a>&b</a>&",
    b"\x02ab\x00\x01\n\x03b",
];

/// The lengths of the pieces of every composition of `length`.
fn compositions(length: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1_u32 << length.saturating_sub(1)).map(move |cuts| {
        let mut lengths = vec![0];
        for at in 0..length {
            *lengths.last_mut().unwrap() += 1;
            if cuts >> at & 1 == 1 {
                lengths.push(0);
            }
        }
        lengths
    })
}

/// The pieces of an input.
fn pieces<'a>(mut input: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let cut = |length: &usize| {
        let (piece, rest) = input.split_at(*length);
        input = rest;
        piece
    };
    lengths.iter().map(cut).collect()
}

/// Keeps items until there is no room.
struct Kept<C> {
    items: C,
    room: u64,
}

impl<A: Item + ?Sized, C: Store<A>> Sink<A> for Kept<C> {
    fn put(&mut self, item: &A) -> Flow {
        assert!(self.room > 0, "the sink is fed after its end");
        self.items.keep(item);
        self.room -= 1;
        if self.room == 0 { Break(()) } else { Continue(()) }
    }
}

/// What a transducer has put, and its failure.
type StageOutcome<B> = (<B as Item>::Store, Option<String>);

/// The items that a transducer puts into a sink with `room`, and the failure if the sink has not
/// broken.
fn outcome<B, T>(stage: &Transducer<u8, B, T>, pieces: &[&[u8]], room: u64) -> StageOutcome<B>
where
    B: Item + ?Sized,
    T: Transduce<u8, B> + Clone,
{
    let mut stage = stage.clone().into_stage();
    let mut kept = Kept { items: B::Store::default(), room };
    let mut over = false;
    for (index, piece) in pieces.iter().enumerate() {
        // An item may come by itself or as a chunk.
        let flow = match piece {
            [item] if index % 2 == 0 => match stage.put(item, &mut kept) {
                Continue(()) => stage.flush(&mut kept),
                over => over,
            },
            piece => stage.put_chunk(piece, &mut kept),
        };
        if flow.is_break() {
            over = true;
            break;
        }
    }
    if !over {
        let _over = stage.end(&mut kept);
    }
    let failure = if kept.room > 0 { stage.failure().map(ToString::to_string) } else { None };
    (kept.items, failure)
}

fn stage_at_every_cut<B, T>(name: &str, stage: Transducer<u8, B, T>)
where
    B: Item<Store: PartialEq + Debug> + ?Sized,
    T: Transduce<u8, B> + Clone,
{
    for input in INPUTS {
        let check = |room: u64, outcome: &dyn Fn(&[&[u8]]) -> StageOutcome<B>| {
            let whole = outcome(&[input]);
            // Where the next stage breaks, two pieces and single items show what more pieces would.
            let cuts = compositions(input.len());
            let few = |lengths: &Vec<usize>| lengths.len() <= 2 || lengths.len() == input.len();
            for lengths in cuts.filter(|lengths| room == u64::MAX || few(lengths)) {
                let made = outcome(&pieces(input, &lengths));
                assert_eq!(made, whole, "{name} of {}, cut {lengths:?}, room {room}", input.escape_ascii());
            }
        };
        check(u64::MAX, &|pieces| outcome(&stage, pieces, u64::MAX));
        for room in 1..4 {
            check(room, &|pieces| outcome(&stage, pieces, room));
            // A failure behind the items that the next stage takes is none.
            let finished = stage.clone() >> take(room);
            check(room, &|pieces| outcome(&finished, pieces, u64::MAX));
        }
    }
}

fn splitter_at_every_cut<S: Split<u8> + Clone>(name: &str, splitter: Splitter<u8, S>) {
    for input in INPUTS {
        let whole = sections_of(splitter.clone(), input, &[input.len()]);
        let bytes: Vec<u8> = whole.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        assert_eq!(bytes, input, "{name}: each byte is in its place");
        for mut lengths in compositions(input.len()) {
            let cut = format!("{name} of {}, cut {lengths:?}", input.escape_ascii());
            if lengths.len() <= 2 {
                assert_eq!(sections_of(splitter.clone(), input, &lengths), whole, "{cut}");
            }
            // A length of 0 stands for an item by itself.
            lengths.iter_mut().step_by(2).filter(|length| **length == 1).for_each(|length| *length = 0);
            assert_eq!(sections_of(splitter.clone(), input, &lengths), whole, "{cut}");
        }
    }
    stage_at_every_cut(name, group_by(splitter.clone()));
    stage_at_every_cut(name, select(splitter));
}

/// The result of an iteratee, and how many items it has taken.
fn iteratee_at_every_cut<I>(name: &str, iteratee: Iteratee<u8, I>)
where
    I: Consume<u8, Result: PartialEq + Debug> + Clone,
{
    for input in INPUTS {
        let read = |pieces: &[&[u8]]| {
            let (mut fed, mut taken) = (iteratee.clone().feed(), 0);
            for piece in pieces {
                if fed.is_finished() {
                    break;
                }
                taken += fed.put_some(piece);
            }
            (taken, fed.try_end().map_err(|failure| failure.to_string()))
        };
        let whole = read(&[input]);
        for lengths in compositions(input.len()) {
            let cut = pieces(input, &lengths);
            assert_eq!(read(&cut), whole, "{name} of {}, cut {lengths:?}", input.escape_ascii());
        }
    }
}

/// Calls a check for each component, with the text of the component as its name.
macro_rules! each {
    ($check:ident: $($component:expr,)+) => {
        $($check(stringify!($component), $component);)+
    };
}

fn letters() -> Splitter<u8, impl Split<u8> + Clone + Send + 'static> {
    satisfies(u8::is_ascii_alphabetic)
}

fn upper() -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone + Send + 'static> {
    lift121(u8::to_ascii_uppercase)
}

/// Puts each byte twice, and the number of bytes at the end.
fn twice() -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    let step = |count: &mut u8, byte: &u8| {
        *count += 1;
        [*byte, *byte]
    };
    lift_stateful(step, |count| [*count + b'0'], 0)
}

#[test]
fn splitters() {
    let brackets = || between(end_of(substring(b"(")), start_of(substring(b")")));
    each! { splitter_at_every_cut:
        letters(), everything(), line(), whole_line(), substring(b"ab"), substring(b"aa"), substring(b"\n"),
        !line(), letters() & line(), letters() | substring(b"\n"), line().and_then(letters()), letters().or_else(line()),
        first(letters()), last(letters()), prefix(line()), suffix(line()), start_of(line()), end_of(letters()),
        first(last(letters())), start_of(suffix(whole_line())), last(!whole_line()),
        brackets(), having(line(), substring(b"ab")), having_only(line(), letters()), having(brackets(), !letters()),
        even(line()), even(letters()), even(start_of(line())), even(!substring(b"b")), first(even(letters())),
        upto_first(line()), upto_first(letters()), upto_first(substring(b"\n")), upto_first(end_of(letters())),
        upto_first(!letters()), upto_first(having(whole_line(), substring(b"ab"))), upto_first(last(letters())),
        last_and_after(line()), last_and_after(letters()), last_and_after(substring(b"ab")),
        last_and_after(start_of(line())), last_and_after(upto_first(letters())), !last_and_after(!line()),
        followed_by(letters(), line()), followed_by(substring(b"a"), substring(b"b")),
        followed_by(start_of(line()), substring(b"a")), followed_by(substring(b"b"), end_of(substring(b"9"))),
        followed_by(letters(), !letters()), followed_by(letters(), last(letters())), followed_by(line(), everything()),
        followed_by(followed_by(letters(), !letters()), letters()), followed_by(start_of(letters()), start_of(letters())),
        followed_by(whole_line(), suffix(whole_line())), having(followed_by(whole_line(), whole_line()), letters()),
        even(followed_by(letters(), !letters())).boxed(), upto_first(letters().boxed()).boxed(),
        nested_in(letters(), brackets()), nested_in(prefix(letters()), brackets() & !first(letters())),
        csv::rows(b','), csv::column(b',', 0), csv::column(b',', 1),
        json::values(), json::member("a"), xml::element("a"), xml::content("a"), xml::attribute("x"),
        having(csv::rows(b','), substring(b"a")), having(xml::element("a"), substring(b"b")),
        line().boxed(), having(line(), letters()).boxed(),
        splitter(|mut io: Io<u8, SectionPart<u8>>| async move {
            while let Some(byte) = io.next().await {
                io.put(SectionPart::Item(byte == b'a', byte)).await;
                if byte == b'a' || io.peek().await == Some(&b'a') {
                    io.put(SectionPart::Close(byte == b'a')).await;
                }
            }
        }),
    }
}

/// A body that puts each byte and a dot, and takes as many as `room`.
fn dotted(room: usize) -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    transducer(move |mut io: Io<u8, u8>| async move {
        for _ in 0..room {
            let Some(byte) = io.next().await else { break };
            io.put(byte).await;
            io.put(b'.').await;
        }
        io.put(b'!').await;
    })
}

/// A stage that fails at a `b`.
fn no_b() -> Transducer<u8, u8, impl Transduce<u8, u8> + Clone> {
    try_lift121(|byte: &u8| if *byte == b'b' { Err("a b") } else { Ok(*byte) })
}

/// The items as they are, and each end of a section as a sign.
fn parts_as_bytes() -> Transducer<SectionPart<u8>, u8, impl Transduce<SectionPart<u8>, u8> + Clone> {
    lift121(|part: &SectionPart<u8>| match part {
        SectionPart::Item(true, byte) => byte.to_ascii_uppercase(),
        SectionPart::Item(false, byte) => byte.to_ascii_lowercase(),
        SectionPart::Close(true) => b'+',
        SectionPart::Close(false) => b'-',
    })
}

#[test]
fn transducers_of_bytes() {
    each! { stage_at_every_cut:
        id::<u8>(), upper(), twice(), filter(u8::is_ascii_digit), take(3), take(0), skip(2), skip(0), skip(9), suppress::<u8, u8>(),
        lift_stateless(|byte: &u8| std::iter::repeat_n(*byte, usize::from(*byte % 3))),
        try_lift121(|byte: &u8| if *byte == b'b' { Err("a b") } else { Ok(*byte) }),
        upper() >> take(2) >> twice(), twice() >> take(5), take(4) >> twice(),
        substitute::<u8, u8>(b"xy"),
        if_then_else(letters(), twice(), upper()), if_then_else(line(), take(2), id()),
        if_then_else(having(line(), substring(b"ab")), upper(), suppress()),
        foreach(line(), twice(), id()), foreach(letters(), take(1), twice()), foreach(start_of(line()), substitute(b">"), id()),
        foreach(line(), if_then_else(letters(), upper(), twice()), id()),
        foreach(even(line()), no_b(), id()), foreach(upto_first(whole_line()), no_b(), upper()),
        foreach(last_and_after(letters()), no_b(), twice()), foreach(followed_by(letters(), !letters()), no_b(), upper()),
        foreach(followed_by(start_of(line()), end_of(line())), substitute(b">"), no_b()),
        section_parts(line()) >> parts_as_bytes(), section_parts(end_of(letters())) >> take(3) >> parts_as_bytes(),
        wherever(upper(), letters()), unless(twice(), whole_line()),
        while_(lift121(|byte: &u8| byte / 2), satisfies(|byte: &u8| *byte > 60)),
        while_(foreach(prefix(letters()), suppress(), id()), having(line(), letters())),
        while_each(foreach(substring(b"ab"), substitute(b"b"), id()), substring(b"ab")), while_each(take(1) >> upper(), letters()),
        while_each(no_b() >> upper() >> twice() >> take(3), satisfies(|byte: &u8| byte.is_ascii_lowercase())),
        while_each(foreach(prefix(letters()), suppress(), id()), having(line(), letters())),
        cycle(64, satisfies(|byte: &u8| *byte > 100), lift121(|byte: &u8| byte / 2)),
        cycle(2, everything(), lift_stateless(|byte: &u8| [*byte, *byte])),
        located(whole_line(), try_lift121(|byte: &u8| if *byte == b'b' { Err("a b") } else { Ok(*byte) })),
        try_lift121(|byte: &u8| if *byte == b'"' { Err("a quote") } else { Ok(*byte) }).named("quotes"),
        join_transduced(upper(), id(), join::interleave()), join_transduced(filter(u8::is_ascii_digit), twice(), join::concatenate()),
        join_transduced(upper(), twice(), join::zip_with(|a, b| a ^ b)), join_transduced(take(2), id(), join::flip(join::concatenate())),
        join_transduced(id(), upper(), join::merge(u8::cmp)),
        join_with(from_iter(0..5_u8), join::zip_with(|a, b| a + b)), join_with(from_iter(0..5_u8), join::interleave()),
        upper().boxed(), (twice() >> take(7)).boxed(), foreach(line().boxed(), twice().boxed(), id().boxed()),
        try_lift121(|byte: &u8| if *byte == b'"' { Err("a quote") } else { Ok(*byte) }).boxed(),
        DynStage::new(twice()).then(DynStage::new(group_by(line()))).unwrap().transducer::<u8, [u8]>().unwrap(),
        transducer(|mut io: Io<u8, u8>| async move {
            while let Some(byte) = io.next().await {
                if io.peek().await == Some(&b'b') {
                    io.put(b'!').await;
                }
                io.put(byte).await;
            }
            io.put(b'.').await;
        }),
    }
}

/// Bodies gather the items that a stage before them puts one by one.
#[test]
fn bodies_behind_single_items() {
    let digits = || satisfies(u8::is_ascii_digit);
    let few = || filter(|byte: &u8| *byte != b'a');
    each! { stage_at_every_cut:
        few() >> dotted(9), few() >> dotted(2), few() >> dotted(0), take(2) >> dotted(9), twice() >> dotted(3),
        no_b() >> dotted(9), no_b() >> dotted(2), no_b() >> few() >> dotted(3) >> upper(), few() >> dotted(2) >> no_b(),
        few() >> (few() >> dotted(3)), few() >> (dotted(3) >> no_b() >> dotted(4)), no_b() >> dotted(2).named("two"),
        no_b() >> (dotted(9) >> few() >> dotted(2) >> take(3)).named("all"), (few() >> dotted(3)).boxed() >> dotted(9),
        if_then_else(letters(), few() >> dotted(3), no_b()), if_then_else(digits(), no_b() >> dotted(9), dotted(3)),
        if_then_else(letters(), dotted(3), no_b()), if_then_else(letters(), no_b(), dotted(2)),
        few() >> if_then_else(letters(), dotted(9), dotted(2)) >> dotted(9), if_then_else(letters(), dotted(0), dotted(1)),
        foreach(letters(), dotted(2), no_b()), foreach(letters(), no_b() >> dotted(9), dotted(1)),
        foreach(line(), few() >> dotted(9), dotted(9)), few() >> foreach(letters(), dotted(9), dotted(1)) >> few() >> dotted(7),
        if_then_else(letters(), if_then_else(digits(), id(), dotted(2)), foreach(digits(), dotted(1), dotted(9))),
        while_(few() >> dotted(1) >> suppress(), letters()), cycle(64, digits(), few() >> dotted(2) >> lift121(|_| b'x')),
        group_by(line()) >> lift121(|line: &[u8]| line.len() as u8 + b'0') >> dotted(2),
        located(whole_line(), no_b() >> dotted(5)), join_transduced(few() >> dotted(2), few(), join::interleave()),
    }
    each! { iteratee_at_every_cut:
        few() >> letters_first(), few() >> dotted(3) >> collect(), no_b() >> letters_first(), few() >> few() >> letters_first(),
        no_b() >> dotted(2) >> few() >> letters_first(), (few() >> letters_first()).named("letters"), dotted(2) >> try_sum(),
    }
}

#[test]
fn transducers_of_lists() {
    let lines = || group_by(line());
    let whole = || group_by(whole_line());
    let write = |n: u64, text: &mut Vec<u8>| text.push(b'0' + n as u8);
    each! { stage_at_every_cut:
        lines() >> concatenate(), lines() >> prepend(b"<") >> append(b">"), whole() >> trim_end(b"\n") >> trim_end(b"\r"),
        lines() >> rewrite(|line: &[u8], text: &mut Vec<u8>| text.extend(line.iter().rev())),
        lines() >> take(2), lines() >> skip(1), whole() >> filter(|line: &[u8]| line.len() > 1),
        whole() >> select(any(substring(b"ab"))), whole() >> select(!any(letters())), lines() >> select(all(letters())),
        lines() >> select(even(any(letters()))), whole() >> select(upto_first(any(substring(b"b")))),
        lines() >> select(last_and_after(any(substring(b"a")))), lines() >> select(followed_by(any(letters()), !any(letters()))),
        whole() >> foreach(followed_by(any(substring(b"a")), any(substring(b"b"))), prepend(b"1"), append(b"0")),
        whole() >> if_then_else(any(substring(b"b")), prepend(b">"), suppress()),
        lines() >> foreach(any(letters()), append(b"!"), prepend(b"-")),
        whole() >> select_numbered(any(substring(b"a")), write), lines() >> select_numbered(!any(substring(b"a")), write),
        whole() >> join_with(naturals() >> decimal() >> append(b":"), join::zip_lists()) >> concatenate(),
        lines() >> lift121(|line: &[u8]| line.len() as u64) >> decimal(),
        lines() >> join_transduced(prepend(b"1"), prepend(b"2"), join::interleave()),
    }
}

#[test]
fn parsers_and_encoders() {
    each! { stage_at_every_cut:
        csv::records(b','), csv::records(b',').boxed(), csv::records(b',') >> csv::encode(b';'), csv::records(b' '),
        group_by(json::values()) >> json::decode_strings(), group_by(line()) >> json::encode_strings(),
        xml::tokens(), group_by(line()) >> xml::escape(), group_by(whole_line()) >> xml::unescape(),
        group_by(xml::content("a")) >> xml::unescape(),
        binary::fixed(3), binary::unframe(binary::Prefix::U8, 9), binary::unframe(binary::Prefix::Varint, 99),
        binary::unframe(binary::Prefix::U16Be, 99), group_by(line()) >> binary::frame(binary::Prefix::U16Le),
    }
}

#[test]
fn iteratees() {
    each! { iteratee_at_every_cut:
            count::<u8>(), collect::<u8>(), head::<u8>(), fold(7_u8, |sum, byte: &u8| *sum = sum.wrapping_mul(3) ^ byte),
    try_sum(), take(3) >> collect(), twice() >> count(), twice() >> head(), letters_first(),
            read::line(), read::exactly::<u8>(4), read::csv_head(b','), read::csv_record(b','), read::json_value(), read::xml_token(),
            read::framed(binary::Prefix::U8, 9),
        }
}

/// The sum of the bytes, up to the first `b`, which is a failure.
fn try_sum() -> Iteratee<u8, impl Consume<u8, Result = u32> + Clone> {
    try_fold(0, |sum, byte: &u8| {
        *sum += u32::from(*byte);
        if *byte == b'b' { Err("a b") } else { Ok(()) }
    })
}

/// The letters at the front of the stream, as a body.
fn letters_first() -> Iteratee<u8, impl Consume<u8, Result = Vec<u8>> + Clone> {
    iteratee(|mut io: Io<u8, _>| async move {
        let mut letters = Vec::new();
        while let Some(byte) = io.peek().await.copied().filter(u8::is_ascii_alphabetic) {
            letters.push(byte);
            io.next().await;
        }
        letters
    })
}
