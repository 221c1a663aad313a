//! What dyndep files add to a build.

use crate::projects::{NINJA, OURS, build, command, tick};
use crate::small::{run, tree, write};
use std::fs;

#[test]
fn a_dyndep_file_that_is_made_adds_edges_to_the_build() {
    // Which module needs which is known when the sources have been scanned: `b` needs `a`, which no
    // statement of the manifest says.
    let manifest = "rule scan\n  command = cp $in $out\nrule cc\n  command = cat $in $need > $out && touch $out $touch\n\
                    build dd: scan dd.in\n\
                    build b.o: cc b || dd\n  dyndep = dd\n  need = a.mod\n\
                    build a.o: cc a || dd\n  dyndep = dd\n  touch = a.mod\n\
                    build c.mod: cc c\n\
                    default b.o\n";
    let tree = tree(manifest);
    for source in ["a", "b", "c"] {
        write(&tree, source, source);
    }
    let dyndep = "ninja_dyndep_version = 1\nbuild a.o | a.mod: dyndep | c.mod\nbuild b.o: dyndep | a.mod\n";
    write(&tree, "dd.in", dyndep);
    let other = tempfile::tempdir().unwrap();
    for name in ["build.ninja", "a", "b", "c", "dd.in"] {
        fs::copy(tree.path().join(name), other.path().join(name)).unwrap();
    }
    let ran = build(OURS, tree.path(), &["-j4"]);
    assert!(ran.success && ran.commands.len() == 4, "{ran:?}");
    assert_eq!(ran, build(NINJA, other.path(), &["-j4"]));
    assert_eq!(run(&tree, &[]).0, "selvedge-make: no work to do.\n");
    tick();
    write(&tree, "c", "changed");
    let ran = build(OURS, tree.path(), &["-j4"]);
    assert_eq!(ran.commands.len(), 3, "{ran:?}");
    tick();
    write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild b.o: dyndep\n");
    let (text, status) = run(&tree, &[]);
    assert!(status == 1 && text.contains("'a.o' not mentioned in its dyndep file 'dd'"), "{text}");
}

#[test]
fn a_version_may_have_a_suffix_as_with_ninja() {
    let manifest = "rule t\n  command = touch $out\nbuild a: t || dd\n  dyndep = dd\n";
    for (version, is_known) in [
        ("1", true),
        ("1.0", true),
        ("1-extra", true),
        ("1.0-extra", true),
        ("1.0.7", true),
        ("1.", true),
        ("1.1", false),
        ("2", false),
        ("x", false),
    ] {
        for program in [OURS, NINJA] {
            let tree = tree(manifest);
            write(&tree, "dd", &format!("ninja_dyndep_version = {version}\nbuild a: dyndep\n"));
            assert_eq!(build(program, tree.path(), &[]).success, is_known, "{program}: {version}");
        }
    }
}

/// `b` needs `c`, which a dyndep file tells, and `v` is to be built with `c`.
#[test]
fn validations_of_what_a_dyndep_file_names_are_built() {
    let manifest = "rule t\n  command = touch $out\nrule cp\n  command = cp $in $out\n\
                    build dd: cp dd.in\nbuild b: t || dd\n  dyndep = dd\n\
                    build c: t |@ v\nbuild v: t |@ w\nbuild w: t\ndefault b\n";
    let built = [OURS, NINJA].map(|program| {
        let tree = tree(manifest);
        write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild b: dyndep | c\n");
        build(program, tree.path(), &[])
    });
    assert_eq!(built[0], built[1]);
    assert!(built[0].success && built[0].commands.len() == 5, "{built:?}");
}

/// `b` waits for the dyndep file and is up to date as far as that is known before.
#[test]
fn a_command_that_a_dyndep_file_makes_necessary_is_counted() {
    let manifest = "rule t\n  command = touch $out\nrule cp\n  command = cp $in $out\n\
                    build dd: cp dd.in\nbuild b: t || dd\n  dyndep = dd\nbuild c: t\ndefault b\n";
    let tree = tree(manifest);
    write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild b: dyndep\n");
    assert_eq!(run(&tree, &[]).1, 0);
    tick();
    write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild b: dyndep | c\n");
    let output = command(OURS, tree.path(), &[]).env("NINJA_STATUS", "%f/%t ").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "1/1 cp dd.in dd\n2/2 touch c\n3/3 touch b\n");
}

/// No target needs `m` at first. The file that it makes was a source.
#[test]
fn an_output_that_a_dyndep_file_names_is_made_before_its_users() {
    let manifest = "rule cp\n  command = cp $in $out\nrule m\n  command = echo new > x; touch $out\n\
                    build dd: cp dd.in\nbuild m: m source || dd\n  dyndep = dd\n\
                    build b: cp x || dd\ndefault b\n";
    let tree = tree(manifest);
    write(&tree, "x", "old\n");
    write(&tree, "source", "");
    write(&tree, "dd.in", "ninja_dyndep_version = 1\nbuild m | x: dyndep\n");
    assert_eq!(run(&tree, &[]).1, 0);
    assert_eq!(fs::read_to_string(tree.path().join("b")).unwrap(), "new\n");
    // The file is up to date now, and it is read all the same.
    tick();
    write(&tree, "source", "");
    assert_eq!(run(&tree, &["-n"]).0.lines().count(), 2);
    assert_eq!(run(&tree, &[]).1, 0);
    assert!(run(&tree, &[]).0.contains("no work to do"));
}
