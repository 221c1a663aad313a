//! The cases of the suite between processes: over memory that they share, and over the MPI library
//! of the machine, with each MPI that `installed/mod.rs` finds.
//!
//! Run as a test, this program starts jobs of itself: one for each number of ranks that a case asks
//! for. Without an MPI it says so, and runs those over shared memory.

mod cluster;
#[path = "suite/conformance/mod.rs"]
mod conformance;
mod installed;
mod spawned;

use cluster::Cluster;
use conformance::all;
use installed::{Installed, NONE, NONE_BEARS_DEATHS, installed};
use rustix::process::{Pid, Signal, getpid, kill_process};
use selvedge_core::sleep;
use selvedge_io::EventLoop;
use selvedge_mpi::processes::LocalJob;
use selvedge_mpi::{Communicator, Error, ErrorClass, Functions, Port, Ranks, op};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Says to a process that it is a rank, and what it runs.
const PROGRAM: &str = "SELVEDGE_TEST_LAUNCHED";

/// Says to the ranks that are killed for how long they run, in microseconds.
const WAIT: &str = "SELVEDGE_TEST_WAIT";

/// Says to jobs that meet at which socket.
const SOCKET: &str = "SELVEDGE_TEST_SOCKET";

/// How long a job may run: far more than any needs.
const JOB_LIMIT: Duration = Duration::from_secs(90);

/// All cases of two ranks take more frames than this between two hosts.
const FRAMES_MIN: u64 = 500;

/// The jobs over an MPI of which two ranks are killed, each at another moment.
const DEATHS: u64 = 6;

fn main() -> ExitCode {
    match std::env::var(PROGRAM).as_deref() {
        Ok("cases") => run(every_case),
        Ok("failure") => run(a_failure),
        Ok("stop") => run(a_stop),
        Ok("departure") => run(a_departure),
        Ok("itself") => starts_itself(),
        Ok("checked") => run_with(Ranks::new(1).checked(), a_mismatch),
        Ok("recovery") => run(a_recovery),
        Ok("builds") => run(other_builds),
        Ok("server") => run(serves_other_worlds),
        Ok("client") => run(asks_another_world),
        Ok("relay") => {
            cluster::relay();
            ExitCode::SUCCESS
        }
        Ok(other) => spawned::program(other).unwrap_or_else(|| panic!("no program is called {other}")),
        Err(_) => start_jobs(),
    }
}

/// Runs a program in this rank.
fn run<R>(program: fn(Communicator) -> R) -> ExitCode
where
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    run_with(Ranks::new(1), program)
}

fn run_with<R>(ranks: Ranks, program: fn(Communicator) -> R) -> ExitCode
where
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    // A rank that waits for others is no standstill, however short it is.
    selvedge_core::observe::notice_standstill_after(Some(Duration::ZERO));
    // Ports are sockets, which need an event loop.
    let mut events = EventLoop::new().expect("the kernel has descriptors");
    let ended = selvedge_core::round_robin_over(&mut events, ranks.run(program)).expect("no deadlock");
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

/// The ranks do not make the same collective call, and that is checked: each hears of it.
async fn a_mismatch(world: Communicator) -> Result<(), Error> {
    let error = match world.rank() {
        0 => world.bcast(0, || 1).await.unwrap_err(),
        _ => world.gather(0, 1).await.unwrap_err(),
    };
    assert_eq!(error.class(), ErrorClass::Mismatch, "{error}");
    assert_eq!(world.allgather(world.rank()).await?, [0, 1]);
    println!("rank {} has heard of it", world.rank());
    Ok(())
}

/// The file of rank 1 differs from that of the other ranks: no rank gets a pool of functions.
async fn other_builds(world: Communicator) -> Result<(), Error> {
    let mut functions = Functions::new();
    functions.register("square", async |number: u32| number * number);
    let error = functions.start(&world).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Mismatch, "{error}");
    let other = if world.rank() == 1 { 0 } else { 1 };
    assert!(error.to_string().ends_with(&format!("rank {other} is another build of the program")), "{error}");
    println!("rank {} has been refused", world.rank());
    Ok(())
}

