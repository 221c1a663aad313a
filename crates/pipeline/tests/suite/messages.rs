//! What the compiler says of a pipeline that does not fit: each misuse is refused, and the message
//! names what was expected.

use super::misuses::{Misuse, check};

const MISUSES: &[Misuse] = &[
    Misuse {
        program: "let _ = naturals() >> @;",
        at: ["count::<[u8]>()", "count::<u64>()"],
        says: &[
            "cannot stand downstream of a generator of `u64`",
            "expected a transducer or an iteratee that takes `u64`",
        ],
    },
    Misuse {
        program: "let _ = naturals() >> @;",
        at: ["naturals()", "id::<u64>()"],
        says: &[
            "`Generator<u64, impl Generate<u64> + Clone>` cannot stand downstream of a generator of `u64`",
        ],
    },
    Misuse {
        program: "let _ = from_chunks([\"warp\"]) >> @;",
        at: ["line()", "select(line())"],
        says: &["`Splitter<u8, LineSplit>` cannot stand downstream", "expected a transducer or an iteratee"],
    },
    Misuse {
        program: "let _ = group_by(line()) @>> group_by(line());",
        at: ["", ">> concatenate() "],
        says: &["cannot stand downstream of a transducer to `[u8]`", "iteratee that takes `[u8]`"],
    },
    Misuse {
        program: "let _ = @ >> count::<u64>();",
        at: ["count::<u64>()", "id::<u64>()"],
        says: &["cannot stand downstream of a consumer", "what is before it yields no items"],
    },
    Misuse {
        program: "let _ = (naturals() >> @) >> count::<u64>();",
        at: ["count()", "id()"],
        says: &["cannot stand downstream of a consumer", "what is before it yields no items"],
    },
    Misuse {
        program: "let _ = (naturals() >> @).run();",
        at: ["take(3)", "count()"],
        says: &[
            "is no whole pipeline",
            "expected a generator or source at its beginning, and an iteratee or target at its end",
        ],
    },
    Misuse {
        program: "let _ = (naturals() >> lift121(|n: &u64| n + 1) >> @).run();",
        at: ["take(3)", "take(3) >> count::<u64>()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        program: "let _ = (naturals() >> @).try_run();",
        at: ["take(3)", "count()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        program: "let _ = (@take(3) >> count::<u64>()).run();",
        at: ["", "naturals() >> "],
        says: &["is no whole pipeline", "expected a generator or source at its beginning"],
    },
    Misuse {
        program: "let _ = (@).run();",
        at: ["id::<u64>() >> take(1)", "naturals() >> head()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        program: "let _ = if_then_else(line(), id(), lift121(|c: &u8| @));",
        at: ["u64::from(*c)", "*c"],
        says: &["mismatched types", "expected `Transducer<u8, u8, _>`, found `Transducer<u8, u64,"],
    },
    Misuse {
        program: "let _ = line() & satisfies(|n: &@| *n > 1);",
        at: ["u64", "u8"],
        says: &["expected `Splitter<u8, _>`, found `Splitter<u64,"],
    },
    Misuse {
        program: "let _ = join_generators(naturals(), @, join::concatenate());",
        at: ["from_chunks([\"a\"])", "naturals()"],
        says: &["expected `Generator<u64, _>`, found `Generator<u8,"],
    },
    Misuse {
        program: "let _ = select(@);",
        at: ["id::<u8>()", "line()"],
        says: &["mismatched types", "expected `Splitter<"],
    },
    Misuse {
        program: "let _ = upto_first(@);",
        at: ["select(line())", "line()"],
        says: &["mismatched types", "expected `Splitter<_, _>`, found `Transducer<u8,"],
    },
    Misuse {
        program: "let _ = followed_by(line(), satisfies(|n: &@| *n > 1));",
        at: ["u64", "u8"],
        says: &["expected `Splitter<u8, _>`, found `Splitter<u64,"],
    },
    Misuse {
        program: "let _ = followed_by(line(), @);",
        at: ["b\"ab\"", "substring(b\"ab\")"],
        says: &["mismatched types", "expected `Splitter<u8, _>`, found `&[u8; 2]`"],
    },
    Misuse {
        program: "let _ = section_parts(@);",
        at: ["any(substring(b\"ab\"))", "substring(b\"ab\")"],
        says: &["the size for values of type `[u8]` cannot be known"],
    },
    Misuse {
        program: "let _ = id::<@>();",
        at: ["str", "u8"],
        says: &["`str` cannot be an item of a pipeline", "an item is a `Clone + 'static` type"],
    },
];

#[test]
fn a_misuse_is_refused_with_what_was_expected() {
    check("selvedge_pipeline", MISUSES);
}
