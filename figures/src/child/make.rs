//! Builds by a build runner that is a process of its own: `selvedge-make`, ninja, samurai or make.
//!
//! Each run makes its project first, which no clock sees. Only the project of a build with nothing
//! to do is kept for later runs, because it has up to 100,000 files.
//!
//! `child.rs` calls the programs for the figures in `figures/src/make.rs`. The build runners
//! call `compile`, through this binary, as the compiler of a project. `projects.rs` builds real
//! projects with a `BuildTree`.

use super::fault;
use super::session::PACKAGES;
use crate::peers::{SAMURAI, target_directory};
use nix::sys::resource::{UsageWho, getrusage};
use selvedge_make::log::hash::of_command;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Runs the program `name` with its numbers. `false` if it is no program about build runners.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("make-null", &[runner, n]) => null(runner, n),
        ("make-dry", &[runner, n]) => dry(runner, n),
        ("make-commands", &[runner, n]) => commands(runner, n, false),
        ("make-shell", &[runner, n]) => commands(runner, n, true),
        ("make-modules", &[runner, modules, percent]) => speed_up(runner, modules, percent),
        _ => return Ok(false),
    }
    Ok(true)
}

/// The build runners, by the numbers that a figure gives.
pub(crate) const RUNNERS: [&str; 4] = ["selvedge-make", "ninja", "samurai", "make"];
/// It is one of the programs of another binary.
pub(crate) const SAMU: u64 = 2;
/// make reads another manifest.
pub(crate) const MAKE: u64 = 3;

/// The inputs that no edge makes.
const SOURCES: u64 = 100;

/// A project in a directory of its own, for one build runner.
pub(super) struct BuildTree {
    directory: PathBuf,
    runner: u64,
}

impl BuildTree {
    /// The project of this name, which an earlier run may have left.
    pub(super) fn kept(name: &str, runner: u64) -> BuildTree {
        let name = format!("make-figure-{name}-{}", RUNNERS[runner as usize]);
        BuildTree { directory: target_directory().join(name), runner }
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    /// An empty project.
    fn new(name: &str, runner: u64) -> BuildTree {
        let tree = BuildTree::kept(name, runner);
        let _ = fs::remove_dir_all(&tree.directory);
        fs::create_dir_all(tree.directory.join("o")).expect("the target directory can be written");
        tree
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).expect("the target directory can be written");
    }

    /// Makes a file that was last written this number of seconds ago.
    fn touch(&self, name: &str, seconds: u64) {
        let file = File::create(self.directory.join(name)).expect("the target directory can be written");
        let then = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).expect("a file's owner sets its time");
    }

    /// Writes the manifest: outputs with their inputs, and one command for all, which has `$out`.
    fn manifest(&self, command: &str, edges: &[(String, String)]) {
        let mut text = String::new();
        let written = if self.runner == MAKE {
            let all: Vec<_> = edges.iter().map(|(output, _)| &output[..]).collect();
            let command = command.replace("$out", "$@").replace("$in", "$^");
            writeln!(text, "all: {}", all.join(" ")).and_then(|()| {
                edges
                    .iter()
                    .try_for_each(|(output, inputs)| writeln!(text, "{output}: {inputs}\n\t{command}"))
            })
        } else {
            writeln!(text, "rule r\n  command = {command}").and_then(|()| {
                edges.iter().try_for_each(|(output, inputs)| writeln!(text, "build {output}: r {inputs}"))
            })
        };
        written.expect("a string takes all");
        self.write(if self.runner == MAKE { "Makefile" } else { "build.ninja" }, &text);
    }

    /// Runs the build runner, and returns how many commands it says it has run, and the time on the
    /// wall's clock and of the CPUs.
    pub(super) fn build(&self, arguments: &[&str]) -> (u64, Duration, Duration) {
        let name = RUNNERS[self.runner as usize];
        let mut command = match self.runner {
            0 => Command::new(target_directory().join("release").join(name)),
            SAMU => Command::new(SAMURAI.executable().expect("the figure has looked for the program")),
            _ => Command::new(name),
        };
        if self.runner == SAMU {
            command.arg("samu");
        }
        let (before, began) = (cpu_of_children(), Instant::now());
        command.args(arguments).current_dir(&self.directory).stderr(Stdio::inherit()).env_remove("MAKEFLAGS");
        let output = command.output().expect("the figure has looked for the program");
        let (wall, cpu) = (began.elapsed(), cpu_of_children() - before);
        assert!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stdout));
        // make shows the command, the others a count and the command.
        let is_command =
            |line: &&str| line.starts_with('[') || (self.runner == MAKE && !line.starts_with("make"));
        let commands = String::from_utf8_lossy(&output.stdout).lines().filter(is_command).count();
        (commands as u64, wall, cpu)
    }
}

fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("Linux has it");
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()).unsigned_abs())
    };
    time(usage.user_time()) + time(usage.system_time())
}

pub(super) fn print(commands: u64, wall: Duration, cpu: Duration) {
    println!("commands {commands}");
    println!("wall_ms {:.4}", wall.as_secs_f64() * 1e3);
    println!("cpu_ms {:.4}", cpu.as_secs_f64() * 1e3);
}

fn output(edge: u64) -> String {
    format!("o/f{edge}.o")
}

