//! The MPI library by dlopen, under each MPI that this machine has.
//!
//! Run as a test, this program starts itself again as the ranks of jobs, with each MPI that
//! `installed/mod.rs` finds. Without any, it says so and passes.
//!
//! A rank that finds a fault ends with a panic, so its job ends with an error.

mod installed;

use installed::{Installed, NONE, NONE_BEARS_DEATHS, installed};
use rustix::process::{Signal, getpid, kill_process};
use selvedge_core::internal::run_blocking;
use selvedge_mpi::libmpi::{
    Collective, Comm, CommListener, MessageLoop, MpiError, MpiErrorClass, MpiFamily, MpiMemory,
    PATH_VARIABLE, Received, ReduceOp, Scalar, ScalarType, StartError,
};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The variable that says which program a rank runs.
const PROGRAM: &str = "SELVEDGE_TEST_PROGRAM";

const JOB_LIMIT: Duration = Duration::from_secs(90);

type Program = fn();

/// The programs of the ranks, each with the number of ranks.
const PROGRAMS: &[(&str, usize, Program)] = &[
    ("messages", 4, messages),
    ("collectives", 4, collectives),
    ("communicators", 4, communicators),
    ("errors", 2, errors),
    ("alone", 1, alone),
];

/// Programs that end their job with an error.
const FAILING: [&str; 2] = ["abort", "panic"];

fn main() -> ExitCode {
    match std::env::var(PROGRAM).as_deref() {
        Ok("abort") => abort(),
        Ok("panic") => panics(),
        Ok("other library") => other_library(),
        Ok("a death") => a_death(),
        Ok("foreign") => foreign(),
        Ok(program) => {
            let (.., run) = PROGRAMS.iter().find(|(name, ..)| *name == program).expect("it is in the list");
            run();
        }
        Err(_) => return start_jobs(),
    }
    ExitCode::SUCCESS
}

// The test: it starts jobs.

