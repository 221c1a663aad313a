//! `in_parts`: the result is that of the same stages in one thread, under every scheduler.

use crate::schedulers::{Scheduler, run};
use proptest::prelude::{ProptestConfig, prop, prop_assert_eq, proptest};
use selvedge_core::{round_robin_over, spawn, yield_now};
use selvedge_flow::{self as flow, FlowSource, Source, in_parts, made};
use selvedge_io::EventLoop;
use selvedge_pipeline::*;
use selvedge_sched::work_stealing;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

under_every_scheduler! {
    parts_do_not_change_the_result
    a_failure_is_that_of_one_thread
    a_panic_comes_through_at_its_place
    a_panic_of_the_source_comes_through
    a_consumer_that_is_finished_stops_the_workers_first
    a_pipeline_that_is_dropped_cancels_its_workers
}

/// `grep -n`.
fn grep_numbered() -> Transducer<u8, u8, impl PartByPart<u8, u8> + Send> {
    let number = |n: u64, line: &mut Vec<u8>| line.extend_from_slice(format!("{n}:").as_bytes());
    group_by(whole_line()) >> select_numbered(any(substring(b"ab")), number) >> concatenate()
}

/// Stages that change each line, and drop some.
fn measures() -> Transducer<u8, u64, impl PartByPart<u8, u64> + Send> {
    group_by(line())
        >> trim_end(b"\r")
        >> filter(|line: &[u8]| line.len() != 1)
        >> lift121(|line: &[u8]| line.len() as u64)
}

/// Blocks of a text, with the lengths of `at` in turn, each longer by one.
fn cut(text: &[u8], at: &[usize]) -> Vec<Vec<u8>> {
    let (mut blocks, mut rest) = (Vec::new(), text);
    for length in at.iter().cycle().map(|length| length + 1) {
        if rest.is_empty() {
            break;
        }
        let (block, after) = rest.split_at(length.min(rest.len()));
        blocks.push(block.to_vec());
        rest = after;
    }
    blocks
}

/// Lines of all kinds: empty ones, long ones, with `\r\n`, and a last one without an end.
fn long_text() -> Vec<u8> {
    let mut text = Vec::new();
    for n in 0..400u32 {
        match n % 7 {
            0 => text.extend_from_slice(b"\n"),
            1 => text.extend_from_slice(format!("line {n} ab\r\n").as_bytes()),
            2 => text.extend(std::iter::repeat_n(b'x', n as usize).chain(*b"ab\n")),
            _ => text.extend_from_slice(format!("{n} a b\n").as_bytes()),
        }
    }
    text.extend_from_slice(b"ab at the end");
    text
}

fn parts_do_not_change_the_result(scheduler: Scheduler) {
    for (text, at) in [
        (Vec::new(), vec![9]),
        (b"\n".to_vec(), vec![0]),
        (b"\n\nab".to_vec(), vec![0]),
        (long_text(), vec![0]),
        (long_text(), vec![6, 40, 0]),
        (long_text(), vec![1000]),
        (long_text(), vec![1 << 20]),
    ] {
        let blocks = move || from_chunks(cut(&text, &at));
        let slow = ((blocks() >> grep_numbered()).collect(), (blocks() >> measures()).collect());
        let fast = run(scheduler, async move {
            let mut fast = Vec::new();
            for threads in [1, 2, 3] {
                let found = (blocks() >> in_parts(threads, grep_numbered()) >> collect()).run().await;
                let lengths = made(blocks()) >> in_parts(threads, measures()) >> id();
                fast.push((found.unwrap(), (lengths >> collect()).run().await.unwrap()));
            }
            fast
        })
        .unwrap();
        assert_eq!(fast, vec![slow; 3]);
    }
}

/// Fails, or panics, at the line `7` and at each line `9`.
fn numbers(panics: bool) -> Transducer<u8, u64, impl PartByPart<u8, u64> + Send> {
    let number = move |line: &[u8]| match line {
        b"7" if panics => panic!("a panic at 7"),
        b"7" => Err("a seven"),
        b"9" => Err("a nine"),
        line => Ok(line.len() as u64),
    };
    group_by(line()) >> try_lift121(number).named("number")
}

/// Gives the blocks, and then fails.
struct Failing(std::vec::IntoIter<Vec<u8>>, Vec<u8>);