/// A rank is stopped while another one sends to it: short messages, and long ones of which it may
/// copy the bytes. All of them come whole and in their order.
async fn a_stop(world: Communicator) -> Result<(), Error> {
    let length = |number: u64| if number.is_multiple_of(3) { 40_000 } else { 10 };
    for is_stopped in [false, true, false] {
        if world.rank() == 1 {
            world.send(0, (), getpid().as_raw_nonzero().get()).await?;
            for number in 0..30_u64 {
                let elements = match number % 4 {
                    0 => world.recv::<Vec<u64>>(0, ()).await?.0,
                    1 => world.recv_vec::<u64>(0, ()).await?.0,
                    _ => {
                        let mut elements = vec![0_u64; 40_000];
                        let status = world.recv_into(0, (), &mut elements).await?;
                        elements.truncate(status.count::<u64>().expect("whole numbers"));
                        elements
                    }
                };
                assert_eq!(elements, vec![number; length(number)]);
            }
            continue;
        }
        let (process, _) = world.recv::<i32>(1, ()).await?;
        if is_stopped {
            let process = Pid::from_raw(process).expect("no process has the number 0");
            kill_process(process, Signal::STOP).expect("the rank runs");
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                kill_process(process, Signal::CONT).expect("the rank waits for messages");
            });
        }
        for number in 0..30_u64 {
            let mut elements = vec![number; length(number)];
            match number % 4 {
                0 => world.send(1, (), elements.clone()).await?,
                _ => world.send_slice(1, (), &elements).await?,
            }
            // It is not for the receiver any more.
            elements.fill(u64::MAX);
        }
    }
    world.barrier().await?;
    println!("rank {} has gone on", world.rank());
    Ok(())
}

/// The process of a rank is killed in the middle of a long message: the others get errors, and go
/// on.
async fn a_departure(world: Communicator) -> Result<(), Error> {
    // Longer than a ring.
    let elements = vec![1_u64; 50_000];
    if world.rank() == 1 {
        for round in 0_u32.. {
            for other in [0, 2] {
                let sends = world.isend_vec(other, (), elements.clone());
                if round == 3 && other == 2 {
                    // The message is on its way, and no destructor runs.
                    kill_process(getpid(), Signal::KILL).expect("the rank runs");
                }
                sends.await?;
                world.recv_vec::<u64>(other, ()).await?;
            }
        }
    }
    let mut rounds = 0;
    let error = loop {
        if let Err(error) = world.recv_vec::<u64>(1, ()).await {
            break error;
        }
        if let Err(error) = world.send_slice(1, (), &elements).await {
            break error;
        }
        rounds += 1;
    };
    assert_eq!(error.class(), ErrorClass::Ended, "{error}");
    assert!(rounds >= 3, "{rounds}: {error}");
    let other = 2 - world.rank();
    world.send(other, 1, world.rank()).await?;
    assert_eq!(world.recv::<usize>(other, 1).await?.0, other);
    println!("rank {} goes on", world.rank());
    Ok(())
}

/// Ranks 0 and 2 are killed while all compute, agree, revoke or shrink. The others go on without
/// them, in the same rounds.
async fn a_recovery(world: Communicator) -> Result<(), Error> {
    let wait: u64 = std::env::var(WAIT).expect("the job sets it").parse().expect("a number");
    let wait = match world.rank() {
        0 => Some(wait),
        2 => Some(wait * 7919 % 5_000),
        _ => None,
    };
    // The rounds revoke a communicator of their own.
    let mut comm = world.dup().await?;
    world.barrier().await?;
    if let Some(wait) = wait {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(wait));
            let _ = kill_process(getpid(), Signal::KILL);
        });
    }
    let (rank, me) = (world.rank(), 1_u32 << world.rank());
    let mut seen = Vec::new();
    // Until the two that live have had some rounds.
    while seen.iter().filter(|mask| **mask == 0b1010).count() < 10 {
        let step = comm.allreduce(me, |a, b| a | b).await;
        if step.is_err() {
            comm.revoke();
        }
        match (comm.agree(step.is_ok()).await?, step) {
            (true, Ok(mask)) => seen.push(mask),
            _ => comm = comm.shrink().await?,
        }
    }
    let all = comm.allgather(seen.clone()).await?;
    assert_eq!(all, [seen.clone(), seen]);
    println!("rank {rank} goes on");
    Ok(())
}

/// A program that starts itself as four ranks.
fn starts_itself() -> ExitCode {
    let body = |world: Communicator| async move {
        let ranks = world.gather(0, (world.rank(), std::process::id())).await?;
        let Some(ranks) = ranks else { return Ok(None) };
        Ok::<_, Error>(Some(ranks.into_iter().map(|(rank, _)| rank).collect::<Vec<_>>()))
    };
    let ended = selvedge_core::round_robin(Ranks::from_arguments(1).run(body)).expect("no deadlock");
    match ended.expect("no rank fails").pop().expect("each process has one rank") {
        Some(ranks) => println!("rank 0 has heard of {ranks:?}"),
        None => println!("another rank has ended"),
    }
    ExitCode::SUCCESS
}