fn start_jobs() -> ExitCode {
    without_a_library();
    let installed = installed();
    if installed.is_empty() {
        println!("{NONE}");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for mpi in &installed {
        for &(program, ranks, _) in PROGRAMS {
            failed += usize::from(!passes(mpi, program, ranks, &[], |succeeded, _| succeeded));
        }
        for program in FAILING {
            failed += usize::from(!passes(mpi, program, 2, &[], |succeeded, _| !succeeded));
        }
        failed += ranks_in_other_languages(mpi);
        if let Some(options) = mpi.bears_deaths {
            let goes_on = |_, text: &str| text.matches(" goes on").count() == 3;
            failed += usize::from(!passes(mpi, "a death", 4, options, goes_on));
        }
    }
    if installed.iter().all(|mpi| mpi.bears_deaths.is_none()) {
        println!("{NONE_BEARS_DEATHS}");
    }
    let of = |family| installed.iter().find(|mpi| mpi.family == family);
    if let (Some(open_mpi), Some(Installed { library: None, .. })) =
        (of(MpiFamily::OpenMpi), of(MpiFamily::Mpich))
    {
        let other = open_mpi.with_library("libmpich.so.12".into());
        let tells =
            |_, text: &str| text.contains("it is the library of another MPI") || text.contains("cannot open");
        failed += usize::from(!passes(&other, "other library", 2, &[], tells));
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Without a library, the error names the file and the package.
fn without_a_library() {
    let me = std::env::current_exe().unwrap();
    let output = Command::new(me)
        .env(PROGRAM, "other library")
        .env(PATH_VARIABLE, "/nowhere/libmpi.so.40")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Install the Debian package openmpi-bin, or set SELVEDGE_LIBMPI"), "{text}");
    assert!(text.contains("/nowhere/libmpi.so.40: cannot open shared object file"), "{text}");
}

/// Jobs of which rank 1 is a program in C, and one in Python. Gives the number of what failed, and
/// says what this machine does not have.
fn ranks_in_other_languages(mpi: &Installed) -> usize {
    if mpi.library.is_some() {
        // The launcher's own library has been tried.
        return 0;
    }
    let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name);
    let mut failed = 0;
    match mpi.compiler() {
        Some(compiler) => {
            let program = std::env::temp_dir().join(format!("selvedge-mpi-peer-{}", std::process::id()));
            let built = Command::new(compiler).arg(source("peer.c")).arg("-o").arg(&program).status();
            if built.is_ok_and(|built| built.success()) {
                let peer = [program.as_os_str()];
                failed += usize::from(!passes_beside(mpi, "a rank in C", &peer));
            } else {
                println!("a rank in C with {mpi}: FAILED to build");
                failed += 1;
            }
            let _ = std::fs::remove_file(program);
        }
        None => println!("no rank in C ran with {mpi}: it has no mpicc"),
    }
    let python = std::env::var_os("SELVEDGE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    if has_mpi4py(mpi, &python) {
        let script = source("peer.py");
        let peer = [python.as_os_str(), script.as_os_str()];
        failed += usize::from(!passes_beside(mpi, "a rank in Python", &peer));
    } else {
        println!(
            "no rank in Python ran with {mpi}: SELVEDGE_TEST_PYTHON, else python3, has no mpi4py for it"
        );
    }
    failed
}

/// Whether this Python has an mpi4py that loads this MPI. One of Debian is built for one MPI.
fn has_mpi4py(mpi: &Installed, python: &OsStr) -> bool {
    let Some(library) = mpi.library_for_python() else { return false };
    let version = "from mpi4py import MPI; print(MPI.Get_library_version())";
    let mut command = Command::new(python);
    command.args(["-c", version]).env("MPI4PY_LIBMPI", library).stderr(Stdio::null());
    let name = if mpi.is_open_mpi { "Open MPI" } else { "MPICH" };
    command.output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(name))
}

/// As [`passes`], of a job in which the program `foreign` is rank 0, and this command rank 1.
fn passes_beside(mpi: &Installed, name: &str, peer: &[&OsStr]) -> bool {
    let mut command = mpi.job(1, &[]);
    command.arg(std::env::current_exe().unwrap()).args([":", "-n", "1"]).args(peer);
    if let Some(library) = mpi.library_for_python() {
        command.env("MPI4PY_LIBMPI", library);
    }
    command.env(PROGRAM, "foreign");
    ends_as(mpi, name, command, |succeeded, _| succeeded)
}

/// Runs a job, and tells its output unless it is as expected.
fn passes(
    mpi: &Installed,
    program: &str,
    ranks: usize,
    options: &[&str],
    expected: impl FnOnce(bool, &str) -> bool,
) -> bool {
    let mut command = mpi.job(ranks, options);
    command.arg(std::env::current_exe().unwrap());
    command.env(PROGRAM, program);
    ends_as(mpi, &format!("{program} on {ranks} ranks"), command, expected)
}

fn ends_as(
    mpi: &Installed,
    name: &str,
    mut command: Command,
    expected: impl FnOnce(bool, &str) -> bool,
) -> bool {
    command.env("SELVEDGE_TEST_FAMILY", mpi.family.to_string());
    let begin = Instant::now();
    let mut job = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = [reader(job.stdout.take().unwrap()), reader(job.stderr.take().unwrap())];
    let succeeded = wait(&mut job);
    let text = output.map(|output| output.join().unwrap()).concat();
    let passes = succeeded.is_some_and(|succeeded| expected(succeeded, &text));
    let verdict = if passes { "ok" } else { "FAILED" };
    println!("{name} with {mpi}: {verdict} in {:.1?}", begin.elapsed());
    if !passes {
        println!("{text}");
        if succeeded.is_none() {
            println!("the job was ended after {JOB_LIMIT:?}");
        }
    }
    passes
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether the job succeeded. `None` if it has not ended in time, and was ended.
fn wait(job: &mut Child) -> Option<bool> {
    let until = Instant::now() + JOB_LIMIT;
    while Instant::now() < until {
        if let Some(status) = job.try_wait().unwrap() {
            return Some(status.success());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // mpirun ends its ranks when it is told to end.
    let _ = Command::new("kill").arg(job.id().to_string()).status();
    job.wait().unwrap();
    None
}

// The programs of the ranks.

/// Keeps messages until a test takes them.
#[derive(Debug, Default)]
struct Inbox {
    messages: Mutex<VecDeque<Result<Received, MpiError>>>,
    arrived: Condvar,
    died: Mutex<Vec<usize>>,
}

impl Inbox {
    fn of(comm: &Comm) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        comm.listen(inbox.clone());
        inbox
    }

    fn put(&self, message: Result<Received, MpiError>) {
        self.messages.lock().unwrap().push_back(message);
        self.arrived.notify_all();
    }

    fn next(&self) -> Received {
        let mut messages = self.messages.lock().unwrap();
        loop {
            if let Some(message) = messages.pop_front() {
                return message.unwrap();
            }
            messages = self.arrived.wait(messages).unwrap();
        }
    }
}

impl CommListener for Inbox {
    fn message(&self, message: Received) {
        self.put(Ok(message));
    }

    fn failed(&self, error: MpiError) {
        self.put(Err(error));
    }

    fn rank_died(&self, rank: usize) {
        self.died.lock().unwrap().push(rank);
    }
}

fn done<T>(future: impl Future<Output = Result<T, MpiError>>) -> T {
    run_blocking(future, None).unwrap().unwrap()
}

fn start() -> MessageLoop {
    let mpi = MessageLoop::start().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(mpi.about().family.to_string(), std::env::var("SELVEDGE_TEST_FAMILY").unwrap());
    mpi
}

fn collect(comm: &Comm, collective: Collective, memory: impl Into<MpiMemory>) -> Option<MpiMemory> {
    done(comm.collective(collective, memory.into())).received
}

/// Point-to-point: order, sizes from 0 to some megabytes, from many OS threads at once.
fn messages() {
    let mpi = start();
    let world = mpi.world();
    let (rank, size) = (world.rank(), world.size());
    assert_eq!(size, 4);
    assert!(world.tag_max() >= 32_767);
    let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
    let inbox = Inbox::of(&world);

    // Long and short messages in turn keep their order.
    let long = |n: i32| if n % 2 == 0 { 1_000_000 + n as usize } else { n as usize };
    let sent: Vec<_> = (0..20).map(|n| world.send(next, n, vec![n as u8; long(n)].into())).collect();
    for n in 0..20 {
        let message = inbox.next();
        assert_eq!((message.source, message.tag), (before, n));
        assert_eq!(message.memory.into_vec::<u8>().unwrap(), vec![n as u8; long(n)]);
    }
    for (n, memory) in sent.into_iter().map(done).enumerate() {
        assert_eq!(memory.len(), long(n as i32));
    }

    // One that has a type of its own in the library, with a rest after its blocks.
    if rank < 2 {
        let count = (1 << 28) / 8 + 3;
        if rank == 0 {
            let mut numbers = vec![7_u64; count];
            numbers[count - 1] = 9;
            assert_eq!(done(world.send(1, 20, numbers.into())).len(), count);
        } else {
            let message = inbox.next();
            assert_eq!((message.source, message.tag, message.memory.bytes()), (0, 20, 8 * count));
            let bytes = message.memory.into_vec::<u8>().unwrap();
            assert_eq!([bytes[0], bytes[8 * count - 16], bytes[8 * count - 8]], [7, 7, 9]);
        }
    }

    // An empty message, numbers of another kind, the rank itself, the greatest tag.
    done(world.send(rank, world.tag_max(), MpiMemory::zeroed(Scalar::F64, 0)));
    let message = inbox.next();
    assert_eq!((message.source, message.tag, message.memory.bytes()), (rank, world.tag_max(), 0));
    collect(&world, Collective::Barrier, MpiMemory::zeroed(Scalar::U8, 0));
    done(world.send_synchronously(next, 7, vec![1.5_f64, -2.5].into()));
    let bytes: Vec<u8> = [1.5_f64, -2.5].iter().flat_map(|number| number.to_ne_bytes()).collect();
    assert_eq!(inbox.next().memory.into_vec::<u8>(), Ok(bytes));
    collect(&world, Collective::Barrier, MpiMemory::zeroed(Scalar::U8, 0));

    // Many OS threads send to all ranks at once, with closures for the ends.
    let ended = Arc::new((Mutex::new(0), Condvar::new()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, ended) = (&world, &ended);
            scope.spawn(move || {
                for n in 0..250 {
                    let ended = ended.clone();
                    world.send_then(n % size, thread, vec![n as u64].into(), move |memory| {
                        assert_eq!(memory.unwrap().into_vec::<u64>(), Ok(vec![n as u64]));
                        *ended.0.lock().unwrap() += 1;
                        ended.1.notify_all();
                    });
                }
            });
        }
    });
    let mut last = vec![None; 4 * size];
    for _ in 0..(0..250).filter(|n| n % size == rank).count() * 4 * size {
        let message = inbox.next();
        let number = message.memory.into_vec::<u8>().unwrap();
        let number = u64::from_ne_bytes(number.try_into().unwrap());
        let last = &mut last[message.source * 4 + message.tag as usize];
        assert!(last.is_none_or(|last| last < number), "{last:?} before {number}");
        *last = Some(number);
    }
    let ends = ended.1.wait_while(ended.0.lock().unwrap(), |ended| *ended < 1000).unwrap();
    assert_eq!(*ends, 1000);
    drop(ends);
    let elapsed = done(mpi.wtime());
    assert!(done(mpi.wtime()) >= elapsed);
    mpi.finish().unwrap();
}

/// Every collective call, every operation, every kind of numbers.
fn collectives() {
    let mpi = start();
    let world = mpi.world();
    let (rank, size) = (world.rank(), world.size());
    for root in 0..size {
        let numbers = if rank == root { vec![root as u32 + 5; 3] } else { vec![0; 3] };
        assert_eq!(
            collect(&world, Collective::Bcast { root }, numbers),
            Some(vec![root as u32 + 5; 3].into())
        );
        let gathered = collect(&world, Collective::Gather { root }, vec![rank as i64; 2]);
        let all: Vec<i64> = (0..size as i64).flat_map(|rank| [rank; 2]).collect();
        assert_eq!(gathered, (rank == root).then(|| all.clone().into()));
        assert_eq!(collect(&world, Collective::Allgather, vec![rank as i64; 2]), Some(all.clone().into()));
        let given = if rank == root { all } else { Vec::new() };
        let scattered = collect(&world, Collective::Scatter { root, block: 2 }, given);
        assert_eq!(scattered, Some(vec![rank as i64; 2].into()));

        // Rank n gives or receives n numbers.
        let counts: Vec<usize> = (0..size).collect();
        let uneven: Vec<f32> = (0..size).flat_map(|rank| vec![rank as f32; rank]).collect();
        let mine = vec![rank as f32; rank];
        let at_root = if rank == root { counts.clone() } else { Vec::new() };
        let gathered = collect(&world, Collective::Gatherv { root, counts: at_root.clone() }, mine.clone());
        assert_eq!(gathered, (rank == root).then(|| uneven.clone().into()));
        let all = collect(&world, Collective::Allgatherv { counts }, mine.clone());
        assert_eq!(all, Some(uneven.clone().into()));
        let given = if rank == root { uneven } else { Vec::new() };
        let scatter = Collective::Scatterv { root, counts: at_root, block: rank };
        assert_eq!(collect(&world, scatter, given), Some(mine.into()));
    }
    let to_each: Vec<u16> = (0..size).map(|to| (10 * rank + to) as u16).collect();
    let from_each: Vec<u16> = (0..size).map(|from| (10 * from + rank) as u16).collect();
    assert_eq!(collect(&world, Collective::Alltoall, to_each), Some(from_each.into()));
    // Rank m sends n numbers m to rank n.
    let sent = Collective::Alltoallv { sent: (0..size).collect(), received: vec![rank; size] };
    let from_each: Vec<i8> = (0..size).flat_map(|from| vec![from as i8; rank]).collect();
    assert_eq!(collect(&world, sent, vec![rank as i8; (0..size).sum()]), Some(from_each.into()));

    // Each rank has two numbers other than those of the other ranks, and one is 0 somewhere.
    let numbers = |rank: usize| [rank as u64 * 3 + 1, rank as u64];
    for &op in ReduceOp::ALL {
        let join = |ranks: std::ops::Range<usize>| {
            ranks.map(numbers).reduce(|a, b| [0, 1].map(|i| joined(op, a[i], b[i])))
        };
        let all = join(0..size).unwrap();
        check_all_kinds(&world, op, numbers(rank), all);
        let reduced = collect(&world, Collective::Reduce { root: 1, op }, numbers(rank).to_vec());
        assert_eq!(reduced, (rank == 1).then(|| all.to_vec().into()), "{op:?}");
        let scanned = collect(&world, Collective::Scan { op }, numbers(rank).to_vec());
        assert_eq!(scanned, Some(join(0..rank + 1).unwrap().to_vec().into()), "{op:?}");
        let before = collect(&world, Collective::Exscan { op }, numbers(rank).to_vec());
        assert_eq!(before, Some(join(0..rank).unwrap_or_default().to_vec().into()), "{op:?}");
        let blocks: Vec<u64> = (0..size).flat_map(|_| numbers(rank)).collect();
        let block = collect(&world, Collective::ReduceScatterBlock { op }, blocks);
        assert_eq!(block, Some(all.to_vec().into()), "{op:?}");
    }
    // Nothing, everywhere.
    for collective in [
        Collective::Bcast { root: 0 },
        Collective::Allreduce { op: ReduceOp::Sum },
        Collective::Allgather,
        Collective::Alltoall,
    ] {
        assert_eq!(
            collect(&world, collective, MpiMemory::zeroed(Scalar::U8, 0)),
            Some(MpiMemory::zeroed(Scalar::U8, 0))
        );
    }
    // Several at once are matched in their order.
    let calls: Vec<_> = (0..50_u32)
        .map(|n| world.collective(Collective::Allreduce { op: ReduceOp::Max }, vec![n + rank as u32].into()))
        .collect();
    for (n, call) in (0..).zip(calls) {
        assert_eq!(done(call).received, Some(vec![n + size as u32 - 1].into()));
    }
    mpi.finish().unwrap();
}

/// What the operation gives, by the words of MPI's standard.
fn joined(op: ReduceOp, a: u64, b: u64) -> u64 {
    match op {
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
        ReduceOp::Sum => a + b,
        ReduceOp::Prod => a * b,
        ReduceOp::Land => u64::from(a != 0 && b != 0),
        ReduceOp::Lor => u64::from(a != 0 || b != 0),
        ReduceOp::Lxor => u64::from((a != 0) != (b != 0)),
        ReduceOp::Band => a & b,
        ReduceOp::Bor => a | b,
        ReduceOp::Bxor => a ^ b,
    }
}

fn check_all_kinds(world: &Comm, op: ReduceOp, mine: [u64; 2], all: [u64; 2]) {
    fn check<T: ScalarType>(
        world: &Comm,
        op: ReduceOp,
        convert: fn(u64) -> T,
        mine: [u64; 2],
        all: [u64; 2],
    ) {
        let is_float = matches!(T::SCALAR, Scalar::F32 | Scalar::F64);
        let is_arithmetic = matches!(op, ReduceOp::Max | ReduceOp::Min | ReduceOp::Sum | ReduceOp::Prod);
        let call = world.collective(Collective::Allreduce { op }, mine.map(convert).to_vec().into());
        if is_float && !is_arithmetic {
            let error = run_blocking(call, None).unwrap().unwrap_err();
            assert_eq!((error.call, error.class), ("MPI_Iallreduce", MpiErrorClass::Op));
        } else {
            let wanted = MpiMemory::from(all.map(convert).to_vec());
            assert_eq!(done(call).received, Some(wanted), "{op:?} of {}", T::SCALAR.name());
        }
    }
    check(world, op, |number| number as i8, mine, all);
    check(world, op, |number| number as i16, mine, all);
    check(world, op, |number| number as i32, mine, all);
    check(world, op, |number| number as i64, mine, all);
    check(world, op, |number| number as u8, mine, all);
    check(world, op, |number| number as u16, mine, all);
    check(world, op, |number| number as u32, mine, all);
    check(world, op, |number| number, mine, all);
    check(world, op, |number| number as f32, mine, all);
    check(world, op, |number| number as f64, mine, all);
}

/// Communicators that are made from others.
fn communicators() {
    let mpi = start();
    let world = mpi.world();
    let (rank, size) = (world.rank(), world.size());
    let twin = done(world.dup());
    assert_eq!((twin.rank(), twin.size()), (rank, size));
    let (here, there) = (Inbox::of(&world), Inbox::of(&twin));
    done(twin.send(rank, 1, vec![2_u8].into()));
    done(world.send(rank, 1, vec![1_u8].into()));
    assert_eq!(here.next().memory, vec![1_u8].into());
    assert_eq!(there.next().memory, vec![2_u8].into());

    // Even ranks and odd ones, in reverse; the last rank is in neither.
    let color = (rank + 1 < size).then_some(rank as i32 % 2);
    let part = done(world.split(color, -(rank as i32)));
    assert_eq!(part.is_some(), color.is_some());
    if let Some(part) = &part {
        let members: Vec<usize> = (0..size - 1).rev().filter(|other| other % 2 == rank % 2).collect();
        assert_eq!(part.size(), members.len());
        assert_eq!(members[part.rank()], rank);
        let ranks: Vec<u64> = members.iter().map(|&rank| rank as u64).collect();
        assert_eq!(collect(part, Collective::Allgather, vec![rank as u64]), Some(ranks.into()));
    }
    drop(part);
    assert_eq!(MessageLoop::start().unwrap_err(), StartError::Twice);
    let late = world.clone();
    mpi.finish().unwrap();
    let error = run_blocking(late.send(0, 0, vec![0_u8].into()), None).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "MPI_Isend: the message loop has ended");
}