impl Source<u8> for Failing {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        yield_now().await;
        match self.0.next() {
            Some(block) => self.1 = block,
            None => return Err(StageError::new("failing", StreamPlace::default(), "as wished")),
        }
        Ok(Some(&self.1))
    }
}

fn a_failure_is_that_of_one_thread(scheduler: Scheduler) {
    let lines =
        |bad: &str| format!("{}{bad}{}9\n9\n", "12\n\n345\n".repeat(20), "6\n".repeat(30)).into_bytes();
    for (text, at) in
        [(lines("7\n"), 4), (lines("7"), 0), (lines(""), 6), (b"1\n7".to_vec(), 1), (b"12\n5".to_vec(), 1)]
    {
        let blocks = cut(&text, &[at]);
        let (told, before) = run(scheduler, async move {
            let (mut told, mut before) = (Vec::new(), Vec::new());
            for threads in [0, 1, 2, 5] {
                let seen = Arc::new(AtomicUsize::new(0));
                let here = seen.clone();
                let counting = fold((), move |(): &mut (), _: &u64| {
                    here.fetch_add(1, Ordering::Relaxed);
                });
                let from = FlowSource::new(Failing(blocks.clone().into_iter(), Vec::new()));
                let failed = match threads {
                    0 => (from >> numbers(false) >> counting).run().await,
                    n => (from >> in_parts(n, numbers(false)) >> counting).run().await,
                };
                told.push(failed.unwrap_err().to_string());
                before.push(seen.load(Ordering::Relaxed));
            }
            (told, before)
        })
        .unwrap();
        assert_eq!((&told[1..], &before[1..]), (&vec![told[0].clone(); 3][..], &vec![before[0]; 3][..]));
    }
}

fn a_panic_comes_through_at_its_place(scheduler: Scheduler) {
    let seen = Arc::new(AtomicUsize::new(0));
    let here = seen.clone();
    let run = catch_unwind(AssertUnwindSafe(|| {
        run(scheduler, async move {
            let text = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n".repeat(4);
            let counting = fold((), move |(): &mut (), _: &u64| {
                here.fetch_add(1, Ordering::Relaxed);
            });
            let blocks = from_chunks(cut(&text, &[1]));
            let _result = (blocks >> in_parts(3, numbers(true)) >> counting).run().await;
        })
    }));
    let panic = run.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>().copied(), Some("a panic at 7"));
    assert_eq!(seen.load(Ordering::Relaxed), 6);
}

/// Gives a block, and then panics.
struct Panicking(bool);

impl Source<u8> for Panicking {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        yield_now().await;
        assert!(!std::mem::replace(&mut self.0, true), "a panic of the source");
        Ok(Some(b"ab\nab"))
    }
}

fn a_panic_of_the_source_comes_through(scheduler: Scheduler) {
    let run = catch_unwind(AssertUnwindSafe(|| {
        run(scheduler, async {
            let from = FlowSource::new(Panicking(false));
            let _result = (from >> in_parts(3, grep_numbered()) >> count()).run().await;
        })
    }));
    assert_eq!(run.unwrap_err().downcast_ref::<&str>().copied(), Some("a panic of the source"));
}

/// Counts the drops, and the blocks that were asked for.
#[derive(Clone, Default)]
struct Told(Arc<(AtomicUsize, AtomicUsize)>);

