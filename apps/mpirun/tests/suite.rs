//! Jobs that `selvedge-mpirun` starts. The ranks are this program again, with the name of a case.

use selvedge::mpi::{self, Communicator, Error};
use std::io::Write;
use std::process::{Command, ExitCode, Output, Stdio};

/// Says to a process which program it is.
const PROGRAM: &str = "SELVEDGE_TEST_PROGRAM";

fn main() -> ExitCode {
    match std::env::var(PROGRAM).as_deref() {
        Ok("sum") => run(sum),
        Ok("panic") => run(panics),
        Ok("input") => run(input),
        Ok("waits") => run(waits),
        Ok(other) => panic!("no program is called {other}"),
        Err(_) => {
            for test in [
                all_ranks_are_one_job,
                a_rank_that_fails_is_told,
                rank_0_reads_the_input,
                a_signal_is_passed_on,
                a_program_that_is_no_rank,
                a_program_that_is_missing,
            ] {
                test();
            }
            ExitCode::SUCCESS
        }
    }
}

fn run<R>(program: fn(Communicator) -> R) -> ExitCode
where
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    match selvedge::run_local(mpi::run(1, program)).expect("no deadlock") {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

async fn sum(world: Communicator) -> Result<(), Error> {
    let sum = world.allreduce(world.rank(), mpi::op::sum).await?;
    println!("of {} ranks\nthe sum is {sum}", world.size());
    Ok(())
}

async fn panics(world: Communicator) -> Result<(), Error> {
    if world.rank() == 2 {
        std::process::exit(7);
    }
    let error = world.recv::<i32>(2, ()).await.unwrap_err();
    println!("{error}");
    Ok(())
}

async fn input(world: Communicator) -> Result<(), Error> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the input can be read");
    print!("{}:{line}", line.len());
    world.barrier().await
}

/// Each rank says that it is there, and waits for ever.
async fn waits(world: Communicator) -> Result<(), Error> {
    world.barrier().await?;
    println!("ready");
    world.recv::<()>(mpi::ANY, ()).await.map(drop)
}

fn mpirun(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-mpirun"));
    command.args(words).arg(std::env::current_exe().expect("the program has a path")).env(PROGRAM, program);
    command
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).expect("the ranks write text");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines.sort();
    lines
}

fn all_ranks_are_one_job() {
    let output = mpirun("sum", &["-n", "3"]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let expected = [0, 1, 2].map(|rank| [format!("[{rank}] of 3 ranks"), format!("[{rank}] the sum is 3")]);
    assert_eq!(lines(&output), expected.concat());
    let output = mpirun("sum", &["-n", "1", "--plain"]).output().expect("it starts");
    assert_eq!(lines(&output), ["of 1 ranks", "the sum is 0"]);
}

fn a_rank_that_fails_is_told() {
    let output = mpirun("panic", &["-n", "3"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("selvedge-mpirun: rank 2 has ended with exit status: 7"), "{errors}");
    let lines = lines(&output);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("rank 2 has failed: no message from rank 2")), "{lines:?}");
}

fn rank_0_reads_the_input() {
    let mut command = mpirun("input", &["-n", "2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("it is piped").write_all(b"warp\n").expect("rank 0 reads");
    let output = child.wait_with_output().expect("the child is ours");
    assert_eq!(lines(&output), ["[0] 5:warp", "[1] 0:"]);
}

fn a_signal_is_passed_on() {
    use std::io::{BufRead, BufReader};
    let mut child = mpirun("waits", &["-n", "2"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    for _ in 0..2 {
        line.clear();
        reader.read_line(&mut line).expect("the ranks write");
        assert!(line.ends_with("] ready\n"), "{line}");
    }
    let killed = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status();
    assert!(killed.expect("there is a kill").success());
    let status = child.wait().expect("the child is ours");
    assert_eq!(status.code(), Some(128 + 15));
}

fn a_program_that_is_no_rank() {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge-mpirun"))
        .args(["-n", "2", "echo", "weft"])
        .output()
        .expect("it starts");
    assert_eq!(lines(&output), ["[0] weft", "[1] weft"]);
}

fn a_program_that_is_missing() {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge-mpirun"))
        .args(["-n", "2", "/nowhere/program"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(127), "{output:?}");
}
