//! What the compiler says of coroutines that do not fit: each misuse is refused, and the message
//! names what was expected.

use super::misuses::{Misuse, check};

const MISUSES: &[Misuse] = &[
    Misuse {
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { @; });",
        at: ["co.await_().await", "co.yield_(1).await"],
        says: &["no method named `await_`", "the method was found for", "`Co<Await<A>>`"],
    },
    Misuse {
        program: "let _ = Iteratee::<u8, u8>::new(|mut co| async move { @ });",
        at: ["co.yield_(1).await", "co.await_().await"],
        says: &["no method named `yield_`", "`Co<Yield<A>>`"],
    },
    Misuse {
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { @; });",
        at: ["co.pause().await", "co.yield_(1).await"],
        says: &["no method named `pause`", "`Co<Identity>`"],
    },
    Misuse {
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { co.yield_(@).await; });",
        at: ["\"warp\"", "1"],
        says: &["expected `u8`, found `&str`"],
    },
    Misuse {
        program: "let _ = Transducer::<u8, @, ()>::new(|mut co| async move { co.yield_(1).await; });",
        at: ["Naught", "u8"],
        says: &["expected `Naught`, found integer"],
    },
    Misuse {
        program: "let _ = run(@);",
        at: ["Generator::<u8, ()>::done(())", "Trampoline::done(())"],
        says: &["expected `Coroutine<'_, Identity, _>`, found `Coroutine<'_, Yield<u8>, ()>`"],
    },
    Misuse {
        program: "let _ = pipe1(Generator::<u8, ()>::done(()), Iteratee::<@, ()>::done(()));",
        at: ["Option<u8>", "u8"],
        says: &["expected `Coroutine<'_, Await<u8>, _>`, found `Coroutine<'_, Await<Option<u8>>, ()>`"],
    },
    Misuse {
        program: "let _ = pipe2(Generator::<u8, ()>::done(()), Iteratee::<@, ()>::done(()));",
        at: ["u8", "Option<u8>"],
        says: &["expected `Coroutine<'_, Await<Option<u8>>, _>`, found `Coroutine<'_, Await<u8>, ()>`"],
    },
    Misuse {
        program: "let _ = lift_one_to_one(|n: u8| n) >> lift_one_to_one(|n: @| n);",
        at: ["u16", "u8"],
        says: &[
            "EitherFunctor<Await<Option<u8>>, Yield<_>>",
            "EitherFunctor<Await<Option<u16>>, Yield<u16>>",
        ],
    },
    Misuse {
        program: "let _ = @ >> lift_one_to_one(|n: u8| n);",
        at: ["Generator::<u8, ()>::done(())", "from_generator(Generator::<u8, ()>::done(()))"],
        says: &[
            "a generator stands upstream of `>>` only as a transducer",
            "write `from_generator(..) >> ..`",
        ],
    },
    Misuse {
        program: "let _ = lift_one_to_one(|n: u8| n) >> @;",
        at: ["Iteratee::<Option<u8>, ()>::done(())", "from_iteratee(Iteratee::<Option<u8>, ()>::done(()))"],
        says: &["EitherFunctor<Await<_>, Yield<_>>", "Await<"],
    },
    Misuse {
        program: "let _ = from_iteratee(Iteratee::<@, ()>::done(()));",
        at: ["u8", "Option<u8>"],
        says: &["expected `Coroutine<'_, Await<Option<_>>, _>`"],
    },
    Misuse {
        program: "let _ = to_generator(@);",
        at: ["lift_one_to_one(|n: u32| n)", "from_generator(Generator::<u32, ()>::done(()))"],
        says: &["EitherFunctor<Await<Option<Naught>>, Yield<_>>"],
    },
    Misuse {
        program: "let _ = to_iteratee(@);",
        at: ["lift_one_to_one(|n: u32| n)", "from_iteratee(Iteratee::<Option<u32>, ()>::done(()))"],
        says: &["Yield<Naught>"],
    },
    Misuse {
        program: "let _ = Coroutine::<@, ()>::new(|_| async {});",
        at: ["Many", "Identity"],
        says: &[
            "no body can suspend with `selvedge_coroutine::Many`",
            "exactly one resumption",
            "`Coroutine::suspend`",
        ],
    },
    Misuse {
        program: "enum Mine {} let _ = Coroutine::<@, ()>::done(());",
        at: ["Mine", "Identity"],
        says: &["`Mine` is no suspension", "such as `Yield<A>`"],
    },
    Misuse {
        program: "let rest = Trampoline::done(1); let _ = run(rest); @let _ = run(rest);",
        at: ["", "let rest = Trampoline::done(2); "],
        says: &["use of moved value: `rest`"],
    },
    Misuse {
        program: "let _ = Trampoline::new(|mut co| async move { let held = @(1); co.pause().await; drop(held); });",
        at: ["std::rc::Rc::new", "std::sync::Arc::new"],
        says: &["future cannot be sent between threads safely", "used across an await"],
    },
    Misuse {
        program: "let text = String::from(\"warp\"); let part = async || text.len(); \
            let _ = mzip_with_by(@, |_, _| (), Trampoline::lift(part()), Trampoline::done(()));",
        at: ["Parallel", "Concurrent"],
        says: &["`text` does not live long enough", "'static"],
    },
];

#[test]
fn a_misuse_is_refused_with_what_was_expected() {
    check("selvedge_coroutine", MISUSES);
}
