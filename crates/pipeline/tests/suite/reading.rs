//! Iteratees that read one stream in turn.

use proptest::prelude::*;
use selvedge_pipeline::binary::Prefix;
use selvedge_pipeline::*;
use std::ops::ControlFlow::{Break, Continue};

/// Each iteratee takes what is its own, wherever the stream is cut.
#[test]
fn the_rest_of_the_stream_does_not_depend_on_the_cuts() {
    let stream =
        b"a line\n\"a\nfield\",b\r\n {\"k\": [1, \"]\"]}, 42<a k='>'>text</a>\x04warpxyz\nlast".as_slice();
    for length in (1..stream.len()).chain([stream.len()]) {
        let mut pulled = from_chunks(stream.chunks(length).map(<[u8]>::to_vec)).pull();
        assert_eq!(pulled.read(read::line()).unwrap().unwrap(), b"a line");
        let record = pulled.read(read::csv_record(b',')).unwrap().unwrap();
        assert_eq!(record.iter().collect::<Vec<_>>(), [&b"a\nfield"[..], b"b"]);
        assert_eq!(pulled.read(read::json_value()).unwrap().unwrap(), b"{\"k\": [1, \"]\"]}");
        assert_eq!(pulled.read(take(2) >> collect()).unwrap(), b", ");
        assert_eq!(pulled.read(read::exactly(1)).unwrap().unwrap(), b"4");
        assert_eq!(pulled.read(read::xml_token()).unwrap().unwrap(), b"2");
        for token in [&b"<a k='>'>"[..], b"text", b"</a>"] {
            assert_eq!(pulled.read(read::xml_token()).unwrap().unwrap(), token);
        }
        assert_eq!(pulled.read(read::framed(Prefix::U8, 10)).unwrap().unwrap(), b"warp");
        assert_eq!(pulled.read(head()).unwrap(), Some(b'x'));
        let line = group_by(whole_line()) >> take(1) >> collect();
        assert_eq!(pulled.read(line).unwrap().at(0), b"yz\n");
        let mut rest = Vec::new();
        while let Some(chunk) = pulled.next_chunk() {
            rest.extend_from_slice(chunk);
        }
        assert_eq!(rest, b"last");
        assert_eq!(pulled.read(read::line()).unwrap(), None);
        assert_eq!(pulled.read(read::json_value()).unwrap(), None);
        assert_eq!(pulled.read(read::exactly::<u8>(2)).unwrap(), None);
        assert_eq!(pulled.read(read::framed(Prefix::U8, 1)).unwrap(), None);
    }
}

#[test]
fn a_holder_learns_how_much_was_taken() {
    let mut fed = head::<u8>().feed();
    assert_eq!((fed.put_some(&[7, 8, 9]), fed.put_some(&[8, 9])), (1, 0));
    assert!(fed.is_finished());
    assert_eq!(fed.end(), Some(7));
    let mut fed = (filter(|n: &u32| n % 2 == 1) >> take(2) >> count()).feed();
    assert_eq!((fed.put_some(&[1, 2]), fed.put_some(&[2, 3, 4, 5])), (2, 2));
    assert_eq!(fed.end(), 2);
    let mut fed = each_chunk(|chunk: &[u8]| if chunk.len() > 2 { Break(()) } else { Continue(()) }).feed();
    assert_eq!((fed.put_some(b"ab"), fed.is_finished()), (2, false));
    assert_eq!((fed.put_some(b"abc"), fed.is_finished()), (3, true));
    let mut all = collect::<[u8]>().feed();
    let mut lists = ListStore::default();
    lists.keep(&b"a"[..]);
    lists.keep(&b"bc"[..]);
    assert_eq!((all.put_some(lists.all()), all.is_finished()), (2, false));
    assert_eq!(all.end().count(), 2);
}

#[test]
fn a_value_at_the_end_of_the_stream_is_read_and_one_cut_off_is_a_failure() {
    let whole = |text: &'static str| from_chunks([text]).pull();
    assert_eq!(whole("42").read(read::json_value()).unwrap().unwrap(), b"42");
    assert_eq!(whole("text").read(read::xml_token()).unwrap().unwrap(), b"text");
    assert_eq!(whole("\n").read(read::line()).unwrap().unwrap(), b"");
    let failed = whole("<a").read(read::xml_token()).unwrap_err();
    assert!(failed.to_string().contains("markup that is not closed"), "{failed}");
    let failed = whole("\x05warp").read(read::framed(Prefix::U8, 10)).unwrap_err();
    assert!(failed.to_string().contains("ends within a record"), "{failed}");
    let failed = whole("abc").read(read::exactly(4).named("four")).unwrap_err();
    assert_eq!(failed.to_string(), "four: item 4, offset 3: the stream ends within a record");
    // A source that fails is told to the iteratee that wants more, and to no other.
    let mut reads = [Ok(2), Err("the line is cut")].into_iter();
    let mut pulled = try_from_fn(4, move |block: &mut [u8]| {
        block.fill(b'a');
        reads.next().unwrap()
    })
    .pull();
    assert_eq!(pulled.read(read::exactly(2)).unwrap().unwrap(), b"aa");
    assert!(pulled.read(read::line()).unwrap_err().to_string().contains("the line is cut"));
}

