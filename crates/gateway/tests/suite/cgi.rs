//! RFC 3875, rule by rule. Each test names the section.

use crate::scripts::{Scripts, ask, get, request, run, text_of};
use selvedge_core::{Time, sleep};
use selvedge_gateway::{Authenticated, Cgi};
use selvedge_handler::{Body, Handler};
use std::fs;
use std::time::Duration;

/// Prints a variable, or that it is not set.
const PRINT: &str =
    "printf 'Content-Type: text/plain\\n\\n'\neval \"printf '%s' \\\"\\${$QUERY_STRING-unset}\\\"\"";

/// The value of a meta-variable in a request.
fn variable(name: &str, method: &str, path: &str, fields: &[(&str, &str)], body: &'static str) -> String {
    let scripts = Scripts::new(&[("print", PRINT)]);
    let request = request(method, &format!("/cgi/print{path}?{name}"), fields, body);
    let text = ask(scripts.cgi(), request);
    let (head, value) = text.split_once("| ").unwrap();
    assert_eq!(head, "200 content-type=text/plain", "{text}");
    value.to_owned()
}

fn plain_variable(name: &str) -> String {
    variable(name, "GET", "", &[], "")
}

#[test]
fn the_program_is_the_first_name_that_is_a_file_3_3() {
    let scripts = Scripts::new(&[("deep/er/print", PRINT)]);
    let path = "/cgi/deep/er/print/a%20b/c?PATH_INFO";
    assert!(ask(scripts.cgi(), get(path)).ends_with("| /a b/c"));
    assert!(ask(scripts.cgi(), get("/cgi/deep/er/print?SCRIPT_NAME")).ends_with("| /cgi/deep/er/print"));
    for absent in
        ["/cgi/deep/er/none", "/cgi/deep/er", "/cgi/", "/other/print", "/cgideep/er/print", "/cgi/.x"]
    {
        assert!(ask(scripts.cgi(), get(absent)).starts_with("404 "), "{absent}");
    }
    assert!(ask(scripts.cgi(), get("/cgi/../../etc/passwd")).starts_with("400 "));
}

#[test]
fn an_index_answers_for_a_directory() {
    let scripts = Scripts::new(&[("index.cgi", PRINT)]);
    let text = ask(scripts.cgi().index("index.cgi"), get("/cgi/?SCRIPT_NAME"));
    assert!(text.ends_with("| /cgi/index.cgi"), "{text}");
}

#[test]
fn auth_type_and_remote_user_are_set_if_the_server_has_checked_4_1_1_and_4_1_11() {
    assert_eq!(plain_variable("AUTH_TYPE"), "unset");
    assert_eq!(plain_variable("REMOTE_USER"), "unset");
    for (name, value) in [("AUTH_TYPE", "Basic"), ("REMOTE_USER", "ada"), ("HTTP_AUTHORIZATION", "unset")] {
        let scripts = Scripts::new(&[("print", PRINT)]);
        let fields = [("authorization", "Basic secret")];
        let mut request = request("GET", &format!("/cgi/print?{name}"), &fields, "");
        let user = Authenticated { scheme: "Basic".into(), user: "ada".into() };
        request.extensions_mut().insert(user);
        assert!(ask(scripts.cgi(), request).ends_with(&format!("| {value}")), "{name}");
    }
}

#[test]
fn content_length_is_set_if_and_only_if_there_is_a_body_4_1_2() {
    assert_eq!(plain_variable("CONTENT_LENGTH"), "unset");
    assert_eq!(variable("CONTENT_LENGTH", "POST", "", &[], "warp"), "4");
}

