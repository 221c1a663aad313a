//! Builds that end before their time: nothing half-made may look fresh afterwards.

use crate::projects::{Dice, NINJA, OURS, build, command, create, edit, files, output, tick};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts a slow build, sends a signal after a while, and waits for its end.
fn disturb(directory: &Path, after: Duration, signal: Signal) -> i32 {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let mut slow = command(OURS, directory, &["-j4", "-k0"]);
    let slow = slow.env("SLOW", "0.03").stdout(Stdio::null()).process_group(0).spawn();
    let mut slow = slow.unwrap();
    sleep(after);
    let process = Pid::from_child(&slow);
    let commands = children(slow.id());
    let _ = kill_process(process, signal);
    let status = slow.wait().unwrap();
    if signal == Signal::KILL {
        // The commands go on without their build runner, and may still write.
        for group in commands.into_iter().chain([process]) {
            let _ = kill_process_group(group, signal);
        }
        sleep(Duration::from_millis(150));
    }
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

/// The child processes of a process. The kernel lists them by the OS thread that started each.
fn children(process: u32) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let lists = threads.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    let all = lists.collect::<String>();
    all.split_whitespace().map(|child| Pid::from_raw(child.parse().unwrap()).unwrap()).collect()
}

/// What a build from nothing makes of the same sources.
fn expected(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let clean = tempfile::tempdir().unwrap();
    for (name, content) in files(directory) {
        if !name.starts_with("out/") && !name.starts_with("gen/") && !name.starts_with('.') && name != "dd" {
            fs::write(clean.path().join(&name), content).unwrap();
        }
    }
    let step = clean.path().join("step.sh");
    fs::set_permissions(&step, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    build(OURS, clean.path(), &["-j4", "-k0"]);
    made(clean.path())
}

fn made(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let outputs = files(directory).into_iter();
    outputs
        .filter(|(name, _)| name.starts_with("out/") && !name.ends_with(".rsp") && !name.ends_with(".d"))
        .collect()
}

fn disturbed(seed: u64, signal: Signal) {
    let tree = tempfile::tempdir().unwrap();
    let directory = tree.path();
    create(directory, seed);
    let mut dice = Dice::new(seed + 7);
    build(OURS, directory, &["-j4", "-k0"]);
    for step in 0..5 {
        tick();
        // An output that is gone is made again although no input is newer: the log's record of the
        // earlier command would fit what is half-made.
        let gone = format!("out/e{}", dice.roll(14));
        let _ = fs::remove_file(directory.join(gone));
        let what = edit(&[directory], &mut dice, step);
        for source in 0..6 {
            let path = directory.join(format!("s{source}"));
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("fail\n", "")).unwrap();
        }
        tick();
        disturb(directory, Duration::from_millis(dice.roll(200) as u64), signal);
        // ninja too must see what is half-made.
        let program = [OURS, NINJA][step % 2];
        let built = build(program, directory, &["-j4", "-k0"]);
        assert!(built.success, "seed {seed}, step {step}: {what}");
        assert_eq!(made(directory), expected(directory), "seed {seed}, step {step}: {what}, then {program}");
    }
}

#[test]
fn after_sigkill_at_any_moment_nothing_half_made_looks_fresh() {
    (0..3).for_each(|seed| disturbed(seed, Signal::KILL));
}

/// `cargo xtask soak` runs this for as many seconds as `KILLS_SECONDS` has.
#[test]
#[ignore = "as long as it is told"]
fn kills_for_long() {
    let seconds =
        std::env::var("KILLS_SECONDS").map_or(10, |text| text.parse().expect("a number of seconds"));
    let began = Instant::now();
    let seeds = (100..).take_while(|_| began.elapsed() < Duration::from_secs(seconds));
    let builds = seeds.map(|seed| disturbed(seed, [Signal::KILL, Signal::INT][usize::from(seed % 4 == 0)]));
    println!("{} projects, each killed 5 times", builds.count());
}

#[test]
fn after_sigint_at_any_moment_nothing_half_made_looks_fresh() {
    (3..5).for_each(|seed| disturbed(seed, Signal::INT));
}