proptest! {
    /// Two iteratees in turn see what one alone does.
    #[test]
    fn nothing_is_lost_or_read_twice(text in "[a-c\n]{0,40}", length in 1..9_usize, wanted in 1..5_u64) {
        let mut pulled = from_chunks(text.as_bytes().chunks(length).map(<[u8]>::to_vec)).pull();
        let lines = pulled.read(group_by(whole_line()) >> take(wanted) >> concatenate() >> collect()).unwrap();
        let rest = pulled.read(collect()).unwrap();
        let expected: usize = text.split_inclusive('\n').take(wanted as usize).map(str::len).sum();
        prop_assert_eq!(lines.len(), expected);
        prop_assert_eq!([lines, rest].concat(), text.as_bytes());
    }
}

/// The bodies of each role, at each cut.
#[test]
fn bodies_do_not_see_the_cuts() {
    let words = || {
        splitter(|mut io| async move {
            while let Some(byte) = io.next().await {
                let verdict: bool = u8::is_ascii_alphabetic(&byte);
                io.put(SectionPart::Item(verdict, byte)).await;
                // The end of the input ends the last section too.
                if io.peek().await.is_some_and(|next| next.is_ascii_alphabetic() != verdict) {
                    io.put(SectionPart::Close(verdict)).await;
                }
                if byte == b'.' {
                    return;
                }
            }
        })
    };
    let doubled = || {
        transducer(|mut io| async move {
            while let Some(byte) = io.next().await {
                match io.next().await {
                    Some(next) if next == byte => {}
                    Some(next) => io.unread(next),
                    None => {}
                }
                io.put_chunk(&[byte, byte]).await;
            }
        })
    };
    let pair = || {
        iteratee(|mut io| async move {
            let (first, second) = (io.next().await, io.next().await);
            // The second one goes back, and is read once more.
            second.iter().for_each(|byte| io.unread(*byte));
            (first, io.peek().await.copied(), io.next().await)
        })
    };
    let text = b"aab ccc. dd".as_slice();
    for length in 1..=text.len() {
        let from = || from_chunks(text.chunks(length).map(<[u8]>::to_vec));
        let lists = (from() >> group_by(words())).collect();
        assert_eq!(lists.iter().collect::<Vec<_>>(), [&b"aab"[..], b"ccc"], "{length}");
        assert_eq!((from() >> if_then_else(words(), id(), id())).collect(), text);
        assert_eq!((from() >> doubled()).collect(), b"aabb  cccc..  dd", "{length}");
        let mut stream = from().pull();
        assert_eq!(stream.read(pair()).unwrap(), (Some(b'a'), Some(b'a'), Some(b'a')));
        assert_eq!(stream.read(pair()).unwrap(), (Some(b'b'), Some(b' '), Some(b' ')));
        assert_eq!(stream.read(read::line()).unwrap().unwrap(), b"ccc. dd");
        assert_eq!(stream.read(pair()).unwrap(), (None, None, None));
        let all = iteratee(|mut io| async move {
            let mut all = Vec::new();
            loop {
                let chunk: Vec<u8> = io.chunk().await;
                if chunk.is_empty() {
                    return all;
                }
                all.extend(chunk);
            }
        });
        assert_eq!((from() >> all).run(), text);
    }
    let numbers = |count: u32| {
        generator(move |mut io| async move {
            assert!(io.next().await.is_none());
            for number in 0..count {
                io.put(number).await;
            }
        })
    };
    for count in [0, 1, 1024, 3000] {
        assert_eq!(numbers(count).collect(), (0..count).collect::<Vec<_>>());
    }
    assert_eq!((numbers(3000) >> take(1500) >> count()).run(), 1500);
    let twice = numbers(3);
    assert_eq!([twice.clone().collect(), twice.collect()], [[0, 1, 2], [0, 1, 2]]);
}

#[test]
#[should_panic(expected = "something else than its Io")]
fn the_body_of_an_iteratee_awaits_nothing_else() {
    let waits = iteratee(|_: Io<u8, std::convert::Infallible>| std::future::pending::<u8>());
    (from_iter([1]) >> waits).run();
}

/// A byte order mark is one at the beginning of a text only. Wherever the stream is cut, it stays
/// in a field behind the beginning.
#[test]
fn a_byte_order_mark_is_lost_at_the_beginning_of_a_text_alone() {
    let stream = "\u{feff}name,a\n\u{feff}1,2\n\u{feff}\u{feff}3\n".as_bytes();
    for length in 1..=stream.len() {
        let mut pulled = from_chunks(stream.chunks(length).map(<[u8]>::to_vec)).pull();
        let head = pulled.read(read::csv_head(b',')).unwrap().unwrap();
        assert_eq!(head.get(0), Some(&b"name"[..]));
        let record = pulled.read(read::csv_record(b',')).unwrap().unwrap();
        assert_eq!(record.get(0), Some("\u{feff}1".as_bytes()));
        let record = pulled.read(read::csv_record(b',')).unwrap().unwrap();
        assert_eq!(record.get(0), Some("\u{feff}\u{feff}3".as_bytes()));
    }
}
