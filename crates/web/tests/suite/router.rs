//! Which function answers, and with which arguments.

use selvedge_core::round_robin_over;
use selvedge_http::{Config, DocumentRoot};
use selvedge_io::EventLoop;
use selvedge_web::testing::{TestRequest, TestResponse, ask, get, post};
use selvedge_web::{
    BodyLimit, Bytes, Form, Handler, HeaderMap, Json, Layering, Multipart, Next, Path, Query, Redirect,
    Rejection, Request, Response, ResponsePart, Router, State, StaticFiles, StatusCode, TimeLimit,
};
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Duration;

fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

/// The status and the text of the answers to some calls.
fn answers<const N: usize>(handler: impl Handler, calls: [TestRequest; N]) -> [(u16, String); N] {
    run(async move {
        let mut answers = Vec::new();
        for call in calls {
            let answer = ask(&handler, call).await;
            answers.push((answer.status(), answer.text().to_string()));
        }
        answers.try_into().unwrap()
    })
}

fn ok(text: &str) -> (u16, String) {
    (200, text.into())
}

#[derive(Debug, Deserialize, Serialize)]
struct Cloth {
    name: String,
    ells: u32,
}

#[test]
fn the_path_and_the_method_choose() {
    let router = Router::new()
        .get("/", async || "root")
        .get("/looms", async || "looms")
        .post("/looms", async || (StatusCode::CREATED, "made"))
        .get("/looms/new", async || "form")
        .get("/looms/{id}", async |Path(id): Path<u8>| format!("loom {id}"))
        .get("/files/{*rest}", async |Path(rest): Path<String>| rest);
    let calls = [
        TestRequest::get("/"),
        TestRequest::get("/looms"),
        TestRequest::post("/looms"),
        TestRequest::get("/looms/new"),
        TestRequest::get("/looms/7"),
        TestRequest::get("/looms/256"),
        TestRequest::get("/files/a/b%20c"),
        TestRequest::get("/nothing"),
    ];
    let expected = [
        ok("root"),
        ok("looms"),
        (201, "made".into()),
        ok("form"),
        ok("loom 7"),
        (400, "the path does not fit: \"256\" is no u8".into()),
        ok("a/b c"),
        (404, String::new()),
    ];
    assert_eq!(answers(router, calls), expected);
}

#[test]
fn other_methods_of_a_path_are_told() {
    let router = Router::new().get("/looms", async || "looms").delete("/looms", async || ());
    run(async move {
        let put = ask(&router, TestRequest::new(http::Method::PUT, "/looms")).await;
        assert_eq!((put.status(), put.header("allow")), (405, Some("GET, DELETE, HEAD, OPTIONS")));
        let options = ask(&router, TestRequest::new(http::Method::OPTIONS, "/looms")).await;
        assert_eq!((options.status(), options.header("allow")), (204, put.header("allow")));
        assert_eq!(ask(&router, TestRequest::new(http::Method::HEAD, "/looms")).await.status(), 200);
        assert_eq!(ask(&router, TestRequest::new(http::Method::DELETE, "/looms")).await.status(), 204);
    });
}

