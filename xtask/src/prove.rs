//! `cargo xtask prove`: runs the proofs of `proofs.rs` that are not recorded for the present state
//! of their inputs, and records the proofs that pass. `main.rs` calls `command`, and `ci.rs` calls
//! `every`.
//!
//! The protocol:
//!
//! 1. The digest of each proof is taken before it runs ([`Inputs`]).
//! 2. `proofs.json` names the digest with which a proof has passed. The same digest means: the same
//!    proof over the same inputs, so it need not run again.
//! 3. CI runs one in [`ONE_IN`] of the recorded proofs all the same. The commit's hash chooses
//!    them, so that a record that should not be there is found within some commits, and a commit
//!    always chooses the same ones. They come last, and none begins after the command has taken
//!    [`AGAIN_WITHIN`]: a slow machine checks fewer records and misses nothing that is new. The
//!    output names each one that did not begin.
//! 4. A proof that passes is recorded at once, if its inputs are still the same. A proof that fails
//!    loses its record.
//!
//! The output of the last run of each proof is in the file that `prove --list` names.

use crate::command::Tally;
use crate::proofs::digest::Inputs;
use crate::proofs::records::{Record, Records};
use crate::proofs::{self, Proof, Turn, Work};
use crate::steps::{self, Outcome};
use crate::workspace::Workspace;
use crate::{packages, setup, side_by_side};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// CI runs one in this number of the recorded proofs again.
const ONE_IN: usize = 8;

/// CI begins a recorded proof only if it has taken less than this.
const AGAIN_WITHIN: Duration = Duration::from_mins(25);

/// Which proofs run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice<'a> {
    /// The proofs that are not recorded.
    New,
    /// These proofs, and one in eight of the others.
    NewAndSome,
    /// All.
    All,
    /// Those with one of these words in their names, recorded or not.
    Named(&'a [&'a str]),
}

/// A proof, its digest, and what the records say of it.
struct Known<'a> {
    proof: &'a Proof,
    digest: String,
    /// The record with this digest.
    record: Option<Record>,
}

