//! Processes that ranks spawn: over shared memory, and under each MPI of the machine. The programs
//! of the ranks are first, and what starts and judges the jobs is last.

use super::installed::Installed;
use super::{JOB_LIMIT, WAIT, itself, output, ranks_of, run, wrapped};
use rustix::process::{Signal, getpid, kill_process};
use selvedge_mpi::processes::LocalJob;
use selvedge_mpi::{Communicator, Error, ErrorClass, InterRoot, op};
use std::future::{pending, ready};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Runs the program of this name. `None` if there is none.
pub(crate) fn program(name: &str) -> Option<ExitCode> {
    Some(match name {
        "spawner" => run(spawns_programs),
        "spawned" => run(is_spawned),
        "family" => run(has_a_family),
        "child" => run(is_a_child),
        "grandchild" => run(is_a_grandchild),
        "apart" => run(is_apart),
        "loss" => run(|world| loses_rank_1(world, 0)),
        "lossofroot" => run(|world| loses_rank_1(world, 1)),
        "left" => run(is_left),
        "cut" => run(is_cut_short),
        "idle" => run(|_| ready(Ok(()))),
        _ => return None,
    })
}

/// Two ranks spawn three processes, twice. Those of the second time do not all end well.
async fn spawns_programs(world: Communicator) -> Result<(), Error> {
    assert!(world.parent().is_none());
    let command = |_| itself("spawned");
    for ends_well in [true, false] {
        let spawned = world.spawn_program(1, 3, command).await?;
        assert_eq!((spawned.rank(), spawned.size(), spawned.remote_size()), (world.rank(), 2, 3));
        let sum = spawned.reduce(InterRoot::Here(0), || 0_usize, op::sum).await?;
        assert_eq!(sum, (world.rank() == 0).then_some(1 + 2 + 3));
        // Longer than a ring.
        spawned.send_slice(2, (), &vec![world.rank() as u64; 50_000]).await?;
        let (echo, _) = spawned.recv_vec::<u64>(2, ()).await?;
        assert_eq!(echo, vec![world.rank() as u64; 50_000]);
        let all = spawned.merge(false).await?;
        assert_eq!((all.rank(), all.size()), (world.rank(), 5));
        assert_eq!(all.allreduce(1 << all.rank(), op::sum).await?, 31);
        let ends = all.bcast(0, || ends_well).await?;
        assert_eq!(ends, ends_well);
        if !ends_well {
            let error = spawned.recv::<u8>(1, ()).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended, "{error}");
            assert!(error.to_string().contains("rank 1 has failed"), "{error}");
        } else {
            spawned.disconnect().await?;
            let error = all.recv::<u8>(2, ()).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended, "{error}");
        }
    }
    let error = world.spawn_program(0, 1, |_| Command::new("/no/such/program")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Join, "{error}");
    println!("rank {} has spawned", world.rank());
    Ok(())
}

/// A process that was spawned.
async fn is_spawned(world: Communicator) -> Result<(), Error> {
    println!("process {} was spawned", std::process::id());
    let parent = world.parent().expect("the rank was spawned");
    assert_eq!((world.size(), parent.remote_size()), (3, 2));
    assert_eq!(world.allreduce(1 << world.rank(), op::sum).await?, 7);
    parent.reduce(InterRoot::There(0), || world.rank() + 1, op::sum).await?;
    if world.rank() == 2 {
        for from in 0..2 {
            let (elements, _) = parent.recv_vec::<u64>(from, ()).await?;
            parent.send_slice(from, (), &elements).await?;
        }
    }
    let all = parent.merge(true).await?;
    assert_eq!(all.rank(), 2 + world.rank());
    assert_eq!(all.allreduce(1 << all.rank(), op::sum).await?, 31);
    if all.bcast(0, || false).await? {
        parent.disconnect().await?;
        // The parents have left, and the world is as it was.
        assert_eq!(world.allreduce(1 << world.rank(), op::sum).await?, 7);
    } else if world.rank() == 1 {
        // No destructor runs.
        std::process::exit(3);
    }
    println!("spawned rank {} ends", world.rank());
    Ok(())
}

/// Each rank spawns a process by itself, and that one another one.
async fn has_a_family(world: Communicator) -> Result<(), Error> {
    let child = world.alone().spawn_program(0, 1, |_| itself("child")).await?;
    assert_eq!(child.recv::<usize>(0, ()).await?.0, 2);
    // The two worlds are as they were.
    assert_eq!(world.allreduce(1, op::sum).await?, world.size());
    println!("rank {} has a family", world.rank());
    Ok(())
}

