//! `sort` beside `sort` of the system, in memory and with temporary files.

use crate::data::{Numbers, shell, system, text};
use std::fs::{read_dir, write};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines that are hard to sort: many are the same, or the same up to a byte far behind, some are
/// numbers, some have bytes 0 where others have ended.
fn lines(numbers: &mut Numbers, count: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    for _ in 0..count {
        match numbers.below(9) {
            0 => {}
            1 => lines.extend(vec![b'x'; numbers.below(40) as usize]),
            2 => lines.extend(vec![0; numbers.below(20) as usize]),
            3 => {
                lines.extend(vec![b'y'; 150]);
                lines.push(b'a' + numbers.below(3) as u8);
            }
            4 => write!(lines, "{}-{}", numbers.pick(&["", "-", " "]), numbers.below(50)).unwrap(),
            5 => write!(lines, "{}.{}", numbers.below(4), numbers.below(1 << 40)).unwrap(),
            6 => write!(lines, "-{}{}.5", numbers.below(1 << 60), numbers.below(1 << 60)).unwrap(),
            7 => write!(lines, "10.0.0.{} - - [{}]", numbers.below(4), numbers.below(9)).unwrap(),
            _ => lines.extend((0..numbers.below(12)).map(|_| b"ab\xff "[numbers.below(4) as usize])),
        }
        lines.push(b'\n');
    }
    lines
}

#[test]
fn it_writes_what_sort_of_the_system_writes() {
    let mut numbers = Numbers::new(41);
    let orders = [
        ("lines | sort", "sort -s"),
        ("lines | sort descending", "sort -s -r"),
        ("lines | sort numeric", "sort -s -n"),
        ("lines | sort numeric descending", "sort -s -n -r"),
        ("lines | sort | unique", "sort -u"),
        // In a branch all items stay in memory.
        ("if everything then lines | sort end", "sort -s"),
        ("if everything then lines | sort numeric descending end", "sort -s -n -r"),
        // The second column, and the lines of one column in the order in which they came.
        ("lines | fields ' ' | sort by column 2 | join ' '", "sort -s -t ' ' -k2,2"),
        ("lines | fields ' ' | sort by column 2 descending | join ' '", "sort -s -t ' ' -k2,2 -r"),
        ("lines | fields ' ' | sort by column 1 numeric | join ' '", "sort -s -t ' ' -k1,1n"),
    ];
    for count in [0, 1, 2, 17, 300, 4000] {
        let input = lines(&mut numbers, count);
        for (script, command) in orders {
            let theirs = system(Path::new("/"), &format!("LC_ALL=C {command}"), &input);
            // With 2 KiB there are runs of several generations.
            for memory in ["1G", "100K", "2K"] {
                let ours = shell(Path::new("/"), &["-S", memory, script], &input);
                let error = String::from_utf8_lossy(&ours.stderr);
                assert!(ours.stdout == theirs.stdout, "{script} with {memory} of {count} lines: {error}");
            }
        }
    }
}

#[test]
fn numbers_and_records_survive_the_temporary_files() {
    let script = "range 1 5000 | sort descending | sort | skip 4990 | sum";
    assert_eq!(text(&shell(Path::new("/"), &["-S", "1K", script], b""), 0), "49955\n");
    let rows: String = (0..500).map(|row| format!("{},\"a\n{row}\",,\n", row % 7)).collect();
    let sorted = |memory| {
        text(&shell(Path::new("/"), &["-S", memory, "csv | sort by column 1 numeric"], rows.as_bytes()), 0)
    };
    assert_eq!(sorted("1K"), sorted("1G"));
    assert!(sorted("1K").starts_with("0,\"a\n0\",,\n0,\"a\n7\",,\n"));
}

#[test]
fn temporary_files_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let files = || read_dir(directory.path()).unwrap().count();
    let start = |script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-pipe"));
        command.args(["-S", "4K", script]).env("TMPDIR", directory.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let input = lines(&mut Numbers::new(43), 2000);
    for script in ["lines | sort", "lines | sort | first 1", "lines | sort | integers"] {
        let mut child = start(script);
        drop(child.stdin.take().unwrap().write_all(&input));
        child.wait_with_output().unwrap();
        assert_eq!(files(), 0, "{script}");
    }
    // The input is larger than the memory and a pipe together, so there are files when it is taken.
    let mut child = start("lines | sort");
    let mut stdin = child.stdin.take().unwrap();
    (0..20).for_each(|_| stdin.write_all(&input).unwrap());
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let paths = open.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    let theirs = paths.filter(|path| path.starts_with(directory.path())).count();
    assert!(theirs > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(files(), 0);
}

#[test]
fn a_directory_without_room_for_files_is_told() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path().join("f"), lines(&mut Numbers::new(47), 500)).unwrap();
    let command =
        format!("TMPDIR=/no/such {} -S 1K 'file \"f\" | lines | sort'", env!("CARGO_BIN_EXE_selvedge-pipe"));
    let output = system(directory.path(), &command, b"");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("pipeline:1:20: temporary file: No such file"), "{error}");
    for size in ["", "12", "K", "0K", "1T", "-1K", "99999999999999999999G", "ü"] {
        let output = shell(Path::new("/"), &["--sort-memory", size, "lines | sort"], b"");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("is no size such as 64K") && output.status.code() == Some(2),
            "{size}: {error}"
        );
    }
}
