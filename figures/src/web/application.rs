//! The figure about web applications: an object as JSON, a body that is read, a part of the path.
//! One worker on CPU 0, and the load generator polls on CPU 1.

use super::load::Load;
use super::server::{Log, start_as};
use super::site::{File, Site};
use super::{Candidate, compete, rate_and_cpu};
use crate::contender::{inner, outer};
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::Contender;
use crate::peers::{AXUM, GO_APP};
use crate::pinned::{BOTH_CPUS, SERVER_CPU};
use crate::table::Table;

/// The figure of this file.
pub(crate) const FIGURES: &[Figure] = &[Figure {
    name: "web-app",
    about: "an application: JSON, a body, a part of the path",
    measure: application,
}];

/// The numbers of the body.
const NUMBERS: u64 = 100;

const OBJECT: File = File { path: "/json", bytes: r#"{"message":"Hello, World!","number":42}"#.len() };
const SUM: File = File { path: "/sum", bytes: "4950".len() };
const USER: File = File { path: "/users/1234567", bytes: "user 1234567".len() };

/// `web-app`.
pub(crate) fn application(effort: Effort) -> Result<Table, String> {
    let machine = Machine::now();
    let faults = effort.purpose == Purpose::Faults;
    let seconds = if effort.is_small() { 1 } else { effort.seconds };
    let mut all = Vec::new();
    for (case, file) in [("JSON: ", OBJECT), ("a body of 100 numbers: ", SUM), ("a part of the path: ", USER)]
    {
        let site = Site::create(0)?;
        // A fault is a reply of another length than what is asked for.
        let file = File { bytes: file.bytes + usize::from(faults), ..file };
        let mut load = Load::new(file, 1, seconds)?;
        if file.path == SUM.path {
            let numbers: Vec<String> = (0..NUMBERS).map(|number| number.to_string()).collect();
            load = load.post(site.write("numbers", &format!("[{}]", numbers.join(",")))?);
        }
        let entrants = [
            inner("selvedge", "web-app", &[]),
            inner("hyper on tokio", "tokio-web-app", &[]),
            outer(AXUM, "axum", "", &[]),
            outer(GO_APP, "Go net/http", "", &[]),
        ];
        let candidate = |entrant: Contender| {
            let Contender { system, ours, command, environment, .. } = entrant;
            Candidate::start(&system, ours, &BOTH_CPUS[..1], effort, || {
                let command = command?;
                start_as(&system, Log::Off, &site, &[SERVER_CPU], |set_up| {
                    // The peers have the port for their only argument, and Go's is one processor.
                    let variables = environment.iter().map(|(name, value)| format!("{name}={value}"));
                    let words = command.into_iter().filter(|word| !word.is_empty());
                    let env = ["/usr/bin/env".to_owned()].into_iter().chain(variables);
                    Ok(env.chain(words).chain([set_up.port.to_string()]).collect())
                })
            })
        };
        let candidates = entrants.into_iter().map(candidate).collect();
        let (contenders, samples) = compete("web-app", file, &load, candidates, effort)?;
        all.extend(rate_and_cpu(case, &contenders, &samples));
    }
    Ok(Table {
        name: "web-app",
        title: "a small web application, 64 keep-alive connections, one worker on CPU 0, busy-polling client on CPU 1"
            .to_owned(),
        machine,
        rows: all,
        notes: vec![
            "each has a router or a match of its own, reads and writes JSON by its usual library (serde_json; encoding/json), and sends a date".to_owned(),
            "hyper and axum on tokio's current-thread runtime; Go with GOMAXPROCS=1; no access log".to_owned(),
        ],
    })
}