/// `cargo xtask prove [--list | --all | NAMES]`.
pub(crate) fn command(words: &[&str]) -> ExitCode {
    let outcome = match words {
        ["--list"] => list(),
        [] => return run(Choice::New),
        ["--all"] => return run(Choice::All),
        names if names.iter().all(|name| !name.starts_with('-')) => return run(Choice::Named(names)),
        _ => Err(format!("prove takes --list, --all or parts of proofs' names, and not {}", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(choice: Choice) -> ExitCode {
    let started = Instant::now();
    let setup = steps::one(Tally::of("setup", false), |_| setup::run(setup::Extent::TestsAndProofs));
    let mut outcomes = vec![setup];
    if outcomes[0].result.is_ok() {
        outcomes.extend(every(choice, started));
    }
    steps::close("prove", started.elapsed().as_secs_f64(), outcomes)
}

/// Runs the chosen proofs for a command that has begun at `started`. An error before the first is
/// an outcome too.
pub(crate) fn every(choice: Choice, started: Instant) -> Vec<Outcome> {
    match prepared(choice, started) {
        Ok(outcomes) => outcomes,
        Err(error) => vec![steps::one(Tally::of("proofs", false), |_| Err(error))],
    }
}

fn prepared(choice: Choice, started: Instant) -> Result<Vec<Outcome>, String> {
    let workspace = Workspace::load()?;
    let all = proofs::all();
    let mut records = Records::read(&workspace.root)?;
    // A proof that was renamed leaves no record.
    records.retain(|name| all.iter().any(|proof| proof.name == name));
    let known = known(&workspace, &all, &records)?;
    let chosen = chosen(&known, choice, &commit(&workspace.root))?;
    for known in &known {
        if !chosen.iter().any(|chosen| chosen.proof.name == known.proof.name) {
            println!("{}", state(known));
        }
    }
    let run = Run { workspace: &workspace, records: Mutex::new(records) };
    Ok(run.all(chosen, choice, || started.elapsed()))
}

/// Whether a recorded proof begins in a command that has taken `elapsed`. Says so if not.
fn within(known: &Known, elapsed: Duration) -> bool {
    let begins = elapsed < AGAIN_WITHIN;
    if !begins {
        println!("not again: {}: {} minutes are over", known.proof.name, elapsed.as_secs() / 60);
    }
    begins
}

/// Prints every proof with its state.
fn list() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let all = proofs::all();
    let mut lines = String::new();
    for known in known(&workspace, &all, &Records::read(&workspace.root)?)? {
        lines.extend([&state(&known), "\n"]);
        let log = log(&workspace, &known.proof.name);
        if log.exists() {
            lines.extend(["    output of the last run here: ", &log.to_string_lossy(), "\n"]);
        }
    }
    // A reader that has read enough, such as `head`, is no error.
    let _ = std::io::stdout().write_all(lines.as_bytes());
    Ok(())
}

fn state(known: &Known) -> String {
    let name = &known.proof.name;
    match &known.record {
        Some(Record { date, machine, seconds, passed, .. }) => {
            format!("recorded: {name}: {passed} tests passed on {date} in {seconds} s ({machine})")
        }
        None => format!("to prove: {name}"),
    }
}

/// The digests of all proofs, with their records.
fn known<'a>(workspace: &Workspace, all: &'a [Proof], records: &Records) -> Result<Vec<Known<'a>>, String> {
    let inputs = Inputs::read(workspace)?;
    let (stable, nightly) =
        (compiler(&["rustc", "-vV"])?, compiler(&["rustup", "run", "nightly", "rustc", "-vV"]));
    let known = all.iter().map(|proof| {
        let compiler = if proof.nightly { nightly.as_ref().map_err(Clone::clone)? } else { &stable };
        let digest = digest(&inputs, workspace, proof, compiler)?;
        let record = records.get(&proof.name).filter(|record| record.digest == digest).cloned();
        Ok(Known { proof, digest, record })
    });
    known.collect()
}

fn digest(inputs: &Inputs, workspace: &Workspace, proof: &Proof, compiler: &str) -> Result<String, String> {
    let commands = proof.commands().replace(&*workspace.root.to_string_lossy(), "");
    inputs.digest(&proof.sources, &format!("{commands}\n{compiler}"))
}

/// What a compiler says of its version.
fn compiler(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", words.join(" ")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The hash of the commit that is checked out; empty where there is none.
fn commit(root: &Path) -> String {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The proofs to run, in the order of the list.
fn chosen<'a, 'b>(
    known: &'a [Known<'b>],
    choice: Choice,
    commit: &str,
) -> Result<Vec<&'a Known<'b>>, String> {
    let drawn = match choice {
        Choice::NewAndSome => drawn(known, commit),
        _ => Vec::new(),
    };
    let takes = |known: &Known| match choice {
        Choice::New => known.record.is_none(),
        Choice::NewAndSome => known.record.is_none() || drawn.contains(&known.proof.name.as_str()),
        Choice::All => true,
        Choice::Named(names) => names.iter().any(|name| known.proof.name.contains(name)),
    };
    let chosen: Vec<_> = known.iter().filter(|known| takes(known)).collect();
    match choice {
        Choice::Named(names) if chosen.is_empty() => Err(format!(
            "no proof has {} in its name; `cargo xtask prove --list` names them",
            names.join(" or ")
        )),
        _ => Ok(chosen),
    }
}

/// One in [`ONE_IN`] of the recorded proofs, rounded up: the first ones when the names are put in
/// order by their digests with the commit.
fn drawn<'a>(known: &'a [Known], commit: &str) -> Vec<&'a str> {
    let recorded = known.iter().filter(|known| known.record.is_some());
    let mut names: Vec<&str> = recorded.map(|known| known.proof.name.as_str()).collect();
    names.sort_by_key(|name| Sha256::digest(format!("{commit} {name}")));
    names.truncate(names.len().div_ceil(ONE_IN));
    names
}

/// The file that takes the output of a proof.
fn log(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target_dir.join("proofs").join(format!("{}.log", name.replace(' ', "-")))
}

/// A run of several proofs.
struct Run<'a> {
    workspace: &'a Workspace,
    records: Mutex<Records>,
}

