//! The cases of the suite between processes that `mpirun` has started, with the MPI library of the
//! machine.
//!
//! Run as a test, this program starts jobs of itself: one for each number of ranks that a case asks
//! for. Without an `mpirun` it says so and passes.

#[path = "suite/conformance/mod.rs"]
mod conformance;

use conformance::all;
use selvedge_mpi::{Communicator, Error, ErrorClass, Ranks};
use std::collections::BTreeSet;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Says to a process that it is a rank, and what it runs.
const PROGRAM: &str = "SELVEDGE_TEST_LAUNCHED";

/// How long a job may run: far more than any needs.
const JOB_LIMIT: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    match std::env::var(PROGRAM).as_deref() {
        Ok("cases") => run(every_case),
        Ok("failure") => run(a_failure),
        Ok(other) => panic!("no program is called {other}"),
        Err(_) => start_jobs(),
    }
}

/// Runs a program in this rank.
fn run<R>(program: fn(Communicator) -> R) -> ExitCode
where
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    let ended = selvedge_core::round_robin(Ranks::new(1).run(program)).expect("no deadlock");
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// The cases for this number of ranks, each in a communicator of its own.
async fn every_case(world: Communicator) -> Result<(), Error> {
    for case in all().filter(|case| case.ranks == world.size()) {
        if world.rank() == 0 {
            println!("case {}", case.name);
        }
        (case.body)(world.dup().await?).await?;
        world.barrier().await?;
    }
    Ok(())
}

/// A rank panics: the others get errors, and the job ends by itself.
async fn a_failure(world: Communicator) -> Result<(), Error> {
    if world.rank() == 1 {
        panic!("the thread broke");
    }
    let error = world.recv::<i32>(1, ()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    assert!(error.to_string().contains("rank 1 has failed"), "{error}");
    let error = world.ssend(1, (), 1).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    println!("rank {} has seen it", world.rank());
    Ok(())
}

fn start_jobs() -> ExitCode {
    let mut tried = 0;
    let mut failed = 0;
    // Debian's names of the two. Each is asked whether it is there.
    for (mpirun, options) in
        [("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"][..]), ("mpirun.mpich", &[])]
    {
        if Command::new(mpirun).arg("--version").output().is_ok() {
            tried += 1;
            failed += start_jobs_with(mpirun, options);
        }
    }
    if tried == 0 {
        println!("no MPI is installed, so no case ran between processes: install openmpi-bin or mpich");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all jobs with one `mpirun`, and gives the number of those that failed.
fn start_jobs_with(mpirun: &str, options: &[&str]) -> usize {
    let job = |program: &str, ranks: usize| {
        let mut command = Command::new(mpirun);
        command.args(options).arg("-n").arg(ranks.to_string());
        output(command.arg(std::env::current_exe().expect("the program has a path")).env(PROGRAM, program))
    };
    let mut failed = 0;
    let sizes: BTreeSet<usize> = all().map(|case| case.ranks).collect();
    for ranks in sizes {
        let (succeeded, text) = job("cases", ranks);
        let count = all().filter(|case| case.ranks == ranks).count();
        let ran = text.lines().filter(|line| line.starts_with("case ")).count();
        if !succeeded || ran != count {
            println!("{mpirun}: {ranks} ranks have failed in case {ran} of {count}:\n{text}");
            failed += 1;
        }
    }
    let (succeeded, text) = job("failure", 3);
    let seen = ["rank 0 has seen it", "rank 2 has seen it", "rank 1 has failed: "];
    if succeeded || !seen.iter().all(|seen| text.contains(seen)) {
        println!("{mpirun}: a failure was not told:\n{text}");
        failed += 1;
    }
    failed
}

/// Runs a job: whether it succeeded, and what it wrote. A job that does not end is killed.
fn output(command: &mut Command) -> (bool, String) {
    let written = std::env::temp_dir().join(format!("selvedge-launched-{}", std::process::id()));
    let file = std::fs::File::create(&written).expect("the file can be made");
    let errors = file.try_clone().expect("a descriptor is left");
    let mut child = command.stdout(file).stderr(errors).spawn().expect("mpirun starts");
    let began = Instant::now();
    let succeeded = loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break status.success();
        }
        if began.elapsed() > JOB_LIMIT {
            child.kill().expect("the child is ours");
            child.wait().expect("the child is ours");
            break false;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = std::fs::read_to_string(&written).unwrap_or_default();
    let _ = std::fs::remove_file(&written);
    (succeeded, text)
}
