//! Projects of which a seed determines the graph and the edits, and the build runners that build
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// The program under test.
pub(crate) const OURS: &str = env!("CARGO_BIN_EXE_selvedge-make");
/// The build runner to which ours is compared. `cargo xtask setup` installs it.
pub(crate) const NINJA: &str = "ninja";

/// What every edge runs: it sums up its inputs and the headers that they include. Lines that begin
/// with `comment` count for nothing, and a line that begins with `fail` makes it fail.
const STEP: &str = r#"#!/bin/sh
kind=$1; shift; outs=
while [ "$1" != -- ]; do outs="$outs $1"; shift; done; shift
[ $# = 0 ] && set -- /dev/null
headers=$(sed -n 's/^include //p' "$@")
if grep -q '^fail' "$@"; then echo "cannot make$outs"; exit 3; fi
sum=$(cat "$@" $headers | grep -v '^comment' | cksum)
set -- $outs "--" "$@"
case $kind in deps|depfile) first=$1; while [ "$1" != -- ]; do shift; done; shift
  echo $first: $* $headers > $first.d;; esac
for out in $outs; do
  [ $kind = restat ] && [ -f $out ] && [ "$(cat $out)" = "$sum" ] && continue
  if [ -n "$SLOW" ]; then echo half > $out; sleep $SLOW; fi
  echo "$sum" > $out
done
"#;

/// Numbers that a seed determines.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}

const SOURCES: usize = 6;
const HEADERS: usize = 3;