/// Rank 0 beside a rank 1 that another MPI program is: see `foreign/peer.c`.
fn foreign() {
    let mpi = start();
    let world = mpi.world();
    assert_eq!((world.rank(), world.size()), (0, 2));
    let inbox = Inbox::of(&world);
    // The last one ends the loop of the other rank.
    for (tag, count) in [(0, 1), (7, 3), (32_767, 20_000), (1, 1_000_000), (2, 0)] {
        let numbers: Vec<u64> = (0..count).collect();
        done(world.send(1, tag, numbers.clone().into()));
        let message = inbox.next();
        assert_eq!((message.source, message.tag), (1, tag));
        let bytes = message.memory.into_vec::<u8>().unwrap();
        let doubled: Vec<u8> = numbers.iter().flat_map(|number| (2 * number).to_ne_bytes()).collect();
        assert!(bytes == doubled, "the message with tag {tag}");
    }
    let sum = collect(&world, Collective::Allreduce { op: ReduceOp::Sum }, vec![1.25_f64]);
    assert_eq!(sum, Some(vec![1.75_f64].into()));
    collect(&world, Collective::Barrier, MpiMemory::zeroed(Scalar::U8, 0));
    mpi.finish().unwrap();
}

/// Errors are values, and the job goes on.
fn errors() {
    let mpi = start();
    let world = mpi.world();
    let refused = |dest, tag| {
        let error = run_blocking(world.send(dest, tag, vec![0_u8].into()), None).unwrap().unwrap_err();
        (error.call, error.class)
    };
    assert_eq!(refused(2, 0), ("MPI_Isend", MpiErrorClass::Rank));
    assert_eq!(refused(0, -1), ("MPI_Isend", MpiErrorClass::Tag));
    // The libraries themselves find different faults in different calls.
    let error = if mpi.about().family == MpiFamily::OpenMpi {
        let error = run_blocking(world.split(Some(-5), 0), None).unwrap().unwrap_err();
        assert_eq!((error.call, error.class), ("MPI_Comm_split", MpiErrorClass::Arg), "{error:?}");
        Some(error)
    } else {
        // Rank 1 has too little room.
        let room = if world.rank() == 0 { 1000 } else { 10 };
        let call = world.collective(Collective::Bcast { root: 0 }, vec![0_u64; room].into());
        run_blocking(call, None).unwrap().err()
    };
    if world.rank() == 1 {
        let error = error.unwrap();
        assert!(error.call != "MPI_Ibcast" || error.to_string().starts_with("MPI_Ibcast: "), "{error:?}");
        assert!(error.code != 0 && !error.text.is_empty(), "{error:?}");
    }
    mpi.finish().unwrap();
}

