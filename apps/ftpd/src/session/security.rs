//! AUTH, PBSZ and PROT (RFC 4217): the control connection goes over to TLS, and data connections
//! follow if the client says so.

use super::{Login, Parameters, Session};
use crate::command::Verb;
use crate::reply::Reply;

/// What the client has said about TLS since AUTH.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Protection {
    /// PBSZ came, without which there is no PROT.
    has_buffer: bool,
    /// Whether data connections go over TLS: PROT P.
    pub(super) is_private: bool,
}

impl Session {
    pub(super) fn protect(&mut self, verb: Verb, argument: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(argument).to_ascii_uppercase();
        match verb {
            Verb::Auth => self.authenticate(&text),
            _ if !self.control.is_secure() => Reply::new(503, "Send AUTH TLS first."),
            Verb::Pbsz => match text.parse::<u32>() {
                // TLS needs no buffer, and RFC 4217 §8 wants this size.
                Ok(_) => {
                    self.protection.has_buffer = true;
                    Reply::new(200, "PBSZ=0")
                }
                Err(_) => Reply::new(501, "A number of bytes is wanted: 0."),
            },
            _ if !self.protection.has_buffer => Reply::new(503, "Send PBSZ 0 first."),
            _ => self.set_protection(&text),
        }
    }

    /// AUTH. [`run`](Session::run) makes the handshake when the reply is sent.
    fn authenticate(&mut self, mechanism: &str) -> Reply {
        let Some(identity) = self.server.identity() else {
            return Reply::new(502, "This server has no certificate.");
        };
        if self.control.is_secure() {
            return Reply::new(503, "TLS is there already.");
        }
        match mechanism {
            "TLS" | "TLS-C" | "SSL" | "TLS-P" => {
                // What was said in the clear may have been said by an attacker.
                (self.login, self.parameters) = (Login::None, Parameters::default());
                let is_private = matches!(mechanism, "SSL" | "TLS-P");
                self.protection = Protection { has_buffer: is_private, is_private };
                self.securing = Some(identity);
                Reply::new(234, "TLS begins now.")
            }
            _ => Reply::new(504, "There is AUTH TLS only."),
        }
    }

    fn set_protection(&mut self, level: &str) -> Reply {
        self.protection.is_private = match level {
            "P" => true,
            "C" if self.server.options.requires_tls => {
                return Reply::new(534, "Data connections go over TLS here.");
            }
            "C" => false,
            "S" | "E" => return Reply::new(536, "TLS has PROT C and PROT P."),
            _ => return Reply::new(504, "There is no such level."),
        };
        Reply::new(200, if self.protection.is_private { "Data is private." } else { "Data is in the clear." })
    }
}