/// A process that was spawned and spawns another one.
async fn is_a_child(world: Communicator) -> Result<(), Error> {
    println!("process {} was spawned", std::process::id());
    let child = world.spawn_program(0, 1, |_| itself("grandchild")).await?;
    let below = child.recv::<usize>(0, ()).await?.0;
    world.parent().expect("the rank was spawned").send(0, (), below + 1).await
}

async fn is_a_grandchild(world: Communicator) -> Result<(), Error> {
    println!("process {} was spawned", std::process::id());
    world.parent().expect("the rank was spawned").send(0, (), 1_usize).await
}

/// The ranks of two hosts cannot spawn together, and no process is started; each alone can.
async fn is_apart(world: Communicator) -> Result<(), Error> {
    for root in 0..2 {
        let command = |_| -> Command { panic!("no command is asked for") };
        let error = world.spawn_program(root, 2, command).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Unsupported, "spawn_program"), "{error}");
        let other = format!("rank {} is on another machine than the root, rank {root}", 1 - root);
        assert!(error.to_string().contains(&other), "{error}");
    }
    println!("rank {} has been refused", world.rank());
    has_a_family(world).await
}

/// Three ranks spawn two processes, and the process of rank 1 is killed then. If it is not the
/// root, the processes live.
async fn loses_rank_1(world: Communicator, root: usize) -> Result<(), Error> {
    let spawned = world.spawn_program(root, 2, |_| itself("left")).await?;
    if world.rank() == 1 {
        for rank in 0..2 {
            spawned.recv::<()>(rank, ()).await?;
        }
        kill_process(getpid(), Signal::KILL).expect("the rank runs");
    }
    if root != 1 {
        for rank in 0..2 {
            spawned.recv::<()>(rank, ()).await?;
        }
        println!("rank {} has heard of its processes", world.rank());
    } else {
        let mut error = None;
        // A process may have told that it has heard of the end, before it has ended too.
        for _ in 0..2 {
            error = error.or(spawned.recv::<()>(0, ()).await.err());
        }
        let error = error.expect("the process ends with the root");
        assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    }
    let error = world.recv::<u8>(1, ()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    println!("rank {} goes on", world.rank());
    Ok(())
}

/// A process of which a parent is killed.
async fn is_left(world: Communicator) -> Result<(), Error> {
    println!("process {} was spawned", std::process::id());
    let parent = world.parent().expect("the rank was spawned");
    parent.send(1, (), ()).await?;
    let error = parent.recv::<u8>(1, ()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    println!("spawned rank {} has heard of the end", world.rank());
    for rank in [0, 2] {
        parent.send(rank, (), ()).await?;
    }
    Ok(())
}

/// One of three ranks is killed while they spawn.
async fn is_cut_short(world: Communicator) -> Result<(), Error> {
    let wait: u64 = std::env::var(WAIT).expect("the job sets it").parse().expect("a number");
    let is_killed = world.rank() as u64 == wait % 3;
    world.barrier().await?;
    if is_killed {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(wait));
            let _ = kill_process(getpid(), Signal::KILL);
        });
    }
    let spawned = world.spawn_program(1, 2, |_| itself("idle")).await;
    if is_killed {
        pending::<()>().await;
    }
    if let Err(error) = spawned {
        assert!(matches!(error.class(), ErrorClass::Ended | ErrorClass::Join), "{error}");
    }
    println!("rank {} goes on", world.rank());
    Ok(())
}

/// What a job has done.
struct JobReport {
    succeeded: bool,
    text: String,
    /// What is wrong with every job.
    fault: Option<&'static str>,
}

impl JobReport {
    /// Runs a job.
    fn of(job: impl FnOnce() -> (bool, String)) -> JobReport {
        let began = Instant::now();
        let (succeeded, text) = job();
        let fault = if began.elapsed() > JOB_LIMIT {
            Some("it has not ended")
        } else if !all_are_gone(&text) {
            Some("a process that was spawned has outlived it")
        } else {
            None
        };
        JobReport { succeeded, text, fault }
    }

    fn count(&self, words: &str) -> usize {
        self.text.matches(words).count()
    }

