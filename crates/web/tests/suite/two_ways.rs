//! The same requests to a router that gets them as bytes, and to one that gets owned requests.

use selvedge_core::{round_robin_over, spawn_local, yield_now};
use selvedge_handler::{Caller, Handler, PlainCall, PlainRequest, Request, Response};
use selvedge_http::{Config, Site};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_web::{
    Body, Bytes, Cookies, Form, HeaderMap, Html, Json, Method, Path, Query, Router, State, StatusCode, Uri,
};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Deserialize, Serialize)]
struct Cloth {
    name: String,
    ells: u32,
}

type Fields = BTreeMap<String, String>;

/// A router that gets owned requests alone, unless `is_short`.
struct Way {
    router: Router<u64>,
    is_short: bool,
    /// How many requests were answered as bytes.
    taken: Rc<Cell<usize>>,
}

impl Handler for Way {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        self.router.call(request)
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        let call = self.is_short.then(|| self.router.call_plain(request)).flatten()?;
        self.taken.set(self.taken.get() + 1);
        Some(call)
    }
}

async fn woven(Json(cloth): Json<Cloth>) -> Result<(StatusCode, Json<Cloth>), StatusCode> {
    match cloth.ells {
        0 => Err(StatusCode::NOT_ACCEPTABLE),
        ells => Ok((StatusCode::CREATED, Json(Cloth { ells: ells + 1, ..cloth }))),
    }
}

async fn waits(Path(turns): Path<u32>) -> String {
    for _ in 0..turns {
        yield_now().await;
    }
    format!("{turns} turns")
}

async fn hints(caller: Caller, Path(()): Path<()>) -> &'static str {
    caller.inform(
        StatusCode::EARLY_HINTS,
        HeaderMap::from_iter([(selvedge_web::header::LINK, "</a>".parse().unwrap())]),
    );
    "hinted"
}

fn router() -> Router<u64> {
    Router::with_state(7_u64)
        .get("/", async || "woven")
        .get("/state/{a}/{b}", async |State(state): State<u64>, Path((a, b)): Path<(u64, String)>| {
            format!("{state} {a} {b}")
        })
        .get("/query", async |Query(fields): Query<Fields>| Json(fields))
        .get("/form", async |Form(fields): Form<Fields>| Json(fields))
        .post("/form", async |Form(fields): Form<Fields>| Json(fields))
        .post("/json", woven)
        .post("/text", async |text: String| text)
        .put("/bytes", async |bytes: Bytes| bytes.to_vec())
        .get("/parts", async |method: Method, uri: Uri, cookies: Cookies| {
            let cookies: Vec<_> = cookies.iter().collect();
            Html(format!("{method} {uri} {cookies:?}"))
        })
        .get("/maybe/{n}", async |number: Result<Path<u8>, selvedge_web::Rejection>| match number {
            Ok(Path(number)) => number.to_string(),
            Err(rejection) => format!("no: {rejection}"),
        })
        .get("/fields", async |fields: HeaderMap| format!("{:?}", fields.get("x-a")))
        .get("/body", async |body: Body| body)
        .get("/status/{n}", async |Path(status): Path<u16>| {
            (StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT), "content")
        })
        .get("/named", async || (StatusCode::OK, [(selvedge_web::header::SERVER, "loom")], "named"))
        .get("/nothing", async || ())
        .get("/stream", async || {
            Body::produce(async |mut out| {
                out.put("one").await;
                yield_now().await;
                out.put("two").await;
                Ok::<(), std::io::Error>(())
            })
        })
        .get("/hints", hints)
        .get("/waits/{turns}", waits)
        .get("/panics", async || -> &'static str { panic!("the test wants this panic") })
        .nest(
            "/below",
            Router::new().get("/", async || "below").get("/{n}", async |uri: Uri| uri.to_string()),
        )
        .get("/{*rest}", async |Path(rest): Path<String>| rest)
}

