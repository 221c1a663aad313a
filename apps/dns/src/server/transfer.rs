//! [`Transfer`]: a zone as a whole, for the other servers of the zone (RFC 5936). `tcp.rs` sends
//! it.
//!
//! A request for the changes since a version (IXFR) gets the whole zone too, as RFC 1995 §4 allows.

use crate::frame;
use crate::record::NameKey;
use crate::wire::answer::compose_part;
use crate::wire::asked::Asked;
use crate::zone::Zones;
use domain::base::Rtype;
use domain::base::iana::Class;
use futures_util::io::AsyncWrite;
use selvedge::Time;
use selvedge::net::Stream;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A zone that a client may have, as it is now. A reload does not change it.
#[derive(Debug)]
pub(super) struct Transfer {
    asked: Asked,
    zones: Arc<Zones>,
}

impl Transfer {
    /// The zone that a client asks for as a whole. `None` if there is none of this name, or if the
    /// query is another one.
    pub(super) fn of(asked: &Asked, zones: &Arc<Zones>) -> Option<Transfer> {
        let is_asked = matches!(asked.rtype, Rtype::AXFR | Rtype::IXFR) && asked.class == Class::IN;
        let zone = zones.named(&NameKey::new(&asked.name)).filter(|_| is_asked);
        zone.map(|_| Transfer { asked: asked.clone(), zones: zones.clone() })
    }

    /// Sends the zone, in as many messages as it takes. The client has `idle` for each of them.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) async fn send(
        &self,
        link: &mut (impl AsyncWrite + Unpin),
        stream: &Stream,
        idle: Duration,
    ) -> io::Result<()> {
        let zone = self.zones.named(&NameKey::new(&self.asked.name)).expect("`of` has found it");
        let mut records = zone.transfer().peekable();
        while let Some(message) = compose_part(&self.asked, &mut records) {
            stream.set_write_deadline(Some(Time::now() + idle));
            frame::write(&mut *link, &message).await?;
        }
        Ok(())
    }
}
