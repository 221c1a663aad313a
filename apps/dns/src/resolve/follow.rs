//! [`Resolver::follow_anchors`]: the thread that asks the zones of the trust anchors for their keys
//! (RFC 5011 §2.3). `server.rs` starts it beside the sockets.

use super::Resolver;
use super::budget::Budget;
use super::source::Lookup;
use super::validate::Validator;
use crate::dnssec::Flaw;
use crate::dnssec::anchor_file::AnchorFile;
use crate::dnssec::rollover::Rollover;
use crate::dnssec::signed::sets;
use crate::record::NameKey;
use crate::say::complain;
use domain::base::Rtype;
use selvedge::sleep;
use std::time::Duration;

/// The least time between two questions, also after one without an answer.
const SECONDS_MIN: u32 = 3600;

/// The longest time between two questions.
const SECONDS_MAX: u32 = 15 * 24 * 3600;

impl Resolver {
    /// Follows the keys of the trust anchors until the calling thread is cancelled. Returns at once
    /// if the validator follows none.
    pub async fn follow_anchors(&self) {
        let Some(validator) = &self.validator else { return };
        let Some(mut file) = validator.followed.clone() else { return };
        let mut is_written = true;
        loop {
            let mut wait = SECONDS_MAX;
            for index in 0..file.zones.len() {
                let zone = &mut file.zones[index];
                let before = zone.clone();
                wait = wait.min(self.look_at(validator, zone).await);
                if *zone != before {
                    told_changes(&before, zone);
                    validator.trust(&file);
                    is_written = false;
                }
            }
            if !is_written {
                is_written = written(&file).await;
            }
            sleep(Duration::from_secs(wait.into())).await;
        }
    }

    /// Asks a zone for its keys. Returns the number of seconds to the next question.
    async fn look_at(&self, validator: &Validator, zone: &mut Rollover) -> u32 {
        let mut budget = Budget::new();
        let mut lookup = Lookup { source: &self.source, upstream: &self.upstream, budget: &mut budget };
        let name = zone.zone().clone();
        let said = lookup.find(&name, Rtype::DNSKEY).await;
        let records = said.and_then(|said| said.verdict.into_records()).unwrap_or_default();
        let sets = sets(&records);
        let set = sets.iter().find(|set| set.rtype == Rtype::DNSKEY && set.owner == name);
        // Without an answer the old keys stay, and the thread asks again.
        let Some(set) = set else { return SECONDS_MIN };
        match zone.observe(set, validator.now(), &mut lookup.budget.work) {
            Ok(seconds) => (seconds / 2).clamp(SECONDS_MIN, SECONDS_MAX),
            Err(flaw) => {
                complain_of(&name, flaw);
                SECONDS_MIN
            }
        }
    }
}

fn complain_of(zone: &NameKey, flaw: Flaw) {
    let zone = zone.to_name();
    complain(format_args!("selvedge-dns: no trusted key has signed the keys of {zone}: {}", flaw.code()));
}

/// Tells the operator which keys are trusted from now on.
fn told_changes(before: &Rollover, after: &Rollover) {
    let tags = |zone: &Rollover| zone.trusted().iter().map(|key| key.key_tag()).collect::<Vec<u16>>();
    let (old, new) = (tags(before), tags(after));
    if old != new {
        let zone = after.zone().to_name();
        complain(format_args!("selvedge-dns: the trusted keys of {zone} were {old:?} and are {new:?}"));
    }
}

/// Writes the file. Returns whether that went well; if not, the thread writes it the next time.
async fn written(file: &AnchorFile) -> bool {
    let file = file.clone();
    let written = selvedge::blocking(move || file.write().map_err(|error| error.to_string())).await;
    let outcome = written.map_err(|lost| lost.to_string()).flatten();
    outcome.inspect_err(|error| complain(format_args!("selvedge-dns: {error}"))).is_ok()
}