#[test]
fn the_length_of_a_chunked_body_is_found_out_4_1_2() {
    let scripts = Scripts::new(&[("print", PRINT)]);
    let chunked = || {
        Body::produce(async |mut out| {
            out.put("warp").await;
            out.put("weft").await;
            Ok::<(), std::io::Error>(())
        })
    };
    run(async move {
        let asked = request("POST", "/cgi/print?CONTENT_LENGTH", &[], chunked());
        assert!(text_of(scripts.cgi().call(asked).await).await.ends_with("| 8"));
        let asked = request("POST", "/cgi/print?CONTENT_LENGTH", &[], chunked());
        let refused = scripts.cgi().unsized_body_max(7).call(asked).await;
        assert_eq!(refused.status(), 413);
        // A long one is in a file meanwhile.
        let long = Body::produce(async |mut out| {
            for _ in 0..3000 {
                out.put("cloth".repeat(200)).await;
            }
            Ok::<(), std::io::Error>(())
        });
        let asked = request("POST", "/cgi/print?CONTENT_LENGTH", &[], long);
        assert!(text_of(scripts.cgi().call(asked).await).await.ends_with("| 3000000"));
    });
}

#[test]
fn content_type_is_the_clients_4_1_3() {
    assert_eq!(plain_variable("CONTENT_TYPE"), "unset");
    let fields = [("content-type", "text/cloth")];
    assert_eq!(variable("CONTENT_TYPE", "POST", "", &fields, "warp"), "text/cloth");
}

#[test]
fn gateway_interface_4_1_4() {
    assert_eq!(plain_variable("GATEWAY_INTERFACE"), "CGI/1.1");
}

#[test]
fn path_info_is_decoded_and_case_is_kept_4_1_5() {
    assert_eq!(variable("PATH_INFO", "GET", "/A%2bb/c", &[], ""), "/A+b/c");
    assert_eq!(plain_variable("PATH_INFO"), "unset");
    // A server may refuse a slash that is no separator.
    let scripts = Scripts::new(&[("print", PRINT)]);
    assert!(ask(scripts.cgi(), get("/cgi/print/a%2fb")).starts_with("404 "));
}

#[test]
fn path_translated_is_below_the_document_root_4_1_6() {
    assert_eq!(plain_variable("PATH_TRANSLATED"), "unset");
    let translated = variable("PATH_TRANSLATED", "GET", "/a/b", &[], "");
    assert!(translated.starts_with('/') && translated.ends_with("/a/b"), "{translated}");
}

#[test]
fn query_string_is_always_set_and_not_decoded_4_1_7() {
    let scripts = Scripts::new(&[("query", "printf 'Content-Type: a/b\\n\\n%s' \"${QUERY_STRING-unset}\"")]);
    assert!(ask(scripts.cgi(), get("/cgi/query?a=%20b&c")).ends_with("| a=%20b&c"));
    assert!(ask(scripts.cgi(), get("/cgi/query")).ends_with("| "));
}

#[test]
fn remote_addr_and_remote_host_4_1_8_and_4_1_9() {
    assert_eq!(plain_variable("REMOTE_ADDR"), "192.0.2.7");
    assert_eq!(plain_variable("REMOTE_HOST"), "192.0.2.7");
}

#[test]
fn remote_ident_is_optional_4_1_10() {
    assert_eq!(plain_variable("REMOTE_IDENT"), "unset");
}

#[test]
fn request_method_4_1_12() {
    for method in ["GET", "POST", "PUT", "DELETE", "BREW"] {
        assert_eq!(variable("REQUEST_METHOD", method, "", &[], ""), method);
    }
}

#[test]
fn script_name_has_a_slash_in_front_and_is_decoded_4_1_13() {
    assert_eq!(plain_variable("SCRIPT_NAME"), "/cgi/print");
    let scripts = Scripts::new(&[("a b", PRINT)]);
    assert!(ask(scripts.cgi(), get("/cgi/a%20b/c?SCRIPT_NAME")).ends_with("| /cgi/a b"));
}

#[test]
fn server_name_and_server_port_4_1_14_and_4_1_15() {
    assert_eq!(plain_variable("SERVER_NAME"), "loom.example");
    assert_eq!(plain_variable("SERVER_PORT"), "8080");
    let scripts = Scripts::new(&[("print", PRINT)]);
    let text = ask(scripts.cgi().server_port(81), get("/cgi/print?SERVER_PORT"));
    assert!(text.ends_with("| 81"), "{text}");
}

