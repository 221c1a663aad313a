//! What the compiler says of a pipeline that does not fit: each misuse is refused, and the message
//! names what was expected.
//!
//! Each case is compiled by `rustc` against the library that this test is linked with. It is
//! refused with its mistake, and accepted with what mends it in the same place. So a case is
//! refused for its mistake alone.

use std::path::{Path, PathBuf};
use std::process::Command;

struct Misuse {
    /// The module of `selvedge_coroutine`.
    module: &'static str,
    /// The program, with `@` at the mistake.
    program: &'static str,
    /// What is wrong at `@`, and what is right there.
    at: [&'static str; 2],
    /// What the message says.
    says: &'static [&'static str],
}

const MISUSES: &[Misuse] = &[
    Misuse {
        module: "pipeline",
        program: "let _ = naturals() >> @;",
        at: ["count::<[u8]>()", "count::<u64>()"],
        says: &[
            "cannot stand downstream of a generator of `u64`",
            "expected a transducer or an iteratee that takes `u64`",
        ],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = naturals() >> @;",
        at: ["naturals()", "id::<u64>()"],
        says: &["`Generator<u64, Naturals>` cannot stand downstream of a generator of `u64`"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = from_chunks([\"warp\"]) >> @;",
        at: ["line()", "select(line())"],
        says: &["`Splitter<u8, LineSplit>` cannot stand downstream", "expected a transducer or an iteratee"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = group_by(line()) @>> group_by(line());",
        at: ["", ">> concatenate() "],
        says: &["cannot stand downstream of a transducer to `[u8]`", "iteratee that takes `[u8]`"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = @ >> count::<u64>();",
        at: ["count::<u64>()", "id::<u64>()"],
        says: &["cannot stand downstream of a consumer", "what is before it yields no items"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (naturals() >> @) >> count::<u64>();",
        at: ["count()", "id()"],
        says: &["cannot stand downstream of a consumer", "what is before it yields no items"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (naturals() >> @).run();",
        at: ["take(3)", "count()"],
        says: &[
            "is no whole pipeline",
            "expected a generator or source at its beginning, and an iteratee or target at its end",
        ],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (naturals() >> lift121(|n: &u64| n + 1) >> @).run();",
        at: ["take(3)", "take(3) >> count::<u64>()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (naturals() >> @).try_run();",
        at: ["take(3)", "count()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (@take(3) >> count::<u64>()).run();",
        at: ["", "naturals() >> "],
        says: &["is no whole pipeline", "expected a generator or source at its beginning"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = (@).run();",
        at: ["id::<u64>() >> take(1)", "naturals() >> head()"],
        says: &["is no whole pipeline", "an iteratee or target at its end"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = if_then_else(line(), id(), lift121(|c: &u8| @));",
        at: ["u64::from(*c)", "*c"],
        says: &["mismatched types", "expected `Transducer<u8, u8, _>`, found `Transducer<u8, u64,"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = line() & satisfies(|n: &@| *n > 1);",
        at: ["u64", "u8"],
        says: &["expected `Splitter<u8, _>`, found `Splitter<u64,"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = join_generators(naturals(), @, join::concatenate());",
        at: ["from_chunks([\"a\"])", "naturals()"],
        says: &["expected `Generator<u64, _>`, found `Generator<u8,"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = select(@);",
        at: ["id::<u8>()", "line()"],
        says: &["mismatched types", "expected `Splitter<"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = upto_first(@);",
        at: ["select(line())", "line()"],
        says: &["mismatched types", "expected `Splitter<_, _>`, found `Transducer<u8,"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = followed_by(line(), satisfies(|n: &@| *n > 1));",
        at: ["u64", "u8"],
        says: &["expected `Splitter<u8, _>`, found `Splitter<u64,"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = followed_by(line(), @);",
        at: ["b\"ab\"", "substring(b\"ab\")"],
        says: &["mismatched types", "expected `Splitter<u8, _>`, found `&[u8; 2]`"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = section_parts(@);",
        at: ["any(substring(b\"ab\"))", "substring(b\"ab\")"],
        says: &["the size for values of type `[u8]` cannot be known"],
    },
    Misuse {
        module: "pipeline",
        program: "let _ = id::<@>();",
        at: ["str", "u8"],
        says: &["`str` cannot be an item of a pipeline", "an item is a `Clone + 'static` type"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { @; });",
        at: ["co.await_().await", "co.yield_(1).await"],
        says: &["no method named `await_`", "the method was found for", "`Co<Await<A>>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Iteratee::<u8, u8>::new(|mut co| async move { @ });",
        at: ["co.yield_(1).await", "co.await_().await"],
        says: &["no method named `yield_`", "`Co<Yield<A>>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { @; });",
        at: ["co.pause().await", "co.yield_(1).await"],
        says: &["no method named `pause`", "`Co<Identity>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Generator::<u8, ()>::new(|mut co| async move { co.yield_(@).await; });",
        at: ["\"warp\"", "1"],
        says: &["expected `u8`, found `&str`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Transducer::<u8, @, ()>::new(|mut co| async move { co.yield_(1).await; });",
        at: ["Naught", "u8"],
        says: &["expected `Naught`, found integer"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = run(@);",
        at: ["Generator::<u8, ()>::done(())", "Trampoline::done(())"],
        says: &["expected `Coroutine<'_, Identity, _>`, found `Coroutine<'_, Yield<u8>, ()>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = pipe1(Generator::<u8, ()>::done(()), Iteratee::<@, ()>::done(()));",
        at: ["Option<u8>", "u8"],
        says: &["expected `Coroutine<'_, Await<u8>, _>`, found `Coroutine<'_, Await<Option<u8>>, ()>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = pipe2(Generator::<u8, ()>::done(()), Iteratee::<@, ()>::done(()));",
        at: ["u8", "Option<u8>"],
        says: &["expected `Coroutine<'_, Await<Option<u8>>, _>`, found `Coroutine<'_, Await<u8>, ()>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = lift_one_to_one(|n: u8| n) >> lift_one_to_one(|n: @| n);",
        at: ["u16", "u8"],
        says: &[
            "EitherFunctor<Await<Option<u8>>, Yield<_>>",
            "EitherFunctor<Await<Option<u16>>, Yield<u16>>",
        ],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = @ >> lift_one_to_one(|n: u8| n);",
        at: ["Generator::<u8, ()>::done(())", "from_generator(Generator::<u8, ()>::done(()))"],
        says: &[
            "a generator stands upstream of `>>` only as a transducer",
            "write `from_generator(..) >> ..`",
        ],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = lift_one_to_one(|n: u8| n) >> @;",
        at: ["Iteratee::<Option<u8>, ()>::done(())", "from_iteratee(Iteratee::<Option<u8>, ()>::done(()))"],
        says: &["EitherFunctor<Await<_>, Yield<_>>", "Await<"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = from_iteratee(Iteratee::<@, ()>::done(()));",
        at: ["u8", "Option<u8>"],
        says: &["expected `Coroutine<'_, Await<Option<_>>, _>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = to_generator(@);",
        at: ["lift_one_to_one(|n: u32| n)", "from_generator(Generator::<u32, ()>::done(()))"],
        says: &["EitherFunctor<Await<Option<Naught>>, Yield<_>>"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = to_iteratee(@);",
        at: ["lift_one_to_one(|n: u32| n)", "from_iteratee(Iteratee::<Option<u32>, ()>::done(()))"],
        says: &["Yield<Naught>"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Coroutine::<@, ()>::new(|_| async {});",
        at: ["Many", "Identity"],
        says: &[
            "no body can suspend with `selvedge_coroutine::trampoline::Many`",
            "exactly one resumption",
            "`Coroutine::suspend`",
        ],
    },
    Misuse {
        module: "trampoline",
        program: "enum Mine {} let _ = Coroutine::<@, ()>::done(());",
        at: ["Mine", "Identity"],
        says: &["`Mine` is no suspension", "such as `Yield<A>`"],
    },
    Misuse {
        module: "trampoline",
        program: "let rest = Trampoline::done(1); let _ = run(rest); @let _ = run(rest);",
        at: ["", "let rest = Trampoline::done(2); "],
        says: &["use of moved value: `rest`"],
    },
    Misuse {
        module: "trampoline",
        program: "let _ = Trampoline::new(|mut co| async move { let held = @(1); co.pause().await; drop(held); });",
        at: ["std::rc::Rc::new", "std::sync::Arc::new"],
        says: &["future cannot be sent between threads safely", "used across an await"],
    },
    Misuse {
        module: "trampoline",
        program: "let text = String::from(\"warp\"); let part = async || text.len(); \
            let _ = mzip_with_by(@, |_, _| (), Trampoline::lift(part()), Trampoline::done(()));",
        at: ["Parallel", "Concurrent"],
        says: &["`text` does not live long enough", "'static"],
    },
];

/// The library that this test is linked with: the newest one beside it.
fn library() -> (PathBuf, PathBuf) {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let files = deps.read_dir().unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let ours = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libselvedge_coroutine-") && name.ends_with(".rlib")
    });
    let newest = ours.max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
    (newest.expect("cargo has built the library for this test"), deps)
}

/// What the compiler says of a program; `None` if it accepts it.
fn compile(directory: &Path, module: &str, program: &str) -> Option<String> {
    let (library, deps) = library();
    let text =
        format!("#![allow(unused)]\nuse selvedge_coroutine::{module}::*;\npub fn main() {{\n{program}\n}}\n");
    let source = directory.join("misuse.rs");
    std::fs::write(&source, text).unwrap();
    // The compiler of this cargo.
    let rustc = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let rustc = rustc.filter(|rustc| rustc.is_file()).unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--color", "never"])
        .arg("--extern")
        .arg(format!("selvedge_coroutine={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", deps.display()))
        .arg("--out-dir")
        .arg(directory)
        .arg(&source)
        .output()
        .unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_misuse_is_refused_with_what_was_expected() {
    let directory = std::env::temp_dir().join(format!("messages-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    for misuse in MISUSES {
        let [wrong, right] = misuse.at.map(|part| misuse.program.replace('@', part));
        let said = compile(&directory, misuse.module, &wrong);
        let said = said.unwrap_or_else(|| panic!("the compiler accepts: {wrong}"));
        for words in misuse.says {
            assert!(said.contains(words), "{wrong}\nis refused without the words: {words}\n{said}");
        }
        if let Some(said) = compile(&directory, misuse.module, &right) {
            panic!("the compiler refuses what mends it: {right}\n{said}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
