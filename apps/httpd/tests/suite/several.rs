//! Several processes obey commands through their parent: each is asked, the answers become one, and
//! an upgrade replaces all of them.

use crate::common::{Client, ms, site, start};
use crate::configured::httpd;
use crate::controlled::{children_of, ctl, kill, three_processes, until};
use crate::upgraded::{Line, ask_on, install};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// The values of a counter, one for each process.
fn values(counters: &str, name: &str, labels: &str) -> Vec<u64> {
    let of = |number: usize| {
        let prefix = format!("{name}{{process=\"{number}\"{labels}}} ");
        counters.lines().find_map(|line| line.strip_prefix(&prefix)).expect(counters).parse().unwrap()
    };
    (0..3).map(of).collect()
}

#[test]
fn each_process_answers() {
    let site = site();
    let (file, port) = three_processes(site.path());
    let text = format!("control = 'control'\n{}", fs::read_to_string(&file).unwrap());
    fs::write(&file, &text).unwrap();
    let server = start(httpd(&[file.to_str().unwrap()]));
    let status = || ctl(&file, "status").unwrap();
    // The parent waits for the answers of processes that have just begun.
    let told = status();
    let children = children_of(&server);
    assert!(
        told.starts_with(&format!("parent       {}\nprocesses    3 of 3\n", server.pid().as_raw_pid())),
        "{told}"
    );
    for child in &children {
        assert!(told.contains(&format!("\n\nprocess      {child}\n")), "{told}");
    }
    assert_eq!(told.matches(&format!("address      http://127.0.0.1:{port}/\n")).count(), 1, "{told}");
    assert_eq!(told.matches("route        any / directory ").count(), 1, "{told}");
    let control = fs::metadata(site.path().join("control")).unwrap().permissions().mode();
    assert_eq!(control & 0o777, 0o600);
    let names = fs::read_dir(site.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with(".selvedge")));

    for _ in 0..30 {
        assert_eq!(server.get("/ten.txt").status, 200);
    }
    let counters = ctl(&file, "counters").unwrap();
    let served = values(&counters, "selvedge_requests_total", ",class=\"2xx\"");
    assert_eq!(served.iter().sum::<u64>(), 30, "{counters}");
    assert_eq!(values(&counters, "selvedge_uptime_seconds", "").len(), 3);
    assert_eq!(counters.matches("# TYPE selvedge_requests_total counter\n").count(), 1);
    let threads = ctl(&file, "threads").unwrap();
    assert!(children.iter().all(|child| threads.contains(&format!("process {child}\n"))), "{threads}");
    assert!(threads.matches("running::worker").count() >= 3, "{threads}");
    assert!(ctl(&file, "nonsense").is_err());

    // All take the new routes over, or none does.
    fs::write(&file, text.replace("directory = '.'", "path = '/docs/'\ndirectory = 'docs'")).unwrap();
    assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n");
    until("the new routes", || (0..20).all(|_| server.get("/ten.txt").status == 404));
    fs::write(&file, text.replace("directory = '.'", "path = 'docs'\ndirectory = '.'")).unwrap();
    let socket = site.path().join("control");
    let refused = crate::configured::output(&["ctl", "--socket", socket.to_str().unwrap(), "reload"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("the path \"docs\" does not begin with /"), "{message}");
    assert!((0..20).all(|_| server.get("/ten.txt").status == 404));
    fs::write(&file, &text).unwrap();
    assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n");
    until("the first routes", || (0..20).all(|_| server.get("/ten.txt").status == 200));

    // A process that takes the place of another answers in its place.
    std::thread::sleep(ms(1200));
    kill(children[1]);
    until("another process", || children_of(&server).len() == 3 && children_of(&server) != children);
    let told = status();
    assert!(
        children_of(&server).iter().all(|child| told.contains(&format!("process      {child}\n"))),
        "{told}"
    );
    assert!(!told.contains(&format!("process      {}\n", children[1])), "{told}");

    // They retire: what has begun is finished.
    let mut busy = server.connect();
    busy.send(&GET[..10]);
    busy.wait_until_read();
    ctl(&file, "retire").unwrap();
    until("no more connections", || TcpStream::connect(server.address).is_err());
    busy.send(&GET[10..]);
    assert_eq!(busy.reply().status, 200);
    assert!(server.end().success());
    assert!(!site.path().join("control").exists() && !site.path().join("pid").exists());
}