#[test]
fn a_signal_ends_the_commands_and_removes_what_they_had_begun() {
    let tree = tempfile::tempdir().unwrap();
    // With `exec` the shell becomes the sleeper. A shell that only starts one blocks its signals
    // meanwhile, and dash then loses a SIGINT.
    let manifest = "rule slow\n  command = echo half > $out; exec sleep 60\nbuild a: slow\nbuild b: slow\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let began = Instant::now();
        let mut runner = command(OURS, tree.path(), &["-j2"]).stdout(Stdio::piped()).spawn().unwrap();
        while !tree.path().join("a").exists() || !tree.path().join("b").exists() {
            sleep(Duration::from_millis(5));
            assert!(began.elapsed() < Duration::from_secs(30), "the commands did not start");
        }
        kill_process(Pid::from_child(&runner), signal).unwrap();
        let status = runner.wait().unwrap();
        assert_eq!(status.code(), Some(130));
        assert!(began.elapsed() < Duration::from_secs(40), "the commands went on");
        let left: Vec<_> = files(tree.path()).into_keys().collect();
        assert_eq!(left, ["build.ninja"]);
    }
    let said = output(OURS, tree.path(), &["-n"]);
    assert!(said.status.success());
}

/// A command that a signal has ended stops the build as Ctrl-C does.
#[test]
fn a_command_that_a_signal_ends_takes_the_others_with_it() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule slow\n  command = echo half > $out; exec sleep 60\nrule ends\n  \
                    command = until test -e a; do sleep 0.01; done; kill -TERM $$$$\nbuild a: slow\nbuild b: ends\n";
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    let began = Instant::now();
    let said = output(OURS, tree.path(), &["-j2", "-k0"]);
    assert_eq!(said.status.code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(40), "the other command went on");
    assert_eq!(files(tree.path()).into_keys().collect::<Vec<_>>(), ["build.ninja"]);
}

/// A command that waits for its end while there is a file `slow`, with its output half made.
const HALF_AT_FIRST: &str = "echo half > $out && test ! -e slow || sleep 60; echo whole > $out";

/// Builds until the output `a` is half made, and kills the build runner and its command.
fn kill_when_half_made(directory: &Path) {
    use std::os::unix::process::CommandExt;
    fs::write(directory.join("slow"), "").unwrap();
    let mut runner =
        command(OURS, directory, &["-v"]).stdout(Stdio::null()).process_group(0).spawn().unwrap();
    let began = Instant::now();
    while !fs::read_to_string(directory.join("a")).is_ok_and(|text| text == "half\n") {
        assert!(began.elapsed() < Duration::from_secs(30), "the command did not start");
        sleep(Duration::from_millis(5));
    }
    let children = children(runner.id());
    kill_process(Pid::from_child(&runner), Signal::KILL).unwrap();
    runner.wait().unwrap();
    assert_eq!(children.len(), 1, "the command runs in a process group of its own");
    for group in children {
        kill_process_group(group, Signal::KILL).unwrap();
    }
    fs::remove_file(directory.join("slow")).unwrap();
}

/// After the kill, the flags or the input are again what they were when the output was whole. So
/// the record of that time would fit the half-made output.
#[test]
fn what_is_as_it_was_before_does_not_make_a_half_made_output_fresh() {
    let manifest =
        |flags: u32| format!("rule r\n  command = : {flags} && {HALF_AT_FIRST}\nbuild a: r source\n");
    for flags_change in [true, false] {
        let tree = tempfile::tempdir().unwrap();
        let path = |name: &str| tree.path().join(name);
        fs::write(path("build.ninja"), manifest(0)).unwrap();
        fs::write(path("source"), "").unwrap();
        tick();
        assert!(build(OURS, tree.path(), &[]).success);
        tick();
        if flags_change {
            fs::write(path("build.ninja"), manifest(1)).unwrap();
        } else {
            fs::rename(path("source"), path("before")).unwrap();
            fs::write(path("source"), "edited").unwrap();
        }
        kill_when_half_made(tree.path());
        if flags_change {
            fs::write(path("build.ninja"), manifest(0)).unwrap();
        } else {
            fs::rename(path("before"), path("source")).unwrap();
        }
        for program in [OURS, NINJA] {
            let again = build(program, tree.path(), &["-n"]).commands.len();
            assert_eq!(again, 1, "{program}, {flags_change}");
        }
        assert!(build(OURS, tree.path(), &[]).success);
        assert_eq!(fs::read_to_string(path("a")).unwrap(), "whole\n");
    }
}

/// An output of a generator without a record counts as made by hand, so a record must be there
/// before its command.
#[test]
fn what_a_generator_has_half_made_for_the_first_time_is_not_fresh() {
    for (input, programs) in [("source", &[OURS, NINJA][..]), ("", &[OURS])] {
        let tree = tempfile::tempdir().unwrap();
        let manifest = format!("rule r\n  command = {HALF_AT_FIRST}\n  generator = 1\nbuild a: r {input}\n");
        fs::write(tree.path().join("build.ninja"), manifest).unwrap();
        fs::write(tree.path().join("source"), "").unwrap();
        tick();
        kill_when_half_made(tree.path());
        for program in programs {
            assert_eq!(build(program, tree.path(), &["-n"]).commands.len(), 1, "{program} {input:?}");
        }
    }
}