    /// 0 if all is right with the job, and 1 if not.
    fn judged(&self, kind: &str, name: &str, is_right: bool) -> usize {
        if is_right && self.fault.is_none() {
            return 0;
        }
        let fault = self.fault.unwrap_or("it went another way");
        println!("{kind}: {name}, {fault}:\n{}", self.text);
        1
    }
}

/// Whether the processes that a text names have ended. They may take some time for it.
fn all_are_gone(text: &str) -> bool {
    let me = std::env::current_exe().expect("the program has a path");
    let numbers = text.split("process ").filter_map(|words| words.split_once(" was spawned"));
    let mut lives = numbers.map(|(number, _)| format!("/proc/{number}/exe"));
    let began = Instant::now();
    lives.all(|path| {
        while std::fs::read_link(&path).is_ok_and(|program| program == me) {
            if began.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    })
}

/// Jobs of processes that share memory. Gives the number of what failed.
pub(crate) fn over_shared_memory() -> usize {
    let job = |program: &str, ranks, wait| {
        let job = LocalJob::new(ranks).expect("the kernel has memory");
        output(ranks_of(&job, program, wait), |rank| job.departed(rank))
    };
    let kind = "shared memory";
    spawns(kind, |program, ranks| job(program, ranks, None)) + deaths(kind, 25, job)
}

/// Jobs under an MPI. Gives the number of what failed.
pub(crate) fn over_mpi(mpi: &Installed) -> usize {
    let kind = mpi.to_string();
    let job = |options, program: &str, ranks, wait: Option<u64>| {
        let mut command = itself(program);
        if let Some(wait) = wait {
            command.env(WAIT, wait.to_string());
        }
        output(vec![wrapped(mpi, options, ranks, command)], |_| {})
    };
    let mut failed = spawns(&kind, |program, ranks| job(&[], program, ranks, None));
    for name in ["loss", "lossofroot"] {
        // The launcher ends the job, and the processes end with their root.
        let report = JobReport::of(|| job(&[], name, 3, None));
        failed += report.judged(&kind, name, !report.succeeded);
    }
    if let Some(options) = mpi.bears_deaths {
        failed += deaths(&kind, 6, |program, ranks, wait| job(options, program, ranks, wait));
    }
    failed
}

/// What a job on two hosts has done. Gives the number of what failed.
pub(crate) fn on_two_hosts(mpi: &Installed, (succeeded, text): (bool, String)) -> usize {
    let report = JobReport { succeeded, text, fault: None };
    let is_right = succeeded && report.count(" has been refused") == 2 && report.count(" has a family") == 2;
    report.judged(&mpi.to_string(), "spawning on two hosts", is_right)
}

fn spawns(kind: &str, job: impl Fn(&str, usize) -> (bool, String)) -> usize {
    let report = JobReport::of(|| job("spawner", 2));
    // One process of the second spawn, and one that is no program, have failed: so has the run.
    let is_right = !report.succeeded
        && report.count(" has spawned") == 2
        && report.count("spawned rank ") == 5
        && report.text.contains("of the ranks that it spawned, ");
    let failed = report.judged(kind, "spawned programs", is_right);
    let report = JobReport::of(|| job("family", 2));
    let is_right =
        report.succeeded && report.count(" has a family") == 2 && report.count(" was spawned") == 4;
    failed + report.judged(kind, "programs spawned by spawned ones", is_right)
}

/// Ranks that are killed after they have spawned, and while they do so, where the others bear it.
fn deaths(kind: &str, moments: u64, job: impl Fn(&str, usize, Option<u64>) -> (bool, String)) -> usize {
    let report = JobReport::of(|| job("loss", 3, None));
    let is_right = report.count(" has heard of the end") == 2
        && report.count(" has heard of its processes") == 2
        && report.count(" goes on") == 2;
    let mut failed = report.judged(kind, "a parent that is killed", is_right);
    let report = JobReport::of(|| job("lossofroot", 3, None));
    failed += report.judged(kind, "a root that is killed", report.count(" goes on") == 2);
    for number in 0..moments {
        // The moments are closest at the begin. Each rank is killed in one third of the jobs.
        let wait = 30_000 * number * number / (moments * moments) / 3 * 3 + number % 3;
        let report = JobReport::of(|| job("cut", 3, Some(wait)));
        let name = format!("a rank killed {wait} us after the begin of a spawn");
        failed += report.judged(kind, &name, report.count(" goes on") == 2);
    }
    failed
}
