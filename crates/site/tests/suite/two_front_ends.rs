//! The same routes in TOML and in Mighttpd's route file make tables that answer alike.

use proptest::prelude::*;
use selvedge_site::mighty::{self, Defaults};
use selvedge_site::{RouteAction, RouteTable, Variables, read};

/// What a table does with a request, as text.
fn answer(table: &RouteTable, host: &str, path: &str) -> Option<String> {
    let matched = table.route(host.as_bytes(), path.as_bytes())?;
    if matched.lacks_slash {
        return Some(format!("301 {path}/"));
    }
    let rest = matched.rest(path.as_bytes());
    let request = Variables { path: path.as_bytes(), rest, host: host.as_bytes(), query: None };
    Some(match &matched.route.action {
        RouteAction::Directory(directory) => {
            format!("{}{}", directory.path.display(), String::from_utf8_lossy(rest))
        }
        RouteAction::Redirect { to, .. } => String::from_utf8(to.location(&request)).unwrap(),
        RouteAction::Proxy { upstreams, path, .. } => {
            format!("{} {}", upstreams[0], String::from_utf8(path.fill(&request)).unwrap())
        }
        other => panic!("{other:?}"),
    })
}

#[derive(Clone, Debug)]
struct Line {
    path: String,
    kind: usize,
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = ("(/[ab]){0,2}/", 0usize..3).prop_map(|(path, kind)| Line { path, kind });
    prop::collection::vec(line, 1..6)
}

proptest! {
    #[test]
    fn they_agree(
        hosts in prop::collection::vec((0usize..3, lines()), 1..4),
        host in 0usize..3,
        path in "(/[ab]{1,2}){0,3}/?",
    ) {
        const NAMES: [&str; 3] = ["a.example", "b.example", "*"];
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let (mut toml, mut routes) = (String::new(), String::new());
        for (at, (name, lines)) in hosts.iter().enumerate() {
            toml += &format!("[[host]]\nnames = ['{}']\n", NAMES[*name]);
            routes += &format!("[{}]\n", NAMES[*name]);
            for Line { path, kind } in lines {
                let (of_toml, operator, target) = match kind {
                    0 => (format!("directory = '/srv/{at}'"), "->", format!("/srv/{at}")),
                    1 => (format!("redirect = '//r{at}/x$rest'"), "<<", format!("r{at}/x/")),
                    _ => (
                        format!("proxy = 'p{at}:81'\nrewrite = '/y$rest'"),
                        ">>",
                        format!("p{at}:81/y/"),
                    ),
                };
                toml += &format!("[[host.route]]\npath = '{path}'\n{of_toml}\n");
                routes += &format!("{path} {operator} {target}\n");
            }
        }
        let (_, from_toml) = read("t", &toml, "/".as_ref(), |_| unreachable!()).unwrap();
        let from_mighty = mighty::routes("r", &routes, &Defaults::default()).unwrap();
        let host = ["A.example:80", "b.example", "c.example"][host];
        prop_assert_eq!(answer(&from_toml, host, &path), answer(&from_mighty, host, &path));
    }
}