/// The build runner with this manifest, when its command has made `a`. `limit` is the most that
/// this may take.
fn started(directory: &Path, manifest: &str, limit: Duration) -> Child {
    fs::write(directory.join("build.ninja"), manifest).unwrap();
    let runner = command(OURS, directory, &[]).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !directory.join("a").exists() {
        sleep(Duration::from_millis(5));
        assert!(began.elapsed() < limit, "the command did not start");
    }
    runner
}

/// The command writes a line after the signal, and then removes a file that is no output. Without a
/// reader of its pipe the line would be its end.
#[test]
fn a_command_that_a_signal_ends_may_write_before_it_cleans_up() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule r\n  command = trap 'echo stopping; rm part; exit 1' INT; touch part; touch $out; \
                    while :; do sleep 0.02; done\nbuild a: r\n";
    let mut runner = started(tree.path(), manifest, Duration::from_secs(30));
    kill_process(Pid::from_child(&runner), Signal::INT).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(130));
    assert_eq!(files(tree.path()).into_keys().collect::<Vec<_>>(), ["build.ninja"]);
}

/// Without a manifest no build could make it anew.
#[test]
fn a_manifest_that_a_signal_has_stopped_stays_and_is_made_again() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule g\n  command = cp source build.ninja && touch a && exec sleep 60\n  generator = 1\n\
                    build build.ninja: g source\n";
    fs::write(tree.path().join("source"), manifest.replace(" && exec sleep 60", "")).unwrap();
    // The record of a generator that has not finished: the manifest is not taken as made by hand.
    fs::write(tree.path().join(".ninja_log"), "# ninja log v6\n0\t0\t0\tbuild.ninja\t0\n").unwrap();
    let mut runner = started(tree.path(), manifest, Duration::from_secs(30));
    kill_process(Pid::from_child(&runner), Signal::INT).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(130));
    assert_eq!(build(OURS, tree.path(), &[]).commands, ["cp source build.ninja && touch a"]);
    assert_eq!(build(OURS, tree.path(), &[]).commands, [""; 0]);
}

/// A daemon that a command leaves behind keeps the pipe open.
#[test]
fn a_signal_does_not_wait_for_a_process_that_a_command_has_left_behind() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule r\n  command = setsid sleep 8 & touch $out; exec sleep 60\nbuild a: r\n";
    let began = Instant::now();
    let mut runner = started(tree.path(), manifest, Duration::from_secs(5));
    kill_process(Pid::from_child(&runner), Signal::INT).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

/// The inputs are old and the command is that of the log's record: the record of the earlier build
/// would fit the half-made output.
#[test]
fn an_output_that_was_gone_and_is_half_made_does_not_fit_the_record_of_the_earlier_build() {
    let tree = tempfile::tempdir().unwrap();
    let rule = format!("command = {HALF_AT_FIRST}");
    for more in ["", "  restat = 1\n", "  generator = 1\n"] {
        let manifest = format!("rule r\n  {rule}\n{more}build a: r source\n");
        fs::write(tree.path().join("build.ninja"), manifest).unwrap();
        fs::write(tree.path().join("source"), "").unwrap();
        tick();
        assert!(build(OURS, tree.path(), &[]).success);
        fs::remove_file(tree.path().join("a")).unwrap();
        kill_when_half_made(tree.path());
        for program in [OURS, NINJA] {
            assert_eq!(build(program, tree.path(), &["-n"]).commands.len(), 1, "{program} {more}");
        }
        assert!(build(OURS, tree.path(), &[]).success);
        assert_eq!(fs::read_to_string(tree.path().join("a")).unwrap(), "whole\n");
    }
}

/// A shell that starts a program at the same moment may lose a signal.
#[test]
fn a_signal_that_a_command_has_lost_comes_again() {
    let tree = tempfile::tempdir().unwrap();
    let manifest = "rule deaf\n  command = trap 'trap - INT' INT; touch $out; while :; do sleep 0.02; done\nbuild a: deaf\n";
    let mut runner = started(tree.path(), manifest, Duration::from_secs(30));
    kill_process(Pid::from_child(&runner), Signal::INT).unwrap();
    let sent = Instant::now();
    let status = loop {
        if let Some(status) = runner.try_wait().unwrap() {
            break status;
        }
        if sent.elapsed() > Duration::from_secs(15) {
            for group in children(runner.id()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            panic!("the signal did not come again");
        }
        sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    assert_eq!(files(tree.path()).into_keys().collect::<Vec<_>>(), ["build.ninja"]);
}