impl Run<'_> {
    /// Runs the chosen proofs: what is new first, and then, while there is time, the records that
    /// CI checks.
    fn all(
        &self,
        chosen: Vec<&Known>,
        choice: Choice,
        elapsed: impl Fn() -> Duration + Sync,
    ) -> Vec<Outcome> {
        let drawn = |known: &&Known| matches!(choice, Choice::NewAndSome) && known.record.is_some();
        let (again, first): (Vec<_>, Vec<_>) = chosen.into_iter().partition(drawn);
        let mut outcomes = self.in_turns(&first, |_| true);
        outcomes.extend(self.in_turns(&again, |known| within(known, elapsed())));
        outcomes
    }

    /// Runs those of these proofs that may begin, in the order of their turns.
    fn in_turns(&self, proofs: &[&Known], begins: impl Fn(&Known) -> bool + Sync) -> Vec<Outcome> {
        let at = |turn| proofs.iter().copied().filter(move |known| known.proof.turn == turn);
        let one = |known: &Known, beside| begins(known).then(|| self.one(known, beside));
        let mut outcomes: Vec<Outcome> = at(Turn::Alone).filter_map(|known| one(known, false)).collect();
        let beside: Vec<_> = at(Turn::Beside).collect();
        outcomes.extend(side_by_side::each(&beside, |known| one(known, true)).into_iter().flatten());
        outcomes.extend(at(Turn::Last).filter_map(|known| one(known, false)));
        outcomes
    }

    /// Runs one proof, and records it or forgets it.
    fn one(&self, known: &Known, beside_others: bool) -> Outcome {
        let proof = known.proof;
        let mut tally = Tally::of(&proof.name, beside_others);
        tally.log = self.log(&proof.name);
        let mut outcome = steps::one(tally, |tally| {
            self.work(proof, tally)?;
            // A filter that fits no name any more must not look like a pass.
            match proof.sources.tested.is_empty() || tally.passed > 0 {
                true => Ok(()),
                false => Err("no test ran".to_string()),
            }
        });
        if let Err(error) = self.record(known, &outcome)
            && outcome.result.is_ok()
        {
            println!("prove: {}: not recorded: {error}", proof.name);
            outcome.result = Err(error);
            outcome.tally.failed += 1;
        }
        outcome
    }

    fn work(&self, proof: &Proof, tally: &mut Tally) -> Result<(), String> {
        match &proof.work {
            Work::Packages => packages::run(self.workspace, tally),
            Work::Commands(commands) => commands.iter().try_for_each(|command| {
                tally.say(&format!("prove: {}", command.display()));
                let begun = Instant::now();
                let result = command.run(&self.workspace.root, tally);
                tally.say(&format!("prove: it took {:.1} s", begun.elapsed().as_secs_f64()));
                result
            }),
        }
    }

    fn log(&self, name: &str) -> Option<File> {
        let log = log(self.workspace, name);
        std::fs::create_dir_all(log.parent()?).ok()?;
        File::create(log).ok()
    }

    /// Writes the record of a proof that passed, and removes that of one that failed.
    fn record(&self, known: &Known, outcome: &Outcome) -> Result<(), String> {
        let name = &known.proof.name;
        let mut records = self.records.lock().expect("no holder panics");
        records.retain(|other| other != name);
        if outcome.result.is_ok() {
            records.insert(
                name,
                Record {
                    digest: known.digest.clone(),
                    date: date()?,
                    machine: machine(),
                    seconds: outcome.seconds.round() as u64,
                    passed: outcome.tally.passed,
                },
            );
        }
        records.write()
    }
}

