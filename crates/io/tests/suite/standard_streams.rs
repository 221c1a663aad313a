//! Standard input, output and error as pipes, files, sockets or a terminal. The test starts its own
//! program again as the process with those streams.

use crate::common::{ms, run};
use selvedge_io::process::Command;
use selvedge_io::stdio::{stderr, stdin, stdout};
use selvedge_io::time::{sleep, timeout};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

/// The variable that makes this program the child: the child reports the length of each line that
/// it reads, and ends.
const PROGRAM: &str = "SELVEDGE_TEST_COUNTS_LINES";

#[test]
fn program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    run(async {
        let (mut input, output) = (stdin().unwrap(), stdout().unwrap());
        let mut line = String::new();
        // The first read is given up if no line is there yet.
        let mut read = timeout(ms(20), input.read_line(&mut line)).await.unwrap_or(Ok(usize::MAX));
        while read.as_ref().is_ok_and(|&length| length > 0) {
            if read.as_ref().is_ok_and(|&length| length < usize::MAX) {
                output.write_all(format!("<{}>\n", line.len()).as_bytes()).await.unwrap();
            }
            line.clear();
            read = input.read_line(&mut line).await;
        }
        read.unwrap();
        stderr().unwrap().write_all(b"end\n").await.unwrap();
    });
}

fn program_with(input: impl Into<Stdio>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "standard_streams::program", "--nocapture", "--quiet"]).env(PROGRAM, "yes");
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The words that the child has written, without the words of the test harness.
fn said(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.split(['\n', '\r', ' ']).filter(|word| word.starts_with('<')).map(String::from).collect()
}

#[test]
fn pipes() {
    run(async {
        let mut child = program_with(Stdio::piped()).spawn().await.unwrap();
        let input = child.stdin.take().unwrap();
        for piece in ["one\ntwo t", "wo\n", "", &"x".repeat(100_000), "\nno end"] {
            input.write_all(piece.as_bytes()).await.unwrap();
            sleep(ms(10)).await;
        }
        drop(input);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(said(&output.stdout), ["<4>", "<8>", "<100001>", "<6>"]);
        assert!(output.stderr.ends_with(b"end\n"), "{output:?}");
    });
}

#[test]
fn files() {
    run(async {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"first\nsecond\n").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let written = tempfile::NamedTempFile::new().unwrap();
        let to = std::fs::OpenOptions::new().append(true).open(written.path()).unwrap();
        let status = program_with(file).stdout(to).stderr(Stdio::null()).status().await.unwrap();
        assert!(status.success());
        assert_eq!(said(&std::fs::read(written.path()).unwrap()), ["<6>", "<7>"]);
    });
}

#[test]
fn sockets() {
    run(async {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut &one, b"through a socket\n").unwrap();
        drop(one);
        let output = program_with(OwnedFd::from(other)).output_with_input().await;
        assert_eq!(said(&output), ["<17>"]);
    });
}

/// [`Command::output`] would replace the input by an empty one.
trait OutputWithInput {
    async fn output_with_input(&mut self) -> Vec<u8>;
}

impl OutputWithInput for Command {
    async fn output_with_input(&mut self) -> Vec<u8> {
        self.spawn().await.unwrap().wait_with_output().await.unwrap().stdout
    }
}

#[test]
fn a_terminal_keeps_its_mode() {
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    run(async {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let shared =
            rustix::fs::open(&name, OFlags::RDWR | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
        let mut child = program_with(shared.try_clone().unwrap()).spawn().await.unwrap();
        sleep(ms(50)).await;
        rustix::io::write(&terminal, b"typed\n").unwrap();
        sleep(ms(100)).await;
        assert!(!fcntl_getfl(shared.as_fd()).unwrap().contains(OFlags::NONBLOCK), "while it runs");
        rustix::io::write(&terminal, b"more\n\x04").unwrap(); // the terminal's end of input
        let (stdout, status) = (child.stdout.take().unwrap(), timeout(ms(20_000), child.wait()).await);
        assert!(status.expect("it ends").unwrap().success());
        assert_eq!(said(&stdout.read_to_end().await.unwrap()), ["<6>", "<5>"]);
        assert!(!fcntl_getfl(shared.as_fd()).unwrap().contains(OFlags::NONBLOCK), "afterwards");
    });
}
