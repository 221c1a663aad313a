//! A real site in PHP: Debian's DokuWiki, behind PHP-FPM. Visitors read, edit and upload, and files
//! that are no pages are the server's. Without the packages the test says so and tries nothing.

use crate::common::{Reply, Server, bytes, site};
use crate::configured::configured;
use crate::controlled::until;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where Debian has the application and its configuration.
const APPLICATION: &str = "/usr/share/dokuwiki";

/// Debian's PHP-FPM, which has its version in its name.
fn php_fpm() -> Option<PathBuf> {
    let files = fs::read_dir("/usr/sbin").ok()?.flatten().map(|file| file.path());
    files
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm")))
        .max()
}

/// A PHP-FPM of this test, which ends with it.
struct Fpm(Child);

impl Drop for Fpm {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        // Its workers end with it.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn shell(script: &str, directory: &Path) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(directory).status();
    assert!(done.unwrap().success(), "{script}");
}

/// Puts a copy of the application into `directory`/wiki, with pages of its own that all may edit,
/// and starts PHP-FPM at `directory`/fpm.sock.
fn start_wiki(program: &Path, directory: &Path) -> Fpm {
    shell(
        &format!(
            "cp -rL {APPLICATION} wiki; rm -rf wiki/data wiki/conf; cp -rL /etc/dokuwiki wiki/conf || [ -e wiki/conf/dokuwiki.php ]\n\
             mkdir wiki/data; cd wiki/data; mkdir pages attic media media_attic media_meta meta cache index locks tmp log\n\
             chmod -R a+rwX .."
        ),
        directory,
    );
    let place = directory.display();
    let settings = format!(
        "<?php\n$conf['savedir'] = '{place}/wiki/data';\n$conf['useacl'] = 0;\n$conf['title'] = 'Looms';\n"
    );
    fs::write(directory.join("wiki/conf/local.protected.php"), settings).unwrap();
    // Debian's own says that the settings are elsewhere.
    let preload =
        ["DOKU_MAIN_CONF", "DOKU_CONF"].map(|name| format!("define('{name}', '{place}/wiki/conf/');\n"));
    fs::write(directory.join("wiki/inc/preload.php"), format!("<?php\n{}", preload.concat())).unwrap();
    let user = match rustix::process::getuid().is_root() {
        true => "user = www-data\ngroup = www-data\nlisten.mode = 0666\n",
        false => "",
    };
    let configuration = format!(
        "[global]\nerror_log = {place}/fpm.log\ndaemonize = no\n[www]\nlisten = {place}/fpm.sock\n{user}\
         pm = static\npm.max_children = 2\ncatch_workers_output = yes\nphp_admin_value[error_log] = {place}/php.log\n"
    );
    fs::write(directory.join("fpm.conf"), configuration).unwrap();
    let mut command = Command::new(program);
    command.args(["--nodaemonize", "--fpm-config"]).arg(directory.join("fpm.conf"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let fpm = Fpm(child);
    until("PHP-FPM", || std::os::unix::net::UnixStream::connect(directory.join("fpm.sock")).is_ok());
    fpm
}

/// The reply to one request by HTTP/1.0, which has no chunks.
fn ask(server: &Server, head: &str, body: &[u8]) -> Reply {
    let mut client = server.connect();
    client.send(format!("{head}Host: localhost\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(body);
    let all = client.rest();
    let end = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head[9..12].parse().unwrap();
    Reply { status, head, body: all[end..].to_vec() }
}

fn get(server: &Server, path: &str) -> Reply {
    ask(server, &format!("GET {path} HTTP/1.0\r\n"), b"")
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// A text as a form has it.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Saves a page as a browser does.
fn save(server: &Server, page: &str, content: &str) -> Reply {
    let form = format!(
        "id={page}&prefix=.&suffix=&target=section&summary=&wikitext={}&do%5Bsave%5D=Save",
        encoded(content)
    );
    let head = "POST /doku.php HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    ask(server, head, form.as_bytes())
}

#[test]
fn a_wiki_behind_php_fpm() {
    let (Some(program), true) = (php_fpm(), Path::new(APPLICATION).is_dir()) else {
        println!("no PHP application is installed, so none was tried: install php-fpm and dokuwiki");
        return;
    };
    let site = site();
    fs::set_permissions(site.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let _fpm = start_wiki(&program, site.path());
    let routes = "[[route]]\npath = '/{data,conf,inc,bin,vendor}/**'\nanswer = 403\n\
         [[route]]\npath = '/**.php'\nfastcgi = 'unix:SITE/fpm.sock'\nroot = 'wiki'\n\
         [[route]]\ndirectory = 'wiki'\nindex = ['index.php']\n";
    let routes = routes.replace("SITE", site.path().to_str().unwrap());
    let server = configured(
        site.path(),
        &format!("report = 'report'\nlimits = {{ body_bytes = 10_000_000 }}\n{routes}"),
    );
    let report = || fs::read_to_string(site.path().join("report")).unwrap();
    // It is installed, and shows a page that is to be written.
    let page = get(&server, "/doku.php?id=warp");
    assert_eq!(page.status, 200, "{} {}", page.head, report());
    assert!(text(&page).contains("Looms") && text(&page).contains("dokuwiki"), "{}", text(&page));
    // A page is saved, shown, and found again, also a long one.
    for content in ["====== Warp ======\nThe **threads** that run lengthwise: äöü.\n".to_owned(), long()] {
        let saved = save(&server, "warp", &content);
        assert_eq!(saved.status, 302, "{} {} {}", saved.head, text(&saved), report());
        assert!(saved.head.to_ascii_lowercase().contains("location: "), "{}", saved.head);
        let raw = get(&server, "/doku.php?id=warp&do=export_raw");
        assert_eq!(text(&raw).trim_end(), content.trim_end());
    }
    assert!(text(&get(&server, "/doku.php?id=warp")).contains("<strong>weft</strong>"));
    // Parts of the page: a script that PHP puts together, and a file of the server's.
    let script = get(&server, "/lib/exe/js.php?t=dokuwiki");
    assert_eq!((script.status, script.body.len() > 10_000), (200, true), "{}", script.head);
    let style = get(&server, "/lib/exe/css.php?t=dokuwiki");
    assert!(style.status == 200 && style.head.to_ascii_lowercase().contains("content-type: text/css"));
    let image = get(&server, "/lib/images/throbber.gif");
    assert!(image.status == 200 && image.body.starts_with(b"GIF8"), "{}", image.head);
    assert_eq!(image.body, fs::read(site.path().join("wiki/lib/images/throbber.gif")).unwrap());
    // What no visitor may see.
    for path in ["/data/pages/warp.txt", "/conf/local.php", "/inc/init.php", "/data/../data/pages/warp.txt"] {
        assert_eq!(get(&server, path).status, 403, "{path}");
    }
    assert_eq!(get(&server, "/nothing.php").status, 404);
    // Visitors at the same time, more than PHP-FPM has processes.
    std::thread::scope(|scope| {
        for visitor in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for n in 0..3 {
                    let page = format!("visitor{visitor}");
                    assert_eq!(save(server, &page, &format!("Pick {n}")).status, 302);
                    let raw = get(server, &format!("/doku.php?id={page}&do=export_raw"));
                    assert_eq!(text(&raw).trim_end(), format!("Pick {n}"));
                }
            });
        }
    });
    uploads(&server, site.path());
}

/// A page of 200,000 bytes.
fn long() -> String {
    let line = "A **weft** goes over and under.\n";
    format!("====== Weft ======\n{}", line.repeat(200_000 / line.len()))
}

/// A script of the test's own beside the application: PHP has a body of any length as the client
/// sent it.
fn uploads(server: &Server, directory: &Path) {
    let script = "<?php\nheader('Content-Type: text/plain');\n$body = file_get_contents('php://input');\n\
        echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['QUERY_STRING'], ' ', strlen($body), ' ', md5($body);\n";
    fs::write(directory.join("wiki/take.php"), script).unwrap();
    let body = bytes(3_000_000);
    fs::write(directory.join("body"), &body).unwrap();
    let sum = Command::new("md5sum").arg(directory.join("body")).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap();
    let sum = sum.split(' ').next().unwrap();
    let took = ask(server, "PUT /take.php?a=b%20c HTTP/1.0\r\n", &body);
    assert_eq!(text(&took), format!("PUT a=b%20c 3000000 {sum}"), "{}", took.head);
    // Of a length that the client does not say.
    let mut client = server.connect();
    client.send(
        "POST /take.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for piece in body.chunks(100_000) {
        client.send(format!("{:x}\r\n", piece.len()));
        client.send(piece);
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    let took = String::from_utf8(client.rest()).unwrap();
    assert!(took.contains(&format!("POST  3000000 {sum}")), "{took}");
}
