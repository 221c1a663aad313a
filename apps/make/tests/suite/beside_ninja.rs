//! The same projects and the same edits, built by ninja and by us: the same commands run, the same
//! files come of it, and each goes on with the logs of the other.

use crate::projects::{Built, Dice, NINJA, OURS, build, create, edit, files, tick};

/// Three trees: one is built by this ninja, one by ours, and one by both in turn, which
/// `ours_first` begins or the ninja does. The build runner that begins chooses the version of the
/// log.
fn beside_ninja(seed: u64, ninja: &str, ours_first: bool) {
    let trees = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [theirs, ours, both] = [0, 1, 2].map(|index: usize| trees[index].path());
    trees.iter().for_each(|tree| create(tree.path(), seed));
    let mut dice = Dice::new(seed + 1000);
    let mut what = "all".to_string();
    for step in 0..9 {
        tick();
        let jobs = ["-j1", "-j4"][dice.roll(2)];
        let arguments = [jobs, "-k0"];
        let expected = build(ninja, theirs, &arguments);
        let of_both = if (step % 2 == 0) == ours_first { OURS } else { ninja };
        let context = format!("seed {seed}, step {step}: {what} {jobs}, in {trees:?}");
        assert_eq!(build(OURS, ours, &arguments), expected, "{context}");
        assert_eq!(build(of_both, both, &arguments), expected, "in turn, {context}");
        assert_eq!(files(ours), files(theirs), "{context}");
        assert_eq!(files(both), files(theirs), "in turn, {context}");
        if expected.success {
            let nothing = Built { commands: Vec::new(), success: true };
            assert_eq!(build(OURS, ours, &arguments), nothing, "nothing to do, {context}");
            let other = if of_both == OURS { ninja } else { OURS };
            assert_eq!(build(other, both, &arguments), nothing, "nothing to do for the other, {context}");
        }
        tick();
        what = edit(&[theirs, ours, both], &mut dice, step);
    }
}

#[test]
fn the_same_commands_run_and_the_same_files_come_of_them() {
    (0..6).for_each(|seed| beside_ninja(seed, NINJA, seed % 2 == 0));
}

/// ninja 1.13 and later write logs of version 7, and read no others. Debian 12 has no such ninja;
/// `pip install --target DIRECTORY ninja` installs one. A new log of ours has its version only if
/// the path names it first.
#[test]
#[ignore = "for a newer ninja, which NEWER_NINJA names, and which is the ninja of the path"]
fn the_same_commands_run_beside_a_newer_ninja() {
    let ninja = std::env::var("NEWER_NINJA").expect("NEWER_NINJA is the path of a ninja");
    (10..16).for_each(|seed| beside_ninja(seed, &ninja, seed % 2 == 0));
}
