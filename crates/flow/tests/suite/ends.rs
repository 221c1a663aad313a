//! Sources and targets: what comes through, what fails where, and what is closed when.

use proptest::prelude::{ProptestConfig, Strategy, prop, prop_assert_eq, proptest};
use selvedge_core::{round_robin_over, spawn_local};
use selvedge_flow::{self as flow, FlowSource, FlowTarget, Source, Target};
use selvedge_io::net::UnixStream;
use selvedge_io::process::Command;
use selvedge_io::{EventLoop, pipe, time};
use selvedge_pipeline::*;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A name for a file that no other test has.
fn place(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("flow-{}-{count}-{name}", std::process::id()))
}

fn run<F: Future + 'static>(main: F) -> F::Output {
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

#[test]
fn a_file_goes_through_stages_into_a_file() {
    let (from, to) = (place("from"), place("to"));
    let text: Vec<u8> = (0..100_000u32).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    std::fs::write(&from, &text).unwrap();
    let (source, target) = (from.clone(), to.clone());
    run(async move {
        let sevens = group_by(whole_line()) >> select(any(substring(b"77"))) >> concatenate();
        (flow::file(&source) >> sevens >> flow::ahead(2) >> flow::create(&target)).run().await.unwrap();
    });
    let slow: Vec<u8> = text
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.windows(2).any(|pair| pair == b"77"))
        .flatten()
        .copied()
        .collect();
    assert_eq!(std::fs::read(&to).unwrap(), slow);
    std::fs::remove_file(from).unwrap();
    std::fs::remove_file(to).unwrap();
}

#[test]
fn an_empty_file_is_made_of_nothing() {
    let to = place("empty");
    let target = to.clone();
    run(async move { (from_chunks([""; 0]) >> flow::create(&target)).run().await.unwrap() });
    assert_eq!(std::fs::read(&to).unwrap(), b"");
    std::fs::remove_file(to).unwrap();
}

#[test]
fn a_file_that_is_not_there_fails_with_its_path() {
    let failed =
        run(async { (flow::file("/no/such/file") >> flow::ahead(1) >> count()).run().await.unwrap_err() });
    assert_eq!((failed.stage(), failed.offset()), ("file", 0));
    assert!(failed.to_string().contains("/no/such/file"), "{failed}");
}

#[test]
fn what_came_before_a_failure_is_written() {
    let to = place("before");
    let path = to.clone();
    let failed = run(async move {
        let records = from_chunks(["a,b\nc,\"d\"\n", "e,f\"g\nh,i\n"]) >> csv::records(b',');
        (records >> csv::encode(b';') >> flow::create(&path)).run().await.unwrap_err()
    });
    assert_eq!((failed.stage(), failed.item(), failed.offset()), ("csv::records", 3, 13));
    assert_eq!(std::fs::read(&to).unwrap(), b"a;b\nc;d\n");
    std::fs::remove_file(to).unwrap();
}

#[test]
fn a_slow_socket_keeps_no_item_back() {
    run(async {
        let (here, there) = UnixStream::pair().unwrap();
        let (back, answers) = UnixStream::pair().unwrap();
        let upper = lift121(|c: &u8| c.to_ascii_uppercase());
        let running = spawn_local((flow::read(here) >> flow::ahead(4) >> upper >> flow::write(back)).run());
        let mut answer = [0; 4];
        for word in [b"warp", b"weft"] {
            there.write_all(word).await.unwrap();
            // The answer comes while the source waits for more.
            answers.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer.to_vec(), word.to_ascii_uppercase());
        }
        drop(there);
        running.await.unwrap().unwrap();
        // The end is told too.
        assert_eq!(answers.read(&mut answer).await.unwrap(), 0);
    });
}

#[test]
fn a_reader_that_is_gone_stops_the_pipeline() {
    run(async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let endless = from_fn(4096, |block: &mut [u8]| {
            block.fill(b'x');
            4096
        });
        let running = spawn_local((endless >> flow::ahead(1) >> flow::write(sender)).run());
        let mut some = [0; 100];
        receiver.read(&mut some).await.unwrap();
        drop(receiver);
        running.await.unwrap().unwrap();
    });
}

#[test]
fn a_process_in_the_middle_reads_and_writes_at_once() {
    let bytes = run(async {
        // More than the pipes hold, so that a cat that is not read would block the writer.
        let much = from_fn(1 << 16, {
            let mut left = 32;
            move |block: &mut [u8]| {
                left -= 1;
                block.fill(b'y');
                if left >= 0 { block.len() } else { 0 }
            }
        });
        (much >> flow::through(Command::new("cat")) >> count()).run().await.unwrap()
    });
    assert_eq!(bytes, 32 << 16);
}