#[test]
fn arguments_take_their_parts_of_the_request() {
    #[derive(Deserialize)]
    struct Wanted {
        name: Option<String>,
    }
    async fn all(
        State(count): State<Rc<u32>>,
        Path((a, b)): Path<(String, u8)>,
        Query(wanted): Query<Wanted>,
        fields: HeaderMap,
        Json(cloth): Json<Cloth>,
    ) -> Json<Cloth> {
        let host = fields.get("host").map_or("", |host| host.to_str().unwrap());
        let name = format!("{count} {a} {b} {:?} {host} {}", wanted.name, cloth.name);
        Json(Cloth { name, ells: cloth.ells + 1 })
    }
    let router = Router::with_state(Rc::new(7)).put("/{a}/x/{b}", all);
    let call = |target, body| {
        let call = TestRequest::new(http::Method::PUT, target).header("host", "loom");
        call.header("content-type", "application/json; charset=utf-8").body(body)
    };
    let found = answers(
        router,
        [
            call("/warp/x/3?name=a%26b", r#"{"name":"twill","ells":1}"#),
            call("/warp/x/3", r#"{"name":"twill"}"#),
            call("/warp/x/3", "{"),
            TestRequest::new(http::Method::PUT, "/warp/x/3").body("{}"),
        ],
    );
    assert_eq!(found[0], ok(r#"{"name":"7 warp 3 Some(\"a&b\") loom twill","ells":2}"#));
    assert_eq!((found[1].0, found[2].0, found[3].0), (422, 400, 415));
    assert!(found[1].1.contains("missing field `ells` at line 1 column 16"), "{}", found[1].1);
}

#[test]
fn forms_are_read_from_the_body_or_the_query() {
    async fn form(Form(cloth): Form<Cloth>) -> String {
        format!("{} ells of {}", cloth.ells, cloth.name)
    }
    let router = Router::new().get("/", form).post("/", form);
    let typed =
        |body| TestRequest::post("/").header("content-type", "application/x-www-form-urlencoded").body(body);
    let calls = [
        TestRequest::get("/?name=satin&ells=3"),
        typed("name=sea+green&ells=4"),
        typed("name=x&ells=many"),
        TestRequest::post("/").body("name=x&ells=1"),
    ];
    let [query, body, misfit, untyped] = answers(router, calls);
    assert_eq!((query, body), (ok("3 ells of satin"), ok("4 ells of sea green")));
    assert_eq!((misfit.0, untyped.0), (422, 415));
}

#[test]
fn a_body_beyond_its_limit_is_refused() {
    async fn length(bytes: Bytes) -> String {
        bytes.len().to_string()
    }
    let router = Router::new().post("/", length).layer(BodyLimit(10));
    let long = TestRequest::post("/").body(selvedge_web::Body::produce(async |mut out| {
        out.put("0123456789").await;
        out.put("0").await;
        Ok::<(), std::io::Error>(())
    }));
    let [whole, known, unknown] = answers(
        router,
        [TestRequest::post("/").body("0123456789"), TestRequest::post("/").body("01234567890"), long],
    );
    assert_eq!((whole, known.0, unknown.0), (ok("10"), 413, 413));
}

#[test]
fn layers_see_requests_and_responses() {
    async fn mark(mut request: Request, next: Next) -> Response {
        if request.headers().contains_key("x-stop") {
            return selvedge_web::IntoResponse::into_response((StatusCode::FORBIDDEN, "stopped"));
        }
        request.headers_mut().insert("x-seen", "layer".parse().unwrap());
        let mut response = next.call(request).await;
        StatusCode::ACCEPTED.add_to(&mut response);
        response
    }
    let seen = async |fields: HeaderMap| format!("{:?}", fields.get("x-seen"));
    let slow = async || selvedge_core::sleep(Duration::from_secs(3600)).await;
    let router = Router::new().get("/", seen).get("/slow", slow);
    let router = router.layer(mark).layer(TimeLimit(Duration::from_millis(5)));
    let calls =
        [TestRequest::get("/"), TestRequest::get("/").header("x-stop", "1"), TestRequest::get("/slow")];
    let [through, stopped, slow] = answers(router, calls);
    assert_eq!(through, (202, "Some(\"layer\")".into()));
    assert_eq!((stopped, slow.0), ((403, "stopped".into()), 503));
}

#[test]
fn a_nested_handler_sees_the_rest_of_the_path() {
    let inner = Router::new()
        .get("/", async || "inner root")
        .get("/{name}", async |Path(name): Path<String>, Query(query): Query<Vec2>| {
            format!("{name} {query:?}")
        });
    let outer = Router::new()
        .nest("/a", inner)
        .get("/b", async || "b")
        .fallback(async |request: Request| (StatusCode::NOT_FOUND, format!("no {}", request.uri())));
    let calls = [
        TestRequest::get("/a"),
        TestRequest::get("/a/"),
        TestRequest::get("/a/x?y=1"),
        TestRequest::get("/a/x/y"),
        TestRequest::get("/c?d"),
    ];
    let found = answers(outer, calls);
    assert_eq!(found[..2], [ok("inner root"), ok("inner root")]);
    assert_eq!(found[2], ok("x Vec2 { y: Some(1) }"));
    assert_eq!((found[3].0, &found[4]), (404, &(404, "no /c?d".into())));
}

#[derive(Debug, Deserialize)]
struct Vec2 {
    y: Option<u8>,
}

#[test]
fn errors_of_handlers_are_responses() {
    async fn find(Path(id): Path<u32>) -> Result<Json<u32>, Rejection> {
        match id {
            0 => Err(Rejection::new(StatusCode::NOT_FOUND, "there is no loom 0")),
            id => Ok(Json(id)),
        }
    }
    let router = Router::new().get("/{id}", find).post("/{id}", async || Redirect::to("/1"));
    run(async move {
        assert_eq!(get(&router, "/0").await.text(), "there is no loom 0");
        assert_eq!(get(&router, "/1").await.json::<u32>(), 1);
        let redirect = post(&router, "/7", "").await;
        assert_eq!((redirect.status(), redirect.header("location")), (303, Some("/1")));
    });
}

#[test]
#[should_panic(expected = "the route /{id}/{name} does not fit its function: 1 parameters are read")]
fn a_route_with_more_parameters_than_its_function_reads_is_refused() {
    let _ = Router::new().get("/{id}/{name}", async |Path(id): Path<u32>| id.to_string());
}

#[test]
#[should_panic(expected = "Vec2 has no field \"x\"")]
fn a_route_with_another_name_than_its_function_reads_is_refused() {
    let _ = Router::new().get("/{x}", async |Path(vec): Path<Vec2>| format!("{:?}", vec.y));
}

#[test]
#[should_panic(expected = "/a has two routes for GET")]
fn two_functions_for_one_route_are_refused() {
    let _ = Router::new().get("/a", async || "one").get("/a", async || "two");
}

#[test]
fn files_beneath_a_router_have_conditions_ranges_and_redirects() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("css")).unwrap();
    std::fs::write(directory.path().join("css/loom.css"), "h1 { color: navy }").unwrap();
    std::fs::write(directory.path().join("large"), vec![b'x'; 200_000]).unwrap();
    let files = StaticFiles::new(DocumentRoot::new(directory.path()).unwrap(), &Config::default());
    let tree = selvedge_web::FileTree::new().file("css/loom.css", "h1 { color: navy }");
    let router = Router::new().nest("/disk", files).nest("/memory", tree);
    run(async move {
        for place in ["/disk", "/memory"] {
            let at = |name: &str| TestRequest::get(&format!("{place}/{name}"));
            let whole = ask(&router, at("css/loom.css")).await;
            assert_eq!((whole.status(), whole.text()), (200, "h1 { color: navy }"));
            assert_eq!(whole.header("content-type"), Some("text/css; charset=utf-8"));
            let etag = whole.header("etag").unwrap();
            let again = ask(&router, at("css/loom.css").header("if-none-match", etag)).await;
            assert_eq!(again.status(), 304);
            let part = ask(&router, at("css/loom.css").header("range", "bytes=0-1")).await;
            assert_eq!((part.status(), part.text()), (206, "h1"));
            let parts = ask(&router, at("css/loom.css").header("range", "bytes=0-1,-1")).await;
            assert_eq!(parts.header("content-length"), Some(parts.text().len().to_string().as_str()));
            assert!(parts.text().contains("\r\n\r\nh1\r\n--selvedge"), "{}", parts.text());
            let redirect: TestResponse = ask(&router, at("css?a=b")).await;
            let location = format!("{place}/css/?a=b");
            assert_eq!((redirect.status(), redirect.header("location")), (301, Some(location.as_str())));
            assert_eq!(ask(&router, at("nothing")).await.status(), 404);
            assert_eq!(ask(&router, at(".git/config")).await.status(), 404);
        }
        assert_eq!(get(&router, "/disk/large").await.bytes().len(), 200_000);
    });
}

#[test]
#[should_panic(expected = "\"/{tenant}\" has no parameters")]
fn a_prefix_with_a_parameter() {
    let _ = Router::new().nest("/{tenant}", async |_: Request| "inner");
}

#[test]
fn a_part_that_is_asked_again_behind_its_end_leaves_the_next_part() {
    async fn lens(mut form: Multipart) -> Result<String, Rejection> {
        let mut lens = String::new();
        while let Some(mut part) = form.next().await? {
            let mut len = 0;
            while let Some(piece) = part.next().await? {
                len += piece.len();
            }
            assert_eq!(part.next().await?, None);
            lens += &format!("{len} ");
        }
        Ok(lens)
    }
    let part = |content: &str| format!("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n{content}\r\n");
    let body = format!("{}{}{}--x--\r\n", part("one"), part("three"), part(""));
    let call = TestRequest::post("/").header("content-type", "multipart/form-data; boundary=x").body(body);
    let main = async { ask(&Router::new().post("/", lens), call).await.text().to_string() };
    let text = round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    assert_eq!(text, "3 5 0 ");
}