impl Told {
    fn dropped(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn blocks(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// Blocks without end. It says when it is dropped.
struct Endless(Told);

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Source<u8> for Endless {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        self.0.0.1.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        Ok(Some(b"ab\nab"))
    }
}

fn a_consumer_that_is_finished_stops_the_workers_first(scheduler: Scheduler) {
    let told = Told::default();
    let from = FlowSource::new(Endless(told.clone()));
    let (first, dropped, blocks) = run(scheduler, async move {
        let first = (from >> in_parts(2, grep_numbered()) >> take(12) >> collect()).run().await;
        let now = (told.dropped(), told.blocks());
        for _ in 0..50 {
            yield_now().await;
        }
        assert_eq!(told.blocks(), now.1, "a worker goes on");
        (first.unwrap(), now.0, now.1)
    })
    .unwrap();
    assert_eq!((&first[..], dropped), (&b"1:ab\n2:abab\n"[..], 1));
    // The window, and the blocks of the twelve bytes.
    assert!(blocks <= 20, "{blocks}");
}

fn a_pipeline_that_is_dropped_cancels_its_workers(scheduler: Scheduler) {
    let told = Told::default();
    let from = FlowSource::new(Endless(told.clone()));
    run(scheduler, async move {
        let running = spawn((from >> in_parts(2, measures()) >> count()).run());
        for _ in 0..20 {
            yield_now().await;
        }
        running.cancel();
        assert!(running.await.is_err());
        while told.dropped() == 0 {
            yield_now().await;
        }
        assert_eq!(told.dropped(), 1);
    })
    .unwrap();
}

#[test]
fn a_file_is_read_side_by_side() {
    let path = std::env::temp_dir().join(format!("flow-parts-{}", std::process::id()));
    // A line that is longer than two blocks, one that ends with a block, and one without an end.
    let mut text = long_text();
    text.extend(vec![b'y'; 600_000]);
    text.extend_from_slice(b"ab\n");
    text.resize((1 << 20) - 1, b'\n');
    text.extend_from_slice(b"\nab\n\n");
    text.extend(long_text().repeat(9));
    std::fs::write(&path, &text).unwrap();
    let slow = (from_chunks([text]) >> grep_numbered()).collect();
    for workers in [0, 1, 2] {
        let (path, slow) = (path.clone(), slow.clone());
        let main = async move {
            for threads in [1, 2, 4] {
                let found = (flow::file(&path) >> in_parts(threads, grep_numbered()) >> collect()).run();
                assert!(found.await.unwrap() == slow, "{threads} threads on {workers} workers");
                let first = flow::file(&path).boxed() >> in_parts(threads, grep_numbered()) >> take(3);
                assert_eq!((first >> collect()).run().await.unwrap(), slow[..3]);
            }
        };
        match workers {
            0 => round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap(),
            n => work_stealing(n, |_| EventLoop::new(), main).unwrap(),
        }
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_that_cannot_be_read_tells_its_name() {
    let run = |main| round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    let missing = run(Box::pin(async {
        (flow::file("/no/such/file") >> in_parts(2, measures()) >> count()).run().await.unwrap_err()
    }) as std::pin::Pin<Box<dyn Future<Output = StageError>>>);
    assert_eq!((missing.stage(), missing.offset()), ("file", 0));
    // A directory can be opened, and not read.
    let named = run(Box::pin(async {
        let directory = flow::file(std::env::temp_dir()).named("the log");
        (directory >> in_parts(2, measures()) >> count()).run().await.unwrap_err()
    }));
    assert_eq!((named.stage(), named.offset()), ("the log", 0));
}

#[test]
fn the_result_is_the_same_in_every_order() {
    let text = b"ab\n\nx\nab ab\nlong line\nab".to_vec();
    let slow = (from_chunks([&text]) >> grep_numbered()).collect();
    selvedge_sim::simulate(0..300, move || {
        let (text, slow) = (text.clone(), slow.clone());
        async move {
            let blocks = || from_chunks(cut(&text, &[2, 0, 5]));
            let found = (blocks() >> in_parts(2, grep_numbered()) >> collect()).run().await;
            assert_eq!(found.unwrap(), slow);
            let first = (blocks() >> in_parts(3, grep_numbered()) >> take(3) >> collect()).run().await;
            assert_eq!(first.unwrap(), b"1:a");
            // A file of a simulated disk.
            selvedge_io::fs::write("text", text.clone()).await.unwrap();
            let found = (flow::file("text") >> in_parts(2, grep_numbered()) >> collect()).run().await;
            assert_eq!(found.unwrap(), slow);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_cut_of_any_text_gives_the_same(
        text in prop::collection::vec(prop::sample::select(b"ab\n\n\r".to_vec()), 0..60),
        at in prop::collection::vec(0usize..9, 1..5),
        threads in 1u32..5,
    ) {
        let blocks = || from_chunks(cut(&text, &at));
        let slow = ((blocks() >> grep_numbered()).collect(), (blocks() >> measures()).collect());
        let (found, lengths) = (
            (blocks() >> in_parts(threads, grep_numbered()) >> collect()).run(),
            (blocks() >> in_parts(threads, measures()) >> collect()).run(),
        );
        let fast = work_stealing(2, |_| Ok(selvedge_core::NoEvents::new()), async move {
            (found.await.unwrap(), lengths.await.unwrap())
        });
        prop_assert_eq!(fast.unwrap(), slow);
    }
}