#[test]
fn a_process_that_fails_is_told_and_one_that_is_not_wanted_is_killed() {
    run(async {
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo warp; exit 3"]);
        let failed = (flow::command(sh) >> collect()).run().await.unwrap_err();
        assert_eq!(failed.to_string(), "command: item 6, offset 5: sh: exit status: 3");
        // `yes` writes without end, and sleeps for ever if its killer does not come.
        let first = (flow::command(Command::new("yes")) >> group_by(line()) >> take(2) >> count()).run();
        let first = time::timeout(Duration::from_secs(60), first).await.unwrap();
        assert_eq!(first.unwrap(), 2);
        let through = from_chunks(["warp"]) >> flow::through(Command::new("false")) >> count();
        assert_eq!(through.run().await.unwrap_err().stage(), "command");
        let missing = (flow::command(Command::new("no-such-program")) >> count()).run().await;
        assert!(missing.unwrap_err().to_string().contains("no-such-program"));
    });
}

/// A source of no bytes that tells when it is closed.
struct Closes(Arc<AtomicU32>);

impl flow::Source<u8> for Closes {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        Ok(None)
    }

    async fn close(self) {
        time::sleep(Duration::from_millis(1)).await;
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_program_that_does_not_start_closes_what_is_upstream() {
    let closed = Arc::new(AtomicU32::new(0));
    let upstream = flow::FlowSource::new(Closes(closed.clone()));
    let failed = run(async {
        let nowhere = flow::through(Command::new("no-such-program"));
        (upstream >> nowhere >> count()).run().await.unwrap_err()
    });
    assert!(failed.to_string().contains("no-such-program"), "{failed}");
    assert_eq!(closed.load(Ordering::SeqCst), 1);
}

/// A source that is idle for ever, and tells when it is closed.
struct Idle(Closes);

impl flow::Source<u8> for Idle {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        std::future::pending().await
    }

    async fn close(self) {
        self.0.close().await;
    }
}

/// The program closes its output and lives on, so that `next` waits for its end.
#[test]
fn a_supply_whose_next_was_dropped_at_the_end_of_a_process_is_closed() {
    let closed = Arc::new(AtomicU32::new(0));
    let closes = Closes(closed.clone());
    let silent = || {
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo $$; exec >&-; exec sleep 600"]);
        sh
    };
    run(async move {
        let upstream = flow::FlowSource::new(Idle(closes));
        let through = (upstream >> flow::through(silent())).boxed().into_inner();
        for mut source in [flow::command(silent()).boxed().into_inner(), through] {
            let process = String::from_utf8(source.next().await.unwrap().unwrap().to_vec()).unwrap();
            let process = PathBuf::from(format!("/proc/{}", process.trim()));
            assert!(process.exists());
            let waits = time::timeout(Duration::from_millis(50), async { source.next().await.map(|_| ()) });
            assert!(waits.await.is_err(), "`next` waits for the end of the program");
            source.close().await;
            assert!(!process.exists(), "the program is waited for");
        }
    });
    assert_eq!(closed.load(Ordering::SeqCst), 1);
}

/// Upstream is idle for ever: a pipe that stays open.
#[test]
fn a_process_that_ends_before_its_input_does_ends_the_pipeline() {
    let bytes = run(async {
        let (writer, reader) = pipe::pipe().unwrap();
        writer.write_all(b"warp").await.unwrap();
        let mut head = Command::new("head");
        head.args(["-c", "4"]);
        let first = (flow::read(reader) >> flow::through(head) >> count()).run();
        let first = time::timeout(Duration::from_secs(60), first).await.unwrap().unwrap();
        drop(writer);
        first
    });
    assert_eq!(bytes, 4);
}

#[test]
fn a_failure_upstream_of_a_process_is_told() {
    let failed = run(async {
        let fails = try_lift121(|c: &u8| if *c == b'!' { Err("a mark") } else { Ok(*c) });
        (from_chunks(["warp!"]) >> fails >> flow::through(Command::new("cat")) >> collect()).run().await
    });
    assert_eq!(failed.unwrap_err().to_string(), "try_lift121: item 5, offset 4: a mark");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn streams_and_readers_are_what_the_stages_yield(items in prop::collection::vec(any_byte(), 0..3000), most in 1..400usize) {
        let cut: Vec<Vec<u8>> = items.chunks(most).map(<[u8]>::to_vec).collect();
        let stages = || lift121(|n: &u8| n.wrapping_add(1)) >> filter(|n: &u8| !n.is_multiple_of(3));
        let slow = (from_chunks(cut.clone()) >> stages()).collect();
        let stream = (flow::made(from_chunks(cut.clone())) >> stages()).into_stream();
        let (again, read) = futures::executor::block_on(async {
            let collected = (flow::stream(stream) >> lift121(|item: &Result<u8, StageError>| item.clone().unwrap()) >> collect()).run().await;
            let reader = (flow::made(from_chunks(cut)) >> stages()).into_read();
            let read = (flow::async_read(reader) >> collect()).run().await;
            (collected.unwrap(), read.unwrap())
        });
        prop_assert_eq!(&again, &slow);
        prop_assert_eq!(&read, &slow);
    }
}