/// Writes a project into an empty directory.
pub(crate) fn create(directory: &Path, seed: u64) {
    let mut dice = Dice::new(seed);
    let step = directory.join("step.sh");
    fs::write(&step, STEP).unwrap();
    fs::set_permissions(&step, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for header in 0..HEADERS {
        fs::write(directory.join(format!("h{header}")), format!("header {header}\n")).unwrap();
    }
    fs::write(directory.join("template"), "generated\n").unwrap();
    for source in 0..SOURCES {
        let mut text = format!("source {source}\n");
        for header in 0..HEADERS {
            if dice.roll(2) == 0 {
                writeln!(text, "include h{header}").unwrap();
            }
        }
        if dice.roll(2) == 0 {
            text.push_str("include gen/header\n");
        }
        fs::write(directory.join(format!("s{source}")), text).unwrap();
    }
    let pipes = "| step.sh";
    let mut manifest = "flags = 0\n".to_string();
    for (rule, more) in [
        ("plain", ""),
        ("restat", "  restat = 1\n"),
        ("deps", "  depfile = $first.d\n  deps = gcc\n"),
        ("depfile", "  depfile = $first.d\n"),
    ] {
        write!(manifest, "rule {rule}\n  command = ./step.sh {rule} $out -- $in $flags\n{more}").unwrap();
    }
    manifest = manifest.replace(" $flags", "");
    manifest.push_str("rule flagged\n  command = : $flags && ./step.sh plain $out -- $in\n");
    manifest.push_str("rule rsp\n  command = ./step.sh plain $out -- $$(cat $out.rsp)\n");
    manifest.push_str("  rspfile = $out.rsp\n  rspfile_content = $in\n");
    manifest.push_str("rule dd\n  command = cp $in $out\n  restat = 1\n");
    manifest.push_str("pool two\n  depth = 2\n");
    writeln!(manifest, "build gen/header: restat template {pipes}").unwrap();
    fs::write(directory.join("dd.in"), "ninja_dyndep_version = 1\nbuild out/dyn: dyndep | out/e0\n").unwrap();
    writeln!(manifest, "build dd: dd dd.in\nbuild out/dyn: plain s0 || dd\n  dyndep = dd").unwrap();
    let mut made: Vec<String> = (0..SOURCES).map(|source| format!("s{source}")).collect();
    for edge in 0..14 {
        let rules = ["plain", "restat", "deps", "depfile", "flagged", "rsp", "phony"];
        // The dyndep file names the first edge, which must be a file.
        let rule = rules[dice.roll(if edge == 0 { 6 } else { 7 })];
        // Only sources include headers.
        let of_sources = matches!(rule, "deps" | "depfile");
        let range = if of_sources { SOURCES } else { made.len() };
        let mut inputs: Vec<_> = (0..=dice.roll(3)).map(|_| made[dice.roll(range)].clone()).collect();
        // What an edge knows by its inputs only must not include the header that is generated.
        inputs.dedup();
        let phony_inputs = inputs.iter().any(|input| input.starts_with("all"));
        if phony_inputs && rule != "phony" {
            inputs.retain(|input| !input.starts_with("all"));
            inputs.push("s1".into());
        }
        let output = if rule == "phony" { format!("all{edge}") } else { format!("out/e{edge}") };
        let second = dice.roll(4) == 0 && rule != "phony" && rule != "rsp";
        let outputs = if second { format!("{output} out/x{edge}") } else { output.clone() };
        let more = if dice.roll(4) == 0 { "\n  pool = two" } else { "" };
        let validation = if dice.roll(6) == 0 { " |@ gen/header" } else { "" };
        let inputs = inputs.join(" ");
        match rule {
            "phony" => writeln!(manifest, "build {outputs}: phony {inputs} || gen/header").unwrap(),
            _ => writeln!(
                manifest,
                "build {outputs}: {rule} {inputs} {pipes} || gen/header{validation}\n  first = {output}{more}"
            )
            .unwrap(),
        }
        made.push(output);
    }
    fs::write(directory.join("build.ninja"), manifest).unwrap();
}

/// Changes a project, the same way in each of the directories. Returns what was changed.
pub(crate) fn edit(directories: &[&Path], dice: &mut Dice, step: usize) -> String {
    let source = format!("s{}", dice.roll(SOURCES));
    let header = format!("h{}", dice.roll(HEADERS));
    let output = format!("out/e{}", dice.roll(14));
    let append = |name: &str, line: &str| {
        for directory in directories {
            let text = fs::read_to_string(directory.join(name)).unwrap();
            fs::write(directory.join(name), format!("{text}{line}\n")).unwrap();
        }
    };
    let what = match dice.roll(11) {
        0 => "nothing".to_string(),
        1 => {
            append(&source, "comment");
            format!("a comment in {source}")
        }
        2 => {
            append(&source, &format!("more {step}"));
            source
        }
        3 => {
            append(&header, &format!("more {step}"));
            header
        }
        4 => {
            append("template", "comment");
            "a comment in the template".into()
        }
        5 => {
            append("template", &format!("more {step}"));
            "the template".into()
        }
        6 => {
            for directory in directories {
                let _ = fs::remove_file(directory.join(&output));
            }
            format!("{output} removed")
        }
        7 => {
            append(&source, "fail");
            format!("{source} fails")
        }
        8 => {
            for directory in directories {
                let path = directory.join("build.ninja");
                let text = fs::read_to_string(&path).unwrap();
                let (first, rest) = text.split_once('\n').unwrap();
                fs::write(&path, format!("{first}1\n{rest}")).unwrap();
            }
            "the flags".into()
        }
        9 => {
            append("dd.in", "");
            "the dyndep file, to the same".into()
        }
        _ => {
            append(&source, &format!("include {header}"));
            format!("{source} includes {header}")
        }
    };
    // What failed is mended in the next step but one, sometimes.
    if dice.roll(3) == 0 {
        for directory in directories {
            for source in 0..SOURCES {
                let path = directory.join(format!("s{source}"));
                let text = fs::read_to_string(&path).unwrap();
                if text.contains("fail\n") {
                    fs::write(&path, text.replace("fail\n", "")).unwrap();
                }
            }
        }
    }
    what
}

/// The file system's clock goes on, so that what is written now is newer than what was written
/// before.
pub(crate) fn tick() {
    std::thread::sleep(Duration::from_millis(12));
}

/// What a build has done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// The commands that ran, sorted.
    pub(crate) commands: Vec<String>,
    pub(crate) success: bool,
}

pub(crate) fn command(program: &str, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).args(arguments).env("NINJA_STATUS", "@@ ").env_remove("MAKEFLAGS");
    command
}

pub(crate) fn output(program: &str, directory: &Path, arguments: &[&str]) -> Output {
    let output = command(program, directory, arguments).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask setup` installs what tests need"))
}

/// Runs a build runner to its end.
pub(crate) fn build(program: &str, directory: &Path, arguments: &[&str]) -> Built {
    let output = output(program, directory, &[&["-v"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut commands: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("@@ ")).map(str::to_string).collect();
    commands.sort();
    Built { commands, success: output.status.success() }
}

/// All files with their contents, without the logs.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                open.push(path);
            } else if name != ".ninja_log" && name != ".ninja_deps" {
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}
