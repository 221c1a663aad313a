//! The guide's pages on the server: the server reads each configuration on them, and the page of
//! all keys is what the types say.

use crate::common::{PATIENCE, start};
use crate::configured::output;
use crate::controlled::until;
use rustix::process::Signal;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)).unwrap()
}

#[test]
fn configurations_of_the_guide() {
    let site = tempfile::tempdir().unwrap();
    for directory in ["www/app", "www/intern", "errors", "files"] {
        fs::create_dir_all(site.path().join(directory)).unwrap();
    }
    let hash = include_str!("../../../../crates/site/tests/suite/six.txt");
    fs::write(site.path().join("users"), format!("ada:{hash}")).unwrap();
    let file = site.path().join("site.toml");
    let text = page("httpd.md");
    let shown: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(shown.len() >= 6);
    for configuration in shown {
        fs::write(&file, configuration).unwrap();
        let checked = output(&["check", file.to_str().unwrap()]);
        let message = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{message}\n{configuration}");
    }
}

/// The unit on the page: systemd finds no fault in it, and its commands do what they promise.
#[test]
fn the_unit_for_systemd() {
    const PROGRAM: &str = env!("CARGO_BIN_EXE_selvedge-httpd");
    let page = page("httpd.md");
    let (_, rest) = page.split_once("```ini\n").unwrap();
    let shown = rest.split("```").next().unwrap();
    let site = tempfile::tempdir().unwrap();
    let [file, unit, run, notify] =
        ["site.toml", "selvedge.service", "selvedge", "notify"].map(|name| site.path().join(name));
    // The unit with the places of this test in place of those of a machine.
    let unit_text = shown.replace("/usr/local/bin/selvedge-httpd", PROGRAM);
    let unit_text = unit_text.replace("/etc/selvedge/site.toml", file.to_str().unwrap());
    let value = |key: &str| {
        let line = unit_text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("the unit has no {key}")).to_owned()
    };
    fs::write(&unit, &unit_text).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output() {
        Ok(checked) => {
            let told = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success() && !told.contains("selvedge.service"), "{told}\n{unit_text}");
        }
        Err(error) => eprintln!("the unit is not verified: systemd-analyze: {error}"),
    }
    assert_eq!((value("Type"), value("RuntimeDirectory")), ("notify".to_owned(), "selvedge".to_owned()));
    assert!(page.contains("`control = \"/run/selvedge/control\"`"));
    fs::create_dir(&run).unwrap();
    let control = run.join("control");
    let text =
        format!("listen = ['127.0.0.1:0']\ncontrol = '{}'\n[[route]]\nanswer = 404\n", control.display());
    fs::write(&file, text).unwrap();
    let command = |key: &str| {
        let line = value(key);
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        command
    };
    let socket = UnixDatagram::bind(&notify).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = || {
        let mut buffer = [0; 100];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    let mut server = command("ExecStart");
    let watchdog: u32 = value("WatchdogSec").parse().unwrap();
    assert!(watchdog > 0);
    // A hundredth of it, so that the test need not wait.
    server.env("NOTIFY_SOCKET", &notify).env("WATCHDOG_USEC", (watchdog * 10_000).to_string());
    let server = start(server);
    assert_eq!([heard(), heard()], ["READY=1", "WATCHDOG=1"]);
    let reloaded = command("ExecReload").output().unwrap();
    assert!(reloaded.status.success(), "{}", String::from_utf8_lossy(&reloaded.stderr));
    assert_eq!(server.get("/").status, 404);
    server.signal(Signal::TERM);
    assert!(server.end().success());
    until("the last word", || heard() == "STOPPING=1");
}

/// After a change of the keys: `selvedge-httpd keys`, put behind the first paragraph of the page.
#[test]
fn the_page_of_all_keys_is_current() {
    let page = page("httpd-config.md");
    let keys = String::from_utf8(output(&["keys"]).stdout).unwrap();
    let (_, rest) = page.split_once("own directory.\n\n").unwrap();
    assert!(rest == keys, "docs/guide/httpd-config.md is stale: put there what `selvedge-httpd keys` prints");
}