/// Serves two worlds of other jobs, of which the second one breaks off.
async fn serves_other_worlds(world: Communicator) -> Result<(), Error> {
    let path = std::env::var(SOCKET).expect("the job sets it");
    let port = (world.rank() == 0).then(|| Port::bind(path).expect("the path is free"));
    for breaks_off in [false, true] {
        let clients = world.accept(0, port.as_ref()).await?;
        assert_eq!((clients.size(), clients.remote_size()), (2, 2));
        // Every rank tells every other one its number.
        for other in 0..2 {
            clients.send(other, (), (world.rank(), breaks_off)).await?;
            assert_eq!(clients.recv::<usize>(other, ()).await?.0, other);
        }
        let again = clients.recv::<u8>(1, 5).await;
        match breaks_off {
            false => {
                assert_eq!(again?.0, 5);
                let clone = clients.clone();
                clients.disconnect().await?;
                // Rank 1 of the clients is about to fail, and that is not told here.
                let error = clone.recv::<u8>(1, ()).await.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended, "{error}");
                assert!(!error.to_string().contains("has failed"), "{error}");
            }
            true => {
                let error = again.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Ended, "{error}");
                assert!(error.to_string().contains("rank 1 has failed"), "{error}");
            }
        }
        assert_eq!(world.allreduce(1, op::sum).await?, 2);
    }
    println!("rank {} has served", world.rank());
    Ok(())
}

/// Asks the world that serves.
async fn asks_another_world(world: Communicator) -> Result<(), Error> {
    let path = std::env::var(SOCKET).expect("the job sets it");
    let servers = loop {
        // Until the servers listen.
        match world.connect(0, Some(&format!("unix:{path}"))).await {
            Ok(servers) => break servers,
            Err(error) => assert_eq!(error.class(), ErrorClass::Join, "{error}"),
        }
        sleep(Duration::from_millis(2)).await;
    };
    let mut breaks_off = false;
    for other in 0..2 {
        servers.send(other, (), world.rank()).await?;
        let ((rank, breaks), _) = servers.recv::<(usize, bool)>(other, ()).await?;
        assert_eq!(rank, other);
        breaks_off = breaks;
    }
    world.barrier().await?;
    if breaks_off {
        std::process::exit(3);
    }
    if world.rank() == 1 {
        for other in 0..2 {
            servers.send(other, 5, 5_u8).await?;
        }
    }
    servers.disconnect().await?;
    // The world of the clients is as it was.
    assert_eq!(world.allreduce(1, op::sum).await?, 2);
    println!("rank {} has asked", world.rank());
    if world.rank() == 1 {
        std::process::exit(3);
    }
    Ok(())
}

