//! The programs of the suite between processes: over memory that they share, and over the MPI
//! library of the machine, under each `mpirun` that it has.
//!
//! Run as a test, this program starts itself as the ranks of jobs.

#[path = "suite/programs/mod.rs"]
mod programs;

use programs::all;
use selvedge_distributed::{DistributedError, ItemPlacement, RankStages, graph, on_rank};
use selvedge_flow::made;
use selvedge_mpi::{Communicator, ErrorClass, Ranks};
use selvedge_pipeline::{fold, lift121, naturals};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Says to a process that it is a rank, and what it runs.
const PROGRAM: &str = "SELVEDGE_TEST_DISTRIBUTED";

fn main() -> ExitCode {
    match std::env::var(PROGRAM).as_deref() {
        Ok("programs") => rank(every_program),
        Ok("departure") => rank(a_departure),
        Ok("departed stage") => rank(a_departed_stage),
        Ok(other) => panic!("no program is called {other}"),
        Err(_) => start_jobs(),
    }
}

/// Runs a program in this rank, and starts the others if `--ranks` says so.
fn rank<R>(program: fn(Communicator) -> R) -> ExitCode
where
    R: Future<Output = Result<(), DistributedError>> + Send + 'static,
{
    // A rank that waits for others is no standstill, however short it is.
    selvedge_core::observe::notice_standstill_after(Some(Duration::ZERO));
    let ended = selvedge_core::round_robin(Ranks::from_arguments(1).run(program)).expect("no deadlock");
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// All programs, one after the other.
async fn every_program(world: Communicator) -> Result<(), DistributedError> {
    for program in all() {
        let bits = (program.body)(world.clone()).await?;
        assert_eq!(bits, (world.rank() == 0).then(program.answer), "{}", program.name);
        if world.rank() == 0 {
            println!("{} has the bits of one rank", program.name);
        }
    }
    Ok(())
}

/// The process of a rank ends in the middle of a run: the others get errors.
async fn a_departure(world: Communicator) -> Result<(), DistributedError> {
    let ended = graph(&world, |graph| {
        let ranks = graph.ranks();
        let tags = graph.tags("tags", move |n: &u32| *n as usize % ranks);
        let items = graph.items::<u32, u32>("items", ItemPlacement::produced_on(|_| 0));
        graph.prescribe(tags, "count", move |n, step| {
            if n == 100 {
                // No destructor runs, and no other rank is told.
                std::process::exit(3);
            }
            step.put(items, n, n)?;
            step.put_tag(tags, n + 1)
        });
        graph.initialize_everywhere(|env| env.put_tag(tags, 0))?;
        graph.run().map(drop)
    });
    match ended.await {
        // The first to see it revokes the communicator of the graph.
        Err(DistributedError::Message(error))
            if matches!(error.class(), ErrorClass::Ended | ErrorClass::Revoked) =>
        {
            println!("rank {} has seen it", world.rank());
            Ok(())
        }
        other => panic!("rank {}: {other:?}", world.rank()),
    }
}

/// The process of a stage ends in the middle of a stream without end: the pipeline fails.
async fn a_departed_stage(world: Communicator) -> Result<(), DistributedError> {
    let mut stages = RankStages::new();
    let departs = stages.register("departs", || {
        lift121(|n: &u64| {
            if *n == 100_000 {
                std::process::exit(3);
            }
            *n
        })
    });
    let pool = stages.start(&world).await?;
    if world.rank() == 0 {
        let numbers = made(naturals()) >> on_rank(&pool, 1, departs);
        match (numbers >> fold((), |(), _: &u64| ())).run().await {
            Err(failure) => println!("rank 0 has seen it: {failure}"),
            Ok(()) => panic!("the numbers have no end"),
        }
    }
    // The rank that has ended takes no part in the end.
    assert!(pool.finish().await.is_err(), "rank {}", world.rank());
    Ok(())
}

fn start_jobs() -> ExitCode {
    let mut failed = 0;
    for ranks in ["2", "4"] {
        let mut command = itself("programs");
        command.args(["--ranks", ranks]);
        failed += check_programs("shared memory", ranks, command);
        // Debian's names of the two. Each is asked whether it is there.
        for (mpirun, options) in
            [("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"][..]), ("mpirun.mpich", &[])]
        {
            if Command::new(mpirun).arg("--version").output().is_ok() {
                let mut command = Command::new(mpirun);
                let program = std::env::current_exe().expect("the program has a path");
                command.args(options).args(["-n", ranks]).arg(program).env(PROGRAM, "programs");
                failed += check_programs(mpirun, ranks, command);
            }
        }
    }
    // 100 is a tag of rank 1.
    failed += check_text("departure", &["rank 0 has seen it", "rank 2 has seen it"]);
    failed += check_text("departed stage", &["rank 0 has seen it: departs: "]);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// This program as rank 0.
fn itself(program: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
    command.env(PROGRAM, program);
    command
}

/// Runs a program as three processes that share memory, and gives 1 if they do not write this.
fn check_text(program: &str, wanted: &[&str]) -> usize {
    let (_, text) = output(itself(program).args(["--ranks", "3"]));
    if wanted.iter().all(|wanted| text.contains(wanted)) {
        return 0;
    }
    println!("{program}: {wanted:?} was not written:\n{text}");
    1
}

/// Runs all programs in one job, and gives the number of jobs that failed.
fn check_programs(kind: &str, ranks: &str, mut command: Command) -> usize {
    let (succeeded, text) = output(&mut command);
    let right = text.lines().filter(|line| line.ends_with("has the bits of one rank")).count();
    if succeeded && right == all().count() {
        return 0;
    }
    println!("{kind}: {ranks} ranks had {right} of {} programs right:\n{text}", all().count());
    1
}

/// Whether a command has succeeded, and what it wrote.
fn output(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("the program starts");
    let [out, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), out + &errors)
}