fn any_byte() -> impl Strategy<Value = u8> {
    0..=255u8
}

#[test]
fn a_failure_comes_out_of_a_stream_and_of_a_reader() {
    use futures::{AsyncReadExt, StreamExt};
    let fails =
        || from_chunks(["ab!c"]) >> try_lift121(|c: &u8| if *c == b'!' { Err("a mark") } else { Ok(*c) });
    futures::executor::block_on(async {
        let items: Vec<_> = flow::made(fails()).into_stream().collect().await;
        assert_eq!(items.len(), 3);
        assert_eq!(items[1].as_ref().unwrap(), &b'b');
        assert_eq!(items[2].as_ref().unwrap_err().item(), 3);
        let mut read = Vec::new();
        let error = flow::made(fails()).into_read().read_to_end(&mut read).await.unwrap_err();
        assert_eq!(
            (&read[..], error.to_string().as_str()),
            (&b"ab"[..], "try_lift121: item 3, offset 2: a mark")
        );
    });
}

/// A source of numbered bytes, and whether it says that the next ones are likely to be there.
struct Bytes {
    next: u8,
    prompt: bool,
    block: [u8; 1],
}

impl Source<u8> for Bytes {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        if self.next == 9 {
            return Err(StageError::new("bytes", StreamPlace::default(), "no more"));
        }
        self.next += 1;
        self.block = [self.next];
        Ok(Some(&self.block))
    }

    fn is_prompt(&self) -> bool {
        self.prompt
    }
}

/// A target that keeps what each call brought, and wants three bytes at once.
struct Calls(Arc<Mutex<Vec<Vec<u8>>>>);

impl Target<u8> for Calls {
    const GATHERS: usize = 3;

    async fn put(&mut self, items: &mut Vec<u8>) -> Result<Flow, StageError> {
        self.0.lock().unwrap().push(items.clone());
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn small_outputs_are_gathered_while_the_source_is_prompt() {
    let calls_of = |prompt| {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let source = FlowSource::new(Bytes { next: 0, prompt, block: [0] }).boxed();
        let odd = filter(|byte: &u8| byte % 2 == 1);
        let failed = run((source >> odd >> FlowTarget::new(Calls(calls.clone()))).run());
        assert_eq!(failed.unwrap_err().stage(), "bytes");
        let calls = calls.lock().unwrap();
        calls.clone()
    };
    // What came before the failure arrives.
    assert_eq!(calls_of(true), [vec![1, 3, 5], vec![7, 9]]);
    assert_eq!(calls_of(false), [vec![1], vec![3], vec![5], vec![7], vec![9], vec![]]);
}

/// The futures of pipelines that begin with a literal are `Send`, so `run` takes them.
#[test]
fn a_literal_stands_before_any_stage_that_waits() {
    fn ran<F: Future + Send + 'static>(main: F) -> F::Output {
        run(main)
    }
    let sorted = ran(async {
        let words = from_chunks(["weft\n", "warp\n"]);
        (words >> flow::through(Command::new("sort")) >> collect()).run().await
    });
    assert_eq!(sorted.unwrap(), b"warp\nweft\n");
    let upper = || lift121(u8::to_ascii_uppercase);
    let staged = ran(async move {
        let words = from_chunks(["weft\n", "warp\n"]) >> upper();
        (words >> flow::through(Command::new("sort")) >> flow::ahead(1) >> upper() >> collect()).run().await
    });
    assert_eq!(staged.unwrap(), b"WARP\nWEFT\n");
    let ahead = ran(async { (from_chunks(["ab", "c"]) >> flow::ahead(2) >> collect()).run().await });
    assert_eq!(ahead.unwrap(), b"abc");
    let lines = ran(async move {
        let lines = from_chunks(["a\nb\n"]) >> upper() >> group_by(line());
        (lines >> flow::ahead(1) >> concatenate() >> collect()).run().await
    });
    assert_eq!(lines.unwrap(), b"AB");
    let made = ran(async { (flow::made(from_chunks(["a"])) >> collect()).run().await });
    assert_eq!(made.unwrap(), b"a");
    let target = place("literal");
    let path = target.clone();
    ran(async move { (from_chunks(["a"]) >> flow::create(&path)).run().await }).unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"a");
    std::fs::remove_file(target).unwrap();
}
