//! Sites as people have them: a tree of documentation with thousands of files, and an application
//! with WebSockets behind the proxy. `php.rs` has an application in PHP.

use crate::browser::browse;
use crate::common::{Client, PATIENCE, Server, free_address, serve, site};
use crate::configured::configured;
use crate::controlled::until;
use crate::upgraded::Line;
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use tungstenite::{Message, WebSocket};

/// The documentation of Rust, if the toolchain has it.
fn documentation() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(root.trim()).join("share/doc/rust/html")).filter(|tree| tree.is_dir())
}

/// The targets of the links and the parts of a page, without fragments and queries, that lead
/// nowhere else.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let values = ["href=\"", "src=\""].into_iter().flat_map(|name| page.split(name).skip(1));
    let targets = values.filter_map(|rest| rest.split(['"', '#', '?']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':') && !target.starts_with("//"))
}

/// The path of the file that `target` names on the page at `page`.
fn resolved(page: &str, target: &str) -> String {
    let mut names: Vec<&str> = match target.starts_with('/') {
        true => Vec::new(),
        false => page.split('/').filter(|name| !name.is_empty()).collect(),
    };
    if !target.starts_with('/') && !page.ends_with('/') {
        names.pop();
    }
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let end = if target.ends_with('/') && !names.is_empty() { "/" } else { "" };
    format!("/{}{end}", names.join("/"))
}

/// The most files that a reader of the documentation looks at.
const PAGES: usize = 4000;

/// A reader follows the links from the first page on, and gets each file as it is on the disk.
#[test]
fn a_tree_of_documentation() {
    let Some(tree) = documentation() else {
        println!("no documentation is installed, so none was read: `rustup component add rust-docs`");
        return;
    };
    let server = serve(&tree, &["--workers", "1"]);
    let mut client = server.connect();
    let mut known = BTreeSet::from(["/index.html".to_owned()]);
    let mut open = VecDeque::from(["/index.html".to_owned()]);
    let (mut files, mut bytes) = (0, 0);
    while let Some(path) = open.pop_front() {
        let reply = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let file = tree.join(&path[1..]);
        match fs::read(if file.is_dir() { file.join("index.html") } else { file.clone() }) {
            // The server says where a directory is.
            Ok(_) if file.is_dir() && !path.ends_with('/') => {
                assert_eq!((reply.status, reply.field("Location")), (301, Some(&*format!("{path}/"))));
                open.push_back(format!("{path}/"));
            }
            Ok(content) => {
                assert_eq!(reply.status, 200, "{path}");
                assert!(reply.body == content, "{path} is another file");
                files += 1;
                bytes += content.len();
                if reply.field("Content-Type").is_some_and(|kind| kind.starts_with("text/html")) {
                    let page = String::from_utf8_lossy(&content);
                    for path in links(&page).map(|target| resolved(&path, target)) {
                        if known.len() < PAGES && known.insert(path.clone()) {
                            open.push_back(path);
                        }
                    }
                }
            }
            // The documentation has links that lead to nothing.
            Err(_) => assert_eq!(reply.status, 404, "{path}"),
        }
    }
    assert!(files > 1000, "{files} files with {bytes} bytes");
}

/// An application with WebSockets, which is not ours: it answers each text with a number and the
/// text, and tells the test what it was sent.
fn start_application(directory: &Path) -> mpsc::Receiver<String> {
    let listener = UnixListener::bind(directory.join("chat.sock")).unwrap();
    let (told, tells) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let told = told.clone();
            thread::spawn(move || converse(tungstenite::accept(stream.unwrap()).unwrap(), &told));
        }
    });
    tells
}