#[test]
fn server_protocol_and_server_software_4_1_16_and_4_1_17() {
    assert_eq!(plain_variable("SERVER_PROTOCOL"), "HTTP/1.1");
    assert!(plain_variable("SERVER_SOFTWARE").starts_with("selvedge/"));
}

#[test]
fn fields_of_the_request_are_variables_4_1_18() {
    let fields = [
        ("user-agent", "shuttle"),
        ("accept", "a"),
        ("accept", "b"),
        ("cookie", "c"),
        ("cookie", "d"),
        ("proxy", "evil"),
        ("x-own", "warp"),
    ];
    for (name, value) in [
        ("HTTP_USER_AGENT", "shuttle"),
        ("HTTP_ACCEPT", "a, b"),
        ("HTTP_COOKIE", "c; d"),
        ("HTTP_X_OWN", "warp"),
        ("HTTP_HOST", "loom.example:8080"),
        ("HTTP_PROXY", "unset"),
    ] {
        assert_eq!(variable(name, "GET", "", &fields, ""), value, "{name}");
    }
    let fields = [("content-type", "a/b"), ("content-length", "4")];
    for name in ["HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH", "HTTP_CONNECTION"] {
        assert_eq!(variable(name, "POST", "", &fields, "warp"), "unset", "{name}");
    }
}

#[test]
fn the_environment_has_nothing_of_the_servers() {
    let scripts = Scripts::new(&[("print", PRINT)]);
    assert_eq!(plain_variable("HOME"), "unset");
    let text = ask(scripts.cgi().variable("CLOTH", "linen"), get("/cgi/print?CLOTH"));
    assert!(text.ends_with("| linen"), "{text}");
}

#[test]
fn the_body_is_the_input_of_any_size_4_2() {
    let scripts = Scripts::new(&[("size", "printf 'Content-Type: a/b\\n\\n'; wc -c")]);
    let body = vec![b'x'; 9 << 20];
    let text = ask(scripts.cgi(), request("POST", "/cgi/size", &[], body));
    assert_eq!(text.trim_end(), format!("200 content-type=a/b| {}", 9 << 20));
}

#[test]
fn a_program_need_not_read_its_input_4_2() {
    let scripts = Scripts::new(&[("deaf", "exec <&-; printf 'Content-Type: a/b\\n\\nok'")]);
    let text = ask(scripts.cgi(), request("POST", "/cgi/deaf", &[], vec![b'x'; 1 << 20]));
    assert_eq!(text, "200 content-type=a/b| ok");
}

#[test]
fn input_and_output_flow_at_the_same_time_4_2() {
    let scripts = Scripts::new(&[("echo", "printf 'Content-Type: a/b\\n\\n'; exec cat")]);
    let text = ask(scripts.cgi(), request("POST", "/cgi/echo", &[], vec![b'x'; 3 << 20]));
    assert_eq!(text.len(), "200 content-type=a/b| ".len() + (3 << 20));
}

#[test]
fn head_has_no_body_4_3_3() {
    let scripts = Scripts::new(&[("all", "printf 'Content-Type: a/b\\nContent-Length: 4\\n\\nwarp'")]);
    let text = ask(scripts.cgi(), request("HEAD", "/cgi/all", &[], ""));
    assert_eq!(text, "200 content-type=a/b|content-length=4| ");
}

#[test]
fn words_of_a_search_are_arguments_4_4() {
    let scripts = Scripts::new(&[("words", "printf 'Content-Type: a/b\\n\\n'; printf '<%s>' \"$@\"")]);
    for (query, words) in [
        ("warp+weft%20loom", "<warp><weft loom>"),
        ("a=b+c", "<>"),
        ("-s", "<>"),
        ("a+%00", "<>"),
        ("", "<>"),
    ] {
        let text = ask(scripts.cgi(), get(&format!("/cgi/words?{query}")));
        assert!(text.ends_with(&format!("| {words}")), "{query}: {text}");
    }
    let post = ask(scripts.cgi(), request("POST", "/cgi/words?warp", &[], ""));
    assert!(post.ends_with("| <>"), "only GET and HEAD search: {post}");
}