/// A graph of `n` edges, each but the first hundred with two inputs that other edges make.
fn edges(n: u64) -> Vec<(String, String)> {
    let inputs = |edge: u64| match edge.checked_sub(SOURCES) {
        None => format!("s{edge}"),
        Some(before) => format!("{} {}", output(edge * 7 / 11), output(before)),
    };
    (0..n).map(|edge| (output(edge), inputs(edge))).collect()
}

/// A build of `n` edges with nothing to do.
fn null(runner: u64, n: u64) {
    let name = format!("null-{n}{}", if fault() > 0 { "-fault" } else { "" });
    let tree = BuildTree::kept(&name, runner);
    if !tree.directory.join("complete").exists() {
        null_tree(&name, runner, n);
    }
    let (commands, wall, cpu) = tree.build(if runner == MAKE { &["-j2"] } else { &[] });
    print(commands, wall, cpu);
}

/// Makes the project of `null`.
fn null_tree(name: &str, runner: u64, n: u64) {
    let tree = BuildTree::new(name, runner);
    tree.manifest("touch $out", &edges(n));
    (0..SOURCES).for_each(|source| tree.touch(&format!("s{source}"), 200));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
    let mut log = "# ninja log v5\n".to_string();
    for edge in 0..n {
        let output = output(edge);
        // All outputs have been made, except that one has not in a run that is to be wrong.
        if edge < n - fault() {
            tree.touch(&output, 100);
            let hash = of_command(5, format!("touch {output}").as_bytes());
            writeln!(log, "0\t1\t{}\t{output}\t{hash:x}", now.as_nanos()).expect("a string takes all");
        }
    }
    if runner != MAKE {
        tree.write(".ninja_log", &log);
    }
    tree.write("complete", "");
}

/// A build of `n` edges that shows its commands and runs none.
fn dry(runner: u64, n: u64) {
    let tree = BuildTree::new("dry", runner);
    tree.manifest("touch $out", &edges(n + fault()));
    (0..SOURCES).for_each(|source| tree.touch(&format!("s{source}"), 200));
    let (commands, wall, cpu) = tree.build(&["-n"]);
    print(commands, wall, cpu);
}

/// A build of `n` commands that do nothing: each is another program, or a word that only the shell
/// knows.
fn commands(runner: u64, n: u64, shell: bool) {
    let tree = BuildTree::new("commands", runner);
    let command = if shell { ": $out && true" } else { "/bin/true $out" };
    let edges: Vec<_> = (0..n + fault()).map(|edge| (output(edge), String::new())).collect();
    tree.manifest(command, &edges);
    let (commands, wall, cpu) = tree.build(&["-j2"]);
    print(commands, wall, cpu);
}

/// How long one module compiles, in steps of the function [`compile`].
pub(super) const STEPS: u64 = 60_000_000;
/// How much less the reading of an interface takes.
const INTERFACE: u64 = 20;

/// The modules that a module imports: some of those before it, as in the paper's programs. Two
/// modules are independent.
pub(super) fn imports(count: u64, module: u64) -> Vec<u64> {
    if count == 2 {
        return Vec::new();
    }
    // Three to a layer; each imports two of the layer above.
    let above = (module / 3).checked_sub(1).map(|layer| layer * 3);
    above.map_or(Vec::new(), |first| vec![first + module % 3, first + (module + 1) % 3])
}

/// The module graph of a program with this number of modules.
fn modules(count: u64) -> Vec<(String, String)> {
    let imports = |module| imports(count, module).into_iter().map(output).collect::<Vec<_>>().join(" ");
    (0..count).map(|module| (output(module), imports(module))).collect()
}

/// The packages with interfaces that a module needs.
pub(super) fn interfaces_of(module: u64) -> impl Iterator<Item = u64> {
    (0..4).map(move |index| (module * 5 + index * 3) % PACKAGES)
}

/// Stands for the reading of a package's interface.
pub(super) fn interface(package: u64, steps: u64) -> u64 {
    compute(package, steps / INTERFACE)
}

/// Compiles a program of this number of modules with one command at a time, and with two.
fn speed_up(runner: u64, count: u64, percent: u64) {
    let compiler = std::env::current_exe().expect("the running executable has a path");
    let compiler = format!("{} child make-compile {} $out $in", compiler.display(), STEPS / 100 * percent);
    let run = |jobs: &str| {
        let tree = BuildTree::new("modules", runner);
        tree.manifest(&compiler, &modules(count + fault()));
        tree.build(&[jobs])
    };
    let (alone, one, _) = run("-j1");
    let (together, two, _) = run("-j2");
    assert_eq!(alone, together, "both builds run the same commands");
    println!("commands {together}");
    println!("speed_up {:.4}", one.as_secs_f64() / two.as_secs_f64());
    println!("wall_ms {:.4}", two.as_secs_f64() * 1e3);
}

/// Stands for a compiler: reads the interfaces of the modules that it imports and of the packages
/// that it needs, computes for this number of steps, and writes its own interface.
pub(super) fn compile(steps: u64, output: &str, imports: &[String]) -> std::io::Result<()> {
    let mut state = 0;
    for import in imports {
        state ^= fs::read(import)?.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    // Which ones does not matter here: a process reads each of them for itself.
    state = interfaces_of(0).fold(state, |state, package| state ^ interface(package, steps));
    fs::write(Path::new(output), compute(state, steps).to_string())
}

/// Computes for this number of steps.
pub(super) fn compute(state: u64, steps: u64) -> u64 {
    let mut state = state ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}