/// Today, as `2026-11-23`.
fn date() -> Result<String, String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().map_err(|e| format!("date: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The processor, and how many CPUs of it this process may use.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cpus} CPUs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proofs::digest::Sources;

    fn proofs(count: usize) -> Vec<Proof> {
        let proof = |at: usize| Proof {
            name: format!("proof {at}"),
            sources: Sources::default(),
            nightly: false,
            turn: Turn::Beside,
            work: Work::Commands(Vec::new()),
        };
        (0..count).map(proof).collect()
    }

    fn record() -> Record {
        Record {
            digest: "d".to_string(),
            date: "2026-01-02".to_string(),
            machine: "m".to_string(),
            seconds: 1,
            passed: 1,
        }
    }

    /// The first `recorded` of the proofs are recorded.
    fn known(proofs: &[Proof], recorded: usize) -> Vec<Known<'_>> {
        let known = proofs.iter().enumerate().map(|(at, proof)| Known {
            proof,
            digest: "d".to_string(),
            record: (at < recorded).then(record),
        });
        known.collect()
    }

    fn names(known: &[Known], choice: Choice, commit: &str) -> Vec<String> {
        let chosen = chosen(known, choice, commit).unwrap();
        chosen.iter().map(|known| known.proof.name.clone()).collect()
    }

    #[test]
    fn what_is_recorded_does_not_run_again() {
        let proofs = proofs(3);
        assert_eq!(names(&known(&proofs, 2), Choice::New, ""), ["proof 2"]);
        assert_eq!(names(&known(&proofs, 2), Choice::All, "").len(), 3);
        assert_eq!(names(&known(&proofs, 3), Choice::Named(&["1"]), ""), ["proof 1"]);
    }

    #[test]
    fn a_commit_draws_one_in_eight_and_another_commit_draws_others() {
        let proofs = proofs(17);
        let known = known(&proofs, 16);
        let of = |commit: &str| names(&known, Choice::NewAndSome, commit);
        assert_eq!(of("a").len(), 3, "two of sixteen, and the one that is not recorded");
        assert_eq!(of("a"), of("a"));
        let drawn: std::collections::BTreeSet<String> =
            (0..100).flat_map(|commit| of(&commit.to_string())).collect();
        assert_eq!(drawn.len(), 17, "within a hundred commits each proof runs");
    }

    #[test]
    fn a_recorded_proof_does_not_begin_late_and_a_new_one_does() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: dir.path().into(),
            target_dir: dir.path().join("target"),
            packages: Vec::new(),
        };
        let run = Run { workspace: &workspace, records: Mutex::new(Records::read(dir.path()).unwrap()) };
        let mut proofs = proofs(3);
        (proofs[0].turn, proofs[2].turn) = (Turn::Last, Turn::Alone);
        let names = |recorded, choice, elapsed| {
            let known = known(&proofs, recorded);
            let outcomes = run.all(known.iter().collect(), choice, || elapsed);
            outcomes.into_iter().map(|outcome| outcome.name).collect::<Vec<_>>()
        };
        assert_eq!(names(3, Choice::NewAndSome, AGAIN_WITHIN), [""; 0]);
        assert_eq!(names(3, Choice::NewAndSome, AGAIN_WITHIN / 2), ["proof 2", "proof 1", "proof 0"]);
        assert_eq!(names(2, Choice::NewAndSome, AGAIN_WITHIN), ["proof 2"], "the one without a record");
        assert_eq!(names(3, Choice::All, AGAIN_WITHIN).len(), 3, "a reader has asked for them");
    }

    #[test]
    fn a_name_of_no_proof_is_refused() {
        let proofs = proofs(1);
        let known = known(&proofs, 0);
        let refused = chosen(&known, Choice::Named(&["loom"]), "").err().unwrap();
        assert!(refused.contains("loom"), "{refused}");
    }

    #[test]
    fn tests_of_which_none_ran_prove_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: dir.path().into(),
            target_dir: dir.path().join("target"),
            packages: Vec::new(),
        };
        let run = Run { workspace: &workspace, records: Mutex::new(Records::read(dir.path()).unwrap()) };
        let mut proofs = proofs(1);
        proofs[0].sources = Sources { tested: &["a"], ..Sources::default() };
        for (line, proves) in [("0 passed; 0 failed;", false), ("1 passed; 0 failed;", true)] {
            let said = format!("test result: ok. {line}");
            let command =
                crate::command::Invocation::new(std::time::Duration::from_secs(9), &["echo", &said]);
            proofs[0].work = Work::Commands(vec![command]);
            let outcome = run.one(&known(&proofs, 0)[0], false);
            assert_eq!(outcome.result.is_ok(), proves, "{line}");
        }
    }

    #[test]
    fn a_proof_that_fails_loses_its_record_and_one_that_passes_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: dir.path().into(),
            target_dir: dir.path().join("target"),
            packages: Vec::new(),
        };
        let run = Run { workspace: &workspace, records: Mutex::new(Records::read(dir.path()).unwrap()) };
        let mut proofs = proofs(1);
        for (program, passes) in [("true", true), ("false", false)] {
            let command = crate::command::Invocation::new(std::time::Duration::from_secs(9), &[program]);
            proofs[0].work = Work::Commands(vec![command]);
            let outcome = run.one(&known(&proofs, 0)[0], false);
            assert_eq!(outcome.result.is_ok(), passes);
            assert_eq!(Records::read(dir.path()).unwrap().get("proof 0").is_some(), passes);
            assert!(log(&workspace, "proof 0").exists());
        }
    }
}