#[test]
fn a_document_has_a_type_and_a_status_6_2_1_and_6_3_3() {
    for (answer, expected) in [
        ("Content-Type: text/html\\n\\nwarp", "200 content-type=text/html| warp"),
        ("Content-Type: text/html\\r\\n\\r\\nwarp", "200 content-type=text/html| warp"),
        ("Status: 404 Not Found\\nContent-Type: a/b\\n\\nwarp", "404 content-type=a/b| warp"),
        ("Status: 204 No Content\\n\\n", "204  "),
        ("Content-Type: a/b\\nX-Own: c\\nX-CGI-Own: d\\n\\n", "200 content-type=a/b|x-own=c| "),
        (
            "Content-Type: a/b\\nConnection: x-own\\nX-Own: c\\nTransfer-Encoding: d\\n\\n",
            "200 content-type=a/b| ",
        ),
    ] {
        let scripts = Scripts::new(&[("answer", &format!("printf '{answer}'"))]);
        assert_eq!(ask(scripts.cgi(), get("/cgi/answer")), expected, "{answer}");
    }
}

#[test]
fn a_local_redirect_is_answered_by_the_server_6_2_2() {
    let scripts = Scripts::new(&[
        ("go", "printf 'Location: /cgi/print/x?PATH_INFO\\n\\n'"),
        ("print", PRINT),
        ("round", "printf 'Location: /cgi/round\\n\\n'"),
        ("away", "printf 'Location: /elsewhere?x\\n\\n'"),
    ]);
    assert_eq!(ask(scripts.cgi(), get("/cgi/go")), "200 content-type=text/plain| /x");
    let post = request("POST", "/cgi/go", &[("content-type", "a/b")], "warp");
    assert_eq!(ask(scripts.cgi(), post), "200 content-type=text/plain| /x");
    assert!(ask(scripts.cgi(), get("/cgi/round")).starts_with("500 "), "it goes round in a circle");
    async fn elsewhere(request: selvedge_handler::Request) -> String {
        format!("{} {}", request.method(), request.uri())
    }
    let whole_server = scripts.cgi().local_redirects(elsewhere);
    assert!(ask(whole_server, get("/cgi/away")).ends_with("| GET /elsewhere?x"));
}

#[test]
fn a_redirect_for_the_client_is_302_6_2_3_and_6_2_4() {
    for (answer, expected) in [
        ("Location: http://a/b\\n\\n", "302 location=http://a/b| "),
        ("Status: 301 Gone\\nLocation: http://a/b\\n\\n", "301 location=http://a/b| "),
        (
            "Status: 302 Found\\nLocation: /b\\nContent-Type: c/d\\n\\nwarp",
            "302 location=/b|content-type=c/d| warp",
        ),
    ] {
        let scripts = Scripts::new(&[("answer", &format!("printf '{answer}'"))]);
        assert_eq!(ask(scripts.cgi(), get("/cgi/answer")), expected, "{answer}");
    }
}

#[test]
fn an_answer_that_breaks_a_rule_is_500_6_3() {
    for answer in [
        "",
        "warp",
        "\\n",
        "X-Own: a\\n\\nwarp",
        "Content-Type : a/b\\n\\n",
        "Content-Type: a/b\\n c\\n\\n",
        "Content-Type: a/b\\nContent-Type: a/b\\n\\n",
        "Status: 200\\nStatus: 404\\n\\n",
        "Status: 700\\n\\n",
        "Content-Type: a/b\\n",
    ] {
        let scripts = Scripts::new(&[("answer", &format!("printf '{answer}'"))]);
        let text = ask(scripts.cgi(), get("/cgi/answer"));
        assert!(text.starts_with("500 "), "{answer}: {text}");
        assert!(scripts.logged()[0].starts_with("/cgi/answer: it"), "{:?}", scripts.logged());
    }
}