/// A reload changes which reports the parent makes, and not only those of its processes.
#[test]
fn the_parent_reports_by_the_level_of_a_reload() {
    let site = site();
    let (file, _) = three_processes(site.path());
    let with = |level: &str| {
        let text = fs::read_to_string(&file).unwrap();
        let rest = text.split_once("listen").map(|(_, rest)| format!("listen{rest}")).unwrap();
        fs::write(&file, format!("control = 'control'\nlog.level = '{level}'\n{rest}")).unwrap();
    };
    with("error");
    let reports = site.path().join("reports");
    let mut command = httpd(&[file.to_str().unwrap()]);
    command.stderr(fs::File::create(&reports).unwrap());
    let server = start(command);
    // All processes have read the file when they answer.
    assert_eq!(ctl(&file, "status").unwrap().matches("process      ").count(), 3);
    with("notice");
    ctl(&file, "reload").unwrap();
    ctl(&file, "upgrade").unwrap();
    assert!(server.end().success());
    let said = fs::read_to_string(&reports).unwrap();
    assert!(said.contains(" serves; process ") && said.contains(" ends with its last connection"), "{said}");
    ctl(&file, "stop").unwrap();
    until("no process", || !site.path().join("control").exists());
}

#[test]
fn an_upgrade_by_command_loses_no_request() {
    let line = Line::new("processes = 3", &[]);
    let (done, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut download = line.connect();
    download.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    download.wait_for_reply();
    std::thread::scope(|scope| {
        for keeps in [true, false, false] {
            let (line, done, served) = (&line, &done, &served);
            scope.spawn(move || ask_on(line.first.address, keeps, done, served));
        }
        let upgrades = || {
            for _ in 0..3 {
                install(line.site.path());
                let before = line.process().unwrap();
                let said = line.ctl("upgrade").unwrap();
                let process = line.process().unwrap();
                assert!(said.starts_with(&format!("process {} serves;", process.as_raw_pid())), "{said}");
                assert_ne!(process, before);
                // The new parent answers, for its own processes alone.
                let told = line.ctl("status").unwrap();
                let parent = format!("parent       {}\nprocesses    3 of 3\n", process.as_raw_pid());
                assert!(told.starts_with(&parent), "{told}");
                let count = served.load(Relaxed);
                until("requests are served", || served.load(Relaxed) > count + 50);
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(upgrades));
        done.store(true, Relaxed);
        result.unwrap();
    });
    assert_eq!(download.reply().body.len(), 3_000_000);
    // A parent that cannot serve changes nothing, and says why.
    let (right, serving) = (fs::read_to_string(line.file()).unwrap(), line.process());
    fs::write(line.file(), right.replace("listen = [", "listen = ['203.0.113.7:80', ")).unwrap();
    assert!(line.ctl("upgrade").unwrap_err().contains("203.0.113.7:80"));
    fs::write(line.file(), right).unwrap();
    assert_eq!((line.process(), line.connect().ask(GET).status), (serving, 200));
    assert!(line.ctl("status").unwrap().contains("processes    3 of 3\n"));
    // What has begun is finished.
    let mut busy = Client::new(TcpStream::connect(line.first.address).unwrap());
    busy.send(&GET[..10]);
    busy.wait_until_read();
    line.stop();
    busy.send(&GET[10..]);
    assert_eq!(busy.reply().status, 200);
    until("no file is left", || line.process().is_none() && !line.site.path().join("control").exists());
}
