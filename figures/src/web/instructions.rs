//! User instructions of a web server for one keep-alive request: ours, and nginx in two set-ups.
//! The figure in `web.rs` calls `Counted::each`, and so does `figures/src/instructions.rs` for
//! `figures/instructions.json`.
//!
//! A server runs under callgrind while `child/requests.rs` makes a given number of requests. The
//! difference of two runs belongs to the requests. Without an access log and with one are separate
//! rows.

use super::load::CONNECTIONS;
use super::server::{self, Kind, Log};
use super::site::{SMALL, Site};
use crate::callgrind;
use crate::measure::{Contender, MeasureError};
use crate::peers::is_missing;
use crate::pinned;

/// Requests of the shorter run and of the longer one.
const LENGTHS: [u64; 2] = [2000, 10_000];

/// A server under callgrind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    kind: Kind,
    log: Log,
}

impl Counted {
    /// Ours, with its access log or without.
    pub(crate) fn ours(log: bool) -> Counted {
        Counted::new(Kind::Selvedge, log)
    }

    /// nginx as its guides tune it, and as it is fastest for small files.
    pub(crate) fn nginx(log: bool) -> [Counted; 2] {
        [Kind::NginxTuned, Kind::NginxSmallFiles].map(|kind| Counted::new(kind, log))
    }

    fn new(kind: Kind, log: bool) -> Counted {
        Counted { kind, log: if log { Log::On } else { Log::Off } }
    }

    /// Its name in a table.
    pub(crate) fn name(self) -> String {
        server::name(self.kind, self.log)
    }

    /// The instructions of one request for the small file over connections that are all in use.
    ///
    /// # Errors
    ///
    /// As for [`callgrind::each`].
    pub(crate) fn each(self) -> Result<f64, MeasureError> {
        let [few, many] = LENGTHS.map(|requests| self.all(requests));
        Ok((many? as f64 - few? as f64) / (LENGTHS[1] - LENGTHS[0]) as f64)
    }

    /// All instructions of a run.
    fn all(self, requests: u64) -> Result<u64, MeasureError> {
        let site = Site::create(0).map_err(MeasureError::Failed)?;
        let words = callgrind::words().map_err(MeasureError::Absent)?;
        let refused = |why: String| {
            if is_missing(&why) { MeasureError::Absent(why) } else { MeasureError::Failed(why) }
        };
        let mut server = server::start_under(&words, self.kind, self.log, &site).map_err(refused)?;
        server.check(SMALL, &site).map_err(MeasureError::Wrong)?;
        let connections = CONNECTIONS as u64;
        let client = Contender {
            cpus: &[pinned::CLIENT_CPU],
            ..crate::contender::inner("client", "requests", &[server.port().into(), connections, requests])
                .answers("requests", requests)
                .answers("body_bytes", requests * SMALL.bytes as u64)
        };
        crate::measure::run(&client, &[], callgrind::LIMIT)?;
        server.answered(requests, 0);
        let log = server.stop_and_read(SMALL).map_err(MeasureError::Wrong)?;
        callgrind::collected(&log).ok_or_else(|| MeasureError::Failed("callgrind counted nothing".to_owned()))
    }
}