#[test]
fn the_length_that_a_program_claims_is_kept_to_6_3() {
    let answer = |length| format!("printf 'Content-Type: a/b\\nContent-Length: {length}\\n\\nwarp'");
    let scripts = Scripts::new(&[("more", &answer(2)), ("less", &answer(9))]);
    assert!(ask(scripts.cgi(), get("/cgi/more")).ends_with("| wa"));
    assert!(ask(scripts.cgi(), get("/cgi/less")).contains("| broken: "));
}

#[test]
fn a_program_with_a_whole_answer_5() {
    let scripts = Scripts::new(&[("nph-all", "printf 'HTTP/1.1 418 Teapot\\r\\nX-Own: a\\r\\n\\r\\nwarp'")]);
    assert_eq!(ask(scripts.cgi(), get("/cgi/nph-all")), "418 x-own=a| warp");
}

#[test]
fn a_program_begins_in_its_directory_7_2() {
    let scripts = Scripts::new(&[("deep/where", "printf 'Content-Type: a/b\\n\\n'; pwd -P")]);
    let text = ask(scripts.cgi(), get("/cgi/deep/where"));
    let expected = fs::canonicalize(scripts.path().join("deep")).unwrap();
    assert!(text.trim_end().ends_with(&format!("| {}", expected.display())), "{text}");
}

#[test]
fn error_output_goes_to_the_log() {
    let scripts =
        Scripts::new(&[("say", "printf 'warp\\n\\nwe\\001ft' >&2; printf 'Content-Type: a/b\\n\\n'")]);
    let (answer, logged) = run(async move {
        let answer = text_of(scripts.cgi().call(get("/cgi/say")).await).await;
        // A thread of its own reads the error output, so the answer may come before the lines do.
        let until = Time::now() + Duration::from_secs(20);
        while scripts.logged().len() < 2 && Time::now() < until {
            sleep(Duration::from_millis(1)).await;
        }
        (answer, scripts.logged())
    });
    assert_eq!(answer, "200 content-type=a/b| ");
    assert_eq!(logged, ["/cgi/say: warp", "/cgi/say: we\\x01ft"]);
}

#[test]
fn a_handler_of_programs_is_a_handler() {
    fn is_handler(_: &impl Handler) {}
    is_handler(&Cgi::new("/srv/cgi-bin"));
}

#[test]
fn a_relative_directory_is_below_the_current_one() {
    let current = std::env::current_dir().unwrap();
    let depth = current.components().count() - 1;
    // Deeper than the current directory: from there, the path that was given leads elsewhere.
    let name = format!("{}print", "a/".repeat(depth));
    let scripts = Scripts::new(&[(&name, PRINT)]);
    let relative = format!("{}{}", "../".repeat(depth), scripts.path().to_str().unwrap().trim_matches('/'));
    let text = ask(Cgi::new(&relative), get(&format!("/{name}/x?PATH_TRANSLATED")));
    let (head, translated) = text.split_once("| ").unwrap();
    assert!(head.starts_with("200 ") && translated.starts_with('/'), "{text}");
}

#[test]
fn a_variable_of_ones_own_replaces_that_of_the_request() {
    const COUNT: &str = "printf 'Content-Type: a/b\\n\\n'\n\
        tr '\\0' '\\n' < /proc/$$/environ | grep -c '^HTTP_ACCEPT='; printf '%s' \"$HTTP_ACCEPT\"";
    let scripts = Scripts::new(&[("count", COUNT)]);
    let cgi = scripts.cgi().variable("HTTP_ACCEPT", "cotton").variable("HTTP_ACCEPT", "linen");
    let text = ask(cgi, request("GET", "/cgi/count", &[("accept", "forged")], ""));
    assert!(text.ends_with("| 1\nlinen"), "{text}");
}