fn start_jobs() -> ExitCode {
    let mut failed = start_jobs_with("shared memory", local_job) + more_over_shared_memory();
    let all = installed();
    for mpi in &all {
        failed += start_jobs_with(&mpi.to_string(), |program, ranks| {
            output(vec![wrapped(mpi, &[], ranks, itself(program))], |_| {})
        });
        failed += spawned::over_mpi(mpi);
        if let Some(options) = mpi.bears_deaths {
            failed += deaths(mpi, options);
        }
    }
    failed += on_two_hosts(&all);
    if all.is_empty() {
        println!("{NONE}");
    } else if all.iter().all(|mpi| mpi.bears_deaths.is_none()) {
        println!("{NONE_BEARS_DEATHS}");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The jobs of two ranks on two hosts. Gives the number of what failed.
fn on_two_hosts(all: &[Installed]) -> usize {
    let cluster = match Cluster::new(itself("relay")) {
        Ok(cluster) => cluster,
        Err(why) => {
            println!("no two hosts can be made here, so no job ran between hosts: {why}");
            return 0;
        }
    };
    let mut failed = 0;
    for mpi in all {
        if !Cluster::runs(mpi) {
            println!("{mpi}: no job ran on two hosts, because it has UCX alone");
            continue;
        }
        let job = |program| {
            let program = itself(program);
            let mut job = cluster.job(mpi);
            job.arg(program.get_program());
            job.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
            output(vec![job], |_| {})
        };
        failed += spawned::on_two_hosts(mpi, job("apart"));
        let before = cluster.frames();
        let (succeeded, text) = job("cases");
        failed += count_cases(&format!("{mpi}, two hosts"), 2, succeeded, &text);
        let frames = cluster.frames() - before;
        println!("{mpi}: two hosts, {frames} frames");
        if frames < FRAMES_MIN {
            println!("{mpi}: the ranks did not talk over the network");
            failed += 1;
        }
    }
    failed
}

/// What else is to be seen of processes that share memory. Gives the number of what failed.
fn more_over_shared_memory() -> usize {
    let mut failed = 0;
    let (_, text) = local_job("departure", 3);
    if !["rank 0 goes on", "rank 2 goes on"].iter().all(|seen| text.contains(seen)) {
        println!("shared memory: a departure was not borne:\n{text}");
        failed += 1;
    }
    for wait in (0..25).map(|number| number * number * 10) {
        let job = LocalJob::new(4).expect("the kernel has memory");
        let (_, text) = output(ranks_of(&job, "recovery", Some(wait)), |rank| job.departed(rank));
        if !["rank 1 goes on", "rank 3 goes on"].iter().all(|seen| text.contains(seen)) {
            println!("shared memory: no recovery of ranks killed after {wait} us:\n{text}");
            failed += 1;
        }
    }
    failed +=
        spawned::over_shared_memory() + worlds_that_meet() + executables_that_differ() + no_such_engine();
    let mut command = itself("itself");
    command.args(["--ranks", "4"]);
    let (succeeded, text) = output(vec![command], |_| {});
    let others = text.matches("another rank has ended").count();
    if !succeeded || !text.contains("rank 0 has heard of [0, 1, 2, 3]") || others != 3 {
        println!("shared memory: a program that starts itself:\n{text}");
        failed += 1;
    }
    failed
}

/// Ranks that die over an MPI that bears it. Gives the number of what failed.
fn deaths(mpi: &Installed, options: &[&str]) -> usize {
    let job = |program, ranks, wait: u64| {
        let mut command = itself(program);
        command.env(WAIT, wait.to_string());
        output(vec![wrapped(mpi, options, ranks, command)], |_| {}).1
    };
    let mut failed = 0;
    let text = job("departure", 3, 0);
    if !["rank 0 goes on", "rank 2 goes on"].iter().all(|seen| text.contains(seen)) {
        println!("{mpi}: a departure was not borne:\n{text}");
        failed += 1;
    }
    for wait in (0..DEATHS).map(|number| number * number * 100) {
        let text = job("recovery", 4, wait);
        if !["rank 1 goes on", "rank 3 goes on"].iter().all(|seen| text.contains(seen)) {
            println!("{mpi}: no recovery of ranks killed after {wait} us:\n{text}");
            failed += 1;
        }
    }
    failed
}

/// A job of which one rank is another executable: a copy with a byte more, at which the system does
/// not look. Gives the number of what failed.
fn executables_that_differ() -> usize {
    let copy = std::env::temp_dir().join(format!("selvedge-build-{}", std::process::id()));
    let me = std::env::current_exe().expect("the program has a path");
    std::fs::copy(me, &copy).expect("there is room for a copy");
    File::options().append(true).open(&copy).expect("it is ours").write_all(&[0]).expect("there is room");
    let job = LocalJob::new(3).expect("the kernel has memory");
    let mut commands = ranks_of(&job, "builds", None);
    let envs: Vec<_> =
        commands[1].get_envs().map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))).collect();
    let mut other = Command::new(&copy);
    other.envs(envs.into_iter().filter_map(|(name, value)| Some((name, value?))));
    commands[1] = other;
    let (succeeded, text) = output(commands, |rank| job.departed(rank));
    let _ = std::fs::remove_file(&copy);
    if !succeeded || text.matches(" has been refused").count() != 3 {
        println!("shared memory: executables that differ:\n{text}");
        return 1;
    }
    0
}

/// A variable that names no engine is told, with the names that there are. Gives the number of what
/// failed.
fn no_such_engine() -> usize {
    let mut command = itself("failure");
    command.env("SELVEDGE_MPI_ENGINE", "fast");
    let (succeeded, text) = output(vec![command], |_| {});
    if succeeded || !text.contains("SELVEDGE_MPI_ENGINE is fast: it names threads, processes or mpi") {
        println!("a variable that names no engine:\n{text}");
        return 1;
    }
    0
}