fn converse(mut socket: WebSocket<UnixStream>, told: &mpsc::Sender<String>) {
    for number in 1.. {
        match socket.read() {
            Ok(Message::Text(text)) => {
                // The test may have ended.
                let _ = told.send(text.to_string());
                socket.send(format!("{number}: {text}").into()).unwrap();
            }
            Ok(Message::Binary(bytes)) => socket.send(bytes.into()).unwrap(),
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Enters the chat through the server.
fn enter(stream: TcpStream) -> WebSocket<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (socket, answer) = tungstenite::client("ws://loom/chat/", stream).unwrap();
    assert_eq!(answer.status(), 101);
    socket
}

fn says(socket: &mut WebSocket<TcpStream>, text: &str) -> String {
    socket.send(text.into()).unwrap();
    socket.read().unwrap().to_text().unwrap().to_owned()
}

/// A conversation goes on while the configuration is read again, without its route, and while the
/// program is replaced.
#[test]
fn web_sockets_outlive_reloads_and_upgrades() {
    let application = tempfile::tempdir().unwrap();
    let _told = start_application(application.path());
    let route =
        format!("[[route]]\npath = '/chat/'\nproxy = 'unix:{}/chat.sock'\n", application.path().display());
    let mut line = Line::new(&route, &[]);
    let address = line.first.address;
    let connect = || TcpStream::connect(address).unwrap();
    let mut socket = enter(connect());
    assert_eq!(says(&mut socket, "warp"), "1: warp");
    let bytes = crate::common::bytes(300_000);
    socket.send(bytes.clone().into()).unwrap();
    assert!(socket.read().unwrap().into_data() == bytes);
    let text = fs::read_to_string(line.file()).unwrap();
    fs::write(line.file(), text.replace(&route, "")).unwrap();
    line.ctl("reload").unwrap();
    assert_eq!(says(&mut socket, "weft"), "3: weft");
    let refused = Client::new(connect()).ask("GET /chat/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(refused.status, 404, "the route is gone");
    fs::write(line.file(), &text).unwrap();
    let first = line.process().unwrap();
    line.ctl("upgrade").unwrap();
    assert_ne!(line.process(), Some(first));
    // The first process goes on with this conversation, and the second begins another.
    assert_eq!(says(&mut socket, "cloth"), "4: cloth");
    let mut other = enter(connect());
    assert_eq!(says(&mut other, "loom"), "1: loom");
    assert!(line.first.is_running());
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    drop(socket);
    until("the first process ends", || !line.first.is_running());
    assert_eq!(says(&mut other, "heddle"), "2: heddle");
    line.stop();
}

/// A process that is killed at the end of its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An application as Debian packages it: websockify serves pages, and carries the bytes of
/// WebSockets to a service that knows TCP alone. All of it is behind the proxy.
#[test]
fn websockify_behind_the_proxy() {
    let site = site();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = service.local_addr().unwrap().to_string();
    let port = free_address();
    let mut command = Command::new("websockify");
    command.arg("--web").arg(site.path().join("docs")).arg(port.to_string()).arg(&target);
    let Ok(application) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("not tried: websockify is not installed");
        return;
    };
    let _application = Running(application);
    until("websockify listens", || TcpStream::connect(port).is_ok());
    // The service sends back what it reads, until it reads the end of a conversation.
    thread::spawn(move || {
        for stream in service.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut piece) {
                    if stream.write_all(&piece[..len]).is_err() || piece[..len].ends_with(b"over") {
                        break;
                    }
                }
            });
        }
    });
    let route = format!("[[route]]\npath = '/desk/'\nproxy = '{port}'\nrewrite = '$rest'\n");
    let server: Server = configured(site.path(), &format!("{route}[[route]]\ndirectory = '.'\n"));
    let page = server.get("/desk/index.html");
    assert_eq!((page.status, &page.body[..]), (200, &b"<h1>Docs</h1>"[..]));
    let connect = || {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, answer) = tungstenite::client("ws://loom/desk/websockify", stream).unwrap();
        assert_eq!(answer.status(), 101);
        socket
    };
    let carried = |socket: &mut WebSocket<TcpStream>, bytes: &[u8]| {
        socket.send(bytes.to_vec().into()).unwrap();
        let mut back = Vec::new();
        while back.len() < bytes.len() {
            back.extend_from_slice(&socket.read().unwrap().into_data());
        }
        assert!(back == bytes);
    };
    let (mut first, mut second) = (connect(), connect());
    carried(&mut first, b"warp");
    carried(&mut second, &crate::common::bytes(60_000));
    carried(&mut first, b"weft, and over");
    // The service has closed, websockify says farewell, and the proxy passes it on.
    let end = std::iter::repeat_with(|| first.read()).find_map(|message| match message {
        Ok(Message::Close(_)) => Some(true),
        Ok(_) => None,
        Err(_) => Some(false),
    });
    assert_eq!(end, Some(true));
    carried(&mut second, b"cloth");
}

/// A picture that the page waits for, until the conversation is over: the browser looks at the
/// document when it has all parts.
fn hold_picture(directory: &Path, over: mpsc::Receiver<String>) {
    let listener = UnixListener::bind(directory.join("picture.sock")).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while over.recv_timeout(PATIENCE).is_ok_and(|text| text != "seen") {}
        let _ = stream.read(&mut [0; 4096]);
        let svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/svg+xml\r\nConnection: close\r\n";
        let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{svg}", svg.len());
    });
}

const PAGE: &str = "<!doctype html><title>Chat</title><ul id=said></ul><img src=/picture>\n\
    <script>\n\
    const socket = new WebSocket(`ws://${location.host}/chat/`)\n\
    const texts = ['warp', 'weft', 'seen']\n\
    const next = () => texts.length > 0 && socket.send(texts.shift())\n\
    socket.onopen = next\n\
    socket.onmessage = message => {\n\
      const item = document.createElement('li')\n\
      item.textContent = message.data\n\
      document.getElementById('said').append(item)\n\
      next()\n\
    }\n\
    </script>\n";

#[test]
fn a_browser_talks_through_the_proxy() {
    let site = site();
    let told = start_application(site.path());
    hold_picture(site.path(), told);
    fs::write(site.path().join("chat.html"), PAGE).unwrap();
    let place = site.path().display();
    let server: Server = configured(
        site.path(),
        &format!(
            "[[route]]\npath = '/chat/'\nproxy = 'unix:{place}/chat.sock'\n\
             [[route]]\npath = '/picture'\nproxy = 'unix:{place}/picture.sock'\n\
             [[route]]\ndirectory = '.'\n"
        ),
    );
    let document = browse(&format!("http://{}/chat.html", server.address), &site.path().join("profile"));
    assert!(document.contains("<li>1: warp</li><li>2: weft</li>"), "{document}");
}