/// A job of one rank.
fn alone() {
    let mpi = start();
    let world = mpi.world();
    assert_eq!((world.rank(), world.size()), (0, 1));
    assert!(!mpi.about().processor_name.is_empty());
    assert!(!mpi.about().version.is_empty());
    let sum = collect(&world, Collective::Allreduce { op: ReduceOp::Sum }, vec![3_u8]);
    assert_eq!(sum, Some(vec![3_u8].into()));
    // MPICH has 2,048 communicators at most, so each must be freed.
    for _ in 0..2100 {
        drop(done(world.dup()));
    }
    mpi.finish().unwrap();
}

/// Ends the job while the other rank waits.
fn abort() {
    let mpi = start();
    let world = mpi.world();
    if world.rank() == 0 {
        let error = run_blocking(mpi.abort(3), None).unwrap().unwrap_err();
        println!("{error}");
    }
    Inbox::of(&world).next();
}

/// One rank panics while the other waits, which ends the job.
fn panics() {
    let mpi = start();
    let inbox = Inbox::of(&mpi.world());
    assert_ne!(mpi.world().rank(), 1, "this rank panics");
    inbox.next();
}

/// A rank is killed, and the others hear of it after its last message, and go on.
fn a_death() {
    let mpi = start();
    assert!(mpi.about().bears_deaths);
    let world = mpi.world();
    let inbox = Inbox::of(&world);
    if world.rank() == 1 {
        let sent: Vec<_> = [0, 2, 3].map(|rank| world.send(rank, 5, vec![7_u8; 100_000].into())).into();
        sent.into_iter().for_each(|sent| drop(done(sent)));
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    let last = inbox.next();
    assert_eq!((last.source, last.memory), (1, vec![7_u8; 100_000].into()));
    while inbox.died.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(*inbox.died.lock().unwrap(), [1]);
    let others: Vec<usize> = [0, 2, 3].into_iter().filter(|&rank| rank != world.rank()).collect();
    for round in 0..100 {
        for &other in &others {
            done(world.send(other, round, vec![round as u8; 3000 * round as usize].into()));
        }
        // Not all of a round are there before some of the next.
        others.iter().for_each(|_| assert_ne!(inbox.next().source, 1));
    }
    // It ends, with an error or without.
    if let Err(error) = run_blocking(world.send(1, 0, vec![0_u8].into()), None).unwrap() {
        assert_eq!(error.class, MpiErrorClass::ProcFailed, "{error:?}");
    }
    println!("rank {} goes on", world.rank());
    mpi.finish().unwrap();
}

/// Tells why MPI cannot be started.
fn other_library() {
    println!("{}", MessageLoop::start().unwrap_err());
}