/// Three jobs, of which one serves the others. Gives the number of what failed.
fn worlds_that_meet() -> usize {
    let socket = std::env::temp_dir().join(format!("selvedge-port-{}", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let jobs = [(); 3].map(|()| LocalJob::new(2).expect("the kernel has memory"));
    let mut commands = Vec::new();
    for (job, program) in jobs.iter().zip(["server", "client", "client"]) {
        for mut command in ranks_of(job, program, None) {
            command.env(SOCKET, &socket);
            commands.push(command);
        }
    }
    let (_, text) = output(commands, |number| jobs[number / 2].departed(number % 2));
    let _ = std::fs::remove_file(&socket);
    if text.matches(" has served").count() != 2 || text.matches(" has asked").count() != 2 {
        println!("shared memory: worlds that meet:\n{text}");
        return 1;
    }
    0
}

/// This program as a rank.
fn itself(program: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
    command.env(PROGRAM, program);
    command
}

/// A command as the ranks of a job.
fn wrapped(mpi: &Installed, options: &[&str], ranks: usize, command: Command) -> Command {
    let mut whole = mpi.job(ranks, options);
    whole.arg(command.get_program());
    whole.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    whole
}

/// Runs a job of processes that share memory.
fn local_job(program: &str, ranks: usize) -> (bool, String) {
    let job = LocalJob::new(ranks).expect("the kernel has memory");
    output(ranks_of(&job, program, None), |rank| job.departed(rank))
}

/// This program as each rank of a job.
fn ranks_of(job: &LocalJob, program: &str, wait: Option<u64>) -> Vec<Command> {
    let command = |rank| {
        let (name, value) = job.variable(rank);
        let mut command = itself(program);
        command.env(name, value);
        if let Some(wait) = wait {
            command.env(WAIT, wait.to_string());
        }
        command
    };
    (0..job.ranks()).map(command).collect()
}

/// Runs all jobs of one kind, and gives the number of failures.
fn start_jobs_with(kind: &str, job: impl Fn(&str, usize) -> (bool, String)) -> usize {
    let mut failed = 0;
    let sizes: BTreeSet<usize> = all().map(|case| case.ranks).collect();
    for ranks in sizes {
        let (succeeded, text) = job("cases", ranks);
        failed += count_cases(kind, ranks, succeeded, &text);
    }
    let (succeeded, text) = job("failure", 3);
    let seen = ["rank 0 has seen it", "rank 2 has seen it", "rank 1 has failed: "];
    if succeeded || !seen.iter().all(|seen| text.contains(seen)) {
        println!("{kind}: a failure was not told:\n{text}");
        failed += 1;
    }
    let (succeeded, text) = job("checked", 2);
    if !succeeded || text.matches(" has heard of it").count() != 2 {
        println!("{kind}: a collective that differs was not told:\n{text}");
        failed += 1;
    }
    let (succeeded, text) = job("stop", 2);
    if !succeeded || text.matches(" has gone on").count() != 2 {
        println!("{kind}: a rank that was stopped:\n{text}");
        failed += 1;
    }
    failed
}

/// Whether a job has run all cases for its number of ranks: 0 if it has, and 1 if not.
fn count_cases(kind: &str, ranks: usize, succeeded: bool, text: &str) -> usize {
    let count = all().filter(|case| case.ranks == ranks).count();
    // A launcher may put what one rank writes into a line of another one.
    let has_run = |name| text.lines().any(|line| line.ends_with(&format!("case {name}")));
    let ran = all().filter(|case| case.ranks == ranks && has_run(case.name)).count();
    if succeeded && ran == count && !text.contains("No deadlock is reported") {
        return 0;
    }
    println!("{kind}: {ranks} ranks have failed in case {ran} of {count}:\n{text}");
    1
}

/// Runs processes side by side: whether all succeeded, and what they wrote. `ended` is called with
/// the number of each that has ended. The others are killed.
fn output(commands: Vec<Command>, ended: impl Fn(usize)) -> (bool, String) {
    let written = std::env::temp_dir().join(format!("selvedge-launched-{}", std::process::id()));
    let file = File::options().append(true).create(true).open(&written).expect("the file can be made");
    let start = |mut command: Command| {
        let (output, errors) = (file.try_clone(), file.try_clone());
        command.stdout(output.expect("a descriptor is left")).stderr(errors.expect("a descriptor is left"));
        Some(command.spawn().expect("the program starts"))
    };
    let mut children: Vec<_> = commands.into_iter().map(start).collect();
    let began = Instant::now();
    let mut all_succeeded = true;
    while children.iter().any(Option::is_some) {
        for (number, place) in children.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            if began.elapsed() > JOB_LIMIT {
                child.kill().expect("the child is ours");
            }
            if let Some(status) = child.try_wait().expect("the child is ours") {
                all_succeeded &= status.success();
                *place = None;
                ended(number);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let text = std::fs::read_to_string(&written).unwrap_or_default();
    let _ = std::fs::remove_file(&written);
    (all_succeeded, text)
}