const HEADS: &[&str] = &[
    "GET /",
    "HEAD /",
    "OPTIONS /",
    "DELETE /",
    "BREW /",
    "GET /state/12/a%20b",
    "GET /state/x/b",
    "GET /state/12/%ff",
    "GET /query?a=b&c=%20d+e&a=f",
    "GET /query?a=%ff",
    "GET /query",
    "GET /form?a=b",
    "GET /parts?x\r\nCookie: a=b; c=\"d\"\r\ncookie: e=%20\r\nCookie: \u{e9}=1; f=g",
    "GET http://other:8/parts",
    "GET /maybe/255",
    "GET /maybe/256",
    "GET /fields\r\nX-A: b",
    "GET /body",
    "GET /status/404",
    "GET /status/204",
    "GET /status/304",
    "GET /status/103",
    "GET /status/700",
    "GET /named",
    "GET /nothing",
    "GET /stream",
    "GET /stream\r\nTE: trailers",
    "GET /hints",
    "GET /waits/0",
    "GET /waits/3",
    "GET /panics",
    "GET /any/thing",
    "GET /below",
    "GET /below/",
    "GET /below?x",
    "GET /below/7?x",
    "GET /below/7/8",
    "DELETE /below/7",
    "GET /any|thing",
    "GET /any\u{e9}",
    "GET /\"",
    "GET //double",
    "GET /a?b?c",
    "GET /?",
    "POST /form\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=b&c=d",
    "POST /form\r\nContent-Type: APPLICATION/x-www-form-urlencoded ; charset=x\r\nContent-Length: 3\r\n\r\na=b",
    "POST /form\r\nContent-Length: 3\r\n\r\na=b",
    "POST /json\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n{\"name\":\"linen\",\"ells\":4}",
    "POST /json\r\nContent-Type: application/vnd.loom+JSON;a=b\r\nContent-Length: 25\r\n\r\n{\"name\":\"linen\",\"ells\":4}",
    "POST /json\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n{\"name\":\"linen\",\"ells\":0}",
    "POST /json\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"name\":\"linen\"}",
    "POST /json\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{\"",
    "POST /json\r\nContent-Type: application/json\u{e9}\r\nContent-Length: 2\r\n\r\n{}",
    "POST /json\r\nContent-Type: text/json\r\nContent-Length: 2\r\n\r\n{}",
    "POST /json\r\nContent-Type: application/json\r\nContent-Type: text/a\r\nContent-Length: 2\r\n\r\n{}",
    "POST /json\r\nContent-Length: 2\r\n\r\n{}",
    "POST /json",
    "POST /text\r\nContent-Length: 4\r\n\r\nweft",
    "POST /text\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nweft\r\n0\r\n\r\n",
    "POST /text\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nweft",
    "POST /text\r\nContent-Length: 0",
    "PUT /bytes\r\nContent-Length: 2\r\n\r\n\u{e9}",
    "PATCH /text\r\nContent-Length: 4\r\n\r\nweft",
    "GET /\r\nContent-Length: 4\r\n\r\nweft",
    "GET / HTTP/1.0",
    "GET /\r\nConnection: close",
];

/// The bytes of the request of `head`: a head without its version, `Host` and end, or with content.
fn bytes(head: &str) -> Vec<u8> {
    let (line, rest) = head.split_once("\r\n").unwrap_or((head, ""));
    let version = if line.ends_with("HTTP/1.0") { "" } else { " HTTP/1.1" };
    let end = match rest {
        "" => "\r\n",
        rest if rest.contains("\r\n\r\n") => "",
        _ => "\r\n\r\n",
    };
    format!("{line}{version}\r\nHost: loom\r\n{rest}{end}").into_bytes()
}

/// What a client gets that sends `requests` at once and then `GET /` as its last request, without
/// the dates.
fn answers(is_short: bool, requests: &[&str], taken: &Rc<Cell<usize>>) -> String {
    let mut sent: Vec<u8> = requests.iter().flat_map(|head| bytes(head)).collect();
    sent.extend_from_slice(b"GET / HTTP/1.1\r\nHost: loom\r\nConnection: close\r\n\r\n");
    let way = Way { router: router(), is_short, taken: taken.clone() };
    let main = async move {
        let site = Site::with_handler(way, Config::default(), None);
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        client.write_all(&sent).await.unwrap();
        let got = client.read_to_end().await.unwrap();
        drop(client);
        server.await.unwrap();
        got
    };
    let got = round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    let text = got.escape_ascii().to_string();
    let lines = text.split("\\r\\n").filter(|line| !line.starts_with("Date: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn each_request_has_the_same_answer_by_both_ways() {
    let taken = Rc::new(Cell::new(0));
    for head in HEADS {
        let (short, long) = (answers(true, &[head], &taken), answers(false, &[head], &taken));
        assert_eq!(short, long, "{head}");
    }
    // Each connection ends with a request that is taken, unless the request before ends it.
    assert!(taken.get() > HEADS.len() + 20, "{} requests were answered as bytes", taken.get());
}

#[test]
fn requests_that_come_together_have_their_answers_in_order() {
    let taken = Rc::new(Cell::new(0));
    let rows =
        ["GET /", "GET /waits/2", "GET /stream", "GET /hints", "POST /text\r\nContent-Length: 4\r\n\r\nweft"];
    for turn in 0..rows.len() {
        let mut requests = [rows, rows].concat();
        requests.rotate_left(turn);
        let (short, long) = (answers(true, &requests, &taken), answers(false, &requests, &taken));
        assert_eq!(short, long, "{requests:?}");
    }
    assert!(taken.get() > 0);
}
